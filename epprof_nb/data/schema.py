"""Schema of a profile's tables: every column with its kind and meaning.

The *kind* of a column determines how it is stored (a NumPy array) and its pandas dtype, which is
the same on pandas 2.3 and 3:

========  ==========================  ================  ==================================
kind      stored as                   pandas dtype      missing value
========  ==========================  ================  ==================================
time      int64, nanoseconds          int64             none
int       int64                       int64             none
id        int64                       Int64             -1, in pandas ``<NA>``
row       int32                       Int32             -1, in pandas ``<NA>``
delta     int64, signed               Int64             -2**63, in pandas ``<NA>``
name      int32 codes + categories    category          code -1, in pandas ``NaN``
bool      bool                        bool              none
args      int32 codes + JSON strings  object            code -1, in pandas ``None``
========  ==========================  ================  ==================================

In pandas, the elements of an ``args`` column are `epprof_nb.data.op_args.Arguments`, dicts that can
be hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from epprof_nb.arrays import types
from epprof_nb.data.kernel_names import short_name

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["time", "int", "id", "row", "delta", "name", "bool", "args"]

MISSING = types.MISSING
"""The stored value of a missing ``id`` or ``row``."""

MISSING_DELTA = -(2**63)
"""The stored value of a missing ``delta``, because -1 is a valid one."""

DEVICE_KINDS = ("kernel", "memcpy", "memset")
"""Kinds of activities that a device executes; the other kinds are waits and graph launches."""

ACTIVITY_KINDS = ("other", "kernel", "memcpy", "memset", "synchronization", "graph_launch")
"""Kinds of activity. The position of a kind is its code in NumPy columns and in the viewer, whose
payload carries this list in its header; "other" stands for a missing or unknown kind."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its name, kind (see the module) and description.

    A file leaves out an `optional` column if no row has a value.
    """

    name: str
    kind: Kind
    doc: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """A column of kind ``name`` that is computed from another one instead of being stored."""

    name: str
    source: str
    function: Callable[[str], str]
    doc: str


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The meaning of a row of one table, and its columns in order.

    ``index`` is the column of row labels, if any. In DataFrames, a derived column follows its
    source.
    """

    name: str
    rows: str
    index: str | None
    columns: tuple[Column, ...]
    derived: tuple[DerivedColumn, ...] = ()

    def column(self, name: str) -> Column:
        """Return the column with this name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)


def _optional(name: str, kind: Kind, doc: str) -> Column:
    return Column(name, kind, doc, optional=True)


_STACK = (
    _optional("stack_id", "row", "Python stack at the launch, as in `stacks`"),
    _optional(
        "stack_source",
        "name",
        "how it was found: exact (read at the launch, or where the forward pass created the "
        "autograd node), near (of the autograd node before it), op (where the op was opened), "
        "replay (where the graph was launched)",
    ),
)

OPS = TableSchema(
    "ops",
    "One row per op.",
    "op_id",
    (
        Column("op_id", "int", "64-bit id of the op, unique in its process"),
        Column("parent_op_id", "id", "the op that was on top of the op stack at the start"),
        Column("name", "name", "a range's name, or a statement's source text, shortened"),
        Column(
            "op_type",
            "name",
            "cell, line, range; for ONNX Runtime run, event and, for nodes, the operator; for "
            "PyTorch module, recompute (a module called again in the backward pass), backward (of "
            "a module), autograd (a backward pass), optimizer, data, compile, operator, "
            "autograd_node (of the backward pass), collective (a call that communicates on the "
            "host) and collective_wait; for JAX jit (a call of a jitted function), "
            "trace, lower, compile, wait, transfer, hlo_module (a program) and hlo (an "
            "instruction of it); mark for NVTX; task for Dask; gc for pauses of Python's garbage "
            "collector (short ones share a row)",
        ),
        Column("category", "name", "cell, user, session, node, framework, operator, python"),
        Column(
            "source",
            "name",
            "where recorded: cell, range, onnxruntime, torch, jax, xla, nvtx, dask, python",
        ),
        Column("provider", "name", "ONNX Runtime execution provider of a node"),
        Column("thread_id", "int", "operating-system thread id"),
        Column("node_index", "id", "ONNX Runtime's index of a node in its graph or subgraph"),
        Column(
            "input_shapes",
            "name",
            "shapes of the inputs of a node, with element types, or of a PyTorch operator",
        ),
        Column("output_shapes", "name", "element types and shapes of a node's outputs"),
        Column("session", "id", "number of the ONNX Runtime session, unique in its process"),
        Column("run_id", "id", "number of the ONNX Runtime run, unique in its profile"),
        Column("repeat", "id", "repeat of the code (--repeat) in which it started, from 0"),
        Column("start_ns", "time", "start, since the profile's start; negative if earlier"),
        Column("end_ns", "time", "end; for an op still open, the profile's end"),
        Column("duration_ns", "time", "time open and not suspended; the sum if count > 1"),
        Column(
            "suspended_ns",
            "id",
            "time between an await, a yield or a switch to another greenlet and the resumption; "
            "missing if not recorded, as in traces",
        ),
        Column("count", "int", "executions of this row; over 1 for coalesced statements"),
        Column("cell", "name", "the cell that contains the statement, such as In[3]"),
        Column("line", "id", "first line of the statement in its cell, from 1"),
        Column("end_line", "id", "last line of the statement"),
        Column(
            "status",
            "name",
            "complete; open: not ended in the profile; failed: a run of ONNX Runtime that raised, "
            "or the node in which it did; earlier: of an earlier profile, listed because it "
            "captured nodes of a graph; learned: a node identified by the launches of its run, "
            "with the time span of its API calls",
        ),
        Column(
            "args",
            "args",
            "keyword arguments of the op; call_ns, unprofiled_ns, shapes and nodes of an ORT run",
        ),
        _optional(
            "sequence_number",
            "id",
            "number of the autograd node that ran, or that an operator may have created; each "
            "thread has its own numbers",
        ),
        _optional("output_bytes", "id", "size of a node's outputs"),
        _optional("parameter_bytes", "id", "size of a node's weights and other initializers"),
        _optional("activation_bytes", "id", "size of a node's inputs without its parameters"),
        _optional("arena_held_bytes", "id", "memory held by the allocator of a node at its end"),
        _optional("in_use_bytes", "id", "memory in use in this allocator"),
        _optional("requested_bytes", "id", "the same before rounding up to blocks"),
        _optional("peak_bytes", "id", "maximum memory in use since the allocator was created"),
        _optional("arena_held_delta_bytes", "delta", "arena_held_bytes, change during the node"),
        _optional("in_use_delta_bytes", "delta", "in_use_bytes, change during the node"),
        _optional("requested_delta_bytes", "delta", "requested_bytes, change during the node"),
        _optional("pool_start_ns", "id", "time to hand a node to threads of the session's pool"),
        _optional("pool_wait_ns", "id", "time that a node's thread waited for the pool's threads"),
    ),
)

ACTIVITIES = TableSchema(
    "activities",
    "One row per activity of a device.",
    None,
    (
        Column("kind", "name", "kernel, memcpy, memset, synchronization, graph_launch"),
        Column("name", "name", "demangled kernel name, or the type of copy, memset or wait"),
        Column("device_id", "id", "CUDA device ordinal, or the host device's"),
        Column("context_id", "id", "CUPTI context id"),
        Column("stream_id", "id", "CUPTI stream id"),
        Column("start_ns", "time", "start on the device, since the profile's start"),
        Column("end_ns", "time", "end on the device"),
        Column("duration_ns", "time", "end_ns - start_ns"),
        Column("correlation_id", "id", "ties the activity to its API call; host device: >= 2**32"),
        Column("op_id", "id", "the op on top of the launching thread's stack at the launch"),
        Column("capture_op_id", "id", "the op that captured the graph node, for a graph replay"),
        Column("attribution", "name", "how op_id was found: stack, cell, learned, none"),
        Column("thread_id", "id", "operating-system thread that launched it"),
        Column("repeat", "id", "repeat of the code (--repeat) in which it was launched, from 0"),
        Column("bytes", "id", "bytes copied or set"),
        Column("copy_kind", "name", "HtoD, DtoH, DtoD, HtoH, PtoP, ... (CUPTI's names)"),
        Column("src_kind", "name", "kind of memory read: pageable, pinned, device, ..."),
        Column("dst_kind", "name", "kind of memory written or set"),
        Column("src_device_id", "id", "device read from, for a peer copy"),
        Column("dst_device_id", "id", "device written to, for a peer copy"),
        Column("grid_x", "id", "grid dimension x, in blocks"),
        Column("grid_y", "id", "grid dimension y, in blocks"),
        Column("grid_z", "id", "grid dimension z, in blocks"),
        Column("block_x", "id", "block dimension x, in threads"),
        Column("block_y", "id", "block dimension y, in threads"),
        Column("block_z", "id", "block dimension z, in threads"),
        Column("registers_per_thread", "id", "registers per thread of the kernel"),
        Column("static_shared_bytes", "id", "static shared memory per block"),
        Column("dynamic_shared_bytes", "id", "dynamic shared memory per block"),
        Column("graph_id", "id", "CUPTI id of the executable CUDA graph that launched it"),
        Column("graph_node_id", "id", "CUPTI id of the node in that graph"),
        *_STACK,
        _optional("capture_stack_id", "row", "the stack that captured the graph node, likewise"),
        _optional(
            "event_correlation_id",
            "id",
            "the call that recorded the event which a synchronization waited for; `api_calls` has "
            "it",
        ),
        _optional("event_context_id", "id", "context of the stream of that call"),
        _optional("event_stream_id", "id", "stream in which that call recorded the event"),
        _optional(
            "event_source",
            "name",
            "how that call was found: exact (the device's recorder names it) or latest (the last "
            "call before that recorded the event; CUDA before 12.8 beside another profiler)",
        ),
    ),
    (
        DerivedColumn(
            "short_name",
            "name",
            short_name,
            "kernel name without types and parameters, with its operation, dtype and tile",
        ),
    ),
)

API_CALLS = TableSchema(
    "api_calls",
    "One row per API call.",
    None,
    (
        Column("domain", "name", "driver, runtime, host"),
        Column("name", "name", "the API function, such as cuLaunchKernel"),
        Column("thread_id", "int", "operating-system thread that called"),
        Column("start_ns", "time", "entry, since the profile's start"),
        Column("end_ns", "time", "return"),
        Column("duration_ns", "time", "end_ns - start_ns"),
        Column("correlation_id", "id", "ties the call to its activities"),
        Column("op_id", "id", "the op on top of the calling thread's stack"),
        Column(
            "return_value", "id", "the API's result code; 0 is success; missing if not recorded"
        ),
        Column("captured", "bool", "the call added a node to a graph instead of executing it"),
        *_STACK,
    ),
)

GRAPHS = TableSchema(
    "graphs",
    "One row per CUDA graph that was launched, or captured by a session with kernels in Python.",
    "graph_id",
    (
        Column("graph_id", "int", "id of the executable graph; CUPTI's for a CUDA graph"),
        Column("session", "id", "number of the ONNX Runtime session that captured it"),
        Column("gpu_graph_id", "id", "its gpu_graph_id in that session"),
        Column("capture_op_id", "id", "the op that captured it, or most of its nodes"),
        Column("captured_in", "name", "line or range that captured it"),
        Column("nodes", "int", "number of its nodes, or of those that executed"),
        Column("replays", "int", "launches of the graph in the profile; 0 if it was captured only"),
        Column("device_ns", "time", "device time of all its replays"),
        Column("device_ns_per_replay", "id", "device_ns / replays; missing without replays"),
        Column(
            "launch_ns", "id", "host time of a launch, on average; missing if no call was recorded"
        ),
        Column(
            "gap_ns",
            "id",
            "time in a replay in which no node ran, on average; missing without replays",
        ),
    ),
)

MEMORY = TableSchema(
    "memory",
    "One row per allocation or release (`--detail memory`).",
    None,
    (
        Column("operation", "name", "allocation or release"),
        Column("memory_kind", "name", "device, pinned, managed, host, ..."),
        Column("address", "id", "address of the block"),
        Column("bytes", "int", "size of the block"),
        Column("time_ns", "time", "time, since the profile's start"),
        Column("device_id", "id", "device"),
        Column("context_id", "id", "context"),
        Column("stream_id", "id", "stream, for stream-ordered operations"),
        Column("correlation_id", "id", "ties it to its API call"),
        Column("library", "name", "file of the library that allocated it, if CUPTI knows it"),
        Column("op_id", "id", "the op on top of the calling thread's stack"),
    ),
)

OVERHEAD = TableSchema(
    "overhead",
    "One row per interval of CUPTI's overhead (`--detail overhead`).",
    None,
    (
        Column("kind", "name", "CUPTI's overhead kind: instrumentation, buffer flush, ..."),
        Column("thread_id", "id", "thread on which it occurred, if CUPTI knows it"),
        Column("start_ns", "time", "start, since the profile's start"),
        Column("end_ns", "time", "end"),
        Column("duration_ns", "time", "end_ns - start_ns"),
    ),
)

STACKS = TableSchema(
    "stacks",
    (
        "One row per Python stack in which work was launched, and per stack that called one: its "
        "innermost frame, after the row of the stack that called it. Frames of IPython, of "
        "Python's start and of epprof_nb are left out."
    ),
    "stack_id",
    (
        Column("stack_id", "int", "number of the stack, from 0: its row"),
        Column("parent_id", "row", "the stack that called the frame; missing for an outermost one"),
        Column("file", "name", "file of the frame, or its cell, as In[3]"),
        Column("function", "name", "qualified name of the function"),
        Column("line", "id", "line that called the next frame, or that launched, from 1"),
        Column("first_line", "id", "first line of the function"),
        Column("owner", "name", "whose code it is: cell, own, library"),
    ),
)

HOST_SAMPLES = TableSchema(
    "host_samples",
    (
        "One row per sample of a thread that launches or runs the cell, or ends waits of "
        "other threads, while it was in no recorded API call and had made none for 0.5 ms: about "
        "100 times a second, and more often at first."
    ),
    None,
    (
        Column("start_ns", "time", "moment of the sample, since the profile's start"),
        Column("thread_id", "int", "operating-system thread"),
        Column(
            "stack_id",
            "row",
            "Python stack of the thread, as in `stacks`; missing if it ran no code of a program, "
            "but IPython's or epprof_nb's own",
        ),
        Column(
            "interval_ns",
            "time",
            "time since the moment of the sample before, of any thread: the host time that the "
            "sample stands for",
        ),
        Column(
            "processor_ns",
            "id",
            "processor time of the thread until then, since its start; missing if unknown",
        ),
        Column(
            "core_wait_ns",
            "id",
            "time that the thread has waited for a core until it last got one before the sample, "
            "since its start; missing if unknown",
        ),
    ),
)

SLEEP = "time.sleep"
"""Function of the waits for nothing but the clock."""

THREAD_WAITS = TableSchema(
    "thread_waits",
    (
        "One row per wait of a Python thread for another one: in `Thread.join`, `Event.wait`, "
        "`Future.result`, in `Condition.wait`, on which semaphores, barriers and `queue.Queue` are "
        "built, for a lock, or for an item of a `queue.SimpleQueue`, as thread pools use it. And "
        "one per `time.sleep`."
    ),
    None,
    (
        Column("start_ns", "time", "start of the wait, since the profile's start"),
        Column(
            "end_ns",
            "time",
            "when the other thread let it go on, or when it went on without that; the same as the "
            "start if it did not have to wait",
        ),
        Column("duration_ns", "time", "length of the wait"),
        Column("thread_id", "int", "operating-system thread that waited"),
        Column(
            "other_thread_id",
            "id",
            "the thread that it waited for: which ended, notified it, released the lock or put the "
            "item; missing if the wait timed out, and for `time.sleep`",
        ),
        Column(
            "function",
            "name",
            "Thread.join, Event.wait, Future.result, Condition.wait, Lock.acquire, RLock.acquire, "
            "SimpleQueue.get or time.sleep",
        ),
    ),
)

BLOCK_CATEGORIES = (
    "parameter", "gradient", "optimizer state", "activation", "forward, undecided", "temporary",
    "input", "workspace", "other",
)  # fmt: skip
"""Categories of blocks of memory, by what the program keeps in them."""

MEMORY_BLOCKS = TableSchema(
    "memory_blocks",
    "One row per block of memory in use at some time of the profile.",
    None,
    (
        Column(
            "pool",
            "name",
            "pool that the block is part of: torch, torch graph 1, kernels in Python, driver, host "
            "device",
        ),
        Column("device_id", "id", "device"),
        Column(
            "stream_id", "id", "stream for which the pool allocated it, as its library names it"
        ),
        Column("address", "id", "address of the block; missing for the sum of several"),
        Column("bytes", "int", "size of the block, rounded up by its pool"),
        Column("requested_bytes", "int", "bytes that the program requested"),
        Column(
            "allocated_ns",
            "delta",
            "allocation, since the profile's start; missing if before it, or before its history",
        ),
        Column("freed_ns", "delta", "release; missing if in use at the profile's end"),
        Column("op_id", "id", "the op that allocated it; missing if not known for certain"),
        Column("freed_op_id", "id", "the op that released it, likewise"),
        Column(
            "category",
            "name",
            "parameter, gradient or optimizer state, if a model or an optimizer kept a tensor in "
            "it at the end; parameter also, if it was one when its model was first called; input, "
            "if it was given to a model; workspace, if it is one of cuBLAS from before the "
            "profile; `memory_at` also has categories that follow from its life",
        ),
        Column(
            "earlier_cell",
            "name",
            "cell that allocated it in an earlier profile; missing if not known for certain",
        ),
        Column("earlier_line", "id", "first line of that statement"),
    ),
)

MEMORY_SEGMENTS = TableSchema(
    "memory_segments",
    "One row per piece of memory that a pool held at some time of the profile.",
    None,
    (
        Column("pool", "name", "pool that holds the segment"),
        Column("device_id", "id", "device"),
        Column("address", "id", "address of the segment"),
        Column("bytes", "int", "size of the segment"),
        Column("allocated_ns", "delta", "when the driver gave it; missing if before the profile"),
        Column("freed_ns", "delta", "when it was given back; missing if held at the end"),
    ),
)

TABLES: tuple[TableSchema, ...] = (
    OPS, ACTIVITIES, API_CALLS, GRAPHS, MEMORY, OVERHEAD, STACKS, HOST_SAMPLES, THREAD_WAITS,
    MEMORY_BLOCKS, MEMORY_SEGMENTS,
)  # fmt: skip
"""All tables of a profile, in the order in which they are saved."""
