"""Rules of what an agent sees: agents, spaces, masks, fresh arrays."""

from __future__ import annotations

import random
import unittest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.testing.base import EnvTestBase
from mpt_envs.testing.rules import check
from mpt_envs.testing.trace import arrays, content_digest, is_over, readable


class ObservationRules(EnvTestBase):
    """Agents, spaces, masks and observations."""

    def test_agents(self) -> None:
        env = self.make_env()
        task = env.unwrapped.task
        agents = list(env.possible_agents)
        check(len(set(agents)) == len(agents), "agents", f"a name appears twice in {agents}")
        for agent, role in zip(agents, task.roles, strict=True):
            stem, _, number = agent.rpartition("_")
            check(
                stem == role and number.isdigit(),
                "agents",
                f"{agent!r}, of role {role!r}, is not of the form role_i",
            )
        env.reset(seed=self.seeds[0])
        check(list(env.agents) == agents, "agents", "after reset all possible agents play")
        check(env.agent_selection == agents[0], "agents", "the first possible agent bids first")
        env.agents.append("intruder_0")
        check(
            env.possible_agents == agents,
            "agents",
            "env.agents and env.possible_agents are the same list object",
        )

    def test_spaces_contain_what_is_returned(self) -> None:
        for seed in self.seeds:
            last_turn = -1
            for env in self.episode_states(seed):
                # All agents at the start of a turn, then whoever moves.
                new_turn = env.unwrapped.turn != last_turn
                last_turn = env.unwrapped.turn
                for agent in env.possible_agents if new_turn else (env.agent_selection,):
                    space = env.observation_space(agent)
                    check(
                        space is env.observation_space(agent)
                        and env.action_space(agent) is env.action_space(agent),
                        "spaces",
                        f"the spaces of {agent} are new objects at each call",
                    )
                    observation = env.observe(agent)
                    check(
                        space.contains(observation),
                        "spaces",
                        f"turn {env.unwrapped.turn}: {agent} observes what {space} does not "
                        f"contain: {observation}",
                    )

    def test_masks(self) -> None:
        for seed in self.seeds:
            for env in self.episode_states(seed):
                self.require_mask(env)
                self._check_masks(env)

    def _check_masks(self, env: Any) -> None:
        game = env.unwrapped
        for agent in env.possible_agents:
            where = f"turn {game.turn}, {game.phase} phase, {agent}"
            mask = env.observe(agent)["action_mask"]
            size = int(env.action_space(agent).n)
            check(
                mask.dtype == np.int8 and mask.shape == (size,) and np.isin(mask, (0, 1)).all(),
                "masks",
                f"{where}: not an int8 vector of {size} zeros and ones: {mask!r}",
            )
            copy = env.infos.get(agent, {}).get("action_mask")
            check(
                copy is not None and np.array_equal(copy, mask),
                "masks",
                f"{where}: infos holds {copy}, the observation {mask}",
            )
            if agent != env.agent_selection or is_over(env):
                continue
            levels = len(game.bid_levels)
            own = mask[:levels] if game.phase == "bid" else mask[levels:]
            check(own.any(), "masks", f"{where}: all zero, but it is to move")
            check(own.sum() == mask.sum(), "masks", f"{where}: allows moves of the other phase")
            if game.phase == "bid":
                check(mask[0], "masks", f"{where}: a bid of 0 must always be possible")
                bids = mask[1:levels]
                check(
                    bids.all() or (game.dropout > 0 and not bids.any()),
                    "masks",
                    f"{where}: allows some bids only, {mask[:levels]}",
                )

    def test_observations_are_fresh_arrays(self) -> None:
        for seed in self.seeds[:1]:
            kept: list[tuple[str, NDArray[Any], NDArray[Any]]] = []
            for env in self.episode_states(seed):
                for agent in env.possible_agents:
                    first, second = env.observe(agent), env.observe(agent)
                    infos = [a for _, a in arrays(env.infos.get(agent, {}))]
                    for (path, array), (_, other) in zip(
                        arrays(first), arrays(second), strict=True
                    ):
                        where = f"observe({agent!r}){path} in turn {env.unwrapped.turn}"
                        check(
                            not np.shares_memory(array, other),
                            "fresh arrays",
                            f"{where}: two calls return the same memory",
                        )
                        check(
                            not any(np.shares_memory(array, info) for info in infos),
                            "fresh arrays",
                            f"{where}: shares memory with infos",
                        )
                        kept.append((where, array, array.copy()))
            for where, array, copy in kept:
                check(
                    np.array_equal(array, copy, equal_nan=array.dtype.kind == "f"),
                    "fresh arrays",
                    f"{where}: the array was changed by a later step",
                )

    def test_writing_into_observations_changes_nothing(self) -> None:
        seed = self.seeds[0]
        reference = self._play_from_reset(seed)
        env, rng = self.started(seed), random.Random(seed)
        trace: list[Any] = []
        while not is_over(env):
            # Everything is compared now and then only: it takes long. By content, since the view
            # itself holds the arrays that are about to be overwritten.
            compared = len(trace) % 5 == 0
            before = {n: content_digest(v) for n, v in readable(env).items()} if compared else {}
            for agent in env.possible_agents:
                for _, array in (*arrays(env.observe(agent)), *arrays(env.infos.get(agent))):
                    if array.flags.writeable:
                        array[...] = 0
            for name, value in readable(env).items() if compared else ():
                # infos belong to the caller, who has just overwritten them; last() shows them.
                check(
                    name.startswith(("infos", "last()")) or content_digest(value) == before[name],
                    "fresh arrays",
                    f"writing zeros into returned arrays changes {name}",
                )
            trace.append(self.choose(env, env.agent_selection, rng))
            env.step(trace[-1])
        check(trace == reference, "fresh arrays", "writing into returned arrays changes the game")

    def test_reading_changes_nothing(self) -> None:
        for seed in self.seeds[:1]:
            env = self.make_env()
            quiet, read = self.whole(env, seed), self.whole(env, seed, read_all=True)
            self.same_trace(
                "observe anytime",
                "an episode in which everything is read all the time",
                quiet,
                read,
            )

    def test_observation_is_the_same_in_both_phases(self) -> None:
        seen: dict[tuple[int, str], NDArray[Any]] = {}
        for env in self.episode_states(self.seeds[0]):
            if not self.is_vector(env):
                raise unittest.SkipTest("not a vector observation")
            if is_over(env):
                continue
            for agent in env.possible_agents:
                vector = env.observe(agent)["observation"]
                earlier = seen.setdefault((env.unwrapped.turn, agent), vector)
                check(
                    np.array_equal(earlier, vector),
                    "one observation a turn",
                    f"{agent} in turn {env.unwrapped.turn}",
                )

    def _play_from_reset(self, seed: int) -> list[Any]:
        env, rng = self.started(seed), random.Random(seed)
        actions = []
        while not is_over(env):
            actions.append(self.choose(env, env.agent_selection, rng))
            env.step(actions[-1])
        return actions
