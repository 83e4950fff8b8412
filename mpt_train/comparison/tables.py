"""Tables of a comparison: plain text for the terminal, Markdown for documents."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from mpt_train.comparison.results import (
    Comparison,
    claims,
    differences,
    summarize,
    summarize_method,
    summarize_swap,
    swap_order,
)
from mpt_train.comparison.stats import Interval


class Table(NamedTuple):
    """A table of text cells.

    Attributes:
        heads: one per column.
        cells: rows.
        words: number of leading columns that hold words (aligned to the left) and not numbers.
    """

    heads: list[str]
    cells: list[list[str]]
    words: int = 1


HEADS = {
    "method": "method",
    "final": "return",
    "cold_start": "cold start",
    "ratio": "ratio",
    "success": "success",
    "milestones": "milestones",
    "turns": "turns",
    "gflop": "GFLOP",
    "experience": "experience",
    "wall": "time",
}


def number(value: float, digits: int = 1) -> str:
    """A number, or a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def with_interval(interval: Interval, digits: int = 1) -> str:
    """Mean and half-width, such as ``31.2 ± 4.0``; only the mean with one seed."""
    text = number(interval.mean, digits)
    half = interval.half_width
    return text if half is None else f"{text} ± {half:.{digits}f}"


def percent(interval: Interval) -> str:
    """A share with its half-width in percentage points."""
    if math.isnan(interval.mean):
        return "-"
    half = interval.half_width
    mean = f"{100 * interval.mean:.0f}"
    return f"{mean} %" if half is None else f"{mean} ± {100 * half:.0f} %"


def count(value: float) -> str:
    """A large count, such as ``1.5 M``."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"


def duration(seconds: float) -> str:
    """A time, such as ``4:07`` (minutes) or ``2:04:07`` (hours)."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def p_text(p_value: float | None) -> str:
    """A p-value; a dash where there is none."""
    if p_value is None:
        return "-"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


# -- the tables ------------------------------------------------------------------------------


def main_table(comparison: Comparison) -> Table:
    """One row per method; the column of milestones only where the task has some."""
    rows = summarize(comparison)
    has_milestones = any(row.milestones is not None for row in rows)
    heads = [head for key, head in HEADS.items() if key != "milestones" or has_milestones]
    cells = []
    for row in rows:
        line = [
            row.method,
            with_interval(row.final),
            with_interval(row.cold_start),
            number(row.ratio.mean, 2),
            percent(row.success),
        ]
        if has_milestones:
            line.append("-" if row.milestones is None else with_interval(row.milestones))
        line += [
            number(row.turns.mean, 0),
            number(row.gflop, 0),
            count(row.experience),
            duration(row.wall_seconds),
        ]
        cells.append(line)
    return Table(heads, cells)


def difference_table(comparison: Comparison) -> Table:
    """Paired differences in return with their corrected p-values."""
    heads = ["difference in return", "mean", "95 % interval", "p (Holm)", "seeds"]
    cells = []
    for d in differences(comparison):
        low, high = d.interval.low, d.interval.high
        span = "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
        cells.append(
            [
                f"{d.first} minus {d.second}",
                f"{d.interval.mean:+.1f}",
                span,
                p_text(d.adjusted),
                str(d.interval.n),
            ]
        )
    return Table(heads, cells)


def swap_table(comparison: Comparison) -> Table:
    """Return of the same trained action policies under each coordination."""
    rows = summarize_swap(comparison)
    names = swap_order(list(dict.fromkeys(name for row in rows for name in row.returns)))
    heads = ["action policies of", *names, "learned / best other"]
    cells = [
        [
            row.method,
            *[with_interval(row.returns[n]) if n in row.returns else "-" for n in names],
            f"{number(row.ratio.mean, 2)} ({row.best_other})",
        ]
        for row in rows
    ]
    return Table(heads, cells)


def claim_table(comparison: Comparison) -> Table:
    """What the results support, with the numbers."""
    cells = [[claim.verdict, claim.text, claim.value] for claim in claims(comparison)]
    return Table(["holds", "statement", "numbers"], cells, words=3)


