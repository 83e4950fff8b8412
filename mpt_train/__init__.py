"""One training loop for market-based post-training and its baselines."""

import mpt_envs as _mpt_envs  # noqa: F401  (refuses another distribution's `wrappers`)
