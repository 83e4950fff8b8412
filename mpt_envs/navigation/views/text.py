"""The state as text for language models and people.

`profile` is what an agent is told once, `prompt` what it is told in each turn: the instruction, how
far it is in it, what is seen and felt, the ways around, what was done last, and the role's actions.
It says what the vector observation is made from, and no more. Directions are those of the body,
distances in metres.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.world import facts
from mpt_envs.navigation.world import layout as at
from mpt_envs.navigation.world.layout import bits_of, floats, ints
from mpt_envs.navigation.world.sources import T_KIND, T_ROOM_A, T_ROOM_B, T_X, T_Z
from mpt_envs.navigation.world.space import cast
from mpt_envs.navigation.world.worlds import World
from wrappers.task import Phase

_ROLE_PART: Final = {
    "turner": "You turn the body left or right. You cannot walk or stop.",
    "mover": "You walk the body forward, the way it looks; along walls it slides. You cannot turn "
    "or stop.",
    "stopper": "You end the episode with a stop when the instruction is fulfilled: within 3 metres "
    "of where it ends. Until then you can look around, which shows the body what is on all sides "
    "and costs a turn. You cannot turn or walk.",
}
_FORMS: Final = {
    "turner": 'answer "The next action is turn left 30 degrees" (or right; 15, 30 or 45 degrees)',
    "mover": 'answer "The next action is move forward 75 cm" (25, 50 or 75 cm)',
    "stopper": 'answer "The next action is stop" or "The next action is look around"',
}
_SIDES: Final = (
    "straight ahead",
    "ahead on the left",
    "on the left",
    "behind on the left",
    "behind",
    "behind on the right",
    "on the right",
    "ahead on the right",
)


def profile(role: int) -> str:
    """The system message of an agent: its role, the task, its actions.

    Args:
        role: index into facts.ROLES.
    """
    name = facts.ROLES[role]
    part = (
        f"You are the {name} of a team (turner, mover, stopper) that shares one body in a "
        f"building. In each turn one agent acts. {_ROLE_PART[name]}"
    )
    task = (
        "The team follows an instruction. It is rewarded for coming closer to the place where the "
        "instruction ends (10 in all), and for a stop within 3 metres of it (20, less for "
        "detours). A stop ends the episode."
    )
    return "\n".join([part, task, f"In your turn {_FORMS[name]}."])


def prompt(record: NDArray[np.uint8], world: World, role: int, phase: Phase = "act") -> str:
    """What an agent is shown in one turn: the state, and its actions with their numbers.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        world: of the record.
        role: index into facts.ROLES.
        phase: in "bid" the actions are called what the agent could do if it won.
    """
    s = ints(record)
    steps = int(s[at.STEPS])
    first = f"Turn {int(s[at.TURN]) + 1}. {steps} of {facts.MAX_STEPS} steps made."
    if int(s[at.DONE]) != at.DONE_RUNNING:
        first += f" The episode is over: {at.DONE_NAMES[int(s[at.DONE])]}."
    lines = [
        first,
        *state_lines(record, world),
        "Your actions:" if phase == "act" else "If you win this turn you can:",
    ]
    for index, action in enumerate(facts.ACTIONS[facts.ROLES[role]]):
        lines.append(f"{index}. {action}: {action_help(action)}")
    return "\n".join(lines)


def action_help(action: str) -> str:
    """What an action does, in a few words."""
    words = action.split("_")
    if words[0] == "turn":
        return f"turn {words[1]} {words[2]} degrees"
    if words[0] == "move":
        return f"move forward {words[2]} cm"
    if action == "stop":
        return "stop here for good"
    return "see what is on all sides"


def state_lines(record: NDArray[np.uint8], world: World) -> list[str]:
    """The instruction, and what the body perceives, remembers and did: a line for each."""
    return [
        f"Instruction: {world.episode.instruction}",
        f"Progress: {_progress(record, world)}",
        f"Body: {_body(record, world)}",
        f"Free way: {_ways(record, world)}",
        f"Sees: {_things(record, world, visible=True)}",
        f"Remembers: {_things(record, world, visible=False)}",
        f"Last turn: {'; '.join(narrate(record, world)) or 'nothing yet'}.",
    ]


def _progress(record: NDArray[np.uint8], world: World) -> str:
    """The clauses of the instruction; the one that is probably being followed in brackets."""
    from mpt_envs.navigation.world.clauses import Clause

    this = int(ints(record)[at.CLAUSE])
    words = [str(Clause(*(int(v) for v in clause))) for clause in world.clauses]
    words[this] = f"[{words[this]}]"
    return " > ".join(words)


def _body(record: NDArray[np.uint8], world: World) -> str:
    s, f = ints(record), floats(record)
    kinds = world.scene.room_kinds
    room = facts.ROOMS[int(kinds[int(s[at.ROOM])])] if kinds is not None else "unknown"
    where = "" if room == "unknown" else f"in the {room}; "
    way = at.path(record)
    dx, dz = float(way[0, 0]) - float(f[at.F_X]), float(way[0, 2]) - float(f[at.F_Z])
    away = math.hypot(dx, dz)
    turned = int(s[at.HEADING])
    facing = (
        turned * facts.STEP_ANGLE
        if turned <= facts.N_HEADINGS // 2
        else (turned - 24) * facts.STEP_ANGLE
    )
    side = f"{abs(facing)} degrees to the {'left' if facing > 0 else 'right'} of " if facing else ""
    start = "at the start"
    if away >= 0.05:
        start = f"the start is {away:.1f} m {_bearing(f, s, dx, dz)}"
    climbed = float(f[at.F_Y]) - float(way[0, 1])
    height = ""
    if abs(climbed) > 0.3:
        height = f"; {abs(climbed):.1f} m {'above' if climbed > 0 else 'below'} it"
    return (
        f"{where}walked {float(f[at.F_LENGTH]):.1f} m; {start}{height}; "
        f"facing {side}the first direction."
    )


def _bearing(f: NDArray[np.float64], s: NDArray[np.int32], dx: float, dz: float) -> str:
    """Where something lies, seen from the body: one of eight directions."""
    heading = float(f[at.F_START_HEADING]) + int(s[at.HEADING]) * math.radians(facts.STEP_ANGLE)
    ahead_x, ahead_z = -math.sin(heading), -math.cos(heading)
    angle = math.atan2(ahead_z * dx - ahead_x * dz, dx * ahead_x + dz * ahead_z)
    return _SIDES[round(angle / (math.pi / 4)) % 8]


def _ways(record: NDArray[np.uint8], world: World) -> str:
    """How far one can walk straight in eight directions."""
    s, f = ints(record), floats(record)
    heading = float(f[at.F_START_HEADING]) + int(s[at.HEADING]) * math.radians(facts.STEP_ANGLE)
    space = world.scene.space
    parts = []
    for k, side in enumerate(_SIDES):
        angle = heading + k * math.pi / 4
        free = cast(
            space.heights,
            space.frame,
            f[at.F_X],
            f[at.F_Z],
            int(s[at.LAYER]),
            -math.sin(angle),
            -math.cos(angle),
            facts.RAY_REACH,
        )
        parts.append(
            f"{side} {free:.1f}" if free < facts.RAY_REACH else f"{side} more than {free:.0f}"
        )
    return f"{', '.join(parts)} m."


def _things(record: NDArray[np.uint8], world: World, *, visible: bool) -> str:
    """What is in view, or what was seen before, the nearest first."""
    things, kinds = world.scene.things, world.scene.room_kinds
    if things is None:
        return "nothing that has a name here."
    s, f = ints(record), floats(record)
    seen, now = bits_of(record, at.SEEN_LOW), bits_of(record, at.VISIBLE_LOW)
    passed = bits_of(record, at.PASSED_LOW)
    found = []
    for index, thing in enumerate(things):
        if not (now >> index & 1 if visible else (seen & ~now) >> index & 1):
            continue
        dx, dz = float(thing[T_X]) - float(f[at.F_X]), float(thing[T_Z]) - float(f[at.F_Z])
        away = math.hypot(dx, dz)
        name = facts.THINGS[int(thing[T_KIND])]
        if int(thing[T_KIND]) == facts.DOOR and kinds is not None:
            rooms = {int(thing[T_ROOM_A]), int(thing[T_ROOM_B])} - {int(s[at.ROOM])}
            behind = " and ".join(sorted(facts.ROOMS[int(kinds[r])] for r in rooms))
            name = f"door to {behind}" if len(rooms) == 1 else f"door between {behind}"
            if passed >> index & 1:
                name += " (gone through)"
        found.append((away, f"{name} {away:.1f} {_bearing(f, s, dx, dz)}"))
    return ("; ".join(words for _, words in sorted(found)) or "nothing") + "."


def narrate(record: NDArray[np.uint8], world: World) -> list[str]:
    """What happened in the last turn, in a few words each."""
    s, f = ints(record), floats(record)
    if int(s[at.TURN]) == 0:
        return []
    role, action = int(s[at.LAST_ROLE]), int(s[at.LAST_ACTION])
    if role < 0:
        return ["nobody acted"]
    name = facts.ROLES[role]
    told = []
    if name == "turner":
        told.append(
            f"turned {facts.ACTIONS[name][action].split('_')[1]} {15 * int(s[at.LAST_STEPS])}"
        )
    elif name == "mover":
        told.append(f"moved {float(f[at.F_LAST_MOVED]):.2f} m")
        if int(s[at.COLLIDED]):
            told.append("touched a wall")
    elif role == facts.STOPPER and action == facts.STOP:
        told.append("stopped")
    else:
        told.append("looked around")
    if int(s[at.LAST_CLAUSES]):
        told.append("went on in the instruction")
    return told
