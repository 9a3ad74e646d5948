"""Comparison of recordings: matching of ops, statistics over repeats, and the verdict."""
