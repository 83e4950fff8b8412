"""Writes the pictures of an episode as an animated GIF.

::

    frames = []
    while env.agents:
        frames.append(env.render_as("rgb_array"))
        ...
    write_gif("episode.gif", frames)
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

#: Frames that the common palette is taken from; spread evenly over the episode.
_SAMPLES: Final = 12


def write_gif(
    path: str | os.PathLike[str],
    frames: Iterable[NDArray[np.uint8]],
    *,
    fps: float = 4.0,
    hold: float = 2.0,
) -> Path:
    """Write frames as a GIF that plays in a loop. All frames are held in memory until then.

    All frames share one palette of 256 colours, so that what does not change costs nothing. The
    file appears under its name only when it is complete.

    Args:
        path: of the file; its folder must exist. An existing file is replaced.
        frames: uint8 ``(H, W, 3)`` each, all of one shape, at least one.
        fps: frames a second, above 0, at most 50 (a GIF counts in hundredths of a second).
        hold: seconds that the last frame stays, at least 0.

    Returns:
        The path.

    Raises:
        ValueError: no frames, frames of another shape or type, or an `fps` or `hold` out of range.
        OSError: the file cannot be written.
    """
    if not 0 < fps <= 50:
        raise ValueError(f"fps must be above 0 and at most 50, got {fps!r}")
    if not 0 <= hold < 600:
        raise ValueError(f"hold must be 0 to 600 seconds, got {hold!r}")
    pictures: list[Image.Image] = []
    for index, frame in enumerate(frames):
        values = np.asarray(frame)
        if values.dtype != np.uint8 or values.ndim != 3 or values.shape[2] != 3:
            raise ValueError(
                f"frame {index} must be uint8 (H, W, 3), got {values.dtype} {values.shape}; "
                'draw it with render_mode="rgb_array"'
            )
        picture = Image.fromarray(values)
        if pictures and picture.size != pictures[0].size:
            raise ValueError(
                f"frame {index} is {picture.size} pixels large, the first one {pictures[0].size}"
            )
        pictures.append(picture)
    if not pictures:
        raise ValueError("there are no frames: collect at least one before writing")

    target = Path(path)
    # Checked before the work, and with a clearer message than the writer's.
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    palette = _palette(pictures)
    # With dithering, what stands still would flicker.
    mapped = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    step = max(20, round(100 / fps) * 10)
    durations = [step] * (len(mapped) - 1) + [max(step, round(100 * hold) * 10)]
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        mapped[0].save(
            partial,
            format="GIF",
            save_all=True,
            append_images=mapped[1:],
            duration=durations,
            loop=0,
            disposal=1,
            optimize=False,
        )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """A palette of 256 colours that fits frames from all over the episode."""
    count = min(_SAMPLES, len(pictures))
    chosen = [pictures[i * (len(pictures) - 1) // max(1, count - 1)] for i in range(count)]
    width, height = pictures[0].size
    sheet = Image.new("RGB", (width, height * count))
    for row, picture in enumerate(chosen):
        sheet.paste(picture, (0, row * height))
    return sheet.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
