"""The adapter against the real Python package: spaces, construction, mission, encoding, reports.

The engine is not started: an empty file in the place of its jar is enough to construct a
`MinecraftSim`. MineStudio needs NumPy below 2, so these tests run in an environment of their own
(docs/minestudio.md); elsewhere they skip.
"""

from __future__ import annotations

import builtins
import inspect
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import mpt_envs
from mpt_envs.crafting.backends.engine_errors import EngineError, EngineMissingError
from mpt_envs.crafting.backends.minestudio.engine import (
    KEYS,
    SEED_BITS,
    SETTLING_COMMANDS,
    Engine,
    action_of,
    start_simulator,
)
from mpt_envs.crafting.backends.minestudio.install import FOLDER_VARIABLE, JAR, package_version
from mpt_envs.crafting.backends.minestudio.report import N_SLOTS, Stack, read_report
from mpt_envs.crafting.backends.minestudio.screens import SCREEN
from mpt_envs.crafting.backends.minestudio.window import box_around
from mpt_envs.crafting.world import facts


def _why_not() -> str | None:
    """Why the package cannot be used here, or None if it can."""
    try:
        package_version()
    except EngineMissingError as error:
        return str(error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import minestudio.simulator  # noqa: F401
    except ImportError as error:
        return f"minestudio cannot be imported: {error}"
    return None


REASON = _why_not()
pytestmark = [
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.filterwarnings("ignore"),
]
NS = "{http://ProjectMalmo.microsoft.com}"


def _program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\nexit 1\n")
    (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A MineStudio folder with an empty jar, and programs that nobody runs."""
    home = tmp_path_factory.mktemp("minestudio")
    (home / JAR).parent.mkdir(parents=True)
    (home / JAR).touch()
    (home / "bin").mkdir()
    for name in ("java", "xvfb-run"):
        _program(home / "bin", name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(home))
        patch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield home


@pytest.fixture(scope="module")
def sim(folder: Path) -> Iterator[Any]:
    """The real simulator, constructed as the backend does it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: list[Any] = []

        def make(**keywords: Any) -> Any:
            made.append((keywords, start_simulator(**keywords)))
            return _Stop()

        class _Stop:
            class env:
                @staticmethod
                def seed(seed: int) -> None:
                    raise OSError("far enough")

            @staticmethod
            def close() -> None:
                pass

        with pytest.raises(RuntimeError, match="far enough"):
            Engine("forest", make).reset(5)
        keywords, sim = made[0]
        sim.given = keywords
        yield sim
        sim.close()


def lines(sim: Any, action: dict[str, Any]) -> list[str]:
    """What the engine is sent for an action."""
    return [
        handler.to_hero(action[handler.to_string()])
        for handler in sim.env.task.actionables
        if handler.to_string() in action
    ]


def test_no_keyword_is_swallowed(sim: Any) -> None:
    """The constructor takes any keyword and ignores those that it does not know."""
    known = inspect.signature(type(sim).__init__).parameters
    assert set(sim.given) <= set(known)


def test_keys_are_the_action_space(sim: Any) -> None:
    assert {*KEYS, "camera"} == set(sim.action_space.spaces)


@pytest.mark.parametrize("key", KEYS)
def test_each_key_is_in_the_space_and_reaches_the_engine(sim: Any, key: str) -> None:
    action = action_of([key], (12.5, -45.0))
    assert action in sim.action_space
    sent = lines(sim, action)
    assert [line for line in sent if not line.endswith(" 0") and "camera" not in line] == [
        f"{key} 1"
    ]
    assert "camera 12.5 -45.0" in sent


def test_all_of_an_action_is_sent_and_nothing_else(sim: Any) -> None:
    assert len(lines(sim, action_of())) == len(KEYS) + 1
    assert not any(line.startswith(("voxels", "chat")) for line in lines(sim, action_of()))


def test_blocks_and_commands_reach_the_engine(sim: Any) -> None:
    box = box_around()
    action = action_of(voxels=box, chat="/setblock 1 -2 3 minecraft:stone")
    assert action["voxels"] in sim.env.action_space.spaces["voxels"]
    sent = lines(sim, action)
    assert f"voxels {','.join(map(str, box))}" in sent
    assert "chat /setblock 1 -2 3 minecraft:stone" in sent


def test_the_mission(sim: Any) -> None:
    root = ElementTree.fromstring(sim.env.task.to_xml())
    found = {element.tag.removeprefix(NS): element for element in root.iter()}
    assert found["PreferredSpawnBiome"].text.strip() == "forest"  # type: ignore[union-attr]
    assert (int(found["Width"].text), int(found["Height"].text)) == SCREEN  # type: ignore[arg-type]
    assert float(found["GuiScale"].text) == 1.0  # type: ignore[arg-type]
    for wanted in ("ChatCommands", "CameraCommands", "ObservationFromFullInventory", "IsGuiOpen"):
        assert wanted in found
    assert SETTLING_COMMANDS[0].startswith("/")


def test_seeds_of_all_bits_are_taken(sim: Any) -> None:
    """MineStudio seeds NumPy's generators with the seed of the world."""
    for seed in (0, (1 << SEED_BITS) - 1):
        sim.env.seed(seed)


def engine_json() -> dict[str, Any]:
    """What the engine sends, as far as the handlers read it."""
    slots: list[dict[str, Any]] = [
        {"slot_id": slot, "type": "none", "quantity": 0} for slot in range(N_SLOTS)
    ]
    slots[2] |= {"type": "oak_log", "quantity": 5}
    slots[30] |= {"type": "stone_pickaxe", "quantity": 1}
    hand = {"type": "stone_pickaxe", "damage": 17, "maxDamage": 131}
    return {
        "inventory": slots,
        "equipped_items": {"mainhand": hand},
        "mine_block": {"oak_log": 5, "stone": 2},
        "craft_item": {"stone_pickaxe": 1},
    }


def test_what_the_handlers_make_of_the_engine_is_read(sim: Any) -> None:
    sent = engine_json()
    info: dict[str, Any] = {
        "player_pos": {"x": 1.5, "y": 64.0, "z": -2.5, "yaw": 90.0, "pitch": 0.0},
        "health": 20.0,
    }
    wanted = ("inventory", "mine_block", "craft_item", "pickup", "break_item", "use_item")
    for handler in sim.env.task.observables:
        if handler.to_string() in wanted:
            info[handler.to_string()] = handler.from_hero(sent)
        elif handler.to_string() == "equipped_items":
            info["equipped_items"] = sent["equipped_items"]
    assert set(wanted) <= set(info)
    report = read_report(info, False, False)
    assert report.slots[2] == Stack("oak_log", 5) and report.slots[30] == Stack("stone_pickaxe", 1)
    assert report.statistics["mine_block"] == {"oak_log": 5, "stone": 2}
    assert report.statistics["craft_item"] == {"stone_pickaxe": 1}
    assert report.statistics["pickup"] == {}
    assert (report.held, report.damage) == ("stone_pickaxe", 17)
    assert report.counts()[facts.I_STONE_PICKAXE] == 1


def test_a_lost_connection_is_told_however_minestudio_tells_it(sim: Any) -> None:
    """It returns a made-up observation and an error; or fails to make one up."""

    class Lost:
        env = sim.env

        def reset(self) -> Any:
            return {}, engine_json() | {
                "player_pos": dict.fromkeys(("x", "y", "z", "yaw", "pitch"), 0.0),
                "inventory": {},
            }

        def step(self, action: dict[str, Any]) -> Any:
            sample = sim.env.observation_space.sample()
            return {}, 0.0, True, True, {**sample, "error": "Connection timed out!"}

        def close(self) -> None:
            pass

    engine = Engine("forest", lambda **keywords: Lost())
    with pytest.raises(EngineError, match=r"does not answer|lost its connection"):
        engine.reset(1)
    assert not engine.started


def test_a_missing_jar_is_told_without_asking(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MineStudio's own constructor would ask on standard input, or end the program."""

    def ask(prompt: str = "") -> str:
        raise AssertionError(f"somebody asks: {prompt}")

    monkeypatch.setattr(builtins, "input", ask)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(
        mpt_envs.MissingBackendError, match=r"minestudio\.simulator\.entry -y"
    ) as why:
        mpt_envs.make("crafting/iron-pickaxe-v0", backend="minestudio")
    assert str(tmp_path / JAR) in str(why.value)


@pytest.mark.parametrize("mode", ["gui", "command"])
def test_the_environment_is_made_where_everything_is_there(folder: Path, mode: str) -> None:
    env = mpt_envs.make("crafting/torch-v0", backend="minestudio", crafting_mode=mode)
    embedded = mpt_envs.make("crafting/torch-v0")
    assert env.possible_agents == embedded.possible_agents
    for agent in env.possible_agents:
        assert env.observation_space(agent) == embedded.observation_space(agent)
        assert env.action_space(agent) == embedded.action_space(agent)
    assert env.unwrapped.task.snapshot_fidelity == "approximate"


# --- the numbers of the domain against minecraft_data -------------------------------------------


@pytest.fixture(scope="module")
def data() -> Any:
    minecraft_data = pytest.importorskip("minecraft_data")
    return minecraft_data("1.16.5")


def _name(item: int) -> str:
    return facts.MINECRAFT_NAMES.get(facts.ITEM_NAMES[item], facts.ITEM_NAMES[item])


@pytest.mark.parametrize("item", sorted(facts.RECIPES), ids=lambda i: facts.ITEM_NAMES[i])
def test_recipes_are_minecrafts(data: Any, item: int) -> None:
    recipe = facts.RECIPES[item]
    ids = {data.items_name[_name(i)]["id"]: n for i, n in recipe.ingredients}
    found = []
    for given in data.recipes[str(data.items_name[_name(item)]["id"])]:
        rows = given.get("inShape") or [given["ingredients"]]
        count: dict[int, int] = {}
        for row in rows:
            for ingredient in row:
                if ingredient is not None:
                    count[ingredient] = count.get(ingredient, 0) + 1
        found.append((count, given["result"]["count"]))
    assert (ids, recipe.makes) in found


@pytest.mark.parametrize("block", sorted(facts.BLOCK_FACTS), ids=lambda b: facts.BLOCK_NAMES[b])
def test_blocks_are_minecrafts(data: Any, block: int) -> None:
    fact = facts.BLOCK_FACTS[block]
    name = facts.BLOCK_NAMES[block]
    given = data.blocks_name[facts.MINECRAFT_NAMES.get(name, name)]
    assert round(given["hardness"] * 100) == fact.hardness
    tools = {data.items_name[_name(item)]["id"] for item in facts.PICKAXES}
    harvest = {int(tool) for tool in given.get("harvestTools") or {}}
    if fact.level == 0:
        assert not harvest
    else:
        wanted = [data.items_name[_name(item)]["id"] for item in facts.PICKAXES[fact.level - 1 :]]
        assert harvest & tools == set(wanted)
    assert fact.pickaxe == ("rock" in given["material"] or "pickaxe" in given["material"])


def test_pickaxes_are_minecrafts(data: Any) -> None:
    for item, uses in zip(facts.PICKAXES, facts.PICKAXE_DURABILITY, strict=True):
        assert data.items_name[_name(item)]["maxDurability"] == uses
    speeds = next(v for k, v in data.materials.items() if "rock" in k or k.endswith("pickaxe"))
    for item, speed in zip(facts.PICKAXES, facts.PICKAXE_SPEED, strict=True):
        assert float(speeds[str(data.items_name[_name(item)]["id"])]) == speed
    assert np.array_equal(facts.PICKAXE_SPEED, (2, 4, 6))
