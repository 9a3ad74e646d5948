"""Columns of the tables of a comparison."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import TableDoc, column

_COMPARED = (
    column("status", "category", "matched, renamed, added or removed"),
    column("before_ns", "Int64", "old: median time; missing if added"),
    column(
        "after_ns", "Int64",
        "new: median time; missing if removed. If repeats alternated, `before_ns` changed by the "
        "change of the pairs",
    ),
    column("change", "float64", "`after_ns` / `before_ns` - 1; NaN if unknown", "fraction"),
    column(
        "change_low", "float64",
        "lower end of its interval, which covers all rows of the table together; NaN if not "
        "tested",
        "fraction",
    ),
    column("change_high", "float64", "upper end of this interval", "fraction"),
    column(
        "p_value", "float64", "p-value of no change, with Holm's correction over all rows",
        "probability",
    ),
    column(
        "verdict", "category",
        "faster, slower or no difference found; cannot tell if it varies too much; added or "
        "removed; not tested if it did not run in every repeat or the recordings cannot be "
        "compared",
    ),
)  # fmt: skip

_ELAPSED = (
    column(
        "elapsed_before_ns", "Int64",
        "old: elapsed time, inclusive: time in which the code of the repeat was in the op, or "
        "the op's device work ran after the end of the code; missing if added, or if the op "
        "ran on another thread",
    ),
    column("elapsed_after_ns", "Int64", "new: elapsed time; missing if removed"),
    column(
        "elapsed_change", "float64", "`elapsed_after_ns` / `elapsed_before_ns` - 1; NaN if unknown",
        "fraction",
    ),
    column(
        "elapsed_change_low", "float64",
        "lower end of its interval, which covers the elapsed times of all rows together; NaN if "
        "not tested",
        "fraction",
    ),
    column("elapsed_change_high", "float64", "upper end of this interval", "fraction"),
    column(
        "elapsed_p_value", "float64",
        "p-value of no change of it, with Holm's correction over all rows", "probability",
    ),
    column("elapsed_verdict", "category", "verdict on the elapsed time, as `verdict`"),
)  # fmt: skip

COMPARISON: dict[str, TableDoc] = {
    "compare_ops": TableDoc(
        "epprof_nb.compare(old, new).ops",
        "One row per path of ops that ran in a repeat of either side, by descending "
        "contribution to the change of the elapsed time. Times, executions and bytes are per "
        "repeat.",
        (
            column("path", "category", "names of the op and the ops above it, below the cell"),
            column("name", "category", "name of the op"),
            column("old_name", "category", "its name in the old recording if it is renamed"),
            column("op_type", "category", "cell, line, range, or an ONNX operator"),
            column("category", "category", "category of the op, as in `ops`"),
            column("provider", "category", "execution provider that ran it"),
            column(
                "measure", "category",
                "time compared: `device`, inclusive, if the op launched device work in every "
                "repeat in which it ran, else `host`",
            ),
            _COMPARED[0],
            column(
                "contribution_ns", "int64",
                "change of the elapsed time of the repeat that the op causes: the change of its "
                "elapsed time without the ops below, and of waits for its device work, up to "
                "the change of this work",
            ),
            column(
                "device_contribution_ns", "Int64",
                "part of it that this device work causes; negative for an op that took longer "
                "because it waited for the device work of another op",
            ),
            *_ELAPSED,
            *_COMPARED[1:],
            column("count_before", "Int64", "old: executions; missing if added"),
            column("count_after", "Int64", "new: executions; missing if removed"),
            column("device_before_ns", "Int64", "old: device time, inclusive; missing if added"),
            column("device_after_ns", "Int64", "new: device time, inclusive; missing if removed"),
            column("host_before_ns", "Int64", "old: host time, of all threads; missing if added"),
            column("host_after_ns", "Int64", "new: host time, of all threads; missing if removed"),
            column("bytes_before", "Int64", "old: bytes copied and set", "bytes"),
            column("bytes_after", "Int64", "new: bytes copied and set", "bytes"),
        ),
    ),
    "compare_kernels": TableDoc(
        "epprof_nb.compare(old, new).kernels",
        "One row per path of ops and kernel name that it launched in a repeat of either side, by "
        "descending difference in time. Times and launches are per repeat.",
        (
            column("path", "category", "names of the op that launched it and the ops above it"),
            column("name", "category", "demangled name of the kernel"),
            *_COMPARED,
            column("count_before", "Int64", "old: launches; missing if added"),
            column("count_after", "Int64", "new: launches; missing if removed"),
        ),
    ),
    "compare_lines": TableDoc(
        "epprof_nb.compare(old, new).lines",
        "One row per line of the user's code that launched device work in a repeat of either side, "
        "by descending difference in time. It is the innermost one in the Python stack of the "
        "launch, else the statement of its op. Lines match by file and text, in their order where "
        "several are equal; all cells count as one file. Times are per repeat.",
        (
            column("source", "object", "text of the line; the function if it is unknown"),
            column("function", "category", "function that the line is in; missing without stacks"),
            column("cell", "category", "cell or file of the line: new, or old if removed"),
            column("line_before", "Int64", "old: number of the line; missing if added"),
            column("line_after", "Int64", "new: number of the line; missing if removed"),
            *_COMPARED,
            column("count_before", "Int64", "old: kernels, copies and memsets; missing if added"),
            column("count_after", "Int64", "new: kernels, copies and memsets; missing if removed"),
        ),
    ),
    "compare_memory": TableDoc(
        "epprof_nb.compare(old, new).memory",
        "One row per path of ops that allocated memory in use at the peak or at the end, by "
        "descending difference at the peak; needs `--detail memory` on both sides. Bytes are those "
        "of the blocks that the op itself allocated: the median over the recordings of a side.",
        (
            column(
                "path", "category",
                "names of the op and the ops above it, below the cell; `(no op)` for memory whose "
                "op is not known. Memory from before the profile does not count",
            ),
            _COMPARED[0],
            column("delta_bytes", "int64", "`peak_after_bytes` - `peak_before_bytes`"),
            column("peak_before_bytes", "int64", "old: in use when all blocks hold most"),
            column("peak_after_bytes", "int64", "new: in use when all blocks hold most"),
            column("steady_before_bytes", "int64", "old: in use at the end of the recording"),
            column("steady_after_bytes", "int64", "new: in use at the end of the recording"),
        ),
    ),
    "compare_by_stack": TableDoc(
        "epprof_nb.compare(old, new).by_stack()",
        "One row per path of Python frames, and below it per name of the activities that it "
        "launched, in a repeat of either side; parents come first. Times and counts are means per "
        "repeat and include the rows below.",
        (
            column("node", "int64", "index: number of the row"),
            column("parent", "Int64", "row above; missing for the session"),
            column("depth", "int64", "number of rows above"),
            column("level", "category", "session, frame, library, none, or the kind of activity"),
            column("name", "category", "function, or name of the activity"),
            column("cell", "category", "cell or file of the frame; the new one if it is matched"),
            column("line", "Int64", "line of the frame, likewise"),
            column("old_line", "Int64", "its line in the old recording; missing if added"),
            column("source", "category", "text of the line; missing if it is not known"),
            _COMPARED[0],
            column("before_ns", "Int64", "old: device time"),
            column("after_ns", "Int64", "new: device time"),
            column("delta_ns", "Int64", "`after_ns` - `before_ns`"),
            column("change", "float64", "`delta_ns` / `before_ns`; NaN if added", "fraction"),
            column("wait_before_ns", "Int64", "old: time for which the host waited"),
            column("wait_after_ns", "Int64", "new: time for which the host waited"),
            *(
                column(f"{name}_{side}", "float64", f"{word}: {text}", "per repeat")
                for name, text in (
                    ("launches", "launches of device work"), ("waits", "waits of the host"),
                    ("kernels", "kernels"), ("activities", "activities"),
                )
                for side, word in (("before", "old"), ("after", "new"))
            ),
        ),
    ),
}  # fmt: skip
"""Tables of a comparison by name."""
