"""The registry: ids, lookups, plugins, backends, lazy imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import mpt_envs
from mpt_envs.registry import Backend, MissingBackendError, UnknownTaskError
from tests.toys import RelayTask
from wrappers.errors import MarketError
from wrappers.native import BatchTask

# The package's attribute of this name is the mapping.
registry_module = sys.modules["mpt_envs.registry"]


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    """Only built-in tasks during a test, whatever ran before; undo its registrations after it."""
    specs = dict(registry_module._specs)
    for toy in [name for name in specs if name.startswith("toys/")]:
        del registry_module._specs[toy]
    yield
    registry_module._specs.clear()
    registry_module._specs.update(specs)
    registry_module._read_plugins.clear()
    registry_module._failed_plugins.clear()


def test_built_in_tasks_are_listed_in_order() -> None:
    ids = list(mpt_envs.registry)
    assert "crafting/iron-pickaxe-v0" in ids
    assert ids == sorted(ids)
    assert len(mpt_envs.registry) == len(ids)
    listing = repr(mpt_envs.registry)
    assert all(one in listing for one in ids)
    assert all(spec.description for spec in mpt_envs.registry.values())


def test_the_registry_is_read_only() -> None:
    assert isinstance(mpt_envs.registry, Mapping)
    with pytest.raises(TypeError):
        mpt_envs.registry["toys/relay-v0"] = 1  # type: ignore[index]
    spec = mpt_envs.spec("crafting/torch-v0")
    with pytest.raises(TypeError):
        spec.kwargs["goal"] = "other"  # type: ignore[index]
    with pytest.raises(AttributeError):
        spec.id = "other/x-v0"  # type: ignore[misc]


def test_parts_of_an_id() -> None:
    spec = mpt_envs.register("my-domain/some-task-v12", RelayTask)
    assert (spec.domain, spec.name, spec.version) == ("my-domain", "some-task", 12)
    assert mpt_envs.registry["my-domain/some-task-v12"] is spec
    assert "my-domain/some-task-v12" in mpt_envs.registry


@pytest.mark.parametrize(
    "id",
    [
        "relay",
        "relay-v0",
        "toys/relay",
        "toys/relay-v",
        "toys/relay-v01",
        "toys/relay-v-1",
        "Toys/relay-v0",
        "a/b/c-v0",
        "toys/-relay-v0",
        "toys /relay-v0",
        "toys/relay-v0\n",
        "",
        None,
        3,
    ],
)
def test_malformed_ids_are_refused(id: Any) -> None:
    with pytest.raises(ValueError, match="domain/task-v0"):
        mpt_envs.register(id, RelayTask)


@pytest.mark.parametrize("point", ["tests.toys", "tests.toys:", ":RelayTask", "a b:c", 3, None])
def test_malformed_entry_points_are_refused(point: Any) -> None:
    with pytest.raises(ValueError, match="module:attribute"):
        mpt_envs.register("toys/relay-v0", point)
    with pytest.raises(ValueError, match="module:attribute"):
        mpt_envs.register("toys/relay-v0", RelayTask, backends={"other": Backend(point)})


def test_registering_twice() -> None:
    first = mpt_envs.register("toys/relay-v0", "tests.toys:RelayTask", kwargs={"goal": 5})
    again = mpt_envs.register("toys/relay-v0", "tests.toys:RelayTask", kwargs={"goal": 5})
    assert first == again
    with pytest.raises(ValueError, match=r"already registered.*override=True"):
        mpt_envs.register("toys/relay-v0", "tests.toys:RelayTask", kwargs={"goal": 6})
    assert mpt_envs.spec("toys/relay-v0").kwargs == {"goal": 5}
    mpt_envs.register("toys/relay-v0", RelayTask, kwargs={"goal": 6}, override=True)
    assert mpt_envs.spec("toys/relay-v0").kwargs == {"goal": 6}


def test_bad_turn_budget_is_refused() -> None:
    for max_turns in (0, -1, True):
        with pytest.raises(ValueError, match="max_turns"):
            mpt_envs.register("toys/relay-v0", RelayTask, max_turns=max_turns)


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("crafting/iron-pickax-v0", "crafting/iron-pickaxe-v0"),
        ("iron-pickaxe", "crafting/iron-pickaxe-v0"),
        ("crafting/iron-pickaxe", "It exists as: crafting/iron-pickaxe-v0"),
        ("crafting/iron-pickaxe-v9", "It exists as: crafting/iron-pickaxe-v0"),
        ("minecraft/iron-pickaxe-v0", "crafting/iron-pickaxe-v0"),
        ("Crafting/Torch-v0", "It exists as: crafting/torch-v0"),
    ],
)
def test_unknown_ids_list_close_matches(id: str, expected: str) -> None:
    with pytest.raises(UnknownTaskError) as caught:
        mpt_envs.make(id)
    message = str(caught.value)
    assert expected in message
    # Both whoever programs and whoever types commands is told.
    assert "print(mpt_envs.registry)" in message and "`mpt tasks`" in message
    assert repr(id) in message


def test_unknown_id_without_a_match_says_how_to_list() -> None:
    for unknown in ("zzzz/qqqq-v0", "", 7):
        with pytest.raises(UnknownTaskError, match=r"print\(mpt_envs.registry\)") as caught:
            mpt_envs.spec(unknown)  # type: ignore[arg-type]
        assert "Did you mean" not in str(caught.value)
    assert isinstance(caught.value, (MarketError, KeyError))
    assert "zzzz/qqqq-v0" not in mpt_envs.registry
    assert mpt_envs.registry.get("zzzz/qqqq-v0") is None


def test_entry_points_are_imported_on_use(tmp_path: Path) -> None:
    (tmp_path / "lazy_domain.py").write_text(
        "print('imported')\nfrom tests.toys import RelayTask as make_task\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import mpt_envs\n"
        "mpt_envs.register('lazy/relay-v0', 'lazy_domain:make_task')\n"
        "print(mpt_envs.spec('lazy/relay-v0').id)\n"
        "print(mpt_envs.make('lazy/relay-v0', goal=4).task.goal)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["lazy/relay-v0", "imported", "4"]


def test_a_missing_module_before_the_id_is_explained() -> None:
    for id in ("no_such_domain:x/y-v0", ":x/y-v0"):  # noqa: A001
        with pytest.raises(UnknownTaskError, match="PYTHONPATH"):
            mpt_envs.make(id)


def test_missing_entry_points() -> None:
    mpt_envs.register("toys/none-v0", "no_such_module_anywhere:make_task")
    with pytest.raises(MissingBackendError, match=r"toys/none-v0 needs 'no_such_module_anywhere"):
        mpt_envs.make("toys/none-v0")
    mpt_envs.register("toys/none-v1", "tests.toys:NoSuchTask")
    with pytest.raises(MissingBackendError, match="no such attribute"):
        mpt_envs.make("toys/none-v1")


def test_backends() -> None:
    mpt_envs.register(
        "toys/relay-v0",
        "tests.toys:RelayTask",
        backends={
            "fast": Backend("tests.toys:RelayTask"),
            "engine": Backend(
                "no_such_engine:make_task", how_to_get="Install it: pip install 'mpt[engine]'."
            ),
        },
    )
    assert isinstance(mpt_envs.make("toys/relay-v0", backend="fast").task, RelayTask)
    assert isinstance(mpt_envs.make("toys/relay-v0", backend="embedded").task, RelayTask)
    assert isinstance(mpt_envs.make_task("toys/relay-v0", backend="fast"), RelayTask)
    with pytest.raises(MissingBackendError, match=r"engine.*pip install 'mpt\[engine\]'"):
        mpt_envs.make("toys/relay-v0", backend="engine")
    with pytest.raises(MissingBackendError, match="'embedded', 'fast', 'engine'"):
        mpt_envs.make("toys/relay-v0", backend="quick")
    with pytest.raises(ImportError, match="no backend 'habitat'"):
        mpt_envs.make("crafting/iron-pickaxe-v0", backend="habitat")
    with pytest.raises(ValueError, match="embedded"):
        mpt_envs.register("toys/x-v0", RelayTask, backends={"embedded": Backend(RelayTask)})


# -- plugins ----------------------------------------------------------------------------------

calls: list[str] = []


def sound_plugin() -> None:
    """An entry point of the group, as another project would have it."""
    calls.append("sound")
    mpt_envs.register("plugged/relay-v0", "tests.toys:RelayTask")


def broken_plugin() -> None:
    raise RuntimeError("its licence has expired")


def plug(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    points = [
        EntryPoint(name, f"{__name__}:{name}", registry_module.PLUGIN_GROUP) for name in names
    ]
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(
        registry_module.importlib.metadata,
        "entry_points",
        lambda group: points if group == "mpt_envs.plugins" else [],
    )
    calls.clear()


def test_plugins_are_read_on_a_miss_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "sound_plugin")
    mpt_envs.spec("crafting/torch-v0")
    assert calls == []
    assert isinstance(mpt_envs.make("plugged/relay-v0").task, RelayTask)
    with pytest.raises(UnknownTaskError):
        mpt_envs.spec("plugged/other-v0")
    assert calls == ["sound"]


def test_plugins_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "sound_plugin")
    assert "plugged/relay-v0" in list(mpt_envs.registry)


def test_a_broken_plugin_is_named_and_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "broken_plugin", "sound_plugin")
    with pytest.warns(RuntimeWarning, match=r"broken_plugin.*its licence has expired"):
        spec = mpt_envs.spec("plugged/relay-v0")
    assert spec.id == "plugged/relay-v0"
    with pytest.raises(UnknownTaskError, match=r"broken_plugin.*its licence has expired"):
        mpt_envs.spec("broken/task-v0")


def test_a_plugin_of_an_installed_project(tmp_path: Path) -> None:
    """A real distribution with a real entry point, found by a fresh interpreter."""
    (tmp_path / "their_tasks.py").write_text(
        "import mpt_envs\nmpt_envs.register('theirs/relay-v0', 'tests.toys:RelayTask')\n"
    )
    info = tmp_path / "their_tasks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mpt_envs.plugins]\ntheirs = their_tasks\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import mpt_envs\n"
        "print(mpt_envs.make('theirs/relay-v0').task.task_id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "toys/relay-v0"


def test_a_module_before_the_id_is_imported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brought_task.py").write_text(
        "from mpt_envs import register\n"
        "from tests.toys import RelayTask\n"
        "register('brought/relay-v0', task=RelayTask)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert registry_module.spec("brought_task:brought/relay-v0").id == "brought/relay-v0"
    with pytest.raises(UnknownTaskError, match="PYTHONPATH"):
        registry_module.spec("no_such_module:brought/relay-v0")
    with pytest.raises(UnknownTaskError, match="brought/relay-v0"):
        registry_module.spec("brought_task:brought/relai-v0")


def test_a_batch_of_another_kind_needs_a_task() -> None:
    class Other(BatchTask):
        def __init__(self, num_envs: int) -> None:
            """Nothing is needed."""

    Other.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    mpt_envs.register("other/other-v0", batch=Other)
    with pytest.raises(TypeError, match="only of a RecordBatch; register it with task="):
        mpt_envs.make_task("other/other-v0")
    with pytest.raises(ValueError, match="give task="):
        mpt_envs.register("other/nothing-v0")
