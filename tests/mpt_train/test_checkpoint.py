"""Checkpoints survive crashes, full disks and meddling, and come back bit for bit."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from mpt_train.errors import CheckpointError
from mpt_train.runs.checkpoint import MANIFEST, has_checkpoint, load_checkpoint, save_checkpoint

ROOT = Path(__file__).resolve().parents[2]


def tensors_of(number: int, size: int = 64) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return {
        "weight": torch.randn(size, 3, generator=generator),
        "step": torch.tensor(number, dtype=torch.int64),
        "empty": torch.zeros(0, 2),
    }


def tensor_file(path: Path) -> Path:
    (file,) = path.glob("*.safetensors")
    return file


def assert_holds(path: Path, number: int) -> None:
    tensors, state = load_checkpoint(path)
    expected = tensors_of(number)
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)
    assert state == {"step": number}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "checkpoint", tensors_of(1), {"step": 1})
    return tmp_path / "checkpoint"


def test_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    base = torch.arange(12, dtype=torch.float32)
    tensors = {
        "bfloat": torch.randn(5).to(torch.bfloat16),
        "double": torch.tensor([math.pi, math.nan, math.inf, -0.0], dtype=torch.float64),
        "bool": torch.tensor([True, False]),
        # Views of one storage, one of them not contiguous, and a parameter.
        "view": base[2:8],
        "other view": base.view(3, 4).T,
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        "scalar": torch.tensor(3.5),
    }
    state = {
        "flop": 12345678901234567890123,
        "mean": 0.1 + 0.2,
        "tiny": 5e-324,
        "text": "Größe\n\x00",
        "nothing": None,
        "nested": {"flags": [True, False], "nan": math.nan, "low": -math.inf},
    }
    save_checkpoint(tmp_path, tensors, state)
    loaded, loaded_state = load_checkpoint(tmp_path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert loaded[name].contiguous().view(-1).view(torch.uint8).tolist() == (
            tensor.detach().contiguous().view(-1).view(torch.uint8).tolist()
        )
    assert repr(loaded_state) == repr(state)


def test_files_are_safetensors_and_json_without_leftovers(saved: Path) -> None:
    save_checkpoint(saved, tensors_of(2), {"step": 2})
    assert_holds(saved, 2)
    assert len(list(saved.iterdir())) == 2
    json.loads((saved / MANIFEST).read_text(), parse_constant=pytest.fail)


def test_same_content_twice(saved: Path) -> None:
    save_checkpoint(saved, tensors_of(1), {"step": 1})
    assert_holds(saved, 1)


@pytest.mark.parametrize("kind", [".safetensors", ".json"])
def test_truncated(saved: Path, kind: str) -> None:
    (file,) = saved.glob("*" + kind)
    content = file.read_bytes()
    for length in (0, 1, len(content) // 2, len(content) - 2):
        file.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"truncated|damaged") as error:
            load_checkpoint(saved)
        assert str(saved) in str(error.value)
        assert "--overwrite" in str(error.value)
    file.write_bytes(content)
    assert_holds(saved, 1)


@pytest.mark.parametrize("kind", [".safetensors", ".json"])
def test_flipped_bits_are_found(saved: Path, kind: str) -> None:
    (file,) = saved.glob("*" + kind)
    content = file.read_bytes()
    choose = random.Random(0)
    found = 0
    for position in choose.sample(range(len(content)), min(300, len(content))):
        changed = bytearray(content)
        changed[position] ^= 1 << choose.randrange(8)
        file.write_bytes(changed)
        try:
            tensors, state = load_checkpoint(saved)
        except CheckpointError:
            found += 1
        else:
            # A blank of the JSON may become another blank, and nothing is different.
            assert kind == ".json"
            assert state == {"step": 1}
            assert torch.equal(tensors["weight"], tensors_of(1)["weight"])
    assert found > 250


def test_an_edited_state_is_found(saved: Path) -> None:
    manifest = saved / MANIFEST
    manifest.write_text(manifest.read_text().replace('"step": 1', '"step": 9'))
    with pytest.raises(CheckpointError, match="changed or damaged"):
        load_checkpoint(saved)


def test_tensors_of_another_checkpoint_are_found(saved: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "other", tensors_of(2), {"step": 2})
    tensor_file(saved).write_bytes(tensor_file(tmp_path / "other").read_bytes())
    with pytest.raises(CheckpointError, match="does not match its digest"):
        load_checkpoint(saved)


def test_missing_parts(saved: Path, tmp_path: Path) -> None:
    assert not has_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        load_checkpoint(tmp_path / "nowhere")
    tensor_file(saved).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        load_checkpoint(saved)
    (saved / MANIFEST).unlink()
    assert not has_checkpoint(saved)
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        load_checkpoint(saved)


def test_another_version_or_format(saved: Path) -> None:
    manifest = saved / MANIFEST
    text = manifest.read_text()
    manifest.write_text(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(CheckpointError, match="layout version 2, but this release reads version 1"):
        load_checkpoint(saved)
    for other in ("[]", "{}", '{"format": "somebody else\'s"}'):
        manifest.write_text(other)
        with pytest.raises(CheckpointError, match="no checkpoint of this program"):
            load_checkpoint(saved)


def test_a_tensor_file_elsewhere_is_not_read(saved: Path, tmp_path: Path) -> None:
    """Even with a fitting digest a manifest cannot point out of its folder."""
    from mpt_train.runs import checkpoint

    content = tensor_file(saved).read_bytes()
    (tmp_path / "elsewhere.safetensors").write_bytes(content)
    body = json.loads((saved / MANIFEST).read_text())
    del body["digest"]
    body["tensors"]["file"] = "../elsewhere.safetensors"
    body["digest"] = checkpoint._digest(checkpoint._canonical(body))
    (saved / MANIFEST).write_text(json.dumps(body))
    with pytest.raises(CheckpointError):
        load_checkpoint(saved)


def test_unknown_values_in_the_state_change_nothing(saved: Path) -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        save_checkpoint(saved, tensors_of(2), {"step": object()})
    assert_holds(saved, 1)


@pytest.fixture
def small_disk() -> Iterator[None]:
    """The system refuses to let any file grow beyond 20 kB, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, old)


