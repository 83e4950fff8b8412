"""The comparison: what is planned, and small ones on the real trainer."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpt_envs import UnknownTaskError, make_task, registry
from mpt_train.comparison import command as compare
from mpt_train.comparison import experiment
from mpt_train.comparison.command import CompareConfig, plan_of
from mpt_train.comparison.domains import DOMAINS, Tuned
from mpt_train.comparison.experiment import make_jobs, prepare_folder, run_experiment
from mpt_train.comparison.jobs import RunProgress
from mpt_train.comparison.results import load, summarize_swap
from mpt_train.comparison.runner import State
from mpt_train.errors import RunFolderError, UsageError
from mpt_train.methods import METHODS
from tests.mpt_train.comparison.small import plan, variant
from wrappers.errors import MarketError

ROOT = Path(__file__).resolve().parents[3]


# -- what is planned -------------------------------------------------------------------------


def test_the_full_comparison_is_every_method_at_the_same_compute() -> None:
    found = plan_of(CompareConfig())
    assert [v.name for v in found.variants] == list(METHODS)
    assert len({v.config.budget_gflop for v in found.variants}) == 1
    assert len({v.config.eval for v in found.variants}) == 1
    assert len({v.config.cold_start for v in found.variants}) == 1
    assert found.seeds == (0, 1, 2, 3, 4)
    assert [v.name for v in found.variants if v.swap] == ["mpt", "mpt-plus"]
    for v in found.variants:
        method = METHODS[v.name].config
        assert (v.config.action, v.config.bids) == (method.action, method.bids)


def test_quick_is_a_part_of_the_full_comparison() -> None:
    quick, full = plan_of(CompareConfig(quick=True)), plan_of(CompareConfig())
    assert {v.name for v in quick.variants} <= {v.name for v in full.variants}
    assert {"mpt", "mpt-plus", "monolithic", "round-robin", "random-bids"} <= {
        v.name for v in quick.variants
    }
    assert quick.variants[0].config.budget_gflop < full.variants[0].config.budget_gflop
    assert len(quick.seeds) >= 2
    assert "-quick-" in quick.out.name


def test_the_help_says_what_the_presets_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"None: {compare.FULL.seeds} ({compare.QUICK.seeds} with --quick)" in text
    for name, domain in DOMAINS.items():
        numbers = f"{name} {domain.full_gflop:g} ({domain.quick_gflop:g}"
        assert re.search(rf"\b{re.escape(numbers)}( with --quick)?\)", text)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_has_settings_that_its_tasks_can_use(domain: str) -> None:
    tasks = [task for task in registry if task.split("/")[0] == domain]
    assert tasks
    settings = DOMAINS[domain]
    assert settings.quick_gflop < settings.full_gflop
    for quick in (False, True):
        found = plan_of(CompareConfig(task=tasks[0], quick=quick))
        assert {v.config.budget_gflop for v in found.variants} == {settings.budget(quick)}
        assert {v.config.priority for v in found.variants} == {settings.priority}
        for v in found.variants:
            method = METHODS[v.name].config
            assert v.config.num_envs == settings.batch * method.num_envs
            tuned = settings.tuned.get(v.name, Tuned()).apply(method)
            assert v.config.optimizer == tuned.optimizer
            assert (v.config.action, v.config.bids) == (tuned.action, tuned.bids)
    assert set(settings.priority) == set(make_task(tasks[0]).roles)
    assert set(settings.tuned) <= set(METHODS)


def test_quick_is_expected_to_take_less_than_six_minutes_on_two_cores(tmp_path: Path) -> None:
    quick = plan_of(CompareConfig(quick=True, jobs=2, out=tmp_path))
    assert State(2, make_jobs(quick, set())).remaining() < 300


def test_tuned_settings_change_what_they_name_only() -> None:
    base = METHODS["mpt-plus"].config
    assert Tuned().apply(base) == base
    found = Tuned(learning_rate=0.5, entropy=0.25, minibatches=3).apply(base)
    assert (found.optimizer.learning_rate, found.optimizer.minibatches) == (0.5, 3)
    assert (found.action.entropy, found.bids.entropy) == (0.25, 0.25)
    assert (
        dataclasses.replace(found, optimizer=base.optimizer, action=base.action, bids=base.bids)
        == base
    )


def test_options_reach_the_runs_and_the_command() -> None:
    config = CompareConfig(
        task="crafting/torch-v0",
        methods=("mpt", "router"),
        seeds=3,
        budget_gflop=7.5,
        agents=6,
        dropout=0.1,
        max_turns=40,
        jobs=4,
        out=Path("somewhere"),
    )
    found = plan_of(config)
    assert found.jobs == 4
    assert found.out == Path("somewhere")
    assert len(found.seeds) == 3
    for v in found.variants:
        assert v.config.task == "crafting/torch-v0"
        assert v.config.budget_gflop == 7.5
        assert (v.config.env.agents, v.config.env.dropout) == (6, 0.1)
        assert v.config.env.max_turns == 40
    assert found.command == (
        "mpt compare crafting/torch-v0 --methods mpt router --seeds 3 --budget-gflop 7.5 "
        "--agents 6 --dropout 0.1 --max-turns 40"
    )
    assert plan_of(CompareConfig(quick=True)).command.endswith("iron-pickaxe-v0 --quick")


def test_a_population_leaves_the_monolithic_policy_out() -> None:
    names = [v.name for v in plan_of(CompareConfig(agents=6)).variants]
    assert "monolithic" not in names
    assert "mpt" in names


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CompareConfig(methods=("mtp",)), "did you mean mpt"),
        (CompareConfig(methods=("mpt", "mpt")), "named twice: mpt"),
        (CompareConfig(seeds=0), "--seeds must be at least 1"),
        (CompareConfig(budget_gflop=-1), "--budget-gflop must be positive"),
        (CompareConfig(jobs=0), "--jobs must be at least 1"),
    ],
)
def test_senseless_requests(config: CompareConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_of(config)


def test_command_line_errors_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="did you mean mpt"):
        compare.main(["--methods", "mtp"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget-gflop", "nan"], "--budget-gflop must be positive"),
        (["--budget-gflop", "inf"], "budget_gflop must be a finite number above 0"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--agents", "4"], "multiple of 3"),
        (["--agents", "-3"], "agents must be an int of at least 1"),
        (["--dropout", "1"], "dropout must be a probability"),
        (["--dropout", "nan"], "dropout must be a probability"),
        (["--methods", "monolithic", "--dropout", "0.1"], "neither agents nor dropout"),
        (["--backend", "nowhere"], "no backend 'nowhere'"),
        (["crafting/nothing-v9"], "no task is registered"),
        (["no_such_module:x/y-v0"], "cannot import 'no_such_module'"),
    ],
)
def test_what_no_run_could_do_is_told_once_and_makes_no_folder(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(MarketError, match=message):
        compare.main([*arguments, "--quick", "--out", str(out)])
    assert not out.exists()


def test_results_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up at the very end: what was trained is there, and --resume goes on."""
    good = plan(tmp_path / "out", variant("round-robin"))

    def full(*arguments: object) -> list[str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(experiment, "write_outputs", full)
        with pytest.raises(RunFolderError, match=r"No space left on device; make room .* --resume"):
            run_experiment(good, io.StringIO())
    again = dataclasses.replace(good, resume=True)
    assert make_jobs(again, prepare_folder(again)) == []
    assert run_experiment(again, io.StringIO()) == 0
    assert [len(m.runs) for m in load(good.out).methods] == [2]


@pytest.mark.parametrize("text", ["", "{", "[]]"])
def test_a_damaged_evaluation_is_named(tmp_path: Path, text: str) -> None:
    good = plan(tmp_path / "out", variant("round-robin"))
    good.out.mkdir()
    good.reference_file.write_text(text)
    with pytest.raises(RunFolderError, match=r"reference\.json is damaged: .*delete it"):
        experiment.collect(good, [])


def test_resume_finds_the_latest_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError, match="to resume: name one with --out"):
        plan_of(CompareConfig(quick=True, resume=True))
    for stamp in ("20300101-000000", "20300102-000000"):
        (tmp_path / "results" / f"crafting-iron-pickaxe-v0-quick-{stamp}").mkdir(parents=True)
    found = plan_of(CompareConfig(quick=True, resume=True))
    assert found.out.name.endswith("20300102-000000")


