"""One headless server: started in a temporary folder, talked to over a socket, ended for good.

The world lives in memory. The server ends when its client's socket closes, so that no process is
left behind however the client ends. Everything that it writes lies in one folder, which goes with
it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from mpt_envs.crafting.backends.engine_errors import (
    EngineDiedError,
    EngineError,
    EngineMissingError,
)
from mpt_envs.crafting.backends.minetest.install import HOW_TO_GET, Installation, find_installation

#: Seed of the engine's map; every episode is a place of its own on this one map.
MAP_SEED: Final = 20231

_MOD: Final = Path(__file__).parent / "mod"
_START_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 120.0
_PORT_TRIES: Final = 5
_LOG_TAIL: Final = 1500
_PREFIX: Final = "mpt-mt-"
_OWNER_FILE: Final = "client.pid"

_WORLD: Final = """\
gameid = minetest
backend = dummy
player_backend = dummy
auth_backend = sqlite3
mod_storage_backend = dummy
"""

# Nothing by the wall clock: no day, no liquids that flow, no blocks that are active or unloaded.
_SETTINGS: Final = """\
fixed_map_seed = {seed}
mg_name = v7
mgv7_cave_width = 0.06
mg_flags = caves,nodungeons,nolight,decorations,biomes,ores
bind_address = 127.0.0.1
server_announce = false
secure.trusted_mods = mpt_body
mpt_socket = {socket}
dedicated_server_step = 0.01
time_speed = 0
num_emerge_threads = 1
liquid_update = 3600
active_block_range = 0
max_forceloaded_blocks = 0
server_unload_unused_data_timeout = 100000000
server_map_save_interval = 100000000
creative_mode = false
enable_damage = false
enable_rollback_recording = false
ipv6_server = false
max_users = 1
debug_log_level = warning
"""


class Server:
    """A running server.

    Args:
        installation: which engine; None finds it.
        port: UDP port that the engine opens on the loopback device (nobody joins); None takes a
            free one.

    Attributes:
        version: e.g. ``"5.6.1"``.
        process: the server's process.
        owner: id of the process that started it.

    Raises:
        EngineMissingError: the engine is not (all) there.
        EngineError: it does not start; the message ends with its last words.
    """

    def __init__(self, installation: Installation | None = None, port: int | None = None) -> None:
        self.installation = installation or find_installation()
        self.version = self.installation.version
        self.owner = os.getpid()
        self._busy = False
        _sweep(self.owner)
        with _disk_errors():
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._folder = folder
        try:
            with _disk_errors():
                self._lay_out()
            self.process, self._socket = self._start(port)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._reader = self._socket.makefile("rb")
        self._end = weakref.finalize(
            self, _end, self.process, self._socket, self._reader, folder, self.owner
        )

    # -- starting ----------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Write the world, the settings and the mod, and link the game."""
        folder = self._folder
        (folder / _OWNER_FILE).write_text(str(self.owner), encoding="utf-8")
        mod = folder / "world" / "worldmods" / "mpt_body"
        mod.mkdir(parents=True)
        for source in sorted(_MOD.iterdir()):
            if source.suffix in (".lua", ".conf"):
                (mod / source.name).write_bytes(source.read_bytes())
        (folder / "world" / "world.mt").write_text(_WORLD, encoding="utf-8")
        settings = _SETTINGS.format(seed=MAP_SEED, socket=folder / "s")
        (folder / "minetest.conf").write_text(settings, encoding="utf-8")
        games = folder / "user" / "games"
        games.mkdir(parents=True)
        (games / "minetest_game").symlink_to(self.installation.game, target_is_directory=True)

    def _start(self, port: int | None) -> tuple[subprocess.Popen[bytes], socket.socket]:
        for attempt in range(_PORT_TRIES):
            process = self._spawn(_free_port() if port is None or attempt else port)
            try:
                return process, self._connect(process)
            except _PortTakenError as error:
                _kill(process)
                if attempt + 1 == _PORT_TRIES:
                    raise EngineError(
                        f"Minetest found no free UDP port in {_PORT_TRIES} tries; end programs "
                        f"that hold many ports, and try again. {error}"
                    ) from None
            except BaseException:
                _kill(process)
                raise
        raise AssertionError("unreachable")

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        folder = self._folder
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "MINETEST_USER_PATH": str(folder / "user"),
            "LUANTI_USER_PATH": str(folder / "user"),
            "LANG": "C.UTF-8",
        }
        with _disk_errors(), open(folder / "out.txt", "wb") as output:
            return subprocess.Popen(
                [
                    str(self.installation.server),
                    "--world",
                    str(folder / "world"),
                    "--gameid",
                    "minetest",
                    "--config",
                    str(folder / "minetest.conf"),
                    "--logfile",
                    str(folder / "log.txt"),
                    "--port",
                    str(port),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                # Ctrl-C is for the client, which then ends the server.
                start_new_session=True,
            )

    def _connect(self, process: subprocess.Popen[bytes]) -> socket.socket:
        path = str(self._folder / "s")
        deadline = time.monotonic() + _START_SECONDS
        while True:
            client = socket.socket(socket.AF_UNIX)
            try:
                client.connect(path)
            except OSError as error:
                client.close()
                if "too long" in str(error):
                    raise EngineError(
                        f"the temporary folder's path is too long for a socket: {path}; set "
                        "TMPDIR to a shorter one"
                    ) from error
            else:
                client.settimeout(_ANSWER_SECONDS)
                return client
            if process.poll() is not None:
                raise self._not_started(process.returncode)
            if time.monotonic() > deadline:
                raise EngineError(
                    f"Minetest did not start within {_START_SECONDS:.0f} s; is the machine "
                    f"overloaded? Its last words:\n{self.last_words()}"
                )
            time.sleep(0.005)

    def _not_started(self, code: int) -> Exception:
        words = self.last_words()
        low = words.lower()
        if "MPT-NO-LUA-SOCKET" in words:
            return EngineMissingError(
                f"Minetest has no Lua library for sockets (package lua-socket). {HOW_TO_GET}"
            )
        if "failed to bind" in low or "address already in use" in low or "bind socket" in low:
            return _PortTakenError(words[-300:])
        if "no space left" in low:
            return EngineError(_full(self._folder))
        return EngineError(f"Minetest ended with code {code} at its start:\n{words}")

    # -- talking -----------------------------------------------------------------------------

    def ask(self, name: str, *words: int, blob: bytes = b"") -> tuple[bytes, bytes]:
        """Send one request and wait for the answer.

        Args:
            name: of the request, see ``mod/bridge.lua``.
            words: its numbers.
            blob: bytes that go with it.

        Returns:
            The answer's text and bytes.

        Raises:
            EngineDiedError: the server is gone.
            EngineError: the server says that something is wrong.
        """
        line = f"{name} {len(blob)} {' '.join(map(str, words))}\n".encode()
        self._busy = True
        try:
            self._socket.sendall(line + blob)
            head = self._reader.readline()
            if not head.endswith(b"\n"):
                raise EOFError
            word, text_size, blob_size = head.split()
            text = self._read(int(text_size))
            rest = self._read(int(blob_size))
        except (OSError, EOFError, ValueError) as error:
            raise self._died(name, error) from error
        self._busy = False
        if word != b"ok":
            raise EngineError(f"Minetest refused {name!r}: {text.decode(errors='replace')[:2000]}")
        return text, rest

    def _read(self, size: int) -> bytes:
        data = self._reader.read(size) if size else b""
        if len(data) < size:
            raise EOFError
        return data

    def _died(self, name: str, error: Exception) -> EngineDiedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        what = f"closed the connection at {name!r}"
        if isinstance(error, TimeoutError):
            what = f"did not answer {name!r} within {_ANSWER_SECONDS:.0f} s"
        words = self.obituary(what)
        self.close()
        return EngineDiedError(words)

    def obituary(self, what: str = "is gone") -> str:
        """How the server ended, and its last words."""
        code = self.process.poll()
        if code is not None:
            what = f"ended with code {code}"
            if code < 0:
                what = f"was ended by {signal.Signals(-code).name}"
        words = self.last_words()
        said = f" Its last words:\n{words}" if words else ""
        return f"the Minetest server {what}.{said}"

    @property
    def usable(self) -> bool:
        """Whether it is alive and every request was answered in full."""
        return self.alive and not self._busy

    @property
    def alive(self) -> bool:
        """Whether the process runs and belongs to this process (not to the one it was forked)."""
        return self._end.alive and os.getpid() == self.owner and self.process.poll() is None

    def last_words(self) -> str:
        """The end of what the server has written."""
        words = ""
        for name in ("out.txt", "log.txt"):
            with contextlib.suppress(OSError):
                words += (self._folder / name).read_text(errors="replace")[-_LOG_TAIL:]
            if words.strip():
                break
        return words.strip()

    def memory(self) -> float:
        """Resident memory of the process in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(row for row in status.splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def processor_seconds(self) -> float:
        """Processor time that the process has used."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the server and remove its folder; may be called twice."""
        self._end()


class _PortTakenError(EngineError):
    """The port was taken by another program between choosing and opening it."""


@lru_cache(maxsize=1)
def _sweep(_: int) -> None:
    """Remove, once in a process, the folders of clients that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            owner = int((folder / _OWNER_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


def _end(
    process: subprocess.Popen[bytes],
    connection: socket.socket,
    reader: object,
    folder: Path,
    owner: int,
) -> None:
    """End a server: nothing of its world is wanted any more."""
    with contextlib.suppress(OSError):
        reader.close()  # type: ignore[attr-defined]
    with contextlib.suppress(OSError):
        connection.close()
    if os.getpid() != owner:
        # A forked copy: the server belongs to the parent.
        return
    _kill(process)
    shutil.rmtree(folder, ignore_errors=True)


def _full(place: str | os.PathLike[str]) -> str:
    return (
        f"there is no space left for Minetest's files in {place} (it needs about 1 MiB for each "
        "server); free some, or set TMPDIR to another disk"
    )


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """Say clearly that a disk is full or cannot be written."""
    try:
        yield
    except OSError as error:
        place = tempfile.gettempdir()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise EngineError(_full(place)) from error
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise EngineError(
                f"cannot write Minetest's files: {error}; set TMPDIR to a folder that can be "
                "written"
            ) from error
        raise
