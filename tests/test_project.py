"""The project's own rules: style, types, direction of imports, and what a file may contain."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wrappers.errors import how_to_install

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("wrappers", "mpt_envs", "mpt_train", "benchmarks")
MODULES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
# Assembled from parts, so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:" + "|".join(["work", "root", "tmp"]) + r")/")
HOSTS = re.compile(
    "|".join(
        re.escape(host).replace("@", r"\.")
        for host in (
            "pypi@org",
            "pythonhosted@org",
            "npmjs@org",
            "deb@debian@org",
            "pytorch@org/whl",
        )
    )
)
TEXT_SUFFIXES = {".css", ".html", ".json", ".jsonl", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"}


def run_tool(name: str, *args: str) -> None:
    """Run a tool of the environment that runs the tests; fail with what it printed."""
    program = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert program is not None, f"{name} is not installed: pip install -e '.[test]'"
    done = subprocess.run([program, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} {' '.join(args)}\n{done.stdout}{done.stderr}"


def tracked_files() -> list[Path]:
    """Files that git knows; all of a source distribution where there is no repository."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def test_ruff_check() -> None:
    run_tool("ruff", "check", ".")


def test_ruff_format() -> None:
    run_tool("ruff", "format", "--check", ".")


def test_imports_go_one_way() -> None:
    run_tool("lint-imports", "--no-cache")


def test_every_domain_is_under_the_import_rules() -> None:
    """The linter's lists name every sub-package of mpt_envs that is a domain."""
    domains = {
        f"mpt_envs.{path.parent.name}"
        for path in (ROOT / "mpt_envs").glob("*/__init__.py")
        if path.parent.name != "testing"
    }
    configured = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for id, key in (  # noqa: A001
        ("no-domain-by-name", "forbidden_modules"),
        ("domains-know-no-registry", "source_modules"),
    ):
        block = configured.split(f'id = "{id}"')[1].split("[[")[0]
        names = re.search(rf"^{key} = \[(.*?)\]", block, re.DOTALL | re.MULTILINE)
        assert names is not None
        assert domains == set(re.findall(r'"(.+?)"', names[1])), f"{key} of {id!r}"


def test_types() -> None:
    run_tool("mypy")


def test_no_file_names_this_machine_or_a_registry() -> None:
    found = []
    for path in tracked_files():
        if path.suffix not in TEXT_SUFFIXES and path.name not in ("Makefile", "run"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if MACHINE_PATHS.search(line) or HOSTS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "a path of a machine or the host of a registry:\n" + "\n".join(found)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_opens_with_a_docstring(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path.relative_to(ROOT)} must say at its top what it holds"


def test_messages_tell_how_to_install_an_extra_that_exists() -> None:
    """Both ways, the one with the tested versions first; only one place knows the words."""
    configured = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = configured.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", block, re.MULTILINE))
    sources = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in MODULES}
    named = {
        x for text in sources.values() for x in re.findall(r"how_to_install\([\"'](\w+)", text)
    }
    assert named and named <= extras
    # MineStudio lives in an environment of its own, which the tested versions do not fit.
    own = {"wrappers/errors.py", "mpt_envs/crafting/backends/minestudio/install.py"}
    assert {name for name, text in sources.items() if "mpt-swarm[" in text} == own
    told = how_to_install("llm")
    assert told.index("-c constraints.txt -e '.[llm]'") < told.index("'mpt-swarm[llm]'")


def test_every_package_is_typed() -> None:
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file(), f"{package}/py.typed is missing"


def test_import_of_the_environments_is_light() -> None:
    """`import mpt_envs` loads neither a trainer nor torch nor a domain."""
    code = "import sys, mpt_envs; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"torch", "matplotlib", "PIL", "mpt_train", "benchmarks", "mpt_envs.crafting"}
    assert heavy.isdisjoint(loaded), f"import mpt_envs loads {heavy & set(loaded)}"
