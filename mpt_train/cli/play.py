"""`mpt play`: one episode as text or as an animated picture."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import tyro

from mpt_train.cli.console import number, say, table, usage_errors
from mpt_train.cli.listings import description
from mpt_train.errors import UsageError

if TYPE_CHECKING:
    from mpt_train.config import TrainConfig
    from mpt_train.episode import Move, PlayedTurn
    from wrappers.bid_then_act import BidThenActEnv

DESCRIPTION = description(
    """
    Play one episode and show it.

    TARGET is a task, which the scripted expert or chance plays, or the folder of a run, whose
    agents play a held-out world. `mpt tasks` lists the tasks.

    examples:
      mpt play crafting/iron-pickaxe-v0
      mpt play crafting/torch-v0 --policy random --seed 7 --pictures
      mpt play runs/mine --as gif --out episode.gif
      mpt play crafting/torch-v0 --backend minetest
      mpt play runs/mine --coordination round-robin
    """
)


# What terminals understand as a colour; files and pipes get the characters alone.
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Arguments:
    """What `mpt play` is told."""

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET")]
    """A task's id, or a run folder."""
    form: Annotated[Literal["text", "gif"], tyro.conf.arg(name="as")] = "text"
    """Text, one line a turn, or an animated picture."""
    out: Path | None = None
    """File to write; None: text goes to the terminal, a GIF to episode.gif."""
    policy: Literal["expert", "random", "run"] | None = None
    """Who plays: the task's scripted expert, chance, or the agents of a run; None: the run's agents
    if TARGET is a run, else the expert."""
    coordination: str | None = None
    """Who decides who acts: round-robin, random, priority, ...; None: whoever plays bids too."""
    seed: int | None = None
    """Seed of the world, as in env.reset(seed=...); None: 0 for a task, the first held-out world
    for a run."""
    backend: str | None = None
    """Play in another backend of the domain, e.g. minetest; None: the run's, else the embedded
    one."""
    checkpoint: Literal["final", "cold_start"] = "final"
    """Of a run: its last checkpoint, or the one right after the cold start."""
    pictures: tyro.conf.FlagCreatePairsOff[bool] = False
    """Text: draw the world after every turn, in characters."""
    fps: float = 4.0
    """GIF: pictures a second."""


def main(arguments: Sequence[str], prog: str = "mpt play") -> int:
    """Run the command; returns the exit code."""
    parsed = tyro.cli(Arguments, prog=prog, description=DESCRIPTION, args=arguments)
    if parsed.form == "gif" and parsed.pictures:
        raise UsageError("--pictures is for text; a GIF consists of pictures anyway")
    with usage_errors():
        config, seed, moves = _record(parsed)
        env = _game(config)
    if parsed.form == "gif":
        _write_gif(parsed, env, seed, moves)
        return 0
    with _output(parsed.out) as file:
        _write_text(file, parsed, config.task, env, seed, moves)
    if parsed.out is not None:
        say(f"wrote {parsed.out}")
    return 0


def _record(parsed: Arguments) -> tuple[TrainConfig, int, list[Move]]:
    """What is played: the configuration of the game, the world's seed, and the moves."""
    folder = Path(parsed.target)
    is_run = folder.is_dir()
    policy = parsed.policy or ("run" if is_run else "expert")
    if policy == "run" and not is_run:
        raise UsageError(
            f"--policy run needs a run folder, and there is no folder {parsed.target!r}"
        )
    if is_run:
        from mpt_train.runs.folder import RunFolder
        from mpt_train.seeds import evaluation_seeds

        config = RunFolder.existing(folder).read_config()
        seed = int(evaluation_seeds(1)[0]) if parsed.seed is None else parsed.seed
    else:
        from mpt_envs import UnknownTaskError, spec
        from mpt_train.config import TrainConfig

        try:
            config = TrainConfig(task=spec(parsed.target).id)
        except UnknownTaskError as error:
            raise UsageError(f"there is no folder {parsed.target!r}, and {error}") from None
        seed = parsed.seed or 0
    if parsed.backend is not None:
        config = dataclasses.replace(
            config, env=dataclasses.replace(config.env, backend=parsed.backend)
        )
    from mpt_train import episode
    from mpt_train.games import build_game

    if policy != "run" and config.coordination == "solo":
        # The expert and chance play the swarm's roles.
        config = dataclasses.replace(config, coordination="learned")
    game = build_game(config, 1)
    if policy == "expert" and not game.has_expert:
        raise UsageError(
            f"{config.task} has no scripted expert to play it; let chance play with --policy random"
        )
    if policy == "run":
        import torch

        from mpt_train.evaluate import load_agents, swap_coordination

        torch.set_num_threads(1)
        agents = load_agents(folder, game, config, parsed.checkpoint)
        strategy = swap_coordination(agents, config, parsed.coordination)
        return config, seed, episode.record_agents(game, seed, agents, strategy)
    bid: episode.Bidder = episode.random_bids
    act: episode.Actor = episode.random_action
    if policy == "expert":
        bid, act = episode.expert_bids, episode.expert_action
    if parsed.coordination is not None:
        bid = episode.coordinated_bids(game, config, parsed.coordination)
    return config, seed, episode.record(game, seed, bid, act)


def _game(config: TrainConfig) -> BidThenActEnv:
    """The AEC game of a configuration."""
    from mpt_envs import make
    from mpt_train.games import game_options

    return make(config.task, api="aec", **game_options(config))


def _write_text(
    file: TextIO, parsed: Arguments, id: str, env: BidThenActEnv, seed: int, moves: Sequence[Move]
) -> None:
    from mpt_envs import spec
    from mpt_train.episode import draw, replay

    colors = file.isatty() and "NO_COLOR" not in os.environ
    # The id it is made by: a task may call itself something else, like gymnasium/Taxi-v4.
    print(f"{spec(id).id}, seed {seed}", file=file)
    for played in replay(env, seed, moves):
        print(describe(played, env.max_turns), file=file)
        if parsed.pictures:
            picture = str(draw(env, "ansi", played))
            print(f"{picture if colors else _COLORS.sub('', picture)}\n", file=file)
    metrics = {name: number(value) for name, value in env.metrics().items()}
    print(f"\n{table(metrics, '')}", file=file)


def describe(played: PlayedTurn, max_turns: int) -> str:
    """A turn as one line."""
    width = len(str(max_turns))
    bids = "  ".join(f"{agent} {bid:<4g}" for agent, bid in played.bids.items())
    who = "nobody acts" if played.winner is None else f"{played.winner}: {played.action}"
    if played.illegal:
        who += " (illegal)"
    reward = f"  {played.reward:+g} = {played.total:g}" if played.reward else ""
    return f"{played.turn + 1:>{width}}  {bids} | {who}{reward}"


def _write_gif(parsed: Arguments, env: BidThenActEnv, seed: int, moves: Sequence[Move]) -> None:
    from mpt_envs.recording import write_gif
    from mpt_train.episode import draw, replay

    path = parsed.out or Path("episode.gif")
    env.reset(seed=seed)
    frames = [draw(env, "rgb_array", None)]
    frames += [draw(env, "rgb_array", played) for played in replay(env, seed, moves)]
    with usage_errors():
        try:
            write_gif(path, frames, fps=parsed.fps)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error}") from error
    say(f"wrote {path}: {len(moves)} turns, return {number(env.metrics()['return'])}")


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """The file to write text to, or standard output."""
    if path is None:
        yield sys.stdout
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error
