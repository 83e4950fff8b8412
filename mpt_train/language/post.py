"""One HTTP POST that ends in time, can be given up from another thread, and goes nowhere else.

A socket's own time-out bounds the wait for the next byte, not the request: a server that sends a
byte now and then holds a client for ever. Here the exchange runs in a thread of its own; whoever
waits for it waits until the deadline, and then cuts the connection. The threads are daemons: one
that hangs where nothing can be cut (in the lookup of a name) keeps no program from ending.

Redirects are not followed: the headers, a key among them, are meant for the host that was named.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple

_MAX_REFUSAL = 2000
"""What is read of a reply that is no success, in bytes."""


class Reply(NamedTuple):
    """What a server replied.

    Attributes:
        status: of HTTP.
        reason: the words beside it.
        location: where a redirect leads; "": nowhere.
        content: the body; of a reply that is no success only its beginning.
    """

    status: int
    reason: str
    location: str
    content: bytes


class GivenUp(Exception):
    """The exchange was given up by `Post.give_up`."""


class Post:
    """A POST that is sent once.

    Args:
        url: of scheme http or https.
        body: what is sent.
        headers: sent to this address only.
        largest: longer replies are refused, in bytes.
    """

    def __init__(self, url: str, body: bytes, headers: Mapping[str, str], largest: int) -> None:
        self._request = urllib.request.Request(url, body, dict(headers))
        self._largest = largest
        self._ended = threading.Event()
        self._outcome: Reply | BaseException | None = None
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._cut = False

    def send(self, timeout: float) -> Reply:
        """Send it and wait for the whole reply, whatever its status.

        Args:
            timeout: seconds for all of it: the lookup of the name, the connection, the reply.

        Raises:
            TimeoutError: there was no whole reply in time.
            GivenUp: another thread called `give_up`.
            OSError, http.client.HTTPException: the connection failed, or what came is not HTTP.
            ValueError: the reply is too long.
        """
        threading.Thread(
            target=self._exchange, args=(timeout,), name="endpoint-post", daemon=True
        ).start()
        self._ended.wait(timeout)
        outcome = self._outcome
        if outcome is None:
            self._close()
            raise TimeoutError(f"timed out after {timeout:g} seconds")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def give_up(self) -> None:
        """End the exchange now; `send` raises `GivenUp`, unless it has ended before."""
        self._end(GivenUp())
        self._close()

    def _end(self, outcome: Reply | BaseException) -> None:
        with self._lock:
            if self._outcome is None:
                self._outcome = outcome
        self._ended.set()

    def _close(self) -> None:
        with self._lock:
            self._cut = True
            if self._socket is not None:
                _shut(self._socket)

    def _connected(self, connection: socket.socket) -> None:
        """Remember what is to be cut; the connection's owner forgets it while the body is read."""
        with self._lock:
            self._socket = connection
            if self._cut:
                _shut(connection)

    def _exchange(self, timeout: float) -> None:
        opener = urllib.request.build_opener(
            _Http(self._connected), _Https(self._connected), _NoRedirects
        )
        try:
            try:
                with opener.open(self._request, timeout=timeout) as reply:
                    content = self._read(reply)
                    self._end(Reply(reply.status, str(reply.reason), "", content))
            except urllib.error.HTTPError as error:
                with error:
                    self._end(_refusal(error))
        except BaseException as error:  # raised where it is waited for
            self._end(error)

    def _read(self, reply: http.client.HTTPResponse) -> bytes:
        content: bytes = reply.read(self._largest + 1)
        if len(content) > self._largest:
            raise ValueError(f"the reply is longer than {self._largest} bytes")
        return content


def _refusal(error: urllib.error.HTTPError) -> Reply:
    """A reply that is no success; its body matters less than its status, and may be broken."""
    content = b""
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        content = error.read(_MAX_REFUSAL)
    location = error.headers.get("Location", "") if 300 <= error.code < 400 else ""
    return Reply(error.code, str(error.reason), str(location), content)


def _shut(connection: socket.socket) -> None:
    # Not `close`, which does not wake a thread that reads; and past the method of a TLS socket,
    # which would take it from under that thread.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect to be what it is: a status that is no success."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


_Connected = Callable[[socket.socket], None]


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connected: _Connected) -> None:
        super().__init__()
        self._connected = connected

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connected = self._connected

        class Connection(http.client.HTTPConnection):
            def connect(self) -> None:
                super().connect()
                connected(self.sock)

        return self.do_open(Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connected: _Connected) -> None:
        super().__init__()
        self._connected = connected

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connected = self._connected

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                connected(self.sock)

        return self.do_open(Connection, req)
