"""Experiments: which runs, which tables, which plots."""
