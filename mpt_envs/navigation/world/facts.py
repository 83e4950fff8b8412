"""Roles, actions, and the words that rooms and things go by."""

from __future__ import annotations

import math
from typing import Final

# --- roles and actions --------------------------------------------------------------------------
ROLES: Final = ("turner", "mover", "stopper")
TURNER: Final = 0
MOVER: Final = 1
STOPPER: Final = 2

#: NaVILA's actions: turns in degrees, distances in centimetres.
TURN_ANGLES: Final = (15, 30, 45)
MOVE_LENGTHS: Final = (25, 50, 75)
ACTIONS: Final = {
    "turner": (
        *(f"turn_left_{angle}" for angle in TURN_ANGLES),
        *(f"turn_right_{angle}" for angle in TURN_ANGLES),
    ),
    "mover": tuple(f"move_forward_{length}" for length in MOVE_LENGTHS),
    "stopper": ("stop", "look_around"),
}
N_ACTIONS: Final = tuple(len(ACTIONS[role]) for role in ROLES)
TURN_LEFT: Final = 0  # + index into TURN_ANGLES
TURN_RIGHT: Final = 3
STOP: Final = 0
LOOK_AROUND: Final = 1

#: Primitive steps, as in VLN-CE: every action is a repetition of one of them.
STEP_ANGLE: Final = 15  # degrees
STEP_RADIANS: Final = math.pi / 180.0 * STEP_ANGLE
STEP_LENGTH: Final = 0.25  # metres
N_HEADINGS: Final = 360 // STEP_ANGLE
MAX_STEPS: Final = 500  # primitive steps after which an episode ends, as in VLN-CE
MAX_TURNS: Final = 64  # decisions, the game's default budget

# --- sight --------------------------------------------------------------------------------------
N_RAYS: Final = 24  # one per heading, all around
RAY_REACH: Final = 6.0  # metres
SIGHT: Final = 8.0  # metres from which things are recognised
FIELD_OF_VIEW: Final = 120.0  # degrees in which things are recognised
BODY_RADIUS: Final = 0.1  # metres; as in Habitat's VLN-CE

# --- rooms --------------------------------------------------------------------------------------
ROOMS: Final = (
    "unknown",
    "hallway",
    "living room",
    "kitchen",
    "dining room",
    "bedroom",
    "bathroom",
    "office",
    "laundry room",
    "closet",
    "gym",
    "library",
    "playroom",
    "garage",
    "entryway",
    "balcony",
)
N_ROOMS: Final = len(ROOMS)

# --- things -------------------------------------------------------------------------------------
THINGS: Final = (
    "door",
    "bed",
    "nightstand",
    "dresser",
    "wardrobe",
    "refrigerator",
    "stove",
    "sink",
    "counter",
    "toilet",
    "bathtub",
    "shower",
    "couch",
    "armchair",
    "coffee table",
    "television",
    "fireplace",
    "bookshelf",
    "piano",
    "dining table",
    "cabinet",
    "desk",
    "office chair",
    "washing machine",
    "treadmill",
    "pool table",
    "plant",
    "painting",
    "mirror",
    "clock",
    "lamp",
    "bench",
    "rug",
    "window",
    "stairs",
    "chair",
    "table",
    "shelf",
    "car",
)
N_THINGS: Final = len(THINGS)
DOOR: Final = 0
