"""Speed, as ratios within one run: ``python -m benchmarks.speed`` (or ``make speed``).

What is measured, and against what:

* AEC stepping (``last`` and ``step``, no policy) of the task, against an AEC environment with empty
  rules and against PettingZoo's raw connect_four;
* vector stepping of 1,024 worlds on one core with random bids and random legal actions;
  observations, masks, drawing and resets of finished worlds all count; and the same without the
  time of resets;
* a snapshot and its restore, against ``copy.deepcopy`` of the environment;
* a search of deep research over 20,000 documents;
* training: the share of time inside torch's operators, and turns a second of the loop's collection
  against TorchRL's collector with the same networks on the same environment.

Measurements are interleaved in rounds; ratios are medians over rounds of ratios within a round.
Times are processor time of one thread on one core.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from benchmarks.noop import BareAEC
from benchmarks.speed_envs import (
    VectorPlay,
    VectorRates,
    aec_rate,
    connect_four,
    deepcopy_time,
    noop_like,
    random_script,
    reset_time,
    search_time,
    snapshot_time,
    states_of,
)
from benchmarks.timing import Measure, Measured, interleave, one_core, ratio
from mpt_train.comparison.domains import domain_name
from mpt_train.comparison.provenance import provenance
from mpt_train.comparison.results import write_numbers
from mpt_train.comparison.tables import Table, plain
from wrappers.errors import how_to_install

Part = Literal["aec", "vector", "snapshot", "search", "training"]
PARTS: tuple[Part, ...] = ("aec", "vector", "snapshot", "search", "training")
GOALS = {
    "crafting": {"vector": 300_000.0, "snapshot": 15.0, "snapshot/deepcopy": 0.05},
    "navigation": {"vector/stepping": 200_000.0, "snapshot": 50.0},
    "research": {"snapshot": 200.0},
}
"""What the domains are to reach where they differ, by the names of `Ratio`."""


@dataclass(frozen=True)
class SpeedConfig:
    """Measure the speed of the environments and of training, as ratios."""

    task: str = "crafting/iron-pickaxe-v0"
    """Environment id."""
    parts: tuple[Part, ...] = PARTS
    """What to measure."""
    method: str = "mpt-plus"
    """Method whose training is measured."""
    rounds: int = 7
    """Interleaved repetitions."""
    worlds: int = 1024
    """Worlds of the vector view."""
    size: float = 1.0
    """Length of each measurement; below 1 for a rough look."""
    out: Path | None = None
    """JSON file for the numbers."""


@dataclass(frozen=True)
class Ratio:
    """One line of the result.

    Attributes:
        name: unique.
        what: in words.
        value: the number.
        unit: "" for a ratio.
        target: what it should be; None: informative only.
        direction: whether the value should be "at least" or "at most" the target.
    """

    name: str
    what: str
    value: float
    unit: str = ""
    target: float | None = None
    direction: Literal["at least", "at most"] = "at least"

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        if self.direction == "at least":
            return self.value >= self.target
        return self.value <= self.target


@dataclass(frozen=True)
class Speed:
    """Everything that was measured.

    Attributes:
        ratios: the lines of the table.
        measured: raw measurements by name.
        notes: what is missing and why.
    """

    ratios: tuple[Ratio, ...]
    measured: dict[str, Measured]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Ratio:
        for found in self.ratios:
            if found.name == name:
                return found
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "ratios": [{**dataclasses.asdict(r), "holds": r.holds} for r in self.ratios],
            "measured": {
                name: {"median": m.median, **dataclasses.asdict(m)}
                for name, m in self.measured.items()
            },
            "notes": list(self.notes),
        }


def measure_speed(config: SpeedConfig) -> Speed:
    """Measure; the numbers of one call belong together."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_core() as pinned, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notes = [] if pinned else ["This system does not let a process keep to one core."]
            return _measure(config, notes)
    finally:
        torch.set_num_threads(threads)


def _measure(config: SpeedConfig, notes: list[str]) -> Speed:
    measures: dict[str, Measure] = {}
    units: dict[str, str] = {}

    def add(name: str, unit: str, measure: Measure) -> None:
        measures[name], units[name] = measure, unit

    if {"aec", "snapshot"} & set(config.parts):
        _prepare_aec(config, add, notes)
    if "vector" in config.parts:
        from mpt_envs import make

        game = make(config.task, api="vector", num_envs=config.worlds)
        steps = max(10, round(2 * game.max_turns * config.size))
        rates = VectorRates(VectorPlay(game), steps)
        add("vector", "turns/s", rates.everything)
        add("vector/stepping", "turns/s", rates.stepping)
    if "search" in config.parts and domain_name(config.task) == "research":
        add("search", "us", search_time())
    collector = None
    if "training" in config.parts:
        collector = _prepare_training(config, add, notes)
    values = interleave(measures, config.rounds)
    if collector is not None:
        collector.close()
    measured = {name: Measured(units[name], found) for name, found in values.items()}
    ratios = _ratios(config, measured)
    if "training" in config.parts:
        ratios += _kernel_ratios(config)
    return Speed(tuple(ratios), measured, tuple(notes))


def _prepare_aec(config: SpeedConfig, add: Any, notes: list[str]) -> None:
    from mpt_envs import make

    env = make(config.task)
    script = random_script(env, max(1, round(12 * config.size)))
    if "aec" in config.parts:
        steps = round(40_000 * config.size)
        noop = noop_like(env)
        bare = BareAEC(len(env.possible_agents))
        add("aec", "steps/s", aec_rate(env, script))
        add("noop", "steps/s", aec_rate(noop, random_script(noop, 1, max_steps=steps)))
        add("bare", "steps/s", aec_rate(bare, random_script(bare, 1, max_steps=steps)))
        add("reset", "us", reset_time(env, script))
        four = connect_four()
        if four is None:
            notes.append("connect_four is left out: it needs pygame (pip install pygame-ce).")
        else:
            games = max(2, round(100 * config.size))
            add("connect_four", "steps/s", aec_rate(four, random_script(four, games)))
    if "snapshot" in config.parts:
        states = states_of(env, script, every=12)
        loops = max(2, round(40 * config.size))
        add("snapshot", "us", snapshot_time(env, states, loops))
        add("deepcopy", "us", deepcopy_time(env, states))


