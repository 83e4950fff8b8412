"""Learners: how agents, and who acts, learn from credited episodes. One file a learner."""

from mpt_train.learners import reinforce
from mpt_train.learners.base import Experience, Learner, Plan, build, names, register

__all__ = ["Experience", "Learner", "Plan", "build", "names", "register", "reinforce"]
