"""Where results come from: versions, machine, date, and the revision of the code."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("mpt-swarm", "numpy", "numba", "torch", "pettingzoo", "gymnasium", "matplotlib")


def provenance(command: str, jobs: int) -> dict[str, Any]:
    """What a reader needs to know to make the results again.

    Args:
        command: the command line.
        jobs: runs at once.
    """
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "revision": revision(),
        "python": platform.python_version(),
        "versions": versions(),
        "system": platform.system() + " " + platform.machine(),
        "processor": processor(),
        "jobs": jobs,
    }


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def processor() -> str:
    """Model of the processor, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def revision() -> str | None:
    """The commit that this code is at, with a plus where files differ; None outside of git.

    Outside is also what is installed in the folder of somebody's own repository.
    """
    file = Path(__file__).resolve()
    here = file.parent
    try:
        _git(here, "ls-files", "--error-unmatch", file.name)
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.strip()
