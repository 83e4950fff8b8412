"""The program `mpt`: help, exit codes, messages, and what the commands do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from mpt_envs import register, registry
from mpt_train.cli import console
from mpt_train.cli import main as program
from mpt_train.cli.main import COMMANDS, main
from mpt_train.cli.train import default_folder, parse
from mpt_train.errors import TrainingInterrupted
from mpt_train.methods import METHODS, method_config
from mpt_train.runs.checkpoint import load_checkpoint
from mpt_train.runs.folder import RunFolder
from tests.mpt_train.relay import RELAY, register_relay
from tests.mpt_train.runs import assert_same_run
from tests.toys import RelayTask
from wrappers.errors import MarketError
from wrappers.task import Coverage, TurnTask

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    *("--task", RELAY, "--num-envs", "8", "--budget-gflop", "0.004", "--network.hidden", "8"),
    *("--cold-start.episodes", "6", "--cold-start.epochs", "2", "--eval.worlds", "6"),
    *("--eval.repeats", "2", "--eval.curve-points", "2", "--eval.curve-worlds", "4"),
]

SERVER = ("--engine", "http://localhost:1/v1")

ALONE = "toys/without-expert-v0"

Result = tuple[int, str, str]
Call = Callable[..., Result]


class AloneTask(RelayTask):
    """The relay without an expert."""

    expert_bid = TurnTask.expert_bid
    expert_action = TurnTask.expert_action


@pytest.fixture
def mpt(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the program in this process: exit code, standard output, standard error."""
    register_relay()

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    register_relay()
    folder = tmp_path_factory.mktemp("runs") / "mine"
    assert main(["train", "mpt-plus", *TINY, "--folder", str(folder)]) == 0
    return folder


# -- help --------------------------------------------------------------------------------------


def test_help_names_every_command_and_shows_examples(mpt: Call) -> None:
    for arguments in (["--help"], ["-h"], ["help"]):
        code, out, _ = mpt(*arguments)
        assert code == 0
        assert all(name in out for name in COMMANDS)
        assert "examples:" in out
    code, out, _ = mpt()
    assert code == 2
    assert "usage: mpt COMMAND" in out


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "compare"])
def test_every_command_explains_itself(mpt: Call, command: str) -> None:
    code, out, _ = mpt(command, "--help")
    assert code == 0
    assert f"usage: mpt {command}" in out


def test_help_of_train_shows_the_methods_defaults(mpt: Call) -> None:
    _, out, _ = mpt("train", "--help")
    assert all(name in out for name in METHODS)
    for option in ("--task", "--budget-gflop", "--bids.contested-turns", "--resume", "--folder"):
        assert option in out
    _, mine, _ = mpt("train", "round-robin", "--help")
    default = "(default: discounted)"
    # Without the frames and line breaks of the page.
    assert default in " ".join(mine.replace("│", "").split())
    assert default not in " ".join(out.replace("│", "").split())


