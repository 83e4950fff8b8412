"""The server's process: it is started, watched and ended; nothing is left, nothing is lost."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mpt_envs
from mpt_envs.crafting.backends.engine_errors import EngineDiedError, EngineError
from mpt_envs.crafting.backends.minetest import make_task
from mpt_envs.crafting.backends.minetest.pool import Pool, shared_pool
from mpt_envs.crafting.backends.minetest.server import Server, _sweep
from mpt_envs.crafting.backends.minetest.task import MinetestTask
from tests.mpt_envs.crafting.minetest.play import do, expert_move
from wrappers.errors import PhaseError, SnapshotError
from wrappers.task import Snapshot
from wrappers.vector import VectorGame

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(2)
    yield pool
    pool.close()


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process that is no child of ours ends in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def played(task: MinetestTask, seed: int, turns: int) -> MinetestTask:
    task.reset(seed)
    for _ in range(turns):
        do(task, expert_move(task))
    return task


def test_no_server_outlives_a_killed_client() -> None:
    code = (
        "from mpt_envs.crafting.backends.minetest import make_task\n"
        "task = make_task(); task.reset(0)\n"
        "server = task.server\n"
        "print(server.process.pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        os.kill(pid, 0)
        child.send_signal(signal.SIGKILL)
    assert gone(pid), "the server goes on without its client"


def test_folders_of_killed_clients_are_removed() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left = Path(tempfile.mkdtemp(prefix="mpt-mt-"))
    (left / "client.pid").write_text(str(ended.pid))
    ours = Server()
    _sweep.cache_clear()
    other = Server()
    assert not left.exists() and ours._folder.exists()
    ours.close()
    other.close()


def test_close_and_collection_end_servers(pool: Pool) -> None:
    task = MinetestTask(pool=pool)
    task.reset(0)
    assert pool.running == 1
    task.close()
    task.close()
    assert pool.running == 1  # kept for the next one
    MinetestTask(pool=pool).reset(1)
    gc.collect()
    assert pool.running == 1
    server = pool._idle[0]
    pid, folder = server.process.pid, server._folder
    assert folder.is_dir()
    pool.close()
    assert gone(pid) and not folder.exists()


def kill(task: MinetestTask) -> None:
    server = task._server
    assert server is not None
    os.kill(server.process.pid, signal.SIGKILL)
    assert gone(server.process.pid)


def test_a_dead_server_is_replaced_and_nothing_is_lost(pool: Pool) -> None:
    plain = played(MinetestTask(pool=pool), 0, 30)
    task = played(MinetestTask(pool=pool), 0, 12)
    for turn in range(18):
        if turn in (0, 7):
            kill(task)
            with pytest.warns(RuntimeWarning, match="new server takes its place"):
                do(task, expert_move(task))
        else:
            do(task, expert_move(task))
    assert task.snapshot() == plain.snapshot()
    kill(task)
    with pytest.warns(RuntimeWarning, match="new server takes its place"):
        task.reset(0)


def test_a_stopped_server_says_how_it_ended() -> None:
    server = Server()
    server.process.send_signal(signal.SIGKILL)
    with pytest.raises(EngineDiedError, match="SIGKILL"):
        server.ask("hello")
    assert not server.alive and not server._folder.exists()


def test_training_goes_on_when_a_server_dies() -> None:
    game = mpt_envs.make("crafting/crafting-table-v0", backend="minetest", api="vector", num_envs=2)
    assert isinstance(game, VectorGame)

    def play(die: bool) -> list[float]:
        game.reset([1, 2])
        rewards = []
        for turn in range(6):
            if die and turn == 2:
                for env in game.envs:
                    kill(env.task)
            bids, actions = game.expert()
            levels = np.round(bids * 10).astype(np.int64)
            winners = game.auction(levels).winners
            result = game.act(actions[np.arange(2), np.maximum(winners, 0)])
            rewards += result.rewards.tolist()
        return rewards

    plain = play(False)
    assert sum(plain) >= 12
    with pytest.warns(RuntimeWarning, match="new server takes its place"):
        assert play(True) == plain
    game.close()


def test_more_tasks_than_servers(pool: Pool) -> None:
    """Those that wait are parked, exactly."""
    tasks = [MinetestTask(pool=pool) for _ in range(5)]
    alone = []
    for seed in range(5):
        played(tasks[0], seed, 10)
        alone.append(tasks[0].snapshot())
    for seed, task in enumerate(tasks):
        task.reset(seed)
    for _ in range(10):
        for task in tasks:
            do(task, expert_move(task))
        assert pool.running <= 2
    assert [task.snapshot() for task in tasks] == alone


_AS_SOMEONE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from mpt_envs.crafting.backends.minetest.server import Server
server = Server()
print(os.getuid(), server.ask("hello")[0].decode())
server.close()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="then all other tests run as a normal user")
def test_a_normal_user_can_run_it() -> None:
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("there is no Python here that everyone may run")
    # The server's client needs nothing but the standard library: a copy that anyone may read.
    with tempfile.TemporaryDirectory() as copy_folder:
        folder = Path(copy_folder)
        shutil.copytree(ROOT / "wrappers", folder / "wrappers")
        room, package = Path("mpt_envs", "crafting", "backends"), folder / "mpt_envs"
        shutil.copytree(ROOT / room / "minetest", folder / room / "minetest")
        shutil.copy(ROOT / room / "engine_errors.py", folder / room)
        for inner in (package, package / "crafting", folder / room):
            (inner / "__init__.py").touch()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        home = folder / "home"
        home.mkdir(mode=0o777)
        home.chmod(0o777)
        done = subprocess.run(
            [python, "-B", "-c", _AS_SOMEONE, folder],
            capture_output=True,
            text=True,
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)},
            user=65534,
            group=65534,
            extra_groups=[],
            check=False,
        )
    assert done.stdout.startswith("65534 "), done.stderr[-2000:]


def test_a_taken_port_is_left_alone() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        server = Server(port=other.getsockname()[1])
        assert server.ask("hello")[0].startswith((b"Minetest", b"Luanti"))
        server.close()


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    before = set(Path(tempfile.gettempdir()).glob("mpt-mt-*"))
    with pytest.raises(EngineError, match=r"no space left.*TMPDIR"):
        Server()
    assert set(Path(tempfile.gettempdir()).glob("mpt-mt-*")) <= before


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/nowhere")

    monkeypatch.setattr(tempfile, "mkdtemp", denied)
    with pytest.raises(EngineError, match=r"cannot write.*TMPDIR"):
        Server()


def test_a_forked_process_takes_a_server_of_its_own() -> None:
    task = played(make_task(), 0, 5)
    before = task.snapshot()
    server = task.server
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            do(task, ("logger_0", 0))
            task.restore(before)
            own = task.server
            fine = task.snapshot() == before and own.process.pid != server.process.pid
            code = 0 if fine else 2
            shared_pool().close()
            os.write(write, b"done")
        finally:
            os._exit(code)
    assert os.read(read, 4) == b"done"
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert task.snapshot() == before and task.server is server
    os.close(read)
    os.close(write)


def test_copies_are_independent(pool: Pool) -> None:
    task = played(MinetestTask("torch", pool=pool), 0, 6)
    state = task.snapshot()
    for twin in (task.clone(), pickle.loads(pickle.dumps(task)), copy.deepcopy(task)):
        assert twin.snapshot() == state
        do(twin, expert_move(twin))
        assert twin.snapshot() != state and task.snapshot() == state
        twin.close()


def test_before_a_reset_it_says_so() -> None:
    task = make_task()
    with pytest.raises(PhaseError, match="call reset"):
        task.snapshot()
    assert pickle.loads(pickle.dumps(task)).goal == "iron-pickaxe"


def test_snapshots_that_do_not_fit_are_refused() -> None:
    task = played(make_task(), 0, 3)
    good = task.snapshot()
    embedded = mpt_envs.make_task("crafting/iron-pickaxe-v0")
    embedded.reset(0)
    changed = good.payload[:5000] + b"x" + good.payload[5001:]
    for bad, why in (
        (embedded.snapshot(), "layout version"),
        (Snapshot(good.task_id, good.version, good.payload[:-1]), "no valid state"),
        (Snapshot(good.task_id, good.version, b""), "no valid state"),
        (Snapshot(good.task_id, good.version, changed), "no valid state"),
        (Snapshot("crafting/torch-v0", good.version, good.payload), "cannot be restored into"),
    ):
        with pytest.raises(SnapshotError, match=why):
            task.restore(bad)
        assert task.snapshot() == good
    with pytest.raises(SnapshotError, match="expected a Snapshot"):
        task.restore("something")  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="layout version"):
        embedded.restore(good)
