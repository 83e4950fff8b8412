"""A run folder is checked before any work is done, and never loses a run by accident."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpt_train.config import TrainConfig
from mpt_train.errors import RunFolderError, UsageError
from mpt_train.loop import Trainer
from mpt_train.runs.files import TEMPORARY
from mpt_train.runs.folder import RunFolder, config_differences
from tests.mpt_train.relay import tiny
from wrappers.errors import MarketError

CONFIG = TrainConfig()
LEFT_BEHIND = ("metrics.jsonl", "summary.json", "tb/events", "checkpoint/checkpoint.json")


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A folder with a run that has a checkpoint."""
    folder = tmp_path / "deep" / "run"
    RunFolder.for_training(folder, CONFIG)
    for name in LEFT_BEHIND:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def test_a_new_folder_holds_the_configuration(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, seed=3, priority=("miner", "smith"))
    run = RunFolder.for_training(tmp_path / "a" / "b", config)
    assert run.read_config() == config
    assert RunFolder.existing(tmp_path / "a" / "b").read_config() == config


def test_a_run_is_not_replaced_by_accident(used: Path) -> None:
    with pytest.raises(RunFolderError, match=r"mpt-plus on .*seed 0.*--resume.*--overwrite"):
        RunFolder.for_training(used, CONFIG)
    assert all((used / name).exists() for name in LEFT_BEHIND)


def test_overwrite_deletes_the_run_and_nothing_else(used: Path) -> None:
    (used / "notes.txt").write_text("mine")
    RunFolder.for_training(used, dataclasses.replace(CONFIG, seed=9), overwrite=True)
    assert not any((used / name).exists() for name in LEFT_BEHIND)
    assert (used / "notes.txt").read_text() == "mine"
    assert RunFolder(used).read_config().seed == 9


def test_resume_keeps_the_run(used: Path) -> None:
    changed = dataclasses.replace(CONFIG, checkpoint_every=7)
    run = RunFolder.for_training(used, changed, resume=True)
    assert run.read_config() == changed
    assert all((used / name).exists() for name in LEFT_BEHIND)


def test_resume_with_another_configuration_is_refused(used: Path) -> None:
    other = dataclasses.replace(
        CONFIG, seed=1, env=dataclasses.replace(CONFIG.env, dropout=0.5), checkpoint_every=7
    )
    with pytest.raises(RunFolderError, match=r"\(seed: 0 -> 1; env.dropout: 0.0 -> 0.5\)"):
        RunFolder.for_training(used, other, resume=True)
    assert RunFolder(used).read_config() == CONFIG


def test_resume_and_overwrite_exclude_each_other(used: Path) -> None:
    with pytest.raises(RunFolderError, match="not both"):
        RunFolder.for_training(used, CONFIG, resume=True, overwrite=True)


def test_resume_of_nothing_starts(tmp_path: Path) -> None:
    RunFolder.for_training(tmp_path / "new", CONFIG, resume=True)
    assert RunFolder(tmp_path / "new").read_config() == CONFIG


def test_a_run_that_has_no_checkpoint_starts_again(used: Path) -> None:
    (used / "checkpoint" / "checkpoint.json").unlink()
    RunFolder.for_training(used, CONFIG, resume=True)
    assert not (used / "metrics.jsonl").exists()


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(RunFolderError, match="holds files but no run"):
            RunFolder.for_training(tmp_path, CONFIG, overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_killed_while_the_folder_was_made(tmp_path: Path) -> None:
    (tmp_path / ("config.json" + TEMPORARY)).write_text("{")
    (tmp_path / ".lock").touch()
    RunFolder.for_training(tmp_path, CONFIG)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", "config.json"]


@pytest.fixture
def nobody() -> Iterator[None]:
    """Act as a user whom permissions hold back, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.mark.usefixtures("nobody")
def test_unwritable_folder_is_found_before_training(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"mpt-unwritable-{os.getpid()}"
    folder.mkdir()
    try:
        folder.chmod(0o555)
        for place in (folder, folder / "below"):
            with pytest.raises(RunFolderError, match=r"Permission denied; name another --folder"):
                Trainer(tiny("mpt"), place)
    finally:
        folder.chmod(0o755)
        folder.rmdir()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RunFolderError, match="cannot be used"):
            Trainer(tiny("mpt"), place)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="there is no such folder"):
        RunFolder.existing(tmp_path / "missing")
    with pytest.raises(RunFolderError, match=r"config\.json is missing"):
        RunFolder.existing(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nonsense": 1}', '{"env": 3}', "\x00"])
def test_damaged_configuration(used: Path, text: str) -> None:
    (used / "config.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"config\.json"):
        RunFolder(used).read_config()
    with pytest.raises(RunFolderError):
        RunFolder.for_training(used, CONFIG, resume=True)


def test_summary(used: Path) -> None:
    (used / "summary.json").unlink()
    run = RunFolder(used)
    with pytest.raises(RunFolderError, match="has not ended"):
        run.read_summary()
    run.write_summary({"success": float("nan"), "final": [1.5]})
    json.loads(run.summary.read_text(), parse_constant=pytest.fail)
    summary = run.read_summary()
    assert summary["final"] == [1.5]
    assert summary["success"] != summary["success"]


def test_two_processes_do_not_train_in_one_folder(used: Path) -> None:
    pytest.importorskip("fcntl")
    code = (
        "import sys, pathlib; from mpt_train.runs.folder import RunFolder\n"
        "with RunFolder(pathlib.Path(sys.argv[1])).lock(): print('locked', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(used)]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        for resume in (True, False):
            with pytest.raises(RunFolderError, match="another process is training"):
                RunFolder.for_training(used, CONFIG, resume=resume, overwrite=not resume)
        assert all((used / name).exists() for name in LEFT_BEHIND)
        # However a process ends, the system lifts its lock.
        other.kill()
        other.wait()
    RunFolder.for_training(used, CONFIG, resume=True)


def test_differences_name_the_fields() -> None:
    other = dataclasses.replace(CONFIG, network=dataclasses.replace(CONFIG.network, hidden=(8,)))
    assert config_differences(CONFIG, CONFIG) == []
    before = list(CONFIG.network.hidden)
    assert config_differences(CONFIG, other) == [f"network.hidden: {before} -> [8]"]


def test_errors_belong_to_the_family() -> None:
    assert issubclass(RunFolderError, MarketError)
    assert issubclass(UsageError, MarketError)
