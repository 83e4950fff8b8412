"""The report: one HTML page that holds everything, pictures included, and needs no network.

Run ``python -m mpt_train.comparison.report FOLDER`` to make tables, plots and page again from
results.json.
"""

from __future__ import annotations

import base64
import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpt_train.comparison.plots import Plot, draw_all, style_of
from mpt_train.comparison.results import (
    Comparison,
    MethodResult,
    ResultsError,
    claims,
    load,
    milestones_of,
    save,
    summarize,
)
from mpt_train.comparison.tables import (
    Table,
    as_markdown,
    as_text,
    count,
    difference_table,
    duration,
    main_table,
    notes,
    number,
    swap_table,
    title,
)

REPORT = "report.html"


def write_outputs(comparison: Comparison, folder: Path) -> list[Plot]:
    """Write results.json, the tables, the plots and the report.

    Returns:
        The plots.
    """
    save(comparison, folder)
    (folder / "table.txt").write_text(as_text(comparison), encoding="utf-8")
    (folder / "table.md").write_text(as_markdown(comparison), encoding="utf-8")
    plots = draw_all(comparison, folder / "plots")
    (folder / REPORT).write_text(page(comparison, plots), encoding="utf-8")
    return plots


def page(comparison: Comparison, plots: Sequence[Plot]) -> str:
    """The whole page."""
    # Not by the name of the package: another distribution may bring a folder of that name.
    css = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    sections = [
        ("results", "Results", _results(comparison)),
        *[(plot.name, plot.title, _figure(plot)) for plot in plots if plot.name != "swap"],
        ("coordination", "Swapping the coordination", _swap(comparison, plots)),
        ("differences", "Differences on the same training seeds", _differences(comparison)),
        ("runs", "Every run", _runs(comparison)),
        ("methods", "The methods and their configurations", _configurations(comparison)),
        ("reproduce", "How to make these results again", _reproduce(comparison)),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{_text(heading)}</a>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}"><h2>{_text(heading)}</h2>{content}</section>'
        for name, heading, content in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title(comparison))}</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{_text(title(comparison))}</h1>\n{_lead(comparison)}"
        f"<nav>{links}</nav>\n{_facts(comparison)}{_warnings(comparison)}{body}\n"
        "<footer>Made from results.json by <code>python -m mpt_train.comparison.report</code>. "
        "The numbers behind each picture are in the file of the same name with the suffix .json."
        "</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)


# -- the head --------------------------------------------------------------------------------


def _lead(comparison: Comparison) -> str:
    if comparison.kind == "ablation":
        what = (
            "Each line changes one option of a configuration of market-based post-training and "
            "leaves the rest as it is."
        )
    else:
        what = (
            "All methods run through the same environment, rollout and training loop, start from "
            "the same demonstrations and spend the same compute. They are judged on held-out "
            "worlds."
        )
    return f'<p class="lead">{what}</p>\n'


def _facts(comparison: Comparison) -> str:
    seen = comparison.provenance
    seeds = sorted({run.seed for method in comparison.trained for run in method.runs})
    final = next((run.final for method in comparison.trained for run in method.runs), {})
    facts = [
        ("task", comparison.task),
        ("compute of a run", f"{comparison.budget_gflop:g} GFLOP"),
        ("training seeds", ", ".join(map(str, seeds)) or "none"),
        ("held-out worlds", f"{final.get('worlds', '-')}, {final.get('repeats', '-')} times each"),
        ("mode", comparison.mode),
        ("date (UTC)", str(seen.get("date", "-"))[:16].replace("T", " ")),
        ("machine", _machine(seen)),
    ]
    if "wall_seconds" in seen:
        facts.append(("time", duration(float(seen["wall_seconds"]))))
    if seen.get("revision"):
        facts.append(("revision", str(seen["revision"])))
    cells = "".join(
        f'<div><div class="name">{_text(name)}</div><div class="value">{_text(value)}</div></div>'
        for name, value in facts
    )
    return f'<div class="facts">{cells}</div>\n'


def _machine(seen: dict[str, Any]) -> str:
    jobs = seen.get("jobs", 1)
    return f"{seen.get('processor', 'unknown')}, {jobs} run{'s' if jobs != 1 else ''} at a time"


def _warnings(comparison: Comparison) -> str:
    lines = [
        f"<b>{_text(f.method)}{'' if f.seed is None else f', seed {f.seed}'}</b> failed: "
        f"{_text(f.reason)}" + (f" (see {_text(f.details)})" if f.details else "")
        for f in comparison.failures
    ]
    if not comparison.complete:
        lines.append("The experiment was interrupted: not every run has been made.")
    return "".join(f'<div class="warn">{line}</div>\n' for line in lines)


# -- sections --------------------------------------------------------------------------------


