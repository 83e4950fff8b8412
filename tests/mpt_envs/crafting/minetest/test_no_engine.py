"""What a user is told where the engine, or a part of it, is missing or does not serve."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

import mpt_envs
from mpt_envs.crafting.backends.engine_errors import EngineError, EngineMissingError
from mpt_envs.crafting.backends.minetest import install
from mpt_envs.crafting.backends.minetest.install import GAME_VARIABLE, SERVER_VARIABLE, Installation
from mpt_envs.crafting.backends.minetest.pool import LIMIT_VARIABLE, _limit
from mpt_envs.crafting.backends.minetest.server import Server


@pytest.fixture
def game(tmp_path: Path) -> str:
    (tmp_path / "minetest_game" / "mods" / "default").mkdir(parents=True)
    return str(tmp_path / "minetest_game")


def program(folder: Path, script: str, name: str = "minetestserver") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def find(server: str, game: str) -> Installation:
    return install.find_installation({SERVER_VARIABLE: server, GAME_VARIABLE: game, "PATH": ""})


def test_a_user_without_a_home_is_told_that_the_game_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(install, "_GAME_FOLDERS", ("~/.minetest/games",))
    server = program(tmp_path, "echo 'Minetest 5.6.1 (Linux)'")
    with pytest.raises(EngineMissingError, match="not its game"):
        install.find_installation({SERVER_VARIABLE: server, "PATH": ""})


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("Minetest 5.6.1 (Linux)", "5.6.1"),
        ("minetest: Minetest 5.9.0-dev-abc (Linux)", "5.9.0"),
        ("Luanti 5.10.0 (Linux)", "5.10.0"),
        ("Luanti 5.11 (Linux)", "5.11.0"),
    ],
)
def test_versions_that_serve(tmp_path: Path, game: str, says: str, version: str) -> None:
    assert find(program(tmp_path, f"echo '{says}'"), game).version == version


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Minetest 5.2.0 (Linux)'", r"5\.2\.0; this backend needs 5\.5 or newer"),
        ("echo 'Minetest 0.4.17 (Linux)'", r"0\.4\.17"),
        ("echo 'Luanti 6.0.0 (Linux)'", r"6\.0\.0, which this backend does not know"),
        ("echo 'something else'", "names no version"),
        ("exit 1", "names no version"),
    ],
)
def test_versions_that_do_not_serve(tmp_path: Path, game: str, script: str, why: str) -> None:
    with pytest.raises(EngineMissingError, match=why):
        find(program(tmp_path, script), game)


def test_nothing_is_installed(monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    monkeypatch.setattr(install, "_PROGRAM_FOLDERS", ("/nowhere",))
    install._find.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(SERVER_VARIABLE, raising=False)
    reason = install.why_missing()
    assert reason is not None and "apt-get install" in reason and "luanti-server" in reason
    with pytest.raises(ImportError, match=r"apt-get install.*minetest-server lua-socket"):
        mpt_envs.make("crafting/torch-v0", backend="minetest")
    with pytest.raises(mpt_envs.MissingBackendError, match="no Minetest server was found"):
        mpt_envs.make_task("crafting/torch-v0", backend="minetest")
    install._find.cache_clear()


def test_newer_names_are_found(tmp_path: Path, game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_PROGRAM_FOLDERS", (str(tmp_path),))
    program(tmp_path, "echo 'Luanti 5.10.0'", "luantiserver")
    found = install.find_installation({GAME_VARIABLE: game, "PATH": "/nowhere"})
    assert found.server.name == "luantiserver"


def test_the_game_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = program(tmp_path, "echo 'Minetest 5.6.1'")
    monkeypatch.setattr(install, "_GAME_FOLDERS", ("/nowhere",))
    with pytest.raises(EngineMissingError, match="not its game minetest_game"):
        install.find_installation({SERVER_VARIABLE: server, "PATH": ""})
    with pytest.raises(EngineMissingError, match="no folder of minetest_game"):
        find(server, str(tmp_path))


def test_variables_that_name_nothing(game: str) -> None:
    with pytest.raises(EngineMissingError, match=f"{SERVER_VARIABLE} names '/nowhere/server'"):
        find("/nowhere/server", game)


@pytest.mark.parametrize(
    ("script", "error", "why"),
    [
        ("echo 'MPT-NO-LUA-SOCKET module not found'; exit 1", EngineMissingError, "lua-socket"),
        ("echo 'Some mod is broken' >&2; exit 3", EngineError, "code 3.*\n.*Some mod is broken"),
        ("echo 'Failed to bind socket'; exit 1", EngineError, "no free UDP port"),
        ("echo 'write: No space left on device'; exit 1", EngineError, "no space left"),
    ],
)
def test_a_server_that_does_not_start(
    tmp_path: Path, game: str, script: str, error: type[Exception], why: str
) -> None:
    version = 'if [ "$1" = --version ]; then echo Minetest 5.6.1; exit; fi\n'
    installation = find(program(tmp_path, version + script), game)
    with pytest.raises(error, match=why):
        Server(installation)


@pytest.mark.parametrize("given", ["0", "-1", "many", ""])
def test_the_number_of_servers_is_checked(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, given)
    with pytest.raises(EngineError, match=LIMIT_VARIABLE):
        _limit()