# -- the results folder ----------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunFolderError, match="is not empty: continue what it holds with --resume"):
        run_experiment(plan(tmp_path, variant("mpt")), io.StringIO())
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match=r"cannot be used: .*name another --out"):
        run_experiment(plan(tmp_path / "file" / "results", variant("mpt")), io.StringIO())


def test_an_unknown_task_is_noticed_before_anything_is_made(tmp_path: Path) -> None:
    wrong = variant("mpt", task="crafting/iron-pickax-v0")
    with pytest.raises(UnknownTaskError, match="iron-pickaxe-v0"):
        run_experiment(plan(tmp_path / "new", wrong), io.StringIO())
    assert not (tmp_path / "new").exists()


def test_progress_is_read_from_the_end_of_the_log(tmp_path: Path) -> None:
    progress = RunProgress(tmp_path, 10.0)
    assert progress() == 0.0
    lines = [
        {"step": 1, "kind": "train", "flop": 2.5e9},
        {"step": 2, "kind": "train", "flop": 4e9},
        {"step": 2, "kind": "note"},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text + '\n{"step": 3, "flo')
    progress._read_at -= 2.0
    assert progress() == pytest.approx(0.4)


# -- on the real trainer ---------------------------------------------------------------------


def test_an_experiment_and_its_resumption(tmp_path: Path) -> None:
    """Two methods, two seeds, one of them with a variant that cannot be trained."""
    good = (variant("mpt-plus"), variant("round-robin"))
    market = dataclasses.replace(METHODS["router"].config.action, credit="market")
    bad = variant("router", action=market)
    out = tmp_path / "results"
    stream = io.StringIO()
    assert run_experiment(plan(out, *good, bad), stream) == 1
    text = stream.getvalue()
    assert "FAILED router seed 0: ValueError: coordination 'router' bids 1" in text
    assert "to try again: mpt compare small" in text
    assert "Traceback" in (out / "logs" / "router_seed_0.error.txt").read_text()
    first = load(out)
    assert [f.method for f in first.failures] == ["router", "router"]
    assert [len(m.runs) for m in first.methods] == [2, 2, 0]
    assert set(first.swap) == {"mpt-plus"}
    assert {len(seeds) for seeds in first.swap["mpt-plus"].values()} == {2}
    assert len(summarize_swap(first)[0].returns) == 5
    assert first.reference is not None
    assert first.reference > 0
    for method in first.trained:
        for run in method.runs:
            budget = method.config["budget_gflop"] * 1e9
            assert run.summary["flop"] >= budget
            final = run.final
            assert final["return_mean"] == pytest.approx(sum(map(sum, final["returns"])) / 8)
            swapped = first.swap["mpt-plus"]["learned"]
            if method.name == "mpt-plus":
                assert swapped[run.seed] == final["return_mean"]
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "router" in html

    # What is finished is kept; what failed is tried again, and nothing else.
    again = plan(out, *good, resume=True)
    assert make_jobs(again, prepare_folder(again)) == []
    stream = io.StringIO()
    assert run_experiment(again, stream) == 0
    assert "4 runs are finished already and are kept" in stream.getvalue()
    second = load(out)
    assert second.methods == first.methods[:2]
    assert second.swap == first.swap

    # Other settings do not mix with these runs.
    other = plan(out, variant("mpt-plus", budget=0.03), resume=True)
    with pytest.raises(RunFolderError, match=r"other settings \(budget_gflop: 0.02 -> 0.03\)"):
        prepare_folder(other)


