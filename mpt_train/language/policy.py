"""`LanguagePolicy`: agents that are language models, behind the interface of the training loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpt_train.flops import FlopCounter
from mpt_train.language import cold_start, demos, learning
from mpt_train.language.asking import AskingPolicy, Question
from mpt_train.language.chat import Chat, Tokens, common_prefix
from mpt_train.language.config import LanguageConfig
from mpt_train.language.decoding import Session, Work, sample, score_options
from mpt_train.language.game import TextVectorGame
from mpt_train.language.model_checks import check_positions, try_out
from mpt_train.language.models import load
from mpt_train.language.transcript import Answer, Key, Transcript
from mpt_train.language.voices import Voices
from mpt_train.policy import sample_rows
from wrappers.bid_text import read_bid
from wrappers.rng import STREAM_RESAMPLE
from wrappers.task import ParseError

if TYPE_CHECKING:
    from mpt_train.branches import Pairs
    from mpt_train.cold_start import Demonstrations
    from mpt_train.config import BidLearning, ColdStartConfig, TrainConfig
    from mpt_train.rollout import Batch
    from wrappers.vector import VectorGame

_STRIDE = 4096
"""Random numbers of one agent's answer; an answer has fewer tokens."""
_AGENTS = 64


class LanguagePolicy(AskingPolicy):
    """A language model per agent: adapters on one base, or separate models.

    Args:
        game: gives names, roles, profiles and sizes.
        config: see `LanguageConfig`.
        voices: the models.
        bids: whether agents bid.

    Attributes:
        agents: what learns, a module per agent; named ``agents.0`` and so on in checkpoints.
    """

    def __init__(
        self, game: TextVectorGame, config: LanguageConfig, voices: Voices, bids: bool
    ) -> None:
        super().__init__(game, config, bids)
        self.voices = voices
        self.agents = voices.agents
        if voices.reference is not None:
            self.reference = voices.reference
        loaded = voices.loaded
        self.base_name = config.model
        self.chat = Chat(loaded.tokenizer, loaded.end, config.max_prompt_tokens, config.model)
        self._taught: list[list[tuple[str, Answer]]] = []
        self._options: dict[str, Tokens] = {}
        self._prefixes: dict[tuple[int, ...], tuple[tuple[int, ...], Session]] = {}
        self._shared: dict[int, Tokens] = {}
        # Sessions of the running turn's bids, by (world, agent): where to find them.
        self._bid_sessions: dict[tuple[int, int], tuple[Session, int]] = {}
        try_out(self)

    def base(self) -> dict[str, Tensor]:
        """See `Policy`."""
        return self.voices.loaded.base

    # -- prompts -----------------------------------------------------------------------------

    def question(
        self, game: TextVectorGame, world: int, agent: int, key: int, turn: int, phase: str
    ) -> Question:
        """What an agent is asked now, in words and in tokens."""
        asked = super().question(game, world, agent, key, turn, phase)
        asked.prompt = self.chat.encode(
            asked.system, asked.users, self.picture_tokens(asked.picture)
        )
        asked.options = tuple(self._option(text) for text in asked.choices)
        return asked

    def _option(self, text: str) -> Tokens:
        if text not in self._options:
            self._options[text] = self.chat.encode_answer(text)
        return self._options[text]

    def picture_tokens(self, picture: NDArray[np.uint8] | None) -> Tokens | None:
        """The tokens that stand for a picture in a prompt; None without one."""
        reader = self.voices.loaded.pictures
        return None if picture is None or reader is None else reader.tokens(picture)

    def new_transcript(self) -> Transcript:
        """An empty one, at the beginning of episodes: weights may have changed since the last."""
        self.voices.changed()
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
            with self.voices.computing():
                session = self._prompted(own, phase)
                keep = phase == "bid" and self.config.reuse_prompts and session.plain
                if keep and attempt == 0:
                    kept = session.fork()
                    for i, question in enumerate(own):
                        self._bid_sessions[question.world, question.agent] = (kept, i)
                drawn = self._answers(session, own, stream, attempt)
            counter.add(f"{part}_{phase}", self.voices.flop.forward(session.work))
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
            self.voices.loaded.stop,
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
        for group in self.voices.groups(agents):
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
        reading = self.voices.reading([q.picture for q in questions])
        if self.config.reuse_prompts and reading is None:
            prefix = self._prefix(agents)
            if prefix is not None:
                prefix.extend_to(prompts)
                return prefix
        session = self.voices.session(agents)
        session.append(prompts, reading=reading)
        return session

    def _after_bids(self, questions: list[Question]) -> Session | None:
        """The sessions in which these agents bid, as one; None if they have not, or in several."""
        places = [self._bid_sessions.get((q.world, q.agent)) for q in questions]
        found = [place for place in places if place is not None]
        if len(found) < len(places) or len({id(session) for session, _ in found}) != 1:
            return None
        session, rows = found[0][0], [row for _, row in found]
        reader = self.voices.loaded.pictures
        if reader is not None:
            # A picture is read with the prompt's beginning or not at all.
            for question, row in zip(questions, rows, strict=True):
                shared = common_prefix(session.tokens[row], question.prompt)
                if reader.holds_picture(question.prompt[shared:]):
                    return None
        return session.select(rows)

    def _prefix(self, agents: Sequence[int]) -> Session | None:
        """A session that has read the agents' system messages; None if that cannot be shared."""
        groups = self.voices.groups(np.arange(self.num_agents))
        members = next(tuple(g.tolist()) for g in groups if agents[0] in g)
        version = self.voices.version()
        kept = self._prefixes.get(members)
        if kept is None or kept[0] != version or torch.is_grad_enabled():
            if not self._shared:
                self._shared = {
                    a: self.chat.shared_prefix(system) for a, system in enumerate(self.systems)
                }
            pieces = [self._shared[a] for a in members]
            if min(map(len, pieces)) == 0:
                return None
            session = self.voices.session(members)
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
        config: BidLearning,
        counter: FlopCounter,
        turns: NDArray[np.int64],
        worlds: NDArray[np.int64],
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
        for attempt in range(config.resamples):
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
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, float]:
        """See `TextPolicy`."""
        return learning.action_loss(self, batch, advantage, entropy_weight, counter, clip)

    def bid_loss(
        self,
        batch: Batch,
        advantage: NDArray[np.float64],
        entropy_weight: float,
        counter: FlopCounter,
        clip: float | None,
    ) -> tuple[Tensor, dict[str, float]]:
        """See `TextPolicy`."""
        return learning.bid_loss(self, batch, advantage, entropy_weight, counter, clip)

    def preference_loss(
        self, pairs: Pairs, responses: Sequence[Any], counter: FlopCounter
    ) -> tuple[Tensor, dict[str, float]]:
        """See `TextPolicy`."""
        return learning.preference_loss(self, pairs.weights, responses, counter)

    def fit(
        self,
        demonstrations: Demonstrations,
        game: VectorGame,
        config: ColdStartConfig,
        seed: int,
        counter: FlopCounter,
    ) -> dict[str, float]:
        """See `TextPolicy`."""
        assert isinstance(game, TextVectorGame)
        return cold_start.fit(self, demonstrations, game, config, seed, counter)

    def read_demonstrations(self, game: VectorGame) -> None:
        """See `TextPolicy`."""
        assert isinstance(game, TextVectorGame)
        path = Path(self.config.demonstrations)
        self._taught = cold_start.encode(self, demos.read(path), game)

    def fit_file(
        self, config: ColdStartConfig, seed: int, counter: FlopCounter
    ) -> dict[str, float]:
        """See `TextPolicy`."""
        taught, self._taught = self._taught, []
        return cold_start.fit_answers(self, taught, config, seed, counter)


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
    voices = Voices(loaded, game.num_agents, config.language, seed + 1)
    return LanguagePolicy(game, config.language, voices, bids)
