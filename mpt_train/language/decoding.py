"""Sequences and their keys and values: batched decoding with left padding and shared prefixes.

A `Session` holds N sequences and the cache of keys and values of their tokens. Tokens are appended
to all of them at once; shorter pieces are padded on the left and masked, and every token keeps the
position that it has in its own sequence. Sequences can be selected, repeated, and cut back to a
common beginning, which is how a system message is computed once per agent, the state that a bid
and an action share once per turn, and a prompt once for all options.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.errors import DivergedError
from mpt_train.language.chat import Tokens, common_prefix
from wrappers.rng import uniform4


def is_plain(cache: Any) -> bool:
    """Whether a cache holds every token at a place of its own, so that sequences can be cut.

    Sliding windows count places, not positions: padding within a sequence would shorten them.
    """
    from transformers.cache_utils import DynamicLayer

    return all(type(layer) is DynamicLayer for layer in cache.layers)


Reading = Callable[[Tensor, Tensor], tuple[dict[str, Any], Tensor]]


@dataclass
class Work:
    """What went through a model; padding does not count.

    Attributes:
        tokens: number of them.
        pairs: of a token and one that it attends to.
        heads: places at which the vocabulary's logits were wanted.
    """

    tokens: int = 0
    pairs: int = 0
    heads: int = 0

    def add(self, other: Work) -> None:
        """Count what another one has counted."""
        self.tokens += other.tokens
        self.pairs += other.pairs
        self.heads += other.heads


class Session:
    """N token sequences of one model with their cache.

    Args:
        model: a transformers model with a language-modelling head.
        agents: whose sequence each of the N rows is.
        select_agents: called with the rows' agents before the model is, to choose its adapters.

    Attributes:
        agents: as given.
        tokens: the sequences so far.
        logits: what comes next, ``float32 (N, V)``, after the last appended tokens.
        work: what was computed in this session.
    """

    def __init__(
        self,
        model: Any,
        agents: Sequence[int],
        select_agents: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        from transformers import DynamicCache

        rows = len(agents)
        self.model = model
        self.agents = tuple(agents)
        self._select_agents = select_agents
        self.tokens: list[Tokens] = [np.zeros(0, np.int32)] * rows
        self.logits: Tensor | None = None
        self.work = Work()
        self._cache: Any = DynamicCache(config=model.config.get_text_config(decoder=True))
        self._device = next(model.parameters()).device
        # What a token's position exceeds its index by; not 0 after pictures, in some families.
        self._shift = torch.zeros(rows, dtype=torch.long, device=self._device)
        # Position of each cached token in its sequence; -1: padding, or cut off.
        self._slots = torch.full((rows, 0), -1, device=self._device)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def plain(self) -> bool:
        """Whether sequences of this session can be cut back."""
        return is_plain(self._cache)

    def append(
        self, pieces: Sequence[Tokens], keep: int = 1, reading: Reading | None = None
    ) -> Tensor:
        """Append a piece to each sequence.

        Args:
            pieces: N pieces, at least one of them not empty; a row whose piece is empty stays.
            keep: of how many last places logits are wanted.
            reading: turns tokens and mask into what the model is given of pictures, and the shift
                of later positions; only for the first piece.

        Returns:
            ``(N, keep, V)`` logits at the last places; those of padding mean nothing.
        """
        width = max(len(piece) for piece in pieces)
        rows = len(pieces)
        ids = np.zeros((rows, width), np.int64)
        positions = np.full((rows, width), -1, np.int64)
        for row, piece in enumerate(pieces):
            if len(piece):
                start = len(self.tokens[row])
                ids[row, width - len(piece) :] = piece
                positions[row, width - len(piece) :] = np.arange(start, start + len(piece))
        slots = torch.from_numpy(positions).to(self._device)
        self._slots = torch.cat([self._slots, slots], dim=1)
        if self._select_agents is not None:
            self._select_agents(self.agents)
        name = cache_argument(self.model)
        tokens, mask = torch.from_numpy(ids).to(self._device), (self._slots >= 0).long()
        inputs: dict[str, Any] = {"position_ids": slots.clamp_min(0) + self._shift[:, None]}
        if reading is not None:
            given, self._shift = reading(tokens, mask)
            inputs |= given
        output = self.model(
            input_ids=tokens,
            attention_mask=mask,
            use_cache=True,
            logits_to_keep=keep,
            **inputs,
            **{name: self._cache},
        )
        self._cache = output[name]
        self.tokens = [
            np.concatenate([old, piece]) if len(piece) else old
            for old, piece in zip(self.tokens, pieces, strict=True)
        ]
        self.work.add(work_of([len(t) for t in self.tokens], [len(p) for p in pieces], keep))
        logits: Tensor = output.logits
        self.logits = logits[:, -1].float()
        return logits

    def fork(self) -> Session:
        """A session with the same rows that goes its own way; nothing is copied."""
        twin = copy.copy(self)
        twin._cache = copy.copy(self._cache)
        # A layer never changes its tensors: appending makes new ones.
        twin._cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        twin.work = Work()
        return twin

    def select(self, rows: Sequence[int] | NDArray[np.int64]) -> Session:
        """A new session with these rows, which may repeat; this one is left as it is."""
        twin = self.fork()
        index = torch.as_tensor(np.asarray(rows), device=self._device)
        twin._cache.batch_select_indices(index)
        twin._slots = self._slots[index]
        twin._shift = self._shift[index]
        twin.tokens = [self.tokens[int(row)] for row in rows]
        twin.agents = tuple(self.agents[int(row)] for row in rows)
        twin.logits = None if self.logits is None else self.logits[index]
        return twin

    def cut(self, lengths: Sequence[int]) -> None:
        """Keep the first tokens of each sequence only; `logits` mean nothing until the next piece.

        For plain sessions.
        """
        limits = torch.tensor(list(lengths), device=self._device)
        self._slots = torch.where(self._slots < limits[:, None], self._slots, -1)
        self.tokens = [t[:size] for t, size in zip(self.tokens, lengths, strict=True)]
        used = (self._slots >= 0).any(dim=0).nonzero()
        size = int(used[-1]) + 1 if len(used) else 0
        if size < self._slots.shape[1]:
            self._slots = self._slots[:, :size]
            for layer in self._cache.layers:
                layer.keys = layer.keys[:, :, :size]
                layer.values = layer.values[:, :, :size]

    def extend_to(self, prompts: Sequence[Tokens]) -> None:
        """Make the sequences be these, computing only what they do not begin with already."""
        shared = [
            min(common_prefix(old, new), len(new) - 1)
            for old, new in zip(self.tokens, prompts, strict=True)
        ]
        if any(size < len(old) for size, old in zip(shared, self.tokens, strict=True)):
            self.cut(shared)
        self.append([new[size:] for new, size in zip(prompts, shared, strict=True)])


def work_of(lengths: Sequence[int], pieces: Sequence[int], keep: int) -> Work:
    """The work of appending pieces, after which the sequences have these lengths."""
    work = Work()
    for length, piece in zip(lengths, pieces, strict=True):
        work.tokens += piece
        work.pairs += piece * (length - piece) + piece * (piece + 1) // 2
        work.heads += min(keep, piece)
    return work


def cache_argument(model: Any) -> str:
    """What a model calls its cache of keys and values, which depends on transformers' version."""
    kind: Any = type(model)
    return _cache_argument(kind)


