"""What an instruction says, as a sequence of clauses: the form in which policies observe it.

A clause is one thing to do: turn, leave a room, enter one, pass or approach something, go straight,
take stairs, stop. `lexicon.parse_instruction` reads clauses from text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world.facts import ROOMS, THINGS

#: Clauses that are kept; real instructions have 2 to 8.
MAX_CLAUSES: Final = 12

# --- kinds --------------------------------------------------------------------------------------
NONE: Final = 0
TURN: Final = 1
EXIT: Final = 2  # a room
ENTER: Final = 3  # a room, or a door
PASS: Final = 4  # a thing
APPROACH: Final = 5  # a thing
STRAIGHT: Final = 6  # on, perhaps along or through a room
STAIRS: Final = 7
STOP: Final = 8
KINDS: Final = (
    "none",
    "turn",
    "exit",
    "enter",
    "pass",
    "approach",
    "straight",
    "stairs",
    "stop",
)
N_KINDS: Final = len(KINDS)

# --- directions: of a turn, and of the side on which something is ---------------------------------
LEFT: Final = 1
RIGHT: Final = 2
AROUND: Final = 3
AHEAD: Final = 4
END: Final = 5  # at the end of a hallway
DIRECTIONS: Final = ("", "left", "right", "around", "ahead", "at the end")

# --- columns of the array -------------------------------------------------------------------------
K_KIND: Final = 0
K_TURN: Final = 1
K_SIDE: Final = 2
K_ORDINAL: Final = 3  # 1: the first, ...; 0: not said
K_ROOM: Final = 4  # index into facts.ROOMS; 0: none
K_THING: Final = 5  # index into facts.THINGS; -1: none
N_COLUMNS: Final = 6


class Clause(NamedTuple):
    """One clause.

    Attributes:
        kind: one of the kinds above.
        turn: LEFT, RIGHT or AROUND (with kind TURN), else 0.
        side: LEFT, RIGHT, AHEAD or END: where the door or thing is; 0: not said.
        ordinal: 1 for the first door, ...; 0: not said.
        room: index into facts.ROOMS; 0: none.
        thing: index into facts.THINGS; -1: none.
    """

    kind: int
    turn: int = 0
    side: int = 0
    ordinal: int = 0
    room: int = 0
    thing: int = -1

    def __str__(self) -> str:
        words = [KINDS[self.kind]]
        if self.turn:
            words.append(DIRECTIONS[self.turn])
        if self.ordinal:
            words.append(f"#{self.ordinal}")
        if self.room:
            words.append(ROOMS[self.room])
        if self.thing >= 0:
            words.append(THINGS[self.thing])
        if self.side:
            words.append(f"({DIRECTIONS[self.side]})")
        return " ".join(words)


def as_array(clauses: Sequence[Clause]) -> NDArray[np.int32]:
    """int32 ``(n, N_COLUMNS)``, n from 1 to `MAX_CLAUSES`; the last clause is always a stop."""
    kept = [*clauses[: MAX_CLAUSES - 1]]
    rest = [c for c in clauses[MAX_CLAUSES - 1 :] if c.kind == STOP]
    if rest:
        kept.append(rest[-1])
    elif not kept or kept[-1].kind != STOP:
        kept.append(Clause(STOP))
    return np.array(kept, np.int32)
