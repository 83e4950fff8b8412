"""Reads clauses from the text of an instruction, with a lexicon of what annotators of R2R write.

No learned model and no grammar: the text is cut into pieces at punctuation and joining words, and
each piece is looked at for a verb, a direction, a room, a thing, a side and a number. A piece
without a verb belongs to the one before it. What is not understood is left out; the end of the
text is always a stop.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from mpt_envs.navigation.world import clauses as c
from mpt_envs.navigation.world.clauses import Clause
from mpt_envs.navigation.world.facts import DOOR, ROOMS, THINGS

_ROOM_WORDS: Final = {
    "hallway": "hallway hall corridor passage passageway",
    "living room": "living_room lounge livingroom family_room sitting_room great_room den",
    "kitchen": "kitchen kitchenette",
    "dining room": "dining_room dining_area",
    "bedroom": "bedroom bed_room guest_room master_bedroom",
    "bathroom": "bathroom restroom washroom bath_room powder_room",
    "office": "office study writing_room",
    "laundry room": "laundry_room laundry utility_room",
    "closet": "closet pantry walk-in_closet storage_room",
    "gym": "gym exercise_room workout_room fitness_room",
    "library": "library",
    "playroom": "playroom game_room rec_room billiard_room",
    "garage": "garage",
    "entryway": "entryway entry foyer entrance_hall lobby vestibule",
    "balcony": "balcony patio terrace deck porch outside",
}
_THING_WORDS: Final = {
    "door": "door doorway doors doorways archway arch entrance opening exit threshold",
    "bed": "bed beds",
    "nightstand": "nightstand night_stand bedside_table",
    "dresser": "dresser chest_of_drawers drawers vanity",
    "wardrobe": "wardrobe armoire",
    "refrigerator": "refrigerator fridge freezer",
    "stove": "stove oven stove_top range cooktop",
    "sink": "sink sinks",
    "counter": "counter island bar countertop kitchen_island",
    "toilet": "toilet",
    "bathtub": "bathtub tub bath",
    "shower": "shower",
    "couch": "couch sofa couches sofas",
    "armchair": "armchair arm_chair recliner",
    "coffee table": "coffee_table",
    "television": "television tv",
    "fireplace": "fireplace fire_place",
    "bookshelf": "bookshelf bookcase bookshelves book_shelf",
    "piano": "piano",
    "dining table": "dining_table dining_room_table",
    "cabinet": "cabinet cabinets hutch",
    "desk": "desk",
    "office chair": "office_chair desk_chair",
    "washing machine": "washing_machine washer dryer",
    "treadmill": "treadmill",
    "pool table": "pool_table billiard_table",
    "plant": "plant plants tree potted_plant fern",
    "painting": "painting paintings picture pictures artwork art",
    "mirror": "mirror mirrors",
    "clock": "clock",
    "lamp": "lamp lamps",
    "bench": "bench ottoman",
    "rug": "rug carpet mat",
    "window": "window windows",
    "stairs": "stairs staircase stairway steps stair step landing stairwell",
    "chair": "chair chairs stool stools barstools",
    "table": "table tables end_table console_table",
    "shelf": "shelf shelves",
    "car": "car",
}


def _table(words: dict[str, str], names: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for name, forms in words.items():
        for form in forms.split():
            found[form.replace("_", " ")] = names.index(name)
    return found


_ROOM: Final = _table(_ROOM_WORDS, ROOMS)
_THING: Final = _table(_THING_WORDS, THINGS)
_NOUN: Final = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, (*_ROOM, *_THING)), key=len, reverse=True)) + r")\b"
)
_BREAK: Final = re.compile(
    r"[.;:!?\n]+|,|"
    r"\b(?:and then|and|then|until|once|after that|after|when|before|next,|as soon as)\b"
)
_TURN: Final = re.compile(
    r"\b(?:turn(?:ing)?|make|take|go|veer|bear|head|move|hang|turn slightly|walk)\b"
    r"(?:\s+(?:a|an|to|your|the|slightly|slight|hard|sharp|immediate|immediately|another|towards?"
    r"|all|way|in))*\s+(left|right|around)\b(?!\s+(?:of|side|corner))"
)
_AROUND: Final = re.compile(r"\bturn(?:ing)?\b.{0,24}\baround\b|\bface the opposite\b|\bu-turn\b")
_STOP: Final = re.compile(r"\b(?:stop|wait|stopping|waiting|halt|stand|end up)\b")
_EXIT: Final = re.compile(r"\b(?:exit|leave|exiting|leaving|out of|walk out|go out|step out)\b")
_ENTER: Final = re.compile(r"\b(?:enter|entering|into|inside|through|thru|go in|walk in|take)\b")
_PASS: Final = re.compile(r"\b(?:past|pass|passing|passed|around|between|beside|by|alongside)\b")
_ALONG: Final = re.compile(r"\b(?:down|along|across|follow|through|up|cross)\b")
_TOWARDS: Final = re.compile(r"\b(?:to|toward|towards|reach|approach|near|until)\b")
_MOVE: Final = re.compile(
    r"\b(?:walk|go|head|move|continue|proceed|straight|forward|keep|step|climb|follow|cross|turn)\b"
)
_STRAIGHT: Final = re.compile(r"\b(?:straight|forward|ahead|continue|keep)\b")
_UNNAMED_ROOM: Final = re.compile(r"\b(?:into|enter|entering)\b.{0,30}\b(?:room|area|space)\b")
_CLIMB: Final = re.compile(
    r"\b(?:up|down|climb|descend|ascend|bottom|top)\b.{0,30}"
    r"\b(?:stairs?|staircase|steps?|stairway)\b"
    r"|\bupstairs\b|\bdownstairs\b"
)
_SIDE: Final = re.compile(
    r"\b(?:on|to|at) (?:the |your )?(?:right hand |left hand )?(left|right)\b"
    r"|\b(?:the|your) (left|right)(?:most)? (?:door|doorway)\b|\b(left|right) side\b"
    r"|\b(straight ahead|ahead of you|in front of you|straight across)\b"
    r"|\b(at the (?:far |very )?end)\b"
)
_ORDINAL: Final = re.compile(r"\b(first|second|third|1st|2nd|3rd)\b")
_ORDINALS: Final = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3}
#: Pieces of text whose meaning is kept: those of generated instructions recur.
_KEPT: Final = 4096
_DIRECTION: Final = {"left": c.LEFT, "right": c.RIGHT, "around": c.AROUND}


def parse_instruction(text: str) -> list[Clause]:
    """The clauses of an instruction, in order; the last one is a stop.

    Args:
        text: English. Anything may be given; what is not understood is left out.
    """
    lowered = " ".join(text.lower().replace("-", " ").replace("_", " ").split())[:4000]
    found: list[Clause] = []
    for piece in _BREAK.split(lowered):
        if found and found[-1].kind == c.STOP:
            # After a stop nothing is to be done; what is said then describes the place.
            if found[-1].room == 0 and found[-1].thing < 0:
                found[-1] = _stop(*_nouns(piece))
            continue
        found += _said(piece.strip())
    if not found or found[-1].kind != c.STOP:
        found.append(Clause(c.STOP))
    return found


@lru_cache(maxsize=_KEPT)
def _said(piece: str) -> tuple[Clause, ...]:
    """What a piece of text says to do."""
    found: list[Clause] = []
    _read(piece, found)
    return tuple(found)


def _nouns(piece: str) -> tuple[list[int], list[int]]:
    """Rooms and things that are named, in order."""
    words = [match[1] for match in _NOUN.finditer(piece)]
    return [_ROOM[w] for w in words if w in _ROOM], [_THING[w] for w in words if w in _THING]


def _read(piece: str, found: list[Clause]) -> None:
    """Add what a piece of text says to do."""
    if not piece:
        return
    rooms, things = _nouns(piece)
    doors = DOOR in things
    things = [t for t in things if t != DOOR]
    room = rooms[-1] if rooms else 0
    thing = things[0] if things else -1
    side, ordinal = _where(piece)
    stop = _STOP.search(piece)
    if stop:
        before = piece[: stop.start()].strip()
        if before and _MOVE.search(before):
            _read(before, found)
        found.append(_stop(*_nouns(piece[stop.start() :])))
        return
    around = _AROUND.search(piece)
    turn = _TURN.search(piece)
    if around or turn:
        direction = c.AROUND if around else _DIRECTION[turn[1]]  # type: ignore[index]
        if not (turn and turn[1] == "around" and not around):
            found.append(Clause(c.TURN, turn=direction))
            rest = piece[(around or turn).end() :]  # type: ignore[union-attr]
            start = piece[: (around or turn).start()]  # type: ignore[union-attr]
            if _NOUN.search(rest):
                _read(f"go {rest.strip()}", found)
            elif _NOUN.search(start) and _MOVE.search(start):
                turned = found.pop()
                _read(start, found)
                found.append(turned)
            return
    if _CLIMB.search(piece):
        found.append(Clause(c.STAIRS, thing=THINGS.index("stairs")))
        return
    if _EXIT.search(piece):
        # "out of the bedroom into the hallway": what is left is named first.
        found.append(Clause(c.EXIT, room=rooms[0] if rooms else 0))
        if len(rooms) > 1 and _ENTER.search(piece):
            found.append(Clause(c.ENTER, room=rooms[-1]))
        return
    if doors and (_ENTER.search(piece) or side or ordinal):
        found.append(Clause(c.ENTER, side=side, ordinal=ordinal, room=room))
        return
    hallway = room == ROOMS.index("hallway")
    if room and not hallway and _ENTER.search(piece) and thing < 0:
        through = re.search(r"\b(?:through|thru)\b", piece)
        kind = c.STRAIGHT if through else c.ENTER
        found.append(Clause(kind, side=side if kind == c.ENTER else 0, room=room))
        return
    if room and re.search(r"\b(?:into|enter|entering)\b", piece):
        found.append(Clause(c.ENTER, side=side, room=room))
        return
    if thing >= 0 and _PASS.search(piece):
        found.append(Clause(c.PASS, thing=thing))
        return
    if thing >= 0 and _TOWARDS.search(piece) and _MOVE.search(piece):
        found.append(Clause(c.APPROACH, thing=thing))
        return
    if room and _ALONG.search(piece):
        found.append(Clause(c.STRAIGHT, room=room))
        return
    if room and _TOWARDS.search(piece):
        found.append(Clause(c.ENTER, room=room))
        return
    if doors and _MOVE.search(piece):
        found.append(Clause(c.ENTER, side=side, ordinal=ordinal, room=room))
        return
    if _UNNAMED_ROOM.search(piece):
        found.append(Clause(c.ENTER, side=side))
        return
    # Also past, along or towards what has no name here: it is some way to walk.
    somewhere = _ALONG.search(piece) or _PASS.search(piece) or _TOWARDS.search(piece)
    if _STRAIGHT.search(piece) or (somewhere and _MOVE.search(piece)):
        found.append(Clause(c.STRAIGHT, room=room))


def _stop(rooms: list[int], things: list[int]) -> Clause:
    """A stop in a room, at a thing; at a door if nothing else is named."""
    named = [t for t in things if t != DOOR] or ([] if rooms else things)
    return Clause(c.STOP, room=rooms[-1] if rooms else 0, thing=named[0] if named else -1)


def _where(piece: str) -> tuple[int, int]:
    """Side and number of a door in a piece of text."""
    side = 0
    match = _SIDE.search(piece)
    if match:
        word = match[1] or match[2] or match[3]
        side = _DIRECTION[word] if word else c.END if match[5] else c.AHEAD
    number = _ORDINAL.search(piece)
    return side, _ORDINALS[number[1]] if number else 0