def _prepare_training(config: SpeedConfig, add: Any, notes: list[str]) -> Any | None:
    from benchmarks.speed_training import our_rate

    run = _run_config(config)
    add("collection", "turns/s", our_rate(run, max(1, round(8 * config.size))))
    if importlib.util.find_spec("torchrl") is None:
        notes.append(f"TorchRL is left out, as it is not installed: {how_to_install('interop')}.")
        return None
    from benchmarks.torchrl_collector import Fastest, TorchRLCollection

    frames = max(64, round(640 * config.size))
    fastest = Fastest((TorchRLCollection(run, 1, frames // 2), TorchRLCollection(run, 16, frames)))
    add("torchrl", "turns/s", fastest.measure)
    return fastest


def _run_config(config: SpeedConfig) -> Any:
    from mpt_train.methods import method_config

    return method_config(config.method, task=config.task)


def _ratios(config: SpeedConfig, measured: dict[str, Measured]) -> list[Ratio]:
    found = []
    goals = GOALS.get(domain_name(config.task), {})

    def both(*names: str) -> bool:
        return all(name in measured for name in names)

    if both("aec", "noop"):
        found.append(
            Ratio(
                "aec/noop",
                "AEC stepping by that of an environment with empty rules",
                ratio(measured["aec"], measured["noop"]),
                target=0.08,
            )
        )
    if both("aec", "connect_four"):
        found.append(
            Ratio(
                "aec/connect_four",
                "AEC stepping by that of PettingZoo's raw connect_four",
                ratio(measured["aec"], measured["connect_four"]),
                target=1.0,
            )
        )
    if both("aec", "bare"):
        found.append(
            Ratio(
                "aec/bare",
                "AEC stepping by that of two empty methods (no bookkeeping)",
                ratio(measured["aec"], measured["bare"]),
            )
        )
    if "vector" in measured:
        found.append(
            Ratio(
                "vector",
                f"vector stepping of {config.worlds} worlds on one core, all included",
                measured["vector"].median,
                "turns/s",
                goals.get("vector"),
            )
        )
        found.append(
            Ratio(
                "vector/stepping",
                "the same without the time of resets",
                measured["vector/stepping"].median,
                "turns/s",
                goals.get("vector/stepping"),
            )
        )
    if "search" in measured:
        found.append(
            Ratio(
                "search",
                "a search over 20,000 documents",
                measured["search"].median,
                "us",
                1000.0,
                "at most",
            )
        )
    if both("snapshot", "deepcopy"):
        found.append(
            Ratio(
                "snapshot",
                "a snapshot and a restore",
                measured["snapshot"].median,
                "us",
                goals.get("snapshot"),
                "at most",
            )
        )
        found.append(
            Ratio(
                "snapshot/deepcopy",
                "a snapshot and a restore by copy.deepcopy",
                ratio(measured["snapshot"], measured["deepcopy"]),
                target=goals.get("snapshot/deepcopy"),
                direction="at most",
            )
        )
    if both("collection", "torchrl"):
        found.append(
            Ratio(
                "collection/torchrl",
                "turns a second of our collection by TorchRL's collector",
                ratio(measured["collection"], measured["torchrl"]),
                target=5.0,
            )
        )
    return found


def _kernel_ratios(config: SpeedConfig) -> list[Ratio]:
    from benchmarks.speed_training import kernel_share

    share = kernel_share(_run_config(config), max(4, round(24 * config.size)))
    return [
        Ratio(
            "kernels",
            f"share of a training step of {config.method} in torch's operators (profiler)",
            share.share,
            target=0.5,
        ),
        Ratio("kernels/at least", "the same, with the profiler's cost taken off", share.at_least),
        Ratio("step", f"a training step of {config.method}", share.milliseconds, "ms"),
    ]


# -- output ----------------------------------------------------------------------------------


def as_text(speed: Speed) -> str:
    """The tables for a terminal."""
    lines = []
    for found in speed.ratios:
        goal = "" if found.target is None else f"{found.direction} {_short(found.target)}"
        verdict = "" if found.holds is None else ("yes" if found.holds else "NO")
        value = f"{_short(found.value)} {found.unit}".strip()
        lines.append([found.what, value, goal, verdict])
    raw = [
        [
            name,
            f"{_short(m.median)} {m.unit}",
            f"{_short(min(m.values))} to {_short(max(m.values))}",
        ]
        for name, m in speed.measured.items()
    ]
    parts = [
        plain(Table(["ratio", "value", "goal", "met"], lines)),
        plain(Table(["measurement", "median", "range over rounds"], raw)),
        *speed.notes,
    ]
    return "\n\n".join(parts) + "\n"


def _short(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    config = tyro.cli(
        SpeedConfig, prog="python -m benchmarks.speed", args=arguments, description=__doc__
    )
    start = time.perf_counter()
    speed = measure_speed(config)
    print(as_text(speed), end="")
    if config.out is not None:
        record = {"task": config.task, **speed.to_json()}
        record["provenance"] = provenance("python -m benchmarks.speed", 1)
        config.out.parent.mkdir(parents=True, exist_ok=True)
        write_numbers(config.out, record)
    print(f"\nmeasured in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
