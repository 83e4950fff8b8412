"""The folder of a training run: what lies where, and who may write there.

::

    config.json       the `TrainConfig` of the run
    metrics.jsonl     the log (`mpt_train.runs.logs`)
    tb/               the log for TensorBoard
    cold_start/       the checkpoint right after the cold start
    checkpoint/       the last checkpoint (`mpt_train.runs.checkpoint`)
    summary.json      the `RunSummary`, once the run has ended
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpt_train.config import TrainConfig, check_config, from_json, to_json
from mpt_train.errors import RunFolderError
from mpt_train.runs.checkpoint import has_checkpoint
from mpt_train.runs.files import TEMPORARY, reason, remove_temporary, write_json
from mpt_train.runs.logs import METRICS, TENSORBOARD
from mpt_train.runs.plain import from_plain

CONFIG = "config.json"
CHECKPOINT = "checkpoint"
COLD_START = "cold_start"
SUMMARY = "summary.json"
LOCK = ".lock"

# What a run leaves behind. The configuration comes last: while a folder is being cleared it must
# still be known as a run.
_RESULTS = (SUMMARY, CHECKPOINT, COLD_START, METRICS, TENSORBOARD)
_PARTS = (*_RESULTS, CONFIG)

FREE_FIELDS = ("checkpoint_every",)
"""Fields that may change when a run is resumed, because no result depends on them."""


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run, and the rules for using its folder.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def config(self) -> Path:
        """``config.json``."""
        return self.path / CONFIG

    @property
    def metrics(self) -> Path:
        """``metrics.jsonl``."""
        return self.path / METRICS

    @property
    def checkpoint(self) -> Path:
        """The folder of the last checkpoint."""
        return self.path / CHECKPOINT

    @property
    def cold_start(self) -> Path:
        """The folder of the checkpoint right after the cold start."""
        return self.path / COLD_START

    @property
    def summary(self) -> Path:
        """``summary.json``."""
        return self.path / SUMMARY

    @classmethod
    def for_training(
        cls, path: Path, config: TrainConfig, *, resume: bool = False, overwrite: bool = False
    ) -> RunFolder:
        """Make a folder ready for a run, or find out that it cannot be, before any work is done.

        Args:
            path: the folder; made if it is missing.
            config: what will be trained.
            resume: continue the run that is there, if one is; it must have this configuration.
                A run without a checkpoint starts from the beginning.
            overwrite: delete the run that is there, if one is.

        Raises:
            RunFolderError: the folder is not writable, or holds another run or other files.
        """
        run = cls(path)
        if resume and overwrite:
            raise RunFolderError("give either --resume or --overwrite, not both")
        with _explained(path):
            path.mkdir(parents=True, exist_ok=True)
            if run.config.exists():
                if resume:
                    _check_same(run.read_config(), config, path)
                elif not overwrite:
                    raise RunFolderError(
                        f"{path} already holds a run ({_describe(run)}): continue it with "
                        "--resume, replace it with --overwrite, or name another --folder"
                    )
            elif any(not _is_ours(entry.name) for entry in path.iterdir()):
                raise RunFolderError(
                    f"{path} holds files but no run, and a run wants a folder of its own: name "
                    "another --folder"
                )
            with run.lock():
                remove_temporary(path)
                if overwrite or not has_checkpoint(run.checkpoint):
                    # Without a checkpoint a resumed run starts again, and so does its log.
                    _delete(path, _RESULTS)
                # Also the proof that the folder is writable.
                write_json(run.config, to_json(config))
        return run

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """The folder of a run that was started before.

        Raises:
            RunFolderError: there is none.
        """
        run = cls(path)
        if not run.config.is_file():
            why = f"{CONFIG} is missing in it" if path.is_dir() else "there is no such folder"
            raise RunFolderError(
                f"{path} is no run: {why}; `mpt train --folder {path}` would make one"
            )
        return run

    def read_config(self) -> TrainConfig:
        """The configuration of the run.

        Raises:
            RunFolderError: it is missing, damaged, was written by another release, or holds values
                that no run can be trained with.
        """
        try:
            config = from_json(_read_json(self.config))
            check_config(config)
            return config
        except (ValueError, TypeError, AttributeError) as error:
            raise RunFolderError(f"{self.config} cannot be used: {error}") from error

    def read_summary(self) -> dict[str, Any]:
        """The summary of the finished run, as plain values.

        Raises:
            RunFolderError: the run has not ended, or the file is damaged.
        """
        if not self.summary.is_file():
            raise RunFolderError(
                f"the run in {self.path} has not ended; `mpt train --resume --folder {self.path}` "
                "continues it"
            )
        summary: dict[str, Any] = from_plain(_read_json(self.summary))
        return summary

    def write_summary(self, summary: Any) -> None:
        """Keep the summary of the finished run (plain values, see `mpt_train.runs.plain`)."""
        with _explained(self.path):
            write_json(self.summary, summary)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this folder during the block.

        The system lifts the lock when this process ends, however it ends. Where the file system
        has no locks, there is none.

        Raises:
            RunFolderError: another process is training here.
        """
        try:
            import fcntl
        except ImportError:  # Windows
            yield
            return
        with _explained(self.path):
            file = open(self.path / LOCK, "a")  # noqa: SIM115
        with file:
            try:
                # A record lock: other than one of `flock`, no forked child can inherit and keep it.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise RunFolderError(
                    f"another process is training in {self.path}: wait for it, stop it, or name "
                    "another --folder"
                ) from None
            except OSError:
                # No locks on this file system.
                pass
            yield


def config_differences(old: TrainConfig, new: TrainConfig) -> list[str]:
    """The fields in which two configurations differ, as ``name: old -> new``."""
    before, after = _flat(to_json(old)), _flat(to_json(new))
    return [
        f"{name}: {before.get(name)} -> {after.get(name)}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


def _flat(values: dict[str, Any], where: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= (
            _flat(value, f"{where}{name}.") if isinstance(value, dict) else {where + name: value}
        )
    return flat


def _check_same(old: TrainConfig, new: TrainConfig, path: Path) -> None:
    different = [
        line for line in config_differences(old, new) if line.split(":")[0] not in FREE_FIELDS
    ]
    if different:
        raise RunFolderError(
            f"the run in {path} was started with another configuration ({'; '.join(different)}), "
            "and would not continue to the same numbers: resume it with its own, or name another "
            "--folder"
        )


def _is_ours(name: str) -> bool:
    """Whether a file may lie in the folder of a run that was never begun."""
    return name == LOCK or name.endswith(TEMPORARY)


def _describe(run: RunFolder) -> str:
    """A few words about a run, for messages."""
    try:
        config = run.read_config()
    except RunFolderError:
        return "with a configuration that cannot be used"
    state = "finished" if run.summary.exists() else "not finished"
    return f"{config.method} on {config.task}, seed {config.seed}, {state}"


def _delete(path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        part = path / name
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} is damaged: {error}") from error
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {reason(error)}") from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into one that says what to do."""
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        raise RunFolderError(
            f"the folder {path} cannot be used: {reason(error)}; name another --folder, or change "
            "its permissions"
        ) from error
