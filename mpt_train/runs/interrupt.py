"""Stopping a run that is under way: Ctrl-C, or the signal of a cluster's scheduler.

::

    with graceful_interrupt() as stop:
        while not done:
            stop.check()
            step()

Whatever takes long polls the request at moments at which it can be left: between the turns of a
rollout, between mini-batches of the cold start. What it raises, `StopRequested`, is caught where
it is known what is to be kept. The program around it decides whether signals set the request; a
library that calls the loop passes none, and Ctrl-C is the usual `KeyboardInterrupt`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

MESSAGE = (
    "\nStopping, with a checkpoint of the steps that are done. (Ctrl-C again quits at once and "
    "loses those since the last checkpoint.)\n"
)


class StopRequested(Exception):
    """Work was left because somebody asked to stop."""


class StopRequest:
    """A flag that asks work to be left.

    Attributes:
        requested: whether somebody asked.
        signal_number: the signal that did; 2 (SIGINT) if it was a call of `request`.
    """

    def __init__(self) -> None:
        self.requested = False
        self.signal_number = int(signal.SIGINT)

    def request(self, signal_number: int = signal.SIGINT) -> None:
        """Ask to stop."""
        self.requested = True
        self.signal_number = int(signal_number)

    def check(self) -> None:
        """Go on, or not.

        Raises:
            StopRequested: somebody asked.
        """
        if self.requested:
            raise StopRequested


@contextlib.contextmanager
def graceful_interrupt(message: str = MESSAGE) -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a `StopRequest`; the second raises at once.

    The second one raises `KeyboardInterrupt`. The previous handlers are back after the block. In
    any thread but the main one signals cannot be handled, and the request is never set.

    Args:
        message: is written to standard error at the first signal.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(signal_number: int, frame: FrameType | None) -> None:
        if stop.requested:
            stop.signal_number = signal_number
            raise KeyboardInterrupt
        stop.request(signal_number)
        # os.write: the signal may have come in the middle of a print, whose lock is taken.
        with contextlib.suppress(OSError):
            os.write(2, message.encode())

    handled = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, handle) for number in handled]
    try:
        yield stop
    finally:
        for number, handler in zip(handled, previous, strict=True):
            # None: the handler was not installed from Python and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
