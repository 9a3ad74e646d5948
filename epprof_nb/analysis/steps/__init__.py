"""Repeats, steps and phases of the profiled code, and how steady they are."""
