"""`MinetestTask`: one world of the crafting domain in a Minetest server, as a turn task."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from mpt_envs.crafting.backends.engine_errors import EngineDiedError, EngineError
from mpt_envs.crafting.backends.engine_task import EngineTask
from mpt_envs.crafting.backends.minetest.install import find_installation
from mpt_envs.crafting.backends.minetest.pool import Pool, shared_pool
from mpt_envs.crafting.backends.minetest.record import USED_INTS, write_report, write_world
from mpt_envs.crafting.backends.minetest.server import Server
from mpt_envs.crafting.backends.minetest.snapshots import (
    PAYLOAD_VERSION,
    State,
    check_snapshot,
    pack,
)
from mpt_envs.crafting.rules.turn import get_key, set_key
from mpt_envs.crafting.world import layout as at
from wrappers.errors import PhaseError, SnapshotError
from wrappers.rng import as_key, episode_key, hash4
from wrappers.task import Snapshot

#: Game ticks of an episode, by goal: by the rule of the embedded world's (`goals.Goal`), for the
#: expert on 300 worlds of this engine, whose tools dig at other speeds. (The 92nd percentile is
#: that of the worlds that it solves within its turns.)
TICK_BUDGETS: Final = {
    "iron-pickaxe": 4900,
    "stone-pickaxe": 700,
    "wooden-pickaxe": 300,
    "crafting-table": 150,
    "furnace": 1000,
    "torch": 2850,
    "stone-bricks": 3300,
}

STREAM_PLACE: Final = 1100  # which chunks of the map an episode may take place in
STREAM_DICE: Final = 1101  # seed of the engine's dice in a turn

_PLACES: Final = 200  # chunks that are tried before an episode is given up
_RADIUS: Final = 180  # of the places, in pairs of chunks
# Whether a server reads a state that it was given back and compares: what came from outside of this
# process is proved, what was read here needs no proof.
_PROVE, _TRUSTED = 1, 0


class MinetestTask(EngineTask):
    """One goal of the crafting domain in a real voxel engine.

    Roles, actions, observation, reward, text and pictures are those of
    `mpt_envs.crafting.task.CraftingTask`, which reads them from a record; here the record says what
    the engine has reported. What an action does is the engine's affair.

    The server is taken at the first reset or restore. If it dies, another one is brought to the
    same state (the last snapshot or start of an episode, then the turns since) with a warning.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        tick_budget: game ticks of an episode; None takes the goal's of `TICK_BUDGETS`.
        pool: where servers come from; None: the process's own.

    Raises:
        EngineMissingError: there is no Minetest here, or not all of it.
    """

    snapshot_version = PAYLOAD_VERSION
    tick_budgets = TICK_BUDGETS

    def __init__(
        self,
        goal: str = "iron-pickaxe",
        *,
        tick_budget: int | None = None,
        pool: Pool | None = None,
    ) -> None:
        self._engine_version = find_installation().version
        super().__init__(goal, tick_budget)
        self._given_pool = pool
        self._lock = threading.RLock()
        self._server: Server | None = None
        #: How to get to the present state in a new server: a request, then turns.
        self._base: tuple[str, tuple[int, ...], bytes] | None = None
        self._journal: list[tuple[int, int, int]] = []
        self._taken: Snapshot | None = None

    # -- the engine --------------------------------------------------------------------------

    @property
    def _pool(self) -> Pool:
        return self._given_pool or shared_pool()

    def _own(self) -> Server | None:
        """The task's server, if it is there and alive; one that died is told and let go."""
        server = self._server
        if server is None or server.alive:
            return server
        if server.owner == os.getpid():
            self._warn(server.obituary())
        self._let_go(keep=False)
        return None

    def _warn(self, what: str) -> None:
        warnings.warn(
            f"{what}\nA new server takes its place and goes on where it was.",
            RuntimeWarning,
            stacklevel=6,
        )

    @property
    def server(self) -> Server:
        """The task's server, in the present state; taken if need be."""
        server = self._own()
        if server is not None:
            self._pool.touch(self)
            return server
        if self._base is None:
            raise PhaseError(f"call reset() before playing {self.task_id} in Minetest")
        server = self._pool.acquire(self)
        self._server = server
        name, words, blob = self._base
        server.ask(name, *words, blob=blob)
        for turn in self._journal:
            server.ask("turn", *turn)
        return server

    def _let_go(self, keep: bool) -> None:
        if self._server is not None:
            self._pool.release(self, keep)
            self._server = None

    def _ask(self, name: str, *words: int, blob: bytes = b"") -> tuple[bytes, bytes]:
        """A request to a server in the present state; a server that dies is replaced once."""
        try:
            return self.server.ask(name, *words, blob=blob)
        except EngineDiedError as error:
            self._let_go(keep=False)
            self._warn(str(error))
        except EngineError:
            # It stopped in the middle of something: nobody may play on there.
            self._let_go(keep=False)
            raise
        return self.server.ask(name, *words, blob=blob)

    def _start(self, name: str, words: tuple[int, ...], blob: bytes) -> tuple[bytes, bytes]:
        """Begin an episode or become a snapshot, in the task's server or in a new one."""
        before = self._base, self._journal
        self._base, self._journal = (name, words, blob), []
        server = self._own()
        try:
            if server is not None:
                self._pool.touch(self)
                try:
                    return server.ask(name, *words, blob=blob)
                except EngineDiedError as error:
                    self._let_go(keep=False)
                    self._warn(str(error))
            server = self._server = self._pool.acquire(self)
            return server.ask(name, *words, blob=blob)
        except EngineError:
            self._base, self._journal = before
            # What the server holds now is not this task's state.
            self._let_go(keep=False)
            raise

    def park(self) -> bool:
        """Read the state out and give the server to someone else; see `pool.Holder`."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._own() is not None and self._journal:
                try:
                    self._read_base()
                except EngineDiedError:
                    self._let_go(keep=False)
                    return True
            self._let_go(keep=True)
            return True
        finally:
            self._lock.release()

    def _read_base(self) -> None:
        """Make the present state the one from which a new server would start."""
        text, blob = self._ask("read")
        words = (_TRUSTED, *(int(word) for word in text.split()))
        self._base, self._journal = ("write", words, blob), []

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Draw a place in the engine's landscape. There are no options.

        Raises:
            EngineError: the server cannot be started, or dies again and again.
        """
        key = episode_key(seed, episode)
        words = [hash4(key, np.uint64(i), STREAM_PLACE, 0) for i in range(2 * _PLACES)]
        # Even numbers: no two places are neighbours.
        chunks = tuple(2 * (int(word) % (2 * _RADIUS + 1) - _RADIUS) for word in words)
        with self._lock:
            known = self._pool.start(chunks)
            if known is None:
                text, blob = self._start("begin", chunks, b"")
                self._read_base()
                assert self._base is not None
                self._pool.remember(chunks, self._base[1:])
            else:
                text, blob = self._start("write", *known)
            self._fill(key, PAYLOAD_VERSION)
            write_world(self.record, blob)
            write_report(self.record, text)
            self._changed()

    def _changed(self) -> None:
        self.changed()
        self._taken = None

    def _turn(self, role: int, action: int) -> int:
        s = self._s
        tick, seen = int(s[at.TICK]), int(s[at.SEEN])
        dice = int(hash4(np.uint64(get_key(s)), np.uint64(s[at.TURN]), STREAM_DICE, 0)) & 0x7FFFFFFF
        with self._lock:
            text, _ = self._ask("turn", role, action, dice)
            self._journal.append((role, action, dice))
        outcome = write_report(self.record, text)
        self._taken = None
        return self._finish(role, action, outcome, tick, seen)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        with self._lock:
            if self._taken is None:
                self._read_base()
                assert self._base is not None
                _, words, blob = self._base
                state = State(
                    self._engine_version, self._s[:USED_INTS].copy(), (words[1], words[2]), blob
                )
                payload = pack(state)
                self._taken = Snapshot(self.task_id, PAYLOAD_VERSION, payload, "exact").verify()
            return self._taken

    def restore(self, snapshot: Snapshot) -> None:
        state = check_snapshot(snapshot, self._goal, self._engine_version)
        trust = _TRUSTED if snapshot.verified else _PROVE
        with self._lock:
            try:
                text, blob = self._start("write", (trust, *state.sizes), state.blob)
            except EngineDiedError:
                raise
            except EngineError as error:
                raise SnapshotError(
                    f"Minetest cannot take this snapshot of {self.task_id!r}: {error}"
                ) from error
            self.record[:] = 0
            write_world(self.record, blob)
            self._s[:USED_INTS] = state.scalars
            write_report(self.record, text)
            self._changed()
            self._taken = snapshot.verify()

    def reseed(self, key: int) -> None:
        set_key(self._s, as_key(key))
        self._taken = None

    @property
    def _begun(self) -> bool:
        return self._base is not None

    def clone(self) -> EngineTask:
        twin = type(self)(self.goal, tick_budget=self._budget, pool=self._given_pool)
        if self._begun:
            twin.restore(self.snapshot())
        return twin

    def close(self) -> None:
        """Give the server back. The task can go on: it then takes another one."""
        with self._lock:
            self._let_go(keep=True)
