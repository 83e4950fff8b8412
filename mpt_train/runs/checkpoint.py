"""Checkpoints: tensors as safetensors, everything else as JSON, no pickle.

A checkpoint is a folder::

    checkpoint.json             format, version, state, and name, size and digest of the tensor file
    tensors-<digest>.safetensors

The tensor file is written first, under a name of its own; then ``checkpoint.json`` is replaced in
one step, which is the moment at which the new checkpoint counts; then the old tensor file goes. So
a process that is killed at any moment, or a disk that fills up, leaves a valid checkpoint: the old
one or the new one.

Digests (BLAKE2b) cover both files, so that truncation and flipped bits are found on loading. They
do not prove who wrote a checkpoint. Reading one never runs code that it holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from mpt_train.errors import CheckpointError
from mpt_train.runs.files import reason, remove_temporary, sync_folder, write_atomically
from mpt_train.runs.plain import from_plain, to_plain

FORMAT = "mpt-checkpoint"
VERSION = 1
"""Version of the layout; another one is refused."""

MANIFEST = "checkpoint.json"
_TENSOR_FILE = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
_START_AGAIN = "restore the folder from a copy, or start the run again (mpt train --overwrite)"


def save_checkpoint(
    path: Path, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]
) -> None:
    """Write a checkpoint, replacing the one that the folder may hold.

    Args:
        path: the checkpoint's folder; made if it is missing.
        tensors: any dtypes and shapes, on any device; each is saved on its own, so sharing memory
            is no concern.
        state: values that JSON can express (`mpt_train.runs.plain`); floats keep all their bits.

    Raises:
        CheckpointError: it cannot be written; a checkpoint that was there before is still valid.
        TypeError: a value of the state is of a type that JSON cannot express.
    """
    plain_state = to_plain(state)
    content = safetensors.torch.save(
        {
            name: tensor.detach().to("cpu", copy=True).contiguous()
            for name, tensor in tensors.items()
        }
    )
    digest = _digest(content)
    name = f"tensors-{digest[:16]}.safetensors"
    body = {
        "format": FORMAT,
        "version": VERSION,
        "tensors": {"file": name, "bytes": len(content), "digest": digest},
        "state": plain_state,
    }
    manifest = {**body, "digest": _digest(_canonical(body))}
    had_one = has_checkpoint(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        remove_temporary(path)
        write_atomically(path / name, content)
        write_atomically(path / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    except OSError as error:
        kept = "the previous checkpoint is intact" if had_one else "there was none before"
        _remove_unused(path)
        raise CheckpointError(
            f"the checkpoint {path} cannot be written: {reason(error)} ({kept}); make room or "
            "change the permissions, then continue with --resume"
        ) from error
    _remove_unused(path)


def load_checkpoint(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read a checkpoint back and check it.

    Args:
        path: the checkpoint's folder.

    Returns:
        ``(tensors, state)`` as they were saved; tensors on the CPU, tuples of the state as lists.

    Raises:
        CheckpointError: there is none, it is incomplete or was changed, or another version of the
            layout wrote it.
    """
    body = _read_manifest(path)
    entry = body["tensors"]
    file = path / entry["file"]
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(
            f"the checkpoint {path} is incomplete: {entry['file']} is missing; {_START_AGAIN}"
        ) from None
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {reason(error)}") from error
    if len(content) != entry["bytes"]:
        raise CheckpointError(
            f"the checkpoint {path} is truncated: {entry['file']} has {len(content)} bytes instead "
            f"of {entry['bytes']}; {_START_AGAIN}"
        )
    if _digest(content) != entry["digest"]:
        raise CheckpointError(
            f"the checkpoint {path} was changed or damaged: {entry['file']} does not match its "
            f"digest; {_START_AGAIN}"
        )
    try:
        tensors = safetensors.torch.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{file} is no safetensors file: {error}; {_START_AGAIN}") from error
    state: dict[str, Any] = from_plain(body["state"])
    return tensors, state


def has_checkpoint(path: Path) -> bool:
    """Whether the folder holds a checkpoint (which `load_checkpoint` may still refuse)."""
    return (path / MANIFEST).is_file()


def _read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, checked in all its parts."""
    file = path / MANIFEST
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(
            f"there is no checkpoint in {path} ({MANIFEST} is missing); a run writes its first one "
            "after the cold start"
        ) from None
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {reason(error)}") from error
    changed = CheckpointError(
        f"the checkpoint {path} was changed or damaged: {MANIFEST} does not match its digest; "
        f"{_START_AGAIN}"
    )
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError(
            f"the checkpoint {path} is truncated or was changed: {MANIFEST} is not valid JSON; "
            f"{_START_AGAIN}"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{file} is no checkpoint of this program; {_START_AGAIN}")
    if manifest.get("version") != VERSION:
        raise CheckpointError(
            f"the checkpoint {path} has the layout version {manifest.get('version')}, but this "
            f"release reads version {VERSION}; use the release that wrote it"
        )
    digest = manifest.pop("digest", None)
    if digest != _digest(_canonical(manifest)):
        raise changed
    entry = manifest.get("tensors")
    if (
        not isinstance(entry, dict)
        or not isinstance(manifest.get("state"), dict)
        or not _TENSOR_FILE.fullmatch(str(entry.get("file")))
    ):
        raise changed
    return manifest


def _canonical(body: Mapping[str, Any]) -> bytes:
    """The bytes that the manifest's digest covers: independent of layout and order."""
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _remove_unused(path: Path) -> None:
    """Delete tensor files that the manifest does not name, and what was left half written."""
    remove_temporary(path)
    used = None
    try:
        used = json.loads((path / MANIFEST).read_bytes())["tensors"]["file"]
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError):
        # Whatever the damaged manifest names may still be of use to its owner.
        return
    for file in path.glob("tensors-*.safetensors"):
        if file.name != used and _TENSOR_FILE.fullmatch(file.name):
            with contextlib.suppress(OSError):
                file.unlink()
    sync_folder(path)
