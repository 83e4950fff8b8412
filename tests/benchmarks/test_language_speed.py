"""The speed of language models: everything is measured, or reported as missing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.language_speed import LanguageSpeed, main, measure, report


def test_all_is_measured() -> None:
    options = LanguageSpeed(
        task="crafting/crafting-table-v0",
        size="tiny",
        worlds=1,
        new_tokens=2,
        rounds=1,
        micro_batch=2,
        rank=4,
        seconds=1000.0,
    )
    result = measure(options)
    for part in ("seconds", "rates", "ratios"):
        assert all(value > 0 for value in result[part].values()), result[part]
    assert len(result["seconds"]) == 12 and result["rows"] == 3
    text = report(result)
    assert "twelve adapters mixed over one" in text and "torch.float32 on cpu" in text


def test_what_there_is_no_time_for_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "speed.json"
    options = "--size tiny --worlds 1 --rounds 1 --seconds 0 --task crafting/crafting-table-v0"
    assert main([*options.split(), "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["seconds"]["update"] is None
    assert result["provenance"]["command"].endswith(str(out))
    assert "nan" in capsys.readouterr().out
    assert math.isfinite(result["seconds_total"])
