"""Jobs for the tests of the runner; workers import this module by its name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def double(value: int) -> int:
    return 2 * value


def fail(message: str) -> None:
    raise ValueError(message)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def note(folder: str, name: str, seconds: float = 0.0) -> int:
    """Append one's name to a file, and say which process this is."""
    with open(Path(folder) / "order.txt", "a", encoding="utf-8") as file:
        file.write(name + "\n")
    time.sleep(seconds)
    return os.getpid()


def threads() -> tuple[int, str]:
    import torch

    return torch.get_num_threads(), os.environ["NUMBA_NUM_THREADS"]


def wait_for_stop(folder: str) -> None:
    """Work until asked to stop, then leave a file as a training run leaves a checkpoint."""
    place = Path(folder)
    try:
        (place / f"started-{os.getpid()}").touch()
        time.sleep(120)
    except KeyboardInterrupt:
        (place / f"kept-{os.getpid()}").touch()
        raise
