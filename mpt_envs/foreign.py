"""Refuses what Python finds under the name of our package `wrappers` and is not ours."""

from __future__ import annotations

import wrappers

if getattr(wrappers, "DISTRIBUTION", None) != "mpt-swarm":
    # A file has no path of packages, a folder without __init__.py no file.
    _found = wrappers.__file__ or ", ".join(wrappers.__path__)
    raise ImportError(
        f"the package `wrappers` that Python found in {_found} is not the one of mpt-swarm: "
        "another distribution (or a file or folder of yours) has the same name. Remove it or put "
        "it later on sys.path, and install mpt-swarm again (pip install --force-reinstall "
        "--no-deps mpt-swarm); an environment of its own keeps both"
    )
