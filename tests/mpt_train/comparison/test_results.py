"""Results, tables, plots and the report, on invented summaries."""

from __future__ import annotations

import base64
import dataclasses
import importlib.machinery
import importlib.util
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpt_train.comparison import report, tables
from mpt_train.comparison.plots import draw_all
from mpt_train.comparison.results import (
    Comparison,
    Failure,
    ResultsError,
    SeedResult,
    best_mpt,
    claims,
    differences,
    learning_curve,
    load,
    participation,
    save,
    summarize,
    summarize_swap,
)
from mpt_train.comparison.stats import mean_interval
from tests.mpt_train.comparison.summaries import MILESTONES, comparison, run_summary

PLOTS = {"learning_curves", "final_returns", "swap", "participation", "milestones"}


def changed(base: Comparison, method: str, **final: object) -> Comparison:
    """The comparison with one method's final evaluations changed."""
    methods = []
    for m in base.methods:
        if m.name == method:
            runs = tuple(
                SeedResult(r.seed, {**r.summary, "final": {**r.summary["final"], **final}})
                for r in m.runs
            )
            m = dataclasses.replace(m, runs=runs)
        methods.append(m)
    return dataclasses.replace(base, methods=tuple(methods))


def test_rows_are_means_over_seeds_of_means_over_worlds() -> None:
    found = comparison(("mpt", "monolithic"), seeds=(0, 3))
    row = summarize(found)[0]
    runs = [run_summary("mpt", seed) for seed in (0, 3)]
    means = [float(np.mean(run["final"]["returns"])) for run in runs]
    assert row.final == mean_interval(means)
    assert row.final.n == 2
    assert row.gflop == pytest.approx(400.0)
    assert row.wall_seconds == pytest.approx(275.0)
    cold = [run["cold_start"]["return_mean"] for run in runs]
    assert row.ratio.mean == pytest.approx(sum(means) / sum(cold))
    reached = [
        sum(run["final"]["metrics"][f"reached_{name}"] for name in MILESTONES) for run in runs
    ]
    assert row.milestones is not None
    assert row.milestones.mean == pytest.approx(np.mean(reached))


def test_results_come_back_from_the_file(tmp_path: Path) -> None:
    found = comparison(seeds=(0, 1), failures=(Failure("mpt", 7, "ValueError: x", "logs/x.txt"),))
    path = save(found, tmp_path)
    assert load(tmp_path) == found
    plain = json.loads(path.read_text())
    assert len(plain["methods"][0]["runs"][0]["summary"]["final"]["returns"]) == 3
    assert plain["statistics"]["rows"][0]["method"] == "mpt"
    assert plain["statistics"]["bootstrap"]["mpt"]["mean"] == pytest.approx(
        plain["statistics"]["rows"][0]["final"]["mean"]
    )


def test_files_that_are_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no results.json"):
        load(tmp_path)
    (tmp_path / "results.json").write_text('{"format": 1, "methods": []')
    with pytest.raises(ResultsError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "results.json").write_text('{"format": 99}')
    with pytest.raises(ResultsError, match="format 99"):
        load(tmp_path)
    (tmp_path / "results.json").write_text('{"format": 1, "methods": [3]}')
    with pytest.raises(ResultsError, match="not a file of results"):
        load(tmp_path)


def test_differences_are_paired_with_the_better_mpt_configuration() -> None:
    found = comparison()
    best = best_mpt(found)
    assert best is not None
    assert best.name == "mpt-plus"
    pairs = {d.second: d for d in differences(found)}
    assert set(pairs) == {m.name for m in found.methods} - {"mpt-plus"}
    other = found.method("router")
    assert other is not None
    expected = np.mean([best.final_returns[s] - other.final_returns[s] for s in range(5)])
    assert pairs["router"].interval.mean == pytest.approx(expected)
    assert all((d.adjusted or 0) >= (d.p_value or 0) for d in pairs.values())
    assert differences(comparison(("router", "monolithic"))) == []


def test_claims_follow_the_numbers() -> None:
    by_text = {c.text: c for c in claims(comparison())}
    assert by_text["mpt-plus is above round-robin, and the intervals are separate"].holds
    twice = "mpt-plus ends at least 2 times above its cold start"
    assert by_text[twice].holds
    weak = changed(changed(comparison(), "mpt-plus", return_mean=20.0), "mpt", return_mean=19.0)
    assert not {c.text: c for c in claims(weak)}[twice].holds
    assert claims(comparison(("monolithic", "router"))) == []


