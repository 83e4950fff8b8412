"""Crafting: Minecraft 1.16 rules on seeded voxel terrain."""
