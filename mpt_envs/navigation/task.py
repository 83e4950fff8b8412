"""`NavigationTask`: one episode as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpt_envs.navigation.batch import NavigationBatch
from mpt_envs.navigation.views.observation import FEATURE_NAMES
from mpt_envs.navigation.world.layout import LAYOUT_VERSION
from mpt_envs.navigation.world.worlds import World, Worlds
from wrappers.records import RecordTask
from wrappers.task import ParseError


class NavigationTask(RecordTask):
    """Follow an instruction through a building; turner, mover and stopper share one body.

    Observation: ``float32 (OBSERVATION_SIZE,)`` in [-1, 1], the same for every agent; see
    `observation.FEATURE_NAMES`. Reward: see `rules`. The episode ends (``terminated``) with a stop,
    or after 500 primitive steps.

    Args:
        worlds: of a source of episodes; may be shared with other tasks and batches.

    Attributes:
        worlds: the same.
    """

    views = "mpt_envs.navigation.views"
    feature_names = FEATURE_NAMES
    snapshot_version = LAYOUT_VERSION
    batch: NavigationBatch

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(NavigationBatch(worlds, 1))

    @property
    def worlds(self) -> Worlds:
        """Of the source of episodes."""
        return self.batch.worlds

    @property
    def world(self) -> World:
        """Scene, episode and instruction that are being played."""
        return self.batch.played[0]

    @property
    def scene(self) -> tuple[Any, ...]:
        return self.record, self.world

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode of the source.

        Option ``episode``: the id of the episode to play, where the source has ids (R2R-CE); seed
        and episode then choose nothing.

        Raises:
            ValueError: the source has no episode of this id, or no ids.
        """
        wanted = None if options is None else options.get("episode")
        if wanted is None:
            self.begin(self.worlds.key_for(seed, episode))
            return
        key_of = getattr(self.worlds.source, "key_of", None)
        if key_of is None:
            raise ValueError(
                f"{self.task_id} has no episodes by id; leave options['episode'] out, and choose "
                "by seed"
            )
        self.begin(int(key_of(wanted)))

    def begin(self, key: int) -> None:
        """Begin the episode of a key of the source."""
        self.batch.begin_keys(np.zeros(1, np.int64), np.array([key], np.uint64))
        self.changed()

    def profile(self, agent: str) -> str:
        from mpt_envs.navigation.views import text

        return text.profile(self._role[agent])

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.navigation.views import answers

        return answers.parse(self._role[agent], text)
