"""Golden playthroughs of the floorplans: the committed files are what is played now."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpt_envs.playthroughs import FOLDER, PLAYERS, Player, file_name, playthrough

ROOT = Path(__file__).resolve().parents[3]
ID = "navigation/floorplan-v0"


@pytest.mark.parametrize("player", PLAYERS)
def test_played_as_committed(player: Player) -> None:
    path = ROOT / FOLDER / file_name(ID, player)
    assert path.is_file(), f"{path.name} is missing: python -m mpt_envs.playthroughs {ID} --write"
    expected = path.read_text(encoding="utf-8").splitlines()
    actual = playthrough(ID, player).splitlines()
    for number, (old, new) in enumerate(zip(expected, actual, strict=False), 1):
        assert old == new, (
            f"{path.name} is no longer what is played, from line {number} on. If that was meant: "
            f"python -m mpt_envs.playthroughs {ID} --write, and read the diff"
        )
    assert len(expected) == len(actual)
