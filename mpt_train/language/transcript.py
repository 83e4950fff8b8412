"""What was asked and answered in a batch of episodes, for learning and for reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpt_train.language.chat import Tokens


class Key(NamedTuple):
    """Where an answer belongs.

    Attributes:
        phase: "bid" or "act".
        episode: the episode's random key.
        turn: of the episode.
        agent: index of the agent.
    """

    phase: str
    episode: int
    turn: int
    agent: int


@dataclass
class Answer:
    """One answer of one agent.

    Attributes:
        agent: index.
        prompt: token ids of the prompt.
        tokens: token ids of the answer, the one that ends it included.
        log_prob: of the whole answer when it was drawn.
        text: what it says.
        choice: bid level or action that it was read as; -1: none.
        error: kind of the parse error; "": none.
        options: where it was chosen among options: all of them, ``tokens`` being one.
        picture: what was shown besides, or None.
    """

    agent: int
    prompt: Tokens
    tokens: Tokens
    log_prob: float
    text: str
    choice: int = -1
    error: str = ""
    options: tuple[Tokens, ...] = ()
    picture: NDArray[np.uint8] | None = None

    @property
    def words(self) -> int:
        """Number of words of the answer, at least 1."""
        return max(1, len(self.text.split()))

    @property
    def chosen(self) -> int:
        """Which of the options it is."""
        return next(i for i, o in enumerate(self.options) if np.array_equal(o, self.tokens))


@dataclass
class Transcript:
    """All answers of a batch of episodes."""

    answers: dict[Key, Answer] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    """Number of answers, by phase."""
    unread: dict[str, int] = field(default_factory=dict)
    """Number of answers that could not be read or were illegal, by "phase/kind"."""

    def add(self, key: Key, answer: Answer) -> None:
        """Write an answer down."""
        self.answers[key] = answer
        self.count(key.phase, answer.error)

    def count(self, phase: str, error: str) -> None:
        """Count an answer that was drawn, also one that is drawn again."""
        self.asked[phase] = self.asked.get(phase, 0) + 1
        if error:
            name = f"{phase}/{error}"
            self.unread[name] = self.unread.get(name, 0) + 1

    def of(self, phase: str) -> Iterator[tuple[Key, Answer]]:
        """The answers of a phase, in the order in which they were given."""
        for key, answer in self.answers.items():
            if key.phase == phase:
                yield key, answer

    def valid_share(self, phase: str) -> float:
        """Share of the answers of a phase that could be read and were legal."""
        asked = self.asked.get(phase, 0)
        failed = sum(n for name, n in self.unread.items() if name.startswith(f"{phase}/"))
        return 1.0 - failed / asked if asked else float("nan")

    def statistics(self) -> dict[str, Any]:
        """For the log."""
        answers = self.answers.values()
        return {
            "valid_bids": self.valid_share("bid"),
            "valid_actions": self.valid_share("act"),
            "unread": dict(self.unread),
            "prompt_tokens": float(np.mean([len(a.prompt) for a in answers])) if answers else 0.0,
            "answer_tokens": float(np.mean([len(a.tokens) for a in answers])) if answers else 0.0,
        }