@functools.cache
def _cache_argument(kind: Any) -> str:
    # A renamed argument may hide behind a decorator; the innermost function knows its name.
    function = inspect.unwrap(kind.forward)
    return "cache" if "cache" in inspect.signature(function).parameters else "past_key_values"


def uniform_rows(
    keys: NDArray[np.uint64],
    turns: NDArray[np.int64],
    stream: np.uint64,
    first: NDArray[np.int64],
    offset: int,
) -> NDArray[np.float64]:
    """A number in [0, 1) per row, keyed by (episode, turn, stream, first + offset)."""
    return np.array(
        [
            uniform4(key, turn, stream, index + offset)
            for key, turn, index in zip(keys, turns, first, strict=True)
        ]
    )


def draw(log_probs: Tensor, uniform: NDArray[np.float64]) -> Tensor:
    """One token a row by inversion of the distribution function.

    Args:
        log_probs: ``(N, V)``.
        uniform: ``(N,)`` in [0, 1).

    Returns:
        ``int64 (N,)``; never a token of probability 0.
    """
    cumulative = log_probs.double().exp().cumsum(dim=-1)
    unit = torch.from_numpy(uniform).to(cumulative.device)
    level = unit * cumulative[:, -1]
    tokens = torch.searchsorted(cumulative, level[:, None], right=True)[:, 0]
    return tokens.clamp_max(log_probs.shape[1] - 1)


def check_distribution(log_probs: Tensor) -> None:
    """Refuse what is no distribution, before anything is drawn from it.

    Args:
        log_probs: ``(N, V)``, normalised, or one value a row of such.

    Raises:
        DivergedError: one of them is not a number.
    """
    if bool(torch.isnan(log_probs).any()):
        raise DivergedError(
            "a language model gives no probabilities: it computes what is not a number; its "
            "weights or adapters are damaged or have diverged (try a lower learning rate, or "
            "--language.dtype float32)"
        )


