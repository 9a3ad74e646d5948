"""Columns of the analyses, from `Profile.gaps` to `Profile.roofline`."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import (
    INCLUSIVE,
    PLACE_COLUMNS,
    TableDoc,
    column,
    columns,
)

ANALYSES: dict[str, TableDoc] = {
    "gaps": TableDoc(
        "prof.gaps()",
        "One row per interval in which a device that did work was idle, by device and time.",
        columns(
            "device_id",
            column("start_ns", "int64", "start, since the profile's start"),
            column("end_ns", "int64", "end, since the profile's start"),
            column("duration_ns", "int64", "`end_ns` - `start_ns`"),
            column(
                "position", "category",
                "`between` two activities: an idle gap; `before` the device's first activity; "
                "`after` its last",
            ),
            column(
                "cause", "category",
                "main cause: `not launched`, `launching`, `waiting`, `held` or `unknown`",
            ),
            column(
                "not_launched_ns", "int64",
                "time before the API call that launched the next work, without waits of the host",
            ),
            column(
                "launching_ns", "int64",
                "time in which this launch was on its way, or between two nodes of a replay of a "
                "CUDA graph",
            ),
            column(
                "waiting_ns", "int64",
                "time before that call in which the host was in a call that synchronizes",
            ),
            column(
                "held_ns", "int64",
                "time in which the launched work was held by an event or other work",
            ),
            column("unknown_ns", "int64", "the whole interval if the API call was not recorded"),
            column(
                "op_id", "Int64",
                "op that the host ran: the deepest op open at the middle of the interval on the "
                "thread that launched the next activity, or the last one if none follows",
            ),
            "name",
            column("cell", "category", "cell of the innermost statement that contains the op"),
            column("line", "Int64", "first line of that statement"),
            column(
                "host_function", "category",
                "function of your code in which most samples of that thread were: what the host "
                "ran; missing without samples, or if most were in other code",
            ),
            column("host_file", "category", "its file, or its cell, as In[3]"),
            column("host_line", "Int64", "line of it with most samples"),
            column(
                "host_samples", "Int64",
                "number of samples in the interval; missing if the host was not sampled",
            ),
            name="name of that op", device_id="device that was idle, as in `activities`",
        ),
    ),
    "insights": TableDoc(
        "prof.insights()",
        "One row per finding: causes by descending gain, then hot lines and operators.",
        (
            column("rank", "int64", "number of the finding, from 1"),
            column("kind", "category", "cause, such as `idle` or `wait`"),
            column("text", "object", "the finding; source text is between backticks"),
            column("remedy", "object", "change that removes the cause"),
            column("gain_ns", "int64", "estimate of the wall time that this saves"),
            column("gain_low_ns", "int64", "lower bound of the gain"),
            column("gain_high_ns", "int64", "upper bound of the gain"),
            column("op_id", "Int64", "op to change; the main one if there are several"),
            column("cell", "category", "cell of the innermost statement that contains the op"),
            column("line", "Int64", "first line of that statement"),
            column("start_ns", "int64", "start of a time range that shows it"),
            column("end_ns", "int64", "end of this time range"),
        ),
    ),
    "overlap": TableDoc(
        "prof.overlap()",
        "One row per device with work. The span is the time from its first to its last work; "
        "`compute_ns` to `not_recorded_ns` add up to it, and the parts of the idle time to "
        "`idle_ns`.",
        columns(
            column("device", "category", "label of the device"),
            "device_id",
            column("span_ns", "int64", "time from the first to the last work"),
            column("compute_ns", "int64", "time in which only kernels that compute ran"),
            column("copy_ns", "int64", "time in which only copies and memsets ran"),
            column("communication_ns", "int64", "time in which only communication ran"),
            column("overlap_ns", "int64", "time in which several of these ran"),
            column("idle_ns", "int64", "time in which nothing ran"),
            column(
                "not_recorded_ns", "Int64",
                "time without recorded work while records are missing: possibly not idle",
            ),
            column("idle_not_launched_ns", "int64", "idle: the host had launched nothing"),
            column("idle_launching_ns", "int64", "idle: the next launch was on its way"),
            column("idle_waiting_ns", "int64", "idle: the host was in a call that synchronizes"),
            column("idle_held_ns", "int64", "idle: an event or other work held launched work"),
            column("idle_unknown_ns", "int64", "idle: the next launch was not recorded"),
        ),
    ),
    "launches": TableDoc(
        "prof.launches()",
        "One row per statement that launched device work, and per name of other ops, by descending "
        "`api_ns`.",
        (
            *PLACE_COLUMNS,
            column("launches", "int64", "API calls that launched work; a graph replay is one"),
            column("graph_launches", "int64", "replays of CUDA graphs among them"),
            column("kernels", "int64", "kernels that these launched"),
            column(
                "short_kernels", "int64", "kernels that took less time than the call that launched "
                "them",
            ),
            column("api_ns", "int64", "host time in these calls"),
            column("mean_api_ns", "int64", "host time of a call"),
            column(
                "launch_delay_ns", "int64",
                "mean time from the start of a call to the start of its work",
            ),
            column("mean_queued", "float64", "mean number of launches in the queue", "launches"),
            column("launch_idle_ns", "int64", "idle time of devices that waited for these calls"),
            column(
                "graph_saving_ns", "int64", "part of it that launching one CUDA graph would save"
            ),
        ),
    ),
    "transfers": TableDoc(
        "prof.transfers()",
        "One row per statement (or name of other ops), device, direction and kinds of memory of "
        "copies, by descending device time.",
        columns(
            *PLACE_COLUMNS,
            "device_id",
            column("copy_kind", "category", "direction, as in `activities`"),
            column("src_kind", "category", "kind of memory read"),
            column("dst_kind", "category", "kind of memory written"),
            column("copies", "int64", "number of copies"),
            "bytes", "device_ns", "bandwidth",
            column(
                "peak_bandwidth", "float64",
                "highest bandwidth of a copy of 1 MB or more in this direction, or of the link, "
                "if it is known and higher; NaN if both are unknown",
                "bytes/s",
            ),
            column("synchronous", "int64", "copies that ended before their API call returned"),
            column(
                "same_size", "int64",
                "copies of the same size as an earlier one of this row; their contents may differ",
            ),
            column("exposed_ns", "int64", "device time of the copies while no kernel ran"),
            bytes="bytes copied", device_ns="device time of the copies",
        ),
    ),
    "waits": TableDoc(
        "prof.waits()",
        "One row per statement (or name of other ops) and API call with which the host waited, by "
        "descending time.",
        (
            *PLACE_COLUMNS,
            column("api_name", "category", "API call, such as `cudaStreamSynchronize`"),
            column("waited_for", "category", "work that it waited for the longest"),
            column("waits", "int64", "number of calls"),
            column("wait_ns", "int64", "host time in these calls"),
            column("busy_ns", "int64", "part of `wait_ns` in which a device was busy"),
            column(
                "idle_after_ns", "int64",
                "time from the end of that work until the thread's next launch: the devices idled",
            ),
            column(
                "avoidable_ns", "int64",
                "part of this idle time that could overlap with the awaited work",
            ),
        ),
    ),
    "steadiness": TableDoc(
        "prof.steadiness()",
        "One row per repeat of the code (`--repeat`) or step, in order; without these, one row per "
        "iteration of the longest loop. Excesses are differences from the median of the steady "
        "ones.",
        (
            column(
                "number", "int64",
                "number of the repeat or step, as in the timeline; iterations count from 0",
            ),
            column("start_ns", "int64", "start, since the profile's start"),
            column("phase", "category", "warm-up, steady or outlier; missing if fewer than 10"),
            column("wall_ns", "int64", "time to the start of the next one, or end of the code"),
            column("busy_ns", "Int64", "time in which a device was busy; missing without records"),
            column("idle_ns", "Int64", "`wall_ns` - `busy_ns`"),
            column("excess_wall_ns", "int64", "excess of the wall time"),
            column("excess_busy_ns", "Int64", "excess of the busy time"),
            column("excess_idle_ns", "Int64", "excess of the idle time"),
        ),
    ),
    "critical_path": TableDoc(
        "prof.critical_path()",
        "One row per step of the longest chain of work and waits, from the start of the profile to "
        "its end.",
        columns(
            column(
                "step", "category",
                "`host`: code between API calls; `api_call`; `activity`; `launch_delay`: from the "
                "start of an API call to its activity; `stream_gap`: from the end of earlier work "
                "on the stream, `event_wait`: on another stream, to the start of an activity; "
                "`wait_return`: from the end of the awaited work to the return of the API call",
            ),
            column("name", "category", "name of the op, API call or activity"),
            column("start_ns", "int64", "start, since the profile's start"),
            column("end_ns", "int64", "end, since the profile's start"),
            column("duration_ns", "int64", "`end_ns` - `start_ns`"),
            column("share", "float64", "`duration_ns` / length of the path", "fraction"),
            column("op_id", "Int64", "op to which the step belongs"),
            column("op", "category", "name of that op"),
            column(
                "cell", "category",
                "cell or file of the innermost line of the user's code in the stack of the API "
                "call or launch, else of the innermost statement that contains the op",
            ),
            column("line", "Int64", "that line, from 1; of a statement, the first"),
            column("thread_id", "Int64", "thread of host code and API calls"),
            column("device_id", "Int64", "device of the activity"),
            column("stream_id", "Int64", "stream of the activity"),
            column("correlation_id", "Int64", "correlation id of the API call or activity"),
        ),
    ),
    "critical_path_op": TableDoc(
        'prof.critical_path(by="op")',
        "One row per op name with time on the critical path, by descending time on it.",
        columns(
            "name",
            column(
                "saving_ns", "Int64",
                "time by which the path is shorter without the op and all ops below it, as by "
                "`what_if` with the factor 0; missing beyond the first 24 rows",
            ),
            column("path_ns", "int64", f"inclusive: time on the path {INCLUSIVE}"),
            column("share", "float64", "`path_ns` / length of the path", "fraction"),
            "op_type", "cell", "line", "count",
            column("self_path_ns", "int64", "self: time of the op itself on the path"),
            column("device_path_ns", "Int64", "part of `path_ns` after a launch or wait"),
            column("host_path_ns", "int64", "part of `path_ns` in code and API calls"),
        ),
    ),
    "critical_path_line": TableDoc(
        'prof.critical_path(by="line")',
        "One row per line of the user's code with time on the critical path, by descending time on "
        "it; a last row is the time without a line.",
        columns(
            "cell", "line",
            column("source", "object", "text of the line; the function if it is unknown"),
            column("function", "category", "function that the line is in; missing without stacks"),
            column(
                "saving_ns", "Int64",
                "time by which the path is shorter without all that the line and the functions it "
                "calls run, as by `what_if` with the factor 0; missing beyond the first 24 rows",
            ),
            column(
                "path_ns", "int64",
                "inclusive: time on the path of launches, waits and their work whose stack has the "
                "line, and of code in the statement",
            ),
            column("share", "float64", "`path_ns` / length of the path", "fraction"),
            column("self_path_ns", "int64", "part of `path_ns` whose innermost line it is"),
            column("device_path_ns", "Int64", "part of `path_ns` after a launch or wait"),
            column("host_path_ns", "int64", "part of `path_ns` in code and API calls"),
        ),
    ),
    "what_if": TableDoc(
        "prof.what_if(changes)",
        "One row per change, and a last row for all of them if there are several.",
        columns(
            column(
                "changed", "object",
                "name of what has another duration; `all of them` where `factor` is missing",
            ),
            column("factor", "float64", "factor of its duration; missing for all", "fraction"),
            column(
                "wall_ns", "Int64",
                "new wall time: the profile's, less what recording took, as far as it is known, "
                "and `saving_ns`",
            ),
            column("wall_low_ns", "Int64", "least new wall time; see `saving_high_ns`"),
            column("wall_high_ns", "Int64", "greatest new wall time; see `saving_low_ns`"),
            column(
                "saving_ns", "Int64",
                "saving in the replay; negative if it gets slower; missing if it is not known, "
                "because an op took turns with other coroutines",
            ),
            column(
                "saving_low_ns", "int64",
                "the same, but less if idle time of a thread may end at a time of the clock",
            ),
            column(
                "saving_high_ns", "int64",
                "saving if other kernels lose the removed time in which they ran, too, or only "
                "waited for the device; or if idle time of a thread ends with the work of another",
            ),
            column(
                "limit", "category",
                "most of the new path: `host`: code and API calls; `device`: kernels and copies; "
                "`delays`: between them",
            ),
            column("limit_share", "float64", "its share of the new path", "fraction"),
        ),
    ),
    "sensitivity": TableDoc(
        "prof.sensitivity()",
        "One row per named op, by descending time; without an experiment, no rows.",
        columns(
            column("name", "category", "name of the op; with all ops below it"),
            column("device_share", "float64", "its device time / wall time", "fraction"),
            column(
                "host_share", "float64",
                "time of its code and API calls, without waits for the device / wall time",
                "fraction",
            ),
            *(
                doc
                for side, what in (("device", "device work"), ("host", "code"))
                for doc in (
                    column(
                        f"{side}_sensitivity", "float64",
                        f"wall time per delay after its {what}; missing if it was not measured",
                        "ns/ns",
                    ),
                    column(
                        f"{side}_sensitivity_low", "float64", "low end of its interval", "ns/ns"
                    ),
                    column(
                        f"{side}_sensitivity_high", "float64", "high end of its interval", "ns/ns"
                    ),
                    column(
                        f"{side}_replayed", "float64", "the same in the replay of the profile",
                        "ns/ns",
                    ),
                )
            ),
            column(
                "agrees", "boolean",
                "whether the replayed and the measured sensitivities agree",
            ),
            column(
                "saving_if_free_ns", "Int64",
                "saving of a repeat in which the op takes no time, in the replay, but at most "
                "`saving_high_ns`",
            ),
            column(
                "saving_low_ns", "Int64",
                "the same less the scatter of repeats, and at most the low ends of the "
                "sensitivities x time",
            ),
            column(
                "saving_high_ns", "Int64",
                "high ends of the sensitivities x time, what its waits for the device save, and "
                "the time in which other kernels overlapped with its device work or waited for it",
            ),
            column(
                "limit", "category",
                "most of the path without the op: `host`, `device` or `delays`, as in `what_if`",
            ),
            column("executions", "int64", "executions of the op in a repeat"),
            column(
                "note", "object",
                "what was not measured, and where measurement and replay disagree",
            ),
        ),
    ),
    "roofline": TableDoc(
        "prof.roofline()",
        "One row per node, shapes and device, by descending device time; a last row is the device "
        "time whose FLOPs and bytes are unknown.",
        (
            column("name", "category", "name of the node"),
            column("op_type", "category", "ONNX operator"),
            column("input_shapes", "category", "element types and shapes of its inputs"),
            column("output_shapes", "category", "element types and shapes of its outputs"),
            column("device_id", "Int64", "device, as in `activities`"),
            column("count", "int64", "executions; replays for a captured node"),
            column("device_ns", "int64", "device time of all executions"),
            column("share", "float64", "`device_ns` / all device time", "fraction"),
            column("flops", "float64", "FLOPs of all executions", "FLOPs"),
            column(
                "least_bytes", "float64", "bytes of all inputs and outputs, each moved once"
            ),
            column("intensity", "float64", "`flops` / `least_bytes`", "FLOPs/byte"),
            column("flops_per_s", "float64", "`flops` / `device_ns`", "FLOPs/s"),
            column("bytes_per_s", "float64", "`least_bytes` / `device_ns`", "bytes/s"),
            column(
                "bound", "category",
                "`compute` or `memory`: the peak that takes longer; missing without peaks",
            ),
            column("least_ns", "float64", "time at that peak; NaN without peaks"),
            column("roof_share", "float64", "`least_ns` / `device_ns`", "fraction"),
        ),
    ),
}  # fmt: skip
"""Analyses by name."""
