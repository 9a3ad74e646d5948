"""Columns of the tables on nodes and runs of ONNX Runtime sessions."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import (
    DEVICE,
    ColumnDoc,
    TableDoc,
    column,
    columns,
    measured,
)

_RECORDED = column(
    "recorded", "int64",
    "executions in runs that were recorded node by node; host times are only from these, and "
    "means and percentiles weigh them by the number of runs with inputs of the same shapes",
)  # fmt: skip
_UNPROFILED = column(
    "unprofiled_host_ns", "Int64",
    "estimate of the host time in all runs without the profiler: recorded runs represent other "
    "runs with inputs of the same shapes; missing without recorded executions",
)  # fmt: skip
_NODE_COUNT = "executions, including replays of a captured node"
_FIRST: tuple[str, ...] = ("count", "device_ns", "share")
_NODE_COST: tuple[str | ColumnDoc, ...] = (*_FIRST, *measured("host_ns", "mean_host_ns"))
_NODE_DETAILS: tuple[str | ColumnDoc, ...] = (
    _RECORDED, _UNPROFILED, *measured("p50_host_ns", "p95_host_ns"),
    *(name for name in DEVICE if name not in _FIRST),
)  # fmt: skip
_NODE_USAGE = (
    column("output_bytes", "Int64", "size of the outputs in all recorded executions"),
    column("parameter_bytes", "Int64", "weights and other initializers read, likewise"),
    column("activation_bytes", "Int64", "other inputs read, likewise"),
    column(
        "arena_held_delta_bytes", "Int64",
        "growth of the allocator in these executions; missing before ONNX Runtime 1.28",
    ),
    column(
        "in_use_bytes", "Int64",
        "maximum memory of the allocator in use at the end of one of them; likewise",
    ),
    column(
        "pool_start_ns", "Int64",
        "time that these executions spent starting threads of the session's pool",
    ),
    column("pool_wait_ns", "Int64", "time that they spent waiting for such threads"),
)  # fmt: skip

ONNX_NODES: dict[str, TableDoc] = {
    "by_node": TableDoc(
        "prof.by_node()",
        "One row per node of an ONNX Runtime session, by descending device time, then host time. A "
        "node inside an If, Loop or Scan also counts for the outer node. A last row `(no node)` "
        "holds device work without a node. The first columns have the node, its provider, counts "
        "and times; the place of the node, details of its times, fallbacks, memory and threads "
        "follow.",
        columns(
            "name", "op_type", "provider", *_NODE_COST, "session",
            column("inside", "category", "name of the node whose subgraph contains it"),
            column("node_index", "Int64", "index of the node in its graph"),
            *_NODE_DETAILS,
            column("fell_back", "bool", "it ran on the CPU in a session with an accelerator"),
            column(
                "fallback_copies", "int64",
                "executions of the copy nodes that ONNX Runtime inserted for that",
            ),
            column("fallback_bytes", "int64", "bytes that these copied"),
            column(
                "fallback_copy_ns", "int64",
                "device time of these copies, also included in the rows of the copy nodes",
            ),
            *_NODE_USAGE,
            name="name of the node", op_type="operator", count=_NODE_COUNT,
        ),
    ),
    "by_op_type": TableDoc(
        "prof.by_op_type()",
        "One row per ONNX operator and execution provider, by descending device time.",
        columns(
            "op_type", "provider",
            column("nodes", "int64", "number of different nodes"),
            *_NODE_COST, *_NODE_DETAILS, *_NODE_USAGE,
            op_type="operator", count=_NODE_COUNT,
        ),
    ),
    "by_run": TableDoc(
        "prof.by_run()",
        "One row per run of an ONNX Runtime session, in order of start. Device work outside "
        "runs is left out.",
        columns(
            column("run_id", "Int64", "number of the run, as in `ops`"),
            "session",
            column("repeat", "Int64", "repeat of the code in which it started, as in `ops`"),
            column("thread_id", "int64", "operating-system thread that ran it"),
            column("start_ns", "int64", "start, since the profile's start"),
            "host_ns",
            column("graph_id", "Int64", "graph that the run replayed, or captured, as in `graphs`"),
            column(
                "nodes", "Int64",
                "executions of nodes, including replays of a graph; missing if unknown",
            ),
            column("status", "category", "`failed` if the call raised; others as in `ops`"),
            column(
                "node_events", "category",
                "how they are known: `recorded`; `learned` (the run launched the same as a "
                "recorded run); `captured` (the run replays a graph that captured them); "
                "`mismatched` (its launches match no recorded run: the work has no nodes); "
                "`not recorded`; missing for a run that did not end in the profile",
            ),
            "device_ns", "kernels", "memcpys", "bytes",
            column("call_ns", "Int64", "duration of the call that made the run, if measured"),
            column(
                "unprofiled_ns", "Int64",
                "median duration of such calls outside profiles, with the same session and "
                "inputs of the same shapes; missing if not measured",
            ),
            column("stretch", "float64", "`call_ns` / `unprofiled_ns`; NaN if not measured",
                    "ratio"),
            host_ns="inclusive: host time of the run",
            device_ns="inclusive: device time of the run",
            kernels="inclusive: kernels of the run", memcpys="inclusive: copies of the run",
        ),
    ),
}  # fmt: skip
"""Tables on nodes and runs by name."""
