"""Routes in natural English, the way annotators of R2R write: turns, rooms, landmarks, the stop.

`instruction` gives the text and the clauses that it means, so that what is read from the text
(`lexicon`) can be compared with what was meant.
"""

from __future__ import annotations

from typing import Final

from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.clauses import Clause
from mpt_envs.navigation.world.facts import ROOMS, THINGS
from mpt_envs.navigation.world.floorplan import House
from mpt_envs.navigation.world.route import Leg, Route
from wrappers.random_sequence import RandomSequence

_TURNS: Final = {
    c.LEFT: ("turn left", "make a left", "take a left", "go left"),
    c.RIGHT: ("turn right", "make a right", "take a right", "go right"),
    c.AROUND: ("turn around", "turn all the way around"),
}
_EXITS: Final = ("exit the {}", "leave the {}", "walk out of the {}", "go out of the {}")
_ENTERS: Final = ("enter the {}", "go into the {}", "walk into the {}")
_GOES: Final = ("go through the {}", "walk through the {}", "take the {}")
_PASSES: Final = ("walk past the {}", "pass the {}", "go past the {}")
_HALLS: Final = ("walk down the {}", "go down the {}", "walk along the {}", "follow the {}")
_STOPS: Final = (
    "stop next to the {}",
    "stop in front of the {}",
    "wait by the {}",
    "wait near the {}",
    "stop beside the {}",
)
_APPROACHES: Final = ("walk to the {} and stop", "go to the {} and wait there")
_INSIDES: Final = (
    "stop just inside the {}",
    "wait just inside the {}",
    "stop as soon as you are in the {}",
)
_SIDES: Final = {
    c.LEFT: ("on your left", "on the left", "to the left"),
    c.RIGHT: ("on your right", "on the right", "to the right"),
    c.AHEAD: ("straight ahead", "in front of you"),
    c.END: ("at the end", "at the far end"),
}
_ORDINALS: Final = ("", "first ", "second ", "third ")
#: Other words for a room or a thing, used now and then.
_SYNONYMS: Final = {
    "hallway": ("hallway", "hall", "corridor"),
    "living room": ("living room", "living room", "lounge"),
    "bathroom": ("bathroom", "bathroom", "restroom"),
    "office": ("office", "study"),
    "gym": ("gym", "exercise room"),
    "playroom": ("playroom", "game room"),
    "couch": ("couch", "sofa"),
    "refrigerator": ("refrigerator", "fridge"),
    "television": ("television", "tv"),
    "painting": ("painting", "picture"),
    "plant": ("plant", "potted plant"),
    "stove": ("stove", "oven"),
    "bookshelf": ("bookshelf", "bookcase"),
    "armchair": ("armchair",),
}


def _word(name: str, rng: RandomSequence) -> str:
    return rng.choice(_SYNONYMS.get(name, (name,)))


def instruction(house: House, route: Route, rng: RandomSequence) -> tuple[str, list[Clause]]:
    """An instruction for a route, and what it means."""
    parts: list[list[str]] = []  # fragments, by room
    clauses: list[Clause] = []
    for leg in route.legs[:-1]:
        fragments: list[str] = []
        _leg(house, leg, fragments, clauses, rng)
        parts.append(fragments)
    parts.append(_end(house, route, clauses, rng))
    return _sentences(parts, rng), clauses


def _leg(
    house: House, leg: Leg, fragments: list[str], clauses: list[Clause], rng: RandomSequence
) -> None:
    """What to do in one room, up to the door through which one leaves it."""
    kind = house.kind(leg.room)
    hall = kind == "hallway"
    beyond = house.kinds[house.beyond(leg.door, leg.room)]
    if leg.turn:
        fragments.append(rng.choice(_TURNS[leg.turn]))
        clauses.append(Clause(c.TURN, turn=leg.turn))
    if hall and (leg.turn or leg.side != c.AHEAD):
        fragments.append(rng.choice(_HALLS).format(_word(kind, rng)))
        clauses.append(Clause(c.STRAIGHT, room=house.kinds[leg.room]))
    if leg.passed and rng.chance(0.7):
        thing = rng.choice(leg.passed)
        fragments.append(rng.choice(_PASSES).format(_word(THINGS[thing], rng)))
        clauses.append(Clause(c.PASS, thing=thing))
    if leg.only and not hall and rng.chance(0.75):
        fragments.append(rng.choice(_EXITS).format(_word(kind, rng)))
        clauses.append(Clause(c.EXIT, room=house.kinds[leg.room]))
        return
    # Say how the door is told from the others, and sometimes more than needed.
    say_side = leg.by_side and leg.side != 0 and (not leg.by_room or rng.chance(0.5))
    say_room = leg.by_room and (not say_side or rng.chance(0.6))
    if leg.only and not (say_side or say_room):
        say_room = True
    where = rng.choice(_SIDES[leg.side]) if say_side else ""
    ordinal = leg.ordinal if say_side else 0
    if say_side:
        side = leg.side
        door = rng.choice(("door", "doorway"))
        phrase = rng.choice(_GOES).format(f"{_ORDINALS[ordinal]}{door} {where}")
        if say_room:
            phrase += f" into the {_word(ROOMS[beyond], rng)}"
        clauses.append(Clause(c.ENTER, side=side, ordinal=ordinal, room=beyond if say_room else 0))
    else:
        phrase = rng.choice(_ENTERS).format(_word(ROOMS[beyond], rng))
        clauses.append(Clause(c.ENTER, room=beyond))
    fragments.append(phrase)


def _end(house: House, route: Route, clauses: list[Clause], rng: RandomSequence) -> list[str]:
    """What to do in the last room."""
    leg = route.legs[-1]
    if route.target < 0:
        room = house.kind(leg.room)
        clauses.append(Clause(c.STOP, room=house.kinds[leg.room]))
        return [rng.choice(_INSIDES).format(_word(room, rng))]
    fragments = []
    passed = [kind for kind in leg.passed if kind != route.target]
    if passed and rng.chance(0.5):
        fragments.append(rng.choice(_PASSES).format(_word(THINGS[passed[-1]], rng)))
        clauses.append(Clause(c.PASS, thing=passed[-1]))
    thing = _word(THINGS[route.target], rng)
    if rng.chance(0.25):
        fragments.append(rng.choice(_APPROACHES).format(thing))
        clauses += [Clause(c.APPROACH, thing=route.target), Clause(c.STOP)]
    else:
        fragments.append(rng.choice(_STOPS).format(thing))
        clauses.append(Clause(c.STOP, thing=route.target))
    return fragments


def _sentences(parts: list[list[str]], rng: RandomSequence) -> str:
    """Join fragments to sentences of one to three, as people do."""
    flat = [fragment for part in parts for fragment in part]
    sentences: list[str] = []
    while flat:
        count = min(len(flat), rng.integer(1, 3))
        # The stop likes a sentence of its own.
        if len(flat) - count == 0 and count > 1 and rng.chance(0.7):
            count -= 1
        taken, flat = flat[:count], flat[count:]
        if count == 1:
            text = taken[0]
        elif count == 2:
            text = rng.choice((" and ", ", then ", " then ")).join(taken)
        else:
            text = f"{taken[0]}, {taken[1]}{rng.choice((' and ', ', then '))}{taken[2]}"
        if sentences and rng.chance(0.2):
            text = f"{rng.choice(('then', 'next,', 'now'))} {text}"
        sentences.append(text[0].upper() + text[1:] + ".")
    return " ".join(sentences)
