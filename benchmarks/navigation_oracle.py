"""How far a planner that knows the map gets: ``python -m benchmarks.navigation_oracle``.

The scripted expert plays every episode of navigation/r2r-v0 (or some of navigation/floorplan-v0):
the role with the highest expert bid acts. What it does not reach is listed with the reason. For
R2R the geodesic distances on the free space are compared with those on the scenes' meshes, which
the files of the episodes tell.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import mpt_envs
from mpt_envs.navigation.data.r2r import R2RSource, r2r_source
from wrappers.errors import MarketError, TaskError
from wrappers.task import TurnTask

R2R = "navigation/r2r-v0"
FLOORPLAN = "navigation/floorplan-v0"


@dataclass(frozen=True)
class OracleConfig:
    """Let the scripted expert play, and report what it reaches."""

    data: Path | None = None
    """Folder of the R2R-CE episodes; by default the environment variable's (MPT_R2R_DATA)."""
    split: str = "val_unseen"
    """Split of R2R-CE: train, val_seen or val_unseen."""
    scans: tuple[str, ...] = ()
    """Scenes to play; all by default."""
    graphs: Path | None = None
    """Folder of the connectivity graphs; by default graphs/ in the folder of the episodes."""
    episodes: int = 0
    """Play so many episodes only, spread over the split; 0: all."""
    floorplans: int = 0
    """Play so many generated floorplans instead of R2R-CE."""
    max_turns: int = 64
    """Decisions an episode may take."""
    out: Path | None = None
    """Write the report to this JSON file too."""


@dataclass
class Report:
    """What the expert reached.

    Attributes:
        task: id of the task.
        episodes: how many were played, those without a way included.
        means: mean of each metric over them, and of ``turns``; an episode without a way counts as
            a failure (0), and its distances not at all.
        missed: a line for each episode that was not a success, with the reason.
        low_spl: a line for each success with SPL below 0.8.
        geodesic: R2R only: mean geodesic length here and in the files, the mean and the 1st, 50th
            and 99th percentile of their ratio, and its mean distance from 1.
        seconds: the time it took.
    """

    task: str
    episodes: int = 0
    means: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    low_spl: list[str] = field(default_factory=list)
    geodesic: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


def play(task: TurnTask, max_turns: int) -> dict[str, float]:
    """Let the expert play an episode that was just reset; its metrics, and ``turns``."""
    agents = task.possible_agents
    turns = 0
    terminated = False
    while turns < max_turns and not terminated:
        bids = [task.expert_bid(agent) for agent in agents]
        agent = agents[int(np.argmax(bids))]
        terminated = task.act(agent, task.expert_action(agent)).terminated
        turns += 1
    return {**task.metrics(), "turns": float(turns)}


def _why(metrics: dict[str, float], max_turns: int) -> str:
    """Why an episode that could be played was no success."""
    numbers = (
        f"{metrics['distance_to_goal']:.2f} m from the goal after {metrics['path_length']:.2f} m "
        f"and {metrics['turns']:.0f} turns"
    )
    if metrics["turns"] >= max_turns:
        return f"ran out of turns, {numbers}"
    return f"ended too far away, {numbers}"


def run(task: TurnTask, starts: Iterable[dict[str, Any]], max_turns: int) -> Report:
    """Play one episode for each set of arguments of ``task.reset``."""
    began = time.perf_counter()
    report = Report(task.task_id)
    played: list[dict[str, float]] = []
    for arguments in starts:
        report.episodes += 1
        name = (arguments.get("options") or arguments).get("episode")
        try:
            task.reset(**arguments)
        except TaskError as error:
            report.missed.append(f"{name}: {error}")
            continue
        metrics = play(task, max_turns)
        played.append(metrics)
        if not metrics["success"]:
            report.missed.append(f"{name}: {_why(metrics, max_turns)}")
        elif metrics["spl"] < 0.8:
            report.low_spl.append(f"{name}: SPL {metrics['spl']:.2f}")
    for metric in played[0] if played else ():
        total = sum(metrics[metric] for metrics in played)
        # What is a score counts for those without a way too; a distance does not.
        whole = metric in ("success", "oracle_success", "spl", "ndtw", "sdtw")
        report.means[metric] = total / (report.episodes if whole else len(played))
    report.seconds = time.perf_counter() - began
    return report


