"""The bid-then-act game and everything that knows no domain."""

DISTRIBUTION = "mpt-swarm"
"""Tells this package from others of its name, see `mpt_envs.foreign`."""
