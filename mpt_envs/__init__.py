"""Domains of the market game, made by name."""