def test_help_is_quick() -> None:
    """Help loads neither torch nor a domain."""
    code = (
        "import sys, time; started = time.perf_counter()\n"
        "from mpt_train.cli.main import main\n"
        "main(['--help'])\n"
        "for command in ('train', 'eval', 'play'):\n"
        "    try: main([command, '--help'])\n"
        "    except SystemExit: pass\n"
        "heavy = {'torch', 'matplotlib', 'mpt_envs.crafting', 'tensorboard'} & set(sys.modules)\n"
        "sys.exit(f'loads {heavy}' if heavy else 0)\n"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 10


def test_lists(mpt: Call) -> None:
    code, out, _ = mpt("tasks")
    assert code == 0
    assert "crafting/iron-pickaxe-v0" in out
    assert RELAY in out
    code, out, _ = mpt("methods")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(METHODS)


# -- wrong usage -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "no command 'trian'; did you mean train"),
        (["dance"], "mpt --help lists them"),
        (["train", "mpt-puls"], "unknown method 'mpt-puls'; did you mean mpt-plus"),
        (["train", "--method=mtp"], "did you mean mpt"),
        (["train", "--task", "crafting/iron-pickax-v0"], "Did you mean: crafting/iron-pickaxe-v0"),
        (["train", "--no-such-option", "3"], "--no-such-option"),
        (["train", "--seed", "three"], "--seed"),
        (["train", *TINY, "--num-envs", "0"], "num_envs must be at least 1"),
        (["train", *TINY, "--threads", "0"], "--threads must be at least 1"),
        (["train", *TINY, "--env.agents", "3"], "multiple of 2"),
        (["train", *TINY, "--env.bid-levels", "many"], "unknown bid levels"),
        (["train", *TINY, "--env.backend", "nowhere"], "no backend 'nowhere'"),
        (["train", "round-robin", *TINY, "--action.credit", "market"], "--action.credit"),
        (["eval"], "RUN"),
        (["eval", "somewhere", "--worlds", "0"], "--worlds must be at least 1"),
        (["eval", RELAY, "--engine-model", "m"], "give its address as --engine"),
        (["eval", RELAY, *SERVER, "--checkpoint", "cold_start"], "leave out --engine"),
        (["eval", RELAY, *SERVER, "--backend", "nowhere"], "no backend 'nowhere'"),
        (["eval", RELAY, "--engine", "http://localhost:1/v1?x=1"], "a query or a fragment"),
        (["train", *TINY, "--policy", "language", "--language.engine", SERVER[1]], "mpt eval RUN"),
        (["play", "toys/rely-v0"], "Did you mean: toys/relay-v0"),
        (["play", RELAY, "--policy", "run"], "needs a run folder"),
        (["play", RELAY, "--coordination", "router"], "has to be trained"),
        (["play", RELAY, "--coordination", "nobody"], "unknown coordination"),
        (["play", RELAY, "--as", "gif", "--pictures"], "--pictures is for text"),
        (["play", RELAY, "--as", "gif", "--fps", "0"], "fps"),
        (["play", RELAY, "--out", "no/such/folder/x.txt"], "cannot be written"),
    ],
)
def test_wrong_usage_is_explained_with_exit_code_2(
    mpt: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = mpt(*arguments)
    assert message in errors
    assert code == 2
    assert not list(tmp_path.glob("runs/*/*/checkpoint")), "nothing was trained"


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPT_DEBUG", "0")
    with pytest.raises(Exception, match="no such folder"):
        main(["eval", str(tmp_path / "missing"), "--debug"])


def test_our_own_mistakes_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str], prog: str) -> int:
        raise ValueError("a mistake of the program")

    monkeypatch.setattr("mpt_train.cli.listings.tasks", broken)
    with pytest.raises(ValueError, match="mistake"):
        main(["tasks"])


def _kinds(error: type[MarketError]) -> list[type[MarketError]]:
    return [error, *(kind for own in error.__subclasses__() for kind in _kinds(own))]


@pytest.mark.parametrize("kind", _kinds(MarketError), ids=lambda kind: kind.__name__)
def test_every_error_of_ours_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: type[MarketError]
) -> None:
    monkeypatch.delenv(console.DEBUG, raising=False)
    error = kind("this cannot be; do that")

    def command() -> int:
        raise error

    assert console.run(command) in (1, 2)
    assert capsys.readouterr().err == "mpt: this cannot be; do that\n"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["play", ALONE], "--policy random"),
        (["play", ALONE, "--coordination", "round-robin"], "--policy random"),
        (["demos", ALONE, "--out", "demos.jsonl"], "implement expert_bid and expert_action"),
        (["train", "--task", ALONE, "--folder", "run"], "--cold-start.episodes 0"),
        (["train", "router", "--task", ALONE, "--folder", "run"], "--cold-start.episodes 0"),
        (["train", "monolithic", "--task", ALONE, "--folder", "run"], "--cold-start.episodes 0"),
    ],
)
def test_a_task_without_an_expert(
    mpt: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], advice: str
) -> None:
    if ALONE not in registry:
        register(ALONE, task=AloneTask)
    monkeypatch.chdir(tmp_path)
    code, _, errors = mpt(*arguments)
    assert code == 2
    last = errors.splitlines()[-1]
    assert last.startswith("mpt: ") and "no scripted expert" in last and advice in last
    # A second try with what was advised must find the folder free.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (TrainingInterrupted(Path("x"), 3, 2), 130, "mpt train --resume --folder x"),
        (TrainingInterrupted(None, 3, 15), 143, "after step 3"),
    ],
)
def test_exit_codes_of_interruptions(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    def command() -> int:
        raise error

    assert console.run(command) == code
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpt_train.cli.main", "tasks"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    assert done.stderr == (
        "mpt: the output cannot be written: No space left on device; make room, then try again\n"
    )