def start(folder: Path, budget: float, resume: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.mpt_train.comparison.small",
            str(folder),
            str(budget),
            resume,
        ],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_ctrl_c_and_resume_end_at_the_same_numbers(tmp_path: Path) -> None:
    budget = 0.1
    folder = tmp_path / "interrupted"
    program = start(folder, budget, "new")
    running = folder / "runs" / "mpt-plus" / "seed-0" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (running.exists() and running.read_text().count('"train"') >= 2):
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(program.pid, signal.SIGINT)
    output, errors = program.communicate(timeout=60)
    assert program.returncode == 130, output + errors
    assert "Continue with: mpt compare small --out" in output
    assert "Traceback" not in errors
    assert not load(folder).complete

    program = start(folder, budget, "resume")
    output, errors = program.communicate(timeout=200)
    assert program.returncode == 0, output + errors
    whole = tmp_path / "whole"
    program = start(whole, budget, "new")
    program.communicate(timeout=200)
    resumed, straight = load(folder), load(whole)
    assert resumed.complete
    assert resumed.swap == straight.swap
    for a, b in zip(resumed.methods, straight.methods, strict=True):
        assert a.config == b.config
        for run, other in zip(a.runs, b.runs, strict=True):
            one, two = dict(run.summary), dict(other.summary)
            one.pop("wall_seconds"), two.pop("wall_seconds")
            assert one == two
