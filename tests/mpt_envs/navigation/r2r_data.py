"""Where the real R2R-CE files are, and small made-up ones in the same format.

The folder that holds `r2r_ce` is named by the environment variable ``MPT_DATA``; without it the
folder ``shared/data`` beside the checkout is tried.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("MPT_DATA", ROOT.parent / "shared" / "data")) / "r2r_ce"

needs_r2r = pytest.mark.skipif(
    not (DATA / "val_unseen.json.gz").is_file(),
    reason="the R2R-CE files are not at hand; name the folder that holds r2r_ce in MPT_DATA",
)

# A small house: a hall along x, a room to its north, stairs up to a loft over the hall.
NODES = {
    "hall_w": [0.0, 0.1, 0.0],
    "hall_m": [3.0, 0.1, 0.0],
    "hall_e": [6.0, 0.1, 0.0],
    "room": [3.0, 0.1, -3.5],
    "stairs": [8.5, 1.6, 0.0],
    "landing": [8.5, 2.6, -1.8],
    "loft": [4.0, 2.9, -0.2],
    "cellar": [20.0, -3.0, 20.0],
    "cellar_b": [22.0, -3.0, 20.0],
}
EDGES = [
    ("hall_w", "hall_m"),
    ("hall_m", "hall_e"),
    ("hall_m", "room"),
    ("hall_e", "stairs"),
    ("stairs", "landing"),
    ("landing", "loft"),
    ("cellar", "cellar_b"),
]
ROUTES = {
    # id: nodes of the reference path, heading in degrees, instruction
    "1": (["hall_w", "hall_m", "room"], 270, "Walk down the hall and turn left into the room."),
    "2": (["hall_w", "hall_m", "hall_e"], 90, "Turn around, and walk to the end of the hall."),
    "7": (["hall_m", "hall_e", "stairs", "landing", "loft"], 270, "Go up to the loft."),
    "9": (["room", "hall_m", "hall_w"], 180, "Leave the room. Turn right. Stop at the wall."),
}


def graph() -> dict[str, Any]:
    """The house as the content of a file of a graph."""
    edges = {
        f"edge_{i}": {"nodes": [a, b], "start_coor": NODES[a], "end_coor": NODES[b]}
        for i, (a, b) in enumerate(EDGES)
    }
    return {"nodes": {name: [*at] for name, at in NODES.items()}, "edges": edges}


def episode(id: str, scan: str = "house") -> dict[str, Any]:
    nodes, degrees, text = ROUTES[id]
    path = [list(NODES[node]) for node in nodes]
    length = sum(math.dist(a, b) for a, b in itertools.pairwise(path))
    half = math.radians(degrees) / 2
    return {
        "episode_id": int(id),
        "trajectory_id": 10 + int(id),
        "scene_id": f"mp3d/{scan}/{scan}.glb",
        "start_position": path[0],
        "start_rotation": [0, math.sin(half), 0, math.cos(half)],
        "info": {"geodesic_distance": length},
        "goals": [{"position": path[-1], "radius": 3.0}],
        "instruction": {"instruction_text": text, "instruction_tokens": [1, 2]},
        "reference_path": path,
    }


def truth(id: str) -> dict[str, Any]:
    path = [NODES[node] for node in ROUTES[id][0]]
    return {"locations": path, "actions": [1] * (len(path) - 1) + [0], "forward_steps": len(path)}


def write_json(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def write_house(folder: Path, split: str = "val_unseen") -> Path:
    """Write the small house and its episodes as R2R-CE files; returns the folder."""
    write_json(
        folder / f"{split}.json.gz",
        {"episodes": [episode(name) for name in ROUTES], "instruction_vocab": {}},
    )
    write_json(folder / f"{split}_gt.json.gz", {name: truth(name) for name in ROUTES})
    write_json(folder / "graphs" / "house.json.gz", graph())
    return folder
