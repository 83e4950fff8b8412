"""What an installed wheel is: complete, under names of its own, and able to play away from here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from mpt_envs import registry
from mpt_envs.crafting.backends.minetest.install import why_missing
from tests.mpt_envs.navigation.r2r_data import write_house

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("mpt_envs", "mpt_train", "wrappers")


def tracked() -> list[str]:
    """Files of the project that git knows."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def build(source: Path, out: Path) -> Path:
    """A wheel, built without a network and without touching the checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files in a folder of their own: old builds lie beside those of a checkout."""
    folder = tmp_path_factory.mktemp("source")
    for name in tracked():
        if not name.startswith(("benchmarks/results/", "tests/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, tmp_path_factory.mktemp("wheel"))


def files_of(wheel: Path) -> set[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def test_a_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    wanted = {name for name in tracked() if name.split("/")[0] in PACKAGES}
    assert any(name.endswith(".lua") for name in wanted)
    assert files_of(wheel) == wanted


def test_a_source_distribution_gives_the_same_wheel(
    source: Path, wheel: Path, tmp_path: Path
) -> None:
    code = "import setuptools.build_meta as b, sys; b.build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    (folder,) = (tmp_path / "unpacked").iterdir()
    assert files_of(build(folder, tmp_path / "again")) == files_of(wheel)


# -- away from the checkout ------------------------------------------------------------------

PLAY = """
import sys
import mpt_envs
assert mpt_envs.__file__.startswith(sys.prefix), mpt_envs.__file__
for name in sys.argv[1:]:
    task, _, backend = name.partition("@")
    options = {"backend": backend} if backend else {}
    env = mpt_envs.make(task, max_turns=8, **options)
    env.reset(seed=1)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else env.action_space(agent).sample(info["action_mask"]))
    env.close()
    print(name, "played")
"""

GAMES = {
    "crafting": ["crafting/torch-v0", "crafting/torch-v0@minetest"],
    "navigation": ["navigation/floorplan-v0", "navigation/r2r-v0@connectivity"],
    "research": ["research/multihop-v0"],
}
"""Tasks and backends of every domain; those whose engine comes as a Python package are left out."""


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment that has the wheel, beside what the tests have installed."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--no-deps", "--no-index", "--no-compile", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (site,) = folder.glob("lib/python*/site-packages")
    # Of folders that are named in a .pth file the .pth files are not read: no editable install.
    others = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    # Root may write in spite of modes, but not into a folder that is a file.
    for package in PACKAGES:
        for path in [site / package, *(site / package).rglob("*")]:
            if path.is_dir():
                (path / "__pycache__").touch()
                path.chmod(0o555)
    return folder / "bin"


def run_installed(
    installed: Path, cwd: Path, program: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment, where there is no checkout and no home."""
    kept = ("PATH", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.run(
        [str(installed / program), *arguments],
        cwd=cwd,
        env={**environment, "HOME": os.devnull, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("arguments", [("tasks",), ("methods",), ("compare", "--help")])
def test_the_program_runs_from_a_wheel(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run_installed(installed, tmp_path, "mpt", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_domain_is_played_from_a_wheel() -> None:
    own = {spec.domain for spec in registry.values() if str(spec.task).startswith("mpt_envs.")}
    assert set(GAMES) == own


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("domain", GAMES)
def test_a_domain_and_its_backends_play_from_a_wheel(
    installed: Path, tmp_path: Path, domain: str
) -> None:
    """Also the data that only a backend reads. Nothing can be cached, which is said once."""
    games = [name for name in GAMES[domain] if "@minetest" not in name or why_missing() is None]
    houses = write_house(tmp_path / "houses")
    done = run_installed(
        installed, tmp_path, "python", "-c", PLAY, *games, MPT_R2R_DATA=str(houses)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} played" for name in games]
    assert done.stderr.count("cache of compiled functions is not used") == 1, done.stderr


# -- a namesake ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["package", "file", "folder"])
@pytest.mark.parametrize("package", ["mpt_envs", "mpt_train"])
def test_a_foreign_package_of_the_name_wrappers_is_refused(
    tmp_path: Path, package: str, kind: str
) -> None:
    foreign = tmp_path / ("wrappers.py" if kind == "file" else "wrappers")
    if kind != "file":
        foreign.mkdir()
    if kind != "folder":
        (foreign / "__init__.py" if kind == "package" else foreign).write_text("def wrap(): ...\n")
    # Without site-packages, and in this order: a folder without __init__.py gives way to a package.
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import wrappers; "
    code += f"sys.path.insert(1, {str(ROOT)!r}); import {package}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError"), last
    assert str(foreign) in last and "not the one of mpt-swarm" in last