def test_too_little_memory(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        raise MemoryError("Unable to allocate 7 EiB")

    assert console.run(command) == 1
    assert "not enough memory for this: Unable to allocate 7 EiB" in capsys.readouterr().err


# -- train -------------------------------------------------------------------------------------


def test_options_change_the_methods_configuration() -> None:
    parsed = parse(["round-robin", "--seed", "4", "--network.hidden", "8", "16"])
    base = method_config("round-robin", seed=4)
    assert parsed.config.network.hidden == (8, 16)
    assert parsed.config.action == base.action
    assert parsed.config.coordination == "round-robin"
    assert default_folder(parsed.config) == Path("runs/crafting-iron-pickaxe-v0/round-robin-seed-4")
    assert parse(["--method", "mpt"]).config == method_config("mpt")
    assert parse([]).config == method_config("mpt-plus")


def test_train_leaves_a_run_folder(trained: Path) -> None:
    run = RunFolder.existing(trained)
    names = {p.name for p in trained.iterdir()}
    assert names >= {"config.json", "metrics.jsonl", "tb", "checkpoint", "cold_start"}
    summary = run.read_summary()
    assert summary["method"] == "mpt-plus"
    assert len(summary["final"]["returns"]) == 2
    assert load_checkpoint(run.checkpoint)[1]["step"] == summary["steps"]


def test_a_budget_that_the_cold_start_exceeds_is_told(mpt: Call, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ("train", "mpt-plus", *TINY, "--folder", str(folder))
    small = ("--budget-gflop", "0.00001", "--quiet")
    code, out, errors = mpt(*arguments, *small)
    summary = json.loads(RunFolder(folder).summary.read_text())
    assert code == 0 and summary["steps"] == 0
    took = console.number(summary["flop"] / 1e9)
    assert (
        f"warning: the cold start alone took {took} of 1e-05 GFLOP; nothing was trained" in errors
    )
    before = f"will take about {took} GFLOP of a budget of 1e-05, and nothing will be trained"
    assert before in errors and errors.index(before) < errors.index("alone took")
    assert errors.count("raise --budget-gflop or lower --cold-start.episodes") == 2
    # The cold start's time counts, also for a run that goes on from there.
    _, state = load_checkpoint(RunFolder(folder).checkpoint)
    assert state["wall_seconds"] == summary["wall_seconds"] > 0
    assert f"in {summary['wall_seconds']:.0f} s" in out
    mpt("train", "--resume", "--folder", str(folder), "--quiet")
    again = json.loads(RunFolder(folder).summary.read_text())
    assert again["wall_seconds"] == summary["wall_seconds"]


def test_a_budget_that_is_enough_is_not_warned_about(mpt: Call, tmp_path: Path) -> None:
    _, _, errors = mpt("train", "mpt-plus", *TINY, "--folder", str(tmp_path / "run"))
    assert "warning" not in errors


def test_a_folder_with_a_run_is_not_touched(mpt: Call, trained: Path) -> None:
    before = (trained / "metrics.jsonl").read_bytes()
    code, _, errors = mpt("train", "mpt-plus", *TINY, "--folder", str(trained))
    assert code == 1
    assert "--resume" in errors
    assert "--overwrite" in errors
    assert (trained / "metrics.jsonl").read_bytes() == before


def test_resume_needs_the_folder_alone(mpt: Call, trained: Path, tmp_path: Path) -> None:
    code, _, errors = mpt("train", "--resume", "--folder", str(trained))
    assert code == 0
    assert "mpt-plus on toys/relay-v0" in errors
    assert "continuing after step" in errors
    code, _, errors = mpt("train", "--resume", "--folder", str(trained), "--seed", "5")
    assert code == 1
    assert "seed: 0 -> 5" in errors
    code, _, _ = mpt("train", "mpt-plus", *TINY, "--resume", "--folder", str(tmp_path / "again"))
    assert code == 0
    assert_same_run(tmp_path / "again", trained)


def test_unwritable_folder(mpt: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, errors = mpt("train", *TINY, "--folder", str(tmp_path / "file" / "run"))
    assert code == 1
    assert "cannot be used: Not a directory; name another --folder" in errors


# -- eval --------------------------------------------------------------------------------------


def test_eval_prints_a_table(mpt: Call, trained: Path) -> None:
    code, out, _ = mpt("eval", str(trained))
    assert code == 0
    for word in ("mpt-plus on toys/relay-v0", "learned", "6 held out, 2 times", "filler", "FLOP"):
        assert word in out


def test_eval_as_json_is_what_training_reported(mpt: Call, trained: Path) -> None:
    summary = RunFolder(trained).read_summary()
    _, out, _ = mpt("eval", str(trained), "--json")
    assert json.loads(out) == summary["final"]
    _, out, _ = mpt("eval", str(trained), "--json", "--checkpoint", "cold_start")
    assert json.loads(out) == summary["cold_start"]


def test_eval_says_how_much_of_a_data_set_was_played(
    mpt: Call, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "data set" not in mpt("eval", str(trained))[1]
    assert "coverage" not in json.loads(mpt("eval", str(trained), "--json")[1])
    monkeypatch.setattr(RelayTask, "coverage", Coverage(775, 778))
    assert (
        "775 of 778 episodes; 3 cannot be played and are left out" in mpt("eval", str(trained))[1]
    )
    as_json = json.loads(mpt("eval", str(trained), "--json")[1])
    assert as_json["coverage"] == {"used": 775, "total": 778}
    monkeypatch.setattr(RelayTask, "coverage", Coverage(778, 778))
    _, out, _ = mpt("eval", str(trained))
    assert "778 of 778 episodes\n" in out and "left out" not in out


def test_eval_swaps_the_coordination(mpt: Call, trained: Path) -> None:
    code, out, _ = mpt(
        *("eval", str(trained), "--coordination", "round-robin"),
        *("--worlds", "3", "--repeats", "1", "--json"),
    )
    values = json.loads(out)
    assert code == 0
    assert values["coordination"] == "round-robin"
    assert len(values["returns"][0]) == 3
    for name, message in (("router", "never trained"), ("solo", "fits no swarm"), ("x", "unknown")):
        code, _, errors = mpt("eval", str(trained), "--coordination", name)
        assert code == 2
        assert message in errors


def test_eval_of_what_is_no_run_or_a_damaged_one(mpt: Call, trained: Path, tmp_path: Path) -> None:
    code, _, errors = mpt("eval", str(tmp_path / "missing"))
    assert code == 1
    assert "is no run" in errors
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (file,) = (copy / "checkpoint").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-7])
    for command in (["eval"], ["play"]):
        code, _, errors = mpt(*command, str(copy))
        assert code == 1
        assert "is truncated" in errors
    code, _, errors = mpt("train", "--resume", "--folder", str(copy))
    assert code == 1
    assert "is truncated" in errors


# -- play --------------------------------------------------------------------------------------


def test_play_shows_bids_winner_action_and_reward(mpt: Call) -> None:
    code, out, _ = mpt("play", RELAY)
    assert code == 0
    assert "filler_0 0.9   carrier_0 0.1  | filler_0: fill" in out
    assert "| carrier_0: carry  +3 = 3" in out
    assert "return   9" in out
    assert mpt("play", RELAY)[1] == out, "the same seed is the same episode"


def test_play_names_the_task_by_the_id_it_is_made_by(mpt: Call) -> None:
    """A task may call itself something else: a variant, or gymnasium/Taxi-v4."""
    register("mine/relay-v3", task=RelayTask, override=True)
    code, out, _ = mpt("play", "mine/relay-v3", "--seed", "5")
    assert code == 0
    assert out.splitlines()[0] == "mine/relay-v3, seed 5"


@pytest.mark.parametrize("policy", ["expert", "random", "run"])
@pytest.mark.parametrize("coordination", [None, "round-robin", "priority", "random"])
def test_play_with_any_policy_and_coordination(
    mpt: Call, trained: Path, policy: str, coordination: str | None
) -> None:
    swap = [] if coordination is None else ["--coordination", coordination]
    code, out, _ = mpt("play", str(trained), "--policy", policy, *swap)
    assert code == 0
    turns = [line for line in out.splitlines() if " | " in line]
    assert f"turns    {len(turns)}" in out
    if coordination == "round-robin":
        acting = [line.split("| ")[1].split(":")[0] for line in turns]
        assert acting == [("filler_0", "carrier_0")[i % 2] for i in range(len(turns))]


def test_play_adds_up(mpt: Call, trained: Path) -> None:
    _, out, _ = mpt("play", str(trained))
    total = sum(
        float(line.split("  +")[1].split(" ")[0]) for line in out.splitlines() if "  +" in line
    )
    assert f"return   {total:g}" in out


def test_play_draws_and_writes_files(mpt: Call, tmp_path: Path) -> None:
    code, _, errors = mpt("play", RELAY, "--pictures", "--out", str(tmp_path / "episode.txt"))
    assert code == 0
    text = (tmp_path / "episode.txt").read_text()
    assert text.count("bucket ") == 9
    assert "wrote" in errors
    code, _, errors = mpt("play", RELAY, "--as", "gif", "--out", str(tmp_path / "episode.gif"))
    assert code == 0
    with Image.open(tmp_path / "episode.gif") as picture:
        assert picture.format == "GIF"
        assert getattr(picture, "n_frames", 1) > 5


def test_files_and_pipes_get_no_colors(mpt: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RelayTask, "render", lambda *_: "\x1b[38;2;1;2;3;1mwater\x1b[0m here")
    _, out, _ = mpt("play", RELAY, "--pictures")
    assert "\nwater here\n" in out
    assert "\x1b" not in out


def test_play_with_other_seeds(mpt: Call) -> None:
    episodes = {mpt("play", RELAY, "--policy", "random", "--seed", str(s))[1] for s in range(4)}
    assert len(episodes) == 4


def test_the_program_is_installed_under_this_name() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'mpt = "{program.__name__}:main"' in text
