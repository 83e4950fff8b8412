"""Scenes for tests of the engine's rules: a snapshot whose nodes and inventory are replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpt_envs.crafting.backends.minetest.snapshots import PAYLOAD_VERSION, State, pack, unpack
from mpt_envs.crafting.backends.minetest.task import MinetestTask
from mpt_envs.crafting.world.layout import HEIGHT, WIDTH
from wrappers.task import Snapshot

Place = tuple[int, int, int]
CELLS = WIDTH * WIDTH * HEIGHT


def body(task: MinetestTask) -> Place:
    """Where the feet are: x, y, z."""
    x, y, z = (int(v) for v in task._s[11:14])
    return x, y, z


def node(task: MinetestTask, place: Place) -> str:
    """Name of the node that the engine has at x, y, z."""
    return task.server.ask("node", *place)[0].decode()


def parts(snapshot: Snapshot) -> tuple[State, list[str], dict[str, Any], np.ndarray, bytes]:
    """A payload taken apart: state, names, JSON, codes of the cells (x, z, y), ground."""
    state = unpack(snapshot.payload)
    assert state is not None
    n, r = state.sizes
    names = state.blob[:n].decode().split("\n")
    content = json.loads(state.blob[n : n + r])
    cells = np.frombuffer(state.blob[n + r : n + r + CELLS], np.uint8).reshape(WIDTH, WIDTH, HEIGHT)
    return state, names, content, cells.copy(), state.blob[n + r + CELLS :]


def arrange(
    task: MinetestTask,
    nodes: Mapping[Place, str] | None = None,
    inventory: Sequence[str] | None = None,
    at: Place | None = None,
) -> None:
    """Put nodes (absolute x, y, z) and an inventory into the present state, and the body there."""
    state, names, content, cells, ground = parts(task.snapshot())
    # Nothing to be looked for but what the scene holds.
    for other in [*names]:
        if other.endswith("tree") or other.startswith("default:stone_with"):
            plain = "air" if other.endswith("tree") else "default:stone"
            if plain not in names:
                names.append(plain)
            cells[cells == names.index(other)] = names.index(plain)
    for (x, y, z), name in (nodes or {}).items():
        if name not in names:
            names.append(name)
        cells[x, z, y] = names.index(name)
    used = sorted({names[code] for code in np.unique(cells)})
    order = np.array([used.index(name) if name in used else 0 for name in names], np.uint8)
    cells = order[cells]
    if inventory is not None:
        content["inventory"] = [*inventory, *[""] * (32 - len(inventory))]
    if at is not None:
        x, y, z = at
        content["body"]["cell"] = (x * WIDTH + z) * HEIGHT + y
    head = "\n".join(used).encode()
    rest = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    blob = head + rest + cells.tobytes() + ground
    payload = pack(State(state.version, state.scalars, (len(head), len(rest)), blob))
    # What a test writes is no text of the engine's: it is not compared with one.
    task.restore(Snapshot(task.task_id, PAYLOAD_VERSION, payload, "exact").verify())


def room(task: MinetestTask, floor: str = "default:stone") -> dict[Place, str]:
    """A closed room around the body, nine wide and four high, for `arrange`."""
    x, y, z = body(task)
    found: dict[Place, str] = {}
    for dx in range(-5, 6):
        for dz in range(-5, 6):
            wall = abs(dx) == 5 or abs(dz) == 5
            for dy in range(-2, 5):
                solid = wall or dy in (-2, -1, 4)
                name = "mpt_body:bedrock" if solid else "air"
                found[x + dx, y + dy, z + dz] = name
            if not wall:
                found[x + dx, y - 1, z + dz] = floor
    return found
