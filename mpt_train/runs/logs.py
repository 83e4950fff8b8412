"""The log of a run: one JSON record per line, and the same numbers for TensorBoard.

``metrics.jsonl`` is the record of what happened; everything else (plots, tables) is made from it. A
line is one JSON object that starts with ``step`` (training steps done) and ``kind`` ("train",
"curve" or "cold_start"). NaN and infinities are the strings "NaN", "Infinity" and "-Infinity", so
that every line is valid JSON (`mpt_train.runs.plain`); `read_metrics` turns them back.

A process that is killed while it writes leaves half a line at the end. Readers ignore it, and it is
cut off when the log is opened again. A run that goes back to a checkpoint first calls
`RunLogger.rewind`, so that no step is in the log twice; a log that does not reach the checkpoint,
because it was cut or replaced, is refused there.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from mpt_train.errors import LogError
from mpt_train.runs.event_file import EventFile
from mpt_train.runs.files import reason, write_atomically
from mpt_train.runs.plain import from_plain, to_plain

METRICS = "metrics.jsonl"
TENSORBOARD = "tb"
_BEGINNING = b'{"step": '


class RunLogger:
    """Appends records to the log of a run folder.

    Args:
        folder: the run folder, which exists.
        tensorboard: whether to write TensorBoard event files too, into ``folder/tb``.

    Raises:
        LogError: the log cannot be opened or (from `log`, `sync`, `rewind`) written; what was
            logged before is intact.
    """

    def __init__(self, folder: Path, tensorboard: bool = True) -> None:
        self.folder = folder
        self.path = folder / METRICS
        self._tensorboard = tensorboard
        self._purge_step: int | None = None
        self._events: EventFile | None = None
        self._torn = False
        with self._explained():
            self._file = self._open()

    def log(self, step: int, record: Mapping[str, Any]) -> None:
        """Append a record; it reaches the operating system before this returns.

        Args:
            step: training steps done.
            record: numbers, strings, lists and nested mappings of these. TensorBoard gets every
                number under the path of its keys and indices, after the record's ``kind``, e.g.
                ``train/participation/miner/03``.
        """
        # The two that readers sort by come first; a step in the record itself does not count.
        values = {"step": int(step), "kind": "run"} | to_plain(record) | {"step": int(step)}
        line = json.dumps(values, allow_nan=False).encode() + b"\n"
        with self._explained():
            self._append(line)
            if self._tensorboard:
                if self._events is None:
                    self._events = EventFile(self.folder / TENSORBOARD, self._purge_step)
                self._events.add(step, dict(_scalars(from_plain(values))))

    def rewind(self, step: int, *, begun: bool = False) -> None:
        """Forget every record of a later step than ``step``, and half a line at the end.

        TensorBoard forgets them too, as soon as the next record is logged.

        Args:
            step: the last one that is kept.
            begun: whether there must be a record, of the cold start, also where it is step 0.

        Raises:
            LogError: a line that is to be kept is damaged, or missing: the log does not reach the
                step. Half a line at the end may have been its last record.
        """
        with self._explained():
            lines = self.path.read_bytes().splitlines(keepends=True)
            kept, damaged, last = [], None, 0
            for number, line in enumerate(lines, start=1):
                record = _parse(line)
                if record is None:
                    damaged = number
                elif record["step"] <= step:
                    if damaged is not None:
                        raise LogError(
                            f"line {damaged} of {self.path} is damaged; restore the file from a "
                            "copy, or start the run again (mpt train --overwrite)"
                        )
                    kept.append(line)
                    last = record["step"]
            if (not self._torn and begun and not kept) or last < step - self._torn:
                raise LogError(
                    f"the log {self.path} does not reach the checkpoint, which is of step {step}: "
                    "it was cut or replaced; restore it from a copy, or start the run again (mpt "
                    "train --overwrite)"
                )
            if len(kept) < len(lines):
                self._file.close()
                write_atomically(self.path, b"".join(kept))
                self._file = self._open()
            if self._events is not None:
                self._events.close()
                self._events = None
        self._purge_step = step + 1

    def sync(self) -> None:
        """Make everything that was logged durable; called before a checkpoint is written."""
        with self._explained():
            os.fsync(self._file.fileno())
            if self._events is not None:
                self._events.sync()

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._file.close()
        if self._events is not None:
            self._events.close()

    def __enter__(self) -> RunLogger:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self) -> IO[bytes]:
        """The log, open for appending, without half a line at its end."""
        file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        end = os.fstat(file.fileno()).st_size
        tail = b""
        while end > len(tail) and b"\n" not in tail:
            size = min(2 * len(tail) + 65536, end)
            file.seek(end - size)
            tail = file.read(size)
        if tail and not tail.endswith(b"\n"):
            line = tail[tail.rfind(b"\n") + 1 :]
            # Of a record, that is, and not of whatever has taken its place.
            self._torn = line.startswith(_BEGINNING[: len(line)])
            file.truncate(end - len(tail) + tail.rfind(b"\n") + 1)
        return file

    def _append(self, line: bytes) -> None:
        """Write a line whole or, if the disk fills up, not at all."""
        end = os.fstat(self._file.fileno()).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the system's errors into one that says what to do."""
        try:
            yield
        except LogError:
            raise
        except OSError as error:
            raise LogError(
                f"the log {self.path} cannot be written: {reason(error)}; make room or change the "
                "permissions, then continue with --resume"
            ) from error


def read_metrics(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The records of a run, in the order in which they were logged.

    Args:
        folder: the run folder.
        kind: only records of this kind; None: all.

    Raises:
        LogError: there is no log, or a line before the last one is damaged.
    """
    path = folder / METRICS
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise LogError(f"the log {path} cannot be read: {reason(error)}") from error
    records = []
    for number, line in enumerate(lines, start=1):
        record = _parse(line)
        if record is None and number < len(lines):
            raise LogError(f"line {number} of {path} is damaged; restore the file from a copy")
        if record is not None and kind in (None, record.get("kind")):
            records.append(record)
    return records


def _parse(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None if the line is torn or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = from_plain(json.loads(line))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


def _scalars(record: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Tag and value of every number in a record."""
    kind = record["kind"]
    for key, value in record.items():
        if key not in ("kind", "step"):
            yield from _flatten(f"{kind}/{key}", value)


def _flatten(tag: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, (bool, int, float)):
        yield tag, float(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{tag}/{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flatten(f"{tag}/{index:02d}", item)
