"""`AskingPolicy`: questions to agents in words, and what their answers mean.

Where the answers come from, a model in this process or a server, is up to the subclass.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mpt_train.flops import FlopCounter
from mpt_train.language.answers import bid_options, option_text
from mpt_train.language.chat import Tokens
from mpt_train.language.config import LanguageConfig
from mpt_train.language.errors import UnreadAnswerError
from mpt_train.language.game import UNREAD, TextVectorGame
from mpt_train.language.transcript import Answer, Key, Transcript
from mpt_train.policies.base import Refine, TurnContext
from mpt_train.policies.text import TextPolicy
from wrappers.rng import STREAM_POLICY_ACTION, STREAM_POLICY_BID
from wrappers.task import ParseError


@dataclass
class Question:
    """What one agent is asked in one world.

    Attributes:
        world: of the game.
        agent: index.
        key, turn: for the noise.
        system: the system message; empty: none.
        users: forms of the user message, with less and less history.
        picture: shown besides, or None.
        choices: the answers to choose from; empty: any text.
        prompt, options: token ids of prompt and choices, for models in this process.
    """

    world: int
    agent: int
    key: int
    turn: int
    system: str = ""
    users: tuple[str, ...] = ()
    picture: NDArray[np.uint8] | None = None
    choices: tuple[str, ...] = ()
    prompt: Tokens = field(default_factory=lambda: np.zeros(0, np.int32))
    options: tuple[Tokens, ...] = ()


class AskingPolicy(TextPolicy):
    """Agents that are asked in words.

    Args:
        game: gives names, roles, profiles and sizes.
        config: see `LanguageConfig`.
        bids: whether agents bid.
    """

    def __init__(self, game: TextVectorGame, config: LanguageConfig, bids: bool) -> None:
        super().__init__()
        self.observation_size = max(game.observation_sizes)
        self.action_counts = game.action_counts
        self.num_agents = game.num_agents
        self.num_actions = max(game.action_counts)
        self.num_levels = len(game.bid_levels) if bids else 0
        self.config = config
        self.systems = [
            game.profile(agent) if config.profile else "" for agent in range(game.num_agents)
        ]
        self.levels = tuple(float(x) for x in game.bid_levels)

    @abc.abstractmethod
    def _draw(
        self,
        questions: list[Question],
        phase: str,
        stream: np.uint64,
        attempt: int,
        counter: FlopCounter,
        part: str,
    ) -> list[Answer]:
        """Draw an answer to each question.

        Args:
            questions: of one phase.
            phase: "bid" or "act".
            stream, attempt: key the noise, with each question's key and turn and the agent.
            counter: operations are counted under ``part`` + "_bid" or "_act".
            part: what for.
        """

    def _forget_turn(self) -> None:
        """A turn is over: drop what was kept for it."""

    # -- asking ------------------------------------------------------------------------------

    def new_transcript(self) -> Transcript:
        """An empty one."""
        self._forget_turn()
        return Transcript()

    def users(self, game: TextVectorGame, world: int, agent: int) -> tuple[str, ...]:
        """Forms of the user message, from the one with the longest history to that with none."""
        text = game.prompt(world, agent)
        past = game.history[world][-self.config.history :] if self.config.history else ()
        forms = []
        for start in range(len(past)):
            lines = "\n".join(told.line() for told in past[start:])
            forms.append(f"What happened:\n{lines}\n\n{text}")
        return (*forms, text)

    def question(
        self, game: TextVectorGame, world: int, agent: int, key: int, turn: int, phase: str
    ) -> Question:
        """What an agent is asked now."""
        choices: tuple[str, ...] = ()
        if self.config.decoding == "choice":
            if phase == "bid":
                choices = tuple(bid_options(self.levels, self.config.answers))
            else:
                legal = game.envs[world].task.legal_action_names(game.possible_agents[agent])
                choices = tuple(option_text(name, self.config.answers) for name in legal)
        return Question(
            world,
            agent,
            key,
            turn,
            self.systems[agent],
            self.users(game, world, agent),
            game.picture(world) if self.config.pictures else None,
            choices,
        )

    def bids(self, context: TurnContext) -> NDArray[np.int64]:
        """Ask every present agent of every world for its bid."""
        game, rows = _text_game(context)
        self._forget_turn()
        asked = [(int(i), int(a)) for i, a in np.argwhere(context.present)]
        questions = [
            self.question(game, int(rows[i]), a, int(context.keys[i]), int(context.turns[i]), "bid")
            for i, a in asked
        ]
        answers = self._ask(context, questions, "bid", STREAM_POLICY_BID)
        levels = np.zeros(context.present.shape, np.int64)
        for (i, a), answer in zip(asked, answers, strict=True):
            levels[i, a] = max(answer.choice, 0)
        return levels

    def act(
        self, context: TurnContext, winners: NDArray[np.int64], refine: Refine, log_probs: bool
    ) -> tuple[NDArray[np.int64], None]:
        """Ask the winners for their actions; an answer that says nothing is -1, too."""
        game, rows = _text_game(context)
        acting = np.flatnonzero(winners >= 0).tolist()
        questions = [
            self.question(
                game,
                int(rows[i]),
                int(winners[i]),
                int(context.keys[i]),
                int(context.turns[i]),
                "act",
            )
            for i in acting
        ]
        answers = self._ask(context, questions, "act", STREAM_POLICY_ACTION)
        actions = np.full(len(winners), UNREAD, np.int64)
        for i, answer in zip(acting, answers, strict=True):
            actions[i] = answer.choice
        self._forget_turn()
        return actions, None

    def _ask(
        self, context: TurnContext, questions: list[Question], phase: str, stream: np.uint64
    ) -> list[Answer]:
        """Answers to questions, read and written down; unread ones have the choice -1."""
        answers = self._draw(questions, phase, stream, 0, context.counter, context.part)
        waiting = list(range(len(questions)))
        attempts = self.config.retries if self.config.unread == "retry" else 0
        for attempt in range(attempts + 1):
            if attempt:
                again = self._draw(
                    [questions[i] for i in waiting],
                    phase,
                    stream,
                    attempt,
                    context.counter,
                    context.part,
                )
                for i, answer in zip(waiting, again, strict=True):
                    answers[i] = answer
            failed = []
            for i in waiting:
                if self._read(context, questions[i], answers[i]):
                    failed.append(i)
                    if attempt < attempts:
                        context.transcript.count(phase, answers[i].error)
            waiting = failed
            if not waiting:
                break
        for question, answer in zip(questions, answers, strict=True):
            key = Key(phase, question.key, question.turn, question.agent)
            context.transcript.add(key, answer)
        return answers

    def _read(self, context: TurnContext, question: Question, answer: Answer) -> bool:
        """Read an answer into its choice; whether that failed."""
        game, _ = _text_game(context)
        choice = game.read(question.world, question.agent, answer.text)
        if not isinstance(choice, ParseError):
            answer.choice = choice
            return False
        answer.error = choice.kind
        if self.config.unread == "raise":
            name = game.possible_agents[question.agent]
            raise UnreadAnswerError(
                f"{name} answered {answer.text[:200]!r} in turn {question.turn + 1}: "
                f"{choice.message} ({choice.kind})"
            )
        return True


def _text_game(context: TurnContext) -> tuple[TextVectorGame, NDArray[np.int64]]:
    game, rows = context.game, context.rows
    if not isinstance(game, TextVectorGame) or rows is None:
        raise TypeError("language models play text games; see mpt_train.language.game")
    return game, rows
