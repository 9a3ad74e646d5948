"""Columns of the tables on repeats, steps and phases, and on what frameworks ran in them."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import DEVICE, TableDoc, column, columns, measured

TRAINING: dict[str, TableDoc] = {
    "by_repeat": TableDoc(
        "prof.by_repeat()",
        "One row per repeat of the code (`--repeat`), in order. `device_ns` and the numbers "
        "count the work that the repeat launched; `busy_ns` and `idle_ns` are times of the devices "
        "during the repeat. Values are missing if missing records affect them.",
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
        "step launched, unless their column says otherwise. Those of phases are missing if PyTorch "
        "was not recorded (`frameworks=`).",
        columns(
            column("step", "int64", "number of the step, from 0 or as passed to `epprof_nb.step`"),
            column("start_ns", "int64", "start, since the profile's start"),
            column("wall_ns", "int64", "time from the start to the end of the optimizer's step"),
            column("data_ns", "Int64", "host time of waiting for the data loader"),
            column("forward_ns", "Int64", "work of modules"),
            column("backward_ns", "Int64", "work of the backward pass, recomputation included"),
            column("optimizer_ns", "Int64", "work of optimizers and of clipping gradients"),
            column("communication_ns", "int64", "kernels of NCCL, which no other column counts"),
            column("other_ns", "Int64", "other work, such as the loss and copies of the batch"),
            column("device_ns", "int64", "sum of the five columns above"),
            column(
                "idle_ns", "Int64",
                "time of the step in which no device was busy; missing if none had work",
            ),
            "kernels",
            column("forward_host_ns", "Int64", "host time of the forward pass"),
            column("backward_host_ns", "Int64", "host time of the backward pass"),
            column("optimizer_host_ns", "Int64", "host time of optimizers and clipping"),
            column(
                "other_host_ns", "Int64",
                "time of the step in which the host was in no phase, or compiled",
            ),
            kernels="kernels it launched",
        ),
    ),
    "by_phase": TableDoc(
        "prof.by_phase()",
        "One row per generation of a language model and phase, in order.",
        columns(
            column(
                "model", "category",
                "file of the session, path of the module, or name that `epprof_nb.phase` gives it",
            ),
            column("generation", "int64", "number of the generation, from 0"),
            column("phase", "category", "`prefill` or `decode`"),
            column("calls", "int64", "calls of the model"),
            column("batch", "Int64", "most sequences of a call; missing if unknown"),
            column("tokens", "int64", "tokens of each sequence that the calls processed"),
            column(
                "past_tokens", "Int64",
                "tokens of each in the KV cache before the first call; missing if unknown",
            ),
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
                "tokens of the sequences of each call / `wall_ns`, with the profiler; of one if "
                "`batch` is missing",
                "1/s",
            ),
            column(
                "unprofiled_tokens_per_s", "float64",
                "estimate of the same without the profiler; NaN if it is not known well what "
                "profiling added",
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
            column("path", "category", "index: path, such as `model.encoder.layers.3.attn`"),
            column("type", "category", "module, fused, optimizer, autograd, data or compile"),
            column("class", "category", "class of the module"),
            column(
                "calls", "Int64",
                "calls, except those that recompute a forward pass or are compiled into the code "
                "of another module; missing in the last row",
            ),
            "device_ns", *measured("host_ns"),
            column("forward_ns", "int64", "inclusive: device time of the forward pass"),
            column("forward_host_ns", "Int64", "inclusive: host time of the calls of the module"),
            column(
                "backward_ns", "int64",
                "inclusive: device time of the backward pass, recomputation included",
            ),
            column(
                "backward_host_ns", "Int64",
                "inclusive: host time of the nodes of the backward pass and of recomputation",
            ),
            column("other_ns", "int64", "inclusive: device time outside both passes"),
            column(
                "other_host_ns", "Int64",
                "host time of a row outside modules and the backward pass, such as an "
                "optimizer; in the last row, the remaining host time",
            ),
            "self_device_ns", "share", "kernels",
            host_ns="sum of `forward_host_ns`, `backward_host_ns` and `other_host_ns`; in a row "
            "outside modules, without the modules called in it; missing if none was measured",
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
            "count", "device_ns", *measured("host_ns"), "self_device_ns",
            *measured("self_host_ns"),
            column(
                "backward_ns", "Int64",
                "device time of backward nodes that the operator, or operators in it, created; "
                "missing if the operators of all nodes are unknown",
            ),
            column("backward_host_ns", "Int64", "host time of these nodes; likewise"),
            *(name for name in DEVICE if name not in ("device_ns", "self_device_ns")),
        ),
    ),
}  # fmt: skip
"""Tables on training and generation by name."""
