"""Queries on profiles for the contract tests."""

from __future__ import annotations

import pandas as pd


def kernels_of(profile) -> pd.DataFrame:
    """The kernels of a profile, by name."""
    activities = profile.activities
    found = activities[activities["kind"] == "kernel"]
    return found.set_index(found["name"].astype(str))


def op_names(profile, op_ids) -> list[str | None]:
    """The names of ops; None without an op."""
    names = profile.ops["name"]
    return [None if pd.isna(op_id) else str(names.loc[int(op_id)]) for op_id in op_ids]
