"""Rules of what an environment tells about itself: text, pictures, metrics, an expert."""

from __future__ import annotations

import contextlib
import io
import math
import unittest
import warnings

import numpy as np

from mpt_envs.testing.base import EnvTestBase
from mpt_envs.testing.rules import check, under
from mpt_envs.testing.trace import is_over
from wrappers.task import ParseError


class ReportRules(EnvTestBase):
    """Text, pictures, metrics, the expert, and PettingZoo's own test."""

    def test_text_round_trip(self) -> None:
        last_turn = -1
        for env in self.episode_states(self.seeds[0]):
            game = env.unwrapped
            task = game.task
            if game.turn == last_turn:
                continue
            last_turn = game.turn
            for agent in env.possible_agents:
                with under("text", f"turn {game.turn}, {agent}"):
                    for phase in ("bid", "act"):
                        prompt = task.prompt(agent, phase)
                        check(
                            isinstance(prompt, str) and prompt.strip(),
                            "text",
                            f"the {phase} prompt of {agent} is {prompt!r}",
                        )
                    profile = task.profile(agent)
                    check(
                        isinstance(profile, str) and profile.strip(),
                        "text",
                        f"the profile of {agent} is {profile!r}",
                    )
                    names = task.action_names(agent)
                    for action in np.flatnonzero(task.action_mask(agent)).tolist():
                        read = task.parse(agent, names[action])
                        check(
                            read == action and not isinstance(read, ParseError),
                            "text",
                            f"{agent}: the name {names[action]!r} of action {action} reads as "
                            f"{read!r}",
                        )

    def test_unreadable_text_gives_a_parse_error(self) -> None:
        env = self.started(self.seeds[0])
        task = env.unwrapped.task
        garbage = ("", "   \n", "\0", "qwertz uiop", "\u2603" * 5, "x" * 100_000, "{}[]()<>\\%s{0}")
        for agent in env.possible_agents:
            for text in garbage:
                with under("text", f"parsing {text[:20]!r}"):
                    read = task.parse(agent, text)
                check(
                    isinstance(read, ParseError) and read.kind and read.message,
                    "text",
                    f"{agent}: the garbage {text[:20]!r} reads as {read!r}",
                )
                check(
                    len(read.text) <= 200,
                    "text",
                    f"the ParseError repeats {len(read.text)} characters",
                )

    def test_render(self) -> None:
        colours: set[int] = set()
        for seed, turns in [(self.seeds[0], 0), *self.turn_starts(2)]:
            env = self.started(seed, turns)
            game = env.unwrapped
            before = env.snapshot()
            for mode in game.task.render_modes:
                with under("render", f"mode {mode!r}"):
                    picture = game.render_as(mode)
                if mode == "ansi":
                    check(
                        isinstance(picture, str) and picture.strip(), "render", f"ansi: {picture!r}"
                    )
                elif mode == "rgb_array":
                    check(
                        isinstance(picture, np.ndarray)
                        and picture.dtype == np.uint8
                        and picture.ndim == 3
                        and picture.shape[2] == 3
                        and min(picture.shape[:2]) > 0,
                        "render",
                        f"rgb_array is no uint8 (H, W, 3) array: {np.shape(picture)}",
                    )
                    colours.update(np.unique(picture).tolist())
            check(env.snapshot() == before, "render", "drawing has changed the state")
        check(len(colours) != 1, "render", "rgb_array is of one and the same colour everywhere")

    def test_metrics(self) -> None:
        for seed in self.seeds:
            names: set[str] | None = None
            for env in self.episode_states(seed):
                metrics = env.unwrapped.metrics()
                names = set(metrics) if names is None else names
                check(set(metrics) == names, "metrics", "their names change in an episode")
                for name, value in metrics.items():
                    check(
                        isinstance(value, float) and math.isfinite(value),
                        "metrics",
                        f"{name} is {value!r}",
                    )
                check("success" in metrics, "metrics", f"no 'success' among {sorted(metrics)}")

    def test_expert(self) -> None:
        env = self.started(self.seeds[0])
        if not env.unwrapped.task.has_expert:
            raise unittest.SkipTest("this task has no scripted expert")
        for env in self.episode_states(self.seeds[0]):
            game = env.unwrapped
            if is_over(env) or game.phase != "bid":
                continue
            before = env.snapshot()
            for agent in env.possible_agents:
                bid = game.task.expert_bid(agent)
                check(0.0 <= bid <= 1.0, "expert", f"turn {game.turn}: {agent} bids {bid}")
                action = game.task.expert_action(agent)
                mask = game.task.action_mask(agent)
                check(
                    0 <= action < len(mask) and mask[action],
                    "expert",
                    f"turn {game.turn}: {agent} proposes the action {action}, which is masked",
                )
            check(env.snapshot() == before, "expert", "asking it has changed the state")

    def test_pettingzoo_api(self) -> None:
        if not self.pettingzoo_cycles:
            raise unittest.SkipTest("pettingzoo_cycles is 0")
        from pettingzoo.test import api_test

        env = self.make_env()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            # It warns of conventions that the game deliberately leaves, such as the Dict space.
            warnings.simplefilter("ignore")
            with under("api", "api_test"):
                try:
                    api_test(env, num_cycles=self.pettingzoo_cycles, verbose_progress=False)
                except AssertionError as error:
                    check(False, "api", str(error))
