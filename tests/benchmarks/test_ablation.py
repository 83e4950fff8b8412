from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.ablation import (
    ADDED,
    CHANGED,
    OPTIONS,
    TAKEN_BACK,
    VARIED,
    AblationConfig,
    changed,
    flat,
    main,
    plan_of,
    taken_back,
)
from mpt_train.comparison import report
from mpt_train.comparison.results import differences
from mpt_train.errors import UsageError
from mpt_train.loop import Trainer
from mpt_train.methods import method_config
from tests.mpt_train.comparison.summaries import comparison


def test_every_option_changes_something_and_can_be_trained() -> None:
    base = method_config("mpt", num_envs=2)
    for option in (*OPTIONS, *taken_back()):
        new = changed(base, option.changes)
        assert set(option.changes) <= set(flat(base)), option.name
        Trainer(dataclasses.replace(new, task="crafting/crafting-table-v0"))
    assert all(changed(base, option.changes) != base for option in OPTIONS)
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)


def test_taking_everything_back_is_the_paper() -> None:
    config = method_config("mpt-plus")
    for option in taken_back():
        assert changed(config, option.changes) != config
    for option in taken_back():
        config = changed(config, option.changes)
    assert dataclasses.replace(config, method="mpt") == method_config("mpt")


def test_groups_start_with_their_base() -> None:
    plan = plan_of(AblationConfig())
    groups: dict[str, list[str]] = {}
    for variant in plan.variants:
        groups.setdefault(variant.group, []).append(variant.name)
    assert list(groups) == [ADDED, TAKEN_BACK, CHANGED]
    assert len(groups[CHANGED]) == len(VARIED)
    assert groups[ADDED][0] == "mpt"
    assert groups[TAKEN_BACK][0] == "mpt-plus"
    assert len(groups[ADDED]) == 1 + len(OPTIONS)
    assert len({v.config.budget_gflop for v in plan.variants}) == 1
    assert not any(v.swap for v in plan.variants)


def test_only_some_options() -> None:
    config = AblationConfig(only=("crowded-levels", "env-bid-levels"), seeds=2, quick=True)
    names = [v.name for v in plan_of(config).variants]
    assert names == ["mpt", "mpt+crowded-levels", "mpt-plus", "mpt-plus-without-env-bid-levels"]
    assert plan_of(config).command == (
        "python -m benchmarks.ablation --quick --only crowded-levels env-bid-levels --seeds 2"
    )
    with pytest.raises(UsageError, match="unknown options crowd"):
        main(["--only", "crowd"])
    with pytest.raises(ValueError, match=r"no field 'bids\.colour'"):
        changed(method_config("mpt"), {"bids.colour": 1})


def test_differences_and_picture_are_within_groups(tmp_path: Path) -> None:
    base = comparison(("mpt", "router", "mpt-plus", "monolithic"), seeds=(0, 1, 2))
    groups = (ADDED, ADDED, TAKEN_BACK, TAKEN_BACK)
    methods = tuple(
        dataclasses.replace(m, group=g) for m, g in zip(base.methods, groups, strict=True)
    )
    found = dataclasses.replace(base, kind="ablation", methods=methods, swap={})
    pairs = [(d.first, d.second) for d in differences(found)]
    assert pairs == [("router", "mpt"), ("monolithic", "mpt-plus")]
    plots = report.write_outputs(found, tmp_path)
    assert [plot.name for plot in plots] == ["ablation"]
    assert "one option" in (tmp_path / "report.html").read_text(encoding="utf-8")
