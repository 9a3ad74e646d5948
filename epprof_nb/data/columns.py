"""Descriptions of the columns of every table that a profile returns as a DataFrame.

`TABLES` is the only home of these descriptions. The docstrings of `epprof_nb.profiles.Profile` take
theirs from it (`with_columns`), and so does ``docs/tables.md``, which
``python tests/tools/make_table_docs.py`` writes.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from epprof_nb.data import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_F = TypeVar("_F", bound="Callable[..., object]")

_DTYPES: dict[schema.Kind, str] = {
    "time": "int64", "int": "int64", "id": "Int64", "delta": "Int64", "name": "category",
    "bool": "bool", "args": "object",
}  # fmt: skip
_MEANING_WIDTH = 54


@dataclass(frozen=True, slots=True)
class ColumnDoc:
    """One column: its name, pandas dtype, unit (empty for none) and meaning."""

    name: str
    dtype: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TableDoc:
    """One table: the call that returns it, what a row is, and its columns in order."""

    call: str
    rows: str
    columns: tuple[ColumnDoc, ...]


def _column(name: str, dtype: str, meaning: str, unit: str | None = None) -> ColumnDoc:
    if unit is None:
        unit = "ns" if name.endswith("_ns") else "bytes" if name.endswith("bytes") else ""
    return ColumnDoc(name, dtype, unit, meaning)


_INCLUSIVE = "of the op and all ops below it"
_SHARED = {
    column.name: column
    for column in (
        _column("name", "category", "name of the op"),
        _column("op_type", "category", "cell, line, range, or an ONNX operator"),
        _column("cell", "category", "cell of a statement, as In[3]; missing for other ops"),
        _column("line", "Int64", "first line of a statement in its cell, from 1"),
        _column("arg_<name>", "by value", "value of the argument; missing if the op has none"),
        _column("count", "int64", "executions"),
        _column("device_ns", "int64", f"inclusive: device time {_INCLUSIVE}"),
        _column("self_device_ns", "int64", "self: device time of what the op launched itself"),
        _column("share", "float64", "`device_ns` / all device time", "fraction"),
        _column("kernels", "int64", f"inclusive: kernels {_INCLUSIVE}"),
        _column("memcpys", "int64", f"inclusive: copies {_INCLUSIVE}"),
        _column("memsets", "int64", f"inclusive: memsets {_INCLUSIVE}"),
        _column("bytes", "int64", "inclusive: bytes that these copied and set"),
        _column(
            "bandwidth", "float64", "bytes copied / time of the copies; NaN without copies",
            "bytes/s",
        ),
        _column(
            "launch_delay_ns", "Int64",
            "mean time from a kernel's API call to its start; missing if no call was recorded",
        ),
        _column("mean_device_ns", "int64", "mean of the inclusive device time of an execution"),
        _column("p95_device_ns", "int64", "its 95th percentile, a time that occurred"),
        _column("host_ns", "int64", f"inclusive: host time {_INCLUSIVE}"),
        _column("self_host_ns", "int64", "self: host time without the ops below on its thread"),
        _column("mean_host_ns", "int64", "mean of the inclusive host time of an execution"),
        _column("p50_host_ns", "int64", "its median, a time that occurred"),
        _column("p95_host_ns", "int64", "its 95th percentile, a time that occurred"),
        _column("device_id", "Int64", "device, as in `activities`"),
        _column("provider", "category", "execution provider that ran it"),
        _column("session", "Int64", "ONNX Runtime session, as in `ops`"),
    )
}  # fmt: skip


def _columns(*items: str | ColumnDoc, **meanings: str) -> tuple[ColumnDoc, ...]:
    """Return columns given as descriptions or names of shared ones, some with other meanings."""
    columns = [_SHARED[item] if isinstance(item, str) else item for item in items]
    return tuple(replace(c, meaning=meanings[c.name]) if c.name in meanings else c for c in columns)


def _of_schema(table: schema.TableSchema) -> tuple[ColumnDoc, ...]:
    columns: list[ColumnDoc] = []
    for stored in table.columns:
        columns.append(_column(stored.name, _DTYPES[stored.kind], stored.doc))
        columns += [
            _column(derived.name, _DTYPES["name"], derived.doc)
            for derived in table.derived
            if derived.source == stored.name
        ]
    return tuple(columns)


_DEVICE = ("device_ns", "self_device_ns", "share", "kernels", "memcpys", "memsets", "bytes",
           "bandwidth", "launch_delay_ns", "mean_device_ns", "p95_device_ns")  # fmt: skip
_RECORDED = _column(
    "recorded", "int64",
    "executions in runs that were recorded node by node; host times are those of these executions",
)  # fmt: skip
_NODE_MEASURES = (
    "count", _RECORDED, "mean_host_ns", "p50_host_ns", "p95_host_ns", "host_ns", *_DEVICE,
    _column("output_bytes", "Int64", "size of the outputs of all recorded executions"),
    _column("parameter_bytes", "Int64", "weights and other initializers read, likewise"),
    _column("activation_bytes", "Int64", "other inputs read, likewise"),
    _column(
        "arena_held_delta_bytes", "Int64",
        "growth of the allocator in these executions; missing before ONNX Runtime 1.28",
    ),
    _column(
        "in_use_bytes", "Int64",
        "most memory of the allocator in use at the end of one of them; likewise",
    ),
    _column(
        "pool_start_ns", "Int64",
        "time of these executions that went into starting threads of the session's pool",
    ),
    _column("pool_wait_ns", "Int64", "time of these that went into waiting for such threads"),
)  # fmt: skip
_PLACE = (
    _SHARED["cell"], _SHARED["line"], _column("source", "object", "text of the line"),
)  # fmt: skip

_PLACE_COLUMNS = (
    _column("name", "category", "text of the statement, or name of the op; missing without an op"),
    _SHARED["cell"],
    _SHARED["line"],
    _column("op_id", "Int64", "op of its first execution"),
)  # fmt: skip

_SHORT_NAME = _column(
    "short_name", "category", "what the kernel is, and its operation, dtype and tile"
)
_KERNEL_MEASURES = (
    "count", "device_ns", "share", "mean_device_ns",
    _column("min_device_ns", "int64", "shortest device time of a launch"),
    "p95_device_ns",
    _column("max_device_ns", "int64", "longest device time of a launch"),
    "launch_delay_ns",
    _column("grid", "object", "`(x, y, z)` of the most frequent launch; None if unknown",
            "blocks"),
    _column("block", "object", "`(x, y, z)` of the most frequent launch; None if unknown",
            "threads"),
    _column("ops", "int64", "number of different ops that launched it"),
)  # fmt: skip
_KERNEL_MEANINGS = {
    "count": "launches",
    "device_ns": "device time of all launches",
    "mean_device_ns": "mean device time of a launch",
}

_COMPARED = (
    _column("status", "category", "matched, renamed, added or removed"),
    _column("before_ns", "Int64", "old: median time; missing if added"),
    _column("after_ns", "Int64", "new: median time; missing if removed"),
    _column("change", "float64", "`after_ns` / `before_ns` - 1; NaN if unknown", "fraction"),
    _column(
        "change_low", "float64",
        "lower end of its interval, which covers all rows of the table together; NaN if not "
        "tested",
        "fraction",
    ),
    _column("change_high", "float64", "upper end of this interval", "fraction"),
    _column(
        "p_value", "float64", "of no change, with Holm's correction over all rows", "probability"
    ),
    _column(
        "verdict", "category",
        "faster, slower or no difference found; added or removed; not tested if it did not run "
        "in every repeat or the recordings cannot be compared",
    ),
)  # fmt: skip

TABLES: dict[str, TableDoc] = {
    "ops": TableDoc("prof.ops", "One row per op.", _of_schema(schema.OPS)),
    "activities": TableDoc(
        "prof.activities", "One row per activity of a device.", _of_schema(schema.ACTIVITIES)
    ),
    "api_calls": TableDoc("prof.api_calls", "One row per API call.", _of_schema(schema.API_CALLS)),
    "graphs": TableDoc(
        "prof.graphs", "One row per CUDA graph that was launched.", _of_schema(schema.GRAPHS)
    ),
    "memory": TableDoc(
        "prof.memory", "One row per allocation or release (`--detail memory`).",
        _of_schema(schema.MEMORY),
    ),
    "overhead": TableDoc(
        "prof.overhead", "One row per interval of CUPTI's overhead (`--detail overhead`).",
        _of_schema(schema.OVERHEAD),
    ),
    "joined": TableDoc(
        "prof.joined()",
        "One row per activity: the columns of `prof.activities`, followed by those of its op, its "
        "nearest named range and its API call.",
        (
            *_of_schema(schema.ACTIVITIES),
            _column("op_name", "category", "name of the op"),
            _column("op_type", "category", "type of the op, as in `ops`"),
            _column("op_category", "category", "category of the op, as in `ops`"),
            _column("cell", "category", "cell of the innermost statement that contains the op"),
            _column("line", "Int64", "first line of that statement"),
            _column("range_id", "Int64", "op id of the nearest named range: the op or above it"),
            _column("range_name", "category", "name of that range"),
            _column("arg_<name>", "by value", "argument of that range, one column for each"),
            _column("module", "category", "path of the module, in its forward or backward pass"),
            _column("step", "Int64", "step that launched it, as in `by_step`"),
            _column("api_name", "category", "API call that launched it; missing if not recorded"),
            _column("api_start_ns", "Int64", "start of the call, since the profile's start"),
            _column("api_duration_ns", "Int64", "duration of the call"),
            _column(
                "launch_delay_ns", "Int64",
                "time from the start of the call to that of the activity, at least 0; missing for "
                "waits",
            ),
        ),
    ),
    "by_op": TableDoc(
        "prof.by_op()",
        "One row per name, op type and, for statements, cell and line, by descending device time. "
        "A last row `(no op)` holds activities without an op.",
        _columns(
            "name", "op_type", "cell", "line", "arg_<name>", "count", *_DEVICE, "host_ns",
            "self_host_ns", "mean_host_ns", "p95_host_ns",
            **{"arg_<name>": "value of each argument in `args`; missing if the op has none"},
        ),
    ),
    "by_kernel": TableDoc(
        "prof.by_kernel()",
        "One row per kernel name, by descending device time.",
        _columns(
            "name", _SHORT_NAME, *_KERNEL_MEASURES,
            name="demangled name of the kernel", **_KERNEL_MEANINGS,
        ),
    ),
    "by_kernel_short_name": TableDoc(
        'prof.by_kernel(by="short_name")',
        "One row per short name, by descending device time.",
        _columns(
            _SHORT_NAME,
            _column("names", "int64", "number of full names with this short name"),
            *_KERNEL_MEASURES, **_KERNEL_MEANINGS,
        ),
    ),
    "by_stream": TableDoc(
        "prof.by_stream()",
        "One row per device, context and stream with device work, in this order.",
        _columns(
            _column("stream", "category", "`stream 7`, with device and context if needed"),
            "device_id",
            _column("context_id", "Int64", "context, as in `activities`"),
            _column("stream_id", "Int64", "stream, as in `activities`"),
            "count", "device_ns",
            _column("busy_ns", "int64", "time during which at least one of them ran"),
            "share", "mean_device_ns", "p95_device_ns", "kernels", "memcpys", "memsets", "bytes",
            "bandwidth", "launch_delay_ns",
            count="activities", device_ns="their total time; each counts where they overlap",
            mean_device_ns="mean time of an activity", kernels="kernels", memcpys="copies",
            memsets="memsets", bytes="bytes copied and set",
        ),
    ),
    "by_line": TableDoc(
        "prof.by_line()",
        "One row per cell and line that ran, in the order of the source. All times and numbers are "
        "inclusive: of the statement and all that it ran, nested statements too. Their sum exceeds "
        "the device time where statements are nested. A last row `(no line)` holds activities "
        "without a statement.",
        (
            *_PLACE,
            *_columns(
                "count", *(name for name in _DEVICE if name != "self_device_ns"), "host_ns",
                "mean_host_ns", "p95_host_ns",
                count="executions of the line's statements; a one-line loop's body counts, too",
                mean_host_ns="mean of the inclusive host time of an execution; where statements "
                "of the line are nested, as in a one-line loop, `count` times it exceeds `host_ns`",
                device_ns="inclusive: device time of the statement and all that it ran",
                kernels="inclusive: kernels of the statement and all that it ran",
                memcpys="inclusive: copies of the statement and all that it ran",
                memsets="inclusive: memsets of the statement and all that it ran",
                host_ns="inclusive: host time of the statement and all that it ran",
            ),
        ),
    ),
    "by_line_self": TableDoc(
        "prof.by_line(inclusive=False)",
        "The same rows. All times and numbers are self: without nested statements, which have rows "
        "of their own, but with the ranges and library ops that the statement ran. The columns add "
        "up to the totals of the profile.",
        (
            *_PLACE,
            _SHARED["count"],
            _column("self_device_ns", "int64", "self: device time without nested statements"),
            _column("self_share", "float64", "`self_device_ns` / all device time", "fraction"),
            _column("self_kernels", "int64", "self: kernels without nested statements"),
            _column("self_memcpys", "int64", "self: copies without nested statements"),
            _column("self_memsets", "int64", "self: memsets without nested statements"),
            _column("self_bytes", "int64", "self: bytes that these copied and set"),
            _column("self_bandwidth", "float64", "`bandwidth` of these copies", "bytes/s"),
            _column("self_launch_delay_ns", "Int64", "`launch_delay_ns` of these kernels"),
            _column("self_host_ns", "int64", "self: host time without nested statements"),
        ),
    ),
    "by_path": TableDoc(
        "prof.by_path()",
        "A tree with one row per path of names, parents before their children. Executions of one "
        "path share a row. The last step of a path may be the name of an activity.",
        _columns(
            _column("node", "int64", "index: number of the row"),
            _column("parent", "Int64", "row above; missing for the session, which is row 0"),
            _column("depth", "int64", "steps from the session"),
            _column(
                "level", "category",
                "session, cell, line, range, run, node, ...; for an activity its kind",
            ),
            "name", "op_type", "cell", "line", "count", "device_ns", "self_device_ns", "host_ns",
            "kernels", "bytes",
            name="name of the op or activity; `(no op)` holds activities without an op",
            op_type="operator of a node; for other ops the same as `level`",
            count="executions of an op; number of activities",
            device_ns="inclusive: device time of the row and all rows below it",
            self_device_ns="self: device time of what the op launched itself; 0 for an activity, "
            "whose time is that of the op above",
            host_ns="inclusive: host time of an op; of the session, of the outermost ops",
            kernels="inclusive: kernels of the row and all rows below it",
        ),
    ),
    "by_node": TableDoc(
        "prof.by_node()",
        "One row per node of an ONNX Runtime session, by descending device time, then host time. A "
        "node inside an If, Loop or Scan also counts for that one. A last row `(no node)` holds "
        "device work without a node.",
        _columns(
            "name", "op_type", "provider", "session",
            _column("inside", "category", "name of the node whose subgraph contains it"),
            _column("node_index", "Int64", "index of the node in its graph"),
            *_NODE_MEASURES,
            _column("fell_back", "bool", "it ran on the CPU in a session with an accelerator"),
            _column(
                "fallback_copies", "int64",
                "executions of the copy nodes that ONNX Runtime inserted for that",
            ),
            _column("fallback_bytes", "int64", "bytes that these copied"),
            _column(
                "fallback_copy_ns", "int64",
                "device time of these copies, which the rows of the copy nodes have, too",
            ),
            name="name of the node", op_type="operator",
        ),
    ),
    "by_op_type": TableDoc(
        "prof.by_op_type()",
        "One row per ONNX operator and execution provider, by descending device time.",
        _columns(
            "op_type", "provider",
            _column("nodes", "int64", "number of different nodes"),
            *_NODE_MEASURES,
            op_type="operator",
        ),
    ),
    "by_run": TableDoc(
        "prof.by_run()",
        "One row per run of an ONNX Runtime session, in order of start. Device work outside of "
        "runs is left out.",
        _columns(
            _column("run_id", "Int64", "number of the run, as in `ops`"),
            "session",
            _column("repeat", "Int64", "repeat of the code in which it started, as in `ops`"),
            _column("thread_id", "int64", "operating-system thread that ran it"),
            _column("start_ns", "int64", "start, since the profile's start"),
            "host_ns",
            _column("nodes", "int64", "executions of nodes"),
            _column(
                "node_events", "category",
                "how they are known: `recorded`; `learned` (the launches of the run equal those of "
                "a recorded run); `mismatched` (they do not: the device work has no nodes); "
                "`not recorded`; missing for a run that did not end in the profile",
            ),
            "device_ns", "kernels", "memcpys", "bytes",
            _column("call_ns", "Int64", "duration of the call that made the run, if measured"),
            _column(
                "unprofiled_ns", "Int64",
                "median duration of such calls outside of profiles, with the same session and "
                "inputs of the same shapes; missing if not measured",
            ),
            _column("stretch", "float64", "`call_ns` / `unprofiled_ns`; NaN if not measured",
                    "ratio"),
            host_ns="inclusive: host time of the run",
            device_ns="inclusive: device time of the run",
            kernels="inclusive: kernels of the run", memcpys="inclusive: copies of the run",
        ),
    ),
    "by_repeat": TableDoc(
        "prof.by_repeat()",
        "One row per repeat of the code (`--repeat`), in order. `device_ns` and the numbers are "
        "those of the work that the repeat launched, `busy_ns` and `idle_ns` those of the devices "
        "during the repeat.",
        _columns(
            _column("repeat", "int64", "number of the repeat, from 0"),
            _column("start_ns", "int64", "start, since the profile's start"),
            _column("wall_ns", "int64", "time to the start of the next repeat or end of the code"),
            "device_ns",
            _column("busy_ns", "int64", "time during which any device was busy"),
            _column("idle_ns", "int64", "`wall_ns` - `busy_ns`"),
            "kernels", "memcpys", "memsets", "bytes",
            device_ns="device time of what it launched", kernels="kernels it launched",
            memcpys="copies it launched", memsets="memsets it launched",
            bytes="bytes that these copied and set",
        ),
    ),
    "by_step": TableDoc(
        "prof.by_step()",
        "One row per step of a training loop, in order. Times are device time of the work that the "
        "step launched, unless their column says otherwise.",
        _columns(
            _column("step", "int64", "number of the step, from 0 or as passed to `epprof_nb.step`"),
            _column("start_ns", "int64", "start, since the profile's start"),
            _column("wall_ns", "int64", "time from the start to the end of the optimizer's step"),
            _column("data_ns", "int64", "host time of waiting for the data loader"),
            _column("forward_ns", "int64", "work of modules"),
            _column("backward_ns", "int64", "work of the backward pass, recomputation included"),
            _column("optimizer_ns", "int64", "work of optimizers and of clipping gradients"),
            _column("communication_ns", "int64", "kernels of NCCL, which no other column counts"),
            _column("other_ns", "int64", "other work, such as the loss and copies of the batch"),
            _column("device_ns", "int64", "sum of the five columns above"),
            _column("idle_ns", "int64", "time of the step in which no device was busy"),
            "kernels",
            _column("forward_host_ns", "int64", "host time of the forward pass"),
            _column("backward_host_ns", "int64", "host time of the backward pass"),
            _column("optimizer_host_ns", "int64", "host time of optimizers and clipping"),
            kernels="kernels it launched",
        ),
    ),
    "by_module": TableDoc(
        "prof.by_module()",
        "One row per path of a module, by descending device time, and rows for work outside of "
        "modules. `self_device_ns` adds up to the device time of the profile.",
        _columns(
            _column("path", "category", "path, as `model.encoder.layers.3.self_attn`: the index"),
            _column("type", "category", "module, optimizer, autograd, data or compile"),
            _column("class", "category", "class of the module"),
            _column("calls", "int64", "calls, without those that recompute a forward pass"),
            _column("forward_ns", "int64", "inclusive: device time of the forward pass"),
            _column(
                "backward_ns", "int64",
                "inclusive: device time of the backward pass, recomputation included",
            ),
            _column("other_ns", "int64", "inclusive: device time of neither"),
            "device_ns", "self_device_ns", "share", "kernels",
            _column("forward_host_ns", "int64", "inclusive: host time of the calls"),
            _column(
                "backward_host_ns", "int64",
                "inclusive: host time of the nodes of the backward pass and of recomputation",
            ),
            device_ns="inclusive: device time of the module and all modules called in it",
            self_device_ns="self: device time without that of the modules called in it",
            kernels="inclusive: kernels of the module and all modules called in it",
        ),
    ),
    "gaps": TableDoc(
        "prof.gaps()",
        "One row per interval in which a device that did work was idle, by device and time.",
        _columns(
            "device_id",
            _column("start_ns", "int64", "start, since the profile's start"),
            _column("end_ns", "int64", "end, since the profile's start"),
            _column("duration_ns", "int64", "`end_ns` - `start_ns`"),
            _column(
                "position", "category",
                "`between` two activities: an idle gap; `before` the device's first activity; "
                "`after` its last",
            ),
            _column(
                "cause", "category",
                "cause of most of it: `not launched`, `launching`, `waiting`, `held` or `unknown`",
            ),
            _column(
                "not_launched_ns", "int64",
                "time before the API call that launched the next work, without waits of the host",
            ),
            _column(
                "launching_ns", "int64",
                "time in which this launch was on its way, or between two nodes of a replay of a "
                "CUDA graph",
            ),
            _column(
                "waiting_ns", "int64",
                "time before that call in which the host was in a call that synchronizes",
            ),
            _column(
                "held_ns", "int64",
                "time in which the launched work was held by an event or other work",
            ),
            _column("unknown_ns", "int64", "all of it if the API call was not recorded"),
            _column(
                "op_id", "Int64",
                "op that the host ran: the deepest op open at the middle of the interval on the "
                "thread that launched the next activity, or the last one if none follows",
            ),
            "name",
            _column("cell", "category", "cell of the innermost statement that contains the op"),
            _column("line", "Int64", "first line of that statement"),
            name="name of that op", device_id="device that was idle, as in `activities`",
        ),
    ),
    "insights": TableDoc(
        "prof.insights()",
        "One row per finding: causes by descending gain, then hot lines and operators.",
        (
            _column("rank", "int64", "number of the finding, from 1"),
            _column("kind", "category", "cause, as `idle` or `wait`"),
            _column("text", "object", "the finding; source text is between backticks"),
            _column("remedy", "object", "change that removes the cause"),
            _column("gain_ns", "int64", "estimate of the wall time that this saves"),
            _column("gain_low_ns", "int64", "lower bound of the gain"),
            _column("gain_high_ns", "int64", "upper bound of the gain"),
            _column("op_id", "Int64", "op to change; of several, the main one"),
            _column("cell", "category", "cell of the innermost statement that contains the op"),
            _column("line", "Int64", "first line of that statement"),
            _column("start_ns", "int64", "start of a time range that shows it"),
            _column("end_ns", "int64", "end of this time range"),
        ),
    ),
    "overlap": TableDoc(
        "prof.overlap()",
        "One row per device with work. The span is the time from its first to its last work; "
        "`compute_ns` to `idle_ns` add up to it, and the parts of the idle time to `idle_ns`.",
        _columns(
            _column("device", "category", "label of the device"),
            "device_id",
            _column("span_ns", "int64", "time from the first to the last work"),
            _column("compute_ns", "int64", "time in which only kernels that compute ran"),
            _column("copy_ns", "int64", "time in which only copies and memsets ran"),
            _column("communication_ns", "int64", "time in which only communication ran"),
            _column("overlap_ns", "int64", "time in which several of these ran"),
            _column("idle_ns", "int64", "time in which nothing ran"),
            _column("idle_not_launched_ns", "int64", "idle: the host had launched nothing"),
            _column("idle_launching_ns", "int64", "idle: the next launch was on its way"),
            _column("idle_waiting_ns", "int64", "idle: the host was in a call that synchronizes"),
            _column("idle_held_ns", "int64", "idle: an event or other work held launched work"),
            _column("idle_unknown_ns", "int64", "idle: the next launch was not recorded"),
        ),
    ),
    "launches": TableDoc(
        "prof.launches()",
        "One row per statement that launched device work, and per name of other ops, by descending "
        "`api_ns`.",
        (
            *_PLACE_COLUMNS,
            _column("launches", "int64", "API calls that launched work; a graph replay is one"),
            _column("graph_launches", "int64", "replays of CUDA graphs among them"),
            _column("kernels", "int64", "kernels that these launched"),
            _column(
                "short_kernels", "int64", "kernels that took less time than the call that launched "
                "them",
            ),
            _column("api_ns", "int64", "host time in these calls"),
            _column("mean_api_ns", "int64", "host time of a call"),
            _column(
                "launch_delay_ns", "int64", "mean time from the start of a call to that of its work"
            ),
            _column("mean_queued", "float64", "mean number of launches in the queue", "launches"),
            _column("launch_idle_ns", "int64", "idle time of devices that waited for these calls"),
            _column(
                "graph_saving_ns", "int64", "how much of it launching in one CUDA graph would save"
            ),
        ),
    ),
    "transfers": TableDoc(
        "prof.transfers()",
        "One row per statement (or name of other ops), device, direction and kinds of memory of "
        "copies, by descending device time.",
        _columns(
            *_PLACE_COLUMNS,
            "device_id",
            _column("copy_kind", "category", "direction, as in `activities`"),
            _column("src_kind", "category", "kind of memory read"),
            _column("dst_kind", "category", "kind of memory written"),
            _column("copies", "int64", "number of copies"),
            "bytes", "device_ns", "bandwidth",
            _column(
                "peak_bandwidth", "float64",
                "highest bandwidth of a copy of 1 MB or more in this direction; NaN without one",
                "bytes/s",
            ),
            _column("synchronous", "int64", "copies that had ended when their API call returned"),
            _column("repeated", "int64", "copies of the same size as an earlier one of this row"),
            _column("exposed_ns", "int64", "device time of the copies while no kernel ran"),
            bytes="bytes copied", device_ns="device time of the copies",
        ),
    ),
    "waits": TableDoc(
        "prof.waits()",
        "One row per statement (or name of other ops) and API call with which the host waited, by "
        "descending time.",
        (
            *_PLACE_COLUMNS,
            _column("api_name", "category", "API call, as `cudaStreamSynchronize`"),
            _column("waited_for", "category", "work that it waited for the longest"),
            _column("waits", "int64", "number of calls"),
            _column("wait_ns", "int64", "host time in these calls"),
            _column("busy_ns", "int64", "how much of it a device was busy"),
            _column(
                "idle_after_ns", "int64",
                "time from the end of that work until the thread's next launch: the devices idled",
            ),
            _column(
                "avoidable_ns", "int64",
                "how much of this idle time would have overlapped with the work waited for",
            ),
        ),
    ),
    "steadiness": TableDoc(
        "prof.steadiness()",
        "One row per repeat of the code (`--repeat`) or step, in order; without these, one row per "
        "iteration of the longest loop. Excesses are differences from the median of the steady "
        "ones.",
        (
            _column(
                "number", "int64",
                "number of the repeat or step as in the timeline; of an iteration, from 0",
            ),
            _column("start_ns", "int64", "start, since the profile's start"),
            _column("phase", "category", "warm-up, steady or outlier; missing for fewer than 10"),
            _column("wall_ns", "int64", "time to the start of the next one, or end of the code"),
            _column("busy_ns", "int64", "time during which any device was busy"),
            _column("idle_ns", "int64", "`wall_ns` - `busy_ns`"),
            _column("excess_wall_ns", "int64", "excess of the wall time"),
            _column("excess_busy_ns", "int64", "excess of the busy time"),
            _column("excess_idle_ns", "int64", "excess of the idle time"),
        ),
    ),
    "critical_path": TableDoc(
        "prof.critical_path()",
        "One row per step of the longest chain of work and waits, from the start of the profile to "
        "its end.",
        _columns(
            _column(
                "step", "category",
                "`host`: code between API calls; `api_call`; `activity`; `launch_delay`: from the "
                "start of an API call to its activity; `stream_gap`: from the end of earlier work "
                "on the stream, `event_wait`: on another stream, to the start of an activity; "
                "`wait_return`: from the end of what an API call waited for to its return",
            ),
            _column("name", "category", "name of the op, API call or activity"),
            _column("start_ns", "int64", "start, since the profile's start"),
            _column("end_ns", "int64", "end, since the profile's start"),
            _column("duration_ns", "int64", "`end_ns` - `start_ns`"),
            _column("share", "float64", "`duration_ns` / length of the path", "fraction"),
            _column("op_id", "Int64", "op to which the step belongs"),
            _column("op", "category", "name of that op"),
            _column("cell", "category", "cell of the innermost statement that contains the op"),
            _column("line", "Int64", "first line of that statement"),
            _column("thread_id", "Int64", "thread of host code and API calls"),
            _column("device_id", "Int64", "device of the activity"),
            _column("stream_id", "Int64", "stream of the activity"),
            _column("correlation_id", "Int64", "correlation id of the API call or activity"),
        ),
    ),
    "critical_path_op": TableDoc(
        'prof.critical_path(by="op")',
        "One row per op name with time on the critical path, by descending time on it.",
        _columns(
            "name", "op_type", "cell", "line", "count",
            _column("path_ns", "int64", f"inclusive: time on the path {_INCLUSIVE}"),
            _column("share", "float64", "`path_ns` / length of the path", "fraction"),
            _column("self_path_ns", "int64", "self: time of the op itself on the path"),
            _column("device_path_ns", "int64", "part of `path_ns` after a launch or wait"),
            _column("host_path_ns", "int64", "part of `path_ns` in code and API calls"),
            _column(
                "saving_ns", "Int64",
                "by how much the path is shorter if the op and all ops below it cost nothing; at "
                "most `path_ns`; missing beyond the first 24 rows",
            ),
        ),
    ),
    "roofline": TableDoc(
        "prof.roofline()",
        "One row per node, shapes and device, by descending device time; a last row is the device "
        "time whose FLOPs and bytes are unknown.",
        (
            _column("name", "category", "name of the node"),
            _column("op_type", "category", "ONNX operator"),
            _column("input_shapes", "category", "element types and shapes of its inputs"),
            _column("output_shapes", "category", "element types and shapes of its outputs"),
            _column("device_id", "Int64", "device, as in `activities`"),
            _column("count", "int64", "executions; of a captured node, replays"),
            _column("device_ns", "int64", "device time of all executions"),
            _column("share", "float64", "`device_ns` / all device time", "fraction"),
            _column("flops", "float64", "FLOPs of all executions", "FLOPs"),
            _column(
                "least_bytes", "float64", "bytes of all inputs and outputs, each moved once"
            ),
            _column("intensity", "float64", "`flops` / `least_bytes`", "FLOPs/byte"),
            _column("flops_per_s", "float64", "`flops` / `device_ns`", "FLOPs/s"),
            _column("bytes_per_s", "float64", "`least_bytes` / `device_ns`", "bytes/s"),
            _column(
                "bound", "category",
                "`compute` or `memory`: the peak that takes longer; missing without peaks",
            ),
            _column("least_ns", "float64", "time at that peak; NaN without peaks"),
            _column("roof_share", "float64", "`least_ns` / `device_ns`", "fraction"),
        ),
    ),
    "compare_ops": TableDoc(
        "epprof_nb.compare(old, new).ops",
        "One row per path of ops that ran in a repeat of either side, by descending difference in "
        "time. Times, executions and bytes are those of one repeat.",
        (
            _column("path", "category", "names of the op and the ops above it, below the cell"),
            _column("name", "category", "name of the op"),
            _column("old_name", "category", "its name in the old recording if it is renamed"),
            _column("op_type", "category", "cell, line, range, or an ONNX operator"),
            _column("category", "category", "category of the op, as in `ops`"),
            _column("provider", "category", "execution provider that ran it"),
            _column(
                "measure", "category",
                "time compared: `device`, inclusive, if the op launched device work in every "
                "repeat in which it ran, else `host`",
            ),
            *_COMPARED,
            _column("count_before", "Int64", "old: executions; missing if added"),
            _column("count_after", "Int64", "new: executions; missing if removed"),
            _column("bytes_before", "Int64", "old: bytes copied and set", "bytes"),
            _column("bytes_after", "Int64", "new: bytes copied and set", "bytes"),
        ),
    ),
    "compare_kernels": TableDoc(
        "epprof_nb.compare(old, new).kernels",
        "One row per path of ops and kernel name that it launched in a repeat of either side, by "
        "descending difference in time. Times and launches are those of one repeat.",
        (
            _column("path", "category", "names of the op that launched it and the ops above it"),
            _column("name", "category", "demangled name of the kernel"),
            *_COMPARED,
            _column("count_before", "Int64", "old: launches; missing if added"),
            _column("count_after", "Int64", "new: launches; missing if removed"),
        ),
    ),
}  # fmt: skip
"""Every table by name; ``by_line_self`` is ``by_line(inclusive=False)``, and
``by_kernel_short_name`` is ``by_kernel(by="short_name")``."""


def with_columns(*tables: str) -> Callable[[_F], _F]:
    """Decorate a function: ``{columns}`` in its docstring becomes the columns of `tables`."""

    def decorate(function: _F) -> _F:
        if function.__doc__ is not None:  # it is None under python -OO
            text = inspect.cleandoc(function.__doc__)
            lead = next(line for line in text.splitlines() if line.strip() == "{columns}")
            indent = lead[: len(lead) - len(lead.lstrip())]
            parts = [_described(TABLES[name], text, of_several=len(tables) > 1) for name in tables]
            described = textwrap.indent("\n\n".join(parts), indent)
            function.__doc__ = text.replace(lead, described)
        return function

    return decorate


def _described(table: TableDoc, docstring: str, *, of_several: bool) -> str:
    """Return what a row is, unless the docstring says so, and the columns."""
    if docstring.startswith(table.rows):
        return _rst_table(table.columns)
    rows = f"`{table.call}`: {table.rows}" if of_several else table.rows
    filled = textwrap.fill(rows.replace("`", "``"), 88, break_on_hyphens=False)
    return f"{filled}\n\n{_rst_table(table.columns)}"


def _rst_table(columns: Sequence[ColumnDoc]) -> str:
    """Return a simple table of reStructuredText."""
    rows = [("column", "dtype", "unit", "meaning")]
    rows += [(c.name, c.dtype, c.unit, c.meaning.replace("`", "``")) for c in columns]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    rule = "  ".join("=" * width for width in (*widths, _MEANING_WIDTH))
    lines = [rule]
    for i, (*cells, meaning) in enumerate(rows):
        lead = "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True))
        parts = textwrap.wrap(meaning, _MEANING_WIDTH)
        lines += [f"{lead}  {parts[0]}", *(f"{' ' * len(lead)}  {part}" for part in parts[1:])]
        if i == 0:
            lines.append(rule)
    return "\n".join([*lines, rule])
