"""Refuses another distribution's package that is named `wrappers` as one of ours is."""

from __future__ import annotations

import wrappers

if getattr(wrappers, "DISTRIBUTION", None) != "mpt-swarm":
    raise ImportError(
        f"the package `wrappers` that Python found in {list(wrappers.__path__)} is not the one of "
        "mpt-swarm: another distribution (or a folder of yours) has the same name. Remove it or "
        "put it later on sys.path, and install mpt-swarm again (pip install --force-reinstall "
        "--no-deps mpt-swarm); an environment of its own keeps both"
    )
