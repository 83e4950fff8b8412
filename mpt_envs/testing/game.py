"""Rules of the game: sealed bids, the auction, rewards, ends, illegal actions."""

from __future__ import annotations

import math
import random
import unittest
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mpt_envs.testing.base import EnvTestBase
from mpt_envs.testing.rules import check, must_raise, under
from mpt_envs.testing.trace import differences, is_over, legal_actions, readable
from wrappers.errors import ActionFormatError, IllegalActionError, PhaseError, TaskError


class GameRules(EnvTestBase):
    """Bids, auction, rewards, ends and illegal actions."""

    def test_sealed_bids(self) -> None:
        rng = random.Random(5)
        count = len(self.make_env().possible_agents)
        for seed, turns in self.turn_starts(3):
            # After the first bid, after half of them, and before the last one.
            for bidders in sorted({min(1, count - 1), count // 2, count - 1}):
                # Environments that differ in nothing but the bids that were just submitted.
                views = []
                for variant in range(4):
                    env = self.started(seed, turns)
                    for _ in range(bidders):
                        env.step(self._bid(env, variant, rng))
                    check(
                        env.unwrapped.phase == "bid",
                        "sealed bids",
                        f"the auction resolves before all of the {count} agents have bid",
                    )
                    views.append(readable(env))
                    env.close()
                for view in views[1:]:
                    changed = differences(views[0], view)
                    check(
                        not changed,
                        "sealed bids",
                        f"seed {seed}, turn {turns}: other bids change {', '.join(changed)} "
                        "before the auction resolves",
                    )

    def _bid(self, env: Any, variant: int, rng: random.Random) -> Any:
        """A legal bid: the lowest, the highest, or a random one."""
        legal = self.legal_bids(env, env.agent_selection)
        return (legal[0], legal[-1], rng.choice(legal), rng.choice(legal))[variant]

    def test_auction(self) -> None:
        rng = random.Random(6)
        for seed in self.seeds:
            env = self.started(seed)
            game = env.unwrapped
            names = list(env.possible_agents)
            while not is_over(env):
                turn = game.turn
                # Coarse bids, so that ties happen.
                bids = []
                for name in names:
                    legal = self.legal_bids(env, name)
                    bids.append(rng.choice((legal[0], legal[len(legal) // 2], legal[-1])))
                for name, bid in zip(names, bids, strict=True):
                    check(
                        env.agent_selection == name and game.phase == "bid",
                        "auction",
                        f"turn {turn}: {name} should bid now, but {env.agent_selection} is asked",
                    )
                    env.step(bid)
                self._check_auction(env, turn, names)
                if game.last_auction.winner is not None and not is_over(env):
                    env.step(self.choose(env, env.agent_selection, rng))

    def _check_auction(self, env: Any, turn: int, names: list[str]) -> None:
        game = env.unwrapped
        auction = game.last_auction
        check(
            auction is not None and auction.turn == turn,
            "auction",
            f"after all bids of turn {turn} the record is {auction}",
        )
        bids = dict(zip(names, auction.bids, strict=True))
        top = max(bids.values())
        if top == 0:
            check(
                auction.winner is None and auction.skipped and game.turn == turn + 1,
                "skipped turn",
                f"turn {turn}: all bid 0, yet {auction}",
            )
            return
        check(
            bids.get(auction.winner) == top and env.agent_selection == auction.winner,
            "auction",
            f"turn {turn}: bids {bids}, but {auction.winner} wins and {env.agent_selection} moves",
        )
        check(game.phase == "act", "auction", f"turn {turn}: the winner is not asked to act")
        others = {name: bid for name, bid in bids.items() if name != auction.winner}
        second = max(others.values(), default=0.0)
        check(
            (auction.runner_up is None) == (second == 0)
            and others.get(auction.runner_up, 0.0) == second,
            "auction",
            f"turn {turn}: bids {bids}, winner {auction.winner}, runner-up {auction.runner_up}",
        )

    def test_ties_are_broken_at_random(self) -> None:
        names = list(self.make_env().possible_agents)
        wins = dict.fromkeys(names, 0)
        env = self.make_env()
        rounds = self.ties * len(names)
        for seed in range(rounds):
            env.reset(seed=seed)
            if env.unwrapped.dropout:
                raise unittest.SkipTest("absences decide ties here")
            for name in names:
                env.step(self.legal_bids(env, name)[-1])
            wins[env.unwrapped.last_auction.winner] += 1
        # Six standard deviations of a fair draw.
        share = 1 / len(names)
        slack = 6 * math.sqrt(rounds * share * (1 - share))
        check(
            all(abs(won - rounds * share) <= slack for won in wins.values()),
            "auction",
            f"of {rounds} ties between all agents: {wins}",
        )

    def test_skipped_turns_use_up_the_budget(self) -> None:
        env = self.started(self.seeds[0])
        game = env.unwrapped
        while not is_over(env):
            turn = game.turn
            for name in env.possible_agents:
                env.step(self.legal_bids(env, name)[0])
            check(
                game.turn == turn + 1 and game.last_auction.winner is None,
                "skipped turn",
                f"all bid 0 in turn {turn}: then it is turn {game.turn}, {game.last_auction}",
            )
            check(
                game.counts["skipped"] == turn + 1,
                "skipped turn",
                f"{game.counts['skipped']} turns were counted as skipped instead of {turn + 1}",
            )
            check(game.turn <= game.max_turns, "ends", "the turn budget is exceeded")
        check(
            any(env.terminations.values()) or game.turn == game.max_turns,
            "ends",
            f"truncated in turn {game.turn} of {game.max_turns}",
        )

    def test_team_reward(self) -> None:
        for seed in self.seeds:
            env, rng = self.started(seed), random.Random(seed)
            names = list(env.possible_agents)
            total = 0.0
            while not is_over(env):
                turn = env.unwrapped.turn
                try:
                    env.step(self.choose(env, env.agent_selection, rng))
                except TaskError as error:
                    check(False, "team reward", str(error))
                rewards = set(env.rewards.values())
                check(len(rewards) == 1, "team reward", f"turn {turn}: {env.rewards}")
                reward = rewards.pop()
                check(math.isfinite(reward), "team reward", f"turn {turn}: {reward}")
                if env.unwrapped.turn == turn:
                    check(
                        reward == 0,
                        "team reward",
                        f"turn {turn}: {reward} is paid before the turn is over",
                    )
                total += reward
            reported = env.unwrapped.metrics()["return"]
            check(
                math.isclose(total, reported, rel_tol=1e-9, abs_tol=1e-9),
                "team reward",
                f"the rewards of {names[0]} add up to {total}, the return is {reported}",
            )

    def test_all_agents_end_together(self) -> None:
        for seed in self.seeds:
            env = None
            for env in self.episode_states(seed):
                flags = (set(env.terminations.values()), set(env.truncations.values()))
                check(
                    len(flags[0]) == len(flags[1]) == 1
                    and set(env.terminations) == set(env.truncations) == set(env.possible_agents),
                    "ends",
                    f"terminations {env.terminations}, truncations {env.truncations}",
                )
                check(not (flags[0] == {True} == flags[1]), "ends", "terminated and truncated")
                check(env.agents, "ends", "agents left before they could see the end")
            assert env is not None
            game = env.unwrapped
            check(game.turn <= game.max_turns, "ends", f"turn {game.turn} of {game.max_turns}")
            for agent in env.possible_agents:
                check(
                    isinstance(env.infos[agent].get("metrics"), Mapping),
                    "metrics",
                    f"the last infos of {agent} hold no metrics",
                )
            with under("ends", "step(None) for each agent of an ended episode"):
                for _ in env.possible_agents:
                    env.step(None)
            check(not env.agents, "ends", f"{env.agents} remain after everyone stepped None")
            with under("observe anytime", "after the end"):
                for agent in env.possible_agents:
                    env.observe(agent)
            must_raise(PhaseError, "ends", "a step after the end", partial(env.step, None))
            with under("ends", "reset after the end"):
                env.reset()

    def test_nothing_works_before_a_reset(self) -> None:
        env = self.make_env()
        agent = env.possible_agents[0]
        for what, call in (
            ("step", lambda: env.step(0)),
            ("observe", lambda: env.observe(agent)),
            ("snapshot", env.snapshot),
        ):
            must_raise(PhaseError, "episodes", f"{what} before a reset", call)

    def test_malformed_actions_raise(self) -> None:
        for turns in (0, 3):
            env = self.started(self.seeds[0], turns)
            self.require_mask(env)
            if is_over(env):
                continue
            for acting in (False, True):
                if acting:
                    for name in env.possible_agents:
                        env.step(self.legal_bids(env, name)[-1])
                    if env.unwrapped.phase != "act":
                        continue
                before = env.snapshot()
                size = int(env.action_space(env.agent_selection).n)
                wrong: tuple[Any, ...] = (None, "0", 0.5, True, -1, size, [0], np.float32(1.0))
                for action in wrong:
                    must_raise(
                        ActionFormatError,
                        "illegal action",
                        f"the action {action!r}",
                        partial(env.step, action),
                    )
                    check(
                        env.snapshot() == before,
                        "illegal action",
                        f"the action {action!r} raised, but changed the state",
                    )
                with under("spaces", "a NumPy integer as action"):
                    env.clone().step(np.int64(legal_actions(env, env.agent_selection)[0]))

    def test_illegal_actions(self) -> None:
        twins = self.make_env(), self.make_env()
        for seed, turns in self.turn_starts(4):
            env = self.started(seed, turns)
            self.require_mask(env)
            for name in env.possible_agents:
                self._check_illegal(env, *twins)
                env.step(self.legal_bids(env, name)[-1])
            if env.unwrapped.phase == "act":
                self._check_illegal(env, *twins)

    def _check_illegal(self, env: Any, twin: Any, idle: Any) -> None:
        game = env.unwrapped
        agent, phase, turn = env.agent_selection, game.phase, game.turn
        mask = env.observe(agent)["action_mask"]
        forbidden = np.flatnonzero(mask == 0).tolist()
        before = env.snapshot()
        for action in forbidden[:: max(1, len(forbidden) // 4)]:
            where = f"turn {turn}, {phase} phase, {agent}, action {action}"
            if game.on_illegal == "raise":
                must_raise(IllegalActionError, "illegal action", where, partial(env.step, action))
                check(env.snapshot() == before, "illegal action", f"{where}: changed the state")
                continue
            twin.restore(before)
            idle.restore(before)
            twin.step(action)
            check(
                twin.unwrapped.counts["illegal"] == game.counts["illegal"] + 1,
                "illegal action",
                f"{where}: is not counted",
            )
            if phase == "bid":
                idle.step(self.legal_bids(idle, agent)[0])
            else:
                idle.unwrapped.task.skip()
            check(
                twin.unwrapped.task.snapshot() == idle.unwrapped.task.snapshot(),
                "illegal action",
                f"{where}: does something to the task",
            )
