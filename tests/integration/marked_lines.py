"""The lines that have ops in a profile."""

from __future__ import annotations


def lines(profile):
    """The statements of a profile: (line, name), in order."""
    ops = profile.ops[profile.ops["line"].notna()].sort_values("start_ns", kind="stable")
    return list(zip(ops["line"].astype(int), ops["name"].astype(str), strict=True))
