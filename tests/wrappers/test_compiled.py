"""The cache of compiled functions: used again, never stale, safe to share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = """
from pathlib import Path
from wrappers.compiled import Compiler
from constants import FACTOR

compiler = Compiler([Path(__file__).parent / "constants.py"], name="the toy")

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


# -- what is said while it compiles ----------------------------------------------------------------

SAID = "compiling the rules of the toy"
# Several kernels, for several types.
BOTH_TYPES = "(kernels.both(5), kernels.both(0.5), kernels.scaled(True), 5)[-1]"
IN_A_WORKER = """
import multiprocessing, sys
def work(folder):
    sys.path.insert(0, folder)
    import kernels
    assert kernels.both(5) == 23
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(sys.argv[1],))
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""


def test_compiling_is_said_once_and_loading_is_not(folder: Path) -> None:
    assert errors_of(start(folder, BOTH_TYPES))[1].count(SAID) == 1
    assert errors_of(start(folder, BOTH_TYPES))[1] == ""
    (folder / "constants.py").write_text("FACTOR = 4\n")
    assert errors_of(start(folder, BOTH_TYPES))[1].count(SAID) == 1


def test_a_worker_does_not_say_that_it_compiles(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_A_WORKER)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert errors_of(start(folder, "5"))[1] == "", "the worker has compiled it"


def test_every_domain_says_its_name() -> None:
    for path in (ROOT / "mpt_envs").glob("*/kernel.py"):
        assert "of_domain(Path(__file__).parent)" in path.read_text(encoding="utf-8"), path


# -- a cache that cannot be used -----------------------------------------------------------------

FULL_DISK = """
import errno, os
def replace(*paths):
    raise OSError(errno.ENOSPC, "No space left on device")
os.replace = replace
"""


def errors_of(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output.split(), errors


def run_with(
    folder: Path, before: str = "", environment: dict[str, str] | None = None
) -> tuple[list[str], str]:
    """Run once more, after some code and with more environment variables."""
    return errors_of(
        subprocess.Popen(
            [sys.executable, "-c", before + RUN, str(folder), "5"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
    )


def test_no_folder_is_writable(folder: Path) -> None:
    """As in a read-only home; only archives may be cached then, and this is none."""
    output, errors = run_with(
        folder, environment={"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}
    )
    assert output[0] == "23"
    assert errors.count("RuntimeWarning") == 1
    assert "no folder is writable" in errors
    assert "NUMBA_CACHE_DIR" in errors


def test_a_full_disk(folder: Path) -> None:
    output, errors = run_with(folder, before=FULL_DISK)
    assert output[0] == "23"
    assert errors.count("RuntimeWarning") == 1
    assert "No space left on device" in errors
    # With room again, all is as ever.
    assert finish(start(folder, "5")) == ["23", "0", "1"]
    assert finish(start(folder, "5")) == ["23", "1", "0"]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("size", [0, 7, -3])
def test_a_damaged_cache(folder: Path, suffix: str, size: int) -> None:
    assert finish(start(folder, "5")) == ["23", "0", "1"]
    damaged = list((folder / "__pycache__").glob(f"*.{suffix}"))
    assert damaged
    for file in damaged:
        file.write_bytes(file.read_bytes()[:size])
    output, errors = run_with(folder)
    assert output[0] == "23"
    assert "it cannot be read" in errors
    assert finish(start(folder, "5")) == ["23", "1", "0"], "it is whole again"
