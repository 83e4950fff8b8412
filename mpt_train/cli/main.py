"""The program `mpt`: picks the command, and imports only what this command needs."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

COMMANDS = {
    "train": ("mpt_train.cli.train:main", "train one method on one task"),
    "eval": ("mpt_train.cli.evaluate:main", "evaluate a run, also under another coordination"),
    "compare": (
        "mpt_train.comparison.command:main",
        "train all methods at equal compute, make a report",
    ),
    "play": ("mpt_train.cli.play:main", "show an episode as text or as an animated picture"),
    "demos": ("mpt_train.cli.demos:main", "write demonstrations as chat, for language models"),
    "tasks": ("mpt_train.cli.listings:tasks", "list the tasks"),
    "methods": ("mpt_train.cli.listings:methods", "list the methods"),
}
"""Name -> where its ``main(arguments, prog) -> exit code`` is, and what it does."""

HELP = """\
usage: mpt COMMAND [OPTIONS]

Market-based post-training: agents bid for the turn, the highest bidder acts.

commands:
{commands}

mpt COMMAND --help explains a command; --debug anywhere shows the traceback of an error.

examples:
  mpt compare crafting/iron-pickaxe-v0 --quick     the comparison, in a few minutes
  mpt play crafting/iron-pickaxe-v0                how the scripted expert does it
  mpt train mpt-plus --folder runs/mine            one training run
  mpt eval runs/mine --coordination round-robin    its action policies without their bids
  mpt play runs/mine --as gif --out episode.gif    what it has learned
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: without the program's name; None takes those of this process.

    Returns:
        The exit code: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--debug" in given:
        given.remove("--debug")
        os.environ["MPT_DEBUG"] = "1"
    if not given or given[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0 if given else 2
    name, rest = given[0], given[1:]
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else "mpt --help lists them"
        print(f"mpt: there is no command {name!r}; {hint}", file=sys.stderr)
        return 2
    from mpt_train.cli.console import run

    # As `python -m` does: a task of one's own can be named as module:domain/task-vN.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module, _, function = COMMANDS[name][0].partition(":")

    def command() -> int:
        main = getattr(importlib.import_module(module), function)
        return int(main(rest, f"mpt {name}"))

    return run(command)


def help_text() -> str:
    """What ``mpt --help`` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {what}" for name, (_, what) in COMMANDS.items()]
    return HELP.format(commands="\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
