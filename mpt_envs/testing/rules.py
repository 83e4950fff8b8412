"""The rules of the contract in words, and how a test says that one is broken."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Callable, Iterator
from typing import Any

RULES: dict[str, str] = {
    "spaces": "observations and actions lie in the declared spaces, which never change",
    "masks": "the agent that is to move never sees an all-zero mask; the mask names its phase, and "
    "its copy in infos is the same",
    "fresh arrays": "every observation and mask is a new array that nobody else holds",
    "observe anytime": "any possible agent can be observed at any time after a reset, at no effect",
    "one observation a turn": "an agent observes the same vector in both phases of a turn",
    "sealed bids": "nothing that can be read before the auction resolves depends on a bid of the "
    "running turn",
    "auction": "the highest bid wins, ties are broken at random, and the record says so",
    "skipped turn": "if all bid 0 nobody acts and the turn counts",
    "team reward": "every agent receives the team's reward, and the rewards add up to the return",
    "ends": "all agents end in the same step with the same single flag, at the latest when the "
    "turn budget is used up",
    "illegal action": "a masked action is a counted no-op or raises; one of a wrong type always "
    "raises; one that raises changes nothing",
    "determinism": "seed, episode and actions fix the whole episode: no global or shared "
    "generator, no memory of earlier episodes",
    "episodes": "reset() without a seed starts the next episode of the last seed",
    "exact snapshot": "a restored snapshot has exactly the same future, in any environment and any "
    "process",
    "immutable snapshot": "a snapshot is a value: hashable, picklable, unchanged by what happens "
    "later",
    "foreign snapshot": "a corrupt or foreign snapshot raises SnapshotError and changes nothing",
    "clone": "a clone has the same future and shares nothing",
    "reseed": "reseed replaces the random key for future draws and nothing else",
    "text": "an agent can be played as text: a prompt, and action names that parse back; what "
    "cannot be read gives a ParseError value",
    "render": "every render mode gives a picture and changes nothing",
    "metrics": "metrics are finite floats, readable at any time and in the last infos",
    "expert": "an expert bids in [0, 1] and proposes legal actions, at no effect",
    "agents": "agents are named role_i, in a fixed order",
    "api": "PettingZoo's own api_test passes",
    "vector": "native and lockstep vector games give the same trajectories and snapshots",
}
"""The contract, rule by rule; failures quote it."""


def check(condition: object, rule: str, detail: str) -> None:
    """Raise an AssertionError that names the broken rule unless ``condition`` holds."""
    if not condition:
        raise AssertionError(f"broken rule '{rule}' ({RULES[rule]}): {detail}")


@contextlib.contextmanager
def under(rule: str, detail: str) -> Iterator[None]:
    """Turn any exception into a failure of the rule."""
    try:
        yield
    except (AssertionError, unittest.SkipTest):
        raise
    except Exception as error:
        raise AssertionError(
            f"broken rule '{rule}' ({RULES[rule]}): {detail}: {type(error).__name__}: {error}"
        ) from error


def must_raise(error: type[Exception], rule: str, what: str, call: Callable[[], Any]) -> None:
    """Fail the rule unless the call raises the error, with a message."""
    try:
        call()
    except error as raised:
        check(str(raised), rule, f"{what} raises {error.__name__} without a message")
    except Exception as other:
        check(False, rule, f"{what} raises {type(other).__name__} ({other})")
    else:
        check(False, rule, f"{what} is accepted; expected {error.__name__}")
