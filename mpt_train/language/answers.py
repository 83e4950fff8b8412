"""How answers are written: the form of demonstrations and of the options to choose from.

============  ======================  ==========================
form          a bid                   an action
============  ======================  ==========================
``json``      ``{"bid": 0.7}``        ``{"action": "chop_log"}``
``plain``     ``0.7``                 ``chop_log``
============  ======================  ==========================

What is *read* is much more than what is written: see `wrappers.bid_text` for bids and
`mpt_envs.answers` for actions, and `docs/language_models.md` for both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

Form = Literal["json", "plain"]


def bid_text(bid: float, form: Form) -> str:
    """A bid as an agent should write it."""
    return f'{{"bid": {bid:g}}}' if form == "json" else f"{bid:g}"


def bid_options(levels: Sequence[float], form: Form) -> list[str]:
    """All bids that can be made, in the order of the levels."""
    return [bid_text(level, form) for level in levels]


def option_text(action: str, form: Form) -> str:
    """An action as an agent should write it."""
    return json.dumps({"action": action}) if form == "json" else action
