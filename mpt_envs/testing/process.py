"""Replaying snapshots in a fresh process."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from typing import Any

from mpt_envs.testing.rules import RULES
from mpt_envs.testing.trace import Step


def in_fresh_process(
    test_class: type[Any], jobs: list[tuple[Any, int]]
) -> list[tuple[list[Step], str]]:
    """Run ``test_class().replay(jobs)`` in a new interpreter with another hash seed."""
    module = sys.modules[test_class.__module__]
    if "<locals>" in test_class.__qualname__:
        raise AssertionError(
            f"{test_class.__qualname__} is defined inside of a function, so that a fresh process "
            "cannot import it: move it to the top level of its file"
        )
    path = [os.path.abspath(entry) for entry in sys.path]
    order = {
        "file": getattr(module, "__file__", None),
        "module": module.__name__,
        "name": test_class.__qualname__,
    }
    # The order comes first and alone: it makes the class importable that the jobs may refer to.
    message = pickle.dumps(pickle.dumps(order)) + pickle.dumps(pickle.dumps(jobs))
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *path],
        input=message,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        check=False,
    )
    if done.returncode:
        raise AssertionError(
            f"broken rule 'exact snapshot' ({RULES['exact snapshot']}): restoring in a fresh "
            f"process failed:\n{done.stderr.decode(errors='replace')[-3000:]}"
        )
    answer: list[tuple[list[Step], str]] = pickle.loads(done.stdout)  # noqa: S301
    return answer


_CHILD = """
import sys
sys.path[:] = sys.argv[1:]
from mpt_envs.testing.process import serve
serve()
"""


def serve() -> None:
    """Answer one `_in_fresh_process`: orders on standard input, the traces on standard output."""
    reader = sys.stdin.buffer
    order = pickle.loads(pickle.load(reader))  # noqa: S301
    # Nothing that the test file prints may get into the answer.
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    found: Any = _load_module(order["module"], order["file"])
    for name in order["name"].split("."):
        found = getattr(found, name)
    jobs = pickle.loads(pickle.load(reader))  # noqa: S301
    results = found().replay(jobs)
    answer.write(pickle.dumps(results))
    answer.flush()


def _load_module(name: str, file: str | None) -> Any:
    """Import a module by name, or from its file where test runners gave it a name of their own."""
    if file is None or name == "__main__":
        return importlib.import_module(name)
    with contextlib.suppress(ImportError, ValueError):
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    module_spec = importlib.util.spec_from_file_location(name, file)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    module_spec.loader.exec_module(module)
    return module
