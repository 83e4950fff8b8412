"""A snapshot's payload: the server's state, and what the task keeps beside it.

The payload is a header (below), the scalars of the record, and the server's four parts
(``mod/state.lua``): names of the nodes, everything else as JSON, a byte per cell, a byte per
column. It begins with a checksum of the rest, so that a payload that was changed is refused before
the engine sees it; and the engine's version is part of it, since another version may go on
differently.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.minetest.record import USED_INTS
from mpt_envs.crafting.rules.snapshots import task_id
from mpt_envs.crafting.world.goals import GOALS
from mpt_envs.crafting.world.layout import GOAL, HEIGHT, WIDTH
from wrappers.errors import SnapshotError
from wrappers.task import Snapshot

#: Raised whenever the payload or the mod's rules change.
PAYLOAD_VERSION: Final = 1000

_CHECKSUM: Final = 16
_HEADER: Final = struct.Struct("<4s12sII")
_MAGIC: Final = b"MTST"
_BYTES: Final = WIDTH * WIDTH * HEIGHT + WIDTH * WIDTH


class State(NamedTuple):
    """What a payload holds.

    Attributes:
        version: of the engine.
        scalars: int32 ``(USED_INTS,)`` of the record.
        sizes: bytes of the names and of the JSON.
        blob: the server's four parts, one after the other.
    """

    version: str
    scalars: NDArray[np.int32]
    sizes: tuple[int, int]
    blob: bytes


def pack(state: State) -> bytes:
    """The payload of a state."""
    header = _HEADER.pack(_MAGIC, state.version.encode(), *state.sizes)
    body = header + state.scalars.astype("<i4").tobytes() + state.blob
    return hashlib.blake2b(body, digest_size=_CHECKSUM).digest() + body


def unpack(payload: bytes) -> State | None:
    """The state of a payload, or None if it is not as `pack` made it."""
    start = _CHECKSUM + _HEADER.size + 4 * USED_INTS
    if len(payload) < start:
        return None
    checksum = hashlib.blake2b(payload[_CHECKSUM:], digest_size=_CHECKSUM).digest()
    magic, version, names, rest = _HEADER.unpack_from(payload, _CHECKSUM)
    if checksum != payload[:_CHECKSUM] or magic != _MAGIC:
        return None
    blob = payload[start:]
    if len(blob) != names + rest + _BYTES:
        return None
    scalars = np.frombuffer(payload, "<i4", USED_INTS, _CHECKSUM + _HEADER.size).astype(np.int32)
    return State(version.rstrip(b"\0").decode("ascii", "replace"), scalars, (names, rest), blob)


def check_snapshot(snapshot: Any, goal: int, version: str) -> State:
    """The state of a snapshot that may be restored into a task of the goal.

    Args:
        snapshot: what `restore` was given.
        goal: index into goals.GOALS.
        version: of the engine here.

    Raises:
        SnapshotError: it is none, or belongs to another task, backend or version, or was changed.
    """
    if not isinstance(snapshot, Snapshot):
        raise SnapshotError(f"expected a Snapshot of a task, got {type(snapshot).__name__}")
    name = task_id(GOALS[goal].name)
    snapshot.check(name, PAYLOAD_VERSION)
    state = unpack(snapshot.payload)
    if state is None or int(state.scalars[GOAL]) != goal:
        raise SnapshotError(
            f"this snapshot holds no valid state of {name!r} in Minetest: it was changed after it "
            "was taken; take it again"
        )
    if state.version != version:
        raise SnapshotError(
            f"this snapshot was taken in Minetest {state.version}, and here runs {version}, which "
            "may go on differently; take it again"
        )
    return state