@pytest.mark.usefixtures("small_disk")
def test_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    save_checkpoint(path, tensors_of(1), {"step": 1})
    with pytest.raises(CheckpointError, match="previous checkpoint is intact"):
        save_checkpoint(path, tensors_of(2, size=10_000), {"step": 2})
    # Tensors fit, the manifest does not.
    with pytest.raises(CheckpointError, match="previous checkpoint is intact"):
        save_checkpoint(path, tensors_of(3), {"step": 3, "long": "x" * 30_000})
    assert_holds(path, 1)
    assert len(list(path.iterdir())) == 2, "what could not be completed takes room"
    with pytest.raises(CheckpointError, match="there was none before"):
        save_checkpoint(tmp_path / "first", tensors_of(2, size=10_000), {"step": 2})
    save_checkpoint(path, tensors_of(4), {"step": 4})
    assert_holds(path, 4)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_failure_at_any_call_leaves_a_valid_one(
    saved: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """No room or a broken disk is often only reported by fsync."""
    real = getattr(os, failing)
    for fail_at in range(8):
        calls = 0

        def call(*args: object, fail_at: int = fail_at) -> object:
            nonlocal calls
            calls += 1
            if calls == fail_at + 1:
                raise OSError(28, "No space left on device")
            return real(*args)

        before = load_checkpoint(saved)[1]["step"]
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, call)
            after = before + 1
            try:
                save_checkpoint(saved, tensors_of(after), {"step": after})
            except CheckpointError:
                after = before
        assert_holds(saved, after)
        if calls <= fail_at:
            return
    pytest.fail("the call is made more often than expected")


def test_unwritable(saved: Path) -> None:
    (saved.parent / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save_checkpoint(saved.parent / "file" / "checkpoint", tensors_of(1), {"step": 1})


WRITER = """
    import sys, pathlib, torch
    from mpt_train.runs.checkpoint import save_checkpoint
    path = pathlib.Path(sys.argv[1])
    for number in range(int(sys.argv[2]), 1_000_000):
        generator = torch.Generator().manual_seed(number)
        tensors = {
            "weight": torch.randn(64, 3, generator=generator),
            "step": torch.tensor(number, dtype=torch.int64),
            "empty": torch.zeros(0, 2),
        }
        save_checkpoint(path, tensors, {"step": number})
        print(number, flush=True)
"""


def test_kill_at_any_moment_leaves_a_valid_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    choose = random.Random(os.getpid())
    done = 0
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), str(done + 1)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline(), "the writer could not start"
            time.sleep(choose.uniform(0.0, 0.2))
            writer.kill()
            printed = [int(line) for line in writer.stdout.read().split()]
        found = int(load_checkpoint(path)[1]["step"])
        assert_holds(path, found)
        # What was reported is there; at most one more was complete and not reported yet.
        assert max(printed, default=done + 1) <= found
        done = found
    save_checkpoint(path, tensors_of(7), {"step": 7})
    assert len(list(path.iterdir())) == 2
