"""A training run that is killed again and again: ``python -m tests.mpt_train.killed FOLDER SEED``.

Children train in FOLDER, each until it is killed: at a write, just before a rename, or at any time.
The next one resumes. Prints how many were killed before one came to the end.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from mpt_train.loop import Trainer
from tests.mpt_train.relay import tiny

METHOD = "mpt"
BUDGET = 0.006
LIMIT = 6
"""After so many kills a child may come to the end."""


def main(folder: Path, seed: int) -> None:
    choose = random.Random(seed)
    killed = 0
    while True:
        kind = choose.choice(["fsync", "replace", "time"])
        count = choose.randint(1, 24)
        wait = choose.uniform(0.05, 1.0)
        child = os.fork()
        if child == 0:
            if kind != "time" and killed < LIMIT:
                _kill_at(kind, count if kind == "fsync" else 1 + count // 3)
            _train(folder)
            os._exit(0)
        if kind == "time" and killed < LIMIT:
            time.sleep(wait)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "a child failed"
            break
        killed += 1
    print(killed)


def _train(folder: Path) -> None:
    try:
        Trainer(tiny(METHOD, BUDGET), folder, resume=True).train()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def _kill_at(name: str, count: int) -> None:
    """Die, as by `kill -9`, at the start of the count-th call of ``os.name``."""
    real = getattr(os, name)
    calls = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(os, name, call)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
