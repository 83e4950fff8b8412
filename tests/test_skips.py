"""How the suite says what it has skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SUITE = """
import pytest

@pytest.mark.parametrize("number", range(30))
def test_needs_the_server(number):
    pytest.skip("Minetest's server is not installed")

@pytest.mark.skipif(True, reason="the moon is full")
def test_needs_the_moon():
    pass

def test_runs():
    pass
"""


def test_each_reason_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-n", "0"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if "not installed" in line]
    assert [count for count, _ in lines] == ["30"]
    assert "apt-get install minetest-server" in lines[0][1]
    assert "    1  the moon is full" in done.stdout.splitlines()
    assert "SKIPPED" not in done.stdout
