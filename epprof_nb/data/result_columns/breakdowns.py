"""Columns of the breakdowns, `Profile.by_op` and the others."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import (
    DEVICE,
    PLACE_IN_STACK,
    TableDoc,
    column,
    columns,
    measured,
    of_statements,
)

_PER_EXECUTION = ("mean_device_ns", "p95_device_ns")
_MEAN = column("mean_device_ns", "int64", "mean device time of an activity")
_P95 = column("p95_device_ns", "int64", "its 95th percentile, a measured time")
_SHORT_NAME = column(
    "short_name", "category", "short name of the kernel, with its operation, dtype and tile"
)
_KERNEL_MEASURES = (
    "count", "device_ns", "share", _MEAN,
    column("min_device_ns", "int64", "shortest device time of a launch"),
    _P95,
    column("max_device_ns", "int64", "longest device time of a launch"),
    "launch_delay_ns",
    column("grid", "object", "`(x, y, z)` of the most frequent launch; None if unknown",
            "blocks"),
    column("block", "object", "`(x, y, z)` of the most frequent launch; None if unknown",
            "threads"),
    column("ops", "int64", "number of different ops that launched it"),
    column(
        "source", "category",
        "file and line of its function, if it is written in Python with Triton, Numba or CuPy, or "
        "of the instruction that XLA compiled, if all its launches have the same one",
    ),
)  # fmt: skip
_KERNEL_MEANINGS = {
    "count": "launches",
    "device_ns": "device time of all launches",
    "mean_device_ns": "mean device time of a launch",
}

BREAKDOWNS: dict[str, TableDoc] = {
    "by_op": TableDoc(
        "prof.by_op()",
        "One row per name, op type and, for statements, cell and line, by descending device time. "
        "A last row `(no op)` holds activities without an op.",
        columns(
            "name", "op_type", "cell", "line", "arg_<name>", "count", *DEVICE,
            *measured("host_ns", "self_host_ns", "mean_host_ns", "p95_host_ns"),
            **{"arg_<name>": "value of each argument in `args`; missing if the op has none"},
        ),
    ),
    "by_kernel": TableDoc(
        "prof.by_kernel()",
        "One row per kernel name, by descending device time.",
        columns(
            "name", _SHORT_NAME, *_KERNEL_MEASURES,
            name="demangled name of the kernel", **_KERNEL_MEANINGS,
        ),
    ),
    "by_kernel_short_name": TableDoc(
        'prof.by_kernel(by="short_name")',
        "One row per short name, by descending device time.",
        columns(
            _SHORT_NAME,
            column("names", "int64", "number of full names with this short name"),
            *_KERNEL_MEASURES, **_KERNEL_MEANINGS,
        ),
    ),
    "by_stream": TableDoc(
        "prof.by_stream()",
        "One row per device, context and stream with device work, in this order.",
        columns(
            column("stream", "category", "`stream 7`, with device and context if needed"),
            "device_id",
            column("context_id", "Int64", "context, as in `activities`"),
            column("stream_id", "Int64", "stream, as in `activities`"),
            "count", "device_ns",
            column("busy_ns", "int64", "time during which at least one of them ran"),
            "share", _MEAN, _P95, "kernels", "memcpys", "memsets", "bytes",
            "bandwidth", "launch_delay_ns",
            count="activities", device_ns="their total time; overlapping time counts for each",
            mean_device_ns="mean time of an activity", kernels="kernels", memcpys="copies",
            memsets="memsets", bytes="bytes copied and set",
        ),
    ),
    "by_device": TableDoc(
        "prof.by_device()",
        "One row per GPU, and per other device that worked, by id.",
        columns(
            column("device", "category", "`GPU 0` or `host device`; `no device` if unknown"),
            "device_id",
            column("name", "category", "model of the device"),
            column("streams", "int64", "streams with work"),
            "count", "device_ns", "share",
            column("busy_ns", "int64", "time during which at least one of them ran"),
            column("idle_ns", "Int64", "time of the profile during which none ran"),
            column("unknown_ns", "Int64", "time in which work without a record may have run"),
            "kernels", "memcpys", "memsets", "bytes",
            column("sent_bytes", "int64", "bytes that other devices copied from it, or it to them"),
            column("received_bytes", "int64", "bytes copied to it from other devices"),
            count="activities", device_ns="their total time; overlapping time counts for each",
            kernels="kernels", memcpys="copies", memsets="memsets", bytes="bytes copied and set",
        ),
    ),
    "by_line": TableDoc(
        "prof.by_line()",
        "One row per line of your code that launched work, in a cell or a file, and per statement "
        "of the profiled cell that ran, in the order of the source. All times and numbers are "
        "inclusive: they count the line and everything that it ran, with nested statements and the "
        "functions that it called. Their sum exceeds the device time if lines are nested. A last "
        "row `(no line)` holds activities without a line. `Int64` columns are missing for lines "
        "without a marked statement.",
        (
            *PLACE_IN_STACK,
            *of_statements("count", count="executions of the line's statements, including the body "
            "of a one-line loop"),
            *columns(
                *(n for n in DEVICE if n not in ("self_device_ns", *_PER_EXECUTION)),
                device_ns="inclusive: device time of the line and everything that it ran",
                kernels="inclusive: kernels of the line and everything that it ran",
                memcpys="inclusive: copies of the line and everything that it ran",
                memsets="inclusive: memsets of the line and everything that it ran",
            ),
            *of_statements(
                *_PER_EXECUTION, "host_ns", "mean_host_ns", "p95_host_ns",
                mean_host_ns="mean of the inclusive host time of an execution; if statements "
                "of the line are nested, as in a one-line loop, `count` times this mean "
                "exceeds `host_ns`",
                host_ns="inclusive: host time of the statement and everything that it ran",
            ),
            column(
                "sampled_ns", "Int64",
                "inclusive: host time between API calls, by samples; missing without samples",
            ),
            column("launches", "Int64", "inclusive: launches of kernels, copies, memsets, graphs"),
            column("waits", "Int64", "inclusive: API calls that waited for a device"),
            column("wait_ns", "Int64", "inclusive: time of these calls"),
        ),
    ),
    "by_function": TableDoc(
        "prof.by_function()",
        "One row per function of your code that was sampled, the longest self time first. "
        "A last row `(no function)` holds samples outside of your code.",
        (
            column("function", "category", "qualified name of the function"),
            column("file", "category", "its file, or its cell, as In[3]"),
            column("line", "Int64", "its line with most samples; of a statement, its first"),
            column("source", "object", "text of that line"),
            column(
                "sampled_ns", "int64",
                "inclusive: time of the samples with the function anywhere in their stack",
            ),
            column(
                "self_sampled_ns", "int64",
                "self: time of the samples with no other function of your code further inside",
            ),
            column("self_share", "float64", "`self_sampled_ns` / all sampled time", "fraction"),
            column("samples", "int64", "self: number of these samples"),
        ),
    ),
    "by_line_self": TableDoc(
        "prof.by_line(inclusive=False)",
        "The same rows. All times and numbers are self: without nested statements and your "
        "functions, which have their own rows, but with the ranges, library ops and library code "
        "that the line ran. The columns add up to the totals of the profile.",
        (
            *PLACE_IN_STACK,
            *of_statements("count"),
            column("self_device_ns", "int64", "self: device time without nested lines"),
            column("self_share", "float64", "`self_device_ns` / all device time", "fraction"),
            column("self_kernels", "int64", "self: kernels without nested lines"),
            column("self_memcpys", "int64", "self: copies without nested lines"),
            column("self_memsets", "int64", "self: memsets without nested lines"),
            column("self_bytes", "int64", "self: bytes that these copied and set"),
            column("self_bandwidth", "float64", "`bandwidth` of these copies", "bytes/s"),
            column("self_launch_delay_ns", "Int64", "`launch_delay_ns` of these kernels"),
            column("self_host_ns", "Int64", "self: host time without nested statements"),
            column(
                "self_sampled_ns", "Int64",
                "self: host time between API calls, by samples, without nested lines; missing "
                "without samples",
            ),
            column("self_launches", "Int64", "self: launches without nested lines"),
            column("self_waits", "Int64", "self: waits without nested lines"),
            column("self_wait_ns", "Int64", "self: time of these waits"),
        ),
    ),
    "by_path": TableDoc(
        "prof.by_path()",
        "A tree with one row per path of names, parents before their children. Executions of one "
        "path share a row. The last step of a path may be the name of an activity.",
        columns(
            column("node", "int64", "index: number of the row"),
            column("parent", "Int64", "row above; missing for the session, which is row 0"),
            column("depth", "int64", "steps from the session"),
            column(
                "level", "category",
                "session, cell, line, range, run, node, ...; the kind of an activity",
            ),
            "name", "op_type", "cell", "line", "count", "device_ns", "self_device_ns",
            *measured("host_ns"), "kernels", "bytes",
            name="name of the op or activity; `(no op)` holds activities without an op",
            op_type="operator of a node; for other ops the same as `level`",
            count="executions of an op; number of activities",
            device_ns="inclusive: device time of the row and all rows below it",
            self_device_ns="self: device time of work that the op itself launched; 0 for an "
            "activity, whose time belongs to the op above",
            host_ns="inclusive: host time of an op; for the session, of the outermost ops; missing "
            "where none was measured, as for activities",
            kernels="inclusive: kernels of the row and all rows below it",
        ),
    ),
    "by_stack": TableDoc(
        "prof.by_stack()",
        "A tree with one row per stack of frames, each caller followed by the frames that it "
        "calls, the largest device time first. Stacks that differ only in frames of libraries "
        "share a row, if these are not shown. The last step may be the name of an activity. A row "
        "`(no stack)` holds work without one.",
        columns(
            column("node", "int64", "index: number of the row"),
            column("parent", "Int64", "row of the caller; missing for the session, which is row 0"),
            column("depth", "int64", "steps from the session"),
            column(
                "level", "category",
                "session; frame, of your code; library; none; for an activity its kind",
            ),
            "name", "cell", "line",
            column("source", "category", "text of the line; missing if it is not known"),
            "count", "device_ns", "self_device_ns",
            column("launches", "Int64", "inclusive: launches of kernels, copies, memsets, graphs"),
            column("waits", "Int64", "inclusive: API calls that waited for a device"),
            column("wait_ns", "Int64", "inclusive: time of these calls"),
            "kernels", "bytes",
            name="function of the frame, or name of the activity",
            cell="cell of the frame, as In[3], or its file", line="line of the frame, from 1",
            count="inclusive: activities of the row and all rows below it",
            device_ns="inclusive: device time of the row and all rows below it",
            self_device_ns="self: device time of work that the frame itself launched; 0 for an "
            "activity, whose time belongs to the frame above",
            kernels="inclusive: kernels of the row and all rows below it",
        ),
    ),
}  # fmt: skip
"""Breakdowns by name."""
