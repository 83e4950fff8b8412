"""The cache of compiled functions: used again, never stale, safe to share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
from pathlib import Path
from wrappers.compiled import Compiler
from constants import FACTOR

compiler = Compiler([Path(__file__).parent / "constants.py"])

@compiler.kernel
def scaled(x):
    return FACTOR * x

@compiler.inlined
def shifted(x):
    return x + FACTOR

@compiler.kernel
def both(x):
    return scaled(x) + shifted(x)
"""
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import kernels
value = eval(sys.argv[2])
stats = kernels.both.stats
print(kernels.both(value), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "constants.py").write_text("FACTOR = 3\n")
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def start(folder: Path, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), argument],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.split()


def test_later_processes_use_the_cache(folder: Path) -> None:
    assert finish(start(folder, "5")) == ["23", "0", "1"]
    assert finish(start(folder, "5")) == ["23", "1", "0"]
    # Another type is another entry, and does not push the first one out.
    assert finish(start(folder, "0.5")) == ["5.0", "0", "1"]
    assert finish(start(folder, "5")) == ["23", "1", "0"]
    assert finish(start(folder, "0.5")) == ["5.0", "1", "0"]


def test_a_constant_of_another_file_is_noticed(folder: Path) -> None:
    assert finish(start(folder, "5")) == ["23", "0", "1"]
    (folder / "constants.py").write_text("FACTOR = 4\n")
    assert finish(start(folder, "5")) == ["29", "0", "1"]
    (folder / "constants.py").write_text("FACTOR = 3\n")
    assert finish(start(folder, "5"))[0] == "23"


def test_processes_may_compile_at_once(folder: Path) -> None:
    arguments = ["5", "0.5", "5", "0.5"]
    results = [finish(p)[0] for p in [start(folder, argument) for argument in arguments]]
    assert results == ["23", "5.0", "23", "5.0"]
    assert [finish(start(folder, argument))[0] for argument in arguments] == results
