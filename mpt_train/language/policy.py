"""`LanguagePolicy`: agents that are language models, behind the interface of the training loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.config import ColdStartConfig, TrainConfig
from mpt_train.flops import FlopCounter
from mpt_train.language import cold_start, demos, learning
from mpt_train.language.agent_models import AgentModels
from mpt_train.language.asking import AskingPolicy, Question
from mpt_train.language.chat import Tokens, common_prefix
from mpt_train.language.config import LanguageConfig
from mpt_train.language.decoding import Session, Work, sample, score_options
from mpt_train.language.game import TextVectorGame
from mpt_train.language.model_checks import check_positions
from mpt_train.language.models import load
from mpt_train.language.transcript import Answer, Key, Transcript
from mpt_train.policies.base import Refine
from mpt_train.policies.distributions import sample_rows
from mpt_train.records import Batch, Demonstrations, Pairs
from mpt_train.runs.interrupt import StopRequest
from mpt_train.seeds import demonstration_seeds
from wrappers.bid_text import read_bid
from wrappers.rng import STREAM_RESAMPLE
from wrappers.task import ParseError
from wrappers.vector import VectorGame

_STRIDE = 4096
"""Random numbers of one agent's answer; an answer has fewer tokens."""
_AGENTS = 64


class LanguagePolicy(AskingPolicy):
    """A language model per agent: adapters on one base, or separate models.

    Args:
        game: gives names, roles, profiles and sizes.
        config: see `LanguageConfig`.
        models: of the agents.
        bids: whether agents bid.

    Attributes:
        agents: what learns, a module per agent; named ``agents.0`` and so on in checkpoints.
    """

    def __init__(
        self, game: TextVectorGame, config: LanguageConfig, models: AgentModels, bids: bool
    ) -> None:
        super().__init__(game, config, bids)
        self.models = models
        self.agents = models.agents
        if models.reference is not None:
            self.reference = models.reference
        self.base_name = config.model
        self.chat = models.chat
        self._taught: list[list[tuple[str, Answer]]] = []
        self._options: dict[str, Tokens] = {}
        self._prefixes: dict[tuple[int, ...], tuple[tuple[int, ...], Session]] = {}
        self._shared: dict[int, Tokens] = {}
        # Sessions of the running turn's bids, by (world, agent): where to find them.
        self._bid_sessions: dict[tuple[int, int], tuple[Session, int]] = {}
        models.try_out()

    def base(self) -> dict[str, Tensor]:
        """See `Policy`."""
        return self.models.loaded.base

    # -- prompts -----------------------------------------------------------------------------

    def question(
        self, game: TextVectorGame, world: int, agent: int, key: int, turn: int, phase: str
    ) -> Question:
        """What an agent is asked now, in words and in tokens."""
        asked = super().question(game, world, agent, key, turn, phase)
        asked.prompt = self.chat.encode(
            asked.system, asked.users, self.models.picture_tokens(asked.picture)
        )
        asked.options = tuple(self._option(text) for text in asked.choices)
        return asked

    def _option(self, text: str) -> Tokens:
        if text not in self._options:
            self._options[text] = self.chat.encode_answer(text)
        return self._options[text]

    def new_transcript(self) -> Transcript:
        """An empty one, at the beginning of episodes: weights may have changed since the last."""
        self.models.changed()
        return super().new_transcript()

    def _forget_turn(self) -> None:
        self._bid_sessions = {}

    # -- drawing -----------------------------------------------------------------------------

    def _draw(
        self,
        questions: list[Question],
        phase: str,
        stream: np.uint64,
        attempt: int,
        counter: FlopCounter,
        part: str,
    ) -> list[Answer]:
        answers: list[Answer | None] = [None] * len(questions)
        for rows in self._batches(questions):
            own = [questions[i] for i in rows]
            with self.models.computing():
                session = self._prompted(own, phase)
                keep = phase == "bid" and self.config.reuse_prompts and session.plain
                if keep and attempt == 0:
                    kept = session.fork()
                    for i, question in enumerate(own):
                        self._bid_sessions[question.world, question.agent] = (kept, i)
                drawn = self._answers(session, own, stream, attempt)
            counter.add(f"{part}_{phase}", self.models.flop.forward(session.work))
            for i, answer in zip(rows, drawn, strict=True):
                answers[i] = answer
        return [answer for answer in answers if answer is not None]

    def _answers(
        self, session: Session, questions: list[Question], stream: np.uint64, attempt: int
    ) -> list[Answer]:
        """Draw an answer to each question of a session whose prompts have been computed."""
        config = self.config
        keys = np.array([q.key for q in questions], np.uint64)
        turns = np.array([q.turn for q in questions], np.int64)
        if questions[0].options:
            options = [q.options for q in questions]
            scores = score_options(session, options, config.temperature)
            logits = torch.nn.utils.rnn.pad_sequence(scores, batch_first=True).float().cpu()
            mask = np.zeros(logits.shape, np.bool_)
            for row, answers in enumerate(options):
                mask[row, : len(answers)] = True
            agents = np.array([q.agent for q in questions], np.int64)
            picks = sample_rows(logits.numpy(), mask, keys, turns, stream, agents, attempt)
            return [
                Answer(
                    agent=question.agent,
                    prompt=question.prompt,
                    tokens=question.options[pick],
                    log_prob=float(torch.log_softmax(scores[row], dim=0)[pick]),
                    text=self.chat.decode(question.options[pick]),
                    options=question.options,
                    picture=question.picture,
                )
                for row, (question, pick) in enumerate(zip(questions, picks, strict=True))
            ]
        first = np.array([(attempt * _AGENTS + q.agent) * _STRIDE for q in questions], np.int64)
        sampled = sample(
            session,
            self.models.loaded.stop,
            config.max_answer_tokens,
            config.temperature,
            keys,
            turns,
            stream,
            first,
        )
        return [
            Answer(
                agent=question.agent,
                prompt=question.prompt,
                tokens=tokens,
                log_prob=float(log_probs.sum()),
                text=self.chat.decode(tokens),
                picture=question.picture,
            )
            for question, tokens, log_probs in zip(
                questions, sampled.tokens, sampled.log_probs, strict=True
            )
        ]

    def _batches(self, questions: list[Question]) -> list[list[int]]:
        """Which questions go through the models together."""
        agents = np.array([q.agent for q in questions], np.int64)
        size = self.config.batch_rows
        batches = []
        for group in self.models.groups(agents):
            batches += [group[i : i + size].tolist() for i in range(0, len(group), size)]
        return batches

    def _prompted(self, questions: list[Question], phase: str) -> Session:
        """A session that has read the prompts, with as little work as possible."""
        prompts = [q.prompt for q in questions]
        if phase == "act":
            session = self._after_bids(questions)
            if session is not None:
                session.extend_to(prompts)
                return session
        agents = [q.agent for q in questions]
        reading = self.models.reading([q.picture for q in questions])
        if self.config.reuse_prompts and reading is None:
            prefix = self._prefix(agents)
            if prefix is not None:
                prefix.extend_to(prompts)
                return prefix
        session = self.models.session(agents)
        session.append(prompts, reading=reading)
        return session

    def _after_bids(self, questions: list[Question]) -> Session | None:
        """The sessions in which these agents bid, as one; None if they have not, or in several."""
        places = [self._bid_sessions.get((q.world, q.agent)) for q in questions]
        found = [place for place in places if place is not None]
        if len(found) < len(places) or len({id(session) for session, _ in found}) != 1:
            return None
        session, rows = found[0][0], [row for _, row in found]
        reader = self.models.loaded.pictures
        if reader is not None:
            # A picture is read with the prompt's beginning or not at all.
            for question, row in zip(questions, rows, strict=True):
                shared = common_prefix(session.tokens[row], question.prompt)
                if reader.holds_picture(question.prompt[shared:]):
                    return None
        return session.select(rows)

    def _prefix(self, agents: Sequence[int]) -> Session | None:
        """A session that has read the agents' system messages; None if that cannot be shared."""
        groups = self.models.groups(np.arange(self.num_agents))
        members = next(tuple(g.tolist()) for g in groups if agents[0] in g)
        version = self.models.version()
        kept = self._prefixes.get(members)
        if kept is None or kept[0] != version or torch.is_grad_enabled():
            if not self._shared:
                self._shared = {
                    a: self.chat.shared_prefix(system) for a, system in enumerate(self.systems)
                }
            pieces = [self._shared[a] for a in members]
            if min(map(len, pieces)) == 0:
                return None
            session = self.models.session(members)
            session.append(pieces)
            if not session.plain:
                return None
            kept = (version, session)
            self._prefixes[members] = kept
            paid = session.work
        else:
            paid = Work()
        chosen = kept[1].select([members.index(a) for a in agents])
        chosen.work.add(paid)
        return chosen

    # -- branches ----------------------------------------------------------------------------

    @torch.no_grad()
    def lower_bids(
        self,
        batch: Batch,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
        resamples: int,
        counter: FlopCounter,
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """See `TextPolicy`."""
        lowered = np.full(len(turns), -1)
        responses: list[Any] = [None] * len(turns)
        winners = batch.winners[turns, worlds]
        limit = batch.bids[turns, worlds, batch.runners_up[turns, worlds]]
        own: list[Answer] = []
        questions = []
        for turn, world, agent in zip(turns, worlds, winners, strict=True):
            key = Key("bid", int(batch.keys[world]), int(turn), int(agent))
            answer = batch.transcript.answers[key]
            own.append(answer)
            questions.append(
                Question(
                    int(world),
                    int(agent),
                    key.episode,
                    key.turn,
                    picture=answer.picture,
                    prompt=answer.prompt,
                    options=answer.options,
                )
            )
        self._bid_sessions = {}
        waiting = list(range(len(turns)))
        for attempt in range(resamples):
            if not waiting:
                break
            drawn = self._draw(
                [questions[i] for i in waiting],
                "bid",
                STREAM_RESAMPLE,
                attempt,
                counter,
                "branch",
            )
            for i, answer in zip(waiting, drawn, strict=True):
                level = read_bid(answer.text, self.levels)
                if not isinstance(level, ParseError) and level < limit[i]:
                    answer.choice = level
                    lowered[i] = level
                    responses[i] = (own[i], answer)
            waiting = [i for i in waiting if lowered[i] < 0]
        self._bid_sessions = {}
        return lowered, responses

    # -- learning ----------------------------------------------------------------------------

    def action_loss(
        self,
        batch: Batch,
        refine: Refine,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None = None,
    ) -> tuple[Tensor, float]:
        """See `Policy`; nobody refines what is said."""
        return learning.action_loss(self.models, batch, advantage, entropy_weight, counter, clip)

    def bid_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, dict[str, float]]:
        """See `TextPolicy`."""
        return learning.bid_loss(self.models, batch, advantage, entropy_weight, counter, clip)

    def preference_loss(
        self, pairs: Pairs, counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """On whole answers."""
        return learning.preference_loss(self.models, pairs.weights, pairs.responses, counter)

    # -- cold start --------------------------------------------------------------------------

    def read_demonstrations(self, game: VectorGame) -> None:
        """See `TextPolicy`."""
        assert isinstance(game, TextVectorGame)
        examples = demos.read(Path(self.config.demonstrations))
        self._taught = cold_start.encode(self.models, examples, game, bool(self.num_levels))

    def watch(
        self,
        demonstrations: Demonstrations,
        game: VectorGame,
        seed: int,
        stop: StopRequest | None = None,
    ) -> None:
        """See `TextPolicy`."""
        assert isinstance(game, TextVectorGame)
        bids = bool(self.num_levels)
        examples = demos.replay(
            game,
            demonstrations.batch,
            demonstration_seeds(seed, game.num_envs),
            self.config.answers,
            history=self.config.history,
            bids=bids,
            pictures=self.config.pictures,
        )
        self._taught = cold_start.encode(self.models, examples, game, bids, stop)

    def fit_flop(self, config: ColdStartConfig) -> int:
        """See `TextPolicy`."""
        return cold_start.fit_flop(self.models, self._taught, config)

    def fit(
        self,
        config: ColdStartConfig,
        seed: int,
        counter: FlopCounter,
        stop: StopRequest | None = None,
    ) -> dict[str, float]:
        """See `TextPolicy`."""
        taught, self._taught = self._taught, []
        return cold_start.fit_answers(self.models, taught, config, seed, counter, stop)


def build_policy(config: TrainConfig, game: VectorGame) -> AskingPolicy:
    """The language models of a run.

    Args:
        config: the run; weights follow from its seed.
        game: a text game of its task.
    """
    from mpt_train.language.texts import sample_texts

    assert isinstance(game, TextVectorGame)
    bids = config.coordination == "learned"
    if config.language.engine != "transformers":
        from mpt_train.language.endpoint import EndpointPolicy

        return EndpointPolicy(game, config.language, bids)
    seed = config.seed * 7919
    loaded = load(config.language, lambda: sample_texts(game, config.language), seed)
    check_positions(loaded.model, config.language)
    models = AgentModels(loaded, game.num_agents, config.language, seed + 1)
    return LanguagePolicy(game, config.language, models, bids)
