"""Messages to tokens: chat templates, prompts within a budget, and text that cannot pose as markup.

A prompt is two messages, system (who the agent is) and user (what is to be decided). Where a model
has a chat template it is used, else `FALLBACK`. A template that has no system message gets one in
front of the user's.

What is told may contain anything, e.g. a document of a corpus with the markup of some chat template
in it. `Chat` breaks every special token of the tokenizer that occurs in a message, and every mark
of a role that the template writes as ordinary text ("### user", "USER:"), so that no text can end
its own message and begin another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_train.language.errors import ModelNotFoundError

FALLBACK = (
    "{% for message in messages %}### {{ message['role'] }}\n{{ message['content'] }}\n\n"
    "{% endfor %}{% if add_generation_prompt %}### assistant\n{% endif %}"
)
"""Chat template for tokenizers that have none."""
CUT = "\n[...]\n"
_SYSTEM, _USER = "\u2402SYSTEM\u2403", "\u2402USER\u2403"
_PICTURE = "\u2402PICTURE\u2403"
_PROBE = re.compile("\u2402[A-Z]+\u2403")

Tokens = NDArray[np.int32]


class Chat:
    """Renders and tokenizes prompts and answers for one tokenizer.

    Args:
        tokenizer: a transformers tokenizer.
        stop: id of the token that ends an answer.
        max_tokens: longest prompt.
        name: of the model, for messages.

    Raises:
        ModelNotFoundError: the tokenizer's chat template is broken.
    """

    def __init__(
        self, tokenizer: Any, stop: int, max_tokens: int, name: str = "this model"
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.stop = stop
        self.max_tokens = max_tokens
        self._specials = sorted(
            {str(t) for t in tokenizer.all_special_tokens}
            # Not all added tokens: some tokenizers add runs of spaces or line breaks.
            | {t.content for t in tokenizer.added_tokens_decoder.values() if t.special},
            key=len,
            reverse=True,
        )
        if tokenizer.chat_template is None:
            tokenizer.chat_template = FALLBACK
        text = self._apply(_SYSTEM, _USER)
        if _SYSTEM[1:-1] not in text or _USER[1:-1] not in text:
            raise ModelNotFoundError(
                f"the chat template of {name} does not write what it is given, only "
                f"{text[:200]!r}; agents would read nothing"
            )
        self._marks = self._find_marks()
        self._parts = self._take_apart()

    # -- prompts -----------------------------------------------------------------------------

    def safe(self, text: str) -> str:
        """The text with every special token and mark of a role in it broken by a space."""
        for token in self._specials:
            if len(token) > 1 and token in text:
                text = text.replace(token, _broken(token))
        # More than once, where marks overlap.
        for _ in range(4):
            if self._marks is None or not self._marks.search(text):
                break
            text = self._marks.sub(lambda found: _broken(found[0]), text)
        return text

    def render(self, system: str, user: str) -> str:
        """A prompt as the template writes it, up to where the answer begins."""
        system, user = self.safe(system), self.safe(user)
        if self._parts is not None and system:
            before, between, after = self._parts
            return f"{before}{system}{between}{user}{after}"
        return self._apply(system, user)

    def encode(self, system: str, users: Sequence[str], picture: Tokens | None = None) -> Tokens:
        """Token ids of a prompt of at most ``max_tokens``.

        Args:
            system: of the system message; empty: none.
            users: forms of the user message, the fullest first; the first that fits is taken. If
                none does, the last one loses its middle.
            picture: tokens that stand for a picture, which goes in front of the user message.

        Raises:
            ValueError: not even a prompt without text fits.
        """
        if picture is not None:
            return self._encode_with(system, users, picture)
        ids: Tokens = np.zeros(0, np.int32)
        for user in users:
            ids = self._ids(self.render(system, user))
            if len(ids) <= self.max_tokens:
                return ids
        user = users[-1]
        keep = len(user)
        while len(ids) > self.max_tokens and keep > 16:
            keep = int(keep * min(0.9, 0.98 * self.max_tokens / len(ids)))
            half = keep // 2
            ids = self._ids(self.render(system, user[:half] + CUT + user[-half:]))
        # A system message alone may be too long; its end and the whole question are kept.
        return ids[-self.max_tokens :]

    def _encode_with(self, system: str, users: Sequence[str], picture: Tokens) -> Tokens:
        """A prompt with a picture: the tokens before it, its own, and those after it."""
        room = self.max_tokens - len(picture)
        text = ""
        for user in users:
            text = self.render(system, f"{_PICTURE}\n{user}")
            if len(self._ids(text)) <= room:
                break
        before, _, after = text.partition(_PICTURE)
        first, last = self._ids(before), self._ids(after)
        if len(first) >= room:
            raise ValueError(
                f"a picture takes {len(picture)} tokens and what is told before it {len(first)}; "
                f"language.max_prompt_tokens = {self.max_tokens} has no room for a question"
            )
        return np.concatenate([first, picture, last[-(room - len(first)) :]])

    def encode_answer(self, text: str) -> Tokens:
        """Token ids of an answer, with the token that ends it."""
        ids = self._ids(self.safe(text))
        return np.append(ids, np.int32(self.stop))

    def decode(self, ids: Tokens) -> str:
        """The text of an answer, without special tokens."""
        text: str = self.tokenizer.decode(ids.tolist(), skip_special_tokens=True)
        return text

    def shared_prefix(self, system: str) -> Tokens:
        """The tokens with which every prompt with this system message begins.

        Found by comparing prompts, since what follows may merge with the last of them.
        """
        first = self._ids(self.render(system, "a"))
        second = self._ids(self.render(system, "1"))
        size = common_prefix(first, second)
        return first[: max(0, size - 1)]

    # -- inside ------------------------------------------------------------------------------

    def _ids(self, text: str) -> Tokens:
        return np.array(self.tokenizer(text, add_special_tokens=False)["input_ids"], np.int32)

    def _apply(self, system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        options: dict[str, Any] = {
            "tokenize": False,
            "add_generation_prompt": True,
            # Known to some templates, ignored by the others.
            "enable_thinking": False,
        }
        merged = [{"role": "user", "content": f"{system}\n\n{user}"}]
        try:
            try:
                text: str = self.tokenizer.apply_chat_template(messages, **options)
            except Exception as error:
                said = str(error).lower()
                if not system or ("system" not in said and "role" not in said):
                    raise
                text = self.tokenizer.apply_chat_template(merged, **options)
        except Exception as error:
            # A template is a program of the model's author: it may raise anything.
            raise ModelNotFoundError(
                f"the chat template of {self.name} writes no prompt: {type(error).__name__}: "
                f"{str(error)[:300]}"
            ) from error
        return text

    def _find_marks(self) -> re.Pattern[str] | None:
        """What the template writes around messages as ordinary text, found by letting it write.

        A mark is a line, or the part of one, between two messages. Special tokens in it are broken
        anyway; what is left of it is a mark where it can be told from prose: with a letter and a
        sign in it ("USER:") anywhere in a text, else ("user", "---") as a whole line.
        """
        turns = ("system", "user", "assistant", "user", "assistant")
        texts = [self._apply(_SYSTEM, _USER)]
        for start in (0, 1):
            messages = [
                {"role": role, "content": f"\u2402{chr(ord('A') + i)}\u2403"}
                for i, role in enumerate(turns[start:])
            ]
            try:
                texts.append(self.tokenizer.apply_chat_template(messages, tokenize=False))
            except Exception:
                # Some templates know no system message, or no second turn.
                continue
        anywhere, lines = set(), set()
        for line in (
            line for text in texts for part in _PROBE.split(text) for line in _lines(part)
        ):
            marked = any(token in line for token in self._specials)
            for token in self._specials:
                line = line.replace(token, "\n")
            for rest in _lines(line):
                if re.search(r"[^\W_]", rest) and re.search(r"[^\w\s]", rest):
                    anywhere.add(rest)
                elif not marked:
                    lines.add(rest)
        anywhere = {m for m in anywhere if not any(m != o and o in m for o in anywhere)}
        patterns = [
            # Short ones are within many words ("FAQ:"); around longer ones anything may stand.
            (r"(?<!\w)" if re.match(r"\w{1,2}\b", mark) else "")
            + _loose(mark)
            + (r"(?!\w)" if re.search(r"\b\w{1,2}$", mark) else "")
            for mark in sorted(anywhere)
        ]
        patterns += [rf"(?m:^[ \t]*{_loose(line)}[ \t]*$)" for line in sorted(lines)]
        return re.compile("|".join(patterns)) if patterns else None

    def _take_apart(self) -> tuple[str, str, str] | None:
        """What the template writes before, between and after the two messages.

        None for a template that does more with them than to insert them.
        """
        text = self._apply(_SYSTEM, _USER)
        if text.count(_SYSTEM) != 1 or text.count(_USER) != 1:
            return None
        before, rest = text.split(_SYSTEM)
        if _USER not in rest:
            return None
        between, after = rest.split(_USER)
        probe = ("You are one.\nTwo lines.", "What?\n1. this\n- that: {x}")
        if self._apply(*probe) != f"{before}{probe[0]}{between}{probe[1]}{after}":
            return None
        return before, between, after


def _lines(text: str) -> list[str]:
    """The lines of a text that could be taken for more than a character."""
    return [line.strip() for line in text.splitlines() if len(line.strip()) > 1]


def _loose(mark: str) -> str:
    """A pattern of a mark, whatever the spaces between its words."""
    return r"\s+".join(map(re.escape, mark.split()))


def _broken(text: str) -> str:
    """The text with a space within its first word; without spaces, if its words are letters."""
    word = re.search(r"\S\S", text)
    if word is None:
        return "".join(text.split())
    return f"{text[: word.start() + 1]} {text[word.start() + 1 :]}"


def common_prefix(first: Tokens, second: Tokens) -> int:
    """How many tokens two sequences have in common at their beginning."""
    size = min(len(first), len(second))
    different = np.flatnonzero(first[:size] != second[:size])
    return int(different[0]) if len(different) else size
