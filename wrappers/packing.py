"""Plain data and small object graphs as bytes, and back, without pickle.

`pack` writes what a simulator's state is made of: numbers, texts, bytes, lists, tuples, dicts,
sets, NumPy scalars, arrays and generators, and, from packages that the caller names, plain
objects. Identity is kept: an object that is referenced twice is one object again after `unpack`,
and cycles are allowed. Equal states give equal bytes.

Unlike pickle, `unpack` runs no code of the data's choosing: it builds the types above, and objects
of the named packages without calling anything of theirs. A checksum in front of the data catches
truncation and accidental changes; it is no protection against a forger, and needs to be none.

The text inside is JSON: ``{"nodes": [...], "root": value}``. A value is a JSON scalar or a list
whose first entry says what it is; ``["@", i]`` refers to node i.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import json
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_CHECKSUM = 16
_SCALARS = (bool, int, float, str, type(None))
_ARRAY_KINDS = "biufcSUmM"
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class PackError(ValueError):
    """A value that `pack` does not write, or bytes that `unpack` does not read."""


def pack(
    value: Any,
    *,
    packages: Sequence[str] = (),
    references: Mapping[str, object] | None = None,
) -> bytes:
    """Write a value as bytes.

    Args:
        value: what to write (see the top of this file).
        packages: module prefixes, e.g. ``"minigrid."``, whose plain objects may be written.
        references: objects that are written by name only; `unpack` is given their counterparts.

    Raises:
        PackError: something in the value is of another type; the message says what and where.
    """
    packer = _Packer(packages, references or {})
    try:
        root = packer.value(value, "value")
    except RecursionError:
        raise PackError("the value is nested too deeply") from None
    text = json.dumps({"nodes": packer.nodes, "root": root}, separators=(",", ":"))
    body = text.encode()
    return hashlib.blake2b(body, digest_size=_CHECKSUM).digest() + body


def unpack(
    data: bytes,
    *,
    packages: Sequence[str] = (),
    references: Mapping[str, object] | None = None,
) -> Any:
    """Read what `pack` wrote, with the same ``packages`` and counterparts of the ``references``.

    Raises:
        PackError: the bytes are truncated, were changed, or hold what is not allowed here.
    """
    body = data[_CHECKSUM:]
    if data[:_CHECKSUM] != hashlib.blake2b(body, digest_size=_CHECKSUM).digest():
        raise PackError("the checksum does not fit: the data is truncated or was changed")
    try:
        document = json.loads(body)
        unpacker = _Unpacker(document["nodes"], packages, references or {})
        return unpacker.value(document["root"])
    except PackError:
        raise
    except (
        AttributeError,
        binascii.Error,
        IndexError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise PackError(f"the data is malformed: {error}") from error


class _Packer:
    """Writes one value; nodes are numbered in the order in which they are met."""

    def __init__(self, packages: Sequence[str], references: Mapping[str, object]) -> None:
        self.packages = tuple(packages)
        self.references = {id(target): name for name, target in references.items()}
        self.nodes: list[Any] = []
        self.numbers: dict[int, int] = {}
        # Keeps every numbered object alive, so that no two can have had the same id.
        self.seen: list[object] = []

    def value(self, value: Any, where: str) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if id(value) in self.references:
            return ["ref", self.references[id(value)]]
        if kind is tuple:
            return ["tuple", [self.value(x, f"{where}[{i}]") for i, x in enumerate(value)]]
        if kind is bytes:
            return ["bytes", _text(value)]
        if kind is range:
            return ["range", value.start, value.stop, value.step]
        if isinstance(value, np.generic):
            self._check_dtype(value.dtype, where)
            return ["scalar", value.dtype.str, _text(value.tobytes())]
        if isinstance(value, enum.Enum):
            return ["enum", self._class_name(kind, where), value.name]
        if kind in (set, frozenset):
            return [kind.__name__, self._sorted(value, where)]
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.nodes)
            self.seen.append(value)
            self.nodes.append(None)
            self.nodes[number] = self._node(value, where)
        return ["@", number]

    def _node(self, value: Any, where: str) -> list[Any]:
        kind = type(value)
        if kind is list:
            return ["list", [self.value(x, f"{where}[{i}]") for i, x in enumerate(value)]]
        if kind is deque:
            return ["deque", value.maxlen, [self.value(x, f"{where}[]") for x in value]]
        if kind is dict:
            return ["dict", self._pairs(value.items(), where)]
        if kind is np.ndarray:
            self._check_dtype(value.dtype, where)
            data = np.ascontiguousarray(value).tobytes()
            return ["array", value.dtype.str, list(value.shape), _text(data)]
        if kind is np.random.Generator:
            return ["generator", self.value(value.bit_generator.state, where)]
        name = self._class_name(kind, where)
        constructor: Any = kind.__new__
        if not hasattr(value, "__dict__") or constructor is not object.__new__:
            raise PackError(f"{where} is a {name}, which is more than a plain object")
        return ["object", name, self._pairs(sorted(vars(value).items()), where)]

    def _pairs(self, items: Iterable[tuple[Any, Any]], where: str) -> list[Any]:
        return [
            [self.value(key, f"key of {where}"), self.value(x, f"{where}.{key}")]
            for key, x in items
        ]

    def _sorted(self, items: Iterable[Any], where: str) -> list[Any]:
        """Members of a set in an order that depends on nothing but themselves."""
        before = len(self.nodes)
        members = [self.value(x, f"a member of {where}") for x in items]
        if len(self.nodes) > before or any(m[0] == "@" for m in members if isinstance(m, list)):
            raise PackError(f"{where} is a set of objects, whose order is not defined")
        return sorted(members, key=json.dumps)

    def _class_name(self, kind: type, where: str) -> str:
        if not kind.__module__.startswith(self.packages or "\0"):
            raise PackError(f"{where} is a {kind.__module__}.{kind.__qualname__}")
        return f"{kind.__module__}:{kind.__qualname__}"

    def _check_dtype(self, dtype: np.dtype[Any], where: str) -> None:
        if dtype.kind not in _ARRAY_KINDS:
            raise PackError(f"{where} is an array of dtype {dtype}")


class _Unpacker:
    """Reads one value; a node is built when it is first referred to."""

    def __init__(
        self, nodes: list[Any], packages: Sequence[str], references: Mapping[str, object]
    ) -> None:
        self.nodes = nodes
        self.packages = tuple(packages)
        self.references = references
        self.built: dict[int, Any] = {}

    def value(self, data: Any) -> Any:
        if not isinstance(data, list):
            if isinstance(data, dict):
                raise PackError("the data is malformed: a bare mapping")
            return data
        tag = data[0]
        if tag == "@":
            number = data[1]
            return self.built[number] if number in self.built else self._build(number)
        if tag == "ref":
            return self.references[data[1]]
        if tag == "tuple":
            return tuple(self.value(x) for x in data[1])
        if tag == "bytes":
            return _bytes(data[1])
        if tag == "range":
            return range(*data[1:4])
        if tag == "scalar":
            return np.frombuffer(_bytes(data[2]), self._dtype(data[1]))[0]
        if tag == "enum":
            return self._class(data[1], enum.Enum)[data[2]]  # type: ignore[index]
        if tag == "set":
            return {self.value(x) for x in data[1]}
        if tag == "frozenset":
            return frozenset(self.value(x) for x in data[1])
        raise PackError(f"the data is malformed: unknown tag {tag!r}")

    def _build(self, number: int) -> Any:
        node = self.nodes[number]
        tag = node[0]
        # A container is known by its number before it is filled: it may contain itself.
        if tag == "list":
            items: list[Any] = []
            self.built[number] = items
            items.extend(self.value(x) for x in node[1])
        elif tag == "deque":
            self.built[number] = queue = deque[Any](maxlen=node[1])
            queue.extend(self.value(x) for x in node[2])
        elif tag == "dict":
            self.built[number] = mapping = dict[Any, Any]()
            for key, x in node[1]:
                mapping[self.value(key)] = self.value(x)
        elif tag == "array":
            array = np.frombuffer(_bytes(node[3]), self._dtype(node[1])).reshape(node[2])
            self.built[number] = array.copy()
        elif tag == "generator":
            self.built[number] = generator_from_state(self.value(node[1]))
        elif tag == "object":
            instance: Any = object.__new__(self._class(node[1], object))
            self.built[number] = instance
            for key, x in node[2]:
                vars(instance)[self.value(key)] = self.value(x)
        else:
            raise PackError(f"the data is malformed: unknown node {tag!r}")
        return self.built[number]

    def _class(self, name: str, base: type) -> type:
        module_name, _, qualname = name.partition(":")
        if not module_name.startswith(self.packages or "\0"):
            raise PackError(f"objects of {name} are not allowed here")
        found: Any = sys.modules.get(module_name)
        for part in qualname.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or not issubclass(found, base):
            raise PackError(f"this process knows no class {name}")
        return found

    def _dtype(self, text: str) -> np.dtype[Any]:
        dtype = np.dtype(text)
        if dtype.kind not in _ARRAY_KINDS:
            raise PackError(f"arrays of dtype {dtype} are not allowed here")
        return dtype


def generator_from_state(state: Mapping[str, Any]) -> np.random.Generator:
    """A NumPy generator that continues from the state of its bit generator."""
    name = state["bit_generator"]
    if name not in _GENERATORS:
        raise PackError(f"unknown bit generator {name!r}")
    bit_generator = getattr(np.random, name)()
    bit_generator.state = state
    return np.random.Generator(bit_generator)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
