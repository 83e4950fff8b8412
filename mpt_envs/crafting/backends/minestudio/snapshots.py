"""Snapshots of Minecraft, which has none: what was seen, and the commands that bring it back.

MineStudio can neither save nor restore. A snapshot therefore holds the seed of the world, every
block that has changed since the episode began, the inventory with its wear, the stations and what
is in the furnace, the place of the body, and the record. Restoring makes the world of that seed (if
it is not the one that runs), sets the changed blocks, and puts the body back, all by commands; then
what can be seen is compared by a digest. That is approximate, and says so: Minecraft's random
numbers, growing plants, flowing water, falling leaves, items on the ground and wounds are not
brought back.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.minestudio.crafters import replace_content, replace_slot
from mpt_envs.crafting.backends.minestudio.engine import SEED_BITS
from mpt_envs.crafting.backends.minestudio.geometry import Point, Spot
from mpt_envs.crafting.backends.minestudio.names import item_of, minecraft_name
from mpt_envs.crafting.backends.minestudio.report import N_SLOTS, Stack
from mpt_envs.crafting.rules.snapshots import is_sound, task_id
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.facts import (
    BARRIER,
    BURN,
    ITEM_NAMES,
    LEAVES,
    N_ITEMS,
    NO_ITEM,
    PICKAXES,
    SMELT_TICKS,
)
from mpt_envs.crafting.world.goals import GOALS
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

#: Raised whenever the payload or what a restore does changes.
PAYLOAD_VERSION: Final = 2000

_CHECKSUM: Final = 16
_HEADER: Final = struct.Struct("<4sI")
_MAGIC: Final = b"MSTU"
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_FAR: Final = 30_000_000  # where Minecraft's world ends
_MOST_CHANGES: Final = 1 << 16
_MOST_BYTES: Final = 4 * at.RECORD_BYTES

# How much of the surroundings the digest compares, in blocks from the body.
_SEEN_FLAT: Final = 8
_SEEN_UP: Final = 3


@dataclass(frozen=True)
class State:
    """What a payload holds.

    Attributes:
        seed: of Minecraft's world.
        origin: place of the record's first block.
        place: of the feet.
        yaw, pitch: degrees.
        slots: the inventory.
        table, furnace: places of the stations, or None.
        changes: blocks that have changed: what was there first, and what was there last.
        record: uint8 ``(RECORD_BYTES,)``.
    """

    seed: int
    origin: Spot
    place: Point
    yaw: float
    pitch: float
    slots: tuple[Stack | None, ...]
    table: Spot | None
    furnace: Spot | None
    changes: Mapping[Spot, tuple[str, str]]
    record: NDArray[np.uint8]

    @property
    def wear(self) -> tuple[int, ...]:
        """Wear of the three pickaxes."""
        s = self.record.view(np.int32)
        return tuple(int(w) for w in s[at.WEAR : at.WEAR + len(PICKAXES)])


def seen_digest(record: NDArray[np.uint8], origin: Spot) -> str:
    """A digest of what can be seen and compared: inventory, place, and solid blocks close by.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        origin: place in the world of its first block.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in _seen(record, origin):
        hasher.update(part.tobytes())
    return hasher.hexdigest()


def seen_differences(
    record: NDArray[np.uint8], origin: Spot, other: NDArray[np.uint8], other_origin: Spot
) -> list[str]:
    """In what two states that `seen_digest` tells apart differ, in words."""
    place, things, solid = _seen(record, origin)
    place2, things2, solid2 = _seen(other, other_origin)
    found = []
    if not np.array_equal(place, place2):
        found.append(f"the body is at {tuple(place2.tolist())} instead of {tuple(place.tolist())}")
    for item in np.flatnonzero(things != things2):
        found.append(f"{ITEM_NAMES[item]}: {things2[item]} instead of {things[item]}")
    wrong = int((solid != solid2).sum())
    if wrong:
        found.append(f"{wrong} of {solid.size} blocks close by")
    return found


def _seen(record: NDArray[np.uint8], origin: Spot) -> tuple[NDArray[Any], ...]:
    s = record.view(np.int32)
    x, y, z = (int(v) for v in s[at.X : at.X + 3])
    place = np.array([x + origin.x, y + origin.y, z + origin.z], np.int64)
    things = s[at.INVENTORY : at.INVENTORY + N_ITEMS].copy()
    close = at.blocks(record)[
        x - _SEEN_FLAT : x + _SEEN_FLAT + 1,
        z - _SEEN_FLAT : z + _SEEN_FLAT + 1,
        max(1, y - _SEEN_UP) : y + _SEEN_UP + 1,
    ]
    # Leaves fall and water flows; what nobody has seen is no difference.
    solid = np.where((close > LEAVES) & (close < BARRIER), close, 0).astype(np.uint8)
    return place, things, solid


