"""Importing a module of the user's own, named before an id: ``my_tasks:mine/task-v0``."""

from __future__ import annotations

import importlib


def import_user_module(module: str, to_find: str, error: type[Exception]) -> None:
    """Import a module for what it registers when it is imported.

    Args:
        module: its dotted name.
        to_find: what it should register, for the message.
        error: raised, with advice, if there is no such module or it cannot be imported.
    """
    try:
        importlib.import_module(module)
    except (ModuleNotFoundError, ValueError) as problem:
        missing = getattr(problem, "name", None) or module
        if module == missing or module.startswith(f"{missing}."):
            advice = "run in the folder that holds the module, or put that folder on PYTHONPATH"
        else:
            advice = f"install what {module!r} imports"
        raise error(f"cannot import {module!r} to find {to_find}: {problem}; {advice}") from problem
