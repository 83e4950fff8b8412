"""Coordination strategies: sources of bids, swappable over the same action policies."""

from mpt_train.coordination import fixed, graph_of_agents, market, router
from mpt_train.coordination.base import Coordination, Shape, build, names, register

__all__ = [
    "Coordination",
    "Shape",
    "build",
    "fixed",
    "graph_of_agents",
    "market",
    "names",
    "register",
    "router",
]
