"""What the tests of the adapter share: the module under test over a double, and scene files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mpt_envs.navigation.backends.connectivity import build_space, parse_graph
from mpt_envs.navigation.world.space import FreeSpace
from tests.mpt_envs.navigation import fake_habitat_sim
from tests.mpt_envs.navigation.r2r_data import graph

#: They hold on to the module that they imported, so none may outlive the double.
MODULES = ("mpt_envs.navigation.backends.habitat", "mpt_envs.navigation.backends.habitat_body")


def house_space() -> FreeSpace:
    return build_space(parse_graph("house", graph()))


def put_double() -> ModuleType:
    """Let the small house be the scenes "house" and "twin" of a double of `habitat_sim`."""
    forget()
    space = house_space()
    return fake_habitat_sim.install({"house": space, "twin": space})


def forget() -> None:
    """Let the adapter be imported anew."""
    for name in MODULES:
        sys.modules.pop(name, None)


def write_scene(folder: Path, name: str = "house", with_mesh: bool = True) -> Path:
    """Files that stand for a scene and its navigation mesh; returns the folder."""
    place = folder / "mp3d" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.glb").write_bytes(b"glb")
    if with_mesh:
        (place / f"{name}.navmesh").write_bytes(b"mesh")
    return folder


@pytest.fixture
def double() -> Iterator[ModuleType]:
    """The double, until the test is over."""
    real = sys.modules.pop("habitat_sim", None)
    yield put_double()
    forget()
    del sys.modules["habitat_sim"]
    if real is not None:
        sys.modules["habitat_sim"] = real


def adapter(name: str) -> ModuleType:
    """A module of the adapter, over whatever is `habitat_sim` now."""
    return importlib.import_module(f"mpt_envs.navigation.backends.{name}")