class Sampled:
    """Answers that were drawn token by token.

    Attributes:
        tokens: of each answer, the one that ended it included.
        log_probs: of each token.
    """

    def __init__(self, tokens: list[Tokens], log_probs: list[NDArray[np.float32]]) -> None:
        self.tokens = tokens
        self.log_probs = log_probs


@torch.no_grad()
def sample(
    session: Session,
    stop: Sequence[int],
    limit: int,
    temperature: float,
    keys: NDArray[np.uint64],
    turns: NDArray[np.int64],
    stream: np.uint64,
    first: NDArray[np.int64],
) -> Sampled:
    """Draw an answer for each sequence of a session, whose prompts have been computed.

    Args:
        session: is appended to.
        stop: ids of tokens that end an answer.
        limit: longest answer, in tokens.
        temperature: of the softmax.
        keys, turns, stream, first: key the noise of token i of a row by (key, turn, stream,
            first + i).

    Raises:
        DivergedError: the model gives no distribution.
    """
    rows = len(session)
    device = session.logits.device if session.logits is not None else None
    ends = torch.tensor(list(stop), device=device)
    running = np.ones(rows, np.bool_)
    chosen = np.zeros((rows, limit), np.int32)
    log_probs = np.zeros((rows, limit), np.float32)
    lengths = np.zeros(rows, np.int64)
    nothing = np.zeros(0, np.int32)
    for step in range(limit):
        assert session.logits is not None
        distribution = torch.log_softmax(session.logits / temperature, dim=-1)
        tokens = draw(distribution, uniform_rows(keys, turns, stream, first, step))
        picked = distribution.gather(1, tokens[:, None])[:, 0]
        ended = torch.isin(tokens, ends)
        # One transfer from the device a step.
        packed = torch.stack([tokens.double(), picked.double(), ended.double()]).cpu().numpy()
        chosen[running, step] = packed[0][running].astype(np.int32)
        # One value that is not a number makes all of its row so.
        check_distribution(torch.from_numpy(packed[1][running]))
        log_probs[running, step] = packed[1][running].astype(np.float32)
        lengths[running] += 1
        running &= packed[2] == 0
        if not running.any() or step + 1 == limit:
            break
        session.append(
            [chosen[row, step : step + 1] if running[row] else nothing for row in range(rows)]
        )
    return Sampled(
        [chosen[row, : lengths[row]].copy() for row in range(rows)],
        [log_probs[row, : lengths[row]].copy() for row in range(rows)],
    )


def score_options(
    session: Session, options: Sequence[Sequence[Tokens]], temperature: float
) -> list[Tensor]:
    """Log-probability of every option after every sequence, the prompt computed once.

    Args:
        session: N sequences whose prompts have been computed; left as it is.
        options: of each sequence, answers with the token that ends them.
        temperature: of the softmax.

    Returns:
        Of each sequence ``float32 (options,)``.

    Raises:
        DivergedError: the model gives no distribution.
    """
    assert session.logits is not None
    rows = [row for row, answers in enumerate(options) for _ in answers]
    flat = [answer for answers in options for answer in answers]
    first = torch.log_softmax(session.logits / temperature, dim=-1)
    index = torch.tensor([int(answer[0]) for answer in flat], device=first.device)
    total = first[torch.tensor(rows, device=first.device), index]
    longest = max(len(answer) for answer in flat)
    if longest > 1:
        repeated = session.select(rows)
        # The last token predicts nothing that is wanted.
        logits = repeated.append([answer[:-1] for answer in flat], keep=longest - 1)
        session.work.add(repeated.work)
        later = torch.log_softmax(logits.float() / temperature, dim=-1)
        target = np.zeros((len(flat), longest - 1), np.int64)
        valid = np.zeros((len(flat), longest - 1), np.bool_)
        for row, answer in enumerate(flat):
            if len(answer) > 1:
                target[row, longest - len(answer) :] = answer[1:]
                valid[row, longest - len(answer) :] = True
        wanted = later.gather(2, torch.from_numpy(target).to(later.device)[:, :, None])[:, :, 0]
        total = total + (wanted * torch.from_numpy(valid).to(later.device)).sum(dim=1)
    # Only where something is drawn: in learning, the gradient is checked.
    if not torch.is_grad_enabled():
        check_distribution(total)
    return list(total.split([len(answers) for answers in options]))
