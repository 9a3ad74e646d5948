"""Graphs that the provider of Python kernels captures and replays."""
