"""The same game in other simulators."""
