"""Requests to stop that come at a chosen moment."""

from __future__ import annotations

import sys

from mpt_train.runs.interrupt import StopRequest


class StopAfter(StopRequest):
    """A request that comes after so many polls."""

    def __init__(self, polls: int) -> None:
        self.polls = polls
        super().__init__()

    @property
    def requested(self) -> bool:
        self.polls -= 1
        return self.polls < 0

    @requested.setter
    def requested(self, value: bool) -> None:
        pass


class StopIn(StopRequest):
    """A request that comes where these functions have called one another.

    Args:
        names: of functions, all of which are under way then.
        skip: how often it is let pass.
    """

    def __init__(self, *names: str, skip: int = 0) -> None:
        self.names = set(names)
        self.skip = skip
        super().__init__()

    @property
    def requested(self) -> bool:
        frame, running = sys._getframe(), set()
        while frame := frame.f_back:  # type: ignore[assignment]
            running.add(frame.f_code.co_name)
        self.skip -= self.names <= running
        return self.skip < 0

    @requested.setter
    def requested(self, value: bool) -> None:
        pass
