"""So many servers and no more: who plays has one, who waits is parked.

A task takes a server when it needs the engine and gives it back when it is closed or collected;
servers that were given back are kept for the next one. Where more tasks want to play at once than
there may be servers, the one that has waited longest is *parked*: its state is read out, which is
exact, and read in again when its turn comes. So a trainer can branch a hundred worlds on a machine
that holds thirty.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import Final, Protocol

from mpt_envs.crafting.backends.engine_errors import EngineError
from mpt_envs.crafting.backends.minetest.server import Server

LIMIT_VARIABLE: Final = "MPT_MINETEST_SERVERS"
DEFAULT_LIMIT: Final = 32
_KEPT_IDLE: Final = 4
_KEPT_STARTS: Final = 512  # of 80 kB each

Words = tuple[int, ...]
Start = tuple[Words, bytes]
"""Sizes and bytes of a state."""


class Holder(Protocol):
    """A task that plays on a server of a pool."""

    def park(self) -> bool:
        """Keep the state and let go of the server; False while in the middle of a request."""


class Pool:
    """Servers for tasks of one process.

    Args:
        limit: how many servers may run at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.owner = os.getpid()
        self._lock = threading.RLock()
        self._idle: list[Server] = []
        self._leases: OrderedDict[int, tuple[weakref.ref[Holder], Server]] = OrderedDict()
        self._watched: set[int] = set()
        self._starts: OrderedDict[Words, Start] = OrderedDict()

    def start(self, key: Words) -> Start | None:
        """How to bring a server to the start of an episode that was played before, or None."""
        with self._lock:
            if key in self._starts:
                self._starts.move_to_end(key)
            return self._starts.get(key)

    def remember(self, key: Words, start: Start) -> None:
        """Keep the start of an episode: to generate its land takes many times as long."""
        with self._lock:
            self._starts[key] = start
            while len(self._starts) > _KEPT_STARTS:
                self._starts.popitem(last=False)

    @property
    def running(self) -> int:
        """Servers in use and in reserve."""
        with self._lock:
            return len(self._idle) + len(self._leases)

    def acquire(self, holder: Holder) -> Server:
        """A server for a task, which is its own until `release` or `Holder.park`."""
        with self._lock:
            while True:
                while self._idle:
                    server = self._idle.pop()
                    if server.alive:
                        return self._lease(holder, server)
                    server.close()
                if len(self._leases) < self.limit:
                    return self._lease(holder, Server())
                self._make_room()

    def _lease(self, holder: Holder, server: Server) -> Server:
        key = id(holder)
        self._leases[key] = (weakref.ref(holder), server)
        if key not in self._watched:
            self._watched.add(key)
            weakref.finalize(holder, self._collected, key).atexit = False
        return server

    def _make_room(self) -> None:
        """Park the task that has waited longest."""
        for key, (reference, _) in list(self._leases.items()):
            holder = reference()
            if holder is None:
                self._collected(key)
                return
            if holder.park():
                return
        raise EngineError(
            f"all {self.limit} Minetest servers are in the middle of a request; set "
            f"{LIMIT_VARIABLE} to at least the number of threads that play at once"
        )

    def touch(self, holder: Holder) -> None:
        """The task has just played: it is parked last."""
        with self._lock:
            if id(holder) in self._leases:
                self._leases.move_to_end(id(holder))

    def release(self, holder: Holder, keep: bool = True) -> None:
        """A task needs its server no more; ``keep`` it for the next one or end it."""
        with self._lock:
            lease = self._leases.pop(id(holder), None)
            if lease is not None:
                self._put_back(lease[1], keep)

    def _collected(self, key: int) -> None:
        """A task is gone: the server that it had, if any, is free."""
        with self._lock:
            self._watched.discard(key)
            lease = self._leases.pop(key, None)
            if lease is not None:
                self._put_back(lease[1], True)

    def _put_back(self, server: Server, keep: bool) -> None:
        # A server in the middle of a request's answer is of no use to anyone.
        if keep and server.usable and len(self._idle) < _KEPT_IDLE:
            self._idle.append(server)
        else:
            server.close()

    def close(self) -> None:
        """End all servers; tasks that go on take new ones."""
        with self._lock:
            for server in self._idle:
                server.close()
            self._idle.clear()
            for _, server in self._leases.values():
                server.close()
            self._leases.clear()


_pools: dict[int, Pool] = {}


def shared_pool() -> Pool:
    """The pool of this process; a forked process has its own.

    Raises:
        EngineError: the environment variable that limits it is no number of servers.
    """
    pid = os.getpid()
    if pid not in _pools:
        _pools.clear()
        _pools[pid] = Pool(_limit())
    return _pools[pid]


def _limit() -> int:
    given = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT))
    if not given.isdecimal() or int(given) < 1:
        raise EngineError(f"{LIMIT_VARIABLE} must be a number of servers from 1 on, got {given!r}")
    return int(given)