def pack(state: State) -> bytes:
    """The payload of a state."""
    facts: dict[str, Any] = {
        "seed": state.seed,
        "origin": list(state.origin),
        "place": [round(v, 4) for v in state.place],
        "view": [round(state.yaw, 3), round(state.pitch, 3)],
        "slots": [None if stack is None else list(stack) for stack in state.slots],
        "table": None if state.table is None else list(state.table),
        "furnace": None if state.furnace is None else list(state.furnace),
        "changes": [[*spot, *names] for spot, names in sorted(state.changes.items())],
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    body = _HEADER.pack(_MAGIC, len(text)) + text + zlib.compress(state.record.tobytes(), 1)
    return hashlib.blake2b(body, digest_size=_CHECKSUM).digest() + body


def unpack(payload: bytes) -> State | None:
    """The state of a payload, or None if it is not as `pack` made it."""
    start = _CHECKSUM + _HEADER.size
    if len(payload) < start:
        return None
    checksum = hashlib.blake2b(payload[_CHECKSUM:], digest_size=_CHECKSUM).digest()
    magic, size = _HEADER.unpack_from(payload, _CHECKSUM)
    if checksum != payload[:_CHECKSUM] or magic != _MAGIC or start + size > len(payload):
        return None
    try:
        facts = json.loads(payload[start : start + size])
        data = zlib.decompressobj().decompress(payload[start + size :], _MOST_BYTES)
        if len(data) != at.RECORD_BYTES:
            return None
        return _read(facts, np.frombuffer(data, np.uint8).copy())
    except (KeyError, TypeError, ValueError, IndexError, zlib.error):
        return None


def _read(facts: Mapping[str, Any], record: NDArray[np.uint8]) -> State:
    """Check and convert the facts of a payload: names and numbers go into commands."""

    def number(value: Any, limit: float = _FAR) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(value)
        if not -limit <= value <= limit:
            raise ValueError(value)
        return float(value)

    def integer(value: Any, limit: int = _FAR) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value <= limit:
            raise ValueError(value)
        return value

    def name(value: Any) -> str:
        if not isinstance(value, str) or _NAME.fullmatch(value) is None:
            raise ValueError(value)
        return value

    def spot(value: Any) -> Spot:
        x, y, z = value
        return Spot(integer(x), integer(y), integer(z))

    def stack(value: Any) -> Stack | None:
        if value is None:
            return None
        what, count = value
        if integer(count, 64) < 1:
            raise ValueError(count)
        return Stack(name(what), count)

    seed = integer(facts["seed"], (1 << SEED_BITS) - 1)
    if seed < 0 or len(facts["changes"]) > _MOST_CHANGES or len(facts["slots"]) != N_SLOTS:
        raise ValueError("out of range")
    x, y, z = (number(v) for v in facts["place"])
    yaw, pitch = (number(v, 3600.0) for v in facts["view"])
    return State(
        seed,
        spot(facts["origin"]),
        Point(x, y, z),
        yaw,
        pitch,
        tuple(stack(value) for value in facts["slots"]),
        None if facts["table"] is None else spot(facts["table"]),
        None if facts["furnace"] is None else spot(facts["furnace"]),
        {spot(c[:3]): (name(c[3]), name(c[4])) for c in facts["changes"]},
        record,
    )


def check_snapshot(snapshot: Any, goal: int) -> State:
    """The state of a snapshot that may be restored into a task of the goal.

    Raises:
        SnapshotError: it is none, or belongs to another task, backend or version, or was changed.
    """
    if not isinstance(snapshot, Snapshot):
        raise SnapshotError(f"expected a Snapshot of a task, got {type(snapshot).__name__}")
    name = task_id(GOALS[goal].name)
    snapshot.check(name, PAYLOAD_VERSION)
    state = unpack(snapshot.payload)
    if state is None or not _is_sound(state.record, goal):
        raise SnapshotError(
            f"this snapshot holds no valid state of {name!r} in Minecraft: it was changed after it "
            "was taken; take it again"
        )
    return state


def _is_sound(record: NDArray[np.uint8], goal: int) -> bool:
    """Whether no number of a record leads a rule out of its arrays."""
    copy = record.copy()
    s = copy.view(np.int32)
    # A station beyond the window has a cell at its rim, where something else is.
    s[at.TABLE_CELL] = s[at.FURNACE_CELL] = 0
    return bool(is_sound(s, copy, goal))


def block_commands(
    wanted: Mapping[Spot, tuple[str, str]],
    current: Mapping[Spot, tuple[str, str]],
    trust: bool = True,
) -> list[str]:
    """The commands that make the changed blocks of one state those of another.

    Args:
        wanted: changes of the state to come.
        current: changes of the state that is there, in the same world.
        trust: leave out what should be there already.
    """
    commands = []
    for spot in sorted(wanted.keys() | current.keys()):
        now = wanted[spot][1] if spot in wanted else current[spot][0]
        if trust and spot in current and current[spot][1] == now:
            continue
        commands.append(f"/setblock {spot.x} {spot.y} {spot.z} minecraft:{now}")
    return commands


def furnace_commands(state: State) -> list[str]:
    """The commands that fill the furnace of a state, and light it."""
    if state.furnace is None:
        return []
    s = state.record.view(np.int32)
    commands = []
    for slot, first in enumerate((at.FURNACE_INPUT, at.FURNACE_FUEL, at.FURNACE_OUTPUT)):
        item, count = int(s[first]), int(s[first + 1])
        name = minecraft_name(item) if count and item != NO_ITEM else "air"
        commands.append(replace_content(state.furnace, slot, name, min(count, 64)))
    burn = min(int(s[at.FURNACE_BURN]), int(BURN.max()))
    cooked = min(int(s[at.FURNACE_PROGRESS]), SMELT_TICKS)
    spot = state.furnace
    commands.append(
        f"/data merge block {spot.x} {spot.y} {spot.z} "
        f"{{BurnTime:{burn}s,CookTime:{cooked}s,CookTimeTotal:{SMELT_TICKS}s}}"
    )
    return commands


def inventory_commands(state: State) -> list[str]:
    """The commands that fill the inventory of a state."""
    commands = ["/clear @p"]
    wear = dict(zip(PICKAXES, state.wear, strict=True))
    for index, stack in enumerate(state.slots):
        if stack is not None:
            commands.append(replace_slot(index, stack, wear.get(item_of(stack.name), 0)))
    return commands


def body_command(state: State) -> str:
    """The command that puts the body where it was."""
    x, y, z = state.place
    return f"/tp @p {x:.4f} {y:.4f} {z:.4f} {state.yaw:.3f} {state.pitch:.3f}"
