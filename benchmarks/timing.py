"""Timing in rounds: every measure once a round, so that a slow moment of the machine hits all."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Measure = Callable[[], float]
"""Takes one measurement and returns it, as a rate or a time."""


def clock() -> float:
    """Processor time of this thread in seconds; the wall's where the system has no such clock."""
    try:
        return time.thread_time()
    except (AttributeError, OSError):
        return time.perf_counter()


@dataclass(frozen=True)
class Measured:
    """Measurements of one thing.

    Attributes:
        unit: of the values, such as ``steps/s``.
        values: one per round.
    """

    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)


def interleave(measures: Mapping[str, Measure], rounds: int) -> dict[str, tuple[float, ...]]:
    """Take every measure once a round, in an order that turns around from round to round.

    One more round comes first and is thrown away: it compiles and fills caches.
    """
    names = list(measures)
    values: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(rounds + 1):
        for name in names if round_ % 2 else reversed(names):
            with _quiet():
                value = measures[name]()
            if round_:
                values[name].append(value)
    return {name: tuple(found) for name, found in values.items()}


def ratio(above: Measured, below: Measured) -> float:
    """Median over the rounds of the ratio within a round."""
    pairs = zip(above.values, below.values, strict=True)
    return statistics.median(a / b for a, b in pairs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No garbage collection in the middle of a measurement."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def one_core() -> Iterator[bool]:
    """Keep this process on one core, where the system offers it; says whether it does."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(before)})
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
