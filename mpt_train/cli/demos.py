"""`mpt demos`: demonstrations of the scripted expert as chat messages, for language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from mpt_train.cli.console import say, usage_errors
from mpt_train.cli.listings import description
from mpt_train.config import ColdStartConfig, EnvConfig, TrainConfig, check_config
from mpt_train.errors import UsageError
from mpt_train.language.config import LanguageConfig

if TYPE_CHECKING:
    from mpt_train.language.demos import Example

DESCRIPTION = description(
    """
    Write demonstrations of a task's scripted expert as JSON lines.

    Each line is what one agent reads and what it should answer, a bid or an action, as `prompt` and
    `completion` messages: the conversational prompt-completion format of TRL, whose supervised
    trainer learns from the completion only. `mpt train --policy language
    --language.demonstrations FILE` learns its cold start from such a file.

    examples:
      mpt demos crafting/iron-pickaxe-v0 --out demos.jsonl
      mpt demos crafting/torch-v0 --episodes 500 --answers plain --action-noise 0
      mpt demos crafting/torch-v0 --solo            one agent with all roles' actions
    """
)


@dataclass(frozen=True)
class Arguments:
    """What `mpt demos` is told."""

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """Environment id."""
    out: Path = Path("demos.jsonl")
    """File to write."""
    episodes: int = 64
    """Demonstration episodes."""
    seed: int = 0
    """Training seed, whose demonstrations these are."""
    agents: int | None = None
    """Number of agents, a multiple of the number of roles; None: one per role."""
    action_noise: float = 0.3
    """Probability that the demonstrator acts at random among the legal actions."""
    bid_noise: float = 0.3
    """Probability that in a turn a random agent of the demonstrator is the eager one."""
    answers: Annotated[str, tyro.conf.arg(metavar="{json,plain}")] = "json"
    """Form of the answers: {"bid": 0.7}, {"action": "chop_log"}, or 0.7, chop_log."""
    brief: tyro.conf.FlagCreatePairsOff[bool] = False
    """Brief prompts (see --language.prompts of `mpt train`)."""
    history: int = 0
    """How many past turns a prompt tells at most."""
    solo: tyro.conf.FlagCreatePairsOff[bool] = False
    """One agent with all roles' actions, which does not bid: for a monolithic policy."""


def main(arguments: Sequence[str], prog: str = "mpt demos") -> int:
    """Run the command; returns the exit code."""
    parsed = tyro.cli(Arguments, prog=prog, description=DESCRIPTION, args=arguments)
    if parsed.answers not in ("json", "plain"):
        raise UsageError(f"--answers must be json or plain, got {parsed.answers!r}")
    config = TrainConfig(
        task=parsed.task,
        seed=parsed.seed,
        policy="language",
        coordination="round-robin",
        env=EnvConfig(agents=parsed.agents),
        cold_start=ColdStartConfig(
            episodes=parsed.episodes,
            action_noise=parsed.action_noise,
            bid_noise=parsed.bid_noise,
        ),
        language=LanguageConfig(
            answers="json" if parsed.answers == "json" else "plain",
            prompts="brief" if parsed.brief else "full",
            history=parsed.history,
        ),
    )
    from mpt_train.language.demos import write

    with usage_errors():
        if parsed.episodes < 1:
            raise ValueError(f"--episodes must be at least 1, got {parsed.episodes}")
        check_config(_checked(config))
        examples = collect(config, solo=parsed.solo)
        try:
            count = write(examples, parsed.out, parsed.task)
        except OSError as error:
            raise UsageError(f"{parsed.out} cannot be written: {error.strerror}") from error
    say(f"wrote {parsed.out}: {count} answers of {parsed.episodes} episodes")
    return 0


def collect(config: TrainConfig, *, solo: bool) -> Iterator[Example]:
    """The examples of a configuration's demonstrations.

    Args:
        config: task, noise and form of the answers.
        solo: for one agent with all roles' actions.
    """
    from mpt_train.demonstrations import demonstrate, replay_solo
    from mpt_train.games import build_game
    from mpt_train.language.demos import replay
    from mpt_train.language.game import TextVectorGame
    from mpt_train.seeds import demonstration_seeds

    count = config.cold_start.episodes
    game = build_game(config, count, solo=False)
    if not game.has_expert:
        raise UsageError(
            f"{config.task} has no scripted expert to write down; implement expert_bid and "
            "expert_action in your task"
        )
    width, actions = max(game.observation_sizes), max(game.action_counts)
    demos = demonstrate(game, config.cold_start, config.seed, width, actions)
    if solo:
        single = build_game(config, count, solo=True)
        sizes = max(single.observation_sizes), max(single.action_counts)
        demos = replay_solo(single, demos, game, config.seed, *sizes)
        game = single
    assert isinstance(game, TextVectorGame)
    return replay(
        game,
        demos.batch,
        demonstration_seeds(config.seed, count),
        config.language.answers,
        history=config.language.history,
        bids=not solo,
    )


def _checked(config: TrainConfig) -> TrainConfig:
    """The configuration with a credit that goes with its coordination, which nobody learns from."""
    import dataclasses

    action = dataclasses.replace(config.action, credit="discounted")
    return dataclasses.replace(config, action=action)
