"""Navigation: follow an instruction through a building; three roles share one body.

The turner turns, the mover walks, the stopper says when it is done. `make_task` gives one episode
as a turn task, `make_batch` many, stepped by the same compiled rules. Files: `facts`, `space`
(where one can walk), `sources` (where episodes come from), `worlds`, `layout` (the record),
`perception`, `rules`, `observation`, `expert`, then `batch` and `task`. Generated houses:
`floorplan`, `route`, `phrasing`, `generated`. Words: `lexicon` reads instructions, `answers` reads
answers, `text` writes prompts. The field's metrics: `metrics`, `dtw`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpt_envs.navigation.batch import NavigationBatch
    from mpt_envs.navigation.task import NavigationTask
    from mpt_envs.navigation.world.worlds import Worlds


@lru_cache(maxsize=1)
def floorplan_worlds() -> Worlds:
    """The generated houses, shared by all environments of this process."""
    from mpt_envs.navigation.world.houses import Floorplans
    from mpt_envs.navigation.world.worlds import Worlds

    return Worlds(Floorplans())


def make_floorplan_task() -> NavigationTask:
    """One generated house at a time as a `TurnTask`."""
    from mpt_envs.navigation.task import NavigationTask

    return NavigationTask(floorplan_worlds())


def make_floorplan_batch(num_envs: int) -> NavigationBatch:
    """``num_envs`` generated houses as a `BatchTask`."""
    from mpt_envs.navigation.batch import NavigationBatch

    return NavigationBatch(floorplan_worlds(), num_envs)
