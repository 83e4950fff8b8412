"""All tests here need the engine; without it they skip and say how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpt_envs.crafting.backends.minetest.install import why_missing
from mpt_envs.crafting.backends.minetest.pool import shared_pool

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the engine where there is none."""
    reason = why_missing()
    if reason is None:
        return
    for item in items:
        if _HERE in item.path.parents and "no_engine" not in item.path.stem:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def _end_servers() -> object:
    yield
    shared_pool().close()