def test_one_seed_judges_nothing() -> None:
    one = comparison(seeds=(0,))
    assert [c.holds for c in claims(one)] == [None] * len(claims(comparison()))
    twice = claims(one)[0]
    assert re.match(r"\d\.\d\d times \(", twice.value), "the number is told all the same"
    assert {row[0] for row in tables.claim_table(one).cells} == {"one seed"}
    page = report._results(one)
    assert page.count('<td class="w">one seed</td>') == len(claims(one))
    # Where one side alone has more, their intervals cannot be compared either.
    found = comparison(seeds=(0, 1, 2))
    methods = [
        dataclasses.replace(m, runs=m.runs[:1]) if m.name == "monolithic" else m
        for m in found.methods
    ]
    told = {c.text: c.verdict for c in claims(dataclasses.replace(found, methods=tuple(methods)))}
    assert told.pop("mpt-plus is above monolithic, and the intervals are separate") == "one seed"
    assert set(told.values()) <= {"yes", "no"}


def test_a_method_that_only_had_its_cold_start_is_named() -> None:
    found = comparison()
    assert not any("was not trained" in note for note in tables.notes(found))
    for run in found.methods[0].runs:
        run.summary["steps"] = 0
    (note,) = [note for note in tables.notes(found) if "was not trained" in note]
    assert note == "mpt was not trained: its cold start alone took 400 of 400 GFLOP."
    # One seed that trained is enough.
    found.methods[0].runs[0].summary["steps"] = 3
    assert not any("was not trained" in note for note in tables.notes(found))


def test_swap_compares_with_the_best_other_coordination() -> None:
    rows = {row.method: row for row in summarize_swap(comparison())}
    row = rows["mpt-plus"]
    assert row.best_other == "graph-of-agents"
    assert row.ratio.mean == pytest.approx(
        row.returns["learned"].mean / row.returns["graph-of-agents"].mean
    )
    # Seeds whose swap is missing are left out on both sides.
    found = comparison()
    del found.swap["mpt"]["random"][2]
    assert {r.method: r for r in summarize_swap(found)}["mpt"].returns["learned"].n == 4
    found.swap["mpt"] = {"learned": {0: 1.0}}
    assert [r.method for r in summarize_swap(found)] == ["mpt-plus"]


def test_curves_meet_on_the_range_that_all_runs_cover() -> None:
    found = comparison(("mpt",), seeds=(0, 1))
    short = found.methods[0].runs[1].summary["curve"]
    del short[-4:]
    curve = learning_curve(found.methods[0], points=11)
    assert curve.gflop[0] == pytest.approx(8.0)
    assert curve.gflop[-1] == pytest.approx(short[-1]["flop"] / 1e9)
    first = [run.summary["curve"][0]["return_mean"] for run in found.methods[0].runs]
    assert curve.mean[0] == pytest.approx(np.mean(first))
    assert curve.low is not None
    assert curve.low[0] == pytest.approx(mean_interval(first).low)
    assert learning_curve(comparison(("mpt",), seeds=(0,)).methods[0]).low is None


def test_participation_is_a_mean_over_seeds() -> None:
    method = comparison(("mpt",), seeds=(0, 1)).methods[0]
    shares = participation(method, "final")
    runs = [run.summary["final"]["participation"]["miner"] for run in method.runs]
    assert shares["miner"] == pytest.approx(np.mean(runs, axis=0))


# -- tables ----------------------------------------------------------------------------------


def test_text_table_is_aligned_and_complete() -> None:
    text = tables.as_text(comparison(failures=(Failure("router", 4, "ValueError: no"),)))
    lines = text.splitlines()
    assert lines[0] == "Comparison on crafting/iron-pickaxe-v0: 400 GFLOP a run, 5 training seeds"
    head = next(i for i, line in enumerate(lines) if line.startswith("method"))
    rows = lines[head + 2 : head + 10]
    assert len({len(line) for line in rows}) == 1
    assert re.match(r"mpt-plus +\d+\.\d ± \d+\.\d", rows[1])
    assert "FAILED: router, seed 4: ValueError: no" in text
    assert "The scripted expert reaches 61.3" in text
    assert "learned / best other" in text


def test_one_seed_has_no_intervals_in_the_table() -> None:
    found = comparison(("mpt", "monolithic"), seeds=(0,))
    table = tables.main_table(found)
    assert "±" not in "".join(table.cells[0])
    assert "Methods with one training seed have no interval." in tables.as_text(found)


def test_a_task_without_milestones_or_success() -> None:
    metrics = {"return": 1.0}
    found = changed(comparison(("mpt", "monolithic"), seeds=(0, 1)), "mpt", metrics=metrics)
    found = changed(found, "monolithic", metrics=metrics, success=float("nan"))
    table = tables.main_table(found)
    assert "milestones" not in table.heads
    assert table.cells[1][table.heads.index("success")] == "-"


