"""How far a set of jobs is: one live line on a terminal, a line now and then in a log file."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from mpt_train.comparison.runner import Outcome, State
from mpt_train.comparison.tables import duration

Describe = Callable[[Outcome], str | None]

LOG_INTERVAL = 20.0
"""Seconds between two lines where the output is not a terminal."""


class Progress:
    """Shows a `State`; give `update` to `run_jobs` as its watcher.

    Args:
        describe: the text for a job that ended well; None shows nothing for it.
        stream: standard output by default.
        terminal: whether the live line may be rewritten; None asks the stream.
    """

    def __init__(
        self,
        describe: Describe | None = None,
        stream: TextIO | None = None,
        terminal: bool | None = None,
    ) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.terminal = self.stream.isatty() if terminal is None else terminal
        self._describe = describe or (lambda outcome: None)
        self._last = time.monotonic() - LOG_INTERVAL + 5.0
        self._width = 0

    def update(self, state: State, outcome: Outcome | None) -> None:
        """Show the state, and above it the job that has just ended."""
        if outcome is not None:
            if outcome.error is not None and not outcome.skipped:
                self.print(f"  FAILED {outcome.job.name}: {outcome.error}")
            elif outcome.error is None and (text := self._describe(outcome)):
                self.print(f"  {text} in {duration(outcome.seconds)}")
        now = time.monotonic()
        if self.terminal:
            self._rewrite(self.line(state))
        elif now - self._last >= LOG_INTERVAL and outcome is None:
            self._last = now
            self.print(self.line(state))

    def line(self, state: State) -> str:
        """The state in one line."""
        jobs = len(state.outcomes) + len(state.running) + len(state.waiting)
        running = ", ".join(
            f"{r.job.name} {100 * r.progress():.0f} %" if r.job.progress else r.job.name
            for r in state.running
        )
        gone, left = time.monotonic() - state.started, state.remaining()
        return (
            f"[{100 * state.share():3.0f} %] {duration(gone)} gone, about {duration(left)} left; "
            f"{len(state.outcomes)}/{jobs} jobs done" + (f"; now {running}" if running else "")
        )

    def print(self, text: str) -> None:
        """A line that stays."""
        self._rewrite("")
        self.stream.write(text + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Remove the live line."""
        self._rewrite("")

    def _rewrite(self, text: str) -> None:
        if not self.terminal:
            return
        columns = shutil.get_terminal_size((100, 24)).columns - 1
        text = text if len(text) <= columns else text[: columns - 1] + "…"
        blank = " " * max(0, self._width - len(text))
        self.stream.write(f"\r{text}{blank}\r{text}" if text or self._width else "")
        self._width = len(text)
        self.stream.flush()
