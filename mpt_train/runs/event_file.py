"""TensorBoard event files, written without a thread.

The format is TensorBoard's own: framed `Event` messages, of which the first names the version.
TensorBoard's `EventFileWriter` hands them to a thread, where a full disk ends in a traceback on the
side and a killed process loses minutes; this one writes at once and raises where it is called.

A run that is resumed gets one more file, which opens with a START message at the first step that
will come again: TensorBoard then forgets what earlier files say of this step and later ones.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile(r"events\.out\.tfevents\.(\d+)\..*")


class EventFile:
    """Scalars for TensorBoard in a new file of a folder.

    Args:
        folder: log directory; made if it is missing.
        purge_step: the first step that this file says anew, or None in a new run.

    Raises:
        OSError: from every method, if the disk is full or the folder is not writable.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        # Imported late: it takes a few tenths of a second.
        from tensorboard.compat.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
        from tensorboard.summary.writer import record_writer  # type: ignore[import-untyped]

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard reads the files in the order of their names, which start with the time: make
        # sure that this one is the last, whatever the clock did.
        times = [int(m[1]) for m in map(_NAME.fullmatch, os.listdir(folder)) if m]
        stamp = max([int(time.time()), *(t + 1 for t in times)])
        self.path = folder / f"events.out.tfevents.{stamp:010d}.{socket.gethostname()}"
        self._file = open(self.path, "xb", buffering=0)  # noqa: SIM115
        self._records = record_writer.RecordWriter(self._file)
        start = purge_step or 0
        self._write(self._event(wall_time=time.time(), step=start, file_version="brain.Event:2"))
        if purge_step is not None:
            session = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._write(self._event(wall_time=time.time(), step=purge_step, session_log=session))

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """Write the values of one step; may be called several times for a step."""
        values = [
            self._summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()
        ]
        if values:
            summary = self._summary(value=values)
            self._write(self._event(wall_time=time.time(), step=step, summary=summary))

    def sync(self) -> None:
        """Make what was written durable."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()

    def _write(self, event: object) -> None:
        self._records.write(event.SerializeToString())  # type: ignore[attr-defined]