def test_no_finished_run_still_says_what_failed() -> None:
    empty = dataclasses.replace(
        comparison(("mpt",)), methods=(), failures=(Failure("mpt", 0, "out of memory"),)
    )
    text = tables.as_text(empty)
    assert "No run has finished." in text
    assert "FAILED: mpt, seed 0: out of memory" in text


def test_markdown_has_as_many_cells_in_every_line() -> None:
    for block in tables.as_markdown(comparison()).split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (247, "4:07"), (7447, "2:04:07")]
)
def test_duration(seconds: float, text: str) -> None:
    assert tables.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1234, "1.23 k"), (1.5e6, "1.5 M")]
)
def test_count(value: float, text: str) -> None:
    assert tables.count(value) == text


# -- plots and report ------------------------------------------------------------------------


class Page(HTMLParser):
    """Checks that tags are closed, and collects links, images and text."""

    VOID = frozenset({"meta", "img", "br", "hr", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(values["src"] or "")
            assert values["alt"]
        if tag == "a":
            self.targets.append(values["href"] or "")
        if "id" in values:
            self.ids.append(values["id"] or "")
        assert tag not in ("script", "link", "iframe")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_outputs_hold_everything_and_need_no_network(tmp_path: Path) -> None:
    failure = Failure("router", 4, "ValueError: <b> & co", "logs/router_seed_4.error.txt")
    plots = report.write_outputs(comparison(failures=(failure,)), tmp_path)
    assert {plot.name for plot in plots} == PLOTS
    for plot in plots:
        with Image.open(plot.png) as picture:
            assert picture.width >= 1200
            assert len(picture.convert("L").getcolors(1 << 16) or []) > 20, "an empty picture"
        numbers = json.loads(plot.png.with_suffix(".json").read_text())
        assert numbers["caption"] == plot.caption
        assert "mpt" in numbers["methods"]
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(html)
    assert len(page.images) == len(PLOTS)
    for source in page.images:
        assert base64.b64decode(source.removeprefix("data:image/png;base64,")).startswith(
            b"\x89PNG"
        )
    assert {target.removeprefix("#") for target in page.targets} == set(page.ids)
    outside = re.sub(r'src="data:[^"]*"', "", html)
    assert not re.search(r"https?://|@import|url\(", outside)
    words = " ".join(page.words)
    assert "ValueError: <b> & co" in words
    assert "mpt compare crafting/iron-pickaxe-v0" in words
    for method in comparison().methods:
        assert method.description in words
    for name in ("table.txt", "table.md", "results.json"):
        assert (tmp_path / name).stat().st_size > 100


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    found = comparison(("mpt", "monolithic"), seeds=(0, 1))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    report.write_outputs(found, tmp_path / "a")
    save(found, tmp_path / "b")
    assert report.main([str(tmp_path / "b")]) == 0
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) > 10
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_plots_of_little(tmp_path: Path) -> None:
    """One method, one seed, no swap, no expert, no milestones, one role."""
    found = comparison(("monolithic",), seeds=(0,))
    found = changed(
        found, "monolithic", metrics={"return": 1.0}, participation={"agent": [1.0] * 12}
    )
    found = dataclasses.replace(found, reference=None)
    plots = draw_all(found, tmp_path)
    assert {plot.name for plot in plots} == {"learning_curves", "final_returns"}
    assert draw_all(dataclasses.replace(found, methods=()), tmp_path) == []


def test_an_interrupted_experiment_says_so(tmp_path: Path) -> None:
    found = dataclasses.replace(comparison(("mpt",), seeds=(0,)), complete=False)
    report.write_outputs(found, tmp_path)
    assert "interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Interrupted" in (tmp_path / "table.txt").read_text(encoding="utf-8")


def test_report_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([]) == 2
    assert report.main(["--help"]) == 0
    assert report.main([str(tmp_path)]) == 1
    assert "holds no results.json" in capsys.readouterr().err


def test_another_distribution_with_a_folder_of_our_name_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As TorchRL brings one, which an installation for development then takes for the package."""
    (tmp_path / "site" / "benchmarks").mkdir(parents=True)
    spec = importlib.machinery.PathFinder.find_spec("benchmarks", [str(tmp_path / "site")])
    assert spec is not None and spec.origin is None
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "benchmarks", importlib.util.module_from_spec(spec))
        report.write_outputs(comparison(), tmp_path)
    style = (Path(report.__file__).parent / "report.css").read_text(encoding="utf-8")
    assert style.strip() in (tmp_path / "report.html").read_text(encoding="utf-8")
