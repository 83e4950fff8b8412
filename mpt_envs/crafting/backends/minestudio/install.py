"""Finding MineStudio: the package, its engine's jar, Java, and a display.

MineStudio's constructor asks on standard input whether to download a missing engine, which ends a
program without a terminal. So everything is looked for here before anything is constructed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mpt_envs.crafting.backends.engine_errors import EngineMissingError

FOLDER_VARIABLE: Final = "MINESTUDIO_DIR"
#: Below MineStudio's folder.
JAR: Final = Path("engine", "build", "libs", "mcprec-6.13.jar")
#: What the adapter is written for.
TESTED: Final = "1.1.6"

HOW_TO_GET: Final = (
    "MineStudio wants an environment of its own, since it needs NumPy below 2: "
    "there `pip install -e '.[minestudio]'` in a checkout, or `pip install "
    "'mpt-swarm[minestudio]'`, then Java 8 (`apt-get install "
    "openjdk-8-jre-headless`, or conda's openjdk=8), a display (`apt-get install xvfb`) and its "
    "engine: `python -m minestudio.simulator.entry -y` downloads that once into the folder that "
    f"{FOLDER_VARIABLE} names. docs/minestudio.md has the details."
)


@dataclass(frozen=True)
class Installation:
    """An engine that can be started.

    Attributes:
        folder: MineStudio's folder.
        jar: the engine.
        version: of the Python package, e.g. ``"1.1.6"``.
    """

    folder: Path
    jar: Path
    version: str


def engine_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where MineStudio looks for its engine: its variable, or else the temporary folder's own."""
    given = os.environ if environment is None else environment
    named = given.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir(), "MineStudio")


def package_version() -> str:
    """The version of the Python package.

    Raises:
        EngineMissingError: it is not installed, or cannot work with the NumPy that is here.
    """
    if importlib.util.find_spec("minestudio") is None:
        raise EngineMissingError(
            f"the Python package minestudio is not installed here. {HOW_TO_GET}"
        )
    numpy = importlib.metadata.version("numpy")
    if int(numpy.split(".")[0]) >= 2:
        raise EngineMissingError(
            f"MineStudio needs NumPy below 2, and here is {numpy}. {HOW_TO_GET}"
        )
    try:
        return importlib.metadata.version("minestudio")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def find_jar(environment: Mapping[str, str] | None = None) -> Path:
    """The engine's jar.

    Raises:
        EngineMissingError: it is not where MineStudio would look; says where that is.
    """
    given = os.environ if environment is None else environment
    folder = engine_folder(given)
    jar = folder / JAR
    if jar.is_file():
        return jar
    why = (
        f"{FOLDER_VARIABLE} says so"
        if given.get(FOLDER_VARIABLE)
        else f"{FOLDER_VARIABLE} is not set, so the temporary folder counts"
    )
    raise EngineMissingError(
        f"MineStudio's engine was looked for at {jar} ({why}) and is not there. If you have it "
        f"elsewhere, set {FOLDER_VARIABLE} to the folder that contains {JAR}. {HOW_TO_GET}"
    )


def find_installation(environment: Mapping[str, str] | None = None) -> Installation:
    """Everything that a simulator needs on this machine.

    Args:
        environment: None takes the process's own.

    Raises:
        EngineMissingError: something is missing; says what, and how to get it.
    """
    given = os.environ if environment is None else environment
    version = package_version()
    jar = find_jar(given)
    path = given.get("PATH", "")
    home = given.get("JAVA_HOME")
    if shutil.which("java", path=path) is None and not (
        home and os.access(Path(home, "bin", "java"), os.X_OK)
    ):
        raise EngineMissingError(
            f"MineStudio's engine is at {jar}, but there is no `java` on PATH. {HOW_TO_GET}"
        )
    if not given.get("DISPLAY") and shutil.which("xvfb-run", path=path) is None:
        raise EngineMissingError(
            f"MineStudio's engine is at {jar}, but Minecraft has no display to draw on: DISPLAY is "
            f"not set and there is no `xvfb-run` on PATH. {HOW_TO_GET}"
        )
    return Installation(engine_folder(given), jar, version)


def why_missing() -> str | None:
    """Why a simulator cannot be started here, or None if it can."""
    try:
        find_installation()
    except EngineMissingError as error:
        return str(error)
    return None
