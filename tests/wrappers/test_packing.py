"""Packing: what goes in comes out, equal states give equal bytes, and nothing else gets in."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import numpy as np
import pytest

from wrappers.packing import PackError, _Unpacker, pack, unpack

PACKAGE = (__name__,)


class Box:
    """A plain object."""

    def __init__(self, content: Any) -> None:
        self.content = content


class Slotted:
    __slots__ = ("x",)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**127 + 1,
        0.1,
        float("inf"),
        "한국어 \n\0",
        b"\x00\xff",
        [1, [2.5, None]],
        (1, ("a", [2])),
        {"a": 1, 2: (3,), (4, 5): "six"},
        {3, 1, 2},
        frozenset({"x", "y"}),
        range(1, 9, 2),
        deque([1, 2], maxlen=3),
        [],
        {},
    ],
)
def test_round_trip(value: Any) -> None:
    back = unpack(pack(value))
    assert back == value
    assert type(back) is type(value)


def test_nan_and_signed_zero_survive() -> None:
    nan, zero = unpack(pack([float("nan"), -0.0]))
    assert np.isnan(nan)
    assert np.signbit(zero)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3).T,
        np.zeros((0, 3), np.float32),
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array(3.5),
    ],
)
def test_arrays_keep_shape_and_dtype_and_are_writable(array: np.ndarray[Any, Any]) -> None:
    back = unpack(pack(array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    assert back.flags.writeable


@pytest.mark.parametrize("scalar", [np.float32(0.1), np.int64(-5), np.uint8(7), np.bool_(True)])
def test_numpy_scalars_keep_their_type(scalar: Any) -> None:
    back = unpack(pack(scalar))
    assert back == scalar
    assert type(back) is type(scalar)


@pytest.mark.parametrize("name", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_a_generator_continues_where_it_was(name: str) -> None:
    generator = np.random.Generator(getattr(np.random, name)(3))
    generator.random(5)
    twin = unpack(pack(generator))
    np.testing.assert_array_equal(twin.random(9), generator.random(9))


def test_identity_and_cycles_are_kept() -> None:
    box = Box(None)
    box.content = [box, {"again": box}]
    shared = [1]
    back = unpack(pack((box, shared, shared), packages=PACKAGE), packages=PACKAGE)
    assert type(back[0]) is Box
    assert back[0].content[0] is back[0]
    assert back[0].content[1]["again"] is back[0]
    assert back[1] is back[2]


def test_references_are_replaced_by_their_counterparts() -> None:
    here, there = object(), object()
    data = pack([here, 1], references={"world": here})
    assert unpack(data, references={"world": there}) == [there, 1]


def test_equal_values_give_equal_bytes_whatever_their_history() -> None:
    first, second = Box(1), Box(1)
    second.extra = 2
    del second.extra
    second.content, first.content = {9, 8, 1}, {1, 9, 8}
    assert pack(first, packages=PACKAGE) == pack(second, packages=PACKAGE)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "builtins.object"),
        (Box(1), "Box"),
        ([lambda: 1], r"value\[0\] is a builtins.function"),
        ({"a": np.array([None])}, "value.a is an array of dtype object"),
        ({Slotted}, "type"),
    ],
)
def test_what_cannot_be_written_is_named(value: Any, words: str) -> None:
    with pytest.raises(PackError, match=words):
        pack(value)


def test_objects_that_are_more_than_plain_are_refused() -> None:
    with pytest.raises(PackError, match="more than a plain object"):
        pack(Slotted(), packages=PACKAGE)
    with pytest.raises(PackError, match="set of objects"):
        pack({Box(1), Box(2)}, packages=PACKAGE)


def test_too_deep_a_value_is_an_error_not_a_crash() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(PackError, match="deep"):
        pack(value)


def test_every_truncation_and_every_changed_byte_is_noticed() -> None:
    data = pack({"a": np.arange(4), "b": [1, 2.5, "x"]})
    for end in range(len(data)):
        with pytest.raises(PackError):
            unpack(data[:end])
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(PackError):
            unpack(bytes(changed))


def _forged(nodes: list[Any], root: Any) -> bytes:
    import hashlib

    body = json.dumps({"nodes": nodes, "root": root}).encode()
    return hashlib.blake2b(body, digest_size=16).digest() + body


@pytest.mark.parametrize(
    ("nodes", "root"),
    [
        ([["object", "os:system", []]], ["@", 0]),
        ([["object", "subprocess:Popen", [["args", "x"]]]], ["@", 0]),
        ([["generator", ["@", 1]], ["dict", [["bit_generator", "default_rng"]]]], ["@", 0]),
        ([["array", "O", [1], "AAAAAAAAAAA="]], ["@", 0]),
        ([["array", "<f8", [7], "AAAAAAAAAAA="]], ["@", 0]),
        ([["array", "<f8", [1], "no base64"]], ["@", 0]),
        ([], ["@", 5]),
        ([], ["eval", "1"]),
        ([], {"a": 1}),
        ([], []),
        ([], ["ref", "world"]),
        ([], ["enum", "signal:Signals", "SIGTERM"]),
    ],
)
def test_forged_data_builds_nothing_that_was_not_allowed(nodes: list[Any], root: Any) -> None:
    with pytest.raises(PackError):
        unpack(_forged(nodes, root))


def test_an_allowed_package_does_not_allow_functions_or_other_modules() -> None:
    for name in (f"{__name__}:pack", f"{__name__}:json.loads", f"{__name__}:missing"):
        with pytest.raises(PackError, match="no class"):
            _Unpacker([], PACKAGE, {})._class(name, object)
    with pytest.raises(PackError, match="not allowed"):
        _Unpacker([], PACKAGE, {})._class("builtins:object", object)
