"""Navigation: follow an instruction through a building; three roles share one body.

The turner turns, the mover walks, the stopper says when it is done. `make_task` gives one episode
as a turn task, `make_batch` many, stepped by the same compiled rules. The way of an action:

* An episode comes from a source (`world/sources`): generated houses (`world/houses`, from
  `floorplan`, `dividing`, `furniture`, `route`, `cues` and `phrasing`), R2R-CE's files (`data/`).
  `world/worlds` makes its scene ready for kernels; `world/space` is where one can walk.
* The state is one flat record (`world/layout`); the map is no part of it. `batch` loops over
  records, `task` is a batch of one. A decision goes to `rules/turn`, which turns or walks and pays
  for the way that is left; `rules/perception` keeps in mind what was seen (`rules/sight_lines`) and
  which clause of the instruction is being followed (`world/clauses`, read by `world/lexicon`).
* Agents observe it as numbers (`views/observation`, with `rules/rays`) or words (`views/text`);
  `views/answers` and `views/quantities` read what they answer; people see `render` and `ansi`.
* `rules/metrics`, `rules/dtw` and `rules/summary` measure as VLN-CE does, `rules/expert` is an
  oracle, `rules/snapshots` tells which records are states.
* `backends/connectivity` plays R2R on the scans' graphs, `backends/habitat` in habitat-sim.
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
