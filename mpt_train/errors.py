"""Errors that users of the trainer meet. Each message says what to do about it."""

from __future__ import annotations

from pathlib import Path

from wrappers.errors import MarketError


class CheckpointError(MarketError, OSError):
    """A checkpoint is missing, incomplete, changed, of another version, or cannot be written."""


class RunFolderError(MarketError, OSError):
    """A run folder cannot be used: not writable, taken by another run, in use, or no run at all."""


class DivergedError(MarketError, ArithmeticError):
    """Training cannot go on, because a loss or gradient is not a finite number."""


class LogError(MarketError, OSError):
    """The log of a run cannot be written or read."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training stopped on request, with a checkpoint of the steps that are done.

    It is a `KeyboardInterrupt`, so that a program that runs several trainings ends as a user who
    pressed Ctrl-C expects.

    Args:
        folder: the run folder, or None if the run has none (then nothing was kept).
        step: the number of training steps that are done.
        signal_number: the signal that asked for it: 2 is Ctrl-C, 15 is `kill`.
        saved: whether there is a checkpoint; there is none before the end of the cold start, which
            a resumed run begins again.
    """

    def __init__(
        self, folder: Path | None, step: int, signal_number: int = 2, saved: bool = True
    ) -> None:
        self.folder = folder
        self.step = step
        self.signal_number = signal_number
        self.saved = saved
        when = f"after step {step}" if saved else "in the cold start"
        keeps = saved and folder is not None
        kept = f"the checkpoint is in {folder}" if keeps else "nothing was kept"
        super().__init__(f"training stopped {when}; {kept}")


class UsageError(MarketError, ValueError):
    """What was asked for on the command line, or in a configuration, cannot be done."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory has run out, the computer's or an accelerator's.

    PyTorch's errors are known by their words: the one of the CPU is a plain `RuntimeError`.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and any(
        words in text for words in ("can't allocate memory", "not enough memory", "out of memory")
    )
