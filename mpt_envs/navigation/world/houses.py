"""`Floorplans`: the source of generated houses with a route and an instruction each."""

from __future__ import annotations

import hashlib
import math
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.rules.expert import expert_path
from mpt_envs.navigation.world.clauses import Clause
from mpt_envs.navigation.world.facts import MAX_TURNS, STEP_ANGLE
from mpt_envs.navigation.world.floorplan import House, build_house, build_scene
from mpt_envs.navigation.world.phrasing import instruction
from mpt_envs.navigation.world.route import Route, find_route
from mpt_envs.navigation.world.sources import Episode, Scene
from mpt_envs.navigation.world.space import pull
from wrappers.random_sequence import RandomSequence
from wrappers.rng import STREAM_DOMAIN

#: Raised whenever a key gives another house, route or instruction than before.
GENERATOR_VERSION: Final = 1

STREAM_WORDS: Final = STREAM_DOMAIN + 202

_RADIUS: Final = 3.0  # metres, as in R2R
_GOALS: Final = 3  # goals tried in one house
_MOST_HOUSES: Final = 100


class Floorplans:
    """Generated episodes: every key is a house of its own; see `EpisodeSource`."""

    name = "floorplan"
    digest = hashlib.blake2b(
        f"floorplan generator {GENERATOR_VERSION}".encode(), digest_size=16
    ).hexdigest()

    def __init__(self) -> None:
        self._distances: tuple[Episode | None, NDArray[np.float32] | None] = (None, None)

    def plan(self, key: int) -> tuple[House, Scene, Route, str, list[Clause]]:
        """House, scene, route, instruction and its meaning of a key."""
        name = f"{key:016x}"
        for attempt in range(_MOST_HOUSES):
            house = build_house(key, attempt)
            scene = build_scene(house, name)
            for goal in range(_GOALS):
                route = find_route(house, scene, key, attempt * _GOALS + goal)
                if route is not None:
                    words, meant = instruction(house, route, RandomSequence(key, STREAM_WORDS))
                    return house, scene, route, words, meant
        raise RuntimeError(f"no route was found in {_MOST_HOUSES} houses of key {key}")

    def episode(self, key: int) -> tuple[Scene, Episode]:
        _, scene, route, words, _ = self.plan(key)
        space = scene.space
        heading = math.radians(route.heading * STEP_ANGLE)
        x, z = route.start
        field, ground = route.distances, (space.heights, space.frame)
        episode = Episode(
            id=scene.id,
            scene_id=scene.id,
            start=np.array([x, 0.0, z]),
            heading=heading,
            goal=np.array([route.goal[0], 0.0, route.goal[1]]),
            radius=_RADIUS,
            instruction=words,
            reference=partial(expert_path, *ground, field, x, 0.0, z, heading, 2 * MAX_TURNS),
            described=partial(pull, *ground, route.path),
        )
        # Asked for next, and already known.
        self._distances = (episode, route.distances)
        return scene, episode

    def distances(self, scene: Scene, episode: Episode) -> NDArray[np.float32]:
        known, distances = self._distances
        if known is episode and distances is not None:
            return distances
        return scene.space.distances_to(episode.goal)
