"""Operators of torch in a profile."""

from __future__ import annotations


def operators(profile):
    """Name, type, shapes and name of the parent of each operator and node."""
    ops = profile.ops
    ops = ops.assign(parent=ops["name"].reindex(ops["parent_op_id"]).to_numpy())
    rows = ops[ops["category"] == "operator"]
    columns = ("name", "op_type", "input_shapes", "parent")
    return [tuple(row) for row in rows[list(columns)].astype(object).to_numpy()]