def compare_geodesics(source: R2RSource, keys: Iterable[int]) -> dict[str, float]:
    """Geodesic lengths on the free space against those that the files tell."""
    here, there = [], []
    for key in keys:
        if source.recorded(key).episode_id in source.unreachable:
            continue
        scene, episode = source.episode(key)
        away = scene.space.distance(source.distances(scene, episode), episode.start)
        if math.isfinite(away):
            here.append(away)
            there.append(source.recorded(key).geodesic)
    ratio = np.array(here) / np.array(there)
    low, middle, high = np.percentile(ratio, [1, 50, 99])
    return {
        "mean_here": float(np.mean(here)),
        "mean_in_files": float(np.mean(there)),
        "mean_ratio": float(ratio.mean()),
        "ratio_1st_percentile": float(low),
        "ratio_median": float(middle),
        "ratio_99th_percentile": float(high),
        "mean_deviation": float(np.abs(ratio - 1).mean()),
    }


def run_r2r(config: OracleConfig) -> Report:
    """Play the episodes of a split of R2R-CE."""
    options: dict[str, Any] = {
        "data": config.data,
        "split": config.split,
        "scans": config.scans or None,
        "graphs": config.graphs,
    }
    source = r2r_source(**options)
    count = min(config.episodes or len(source), len(source))
    keys = [int(k) for k in np.linspace(0, len(source) - 1, count).round()]
    task = mpt_envs.make_task(R2R, **options)
    starts = ({"seed": 0, "options": {"episode": source.recorded(key).episode_id}} for key in keys)
    report = run(task, starts, config.max_turns)
    report.geodesic = compare_geodesics(source, keys)
    return report


def run_floorplans(config: OracleConfig) -> Report:
    """Play generated floorplans."""
    task = mpt_envs.make_task(FLOORPLAN)
    starts = ({"seed": 0, "episode": number} for number in range(config.floorplans))
    return run(task, starts, config.max_turns)


def as_text(report: Report) -> str:
    """The report for people."""
    names = {
        "success": "SR",
        "spl": "SPL",
        "distance_to_goal": "NE (m)",
        "oracle_success": "OS",
        "path_length": "TL (m)",
        "ndtw": "nDTW",
        "sdtw": "SDTW",
        "turns": "turns",
    }
    lines = [f"{report.task}: the expert on {report.episodes} episodes, {report.seconds:.0f} s"]
    lines.append(
        "  ".join(f"{short} {report.means.get(name, 0.0):.4g}" for name, short in names.items())
    )
    if report.geodesic:
        g = report.geodesic
        lines.append(
            f"geodesic: {g['mean_here']:.3f} m here, {g['mean_in_files']:.3f} m in the files; "
            f"ratio {g['mean_ratio']:.3f} (1st percentile {g['ratio_1st_percentile']:.3f}, median "
            f"{g['ratio_median']:.3f}, 99th {g['ratio_99th_percentile']:.3f}), mean deviation "
            f"{100 * g['mean_deviation']:.1f} %"
        )
    for title, rows in (("not reached", report.missed), ("SPL below 0.8", report.low_spl)):
        lines.append(f"{title}: {len(rows)}")
        lines += [f"  {row}" for row in rows]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and print; the exit code is 0 if every episode was a success."""
    config = tyro.cli(
        OracleConfig,
        prog="python -m benchmarks.navigation_oracle",
        args=arguments,
        description=__doc__,
    )
    try:
        report = run_floorplans(config) if config.floorplans else run_r2r(config)
    except (MarketError, ValueError) as error:
        print(f"navigation_oracle: {error}", file=sys.stderr)
        return 2
    print(as_text(report), end="")
    if config.out is not None:
        config.out.parent.mkdir(parents=True, exist_ok=True)
        config.out.write_text(json.dumps(dataclasses.asdict(report), indent=2) + "\n", "utf-8")
    return 0 if not report.missed else 1


if __name__ == "__main__":
    sys.exit(main())
