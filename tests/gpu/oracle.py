"""Kernels with unique names, so that the launching op is known from the name alone."""

from __future__ import annotations

from functools import cache

import cupy

SPIN = """
extern "C" __global__ void {name}(long long cycles) {{
  long long begin = clock64();
  while (clock64() - begin < cycles);
}}
"""


@cache
def kernel(name: str) -> cupy.RawKernel:
    """A kernel called `name` that spins for a given number of cycles."""
    return cupy.RawKernel(SPIN.format(name=name), name)


def launch(name: str, cycles: int = 1000) -> None:
    kernel(name)((1,), (1,), (cycles,))


def pairs(prof, kind="kernel"):
    """(activity name, name of its op) of every activity of `kind`."""
    rows = prof.activities
    rows = rows[rows["kind"] == kind]
    ops = prof.ops["name"].astype(object)
    return [
        (name, None if op is None or op != op else ops.get(op))
        for name, op in zip(
            rows["name"].astype(object),
            rows["op_id"].astype(object).where(rows["op_id"].notna(), None),
            strict=True,
        )
    ]


def device_ns(prof):
    """Device time of all kernels, copies and memsets."""
    rows = prof.activities
    return rows["duration_ns"][rows["kind"].isin(["kernel", "memcpy", "memset"])].sum()


def op_path(prof, op_id):
    """Names of an op and its ancestors, innermost first."""
    ops = prof.ops
    parents = ops["parent_op_id"].fillna(0).astype(int)
    path = []
    while op_id:
        path.append(ops.loc[op_id, "name"])
        op_id = parents[op_id]
    return path
