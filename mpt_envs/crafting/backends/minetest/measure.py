"""Figures of the backend: ``python -m mpt_envs.crafting.backends.minetest.measure``.

How often the expert succeeds, how many turns a second one server plays, how long a start, a reset,
a snapshot and a restore take, how many servers run at once, and whether memory grows.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from mpt_envs.crafting.backends.minetest.pool import Pool
from mpt_envs.crafting.backends.minetest.task import TICK_BUDGETS, MinetestTask
from mpt_envs.crafting.world.goals import GOAL_NAMES, GOALS, goal_index
from mpt_envs.crafting.world.layout import DONE, TICK


class Episode(NamedTuple):
    """An episode of the expert: whether it reached the goal, its return, turns and ticks."""

    success: bool
    total: float
    turns: int
    ticks: int


def expert_episode(task: MinetestTask, seed: int) -> Episode:
    """The scripted expert plays one world within the turn budget."""
    task.reset(seed)
    total = 0.0
    turns = 0
    while turns < task.default_max_turns:
        agent = max(task.possible_agents, key=task.expert_bid)
        result = task.act(agent, task.expert_action(agent))
        turns += 1
        total += result.reward
        if result.terminated:
            break
    success = bool(task.metrics()["success"])
    return Episode(success, total, turns, int(task.record.view(np.int32)[TICK]))


def random_turn(task: MinetestTask, rng: random.Random) -> bool:
    """A random legal action of a random role; whether the episode goes on."""
    agent = rng.choice(task.possible_agents)
    task.act(agent, rng.choice(np.flatnonzero(task.action_mask(agent)).tolist()))
    return not task.record.view(np.int32)[DONE]


class Speed(NamedTuple):
    """Turns a second of wall time and of processor time (client and server together)."""

    wall: float
    processor: float


def turns_per_second(task: MinetestTask, turns: int, seeds: Sequence[int] = (0, 1, 2)) -> Speed:
    """Mixed turns: half of them the expert's, half random. Resets are not counted."""
    rng = random.Random(0)
    wall = processor = 0.0
    left = turns
    while left:
        task.reset(rng.choice(seeds))
        server = task.server
        start, busy = time.perf_counter(), time.process_time() + server.processor_seconds()
        going = True
        while going and left:
            if rng.random() < 0.5:
                agent = max(task.possible_agents, key=task.expert_bid)
                going = not task.act(agent, task.expert_action(agent)).terminated
            else:
                going = random_turn(task, rng)
            left -= 1
        wall += time.perf_counter() - start
        processor += time.process_time() + server.processor_seconds() - busy
    return Speed(turns / wall, turns / processor)


class Growth(NamedTuple):
    """Resident memory of the server in MiB: after the first episodes, at the end, at most."""

    first: float
    last: float
    most: float
    actions: int
    restores: int


def soak(actions: int, restores: int, seeds: int = 50) -> Growth:
    """Play in one server for long, with restores and new worlds in between."""
    pool = Pool(1)
    task = MinetestTask(tick_budget=10**9, pool=pool)
    rng = random.Random(0)
    # Every tenth time there is a new world instead.
    every = max(1, 9 * actions // (10 * restores))
    first = most = 0.0
    snapshot = None
    done = 0
    for action in range(actions):
        if action % (every * 10) == 0:
            task.reset((action // (every * 10)) % seeds)
            snapshot = task.snapshot()
        elif action % every == 0 and snapshot is not None:
            task.restore(snapshot)
            done += 1
            if rng.random() < 0.5:
                snapshot = task.snapshot()
        random_turn(task, rng)
        if action % 500 == 0:
            memory = task.server.memory()
            most = max(most, memory)
            if action == 2000:
                first = memory
    last = task.server.memory()
    pool.close()
    return Growth(first or most, last, most, actions, done)


@contextmanager
def own_pool(limit: int) -> Iterator[Pool]:
    """A pool whose servers end with the block."""
    pool = Pool(limit)
    try:
        yield pool
    finally:
        pool.close()


def milliseconds(do: Callable[[], object], count: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        do()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def _experts(worlds: int) -> None:
    print(f"\n| goal | tick budget | expert on {worlds} worlds | return | turns | ticks |")
    print("|---|---|---|---|---|---|")
    with own_pool(1) as pool:
        for goal in GOAL_NAMES:
            task = MinetestTask(goal, pool=pool)
            episodes = [expert_episode(task, seed) for seed in range(worlds)]
            won = [episode for episode in episodes if episode.success]
            best = [
                statistics.median(episode.turns for episode in won),
                statistics.median(episode.ticks for episode in won),
            ]
            print(
                f"| {goal} | {TICK_BUDGETS[goal]:,} | {len(won)} | "
                f"{statistics.mean(e.total for e in episodes):.1f} | {best[0]:.0f} of "
                f"{GOALS[goal_index(goal)].max_turns} | {best[1]:,.0f} |",
                flush=True,
            )
            task.close()


def _times() -> None:
    print()
    with own_pool(1) as pool:
        start = time.perf_counter()
        task = MinetestTask(pool=pool)
        episode = expert_episode(task, 0)
        print(
            f"start of a server, reset and the expert's episode ({episode.turns} turns): "
            f"{time.perf_counter() - start:.2f} s"
        )
        speed = turns_per_second(task, 6000)
        print(
            f"mixed turns: {speed.wall:,.0f} a second of wall time, {speed.processor:,.0f} a "
            "second of processor time (server and client)"
        )
        seeds = iter(range(1000, 1030))
        print(f"reset to a new world: {milliseconds(lambda: task.reset(next(seeds)), 20):.0f} ms")
        print(f"reset to a known world: {milliseconds(lambda: task.reset(1000), 20):.1f} ms")
        random_turn(task, random.Random(0))
        snapshot = task.snapshot()
        print(f"restore: {milliseconds(lambda: task.restore(snapshot), 50):.1f} ms")

        def take() -> None:
            task.reseed(1)
            task.snapshot()

        print(f"snapshot: {milliseconds(take, 50):.1f} ms, {len(snapshot.payload) / 1024:.0f} KiB")
    with own_pool(8) as pool:
        start = time.perf_counter()
        tasks = [MinetestTask(pool=pool) for _ in range(8)]
        rngs = [random.Random(seed) for seed in range(8)]
        for seed, task in enumerate(tasks):
            task.reset(seed)
        started = time.perf_counter() - start
        for _ in range(100):
            for task, rng in zip(tasks, rngs, strict=True):
                random_turn(task, rng)
        memory = [task.server.memory() for task in tasks]
        print(
            f"8 servers at once: {started:.1f} s to the first turn, {sum(memory):.0f} MiB together"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=100, help="worlds of the expert")
    parser.add_argument("--soak", type=int, default=50_000, help="actions; 0 leaves it out")
    given = parser.parse_args(arguments)
    _times()
    if given.worlds:
        _experts(given.worlds)
    if given.soak:
        growth = soak(given.soak, given.soak // 98)
        print(
            f"\nsoak: {growth.actions:,} actions, {growth.restores} restores: "
            f"{growth.first:.0f} MiB after 2,000 actions, {growth.last:.0f} MiB at the end, "
            f"{growth.most:.0f} at most"
        )


if __name__ == "__main__":
    main()
