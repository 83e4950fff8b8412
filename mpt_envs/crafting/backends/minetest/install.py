"""Finding the engine: the server's program, the game, the Lua library, and their versions.

Debian and Ubuntu call the packages ``minetest-server`` (with the game in ``minetest-data``), newer
ones ``luanti-server`` and ``minetest-game``; the library is ``lua-socket``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from mpt_envs.crafting.backends.engine_errors import EngineMissingError

SERVER_VARIABLE: Final = "MPT_MINETEST_SERVER"
GAME_VARIABLE: Final = "MPT_MINETEST_GAME"

OLDEST: Final = (5, 5)
#: What all of this is tested with.
TESTED: Final = "5.6.1"

HOW_TO_GET: Final = (
    "On Debian or Ubuntu: apt-get install --no-install-recommends minetest-server lua-socket (on "
    "newer ones: luanti-server minetest-game lua-socket). If it is installed elsewhere, set "
    f"{SERVER_VARIABLE} to the server's program and {GAME_VARIABLE} to the folder of minetest_game."
)

_PROGRAMS: Final = ("minetestserver", "luantiserver", "luanti-server")
_PROGRAM_FOLDERS: Final = (
    "/usr/lib/minetest",
    "/usr/lib/luanti",
    "/usr/games",
    "/usr/local/bin",
    "/usr/local/games",
)
_GAME_FOLDERS: Final = (
    "/usr/share/games/minetest/games",
    "/usr/share/games/luanti/games",
    "/usr/share/minetest/games",
    "/usr/share/luanti/games",
    "/usr/local/share/minetest/games",
    "/usr/local/share/luanti/games",
    "~/.minetest/games",
    "~/.luanti/games",
)
_GAMES: Final = ("minetest_game", "minetest")


@dataclass(frozen=True)
class Installation:
    """An engine that can be started.

    Attributes:
        server: the program.
        game: folder of minetest_game.
        version: e.g. ``"5.6.1"``.
    """

    server: Path
    game: Path
    version: str


def find_installation(environment: Mapping[str, str] | None = None) -> Installation:
    """The engine of this machine.

    Args:
        environment: None takes the process's own.

    Raises:
        EngineMissingError: something is missing or too old or too new.
    """
    given = os.environ if environment is None else environment
    return _find(given.get(SERVER_VARIABLE), given.get(GAME_VARIABLE), given.get("PATH", ""))


def why_missing() -> str | None:
    """Why the engine cannot be started here, or None if it can."""
    try:
        find_installation()
    except EngineMissingError as error:
        return str(error)
    return None


@lru_cache(maxsize=8)
def _find(server: str | None, game: str | None, path: str) -> Installation:
    program = _server(server, path)
    return Installation(program, _game(game), _version(program))


def _server(given: str | None, path: str) -> Path:
    if given:
        if not os.access(given, os.X_OK) or os.path.isdir(given):
            raise EngineMissingError(
                f"{SERVER_VARIABLE} names {given!r}, which is no program that can be run; set it "
                "to Minetest's server"
            )
        return Path(given)
    for name in _PROGRAMS:
        found = shutil.which(name, path=path)
        if found:
            return Path(found)
        for folder in _PROGRAM_FOLDERS:
            candidate = Path(folder, name)
            if os.access(candidate, os.X_OK):
                return candidate
    raise EngineMissingError(f"no Minetest server was found. {HOW_TO_GET}")


def _game(given: str | None) -> Path:
    if given:
        if not Path(given, "mods", "default").is_dir():
            raise EngineMissingError(
                f"{GAME_VARIABLE} names {given!r}, which is no folder of minetest_game (it has no "
                "mods/default); set it to the game's folder"
            )
        return Path(given).resolve()
    for folder in _GAME_FOLDERS:
        for name in _GAMES:
            # Unlike Path.expanduser, this leaves the name as it is where the user has no home.
            candidate = Path(os.path.expanduser(folder), name)
            if (candidate / "mods" / "default").is_dir():
                return candidate
    raise EngineMissingError(
        "the Minetest server is here, but not its game minetest_game (package minetest-data, or "
        f"minetest-game). {HOW_TO_GET}"
    )


def _version(program: Path) -> str:
    """The version of a server; raises `EngineMissingError` if it does not serve."""
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissingError(f"{program} cannot be run: {error}. {HOW_TO_GET}") from error
    words = f"{answer.stdout} {answer.stderr}".strip()
    found = re.search(r"(?:Minetest|Luanti)\s+(\d+)\.(\d+)(?:\.(\d+))?", words)
    if not found:
        raise EngineMissingError(
            f"{program} --version says {words[:100]!r}, which names no version of Minetest or "
            f"Luanti. {HOW_TO_GET}"
        )
    major, minor, patch = (int(part or 0) for part in found.groups())
    version = f"{major}.{minor}.{patch}"
    if (major, minor) < OLDEST:
        raise EngineMissingError(
            f"{program} is version {version}; this backend needs {OLDEST[0]}.{OLDEST[1]} or newer "
            f"(tested with {TESTED}). {HOW_TO_GET}"
        )
    if major > OLDEST[0]:
        raise EngineMissingError(
            f"{program} is version {version}, which this backend does not know (tested with "
            f"{TESTED}): set {SERVER_VARIABLE} to a server of version {OLDEST[0]}"
        )
    return version
