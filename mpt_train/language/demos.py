r"""Demonstrations as chat: what each agent reads and should answer, turn by turn.

Episodes of the scripted expert are recorded as moves (`mpt_train.demonstrations`); here they are
played again in the text game, and what agents read is written down beside what they do. As JSON
lines, one object an answer::

    {"prompt": [{"role": "system", "content": ...}, {"role": "user", "content": ...}],
     "completion": [{"role": "assistant", "content": "{\"bid\": 0.7}"}],
     "task": ..., "agent": "logger_0", "role": "logger", "phase": "bid", "seed": ..., "turn": 0}

which is the conversational prompt-completion format of TRL: its supervised trainer learns from the
completion only. ``messages`` instead of ``prompt`` and ``completion`` is read as well. Without a
``phase`` it follows from the answer, where that leaves no doubt: ``{"bid": ...}`` or a fraction is
a bid, ``{"action": ...}`` or words without a digit are an action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_train.language.answers import Form, bid_text, option_text
from mpt_train.language.errors import DemonstrationError
from mpt_train.language.game import TextVectorGame
from mpt_train.records import Batch
from mpt_train.runs.files import replacing

PHASES = ("bid", "act")
_FRACTION = re.compile(r"\s*(?:0?\.[0-9]+|[01]\.0+)\s*")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Example:
    """One demonstrated answer.

    Attributes:
        agent, role, phase: who, and "bid" or "act".
        seed, turn: of the episode.
        system, user, answer: the messages.
        picture: what is shown besides, or None.
        user_forms: the user message with less and less history.
        where: line and file that it was read from; "": it was played.
    """

    agent: str
    role: str
    phase: str
    seed: int
    turn: int
    system: str
    user: str
    answer: str
    picture: NDArray[np.uint8] | None = None
    user_forms: tuple[str, ...] = ()
    where: str = ""


def replay(
    game: TextVectorGame,
    batch: Batch,
    seeds: NDArray[np.int64],
    form: Form,
    *,
    history: int = 0,
    bids: bool = True,
    pictures: bool = False,
) -> Iterator[Example]:
    """Play recorded episodes again and yield every answer that they hold.

    Args:
        game: of the task and with as many worlds; it is reset.
        batch: the record.
        seeds: of its worlds.
        form: of the answers.
        history: how many past turns the user message tells at most.
        bids: whether bids are wanted.
        pictures: add pictures.
    """
    game.reset(seeds)
    levels = [float(x) for x in game.bid_levels]
    systems = [game.profile(agent) for agent in range(game.num_agents)]

    def example(row: int, agent: int, phase: str, turn: int, answer: str) -> Example:
        text = game.prompt(row, agent)
        past = game.history[row][-history:] if history else ()
        forms = []
        for start in range(len(past)):
            lines = "\n".join(told.line() for told in past[start:])
            forms.append(f"What happened:\n{lines}\n\n{text}")
        forms.append(text)
        return Example(
            agent=game.possible_agents[agent],
            role=game.roles[agent],
            phase=phase,
            seed=int(seeds[row]),
            turn=turn,
            system=systems[agent],
            user=forms[0],
            answer=answer,
            picture=game.picture(row) if pictures else None,
            user_forms=tuple(forms),
        )

    step = 0
    while game.active.any():
        rows = np.flatnonzero(game.active).tolist()
        present = game.present()
        for row in rows:
            for agent in range(game.num_agents):
                if bids and present[row, agent]:
                    words = bid_text(levels[int(batch.bids[step, row, agent])], form)
                    yield example(row, agent, "bid", step, words)
        game.auction(batch.bids[step])
        for row in rows:
            winner = int(batch.winners[step, row])
            if winner >= 0:
                name = game.action_names[winner][int(batch.actions[step, row])]
                yield example(row, winner, "act", step, option_text(name, form))
        game.act(np.maximum(batch.actions[step], 0))
        step += 1


def to_json(example: Example, task: str) -> dict[str, Any]:
    """An example as a line of the file (see the top of this file)."""
    return {
        "prompt": [
            {"role": "system", "content": example.system},
            {"role": "user", "content": example.user},
        ],
        "completion": [{"role": "assistant", "content": example.answer}],
        "task": task,
        "agent": example.agent,
        "role": example.role,
        "phase": example.phase,
        "seed": example.seed,
        "turn": example.turn,
    }


def write(examples: Iterable[Example], path: Path, task: str) -> int:
    """Write examples as JSON lines; returns their number.

    Raises:
        OSError: the disk is full, ...; a file that was there before is as it was.
    """
    count = 0
    with replacing(path) as file:
        for example in examples:
            line = json.dumps(to_json(example, task), ensure_ascii=False) + "\n"
            file.write(line.encode())
            count += 1
    return count


def read(path: Path) -> list[Example]:
    """Examples from a file of JSON lines.

    Raises:
        DemonstrationError: there is no such file, or a line is no demonstration.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DemonstrationError(
            f"the demonstrations {path} cannot be read: {error}; `mpt demos` writes some"
        ) from error
    examples = []
    # Only this ends a line of JSON lines: within a string there may be other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            examples.append(_example(line, f"line {number} of {path}"))
    if not examples:
        raise DemonstrationError(f"{path} holds no demonstrations; `mpt demos` writes some")
    return examples