def _table(table: Table, colours: dict[str, str] | None = None, best: str | None = None) -> str:
    colours = colours or {}
    head = "".join(
        f'<th class="{"w" if i < table.words else ""}">{_text(cell)}</th>'
        for i, cell in enumerate(table.heads)
    )
    rows = []
    for line in table.cells:
        cells = []
        for i, cell in enumerate(line):
            kind = "w" if i < table.words else ""
            style = ""
            if i == 0 and cell in colours:
                kind += " swatch"
                style = f' style="--swatch:{colours[cell]}"'
            cells.append(f'<td class="{kind}"{style}>{_text(cell)}</td>')
        rows.append(f'<tr class="{"best" if line[0] == best else ""}">{"".join(cells)}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _results(comparison: Comparison) -> str:
    if not comparison.trained:
        return "<p>No run has finished.</p>"
    colours = {m.name: style_of(comparison, m.name)[0] for m in comparison.methods}
    best = max(summarize(comparison), key=lambda row: row.final.mean).method
    parts = [_table(main_table(comparison), colours, best)]
    plain = [n for n in notes(comparison) if not n.startswith(("FAILED", "Interrupted"))]
    parts += [f'<p class="note">{_text(note)}</p>' for note in plain]
    found = claims(comparison)
    if found:
        rows = "".join(
            f'<tr><td class="w{"" if c.holds is None else f" {c.verdict}"}">{c.verdict}</td>'
            f'<td class="w wrap">{_text(c.text)}</td><td class="w">{_text(c.value)}</td></tr>'
            for c in found
        )
        parts.append(
            "<h3>What these results support</h3>"
            f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
        )
    return "".join(parts)


def _figure(plot: Plot) -> str:
    data = base64.b64encode(plot.png.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{_text(plot.title)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{_text(plot.caption)}</figcaption></figure>"
    )


def _swap(comparison: Comparison, plots: Sequence[Plot]) -> str:
    table = swap_table(comparison)
    if not table.cells:
        return ""
    figures = "".join(_figure(plot) for plot in plots if plot.name == "swap")
    return figures + _table(table)


def _differences(comparison: Comparison) -> str:
    table = difference_table(comparison)
    if not table.cells:
        return ""
    return (
        '<p class="note">Paired by training seed: both methods of a pair have the same '
        "demonstrations and the same training worlds. p: paired t-test, Holm-corrected over the "
        f"lines of this table.</p>{_table(table)}"
    )


def _runs(comparison: Comparison) -> str:
    parts = []
    for method in comparison.trained:
        parts.append(
            f"<details><summary>{_text(method.title)} <code>{_text(method.name)}</code>"
            f"</summary>{_table(_runs_table(comparison, method))}</details>"
        )
    return "".join(parts)


def _runs_table(comparison: Comparison, method: MethodResult) -> Table:
    coordinations = [c for c in comparison.swap.get(method.name, {}) if c != "learned"]
    heads = ["seed", "return", "cold start", "success", "milestones", "turns", "GFLOP"]
    heads += ["experience", "updates", "time", *[f"with {c}" for c in coordinations]]
    cells = []
    for run in method.runs:
        milestones = milestones_of(run.final)
        swapped = comparison.swap.get(method.name, {})
        cells.append(
            [
                str(run.seed),
                number(run.final["return_mean"], 2),
                number(run.cold_start["return_mean"], 2),
                f"{100 * run.final['success']:.1f} %",
                number(sum(milestones.values()), 2) if milestones else "-",
                number(run.final["turns_mean"]),
                number(run.gflop),
                count(run.summary["turns"]),
                str(run.summary["steps"]),
                duration(run.summary["wall_seconds"]),
                *[number(swapped[c].get(run.seed, float("nan")), 2) for c in coordinations],
            ]
        )
    return Table(heads, cells)


def _configurations(comparison: Comparison) -> str:
    return "".join(
        f"<details><summary>{_text(m.title)} <code>{_text(m.name)}</code></summary>"
        f"<p>{_text(m.description)}</p><pre><code>{_text(json.dumps(m.config, indent=2))}"
        "</code></pre></details>"
        for m in comparison.methods
    )


def _reproduce(comparison: Comparison) -> str:
    seen = comparison.provenance
    versions = ", ".join(f"{k} {v}" for k, v in seen.get("versions", {}).items())
    lines = [f"<pre><code>{_text(seen.get('command', ''))}</code></pre>"]
    if versions:
        lines.append(
            f'<p class="note">With Python {_text(seen.get("python", "-"))}, {_text(versions)}, on '
            f"{_text(seen.get('system', '-'))}. The same versions on the same kind of processor "
            "give the same numbers, whatever the number of runs at a time.</p>"
        )
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the outputs of results folders again."""
    folders = list(sys.argv[1:] if arguments is None else arguments)
    if not folders or any(folder.startswith("-") for folder in folders):
        print("usage: python -m mpt_train.comparison.report FOLDER [FOLDER ...]", file=sys.stderr)
        return 0 if {"-h", "--help"} & set(folders) else 2
    for folder in map(Path, folders):
        try:
            write_outputs(load(folder), folder)
        except ResultsError as error:
            print(error, file=sys.stderr)
            return 1
        print(folder / REPORT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
