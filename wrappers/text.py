"""The text view: agents read the game and answer in words, as language models do.

What an agent reads is the task's own text (`TurnTask.prompt`) with the game's part below it: the
turns left, the last resolved auction, and how to answer now. In the bid phase it answers with a
number (`wrappers.bid_text`), in the act phase with the name of an action (`TurnTask.parse`). An
answer that cannot be read, or names an illegal action, is a counted no-op by default: a bid of 0, a
wasted turn.

Both sides can be had alone: texts to read with discrete actions, or vectors with answers in words.
"""

from __future__ import annotations

import string
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wrappers.bid_text import MAX_ANSWER, read_bid
from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import ActionFormatError, IllegalActionError
from wrappers.task import ParseError, Phase
from wrappers.view import GameView

MAX_PROMPT = 50_000
"""Length of the longest text that is shown, in characters; longer ones lose their middle."""

_CUT = "\n[...]\n"


class UnicodeText(spaces.Text):
    """A `gymnasium.spaces.Text` of any characters; samples are up to 100 of printable ASCII.

    Args:
        max_length: length of the longest text, in characters.
        seed: seeds the samples.
    """

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text; arguments as in `gymnasium.spaces.Text.sample`."""
        if mask is None and probability is None:
            length = int(self.np_random.integers(min(100, self.max_length) + 1))
            return super().sample(mask=(length, None))
        return super().sample(mask, probability)

    def contains(self, x: Any) -> bool:
        """Whether it is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]


