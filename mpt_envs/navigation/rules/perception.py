"""What the body perceives and keeps in mind: things in view, rooms, doors, the clause it is at.

The eyes see `FIELD_OF_VIEW` degrees ahead, as far as `SIGHT` metres and no farther than a wall;
what was seen once is remembered, with its place. Looking around shows everything on all sides.
Doors stand open, so that of a door one also sees which kind of room lies behind it.

Which clause of the instruction is being followed is told by what can be perceived: angles turned,
metres walked, doors gone through, rooms recognised, things passed. It is an estimate, and knows
neither goal nor map. Where nothing is known of rooms and things (the scene has none), only angles
and metres count.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.sight_lines import (
    LINE_FREE,
    LINE_MARK,
    LINE_REACH,
    LINE_X,
    LINE_Z,
    cast_lines,
    sight_lines,
)
from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.facts import DOOR, FIELD_OF_VIEW, SIGHT, STEP_ANGLE
from mpt_envs.navigation.world.sources import T_KIND, T_RADIUS, T_ROOM_A, T_ROOM_B, T_X, T_Z
from mpt_envs.navigation.world.space import F_X as FRAME_X
from mpt_envs.navigation.world.space import F_Z as FRAME_Z
from mpt_envs.navigation.world.space import column

_RADIANS: Final = np.pi / 180.0
_COS_VIEW: Final = np.cos(0.5 * FIELD_OF_VIEW * _RADIANS)
_AT_HAND: Final = 1.5  # metres within which things are noticed on all sides
_TURNED: Final = 45  # degrees that count as a turn to a side
_TURNED_AROUND: Final = 120
_STRAIGHT: Final = 1.5  # metres walked
_BLIND: Final = 2.5  # metres walked that stand for what cannot be perceived
_PASSED: Final = 3.0  # metres within which something lies behind that was passed
_REACHED: Final = 1.2  # metres to its edge
_CLIMBED: Final = 1.0  # metres of height


@kernel
def angle_of(s, f):
    """Heading in radians."""
    return f[at.F_START_HEADING] + s[at.HEADING] * (STEP_ANGLE * _RADIANS)


@kernel
def get_bit(s, low, index):
    """Bit of a set of the record."""
    return (s[low + (index >> 5)] >> (index & 31)) & 1


@kernel
def set_bit(s, low, index):
    """Set a bit of a set of the record."""
    s[low + (index >> 5)] |= np.int32(1) << np.int32(index & 31)


@kernel
def look(s, f, frame, sight, things, around):
    """Note which things are in view, and remember them.

    Args:
        s, f: the record.
        frame: of the free space.
        sight: clearance of what is opaque; empty: nothing is.
        things: of the scene.
        around: whether to look to all sides.
    """
    s[at.VISIBLE_LOW] = 0
    s[at.VISIBLE_HIGH] = 0
    x, z = f[at.F_X], f[at.F_Z]
    angle = angle_of(s, f)
    ahead_x, ahead_z = -np.sin(angle), -np.cos(angle)
    lines, count = sight_lines(), 0
    for index in range(things.shape[0]):
        dx, dz = things[index, T_X] - x, things[index, T_Z] - z
        squared = dx * dx + dz * dz
        if squared > SIGHT * SIGHT:
            continue
        ahead = dx * ahead_x + dz * ahead_z
        if not around and (ahead < 0.0 or ahead * ahead < _COS_VIEW * _COS_VIEW * squared):
            at_hand = _AT_HAND + things[index, T_RADIUS]
            if squared > at_hand * at_hand:
                continue
        if sight.shape[0] > 0 and squared > 0.0:
            length = np.sqrt(squared)
            scale = 1.0 / length
            lines[LINE_X, count], lines[LINE_Z, count] = dx * scale, dz * scale
            lines[LINE_REACH, count] = length
            lines[LINE_MARK, count] = index
            count += 1
        else:
            set_bit(s, at.VISIBLE_LOW, index)
    if count > 0:
        cast_lines(sight, frame, x, z, count, lines)
    for k in range(count):
        if not lines[LINE_FREE, k] < lines[LINE_REACH, k]:
            set_bit(s, at.VISIBLE_LOW, np.int64(lines[LINE_MARK, k]))
    s[at.SEEN_LOW] |= s[at.VISIBLE_LOW]
    s[at.SEEN_HIGH] |= s[at.VISIBLE_HIGH]


@kernel
def notice_room(s, f, frame, rooms, things):
    """Note which room the body is in, and through which door it came."""
    if rooms.shape[0] == 0:
        return
    room = np.int32(rooms[column(frame, f[at.F_Z], FRAME_Z), column(frame, f[at.F_X], FRAME_X)])
    if room == 0 or room == s[at.ROOM]:
        return
    if s[at.ROOM] != 0:
        s[at.DOORS] += 1
        s[at.CLAUSE_DOORS] += 1
        nearest, least = -1, np.inf
        for index in range(things.shape[0]):
            if things[index, T_KIND] != DOOR:
                continue
            first, second = things[index, T_ROOM_A], things[index, T_ROOM_B]
            if (first == room and second == s[at.ROOM]) or (first == s[at.ROOM] and second == room):
                dx, dz = things[index, T_X] - f[at.F_X], things[index, T_Z] - f[at.F_Z]
                if dx * dx + dz * dz < least:
                    nearest, least = index, dx * dx + dz * dz
        s[at.ENTRY] = nearest
        if nearest >= 0:
            set_bit(s, at.PASSED_LOW, nearest)
            f[at.F_ENTRY_X], f[at.F_ENTRY_Z] = things[nearest, T_X], things[nearest, T_Z]
    s[at.ROOM] = room


# --- the clause ---------------------------------------------------------------------------------
@kernel
def is_complete(s, f, clause, doors, things, kinds):
    """Whether what a clause asks for has happened since the current clause began.

    Args:
        s, f: the record.
        clause: int32 ``(N_COLUMNS,)``.
        doors: doors that must have been gone through, if it speaks of a door or a room.
        things: of the scene, maybe none.
        kinds: kinds of the rooms; with fewer than two entries nothing is known of rooms.
    """
    kind = clause[c.K_KIND]
    walked = f[at.F_LENGTH] - f[at.F_CLAUSE_LENGTH]
    turned = s[at.CLAUSE_TURNED] * STEP_ANGLE
    with_rooms = kinds.shape[0] > 1
    with_things = things.shape[0] > 0
    if kind == c.TURN:
        if clause[c.K_TURN] == c.LEFT:
            return turned >= _TURNED
        if clause[c.K_TURN] == c.RIGHT:
            return turned <= -_TURNED
        return abs(turned) >= _TURNED_AROUND
    if kind == c.EXIT:
        if not with_rooms:
            return walked >= _BLIND
        return s[at.CLAUSE_DOORS] >= doors and s[at.ROOM] != s[at.CLAUSE_ROOM]
    if kind == c.ENTER:
        if not with_rooms:
            return walked >= _BLIND
        if s[at.CLAUSE_DOORS] < doors:
            return False
        return clause[c.K_ROOM] == 0 or kinds[s[at.ROOM]] == clause[c.K_ROOM]
    if kind == c.PASS or kind == c.APPROACH:
        if clause[c.K_THING] < 0 or not with_things:
            return walked >= _BLIND
        if kind == c.PASS and s[at.CLAUSE_DOORS] > 0:
            return True
        angle = angle_of(s, f)
        ahead_x, ahead_z = -np.sin(angle), -np.cos(angle)
        for index in range(things.shape[0]):
            if things[index, T_KIND] != clause[c.K_THING] or get_bit(s, at.SEEN_LOW, index) == 0:
                continue
            dx, dz = things[index, T_X] - f[at.F_X], things[index, T_Z] - f[at.F_Z]
            away = np.sqrt(dx * dx + dz * dz)
            if kind == c.APPROACH:
                if away - things[index, T_RADIUS] < _REACHED:
                    return True
            elif away < _PASSED and dx * ahead_x + dz * ahead_z < 0.1 * away and walked > 0.4:
                return True
        return False
    if kind == c.STRAIGHT:
        return walked >= (_STRAIGHT if with_rooms else _BLIND)
    if kind == c.STAIRS:
        return abs(f[at.F_Y] - f[at.F_CLAUSE_Y]) >= _CLIMBED
    return False


@kernel
def begin_clause(s, f, number):
    """Follow another clause from now on."""
    s[at.CLAUSE] = number
    s[at.CLAUSE_TURNED] = 0
    s[at.CLAUSE_DOORS] = 0
    s[at.CLAUSE_ROOM] = s[at.ROOM]
    s[at.CLAUSE_TURNS] = 0
    f[at.F_CLAUSE_LENGTH] = f[at.F_LENGTH]
    f[at.F_CLAUSE_Y] = f[at.F_Y]


@kernel
def _is_door(kind):
    """Whether a clause of a kind is done by going through a door."""
    return kind == c.EXIT or kind == c.ENTER


@kernel
def follow(s, f, clauses, things, kinds):
    """Go on to the clause that comes after everything that is complete.

    A door that was gone through also shows that what was to be done before it is done, even where
    nothing else showed it: a turn made within a door, a thing passed unseen.
    """
    s[at.LAST_CLAUSES] = 0
    s[at.CLAUSE_TURNS] += 1
    last = clauses.shape[0] - 1
    for _ in range(2):
        offset = np.int64(s[at.CLAUSE])
        if offset >= last:
            break
        kind = clauses[offset, c.K_KIND]
        ahead = 1 if is_complete(s, f, clauses[offset], 1, things, kinds) else 0
        if kinds.shape[0] > 1:
            doors = 2 if _is_door(kind) else 1
            for later in range(offset + 1, min(offset + 4, last)):
                if _is_door(clauses[later, c.K_KIND]):
                    if is_complete(s, f, clauses[later], doors, things, kinds):
                        ahead = later - offset + 1
                    break
        if ahead == 0 and kind == c.TURN and offset + 1 < last:
            following = clauses[offset + 1, c.K_KIND]
            soft = following == c.STRAIGHT or following == c.PASS
            if soft and is_complete(s, f, clauses[offset + 1], 1, things, kinds):
                ahead = 2
        if ahead == 0:
            break
        begin_clause(s, f, offset + ahead)
        s[at.LAST_CLAUSES] += ahead


# --- what words refer to ------------------------------------------------------------------------
@kernel
def seen_thing(s, f, things, kind):
    """The nearest thing of a kind that was seen, or -1."""
    best, least = -1, np.inf
    for index in range(things.shape[0]):
        if things[index, T_KIND] != kind or get_bit(s, at.SEEN_LOW, index) == 0:
            continue
        dx, dz = things[index, T_X] - f[at.F_X], things[index, T_Z] - f[at.F_Z]
        away = dx * dx + dz * dz
        # Those of this room first.
        if things[index, T_ROOM_A] != s[at.ROOM]:
            away += 1000.0
        if away < least:
            best, least = index, away
    return best


@kernel
def meant_door(s, f, things, kinds, clause, ahead_x, ahead_z):
    """The door of this room that a clause speaks of, as far as it was seen, or -1.

    That is the nearest one behind which the named room lies; with a side and a number, the door
    of that number on that side of the body, counted from where it came into the room, or the one
    farthest ahead; else the nearest through which it did not come.

    Args:
        s, f: the record.
        things, kinds: of the scene.
        clause: int32 ``(N_COLUMNS,)``.
        ahead_x, ahead_z: where the body looks, a unit vector.
    """
    kind = clause[c.K_KIND]
    if kind != c.ENTER and kind != c.EXIT:
        return -1
    room = s[at.ROOM]
    rank = max(1, clause[c.K_ORDINAL])
    floor = -np.inf
    best = -1
    # Take the smallest, then the next, as often as the number says.
    for _ in range(rank):
        best, least = -1, np.inf
        for index in range(things.shape[0]):
            if things[index, T_KIND] != DOOR or get_bit(s, at.SEEN_LOW, index) == 0:
                continue
            first, second = np.int64(things[index, T_ROOM_A]), np.int64(things[index, T_ROOM_B])
            if (first != room and second != room) or index == s[at.ENTRY]:
                continue
            behind = second if first == room else first
            if kind == c.ENTER and clause[c.K_ROOM] > 0 and kinds[behind] != clause[c.K_ROOM]:
                continue
            dx, dz = things[index, T_X] - f[at.F_X], things[index, T_Z] - f[at.F_Z]
            away = np.sqrt(dx * dx + dz * dz)
            value = away
            if kind == c.ENTER and clause[c.K_SIDE] > 0 and clause[c.K_ROOM] == 0:
                along = dx * ahead_x + dz * ahead_z
                left = ahead_z * dx - ahead_x * dz
                if clause[c.K_SIDE] == c.LEFT and left < 0.35 * away:
                    continue
                if clause[c.K_SIDE] == c.RIGHT and left > -0.35 * away:
                    continue
                if clause[c.K_SIDE] >= c.AHEAD and along < 0.6 * away:
                    continue
                if clause[c.K_SIDE] == c.END:
                    value = SIGHT - along
                if clause[c.K_ORDINAL] > 0:
                    value = (things[index, T_X] - f[at.F_ENTRY_X]) * ahead_x
                    value += (things[index, T_Z] - f[at.F_ENTRY_Z]) * ahead_z
                    if value < 0.3:
                        continue
            if floor < value < least:
                best, least = index, value
        if best < 0:
            return -1
        floor = least
    return best
