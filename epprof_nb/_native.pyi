"""The native core: op stacks, logs, CUPTI capture. No pandas, no NumPy, no CUDA at build time.

Columns are returned as ``bytes`` in native byte order, ready for ``numpy.frombuffer``.
Times are CLOCK_MONOTONIC nanoseconds.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

class Op:
    """A named range; see `epprof_nb.op`."""

    def __new__(cls, name: str, /, **args: object) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, function: _F, /) -> _F: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> dict[str, object] | None: ...

# -- clock and threads
def now_ns() -> int: ...
def thread_id() -> int: ...

# -- recording on and off (the capture service alone calls these)
def set_recording(*, ops: bool, launches: bool) -> None: ...
def set_limits(
    *, op_chunks: int, launch_chunks: int, line_rows: int, line_repeats: int
) -> None: ...
def set_cell_thread(on: bool, /) -> None:
    """Make the calling thread the one whose open op worker launches may belong to; or none."""

def set_decorator(function: Callable[[Op, Any], Any], /) -> None: ...
def set_suspender(function: Callable[[Any], None], /) -> None:
    """Install what is called, with the frame, when an op opens in a generator or coroutine."""

# -- names
def intern(name: str, /) -> int: ...
def names(first: int = 0, /) -> list[str]: ...
def demangle(name: str, /) -> str:
    """The C++ name without its mangling; the name itself where it is not mangled."""

# -- op stack, for recorders and tests
def push(name_id: int, category: int, meta: int = 0, /) -> int: ...
def pop(op_id: int, /) -> bool: ...
def top() -> int: ...
def depth() -> int: ...

# -- the current-line marker (cell code calls these)
def add_statements(parents: bytes, names: bytes, /) -> int:
    """Register statements (int32 parent index within the batch or -1, uint32 name ids).

    Returns the key of the first: statement ``i`` of the batch has key ``first + i``.
    """

def line(key: int, /) -> None:
    """Mark that statement `key` begins; ends what was running at its level or deeper."""

def back(key: int, /) -> None:
    """Mark that control is back in the header of the compound statement `key`."""

def enter(key: int, /) -> None:
    """Open the scope of a function body (key of its ``def`` statement)."""

def leave(key: int, /) -> None:
    """Close the scope that `enter` opened, with every statement still open in it."""

def enter_frame(key: int, /) -> None:
    """`enter` for a generator or coroutine: its part of the stack follows its frame."""

def leave_frame(key: int, /) -> None: ...
def suspend(frame_id: int, /) -> None: ...
def resume(frame_id: int, /) -> None: ...
def forget(frame_id: int, /) -> None: ...

# -- logs
def drain_ops(end_ns: int, /, *, open_too: bool) -> dict[str, Any]:
    """Take the finished ops, and copies of the open ones (ended at `end_ns`, flagged open).

    Columns: op_id u64, parent_op_id u64 (0: none), start_ns i64, end_ns i64, duration_ns i64,
    suspended_ns i64, name_id u32, meta u32 (statement key or args id), count u32, category u16,
    flags u16 (1: open, 2: coalesced), thread_id u64. ``lost``: int, ops that found no room.
    """

def drain_launches() -> dict[str, Any]:
    """Take the launch log.

    Columns: correlation_id u64, op_id u64 (top bit set: no op was open on the thread, the rest
    is the op open on the cell's thread), start_ns i64, end_ns i64, name_id u32, return_value i32,
    flags u16 (1: captured, 2: the profiler's own call, 4: still in the call; since this thread's
    last launch the cell's thread 8: used no CPU time, 16: used some), domain u16 (0: driver,
    1: runtime, 2: host), thread_id u64. ``lost``: int, calls that found no room.
    """

def launch(name_id: int, start_ns: int, end_ns: int, correlation_id: int, /) -> None:
    """Log a host-device API call on this thread with the op on top of its stack."""

def next_correlation() -> int:
    """A new correlation id for the host device, from 2**32 up."""

def args_of(args_id: int, /) -> dict[str, object] | None: ...
def clear_args() -> None: ...
def after_fork_child() -> None: ...
def counters() -> dict[str, int]:
    """Bytes reserved and in use, depth overflows, unbalanced exits."""

# -- CUPTI
def cupti_load(path: str, driver_path: str, /) -> int:
    """Load libcupti and return its API version; RuntimeError says what failed."""

def cupti_set_layout(layout: bytes, /) -> None: ...
def cupti_start(
    *, kinds: bytes, callbacks: bool, all_calls: bool, external: bool
) -> dict[str, int]:
    """Turn capture on (kinds: uint32 CUpti_ActivityKind); RuntimeError says what failed.

    Returns ``subscribed`` (1: launches are logged by callbacks), ``subscribe_result`` and
    ``clock_result`` (CUptiResult), ``failed_kinds`` (activity kinds that were refused).
    """

def cupti_stop() -> None: ...
def cupti_configure(*, buffer_bytes: int, buffers: int, max_records: int) -> None: ...
def cupti_sync() -> list[tuple[int, int]]:
    """Wait for every context that worked; (context, CUresult) of waits that failed."""

def cupti_outstanding() -> int:
    """Launches, copies and sets since the start less the activities seen of them."""

def cupti_flush(*, forced: bool) -> int: ...
def cuda_started() -> bool:
    """Whether CUDA is initialised in this process; only after `cupti_load`."""

def cupti_probe() -> tuple[int, int, int, int] | None:
    """Have one harmless call recorded: our clock, the record's start and end, our clock.

    None where no record came.
    """

def cupti_drain() -> dict[str, Any]:
    """Take the decoded records; column names and dtypes as in ``native/store.cpp``.

    ``lost``: records beyond the bound; ``unfinished``: records without times; ``dropped``:
    records CUPTI found no buffer for; ``decode_ns``: time the decoding took.
    """

def cupti_graph_nodes() -> dict[str, bytes]:
    """Graph nodes seen: node u64, original u64 (0: made by a capture), op_id u64 (0: none)."""

def cupti_state() -> dict[str, int]: ...
def cupti_callback_name(domain: int, cbid: int, /) -> str | None: ...
def decode(raw: bytes, layout: bytes, /) -> dict[str, Any]:
    """Decode one raw activity buffer by a packed layout of `recorders.cupti.layouts`."""

# -- ONNX Runtime's observer
def ort_runtime() -> str:
    """Version of the ONNX Runtime that loaded the observer; empty while none has."""

def ort_new_session() -> int: ...
def ort_run_options_type() -> object:
    """The C++ type information of OrtRunOptions, as pybind11's conduit takes it."""

def ort_profile_run(run_options: object, file_prefix: str | None, /) -> None:
    """Profile the runs made with these options (a capsule of OrtRunOptions); None: no longer."""

def ort_details(first: int, /) -> dict[str, bytes]:
    """What was said of events, ids `first` and up: session, node_index, and ids of names."""

def ort_nodes_of_last_run() -> int:
    """Nodes of the run profiled by itself that ended last on this thread; -1: not known."""

def ort_begin_run(session: int, /) -> int:
    """Open a run's op; the run's own profiler, if any, adds to it. Its id; 0: not recording."""

def ort_end_run(op_id: int, /) -> None: ...
def ort_on_run_file(
    opened: Callable[[int, int], object], ending: Callable[[int, int], object], /
) -> None:
    """Set who is told, on the run's thread, of files of runs; both get session and run op.

    `opened` gets (0, 0); `ending` the op's id, 0 where the run was not recorded. What they raise
    is written to the standard error output.
    """

def ort_expect_run_file(expected: bool, /) -> None:
    """Say whether the next run on this thread that is profiled by itself writes a file."""

def ort_keep_event(
    session: int,
    run_op: int,
    name: str,
    start_ns: int,
    duration_ns: int,
    thread_id: int,
    args: tuple[str, ...],
    /,
) -> None:
    """Keep device work for ONNX Runtime's own profile of a session, or of one run of it.

    `run_op` is the run's op, 0 for the session's profile; `args` are keys and values in turn.
    """
