"""Payloads, the commands of a restore, and the digest of what can be seen."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mpt_envs.crafting.backends.minestudio.crafters import (
    clear_commands,
    replace_content,
    replace_slot,
)
from mpt_envs.crafting.backends.minestudio.geometry import Point, Spot
from mpt_envs.crafting.backends.minestudio.report import Stack
from mpt_envs.crafting.backends.minestudio.snapshots import (
    State,
    block_commands,
    body_command,
    furnace_commands,
    inventory_commands,
    pack,
    seen_differences,
    seen_digest,
    unpack,
)
from mpt_envs.crafting.rules.turn import begin
from mpt_envs.crafting.world import facts
from mpt_envs.crafting.world import layout as at

TABLE, FURNACE = Spot(4, 70, -9), Spot(5, 70, -9)


@pytest.fixture
def state() -> State:
    record = at.new_records(1)[0]
    s = record.view(np.int32)
    begin(s, record, record.view(np.uint64), 0, 100, np.uint64(7))
    s[at.INVENTORY + facts.I_STONE_PICKAXE] = 1
    s[at.WEAR + 1] = 40
    s[at.FURNACE_INPUT], s[at.FURNACE_INPUT_COUNT] = facts.I_IRON_ORE, 2
    s[at.FURNACE_OUTPUT], s[at.FURNACE_OUTPUT_COUNT] = facts.I_IRON_INGOT, 1
    s[at.FURNACE_BURN], s[at.FURNACE_PROGRESS] = 900, 33
    slots: list[Stack | None] = [None] * 36
    slots[3], slots[12] = Stack("stone_pickaxe", 1), Stack("birch_log", 7)
    return State(
        123456,
        Spot(-20, 55, -33),
        Point(4.5, 70.0, -8.25),
        -90.0,
        12.5,
        tuple(slots),
        TABLE,
        FURNACE,
        {TABLE: ("air", "crafting_table"), Spot(4, 69, -8): ("grass_block", "air")},
        record,
    )


def test_a_payload_holds_a_state(state: State) -> None:
    again = unpack(pack(state))
    assert again is not None
    assert replace(again, record=state.record) == state
    assert np.array_equal(again.record, state.record)
    assert pack(again) == pack(state)
    assert again.wear == (0, 40, 0)


def forged(state: State, **facts_: Any) -> bytes:
    """A payload with a right checksum and wrong facts."""
    payload = pack(state)
    (size,) = struct.unpack_from("<I", payload, 20)
    told = json.loads(payload[24 : 24 + size]) | facts_
    text = json.dumps(told).encode()
    body = b"MSTU" + struct.pack("<I", len(text)) + text + zlib.compress(state.record.tobytes())
    return hashlib.blake2b(body, digest_size=16).digest() + body


@pytest.mark.parametrize(
    "facts_",
    [
        {"changes": [[1, 2, 3, "air", "stone\n/op @a"]]},
        {"changes": [[1, 2.5, 3, "air", "stone"]]},
        {"changes": [[1, 2, 10**9, "air", "stone"]]},
        {"slots": [["dirt; /stop", 1], *[None] * 35]},
        {"slots": [["dirt", 65], *[None] * 35]},
        {"slots": [None] * 35},
        {"place": [0, 0]},
        {"place": ["1", "2", "3"]},
        {"view": [1e9, 0]},
        {"seed": -1},
        {"table": [1, 2]},
        {"origin": None},
    ],
)
def test_no_payload_runs_commands_of_its_own(state: State, facts_: dict[str, Any]) -> None:
    assert unpack(forged(state)) is not None
    assert unpack(forged(state, **facts_)) is None


def test_blocks_are_set_back_and_forth(state: State) -> None:
    here, there, both = Spot(1, 1, 1), Spot(2, 2, 2), Spot(3, 3, 3)
    wanted = {here: ("stone", "air"), both: ("dirt", "furnace")}
    current = {there: ("oak_log", "air"), both: ("dirt", "furnace")}
    assert block_commands(wanted, current) == [
        "/setblock 1 1 1 minecraft:air",
        "/setblock 2 2 2 minecraft:oak_log",
    ]
    assert block_commands(wanted, {}) == [
        "/setblock 1 1 1 minecraft:air",
        "/setblock 3 3 3 minecraft:furnace",
    ]
    assert len(block_commands(wanted, current, trust=False)) == 3
    assert block_commands({}, {there: ("oak_log", "oak_log")}) == []


def test_the_commands_of_inventory_furnace_and_body(state: State) -> None:
    assert inventory_commands(state) == [
        "/clear @p",
        "/replaceitem entity @p hotbar.3 minecraft:stone_pickaxe{Damage:40} 1",
        "/replaceitem entity @p inventory.3 minecraft:birch_log 7",
    ]
    assert furnace_commands(state) == [
        "/replaceitem block 5 70 -9 container.0 minecraft:iron_ore 2",
        "/replaceitem block 5 70 -9 container.1 minecraft:air",
        "/replaceitem block 5 70 -9 container.2 minecraft:iron_ingot 1",
        "/data merge block 5 70 -9 {BurnTime:900s,CookTime:33s,CookTimeTotal:200s}",
    ]
    assert furnace_commands(replace(state, furnace=None)) == []
    assert body_command(state) == "/tp @p 4.5000 70.0000 -8.2500 -90.000 12.500"
    assert replace_slot(8, None) == "/replaceitem entity @p hotbar.8 minecraft:air"
    assert replace_content(FURNACE, 0, "stone", 0).endswith("container.0 minecraft:air")


def test_clearing_takes_from_every_kind_of_wood() -> None:
    slots = (Stack("oak_log", 2), Stack("stick", 9), Stack("birch_log", 3), *[None] * 33)
    assert clear_commands(slots, facts.I_LOG, 4) == [
        "/clear @p minecraft:oak_log 2",
        "/clear @p minecraft:birch_log 2",
    ]
    assert clear_commands(slots, facts.I_LOG, 1) == ["/clear @p minecraft:oak_log 1"]


def test_the_digest_sees_place_things_and_solid_blocks(state: State) -> None:
    digest = seen_digest(state.record, state.origin)
    assert seen_differences(state.record, state.origin, state.record, state.origin) == []

    def differ(origin: Spot = state.origin, **cells: Any) -> list[str]:
        other = state.record.copy()
        s = other.view(np.int32)
        x, y, z = (int(v) for v in s[at.X : at.X + 3])
        if "below" in cells:
            at.blocks(other)[x, z, y - 1] = cells["below"]
        if "side" in cells:
            at.blocks(other)[x, z + 2, y] = cells["side"]
        if "sticks" in cells:
            s[at.INVENTORY + facts.I_STICK] += cells["sticks"]
        found = seen_differences(state.record, state.origin, other, origin)
        assert (seen_digest(other, origin) == digest) == (not found)
        return found

    assert differ(side=facts.FURNACE) == [f"1 of {17 * 17 * 7} blocks close by"]
    assert differ(sticks=2) == ["stick: 2 instead of 0"]
    assert "the body is at" in differ(origin=state.origin.moved(0, 0, 1))[0]
    # Leaves fall, water flows, and flowers come and go.
    assert differ(side=facts.LEAVES) == differ(side=facts.WATER) == []
