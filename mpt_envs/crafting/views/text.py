"""The state as text for language models and people, and their answers back to actions.

`profile` is what an agent is told once (who it is, what the team wants, what it can do), `prompt`
what it is told in each turn (where the body is, what it sees, has and just did, what is legal now),
`parse` reads the answer. All of it is a function of one record (see `layout`), and says what the
vector observation is made from: what the body perceives and remembers, never more.

Directions are Minecraft's: north is -z, east +x; heights are y. Distances are in blocks, measured
from the eyes; time is in ticks, 20 a second.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.answers import read_action
from mpt_envs.crafting.world import facts, goals
from mpt_envs.crafting.world import layout as at
from wrappers.task import ParseError, Phase

#: What became of the episode, by ``DONE_...``.
DONE_WORDS: Final = ("running", "goal reached", "out of time", "died")

#: Milestones of each goal, cheapest first.
PATHS: Final = tuple(goals.path(goal.item) for goal in goals.GOALS)

_ROLE_PART: Final = {
    "logger": "You are the team's legs above the ground: you find and chop trees, scout, and bring "
    "the body back up. You cannot dig or craft.",
    "miner": "You dig: stone, coal, iron, and ways through the ground. You cannot chop or craft. "
    "Ores need the right pickaxe, which the smith makes.",
    "smith": "You turn what the others gather into tools: you craft, place the table and the "
    "furnace, and smelt. You cannot gather.",
}

#: What an action does, in a few words.
ACTION_HELP: Final = {
    "wait": f"let {facts.WAIT_TICKS} ticks pass",
    "chop_log": "walk to the nearest visible log and chop it",
    "climb_to_surface": f"dig and pile up blocks, up to {facts.CLIMB_LEVELS} straight up",
    "mine_stone": "walk to the nearest visible stone and mine it",
    "mine_coal": "walk to the nearest visible coal ore and mine it",
    "mine_iron": "walk to the nearest visible iron ore and mine it",
    "dig_down": "dig the block under the feet and drop down",
    "tend_furnace": f"wait for the furnace, at most {facts.TEND_TICKS} ticks",
    "craft_planks": "1 log -> 4 planks",
    "craft_sticks": "2 planks -> 4 sticks",
    "craft_table": "4 planks -> 1 crafting table",
    "place_table": "put the crafting table down beside the body",
    "pick_up_table": "take the crafting table along",
    "craft_wooden_pickaxe": "3 planks + 2 sticks, at the table",
    "craft_stone_pickaxe": "3 cobblestone + 2 sticks, at the table",
    "craft_iron_pickaxe": "3 iron ingots + 2 sticks, at the table",
    "craft_furnace": "8 cobblestone, at the table",
    "place_furnace": "put the furnace down beside the body",
    "pick_up_furnace": "take the furnace and what is in it along",
    "smelt_iron": "load all iron ore and fuel into the furnace",
    "smelt_stone": f"load up to {facts.SMELT_BATCH} cobblestone and fuel into the furnace",
    "smelt_charcoal": "load 1 log and fuel into the furnace",
    "take_smelted": "take what the furnace has made",
    "craft_torch": "1 coal or charcoal + 1 stick -> 4 torches",
    "craft_stone_bricks": "4 stone -> 4 stone bricks",
}
for _direction in facts.DIRECTIONS:
    ACTION_HELP[f"explore_{_direction}"] = (
        f"walk up to {facts.EXPLORE_STEPS} blocks {_direction}, around small obstacles"
    )
    ACTION_HELP[f"tunnel_{_direction}"] = (
        f"dig up to {facts.TUNNEL_LENGTH} blocks {_direction} and go in"
    )

#: What must hold for an action to be legal: the answer to one that is not.
ACTION_NEEDS: Final = {
    "chop_log": "a visible log",
    "climb_to_surface": "to be at least 2 blocks below the ground, and blocks to stand on",
    "mine_stone": "a pickaxe and visible stone",
    "mine_coal": "a pickaxe and visible coal ore",
    "mine_iron": "a stone pickaxe or better and visible iron ore",
    "dig_down": "a block under the feet that can be dug",
    "tend_furnace": "a furnace close by that is smelting",
    "craft_planks": "1 log",
    "craft_sticks": "2 planks",
    "craft_table": "4 planks",
    "place_table": "a crafting table in the inventory and room beside the body",
    "pick_up_table": "the placed table close by",
    "craft_wooden_pickaxe": "3 planks, 2 sticks and a table close by",
    "craft_stone_pickaxe": "3 cobblestone, 2 sticks and a table close by",
    "craft_iron_pickaxe": "3 iron ingots, 2 sticks and a table close by",
    "craft_furnace": "8 cobblestone and a table close by",
    "place_furnace": "a furnace in the inventory and room beside the body",
    "pick_up_furnace": "a pickaxe and the placed furnace close by",
    "smelt_iron": "iron ore, fuel and a furnace close by with room for it",
    "smelt_stone": "cobblestone, fuel and a furnace close by with room for it",
    "smelt_charcoal": "a log, fuel and a furnace close by with room for it",
    "take_smelted": "a furnace close by with something done in it",
    "craft_torch": "1 coal or charcoal and 1 stick",
    "craft_stone_bricks": "4 stone",
}
for _direction in facts.DIRECTIONS:
    ACTION_NEEDS[f"explore_{_direction}"] = f"a way {_direction} that can be walked"
    ACTION_NEEDS[f"tunnel_{_direction}"] = f"blocks {_direction} that can be dug, and no water"

#: For each role, the actions that others have and it has not, by name.
_OTHERS: Final = tuple(
    {
        action: other
        for other in facts.ROLES
        for action in facts.ACTIONS[other]
        if action not in facts.ACTIONS[role]
    }
    for role in facts.ROLES
)


def _item(item: int) -> str:
    return facts.ITEM_NAMES[item]


def profile(role: int, goal: int) -> str:
    """The system message of an agent: its role, the goal, its actions.

    Args:
        role: index into ``facts.ROLES``.
        goal: index into ``goals.GOALS``.
    """
    name = facts.ROLES[role]
    wanted = goals.GOALS[goal]
    milestones = ", ".join(f"{_item(i)} {goals.value(i)}" for i in goals.path(wanted.item))
    part = (
        f"You are the {name} of a team (logger, miner, smith) that shares one body and one "
        f"inventory in a Minecraft 1.16 world. In each turn one agent acts. {_ROLE_PART[name]}"
    )
    task = (
        f"The team's goal: {_item(wanted.item)}. The first time that the team obtains one of "
        f"these, everyone is rewarded: {milestones}. Everything takes time, in ticks of a "
        "twentieth of a second; the episode ends with the goal, or when ticks or turns are used up."
    )
    lines = [part, task, "Your actions:"]
    lines += [f"- {action}: {ACTION_HELP[action]}" for action in facts.ACTIONS[name]]
    return "\n".join(lines)


def prompt(record: NDArray[np.uint8], role: int, phase: Phase = "act") -> str:
    """What an agent is shown in one turn: the state, and its legal actions with their numbers.

    How to bid or to answer is the game's to say, not the task's.

    Args:
        record: uint8 ``(RECORD_BYTES,)``.
        role: index into ``facts.ROLES``.
        phase: in "bid" the actions are called what the agent could do if it won.
    """
    s = at.scalars(record)
    tick, budget = int(s[at.TICK]), int(s[at.BUDGET])
    lines = [f"Turn {int(s[at.TURN]) + 1}. Tick {tick} of {budget}, {max(0, budget - tick)} left."]
    if int(s[at.DONE]) != at.DONE_RUNNING:
        lines[0] += f" The episode is over: {DONE_WORDS[int(s[at.DONE])]}."
    lines += [
        *state_lines(record),
        "Legal actions:" if phase == "act" else "If you win this turn you can:",
    ]
    mask = int(s[at.MASKS + role])
    for index, action in enumerate(facts.ACTIONS[facts.ROLES[role]]):
        if mask >> index & 1:
            lines.append(f"{index}. {action}: {ACTION_HELP[action]}")
    return "\n".join(lines)


def parse(role: int, answer: str, mask: NDArray[np.int8]) -> int | ParseError:
    """Read an answer as one of the role's legal actions; see `mpt_envs.answers.read_action`.

    Args:
        role: index into ``facts.ROLES``.
        answer: what the model wrote.
        mask: ``int8``, one entry for each action of the role: which are legal now.
    """
    names = facts.ACTIONS[facts.ROLES[role]]
    return read_action(answer, names, mask, others=_OTHERS[role], hints=ACTION_NEEDS)


def state_lines(record: NDArray[np.uint8]) -> list[str]:
    """The goal, and what the body is, sees, has and did: a line for each."""
    s = at.scalars(record)
    goal = goals.GOALS[int(s[at.GOAL])]
    return [
        f"Goal: {_item(goal.item)}. {_milestones(s)}",
        f"Body: {_body(record)}",
        f"Ways: {_ways(s)}",
        f"Sees: {_targets(s)}",
        f"Has: {_inventory(s)}",
        f"Stations: {_stations(s)}",
        f"Recent: {_recent(record)}",
    ]


# --- the parts of a prompt ----------------------------------------------------------------------
def _milestones(s: NDArray[np.int32]) -> str:
    path = PATHS[int(s[at.GOAL])]
    values = goals.MILESTONE_VALUE[int(s[at.GOAL])]
    seen = [i for i in path if int(s[at.SEEN]) >> i & 1]
    missing = [i for i in path if not int(s[at.SEEN]) >> i & 1]
    total = int(values.sum())
    words = (
        f"Score {int(s[at.SCORE])} of {total}. Done: {', '.join(map(_item, seen)) or 'nothing'}."
    )
    if missing:
        words += f" Missing: {', '.join(f'{_item(i)} (+{values[i]})' for i in missing)}."
    return words


def _body(record: NDArray[np.uint8]) -> str:
    s = at.scalars(record)
    x, y, z, depth = int(s[at.X]), int(s[at.Y]), int(s[at.Z]), int(s[at.DEPTH])
    if depth > 0:
        where = f"{depth} below the ground"
    elif depth == 0:
        where = "on the ground"
    else:
        where = f"{-depth} above the ground"
    cover = "under cover" if int(s[at.COVERED]) else "under the open sky"
    if int(at.blocks(record)[x, z, y]) == facts.WATER:
        footing = "in water"
    else:
        footing = f"standing on {facts.BLOCK_NAMES[int(s[at.BELOW])]}"
    words = f"x {x}, y {y}, z {z}, {where}, {cover}, {footing}."
    wound = int(s[at.WOUND])
    if wound > 0:
        lost = -(-wound // facts.REGENERATION_TICKS)
        words += f" Health {facts.MAX_HEALTH - lost} of {facts.MAX_HEALTH}."
    return words


def _ways(s: NDArray[np.int32]) -> str:
    parts = []
    for index, direction in enumerate(facts.DIRECTIONS):
        steps = int(s[at.WALK_STEPS + index])
        if steps > 0:
            rise = int(s[at.WALK_RISE + index])
            slope = f" up {rise}" if rise > 0 else f" down {-rise}" if rise < 0 else ""
            water = " through water" if int(s[at.WALK_WATER + index]) else ""
            parts.append(f"{direction} {steps}{slope}{water}")
            continue
        feet, head = int(s[at.NEAR_FEET + index]), int(s[at.NEAR_HEAD + index])
        block = head if head > facts.WATER else feet
        if block == facts.BARRIER:
            what = "the end of the world"
        elif block > facts.WATER:
            what = f"closed by {facts.BLOCK_NAMES[block]}"
        else:
            what = "deep water" if facts.WATER in (feet, head) else "a drop"
        parts.append(f"{direction} {what}")
    return ", ".join(parts) + "."


def _targets(s: NDArray[np.int32]) -> str:
    parts = []
    for kind, name in enumerate(at.TARGET_NAMES):
        cell = int(s[at.TARGET_CELL + kind])
        given_up = int(s[at.GIVEN_UP]) >> kind & 1
        if cell == 0:
            parts.append(f"no {name}" + (" with a way to it" if given_up else ""))
            continue
        distance = int(s[at.TARGET_DISTANCE + kind]) / 10
        x, y, z = at.position(cell)
        way = bearing(x - int(s[at.X]), y - int(s[at.Y]), z - int(s[at.Z]))
        parts.append(f"{name} {distance:.1f} {way}")
    return "; ".join(parts) + "."


def bearing(dx: int, dy: int, dz: int) -> str:
    """Where something lies, in words: one of eight directions, and how far up or down.

    Args:
        dx, dy, dz: blocks to the east, up (from the feet) and to the south.
    """
    words = []
    if abs(dz) * 2 > abs(dx):
        words.append("north" if dz < 0 else "south")
    if abs(dx) * 2 > abs(dz):
        words.append("east" if dx > 0 else "west")
    flat = "-".join(words)
    if dy > 1:
        height = f"{dy} up"
    elif dy < 0:
        height = f"{-dy} down"
    else:
        height = ""
    if not flat:
        return "overhead" if dy > 0 else "underfoot"
    return f"{flat} {height}".strip()


def _inventory(s: NDArray[np.int32]) -> str:
    parts = []
    for item, name in enumerate(facts.ITEM_NAMES):
        count = int(s[at.INVENTORY + item])
        if count == 0:
            continue
        wear = ""
        if item in facts.PICKAXES:
            kind = facts.PICKAXES.index(item)
            left = facts.PICKAXE_DURABILITY[kind] - int(s[at.WEAR + kind])
            wear = f" ({left} uses left)"
        parts.append(f"{name} {count}{wear}")
    return (", ".join(parts) or "nothing") + "."


def _station(s: NDArray[np.int32], name: str, cell_at: int, near_at: int) -> str:
    cell = int(s[cell_at])
    if cell == 0:
        return f"no {name} placed"
    near = int(s[near_at])
    if near == at.NEAR_REACH:
        return f"{name} in reach"
    x, y, z = at.position(cell)
    way = bearing(x - int(s[at.X]), y - int(s[at.Y]), z - int(s[at.Z]))
    return f"{name} {way}, {'close by' if near == at.NEAR_WALK else 'out of sight'}"


def _stations(s: NDArray[np.int32]) -> str:
    words = _station(s, "table", at.TABLE_CELL, at.TABLE_NEAR) + "; "
    words += _station(s, "furnace", at.FURNACE_CELL, at.FURNACE_NEAR)
    # What is in a furnace out of sight is not perceived.
    if int(s[at.FURNACE_CELL]) == 0 or int(s[at.FURNACE_NEAR]) == at.NEAR_NONE:
        return words + "."
    contents = []
    for item, count, what in (
        (at.FURNACE_INPUT, at.FURNACE_INPUT_COUNT, "to smelt"),
        (at.FURNACE_FUEL, at.FURNACE_FUEL_COUNT, "as fuel"),
        (at.FURNACE_OUTPUT, at.FURNACE_OUTPUT_COUNT, "done"),
    ):
        if int(s[count]) > 0:
            contents.append(f"{_item(int(s[item]))} {int(s[count])} {what}")
    burning = int(s[at.FURNACE_BURN])
    fire = f"burning for {burning} ticks" if burning > 0 else "not burning"
    return f"{words} ({', '.join([*contents, fire])})."


# --- events -------------------------------------------------------------------------------------
_PLACES: Final = (*at.TARGET_NAMES, "table", "furnace")
#: Of each kind of event: words for the amount and the argument, and what the argument counts.
_EVENT_WORDS: Final[dict[int, tuple[str, tuple[str, ...]]]] = {
    at.EVENT_GOT: ("got {} {}", facts.ITEM_NAMES),
    at.EVENT_BROKE: ("dug {} {}", facts.BLOCK_NAMES),
    at.EVENT_CRAFTED: ("crafted {} {}", facts.ITEM_NAMES),
    at.EVENT_PLACED: ("placed {} {}", facts.ITEM_NAMES),
    at.EVENT_SMELTING: ("loaded {} {} into the furnace", facts.ITEM_NAMES),
    at.EVENT_TOOK: ("took {} {} out of the furnace", facts.ITEM_NAMES),
    at.EVENT_WALKED: ("walked {} {}", facts.DIRECTIONS),
    at.EVENT_TUNNELLED: ("tunnelled {} {}", facts.DIRECTIONS),
    at.EVENT_CLIMBED: ("climbed {}", ()),
    at.EVENT_FELL: ("fell {}", ()),
    at.EVENT_BLOCKED: ("found no way to the {1}", _PLACES),
    at.EVENT_TOOL_BROKE: ("the {1} broke", facts.ITEM_NAMES),
    at.EVENT_WAITED: ("waited {} ticks", ()),
    at.EVENT_SKIPPED: ("nobody acted", ()),
    at.EVENT_MILESTONE: ("milestone {1} (+{0})", facts.ITEM_NAMES),
    at.EVENT_HURT: ("lost {} health", ()),
}


def event_words(event: int, argument: int, amount: int) -> str:
    """One event of the record in words, or "" for none worth telling.

    Args:
        event: one of ``EVENT_...``.
        argument, amount: what they mean depends on the event; see `layout`.
    """
    if event == at.EVENT_SMELTING and amount == 0:
        return "added fuel to the furnace"
    words, meant = _EVENT_WORDS.get(event, ("", ()))
    return words.format(amount, meant[argument] if meant else "")


def turn_events(record: NDArray[np.uint8], turn: int) -> list[str]:
    """What happened in one turn, in words, as far as the record still holds it."""
    return [
        words
        for when, event, argument, amount in at.events(record)
        if when == turn and (words := event_words(event, argument, amount))
    ]


def _recent(record: NDArray[np.uint8]) -> str:
    s = at.scalars(record)
    turns: dict[int, list[str]] = {}
    for when, event, argument, amount in at.events(record):
        words = event_words(event, argument, amount)
        if words:
            turns.setdefault(when, []).append(words)
    parts = [f"turn {when + 1} {', '.join(words)}" for when, words in turns.items()]
    role = int(s[at.LAST_ROLE])
    if role >= 0:
        name = facts.ROLES[role]
        parts.append(f"the last action was {name} {facts.ACTIONS[name][int(s[at.LAST_ACTION])]}")
    return ("; ".join(parts) or "nothing yet") + "."
