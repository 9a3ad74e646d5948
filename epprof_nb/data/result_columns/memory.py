"""Columns of the tables on memory."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import TableDoc, column, columns
from epprof_nb.data.schema import BLOCK_CATEGORIES

_POOL = column("pool", "category", "pool that holds it, as in `memory_blocks`")

_SUMS = (
    column("allocated_bytes", "int64", "bytes that it allocated in the profile"),
    column("freed_bytes", "int64", "bytes that it released"),
    column("net_bytes", "int64", "the difference"),
    column("peak_bytes", "int64", "bytes that it allocated and that are in use at the peak"),
    column("end_bytes", "int64", "bytes that it allocated and that are in use at the end"),
    column("blocks", "int64", "number of blocks that it allocated"),
)

_LINE = (
    column("cell", "category", "cell or file of the line of your code that allocated it, as In[3]"),
    column("line", "Int64", "that line; of a statement, its first"),
)
_CALLER = (
    column("function", "category", "function of that line; missing without a stack"),
    column(
        "caller_cell", "category",
        "cell of the line of the profiled cell that called it, or file of the outermost line of "
        "your code; the same as `cell` without a stack",
    ),
    column("caller_line", "Int64", "that line"),
)  # fmt: skip

MEMORY: dict[str, TableDoc] = {
    "by_op_memory": TableDoc(
        "prof.by_op(memory=True)",
        "One row per op name, of ops in which memory was allocated or released. Like the device "
        "time of `prof.by_op()`, the memory of an op includes the ops inside it.",
        (
            *columns("name", "op_type", "cell", "line", "arg_<name>"),
            *_SUMS,
            column(
                "self_allocated_bytes",
                "int64",
                "bytes that were allocated in it and in no op inside; they add up to the profile's",
            ),
        ),
    ),
    "by_line_memory": TableDoc(
        "prof.by_line(memory=True)",
        "One row per line that allocated or released memory, and line of the profiled cell that "
        "called it. PyTorch's allocator has no stacks: the line of its block is the one that "
        "launched next, within the op of the block. Lines of libraries belong to yours that "
        "called them.",
        (*_LINE, column("name", "category", "text of the line, or its function"), *_CALLER, *_SUMS),
    ),
    "by_module_memory": TableDoc(
        "prof.by_module(memory=True)",
        "One row per module in whose innermost call memory was allocated or released.",
        (column("path", "category", "path of the module in its model"), *_SUMS),
    ),
    "memory_at": TableDoc(
        "prof.memory_at()",
        "One row per pool, category, module, line and op that holds memory at the peak, or at "
        "another time.",
        (
            _POOL,
            column("device_id", "Int64", "device"),
            column(
                "category",
                "category",
                f"kind of content: {', '.join(f'`{name}`' for name in BLOCK_CATEGORIES)}; "
                "`temporary` if the op that allocated it released it, `other` for what no rule "
                "fits; missing from before the profile",
            ),
            column("module", "category", "module of PyTorch in whose call it was allocated"),
            *_LINE,
            *_CALLER,
            column(
                "name",
                "category",
                "op that allocated it, or why none is known; `(as at the end of the profile)` for "
                "pools without a timeline",
            ),
            column("bytes", "int64", "bytes of its blocks"),
            column("requested_bytes", "int64", "bytes that the program requested"),
            column(
                "blocks",
                "int64",
                "number of blocks",
            ),
        ),
    ),
    "memory_pools": TableDoc(
        "prof.memory_pools()",
        "One row per pool of memory and device, and one each for the context of CUDA, if PyTorch "
        "started it in a profile with `--detail memory` on one GPU, for what else the process held "
        "when the profile began, for what the driver took for itself since, and for the rest. With "
        "several GPUs, the driver's own memory includes the context. No memory is in two rows. "
        "Pools of CuPy, JAX and sessions of ONNX Runtime have no history: their numbers are from "
        "the end of the profile.",
        (
            column(
                "pool",
                "category",
                "pool, as in `memory_blocks`; a library; `context`, `code and local memory`, "
                "`context, code and local memory`, `(before this profile)`, `(unnamed)`",
            ),
            column("device_id", "Int64", "device"),
            column("held_bytes", "Int64", "bytes that it took from the driver; missing if unknown"),
            column("in_use_bytes", "Int64", "bytes of blocks in use"),
            column("peak_bytes", "Int64", "most bytes of its blocks in use in the profile"),
            column("free_bytes", "Int64", "bytes held and not in use"),
            column("largest_free_bytes", "Int64", "largest piece of them"),
            column(
                "fragmentation",
                "float64",
                "1 - largest free piece / free bytes; 0 without any",
                "fraction",
            ),
            column("note", "object", "origin of the numbers, or why they are unknown"),
        ),
    ),
}
