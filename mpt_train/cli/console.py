"""What the commands share: how errors and interruptions look, and small helpers for output."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mpt_train.errors import TrainingInterrupted, UsageError, is_out_of_memory
from wrappers.errors import MarketError

DEBUG = "MPT_DEBUG"
"""Environment variable that, set to 1, shows the traceback of an error; ``--debug`` sets it."""

BARS = "▁▂▃▄▅▆▇█"


def run(command: Callable[[], int]) -> int:
    """Run a command and turn what it raises into a message and an exit code.

    Returns:
        The command's exit code; 1 if it failed, 2 if what was asked for cannot be done, 128 plus
        the signal's number (130 for Ctrl-C) if it was interrupted.
    """
    try:
        code = command()
        # Here, where an error can still be told, and not when Python ends.
        sys.stdout.flush()
        return code
    except TrainingInterrupted as stopped:
        say(_interrupted(stopped))
        return 128 + stopped.signal_number
    except KeyboardInterrupt as stopped:
        # Some say how to go on.
        say(f"\n{stopped}" if str(stopped) else "\nInterrupted.")
        return 130
    except BrokenPipeError:
        # The reader of a pipe (`mpt play ... | head`) has seen enough. Python would complain once
        # more when it flushes on exit.
        _drop_output()
        return 141
    except MarketError as error:
        # Before Python's own kinds: every one of these is also a RuntimeError, OSError or the like.
        if os.environ.get(DEBUG) == "1":
            raise
        say(f"mpt: {error}")
        return 2 if _is_usage(error) else 1
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        why = str(error).strip().partition("\n")[0]
        say(f"mpt: there is not enough memory for this: {why}; try fewer worlds or smaller sizes")
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        what = "the output" if error.filename is None else error.filename
        say(f"mpt: {what} cannot be written: {error.strerror}; make room, then try again")
        _drop_output()
        return 1


def _drop_output() -> None:
    """Forget what is still to be printed, so that Python does not try again when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """In this block ValueError and TypeError come from what the user asked for."""
    try:
        yield
    except MarketError:
        raise
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error


def say(text: str) -> None:
    """Print to standard error, which is for people; standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def resume_command(folder: Path) -> str:
    """The command that continues a run."""
    return f"mpt train --resume --folder {folder}"


def bars(values: Sequence[float]) -> str:
    """Numbers from 0 to 1 as a row of little bars."""
    top = len(BARS) - 1
    return "".join(BARS[min(top, max(0, round(value * top)))] for value in values)


def number(value: float) -> str:
    """A number for people: three digits or more, no exponent where it can be avoided."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if abs(value) >= 100 or value == int(value):
        return f"{value:.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:.3g}"


def table(rows: Mapping[str, str] | Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Names and texts in two aligned columns."""
    pairs = list(rows.items() if isinstance(rows, Mapping) else rows)
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{indent}{name:<{width}}  {text}".rstrip() for name, text in pairs)


def _is_usage(error: MarketError) -> bool:
    # By name: the registry's own errors come without importing it.
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names & {"UsageError", "UnknownTaskError", "MissingBackendError", "MissingCapabilityError"}
    )


def _interrupted(stopped: TrainingInterrupted) -> str:
    when = f"after step {stopped.step}" if stopped.saved else "in the cold start"
    if stopped.folder is None:
        return f"Stopped {when}."
    kept = "the checkpoint is complete. Continue" if stopped.saved else "it has to begin again,"
    return f"Stopped {when}; {kept} with\n  {resume_command(stopped.folder)}"
