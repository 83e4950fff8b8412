"""The files on disk: shared, whole or not used, and not needed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mpt_envs.research.data import cache
from mpt_envs.research.data.corpus import Corpus, Document
from mpt_envs.research.data.library import prepare

ARRAYS = {"a": np.arange(5), "b": np.ones((2, 3), np.float32)}
TEXTS = {"words": ["서울", "x"], "n": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    return tmp_path / "cache"


def test_what_is_stored_is_loaded(folder: Path) -> None:
    assert cache.load("k") is None
    cache.store("k", ARRAYS, TEXTS)
    found = cache.load("k")
    assert found is not None
    assert found[1] == TEXTS
    assert all(np.array_equal(found[0][name], array) for name, array in ARRAYS.items())
    assert [p.name for p in folder.iterdir()] == ["k.bin"]


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MPT_CACHE_DIR", "~/kept")
    cache.store("k", ARRAYS, TEXTS)
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["k.bin"]
    assert cache.load("k") is not None
    monkeypatch.setenv("MPT_CACHE_DIR", "~nobody-of-this-name/kept")
    monkeypatch.setattr(cache, "_warned", False)
    assert cache.load("k") is None
    with pytest.warns(RuntimeWarning, match="MPT_CACHE_DIR"):
        cache.store("k", ARRAYS, TEXTS)


def test_damaged_files_are_as_good_as_missing(folder: Path) -> None:
    cache.store("k", ARRAYS, TEXTS)
    good = (folder / "k.bin").read_bytes()
    middle = len(good) // 2
    for bad in (
        b"",
        good[:10],
        good[:-1],
        good[:middle],
        good + b"x",
        good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        b"other" + good,
    ):
        (folder / "k.bin").write_bytes(bad)
        assert cache.load("k") is None
    cache.store("k", ARRAYS, TEXTS)
    assert (folder / "k.bin").read_bytes() == good


def test_many_writers_leave_one_whole_file(folder: Path) -> None:
    failures = []

    def work(number: int) -> None:
        for _ in range(15):
            cache.store("k", {"a": np.full(2000, number)}, {"n": number})
            found = cache.load("k")
            if found is None or set(found[0]["a"].tolist()) != {found[1]["n"]}:
                failures.append(found)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [p.name for p in folder.iterdir()] == ["k.bin"]


def test_without_a_place_everything_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("MPT_CACHE_DIR", str(blocked))
    monkeypatch.setattr(cache, "_warned", False)
    corpus = Corpus([Document("1", "u", "Ada", "Ada was here.")])
    with pytest.warns(RuntimeWarning, match="MPT_CACHE_DIR"):
        library = prepare(corpus)
    assert library.index.search("ada", 5).tolist() == [0]


def test_a_library_from_the_cache_is_the_same(folder: Path) -> None:
    corpus = Corpus(
        Document(str(i), f"u{i}", f"Ada {i}", f"Ada {i} met Bo Tann in {1800 + i}. 서울은 크다.")
        for i in range(20)
    )
    first = prepare(corpus)
    assert len(list(folder.iterdir())) == 1
    second = prepare(corpus)
    assert first.names == second.names
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
    for query in ("Bo Tann", "서울", "Ada 7"):
        assert first.index.search(query, 5).tolist() == second.index.search(query, 5).tolist()


def test_the_encyclopaedia_is_the_same_in_another_process() -> None:
    """Nothing in it depends on the hash seed."""
    code = (
        "from mpt_envs.research.world.encyclopedia import Encyclopedia;"
        "from mpt_envs.research.data.library import _prepare;"
        "import hashlib;e = Encyclopedia(5, (60, 40));a, t = _prepare(e.corpus);"
        "h = hashlib.blake2b(repr(t).encode());"
        "[h.update(a[k].tobytes()) for k in sorted(a)];print(e.corpus.digest, h.hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**__import__("os").environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