def _example(line: str, where: str) -> Example:
    try:
        value = json.loads(line)
        texts = _messages(value)
        names = {name: value.get(name, "") for name in ("agent", "role", "phase")}
        if not all(isinstance(text, str) for text in (*texts.values(), *names.values())):
            raise TypeError("a message or name is no text")
        for text in (*texts.values(), *names.values()):
            # Half a surrogate pair is no text, and no tokenizer takes it.
            text.encode()
        seed, turn = _whole(value.get("seed", 0), "seed"), _whole(value.get("turn", 0), "turn")
        user, answer = texts["user"], texts["assistant"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DemonstrationError(
            f"{where} is no demonstration ({error!r}): it needs prompt and completion, or messages"
        ) from error
    if not (names["agent"] or names["role"]):
        raise DemonstrationError(f"{where} does not say whose answer it is: agent, or role")
    names["phase"] = names["phase"] or _phase_of(answer)
    if names["phase"] not in PHASES:
        said = f"its phase is {names['phase']!r}" if names["phase"] else "it has no phase"
        raise DemonstrationError(
            f"{where} does not say whether {answer[:60]!r} is a bid or an action ({said}): it "
            'needs "phase": "bid" or "phase": "act"'
        )
    return Example(
        **names,
        seed=seed,
        turn=turn,
        system=texts.get("system", ""),
        user=user,
        answer=answer,
        where=where,
    )


def _messages(value: Any) -> dict[str, Any]:
    """What each of system, user and assistant says.

    Raises:
        ValueError: one of them speaks twice, or somebody else does: that is not a prompt here.
    """
    messages = value.get("messages")
    if messages is None:
        messages = [*value["prompt"], *value["completion"]]
    texts: dict[str, Any] = {}
    for message in messages:
        role = message["role"]
        if role in texts or role not in ("system", "user", "assistant"):
            raise ValueError(f"one message each of system, user and assistant, not another {role}")
        texts[role] = message["content"]
    return texts


def _whole(value: Any, name: str) -> int:
    """A whole number from 0, also where a tool has written it as 3.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is no whole number")
    return value


def _phase_of(answer: str) -> str:
    """The phase of an answer; "" where it is in doubt, e.g. of 1, a bid or the action 1."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        found = [phase for key, phase in (("bid", "bid"), ("action", "act")) if key in value]
        return found[0] if len(found) == 1 else ""
    if _FRACTION.fullmatch(answer):
        return "bid"
    return "" if not answer.strip() or _DIGIT.search(answer) else "act"
