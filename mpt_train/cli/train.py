"""`mpt train`: one training run in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from mpt_train.cli.console import number, resume_command, say, table, usage_errors
from mpt_train.cli.listings import describe_methods, description
from mpt_train.config import TrainConfig
from mpt_train.methods import method_config

DEFAULT_METHOD = "mpt-plus"

DESCRIPTION = description(
    """
    Train one method on one task: mpt train [METHOD] [OPTIONS]

    METHOD is a named configuration (default: {default}). Every option below changes one field of
    it, and the defaults that are shown are those of the method:

    {methods}

    examples:
      mpt train
      mpt train round-robin --task crafting/torch-v0 --seed 3
      mpt train mpt --budget-gflop 50 --bids.contested-turns 16 --folder runs/sixteen
      mpt train --backend minetest --num-envs 8
      mpt train --resume --folder runs/sixteen      after Ctrl-C, a crash or kill -9

    The run folder gets the configuration, the log (metrics.jsonl, and tb/ for
    `tensorboard --logdir`), checkpoints and a summary. Ctrl-C stops it with a checkpoint.
    """
)


@dataclass(frozen=True)
class Arguments:
    """What `mpt train` is told."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    folder: Path | None = None
    """Run folder; None: runs/TASK/METHOD-seed-SEED."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Continue the run in --folder with its own configuration, to the same numbers as if it had
    never stopped. Starts it if it was never begun."""
    overwrite: tyro.conf.FlagCreatePairsOff[bool] = False
    """Replace the run that is in --folder."""
    quiet: tyro.conf.FlagCreatePairsOff[bool] = False
    """No progress bar."""
    threads: int = 1
    """Threads of PyTorch. The networks are small: more than one rarely pays, and the last digits
    of a run may depend on it."""


def main(arguments: Sequence[str], prog: str = "mpt train") -> int:
    """Run the command; returns the exit code."""
    with usage_errors():
        parsed = parse(arguments, prog)
        config = parsed.config
        from mpt_envs import spec

        spec(config.task)
    folder = parsed.folder or default_folder(config)
    say(f"{config.method} on {config.task}, seed {config.seed}, in {folder}")
    return _train(parsed, config, folder)


def parse(arguments: Sequence[str], prog: str = "mpt train") -> Arguments:
    """Read the command line; options override the method's or the resumed run's configuration.

    Raises:
        ValueError: there is no such method.
        SystemExit: help was asked for, or an option is wrong; the message is printed.
    """
    given = [_written_out(argument) for argument in arguments]
    if given and not given[0].startswith("-"):
        given = ["--method", *given]
    method = _value_of("--method", given) or DEFAULT_METHOD
    parsed = _cli(method_config(method), given, prog)
    if parsed.resume:
        from mpt_train.runs.folder import RunFolder

        run = RunFolder(parsed.folder or default_folder(parsed.config))
        if run.config.exists():
            # Options that were not given take the run's own values.
            parsed = _cli(run.read_config(), given, prog)
    return parsed


def _written_out(argument: str) -> str:
    """``--backend`` is short for ``--env.backend``, as `mpt eval` and `mpt play` call it."""
    name, equals, value = argument.partition("=")
    return f"--env.backend{equals}{value}" if name == "--backend" else argument


def default_folder(config: TrainConfig) -> Path:
    """``runs/TASK/METHOD-seed-SEED``."""
    return Path("runs", config.task.replace("/", "-"), f"{config.method}-seed-{config.seed}")


def _cli(config: TrainConfig, arguments: list[str], prog: str) -> Arguments:
    text = DESCRIPTION.format(default=DEFAULT_METHOD, methods=describe_methods())
    return tyro.cli(
        Arguments, prog=prog, description=text, default=Arguments(config), args=arguments
    )


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    """The last value that a flag is given."""
    value = None
    for index, argument in enumerate(arguments):
        if argument.startswith(flag + "="):
            value = argument[len(flag) + 1 :]
        elif argument == flag and index + 1 < len(arguments):
            value = arguments[index + 1]
    return value


def _train(parsed: Arguments, config: TrainConfig, folder: Path) -> int:
    import torch

    from mpt_train.loop import Trainer
    from mpt_train.runs.checkpoint import has_checkpoint
    from mpt_train.runs.folder import RunFolder
    from mpt_train.runs.interrupt import graceful_interrupt

    run = RunFolder(folder)
    with usage_errors():
        if parsed.threads < 1:
            raise ValueError(f"--threads must be at least 1, got {parsed.threads}")
        torch.set_num_threads(parsed.threads)
    with graceful_interrupt() as stop:
        try:
            with usage_errors():
                trainer = Trainer(
                    config,
                    folder,
                    resume=parsed.resume,
                    overwrite=parsed.overwrite,
                    stop=stop,
                    announce=lambda flop: _warn_of(flop, config),
                )
            if parsed.resume:
                step = trainer.progress.step
                say(f"continuing after step {step}" if step else "no checkpoint yet: starting")
            summary = trainer.train(progress=not parsed.quiet and sys.stderr.isatty())
        except KeyboardInterrupt as stopped:
            if str(stopped):
                raise
            # The second Ctrl-C: nothing more is saved.
            what = "keeps the last checkpoint" if has_checkpoint(run.checkpoint) else "starts again"
            raise KeyboardInterrupt(
                f"Quit at once. {resume_command(folder)}\n{what} and goes on from there."
            ) from None
    print(
        table(
            {
                "return": f"{number(summary.cold_start['return_mean'])} after the cold start, "
                f"{number(summary.final['return_mean'])} at the end (held-out worlds)",
                "success": f"{number(summary.cold_start['success'])} -> "
                f"{number(summary.final['success'])}",
                "turns": f"{summary.turns} in {summary.episodes} episodes, {summary.steps} steps",
                "compute": f"{number(summary.flop / 1e9)} GFLOP in {summary.wall_seconds:.0f} s",
                "folder": str(folder),
            },
            indent="",
        )
    )
    if not summary.steps:
        say(
            f"\nwarning: the cold start alone took {number(summary.flop / 1e9)} of "
            f"{number(config.budget_gflop)} GFLOP; nothing was trained: {_advice(config)}"
        )
    say(f"\nmpt eval {folder}   evaluates it\nmpt play {folder}   shows an episode")
    return 0


def _warn_of(flop: int, config: TrainConfig) -> None:
    """Say it before a cold start that leaves nothing of the budget."""
    if flop >= config.budget_gflop * 1e9:
        say(
            f"warning: the cold start will take about {number(flop / 1e9)} GFLOP of a budget of "
            f"{number(config.budget_gflop)}, and nothing will be trained after it: Ctrl-C now, and "
            f"{_advice(config)}"
        )


def _advice(config: TrainConfig) -> str:
    # What a file teaches has no episodes; it costs as much as it has epochs.
    less = "epochs" if config.language.demonstrations else "episodes"
    return f"raise --budget-gflop or lower --cold-start.{less}"