# -- how they look ---------------------------------------------------------------------------


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def plain(table: Table) -> str:
    """Aligned columns for a terminal: words to the left, numbers to the right."""
    heads, cells, words = table
    lines = [heads, *cells]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(heads))]

    def draw(line: Sequence[str]) -> str:
        parts = []
        for i, (text, width) in enumerate(zip(line, widths, strict=True)):
            gap = " " * (width - _width(text))
            parts.append(text + gap if i < words else gap + text)
        return "  ".join(parts).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([draw(heads), rule, *[draw(line) for line in cells]])


def markdown(table: Table) -> str:
    """A Markdown table."""
    heads, cells, words = table

    def draw(line: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"

    rule = "|" + "|".join(["---"] * words + ["---:"] * (len(heads) - words)) + "|"
    return "\n".join([draw(heads), rule, *[draw(line) for line in cells]])


def title(comparison: Comparison) -> str:
    """One line that says what was compared."""
    seeds = sorted({run.seed for method in comparison.trained for run in method.runs})
    what = "Ablation" if comparison.kind == "ablation" else "Comparison"
    return (
        f"{what} on {comparison.task}: {comparison.budget_gflop:g} GFLOP a run, "
        f"{len(seeds)} training seed{'s' if len(seeds) != 1 else ''}"
    )


def notes(comparison: Comparison) -> list[str]:
    """How to read the main table, and what is missing."""
    legend = (
        "Return: mean over held-out worlds; ± is the 95 % t-interval over training seeds. "
        "Ratio: return by cold start. Turns: length of an episode. Experience: turns played in "
        "training, without those of branches. Time: of one run on one core."
    )
    lines = [legend]
    if comparison.reference is not None:
        lines.append(f"The scripted expert reaches {comparison.reference:.1f} on these worlds.")
    if any(len(method.runs) == 1 for method in comparison.trained):
        lines.append(
            "Methods with one training seed have no interval. No statement is judged by one seed."
        )
    for method in comparison.trained:
        if not any(run.summary["steps"] for run in method.runs):
            lines.append(
                f"{method.name} was not trained: its cold start alone took "
                f"{number(summarize_method(method).gflop, 0)} of {comparison.budget_gflop:g} GFLOP."
            )
    for failure in comparison.failures:
        which = "" if failure.seed is None else f", seed {failure.seed}"
        lines.append(f"FAILED: {failure.method}{which}: {failure.reason}")
    if not comparison.complete:
        lines.append("Interrupted: not every run has been made.")
    return lines


def all_tables(comparison: Comparison) -> list[tuple[str, Table]]:
    """The tables that have rows, each with a heading."""
    tables = [
        ("Results", main_table(comparison)),
        ("Differences on the same training seeds", difference_table(comparison)),
        ("Swapping the coordination over the same trained policies", swap_table(comparison)),
        ("What these results support", claim_table(comparison)),
    ]
    return [(heading, table) for heading, table in tables if table.cells]


def _wrapped(lines: Sequence[str]) -> str:
    return "\n".join(textwrap.fill(line, 100, break_on_hyphens=False) for line in lines)


def as_text(comparison: Comparison) -> str:
    """Everything for the terminal."""
    if not comparison.trained:
        return (
            "\n\n".join(
                [title(comparison), "No run has finished.", _wrapped(notes(comparison)[1:])]
            ).rstrip()
            + "\n"
        )
    parts = [title(comparison)]
    for index, (heading, table) in enumerate(all_tables(comparison)):
        parts.append(plain(table) if index == 0 else f"{heading}\n{plain(table)}")
        if index == 0:
            parts.append(_wrapped(notes(comparison)))
    return "\n\n".join(parts) + "\n"


def as_markdown(comparison: Comparison) -> str:
    """Everything as a Markdown document."""
    parts = [f"# {title(comparison)}"]
    for index, (heading, table) in enumerate(all_tables(comparison)):
        parts += [f"## {heading}", markdown(table)]
        if index == 0:
            parts.append("\n".join(f"* {note}" for note in notes(comparison)))
    return "\n\n".join(parts) + "\n"
