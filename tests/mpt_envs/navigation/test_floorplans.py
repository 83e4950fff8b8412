"""Generated houses are houses, and their instructions lead a reader to the goal."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest

from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.facts import MAX_TURNS, ROOMS, STEP_ANGLE
from mpt_envs.navigation.world.floorplan import CELL, House, Rect, build_house, build_scene
from mpt_envs.navigation.world.houses import Floorplans
from mpt_envs.navigation.world.lexicon import parse_instruction
from mpt_envs.navigation.world.route import LONGEST, SHORTEST, Route
from tests.mpt_envs.navigation.reader import Reader

COUNT = 300


@pytest.fixture(scope="module")
def plans() -> list[tuple[House, Route, str, list[c.Clause]]]:
    source = Floorplans()
    found = []
    for key in range(COUNT):
        house, _, route, words, meant = source.plan(key * 7919 + 1)
        found.append((house, route, words, meant))
    return found


def read(house: House, route: Route, clauses: list[c.Clause]) -> tuple[list[int], float]:
    """Doors that a reader goes through, and metres from where it ends to the goal."""
    person = Reader(house, route.legs[0].room, route.start, route.heading * STEP_ANGLE)
    stop = person.follow(clauses)
    approached = next((k.thing for k in reversed(clauses) if k.kind == c.APPROACH), -1)
    x, z = person.stop_at(stop, approached)
    return person.doors, math.hypot(x - route.goal[0], z - route.goal[1])


def test_a_reader_finds_the_way(plans: list[tuple[House, Route, str, list[c.Clause]]]) -> None:
    for house, route, words, _ in plans:
        doors, away = read(house, route, parse_instruction(words))
        assert doors == [leg.door for leg in route.legs[:-1]], words
        assert away < 2.5, words


def test_a_reader_of_another_instruction_does_not(
    plans: list[tuple[House, Route, str, list[c.Clause]]],
) -> None:
    """The reader reads: with the clauses of the next episode it almost never arrives."""
    arrived = 0
    for (house, route, _, _), (_, _, words, _) in itertools.pairwise(plans):
        try:
            doors, away = read(house, route, parse_instruction(words))
        except Exception:
            continue
        arrived += doors == [leg.door for leg in route.legs[:-1]] and away < 2.5
    assert arrived < 0.05 * COUNT


def test_what_is_read_is_what_was_meant(
    plans: list[tuple[House, Route, str, list[c.Clause]]],
) -> None:
    for _, _, words, meant in plans:
        assert parse_instruction(words) == meant, words


def test_instructions_are_varied(plans: list[tuple[House, Route, str, list[c.Clause]]]) -> None:
    texts = {words for _, _, words, _ in plans}
    assert len(texts) > 0.98 * COUNT
    starts = {" ".join(words.split()[:2]) for words in texts}
    assert len(starts) > 25
    counts = [len(words.split()) for words in texts]
    assert 10 < np.mean(counts) < 35


def test_houses_are_houses(plans: list[tuple[House, Route, str, list[c.Clause]]]) -> None:
    for house, _, _, _ in plans:
        inner = Rect(1, 1, house.width - 1, house.depth - 1)
        for number, room in enumerate(house.rooms):
            assert room.rect.within(inner)
            assert min(room.rect.width, room.rect.depth) * CELL >= 1.2
            assert not any(room.rect.touches(o.rect) for o in house.rooms[number + 1 :])
            assert house.exits(number)
        walls = build_scene(house, "").opaque
        assert walls is not None
        assert walls[0].all() and walls[-1].all() and walls[:, 0].all() and walls[:, -1].all()
        for door in house.doors:
            across = door.rect.depth if door.along_x else door.rect.width
            assert across * CELL >= 0.7
            # Open to both rooms.
            for room in (door.first, door.second):
                assert door.rect.grown(1).touches(house.rooms[room].rect)
        for thing in house.things:
            assert thing.rect.within(house.rooms[thing.room].rect)
            if thing.solid:
                assert not any(
                    thing.rect.touches(d.rect.grown(5))
                    for d in house.doors
                    if thing.room in (d.first, d.second)
                )


def test_houses_are_varied(plans: list[tuple[House, Route, str, list[c.Clause]]]) -> None:
    kinds = {ROOMS[room.kind] for house, _, _, _ in plans for room in house.rooms}
    assert len(kinds) >= 12
    assert len({(h.width, h.depth) for h, _, _, _ in plans}) > 200
    areas = [h.width * h.depth * CELL**2 for h, _, _, _ in plans]
    assert min(areas) > 60 and max(areas) < 180
    assert {len(r.legs) - 1 for _, r, _, _ in plans} == {1, 2, 3, 4}


def test_routes_have_the_length_of_r2r(
    plans: list[tuple[House, Route, str, list[c.Clause]]],
) -> None:
    lengths = []
    for _, route, _, _ in plans:
        iz, ix = (int(v / CELL) for v in (route.start[1], route.start[0]))
        lengths.append(float(route.distances[0, iz, ix]))
    assert min(lengths) >= SHORTEST and max(lengths) <= LONGEST
    assert 6.5 < np.median(lengths) < 9.5


def test_an_episode_is_a_function_of_its_key() -> None:
    first, second = Floorplans(), Floorplans()
    second.episode(5)
    for key in (0, 1, 2**64 - 1):
        (a, e), (b, f) = first.episode(key), second.episode(key)
        assert a.space == b.space and e.instruction == f.instruction
        assert (e.start == f.start).all() and (e.goal == f.goal).all() and e.heading == f.heading
        assert (first.distances(a, e) == b.space.distances_to(f.goal)).all()
    assert first.episode(0)[0].space != first.episode(1)[0].space


def test_the_generator_is_the_one_of_its_version() -> None:
    """Results depend on the houses: a change of the generator must raise GENERATOR_VERSION."""
    hasher = hashlib.blake2b(digest_size=8)
    source = Floorplans()
    for key in range(20):
        scene, episode = source.episode(key)
        hasher.update(scene.space.digest.encode())
        hasher.update(episode.instruction.encode())
        hasher.update(np.round([*episode.start, episode.heading, *episode.goal], 6).tobytes())
    assert hasher.hexdigest() == "518de3f0d6e8bee4"


def test_reference_paths_fit_into_an_episode() -> None:
    source = Floorplans()
    for key in range(60):
        scene, episode = source.episode(key)
        way = episode.reference_path
        assert (way[0] == episode.start).all()
        assert len(way) <= 3 * MAX_TURNS
        field = source.distances(scene, episode)
        assert scene.space.distance(field, way[-1]) < 0.6


def test_another_attempt_is_another_house() -> None:
    assert build_house(3, 0) != build_house(3, 1)
    assert build_house(3, 1) == build_house(3, 1)
