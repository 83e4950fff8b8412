"""Snapshots are exact, small and checked: what was changed is refused and changes nothing."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mpt_envs.navigation import make_floorplan_batch, make_floorplan_task
from mpt_envs.navigation.task import NavigationTask
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.sources import Sequenced
from mpt_envs.navigation.world.worlds import Worlds
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

ROOT = Path(__file__).resolve().parents[3]


def played(seed: int = 0, turns: int = 12) -> NavigationTask:
    task = make_floorplan_task()
    task.reset(seed)
    rng = np.random.default_rng(seed)
    for _ in range(turns):
        role = int(rng.integers(2))
        task.act(task.possible_agents[role], int(rng.integers(3)))
    return task


def changed(snapshot: Snapshot, offset: int, value: bytes) -> Snapshot:
    payload = bytearray(snapshot.payload)
    payload[offset : offset + len(value)] = value
    return Snapshot(snapshot.task_id, snapshot.version, bytes(payload), snapshot.fidelity)


def number(value: float, kind: str) -> bytes:
    return np.array([value], kind).tobytes()


INTS = {
    "version": (at.VERSION, 99),
    "done": (at.DONE, 3),
    "key": (at.KEY_LOW, 12345),
    "turn": (at.TURN, -1),
    "steps": (at.STEPS, 100_000),
    "heading": (at.HEADING, 24),
    "negative heading": (at.HEADING, -1),
    "layer": (at.LAYER, 1),
    "path": (at.N_PATH, at.MAX_PATH + 1),
    "no path": (at.N_PATH, 0),
    "role": (at.LAST_ROLE, 3),
    "action": (at.LAST_ACTION, 6),
    "room": (at.ROOM, 100),
    "negative room": (at.ROOM, -1),
    "clause": (at.CLAUSE, 12),
    "negative clause": (at.CLAUSE, -1),
    "clause's room": (at.CLAUSE_ROOM, 99),
    "entry": (at.ENTRY, 64),
    "seen": (at.SEEN_HIGH, -1),
    "visible": (at.VISIBLE_HIGH, -1),
    "passed": (at.PASSED_HIGH, -1),
}
FLOATS = {
    "far away": (at.F_X, 1e9),
    "nowhere": (at.F_X, float("nan")),
    "infinite": (at.F_Z, float("inf")),
    "in a wall": (at.F_X, 0.01),
    "in the air": (at.F_Y, 2.0),
    "another distance": (at.F_DISTANCE, 0.1),
    "another shortest": (at.F_SHORTEST, 1.0),
    "no score": (at.F_SCORE, float("nan")),
    "another radius": (at.F_RADIUS, 100.0),
    "another heading": (at.F_START_HEADING, 0.123),
}
CHANGES = {
    **{what: (4 * where, number(value, "int32")) for what, (where, value) in INTS.items()},
    **{what: (8 * where, number(value, "float64")) for what, (where, value) in FLOATS.items()},
    "path of nan": (at.PATH_OFFSET, number(float("nan"), "float32")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_payloads_are_refused(what: str) -> None:
    task, batch = played(), make_floorplan_batch(2)
    bad = changed(task.snapshot(), *CHANGES[what])
    before, other = task.snapshot(), batch.snapshot(0)
    with pytest.raises(SnapshotError):
        task.restore(bad)
    with pytest.raises(SnapshotError):
        batch.restore(0, bad)
    assert task.snapshot() == before and batch.snapshot(0) == other


def test_another_source_is_told() -> None:
    task = played()
    world = task.world
    other = NavigationTask(Worlds(Sequenced("floorplan", [(world.scene, world.episode)])))
    with pytest.raises(SnapshotError, match="other episodes"):
        other.restore(task.snapshot())


def test_random_bytes_never_crash() -> None:
    task = played()
    good = task.snapshot()
    rng = np.random.default_rng(0)
    for _ in range(300):
        payload = bytearray(good.payload)
        for offset in rng.integers(4 * at.TURN, at.PATH_OFFSET, 3):
            payload[offset] = int(rng.integers(256))
        bad = Snapshot(good.task_id, good.version, bytes(payload), "exact")
        try:
            task.restore(bad)
        except SnapshotError:
            continue
        # What is accepted can be played on.
        for role in range(3):
            task.act(task.possible_agents[role], 1)
            task.observe("mover_0")
            task.prompt("mover_0", "act")
        task.metrics()
        task.restore(good)


def test_snapshots_are_small_and_hold_no_map() -> None:
    task = played()
    assert len(task.snapshot().payload) < 8192
    payload = task.snapshot().payload
    assert task.world.scene.space.heights.tobytes()[4000:4400] not in payload
    assert task.world.episode.instruction.encode() not in payload


def test_a_snapshot_and_its_restore_take_little_time() -> None:
    task = played()
    best = min(_seconds(task) for _ in range(5))
    assert best / 200 < 200e-6  # 50 are promised on an idle machine


def _seconds(task: NavigationTask) -> float:
    start = time.perf_counter()
    for _ in range(200):
        task.restore(task.snapshot())
    return time.perf_counter() - start


def test_another_process_continues_exactly() -> None:
    task = played(3)
    blob = pickle.dumps(task.snapshot())
    code = (
        "import pickle, sys\n"
        "from mpt_envs.navigation import make_floorplan_task\n"
        "task = make_floorplan_task()\n"
        "task.restore(pickle.loads(sys.stdin.buffer.read()))\n"
        "for k in range(20): task.act(task.possible_agents[k % 2], k % 3)\n"
        "task.act('stopper_0', 0)\n"
        "print(task.snapshot().digest, task.metrics())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], input=blob, capture_output=True, check=True, env=environment
    )
    for k in range(20):
        task.act(task.possible_agents[k % 2], k % 3)
    task.act("stopper_0", 0)
    assert result.stdout.decode().strip() == f"{task.snapshot().digest} {task.metrics()}"


def test_tasks_are_pickled_and_cloned() -> None:
    task = played(4)
    for twin in (pickle.loads(pickle.dumps(task)), task.clone()):
        assert twin.snapshot() == task.snapshot()
        twin.act("mover_0", 2)
        assert twin.snapshot() != task.snapshot()
