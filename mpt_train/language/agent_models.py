"""The models of all agents: adapters on one base, or a model each, behind one interface."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpt_train.errors import is_out_of_memory
from mpt_train.language.chat import Chat, Tokens
from mpt_train.language.config import LanguageConfig
from mpt_train.language.decoding import Reading, Session, Work, check_distribution, work_of
from mpt_train.language.errors import ModelNotFoundError
from mpt_train.language.flop import ModelFlop, model_flop
from mpt_train.language.lora import AdapterBank
from mpt_train.language.model_checks import vocabulary
from mpt_train.language.models import Loaded, device_of, dtype_of


class AgentModels:
    """The models of A agents.

    Args:
        loaded: the model; adapters are put into it, or copies of it made.
        count: A.
        config: adapters or separate models.
        seed: of the adapters' initial weights.

    Attributes:
        agents: what learns, a module per agent.
        reference: the same before reinforcement learning, or None if no divergence is wanted.
        flop: what a token costs.
        chat: writes prompts and answers in tokens.
    """

    def __init__(self, loaded: Loaded, count: int, config: LanguageConfig, seed: int) -> None:
        self.config = config
        self.count = count
        self.loaded = loaded
        self.device = device_of(config)
        self.chat = Chat(loaded.tokenizer, loaded.end, config.max_prompt_tokens, config.model)
        self._stamp = 0
        self._autocast = config.parameters == "separate" and dtype_of(config) == torch.bfloat16
        self._bank: AdapterBank | None = None
        wanted = 2 * count if config.kl else count
        if config.parameters == "adapters":
            self.flop = model_flop(loaded.model)
            bank = AdapterBank(
                loaded.model, wanted, config.rank, config.alpha, config.targets, seed
            )
            self._bank = bank
            modules: list[nn.Module] = list(bank.adapters)
            self.flop = _with_adapter(self.flop, bank.parameters_each)
        else:
            loaded.model.requires_grad_(True)
            modules = [loaded.model] + [copy.deepcopy(loaded.model) for _ in range(wanted - 1)]
            self.flop = model_flop(loaded.model)
        self.agents = nn.ModuleList(modules[:count])
        self.reference: nn.ModuleList | None = None
        if config.kl:
            self.reference = nn.ModuleList(modules[count:])
            self.reference.requires_grad_(False)
            self.keep_reference()

    # -- which model -------------------------------------------------------------------------

    def groups(self, agents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Rows that can share a batch: all of them, or those of each agent."""
        if self._bank is not None:
            return [np.arange(len(agents))] if len(agents) else []
        return [np.flatnonzero(agents == agent) for agent in np.unique(agents)]

    def model_of(self, agent: int) -> Any:
        """The model that speaks for an agent, once its adapter is selected."""
        return self.loaded.model if self._bank is not None else self.agents[agent]

    def session(self, agents: Sequence[int]) -> Session:
        """An empty session with a sequence for each of these agents (of one group)."""
        select: Callable[[Sequence[int]], None] | None = None
        if self._bank is not None:
            select = self._bank.select
        return Session(self.model_of(agents[0]), agents, select)

    def version(self) -> tuple[int, ...]:
        """Changes whenever a weight that learns may have changed."""
        return (self._stamp, *(p._version for p in self.agents.parameters()))

    def changed(self) -> None:
        """To be called when weights may have changed: what was computed with them is void.

        Tensors count their changes, but not those that a fused optimizer makes.
        """
        self._stamp += 1
        if self._bank is not None:
            self._bank.changed()

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """In this block forward passes use the configured arithmetic."""
        if not self._autocast:
            yield
            return
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            yield

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        """In this block activations are recomputed where that is configured."""
        models = [self.loaded.model] if self._bank is not None else list(self.agents)
        if self.config.gradient_checkpointing:
            for model in models:
                model.train()
        try:
            yield
        finally:
            for model in models:
                model.eval()

    # -- log-probabilities for learning ------------------------------------------------------

    def token_log_probs(
        self,
        agent: int,
        prompts: Sequence[Tokens],
        answers: Sequence[Tokens],
        temperature: float,
        *,
        reference: bool = False,
        pictures: Sequence[NDArray[np.uint8] | None] | None = None,
        entropy: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor | None, Work]:
        """Log-probabilities of the tokens of answers, in one forward pass without a cache.

        Args:
            agent: whose.
            prompts, answers: N token sequences each.
            temperature: of the softmax.
            reference: under the policy after the cold start.
            pictures: shown besides.
            entropy: compute the entropies as well.

        Returns:
            ``float32 (N, L)`` log-probabilities, aligned at the right; ``bool (N, L)`` which of
            them are of an answer's token; entropies ``(N, L)`` or None; and the work.
        """
        length = max(len(answer) for answer in answers)
        rows = [np.concatenate(pair) for pair in zip(prompts, answers, strict=True)]
        width = max(len(row) for row in rows)
        ids = np.zeros((len(rows), width), np.int64)
        positions = np.full((len(rows), width), -1, np.int64)
        valid = np.zeros((len(rows), length), np.bool_)
        for i, row in enumerate(rows):
            ids[i, width - len(row) :] = row
            positions[i, width - len(row) :] = np.arange(len(row))
            valid[i, length - len(answers[i]) :] = True
        slots = torch.from_numpy(positions).to(self.device)
        tokens = torch.from_numpy(ids).to(self.device)
        index = agent + (self.count if reference else 0)
        if self._bank is not None:
            self._bank.select([index])
            model = self.loaded.model
        else:
            model = self.agents[agent]
            if reference:
                assert self.reference is not None
                model = self.reference[agent]
        inputs: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": (slots >= 0).long(),
            "position_ids": slots.clamp_min(0),
        }
        reading = self.reading(pictures)
        if reading is not None:
            inputs |= reading(tokens, inputs["attention_mask"])[0]
        with self.computing():
            output = model(**inputs, use_cache=False, logits_to_keep=length + 1)
        logits = output.logits[:, :-1].float() / temperature
        log_probs = torch.log_softmax(logits, dim=-1)
        picked = log_probs.gather(2, tokens[:, -length:, None])[:, :, 0]
        entropies = -(log_probs.exp() * log_probs).sum(-1) if entropy else None
        lengths = [len(row) for row in rows]
        work = work_of(lengths, lengths, length + 1)
        return picked, torch.from_numpy(valid).to(self.device), entropies, work

    def reading(self, pictures: Sequence[NDArray[np.uint8] | None] | None) -> Reading | None:
        """How pictures reach the model; None if there are none."""
        reader = self.loaded.pictures
        if reader is None or pictures is None:
            return None
        shown = [picture for picture in pictures if picture is not None]
        if not shown:
            return None
        return lambda ids, mask: reader.inputs(ids, mask, shown)

    def picture_tokens(self, picture: NDArray[np.uint8] | None) -> Tokens | None:
        """The tokens that stand for a picture in a prompt; None without one."""
        reader = self.loaded.pictures
        return None if picture is None or reader is None else reader.tokens(picture)

    @torch.no_grad()
    def try_out(self) -> None:
        """Let the first model read a short prompt.

        Raises:
            ModelNotFoundError: it cannot.
            DivergedError: what comes out is no distribution.
        """
        name = self.config.model
        prompt = self.chat.encode("", ["0.5"])
        rows = vocabulary(self.model_of(0))
        if int(prompt.max()) >= rows:
            raise ModelNotFoundError(
                f"the chat template of {name} writes token {int(prompt.max())}, and its model has "
                f"only {rows}: they do not belong together"
            )
        try:
            with self.computing():
                session = self.session([0])
                session.append([prompt])
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise ModelNotFoundError(
                f"{name} was loaded, but cannot read a prompt: {type(error).__name__}: {error}"
            ) from error
        assert session.logits is not None
        check_distribution(torch.log_softmax(session.logits / self.config.temperature, dim=-1))

    # -- reference ---------------------------------------------------------------------------

    @torch.no_grad()
    def keep_reference(self) -> None:
        """Remember the present policies as those that learning should stay close to."""
        if self.reference is None:
            return
        for own, source in zip(self.reference.parameters(), self.agents.parameters(), strict=True):
            own.copy_(source)


def _with_adapter(flop: ModelFlop, weights: int) -> ModelFlop:
    return ModelFlop(flop.token + 2 * weights, flop.head, flop.pair, 2 * weights)
