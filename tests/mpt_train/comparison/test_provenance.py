"""Where results say that they come from."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mpt_train.comparison import provenance


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=n@n", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def copied(folder: Path) -> Any:
    """The module as it is when its file lies in another folder."""
    folder.mkdir(parents=True)
    path = folder / "provenance.py"
    shutil.copy(str(provenance.__file__), path)
    spec = importlib.util.spec_from_file_location("copied_provenance", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_revision_is_that_of_the_code_and_not_of_a_repository_around_it(tmp_path: Path) -> None:
    """As where it is installed into a virtual environment in the folder of one's own project."""
    git(tmp_path, "init", "-q")
    (tmp_path / "mine.txt").write_text("mine")
    git(tmp_path, "add", "mine.txt")
    git(tmp_path, "commit", "-q", "-m", "mine")
    module = copied(tmp_path / "venv" / "site-packages")
    assert module.revision() is None
    git(tmp_path, "add", "venv")
    git(tmp_path, "commit", "-q", "-m", "and the code")
    assert module.revision() == git(tmp_path, "rev-parse", "--short=12", "HEAD")
    (tmp_path / "mine.txt").write_text("changed")
    assert module.revision().endswith("+")