class TextView(GameView):
    """The game in words.

    Observation: ``Dict(text: UnicodeText)``, with ``action_mask`` beside it where actions are
    discrete. (Under the key ``observation`` PettingZoo's ``api_test`` insists on a dtype, which a
    str has not.) Action: ``UnicodeText``. Where actions are texts there is no mask, in neither
    observation nor infos; instead ``info["legal_answers"]`` lists what may be answered, and
    ``info["parse_error"]`` is why the agent's last answer was not read (a `ParseError`), until it
    answers again.

    Args:
        env: the game or a view of it.
        text_observation: show texts; False passes on what `env` shows.
        text_action: take texts; False takes the actions of `env`.
        on_parse_error: "noop": an answer that cannot be read counts as an illegal action and has
            the effect of one; "raise": `IllegalActionError`, and nothing changes. None: what the
            game does with illegal actions.

    Attributes:
        parse_errors: number of unread answers of the episode by their kind.
    """

    def __init__(
        self,
        env: BidThenActEnv | GameView,
        *,
        text_observation: bool = True,
        text_action: bool = True,
        on_parse_error: Literal["noop", "raise"] | None = None,
    ) -> None:
        super().__init__(env)
        if on_parse_error not in (None, "noop", "raise"):
            raise ValueError(f'on_parse_error must be "noop" or "raise", got {on_parse_error!r}')
        if on_parse_error == "noop" and self.game.on_illegal == "raise":
            raise ValueError(
                'on_parse_error="noop" needs a game made with on_illegal="noop": an unread answer '
                "is played as an illegal action"
            )
        self.text_observation, self.text_action = text_observation, text_action
        self.on_parse_error: str = on_parse_error or self.game.on_illegal
        self.parse_errors: dict[str, int] = {}
        self._last_errors: dict[str, ParseError] = {}
        for agent in self.game.possible_agents:
            inner = env.observation_space(agent)
            assert isinstance(inner, spaces.Dict)
            parts = dict(inner.spaces)
            mask = parts.pop("action_mask")
            if text_observation:
                parts = {"text": UnicodeText(MAX_PROMPT)}
            if text_action:
                self.action_spaces[agent] = UnicodeText(MAX_ANSWER)
            else:
                parts["action_mask"] = mask
            self.observation_spaces[agent] = spaces.Dict(parts)

    # -- reading -----------------------------------------------------------------------------

    def observe(self, agent: str) -> dict[str, Any]:
        """What the agent reads now; any possible agent, at any time after a reset."""
        inner: Any = dict(self.env.observe(agent))
        mask = inner.pop("action_mask")
        if self.text_observation:
            inner = {"text": self._prompt(agent, mask)}
        if not self.text_action:
            inner["action_mask"] = mask
        return inner

    def prompt(self, agent: str) -> str:
        """The text that the agent reads now, at most `MAX_PROMPT` characters."""
        return self._prompt(agent, self._mask(agent))

    def profile(self, agent: str) -> str:
        """The system message of a language model that plays the agent."""
        return f"{self.task.profile(agent)}\n{market_rules(self.bid_levels)}"

    def _prompt(self, agent: str, mask: NDArray[np.int8]) -> str:
        own = self._own_phase(agent)
        rules = f"{self.task.prompt(agent, own)}\n\n{self._game_part(agent, mask)}"
        if len(rules) <= MAX_PROMPT:
            return rules
        half = (MAX_PROMPT - len(_CUT)) // 2
        return rules[:half] + _CUT + rules[-half:]

    def _own_phase(self, agent: str) -> Phase:
        """An agent that did not win reads the act phase as an onlooker, who is not asked to act."""
        return "act" if self.phase == "act" and agent == self.game.agent_selection else "bid"

    def _game_part(self, agent: str, mask: NDArray[np.int8]) -> str:
        lines = [f"Turns left: {self.max_turns - self.turn} of {self.max_turns}."]
        if self.last_auction is not None:
            lines.append(self._auction_line())
        if self._is_over():
            lines.append("The episode is over.")
        elif self.phase == "act":
            if agent == self.game.agent_selection:
                lines.append("You won this turn: act. Answer with the name of one action.")
            else:
                lines.append(f"{self.game.agent_selection} won this turn and acts now.")
        elif mask[1 : len(self.bid_levels)].any():
            lines.append(
                "Bid for this turn: how much do you want to act? Answer with a number from 0 to 1, "
                'such as {"bid": 0.7}. It counts as the nearest of '
                f"{', '.join(f'{level:g}' for level in self.bid_levels)}."
            )
        else:
            lines.append("You are absent in this turn: your bid is 0, whatever you answer.")
        return "\n".join(lines)

    def _auction_line(self) -> str:
        auction = self.last_auction
        assert auction is not None
        bids = ", ".join(
            f"{name} {bid:g}"
            for name, bid in zip(self.game.possible_agents, auction.bids, strict=True)
        )
        outcome = "nobody acted" if auction.winner is None else f"{auction.winner} won"
        when = "this turn" if auction.turn == self.turn else "the last turn"
        return f"Bids of {when}: {bids}; {outcome}."

    # -- answering ---------------------------------------------------------------------------

    def read(self, agent: str, text: str) -> int | ParseError:
        """What an answer of the agent means now: an action of the game inside, or why none."""
        if len(text) > MAX_ANSWER:
            message = f"Answer in at most {MAX_ANSWER} characters."
            return ParseError("too_long", message, text[:200])
        levels = len(self.bid_levels)
        mask = self._mask(agent)
        if self.phase == "bid":
            return read_bid(text, self.bid_levels, mask[:levels])
        action = self.task.parse(agent, text.rpartition("</think>")[2])
        if isinstance(action, ParseError):
            return action
        if not mask[levels + action]:
            name = self.task.action_names(agent)[action]
            legal = ", ".join(self.task.legal_action_names(agent))
            message = f"{name} is not possible now. Legal actions: {legal}."
            return ParseError("illegal", message, text[:200])
        return levels + action

    def step(self, action: Any) -> None:
        """The selected agent answers.

        Raises:
            ActionFormatError: no text, where actions are texts.
            IllegalActionError: it cannot be read, under ``on_parse_error="raise"``.
            PhaseError: before a reset or after the end.
        """
        if not self.text_action or not self.game.agents or self._is_over():
            super().step(action)
            return
        agent = self.game.agent_selection
        if not isinstance(action, str):
            raise ActionFormatError(f"{agent} must answer with a text, got {action!r}")
        choice = self.read(agent, action)
        if isinstance(choice, ParseError):
            if self.on_parse_error == "raise":
                raise IllegalActionError(f"{agent}: {choice.message} ({choice.kind})")
            self.parse_errors[choice.kind] = self.parse_errors.get(choice.kind, 0) + 1
            self._last_errors[agent] = choice
            # Played as an action that is illegal for certain: an action while bids are asked for,
            # a bid while an action is.
            super().step(len(self.bid_levels) if self.phase == "bid" else 0)
        else:
            self._last_errors.pop(agent, None)
            super().step(choice)

    def answer(self, agent: str, choice: int) -> str:
        """An action of the game inside in words: a bid as a number, an action as its name."""
        if choice < len(self.bid_levels):
            return f"{self.bid_levels[choice]:g}"
        return self.task.action_names(agent)[choice - len(self.bid_levels)]

    # -- state -------------------------------------------------------------------------------

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        """Start an episode; see `BidThenActEnv.reset`."""
        self.parse_errors, self._last_errors = {}, {}
        super().reset(seed, options)

    def restore(self, snapshot: Any) -> None:
        """Continue from a snapshot of the game; answers that were not read are forgotten."""
        super().restore(snapshot)
        self.parse_errors, self._last_errors = {}, {}

    def _view_info(self, agent: str, info: dict[str, Any]) -> dict[str, Any]:
        if not self.text_action:
            return info
        shown = {key: value for key, value in info.items() if key != "action_mask"}
        shown["legal_answers"] = tuple(
            self.answer(agent, int(i)) for i in np.flatnonzero(self._mask(agent))
        )
        if agent in self._last_errors:
            shown["parse_error"] = self._last_errors[agent]
        return shown

    def _mask(self, agent: str) -> NDArray[np.int8]:
        inner: Any = self.env.observe(agent)
        mask: NDArray[np.int8] = inner["action_mask"]
        return mask

    def _is_over(self) -> bool:
        return any(self.game.terminations.values()) or any(self.game.truncations.values())

    def _rewrap(self, env: BidThenActEnv | GameView) -> TextView:
        on_parse_error: Any = self.on_parse_error
        return TextView(
            env,
            text_observation=self.text_observation,
            text_action=self.text_action,
            on_parse_error=on_parse_error,
        )


def market_rules(levels: tuple[float, ...]) -> str:
    """The game's rules, for the system message of a language model."""
    return (
        "Each turn has two phases. First every agent bids, in secret, how much it wants to act "
        f"(0 to {levels[-1]:g}); then the highest bidder alone acts for the team. Equal bids are "
        "drawn by lot; if all bid 0, the turn is skipped. Bid high when you are the right one to "
        "act now, and low when another should. The reward of every turn is the whole team's."
    )
