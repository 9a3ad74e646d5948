"""Queries on the ops of a profile."""

from __future__ import annotations


def nodes(prof):
    return prof.ops[prof.ops["category"] == "node"]


def runs(prof):
    ops = prof.ops
    return ops[(ops["category"] == "session") & (ops["op_type"] == "run")]


def path(prof, op_id):
    """Names from the outermost op down to `op_id`."""
    ops = prof.ops
    names = []
    while op_id in ops.index:
        names.append(ops.at[op_id, "name"])
        op_id = ops.at[op_id, "parent_op_id"]
    return names[::-1]


def nested_in_time(prof):
    """Whether each op on its parent's thread lies within it."""
    ops = prof.ops
    inner = ops[ops["parent_op_id"].isin(ops.index)]
    outer = ops.loc[inner["parent_op_id"]]
    starts_inside = outer["start_ns"].to_numpy() <= inner["start_ns"].to_numpy()
    ends_inside = inner["end_ns"].to_numpy() <= outer["end_ns"].to_numpy()
    return bool((starts_inside & ends_inside).all())
