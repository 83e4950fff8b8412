"""Plots of a comparison, each with its numbers beside it as JSON of the same name.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; methods also
differ by line style or marker, so that nothing hangs on colour alone. The size of the text is for
a picture shown 800 pixels wide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mpt_train.comparison.results import (
    LEARNED,
    Comparison,
    MethodResult,
    learning_curve,
    milestones_of,
    participation,
    summarize_method,
    summarize_swap,
    swap_order,
    write_numbers,
)
from mpt_train.comparison.stats import Interval

DPI = 160
INK, GREY, LIGHT = "#222222", "#8c8c8c", "#e4e4e4"

# Colour, line style and marker of a method; others take the rest of the list in turn.
STYLES: dict[str, tuple[str, str, str]] = {
    "mpt-plus": ("#0072B2", "-", "o"),
    "mpt": ("#56B4E9", "-", "s"),
    "monolithic": ("#D55E00", "-", "D"),
    "router": ("#E69F00", "--", "^"),
    "round-robin": ("#009E73", "--", "v"),
    "graph-of-agents": ("#CC79A7", "--", "P"),
    "fixed-priority": ("#4d4d4d", ":", "X"),
    "random-bids": ("#999999", ":", "d"),
}
_SPARE = tuple(STYLES.values())
ROLE_COLOURS = ("#44AA99", "#DDCC77", "#CC6677", "#88CCEE", "#332288", "#117733", "#882255")
COORDINATION_COLOURS = {
    LEARNED: "#0072B2",
    "round-robin": "#009E73",
    "random": "#999999",
    "priority": "#4d4d4d",
    "graph-of-agents": "#CC79A7",
}

_RC: Any = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True)
class Plot:
    """A plot that was written.

    Attributes:
        name: of the files, without suffix.
        title: a few words.
        caption: what it shows, in plain words.
        png: the picture; its numbers are in the file with the suffix .json.
    """

    name: str
    title: str
    caption: str
    png: Path


def style_of(comparison: Comparison, name: str) -> tuple[str, str, str]:
    """Colour, line style and marker of a method."""
    if name in STYLES:
        return STYLES[name]
    return _SPARE[[m.name for m in comparison.methods].index(name) % len(_SPARE)]


def draw_all(comparison: Comparison, folder: Path) -> list[Plot]:
    """Draw every plot that the results have numbers for.

    Args:
        comparison: the results.
        folder: where the files go; it is made if it is not there.
    """
    if not comparison.trained:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    plots = []
    drawings: tuple[Callable[[Comparison, Path], Plot | None], ...] = (
        draw_learning_curves,
        draw_final_returns,
        draw_swap,
        draw_participation,
        draw_milestones,
    )
    if comparison.kind == "ablation":
        drawings = (draw_ablation,)
    for draw in drawings:
        with mpl.rc_context(_RC):
            plot = draw(comparison, folder)
        if plot is not None:
            plots.append(plot)
    return plots


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(
    figure: Figure, folder: Path, name: str, title: str, caption: str, numbers: Mapping[str, Any]
) -> Plot:
    png = folder / f"{name}.png"
    # No date and no version in the file: the same results give the same picture.
    figure.savefig(png, dpi=DPI, metadata={"Software": None, "Title": title})
    write_numbers(folder / f"{name}.json", {"title": title, "caption": caption, **numbers})
    return Plot(name, title, caption, png)


def _by_final(comparison: Comparison) -> list[MethodResult]:
    """Methods, the best first."""
    return sorted(comparison.trained, key=lambda m: -float(np.mean(list(m.final_returns.values()))))


def _reference_line(axes: Axes, comparison: Comparison, vertical: bool = False) -> None:
    if comparison.reference is None:
        return
    draw = axes.axvline if vertical else axes.axhline
    draw(comparison.reference, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)


# -- learning curves -------------------------------------------------------------------------


def draw_learning_curves(comparison: Comparison, folder: Path) -> Plot | None:
    """Return against compute, all methods in one picture."""
    methods = [m for m in _by_final(comparison) if all(run.summary["curve"] for run in m.runs)]
    if not methods:
        return None
    figure = _figure(8.0, 4.7)
    axes = figure.subplots()
    numbers: dict[str, Any] = {}
    ends: list[tuple[float, str, str]] = []
    for order, method in enumerate(reversed(methods)):
        colour, line, marker = style_of(comparison, method.name)
        curve = learning_curve(method)
        strong = method.name in ("mpt-plus", "mpt", "monolithic")
        axes.plot(
            curve.gflop,
            curve.mean,
            color=colour,
            linestyle=line,
            linewidth=2.4 if strong else 1.7,
            zorder=3 + order,
        )
        if curve.low is not None and curve.high is not None:
            axes.fill_between(
                curve.gflop,
                curve.low,
                curve.high,
                color=colour,
                alpha=0.13,
                linewidth=0,
                zorder=2,
            )
        axes.plot(
            curve.gflop[0],
            curve.mean[0],
            marker=marker,
            markersize=6.5,
            markerfacecolor="white",
            markeredgecolor=colour,
            markeredgewidth=1.6,
            linestyle="none",
            zorder=20 + order,
        )
        ends.append((float(curve.mean[-1]), method.title, colour))
        numbers[method.name] = {
            "gflop": curve.gflop,
            "mean": curve.mean,
            "low": curve.low,
            "high": curve.high,
            "runs": {run.seed: run.summary["curve"] for run in method.runs},
        }
    _reference_line(axes, comparison)
    axes.set_xlabel("compute (GFLOP)")
    axes.set_ylabel("return on held-out worlds")
    # Bands over two or three seeds can be wider than all curves together: the curves set the scale.
    top = max(float(np.max(n["mean"])) for n in numbers.values())
    axes.set_ylim(0.0, 1.1 * max(top, comparison.reference or 0.0))
    axes.set_xlim(left=0.0, right=max(float(n["gflop"][-1]) for n in numbers.values()))
    _label_ends(figure, axes, ends)
    if comparison.reference is not None:
        axes.annotate(
            "scripted expert",
            (0.01, comparison.reference),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            color=GREY,
            fontsize=9,
        )
    caption = (
        "Mean return on held-out worlds against the compute spent so far; everything counts: bids, "
        "actions, counterfactual branches and updates. Open markers: the cold start, before any "
        "reinforcement learning. Bands: 95 % confidence intervals over training seeds."
    )
    return _save(
        figure, folder, "learning_curves", "Learning curves", caption, {"methods": numbers}
    )


def _label_ends(figure: Figure, axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Name each curve at its right end, in its colour, moved apart where ends are close."""
    low, high = axes.get_ylim()
    gap = (high - low) / 17.0
    ends = sorted(ends)
    places: list[float] = []
    for value, _, _ in ends:
        places.append(max(value, places[-1] + gap) if places else value)
    # Pushing up may have gone too far: move blocks back so that they sit around their curves.
    for _ in range(200):
        moved = False
        for i, (value, _, _) in enumerate(ends):
            floor = places[i - 1] + gap if i else low
            wanted = max(value, floor)
            over = places[i] - wanted
            block = i
            while block + 1 < len(ends) and places[block + 1] - places[block] < gap * 1.001:
                block += 1
            mean = float(np.mean([places[j] - ends[j][0] for j in range(i, block + 1)]))
            step = min(over, mean) if mean > 1e-6 else 0.0
            room = places[i] - floor
            step = min(step, room)
            if step > 1e-4:
                for j in range(i, block + 1):
                    places[j] -= step
                moved = True
        if not moved:
            break
    for place, (value, title, colour) in zip(places, ends, strict=True):
        axes.annotate(
            title,
            xy=(1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(1.035, place),
            textcoords=("axes fraction", "data"),
            color=colour,
            fontweight="bold",
            fontsize=9.5,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


# -- final returns ---------------------------------------------------------------------------


def draw_final_returns(comparison: Comparison, folder: Path) -> Plot | None:
    """Return after training with its interval, every seed, and the cold start."""
    methods = _by_final(comparison)
    figure = _figure(8.0, 1.3 + 0.46 * len(methods))
    axes = figure.subplots()
    numbers = {}
    for place, method in enumerate(methods):
        colour, _, marker = style_of(comparison, method.name)
        row = summarize_method(method)
        values = list(method.final_returns.values())
        axes.plot(
            [row.cold_start.mean, row.final.mean],
            [place, place],
            color=colour,
            alpha=0.28,
            linewidth=2.0,
            zorder=2,
        )
        axes.plot(
            row.cold_start.mean,
            place,
            marker=marker,
            markersize=6,
            markerfacecolor="white",
            markeredgecolor=colour,
            markeredgewidth=1.5,
            linestyle="none",
            zorder=3,
        )
        axes.plot(
            values,
            np.full(len(values), place + 0.24),
            marker="|",
            markersize=7,
            color=colour,
            alpha=0.8,
            linestyle="none",
            zorder=3,
        )
        _errorbar(axes, row.final, place, colour, marker)
        axes.annotate(
            f"{row.final.mean:.1f}",
            (row.final.high or row.final.mean, place),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold",
        )
        numbers[method.name] = {
            "final": row.final.to_json(),
            "cold_start": row.cold_start.to_json(),
            "final_by_seed": method.final_returns,
            "cold_start_by_seed": method.cold_returns,
        }
    _reference_line(axes, comparison, vertical=True)
    axes.set_yticks(range(len(methods)), [m.title for m in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.set_xlim(left=0.0)
    right = axes.get_xlim()[1]
    axes.set_xlim(right=max(right, (comparison.reference or 0.0) * 1.03))
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlabel("return on held-out worlds")
    handles = [
        Line2D([], [], marker="o", color=INK, markersize=7, linewidth=2, label="after training"),
        Line2D(
            [],
            [],
            marker="o",
            color=INK,
            markerfacecolor="white",
            linestyle="none",
            label="cold start",
        ),
        Line2D([], [], marker="|", color=INK, linestyle="none", label="each seed"),
    ]
    if comparison.reference is not None:
        handles.append(Line2D([], [], color=GREY, linestyle=(0, (1, 2)), label="scripted expert"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=9.5)
    caption = (
        "Return on held-out worlds at the end of training, at equal compute. Filled marker and "
        "bar: mean and 95 % confidence interval over training seeds. Small ticks: each seed. Open "
        "marker: the same method's cold start."
    )
    return _save(figure, folder, "final_returns", "Final returns", caption, {"methods": numbers})


def _errorbar(axes: Axes, interval: Interval, place: float, colour: str, marker: str) -> None:
    half = interval.half_width
    axes.errorbar(
        interval.mean,
        place,
        xerr=None if half is None else half,
        color=colour,
        marker=marker,
        markersize=8,
        elinewidth=2.4,
        capsize=4,
        capthick=1.6,
        zorder=4,
    )


# -- ablation --------------------------------------------------------------------------------


def draw_ablation(comparison: Comparison, folder: Path) -> Plot | None:
    """Return of each variant, by group; a line marks the group's base configuration."""
    groups: dict[str, list[MethodResult]] = {}
    for method in comparison.trained:
        groups.setdefault(method.group, []).append(method)
    sizes = [len(methods) for methods in groups.values()]
    figure = _figure(8.0, 0.9 + 0.7 * len(sizes) + 0.34 * sum(sizes))
    panels = figure.subplots(
        len(groups), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": sizes}
    )
    accent = STYLES["mpt-plus"][0]
    numbers: dict[str, Any] = {}
    for axes, (group, methods) in zip(panels[:, 0], groups.items(), strict=True):
        first = next(m for m in comparison.methods if m.group == group)
        if first.runs:
            base = summarize_method(first).final
            axes.axvline(base.mean, color=accent, linewidth=1.0, zorder=1)
            if base.low is not None and base.high is not None:
                axes.axvspan(base.low, base.high, color=accent, alpha=0.1, linewidth=0)
        for place, method in enumerate(methods):
            row = summarize_method(method)
            values = list(method.final_returns.values())
            is_base = method is first
            _errorbar(axes, row.final, place, accent if is_base else INK, "D" if is_base else "o")
            axes.plot(
                values,
                np.full(len(values), place + 0.3),
                marker="|",
                markersize=5,
                color=GREY,
                linestyle="none",
            )
            numbers[method.name] = {
                "final": row.final.to_json(),
                "final_by_seed": method.final_returns,
            }
        axes.set_yticks(range(len(methods)), [m.title for m in methods])
        axes.set_ylim(len(methods) - 0.4, -0.6)
        axes.set_title(group, fontsize=10.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
    panels[-1, 0].set_xlabel("return on held-out worlds")
    caption = (
        "Return on held-out worlds when one option is changed. Marker and bar: mean and 95 % "
        "confidence interval over training seeds; ticks: each seed; line and shade: the "
        "configuration that the group starts from."
    )
    return _save(figure, folder, "ablation", "One option at a time", caption, {"methods": numbers})


# -- swapping the coordination ---------------------------------------------------------------


def draw_swap(comparison: Comparison, folder: Path) -> Plot | None:
    """The same trained action policies under each coordination."""
    rows = summarize_swap(comparison)
    if not rows:
        return None
    names = swap_order(list(dict.fromkeys(name for row in rows for name in row.returns)))
    figure = _figure(8.0, 3.9)
    axes = figure.subplots()
    width = 0.8 / len(names)
    numbers = {}
    top = max(i.high or i.mean for row in rows for i in row.returns.values())
    for group, row in enumerate(rows):
        for index, name in enumerate(names):
            if name not in row.returns:
                continue
            interval = row.returns[name]
            x = group + (index - (len(names) - 1) / 2) * width
            axes.bar(
                x,
                interval.mean,
                width * 0.9,
                color=COORDINATION_COLOURS.get(name, ROLE_COLOURS[index % len(ROLE_COLOURS)]),
                yerr=interval.half_width,
                error_kw={"ecolor": INK, "elinewidth": 1.4, "capsize": 3},
                zorder=2,
            )
            seeds = list(comparison.swap[row.method][name].values())
            spread = np.linspace(-0.22, 0.22, len(seeds)) if len(seeds) > 1 else np.zeros(1)
            axes.plot(
                x + spread * width,
                seeds,
                ".",
                color="white",
                markeredgecolor=INK,
                markeredgewidth=0.6,
                markersize=6,
                zorder=4,
            )
            axes.annotate(
                f"{interval.mean:.1f}",
                (x, (interval.high or interval.mean)),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
        axes.annotate(
            f"learned bids: {row.ratio.mean:.2f} times {_plain(row.best_other)}",
            (group, top * 1.18),
            ha="center",
            fontweight="bold",
            fontsize=10,
        )
        numbers[row.method] = {**row.to_json(), "by_seed": comparison.swap[row.method]}
    titles = {m.name: m.title for m in comparison.methods}
    axes.set_xticks(
        range(len(rows)), [f"action policies of {titles.get(r.method, r.method)}" for r in rows]
    )
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    axes.set_ylim(0.0, top * 1.28)
    axes.set_xlim(-0.55, len(rows) - 0.45)
    axes.set_ylabel("return on held-out worlds")
    handles = [
        Patch(
            color=COORDINATION_COLOURS.get(n, ROLE_COLOURS[i % len(ROLE_COLOURS)]), label=_plain(n)
        )
        for i, n in enumerate(names)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(names), fontsize=9.5)
    caption = (
        "The trained action policies stay as they are; only who acts is decided differently. Bars: "
        "mean and 95 % confidence interval over training seeds; dots: each seed."
    )
    return _save(figure, folder, "swap", "Swapping the coordination", caption, {"methods": numbers})


def _plain(coordination: str) -> str:
    return {
        LEARNED: "learned bids",
        "random": "random bids",
        "priority": "fixed priority",
        "graph-of-agents": "Graph-of-Agents",
    }.get(coordination, coordination)


# -- participation ---------------------------------------------------------------------------


def draw_participation(comparison: Comparison, folder: Path) -> Plot | None:
    """Who acts when, before and after training, per method."""
    methods = [
        m for m in comparison.trained if all(len(run.final["participation"]) > 1 for run in m.runs)
    ]
    if not methods:
        return None
    roles = list(participation(methods[0], "final"))
    columns = 2 if len(methods) > 1 else 1
    lines = -(-len(methods) // columns)
    figure = _figure(4.1 * columns + 0.3, 0.75 + 1.85 * lines)
    blocks = figure.subfigures(lines, columns, squeeze=False, wspace=0.02, hspace=0.02)
    numbers: dict[str, Any] = {}
    for place, method in enumerate(methods):
        block = blocks[place // columns][place % columns]
        pair = block.subplots(1, 2, sharex=True, sharey=True)
        block.suptitle(method.title, fontsize=10.5, fontweight="bold")
        numbers[method.name] = {}
        for axes, when, label in zip(
            pair, ("cold_start", "final"), ("before", "after"), strict=True
        ):
            shares = participation(method, when)
            _draw_shares(axes, shares, roles)
            axes.set_title(label, fontsize=9.5, fontweight="normal", loc="center", pad=3)
            numbers[method.name][label] = shares
    for extra in range(len(methods), lines * columns):
        blocks[extra // columns][extra % columns].patch.set_alpha(0.0)
    handles = [
        Patch(color=ROLE_COLOURS[i % len(ROLE_COLOURS)], label=role) for i, role in enumerate(roles)
    ]
    if any(
        _gap(participation(m, when)) > 0.01 for m in methods for when in ("cold_start", "final")
    ):
        handles.append(Patch(facecolor="white", edgecolor=GREY, hatch="////", label="no turn left"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=9.5)
    caption = (
        "Share of each role among the agents that act, from the first turn of an episode (left) to "
        "the last one of the turn budget (right): before training (cold start) and after it; mean "
        "over training seeds. A monolithic policy has no roles and is left out."
    )
    return _save(
        figure,
        folder,
        "participation",
        "Participation over the turns, before and after training",
        caption,
        {"roles": roles, "methods": numbers},
    )


def _gap(shares: Mapping[str, NDArray[np.float64]]) -> float:
    """Largest share of a part of the episode that belongs to no role."""
    return float(np.max(1.0 - np.sum(list(shares.values()), axis=0)))


def _draw_shares(axes: Axes, shares: Mapping[str, NDArray[np.float64]], roles: list[str]) -> None:
    bins = len(next(iter(shares.values())))
    x = (np.arange(bins) + 0.5) / bins
    x[0], x[-1] = 0.0, 1.0
    base = np.zeros(bins)
    for index, role in enumerate(roles):
        top = base + shares.get(role, np.zeros(bins))
        axes.fill_between(
            x,
            base,
            top,
            color=ROLE_COLOURS[index % len(ROLE_COLOURS)],
            linewidth=0.6,
            edgecolor="white",
        )
        base = top
    axes.fill_between(
        x, base, np.ones(bins), facecolor="white", edgecolor=GREY, hatch="////", linewidth=0.0
    )
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xticks([0.0, 1.0], ["first turn", "last"], fontsize=8.5)
    axes.set_yticks([0.0, 0.5, 1.0], ["0", "½", "1"], fontsize=8.5)
    labels = axes.get_xticklabels()
    labels[0].set_horizontalalignment("left")
    labels[-1].set_horizontalalignment("right")
    axes.grid(False)


# -- milestones ------------------------------------------------------------------------------


def draw_milestones(comparison: Comparison, folder: Path) -> Plot | None:
    """How often each milestone is reached, per method."""
    methods = [m for m in _by_final(comparison) if milestones_of(m.runs[0].final)]
    if not methods:
        return None
    names = list(milestones_of(methods[0].runs[0].final))
    rates = np.array([_mean_milestones(m, "final", names) for m in methods])
    before = np.array([_mean_milestones(m, "cold_start", names) for m in methods])
    figure = _figure(max(8.0, 1.6 + 0.62 * len(names)), 1.35 + 0.44 * (len(methods) + 1.3))
    upper, lower = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [len(methods), 1.0]}
    )
    labels = [m.title for m in methods]
    _heat(upper, rates, labels)
    _heat(lower, before.mean(axis=0, keepdims=True), ["cold start (mean)"])
    lower.set_xticks(
        range(len(names)), [n.replace("_", " ") for n in names], rotation=35, ha="right"
    )
    for label in lower.get_xticklabels():
        label.set_rotation_mode("anchor")
    numbers = {
        m.name: {
            "final": dict(zip(names, rates[i].tolist(), strict=True)),
            "cold_start": dict(zip(names, before[i].tolist(), strict=True)),
        }
        for i, m in enumerate(methods)
    }
    caption = (
        "Share of held-out episodes (in per cent) that reach each milestone after training, from "
        "the easy ones to the goal; mean over training seeds. Last line: the cold starts' mean."
    )
    return _save(
        figure, folder, "milestones", "Success per milestone", caption, {"methods": numbers}
    )


def _mean_milestones(method: MethodResult, when: str, names: list[str]) -> list[float]:
    runs = [milestones_of(run.summary[when]) for run in method.runs]
    return [float(np.mean([run.get(name, 0.0) for run in runs])) for name in names]


def _heat(axes: Axes, rates: NDArray[np.float64], labels: list[str]) -> None:
    # Without its darkest part, so that the numbers stay the strongest thing in a cell.
    axes.imshow(rates, vmin=0.0, vmax=1.25, cmap="GnBu", aspect="auto")
    for y, line in enumerate(rates):
        for x, rate in enumerate(line):
            axes.text(
                x,
                y,
                f"{100 * rate:.0f}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if rate > 0.7 else INK,
            )
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(length=0)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    # White lines between the cells.
    axes.set_xticks(np.arange(rates.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rates.shape[0] + 1) - 0.5, minor=True)
    axes.grid(True, which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
