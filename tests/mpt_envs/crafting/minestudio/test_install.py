"""What a user is told where MineStudio, or a part of it, is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import mpt_envs
from mpt_envs.crafting.backends.engine_errors import EngineMissingError
from mpt_envs.crafting.backends.minestudio import install
from mpt_envs.crafting.backends.minestudio.install import FOLDER_VARIABLE, JAR
from mpt_envs.crafting.world.goals import GOAL_NAMES

HERE = importlib.util.find_spec("minestudio") is not None


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the Python package were here, with a NumPy that it can work with."""
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: object())
    versions = {"numpy": "1.26.4", "minestudio": "1.1.6"}
    monkeypatch.setattr(install.importlib.metadata, "version", versions.__getitem__)


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return str(folder)


def put_jar(folder: Path) -> Path:
    jar = folder / JAR
    jar.parent.mkdir(parents=True)
    jar.touch()
    return jar


@pytest.mark.skipif(HERE, reason="MineStudio is installed here")
@pytest.mark.parametrize("goal", GOAL_NAMES)
def test_without_the_package_every_task_says_how_to_get_it(goal: str) -> None:
    with pytest.raises(
        mpt_envs.MissingBackendError, match=r"pip install 'mpt-swarm\[minestudio\]'"
    ):
        mpt_envs.make(f"crafting/{goal}-v0", backend="minestudio")


@pytest.mark.skipif(HERE, reason="MineStudio is installed here")
def test_the_reason_for_skipping() -> None:
    reason = install.why_missing()
    assert reason is not None and "minestudio is not installed" in reason
    with pytest.raises(mpt_envs.MissingBackendError, match="Java 8"):
        mpt_envs.make_task("crafting/torch-v0", backend="minestudio", crafting_mode="command")


def test_keywords_are_checked_before_anything_is_looked_for() -> None:
    with pytest.raises(TypeError, match=r"'crafting_mod'.*Did you mean 'crafting_mode'"):
        mpt_envs.make("crafting/torch-v0", backend="minestudio", crafting_mod="gui")
    with pytest.raises(ValueError, match="crafting_mode must be 'gui' or 'command', got 'magic'"):
        mpt_envs.make("crafting/torch-v0", backend="minestudio", crafting_mode="magic")


def test_a_numpy_that_is_too_new(package: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.importlib.metadata, "version", lambda name: "2.4.6")
    with pytest.raises(EngineMissingError, match=r"NumPy below 2, and here is 2\.4\.6"):
        install.package_version()


def test_the_jar_is_looked_for_where_the_variable_says(package: None, tmp_path: Path) -> None:
    given = {FOLDER_VARIABLE: str(tmp_path)}
    with pytest.raises(EngineMissingError) as caught:
        install.find_installation(given)
    words = str(caught.value)
    assert str(tmp_path / JAR) in words and f"{FOLDER_VARIABLE} says so" in words
    assert "minestudio.simulator.entry -y" in words
    jar = put_jar(tmp_path)
    assert install.find_jar(given) == jar


def test_without_the_variable_it_is_looked_for_where_minestudio_does(
    package: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install.tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(EngineMissingError, match=f"{FOLDER_VARIABLE} is not set") as caught:
        install.find_jar({})
    assert str(tmp_path / "MineStudio" / JAR) in str(caught.value)


def test_java_and_a_display_are_looked_for(package: None, tmp_path: Path) -> None:
    jar = put_jar(tmp_path / "minestudio")
    given: dict[str, Any] = {FOLDER_VARIABLE: str(tmp_path / "minestudio"), "PATH": "/nowhere"}
    with pytest.raises(EngineMissingError, match="no `java` on PATH"):
        install.find_installation(given)
    given["PATH"] = program(tmp_path / "bin", "java")
    with pytest.raises(EngineMissingError, match="no display"):
        install.find_installation(given)
    assert install.find_installation({**given, "DISPLAY": ":0"}).jar == jar
    program(tmp_path / "bin", "xvfb-run")
    found = install.find_installation(given)
    assert (found.jar, found.version) == (jar, "1.1.6")
    # Java that is only at home.
    program(tmp_path / "jdk" / "bin", "java")
    given |= {"PATH": "/nowhere", "JAVA_HOME": str(tmp_path / "jdk"), "DISPLAY": ":0"}
    assert install.find_installation(given).jar == jar


def test_the_backend_is_told_beside_the_others() -> None:
    with pytest.raises(mpt_envs.MissingBackendError, match="'embedded', 'minetest', 'minestudio'"):
        mpt_envs.make("crafting/torch-v0", backend="minecraft")
    assert importlib.metadata.version("numpy")
