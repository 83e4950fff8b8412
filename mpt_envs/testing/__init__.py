"""The testing kit: every rule of the contract as a test that you inherit.

::

    from mpt_envs.testing import EnvContractTests, TaskContractTests

    class TestMyTask(TaskContractTests):       # a bare `TurnTask`, and the game around it
        def make_task(self):
            return MyTask()

    class TestMine(TaskContractTests, VectorContractTests):     # the same of a registered id
        id = "mydomain/mytask-v0"

    class TestMyEnv(EnvContractTests):         # an environment, e.g. one that `make` gives
        def make_env(self):
            return mpt_envs.make("mydomain/mytask-v0", agents=6)

Run them with pytest (or mix in `unittest.TestCase`). A failure starts with the rule that is broken.
The class must stand at the top level of a file: some tests load it again in a fresh process.
`VectorContractTests` compares a compiled vector game with the plain one.
"""

from mpt_envs.testing.contracts import EnvContractTests, TaskContractTests
from mpt_envs.testing.rules import RULES, check
from mpt_envs.testing.trace import (
    Step,
    content_digest,
    differences,
    is_over,
    legal_actions,
    readable,
)
from mpt_envs.testing.vector import VectorContractTests, assert_same_trajectories

__all__ = [
    "RULES",
    "EnvContractTests",
    "Step",
    "TaskContractTests",
    "VectorContractTests",
    "assert_same_trajectories",
    "check",
    "content_digest",
    "differences",
    "is_over",
    "legal_actions",
    "readable",
]
