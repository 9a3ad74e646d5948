"""Columns of the breakdowns, `Profile.by_op` and the others."""

from __future__ import annotations

from epprof_nb.data.column_docs.description import (
    DEVICE,
    PLACE,
    SHARED,
    ColumnDoc,
    TableDoc,
    column,
    columns,
)

_RECORDED = column(
    "recorded", "int64",
    "executions in runs that were recorded node by node; host times are only from these",
)  # fmt: skip
_UNPROFILED = column(
    "unprofiled_host_ns", "int64",
    "estimate of the host time in all runs without the profiler: recorded runs stand for other "
    "runs with inputs of the same shapes",
)  # fmt: skip
_NODE_COUNT = "executions, including replays of a captured node"
_NODE_COST = ("count", "device_ns", "share", "host_ns", "mean_host_ns")
_NODE_DETAILS: tuple[str | ColumnDoc, ...] = (
    _RECORDED, _UNPROFILED, "p50_host_ns", "p95_host_ns",
    *(name for name in DEVICE if name not in _NODE_COST),
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
        "most memory of the allocator in use at the end of one of them; likewise",
    ),
    column(
        "pool_start_ns", "Int64",
        "time that these executions spent starting threads of the session's pool",
    ),
    column("pool_wait_ns", "Int64", "time that they spent waiting for such threads"),
)  # fmt: skip
_SHORT_NAME = column(
    "short_name", "category", "short name of the kernel, with its operation, dtype and tile"
)
_KERNEL_MEASURES = (
    "count", "device_ns", "share", "mean_device_ns",
    column("min_device_ns", "int64", "shortest device time of a launch"),
    "p95_device_ns",
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
            "name", "op_type", "cell", "line", "arg_<name>", "count", *DEVICE, "host_ns",
            "self_host_ns", "mean_host_ns", "p95_host_ns",
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
        "inclusive: they count the statement and everything that it ran, with nested statements. "
        "Their sum exceeds the device time if statements are nested. A last row `(no line)` holds "
        "activities without a statement.",
        (
            *PLACE,
            *columns(
                "count", *(name for name in DEVICE if name != "self_device_ns"), "host_ns",
                "mean_host_ns", "p95_host_ns",
                count="executions of the line's statements; a one-line loop's body counts, too",
                mean_host_ns="mean of the inclusive host time of an execution; if statements "
                "of the line are nested, as in a one-line loop, `count` times it exceeds `host_ns`",
                device_ns="inclusive: device time of the statement and everything that it ran",
                kernels="inclusive: kernels of the statement and everything that it ran",
                memcpys="inclusive: copies of the statement and everything that it ran",
                memsets="inclusive: memsets of the statement and everything that it ran",
                host_ns="inclusive: host time of the statement and everything that it ran",
            ),
        ),
    ),
    "by_line_self": TableDoc(
        "prof.by_line(inclusive=False)",
        "The same rows. All times and numbers are self: without nested statements, which have "
        "their own rows, but with the ranges and library ops that the statement ran. The columns "
        "add up to the totals of the profile.",
        (
            *PLACE,
            SHARED["count"],
            column("self_device_ns", "int64", "self: device time without nested statements"),
            column("self_share", "float64", "`self_device_ns` / all device time", "fraction"),
            column("self_kernels", "int64", "self: kernels without nested statements"),
            column("self_memcpys", "int64", "self: copies without nested statements"),
            column("self_memsets", "int64", "self: memsets without nested statements"),
            column("self_bytes", "int64", "self: bytes that these copied and set"),
            column("self_bandwidth", "float64", "`bandwidth` of these copies", "bytes/s"),
            column("self_launch_delay_ns", "Int64", "`launch_delay_ns` of these kernels"),
            column("self_host_ns", "int64", "self: host time without nested statements"),
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
                "session, cell, line, range, run, node, ...; for an activity its kind",
            ),
            "name", "op_type", "cell", "line", "count", "device_ns", "self_device_ns", "host_ns",
            "kernels", "bytes",
            name="name of the op or activity; `(no op)` holds activities without an op",
            op_type="operator of a node; for other ops the same as `level`",
            count="executions of an op; number of activities",
            device_ns="inclusive: device time of the row and all rows below it",
            self_device_ns="self: device time of work that the op itself launched; 0 for an "
            "activity, whose time belongs to the op above",
            host_ns="inclusive: host time of an op; of the session, of the outermost ops",
            kernels="inclusive: kernels of the row and all rows below it",
        ),
    ),
    "by_node": TableDoc(
        "prof.by_node()",
        "One row per node of an ONNX Runtime session, by descending device time, then host time. A "
        "node inside an If, Loop or Scan also counts for that one. A last row `(no node)` holds "
        "device work without a node. The first columns have the node, its provider, counts and "
        "times; the place of the node, details of its times, fallbacks, memory and threads follow.",
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
                "device time of these copies, which the rows of the copy nodes have, too",
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
            column("nodes", "int64", "executions of nodes, also by the replay of a graph"),
            column(
                "node_events", "category",
                "how they are known: `recorded`; `learned` (the run launched the same as a "
                "recorded run); `captured` (the run replays a graph that captured them); "
                "`mismatched` (its launches equal no run's: the device work has no nodes); "
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
    "by_repeat": TableDoc(
        "prof.by_repeat()",
        "One row per repeat of the code (`--repeat`), in order. `device_ns` and the numbers "
        "count the work that the repeat launched; `busy_ns` and `idle_ns` are times of the devices "
        "during the repeat. Values that missing records make incomplete are missing.",
        columns(
            column("repeat", "int64", "number of the repeat, from 0"),
            column("start_ns", "int64", "start, since the profile's start"),
            column("wall_ns", "int64", "time to the start of the next repeat or end of the code"),
            column("device_ns", "Int64", "device time of the work that it launched"),
            column("busy_ns", "Int64", "time during which any device was busy"),
            column("idle_ns", "Int64", "`wall_ns` - `busy_ns`"),
            column("kernels", "Int64", "kernels it launched", ""),
            column("memcpys", "Int64", "copies it launched", ""),
            column("memsets", "Int64", "memsets it launched", ""),
            column("bytes", "Int64", "bytes that these copied and set", "bytes"),
        ),
    ),
    "by_step": TableDoc(
        "prof.by_step()",
        "One row per step of a training loop, in order. Times are device time of the work that the "
        "step launched, unless their column says otherwise.",
        columns(
            column("step", "int64", "number of the step, from 0 or as passed to `epprof_nb.step`"),
            column("start_ns", "int64", "start, since the profile's start"),
            column("wall_ns", "int64", "time from the start to the end of the optimizer's step"),
            column("data_ns", "int64", "host time of waiting for the data loader"),
            column("forward_ns", "int64", "work of modules"),
            column("backward_ns", "int64", "work of the backward pass, recomputation included"),
            column("optimizer_ns", "int64", "work of optimizers and of clipping gradients"),
            column("communication_ns", "int64", "kernels of NCCL, which no other column counts"),
            column("other_ns", "int64", "other work, such as the loss and copies of the batch"),
            column("device_ns", "int64", "sum of the five columns above"),
            column(
                "idle_ns", "Int64",
                "time of the step in which no device was busy; missing if none had work",
            ),
            "kernels",
            column("forward_host_ns", "int64", "host time of the forward pass"),
            column("backward_host_ns", "int64", "host time of the backward pass"),
            column("optimizer_host_ns", "int64", "host time of optimizers and clipping"),
            column(
                "other_host_ns", "int64",
                "time of the step in which the host was in no phase, or compiled",
            ),
            kernels="kernels it launched",
        ),
    ),
    "by_phase": TableDoc(
        "prof.by_phase()",
        "One row per generation of a language model and phase, in order.",
        columns(
            column("model", "category", "file of the session, or path of the module"),
            column("generation", "int64", "number of the generation, from 0"),
            column("phase", "category", "`prefill` or `decode`"),
            column("calls", "int64", "calls of the model"),
            column("batch", "Int64", "sequences; missing if unknown"),
            column("tokens", "int64", "tokens of each sequence that the calls processed"),
            column("past_tokens", "int64", "tokens of each in the KV cache before the first call"),
            column(
                "cache_bytes", "Int64",
                "largest size of the KV cache in a call; missing if unknown",
            ),
            column("start_ns", "int64", "start of the first call, since the profile's start"),
            column(
                "wall_ns", "int64",
                "time to the start of the next phase, else to the end of the last call",
            ),
            column("ns_per_token", "int64", "`wall_ns` / `tokens`", "ns"),
            column(
                "tokens_per_s", "float64",
                "tokens of all sequences / `wall_ns`, with the profiler; of one sequence if "
                "`batch` is missing",
                "1/s",
            ),
            column(
                "unprofiled_tokens_per_s", "float64",
                "estimate of the same without the profiler; NaN if its slowdown is not known",
                "1/s",
            ),
            column("host_ns", "int64", "host time of the calls"),
            "device_ns", "kernels",
            column(
                "idle_ns", "Int64",
                "part of `wall_ns` in which no device was busy; missing if none had work",
            ),
            column(
                "launch_idle_ns", "Int64",
                "time for which devices waited for launches by the calls, see `launches`; likewise",
            ),
            device_ns="device time of work that the calls launched",
            kernels="kernels they launched",
        ),
    ),
    "by_module": TableDoc(
        "prof.by_module()",
        "One row per path of a module, by descending device time, and rows for work outside "
        "modules. `self_device_ns` adds up to the device time of the profile.",
        columns(
            column("path", "category", "path, as `model.encoder.layers.3.self_attn`: the index"),
            column("type", "category", "module, fused, optimizer, autograd, data or compile"),
            column("class", "category", "class of the module"),
            column(
                "calls", "int64",
                "calls, without those that recompute a forward pass or are compiled into the code "
                "of another module",
            ),
            "device_ns", "host_ns",
            column("forward_ns", "int64", "inclusive: device time of the forward pass"),
            column("forward_host_ns", "int64", "inclusive: host time of the calls of the module"),
            column(
                "backward_ns", "int64",
                "inclusive: device time of the backward pass, recomputation included",
            ),
            column(
                "backward_host_ns", "int64",
                "inclusive: host time of the nodes of the backward pass and of recomputation",
            ),
            column("other_ns", "int64", "inclusive: device time outside both passes"),
            column(
                "other_host_ns", "int64",
                "host time of a row outside modules and the backward pass, such as an "
                "optimizer; in the last row, host time that no other row has",
            ),
            "self_device_ns", "share", "kernels",
            host_ns="sum of `forward_host_ns`, `backward_host_ns` and `other_host_ns`; in a row "
            "outside modules, without the modules called in it",
            device_ns="inclusive: device time of the module and all modules called in it",
            self_device_ns="self: device time without the modules called in it",
            kernels="inclusive: kernels of the module and all modules called in it",
        ),
    ),
    "by_operator": TableDoc(
        "prof.by_operator()",
        "One row per operator and per kind of backward node of PyTorch, by descending device time. "
        "A last row `(no operator)` holds activities outside operators.",
        columns(
            column("name", "category", "name of the operator or node"),
            column("op_type", "category", "operator or autograd_node"),
            column("module", "category", "path of the module, with `modules=True`"),
            column("input_shapes", "category", "shapes of the inputs, with `shapes=True`"),
            "count", "device_ns", "host_ns", "self_device_ns", "self_host_ns",
            column(
                "backward_ns", "int64",
                "device time of the backward nodes that the operator, or those in it, created",
            ),
            column("backward_host_ns", "int64", "host time of these nodes"),
            *(name for name in DEVICE if name not in ("device_ns", "self_device_ns")),
        ),
    ),
}  # fmt: skip
"""Breakdowns by name."""
