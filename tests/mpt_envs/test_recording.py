"""Animated GIFs: the frames come back, bad input is refused, nothing half written is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from mpt_envs.recording import write_gif


def frames(count: int, height: int = 20, width: int = 30) -> list[np.ndarray]:
    """A white square that moves over a coloured ground."""
    found = []
    for index in range(count):
        frame = np.full((height, width, 3), (20, 90, 160), np.uint8)
        frame[4:8, index : index + 4] = 255
        found.append(frame)
    return found


def test_frames_come_back(tmp_path: Path) -> None:
    shown = frames(10)
    path = write_gif(tmp_path / "episode.gif", iter(shown), fps=5, hold=1.5)
    assert path == tmp_path / "episode.gif"
    with Image.open(path) as picture:
        assert picture.format == "GIF"
        assert picture.info["loop"] == 0
        durations, read = [], []
        for frame in ImageSequence.Iterator(picture):
            durations.append(frame.info["duration"])
            read.append(np.asarray(frame.convert("RGB")))
    assert durations == [200] * 9 + [1500]
    assert len(read) == 10
    for before, after in zip(shown, read, strict=True):
        np.testing.assert_allclose(before.astype(int), after.astype(int), atol=3)


def test_the_same_frames_give_the_same_file(tmp_path: Path) -> None:
    first = write_gif(tmp_path / "a.gif", frames(5)).read_bytes()
    assert write_gif(tmp_path / "b.gif", frames(5)).read_bytes() == first


def test_one_frame_is_enough(tmp_path: Path) -> None:
    with Image.open(write_gif(tmp_path / "one.gif", frames(1))) as picture:
        assert picture.size == (30, 20)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "there are no frames"),
        ([np.zeros((4, 4, 3))], "frame 0 must be uint8"),
        ([np.zeros((4, 4), np.uint8)], "frame 0 must be uint8"),
        ([np.zeros((4, 4, 4), np.uint8)], "frame 0 must be uint8"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5, 3), np.uint8)], "frame 1 is"),
    ],
)
def test_bad_frames(tmp_path: Path, bad: list[np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_gif(tmp_path / "bad.gif", bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("speed", [{"fps": 0}, {"fps": 51}, {"fps": float("nan")}, {"hold": -1}])
def test_bad_speed(tmp_path: Path, speed: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        write_gif(tmp_path / "bad.gif", frames(2), **speed)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_gif(tmp_path / "none" / "episode.gif", frames(2))


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gif(tmp_path / "episode.gif", frames(3))
    before = path.read_bytes()
    real = Image.Image.save

    def full(self: Image.Image, fp: Path, **options: object) -> None:
        real(self, fp, **options)
        raise OSError("no space left")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(OSError, match="no space left"):
        write_gif(path, frames(5))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
