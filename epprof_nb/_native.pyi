"""The native core: op stacks, launch log, recording by CUPTI and the observer of ONNX Runtime.

Columns are returned as ``bytes`` in native byte order, ready for ``numpy.frombuffer``.
Times are CLOCK_MONOTONIC nanoseconds. Name ids are indices into `names`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

class Op:
    """A named range; see `epprof_nb.op`."""

    @overload
    def __new__(cls, name: str, /, **args: object) -> Self: ...
    @overload
    def __new__(cls, function: _F, /) -> _F: ...  # type: ignore[misc]  # a decorated function
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, function: _F, /) -> _F: ...
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> dict[str, object] | None: ...

def task(name: str, /, **args: object) -> Op:
    """Return an op for a task of a scheduler, such as Dask; use it as a context manager."""

# -- signals and interrupts
def watch_signal(number: int, /) -> None:
    """Let `next_signal` return a signal for which a handler is set in Python.

    If no thread can return from `next_signal` within 2 s, the signal ends the process.

    Raises
    ------
    ValueError
        If the signal has no handler of Python.
    OSError
        If no thread can be started.
    """

def next_signal() -> int:
    """Wait for a watched signal, and return its number.

    Raises
    ------
    OSError
        If no thread can start that ends the process in time.
    """

def uninterrupted(function: Callable[..., _T], /, *args: object) -> _T:
    """Call a function while Ctrl-C (SIGINT) is held back.

    An interrupt that arrives meanwhile is raised at the end, a pending one before the call. The
    result is lost then, so `function` should store the objects that it creates.
    """

def call_then(end: Callable[[], object], function: Callable[..., _T], /, *args: object) -> _T:
    """Call ``function(*args)``, and then `end`, even after an exception or interrupt.

    `end` is called again if it raises, so it must do nothing after it has succeeded.
    """

class GuardedContext:
    """Base of context managers that no interrupt can leave open.

    ``__enter__`` calls `_make`, which opens nothing, and then `_enter` with its result, while
    interrupts are held back. If one arrived, or if `_enter` raised, it calls `_end` with the same
    result and raises. ``__exit__`` calls `_exit`, which may be interrupted, and then always `_end`,
    as `call_then` does. Both are functions of the core, because functions of Python could be
    interrupted before their first statement. The list ``self._entered`` has the result of `_make`
    for each ``with`` that has not ended.
    """

    def __enter__(self) -> Any: ...  # noqa: ANN401 - what `_enter` returns
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Finalizer:
    """Calls ``function(*args)`` when it is deleted, together with its only owner.

    Ctrl-C neither prevents nor ends the call. Nothing is called when Python exits.
    """

    def __init__(self, function: Callable[..., object], /, *args: object) -> None: ...

# -- clock and threads
def now_ns() -> int: ...
def thread_id() -> int:
    """Id of the calling thread in the operating system (``gettid``)."""

# -- objects of the program
def instances_of(objects: list[Any], kind: type, /) -> list[Any]:
    """Objects of a type or its subclasses; runs no code of proxies, unlike `isinstance`."""

# -- recording on and off (called by the recording service only)
def set_recording(*, ops: bool, launches: bool) -> None: ...
def leave_out_statements() -> None: ...
def set_limits(
    *,
    op_chunks: int = 32768,
    launch_chunks: int = 32768,
    statement_rows: int = 100_000,
    statement_repeats: int = 1000,
    statement_pairs: int = 1_000_000,
) -> None:
    """Bound the number of records of a session. Records beyond a bound are counted as lost.

    Parameters
    ----------
    op_chunks, launch_chunks : int
        Chunks of 32 KiB that all threads together fill in a session, drained ones included.
    statement_rows : int
        Statement rows per thread before all statements are coalesced.
    statement_repeats : int
        Rows per statement and parent op before that statement is coalesced.
    statement_pairs : int
        Pairs of a statement and a parent op in a session, for all threads.
    """

def set_cell_thread(on: bool, /) -> None:
    """Make the calling thread the cell's thread, or unset the cell's thread.

    Launches of worker threads without open ops may belong to its op. If the caller is a thread of
    the profiler, the first thread of the process takes its place.
    """

def leave_out_thread() -> None:
    """Leave the calling thread, which the profiler has started, out of samples and gc pauses."""

def follow_greenlets(module: ModuleType, /) -> None:
    """Keep an op stack per greenlet, with the module ``greenlet``.

    Follows switches of the calling thread from now on, and switches of other threads once they open
    an op. The greenlet that runs on the cell's thread is the cell's.
    """

def leave_greenlets() -> None:
    """Stop that. The trace function of each thread is put back at its next switch."""

def missed_greenlet_switches() -> int:
    """Number of unreported switches since `follow_greenlets`, which an op revealed."""

def set_decorator(function: Callable[[Op | None, Any], Any], /) -> None:
    """Set the function that decorates a function with an op; None: one named after it."""

def set_suspender(function: Callable[[Any], None], /) -> None:
    """Set the function called with the frame when an op opens in a generator or coroutine."""

def set_args_formatter(function: Callable[[dict[str, object]], str], /) -> None:
    """Set the function that turns arguments other than short numbers and strings into JSON."""

def set_hooks(
    at_begin: dict[str, Callable[[], None]] | None, at_end: dict[str, Callable[[], None]] | None, /
) -> None:
    """Set the functions that are called when named ranges begin and end, by name; None: none.

    They are called on the thread of the op, also outside of sessions.
    """

def spin(length_ns: int, keeps_gil: bool, /) -> tuple[int, int]:
    """Use the processor for a time; return the elapsed time and the processor time."""

# -- names
def intern(name: str, /) -> int:
    """Id of a name, for the life of the process. After 2**20 names, the id of "(other names)"."""

def names(first: int = 0, /) -> list[str]:
    """Names with the ids `first` and up."""

def demangle(name: str, /) -> str:
    """Demangled C++ name, or the name itself if it is not mangled."""

# -- op stack of the calling thread, for recorders and tests
def push(name_id: int, category: int, payload_id: int = 0, /) -> int:
    """Open an op and return its id; 0 if not recording."""

def push_suspendable(name_id: int, category: int, payload_id: int = 0, /) -> int:
    """Open an op and return its id; 0 if not recording.

    While the generator or coroutine that calls this is suspended, the op is not on the stack.
    """

def push_worker(name_id: int, category: int, payload_id: int, parent_op_id: int, /) -> int:
    """Open an op on a thread whose work another thread waits for, and return its id.

    `parent_op_id` is the parent if no op is open on the calling thread. Returns 0 if not recording,
    or if the recorder keeps a stack per thread, so that no other thread could end the op.
    """

def pop(op_id: int, /) -> bool:
    """End an op of the calling thread; False if it is not open."""

def pop_of_any_thread(op_id: int, /) -> bool:
    """End an op of any thread; False if it is not open."""

def switch_ops(
    opened: list[Any],
    ops: dict[int, tuple[tuple[int, int], ...]],
    find: Callable[[int], tuple[tuple[int, int], ...]],
    parent_op_id: int,
    line: int,
    /,
) -> None:
    """Make the ops of a line of generated code the open ones of the calling thread.

    Parameters
    ----------
    opened : list
        The open ops, outermost first, each followed by its id. It is updated. The first ops stay
        open if they are the same objects as the first ones of the line.
    ops : dict
        The ops of lines. An op is a tuple of the native ids of its name and its kind.
    find : callable
        Returns the ops of a line that is not in `ops`.
    parent_op_id : int
        Parent of the outermost op, as in `push_worker`; 0 for none.
    line : int
        The line.
    """

def top() -> int:
    """Id of the topmost op; 0 if none is open."""

def reserve_op_ids(count: int, /) -> int:
    """First of `count` consecutive op ids that no op has or will get."""

def depth() -> int:
    """Number of entries on the stack, scopes included."""

# -- pauses of the garbage collector
def on_collection(phase: str, info: dict[str, int], /) -> None:
    """Log a pause as an op; to add to ``gc.callbacks``.

    Pauses of generations 0 and 1 below 0.5 ms, one after the other in one op, share a row.
    """

def set_collection_ops(name_id: int, young_kind_id: int, full_kind_id: int, /) -> None:
    """Set the name of the ops, and their payloads for generations 0 and 1, and for 2."""

# -- waits for locks
def start_lock_waits(
    lock: type, rlock: type, simple_queue: type, sleep: Callable[[float], None], /
) -> None:
    """Record which thread ended waits for objects of these types, and calls of `time.sleep`.

    As far as they are in C.
    """

def stop_lock_waits() -> None:
    """Stop, and forget the waits."""

def pause_lock_waits() -> None:
    """Leave out the calling thread, which waits as a device, also as one that others wait for."""

def resume_lock_waits() -> None:
    """Record the calling thread again, after as many pauses."""

def drain_lock_waits() -> dict[str, memoryview]:
    """Return the waits that have ended since the last call, at most a million.

    Returns
    -------
    columns
        ``start_ns``, ``end_ns`` (int64; the end is when the other thread let it go on),
        ``thread_id``, ``other_thread_id`` (uint64; 0 for none: it waited for a time in vain) and
        ``kind`` (uint8; the number of the argument of `start_lock_waits`).
    """

# -- markers in the code of instrumented cells
def add_statements(parents: bytes, names: bytes, /) -> int:
    """Register statements and return the key of the first.

    Statement ``i`` of the batch has key ``first + i``.

    Parameters
    ----------
    parents : bytes
        int32 indices of the enclosing statements within the batch; -1: none, -2: it is in the body
        of a function.
    names : bytes
        uint32 name ids.
    """

def line(key: int, /) -> None:
    """Begin statement `key`; ends the statements at its level and deeper."""

def back(key: int, /) -> None:
    """Return to the header of the compound statement `key`; ends the statements of its body."""

def body(key: int, /) -> AbstractContextManager[None]:
    """Context manager for a function body; `key` is its ``def`` statement.

    It opens a scope, and on exit closes it and ends the statements still open in it. One object
    per key, without state: functions may recurse and run on several threads.
    """

def frame_body(key: int, /) -> AbstractContextManager[None]:
    """Context manager for the body of a generator or coroutine, suspended with its frame."""

def yield_body(key: int, /) -> AbstractContextManager[None]:
    """Context manager for the body of a generator that calls `suspend` and `resume`.

    Its exit resumes the frame, because an exception may have come out of a ``yield``.
    """

def suspend(value: _T, /) -> _T:
    """Take the entries of the calling frame off the stack; return `value`, which is yielded."""

def resume(value: _T, /) -> _T:
    """Put the entries of the calling frame on the stack; return `value`, which was sent."""

class Markers:
    """The functions above as methods, which can be pickled through their object."""

    def line(self, key: int, /) -> None: ...
    def back(self, key: int, /) -> None: ...
    def body(self, key: int, /) -> AbstractContextManager[None]: ...
    def frame_body(self, key: int, /) -> AbstractContextManager[None]: ...
    def yield_body(self, key: int, /) -> AbstractContextManager[None]: ...
    def suspend(self, value: _T, /) -> _T: ...
    def resume(self, value: _T, /) -> _T: ...

# -- suspension of generators and coroutines
def on_yield(code: CodeType, offset: int, value: object, /) -> None:
    """Take the entries of the calling frame off the stack until it resumes.

    This and the next three are callbacks of ``sys.monitoring``.
    """

def on_resume(code: CodeType, offset: int, /) -> None:
    """Put the entries of the calling frame on the stack of the calling thread."""

def on_throw(code: CodeType, offset: int, error: BaseException, /) -> None:
    """Put the entries of the calling frame on the stack of the calling thread."""

def on_return(code: CodeType, offset: int, value: object, /) -> None:
    """End the ops of the calling frame if it is suspended: it will not resume."""

def on_profile_event(frame: FrameType, event: str, arg: object, /) -> None:
    """Follow the frames watched by this thread, as a function for `sys.setprofile`.

    It unsets itself once no frame is watched, but no function of other code that calls it.
    """

def set_profile_function(shown: object, /) -> bool:
    """Have the interpreter report to `on_profile_event` without `sys.setprofile`.

    That is faster. `sys.getprofile` returns `shown`. Only Python 3.11 has the interface; the result
    is False if its functions cannot be found or an audit hook refuses, and nothing changes.
    """

def profile_events() -> int:
    """Return how many calls and returns `on_profile_event` has received on the calling thread."""

def watched_frames() -> int:
    """Return how many frames `on_profile_event` follows on the calling thread."""

def watch_frame(frame: FrameType, /) -> None:
    """Have `on_profile_event` follow a frame on the calling thread until it ends."""

def unwatch_frames() -> None:
    """Stop following frames on all threads; unset the profile function of this one.

    Other threads unset theirs at its next event.
    """

# -- logs
def drain_ops(end_ns: int, /, *, open_too: bool) -> dict[str, Any]:
    """Take the finished ops and, on request, copies of the open ones, which end at `end_ns`.

    Columns: op_id u64, parent_op_id u64 (0: none), start_ns i64, end_ns i64, duration_ns i64,
    suspended_ns i64 (for operators of PyTorch, which have none, the sequence number), name_id u32,
    payload_id u32 (statement key, args id, event details id or id of an operator's sizes),
    count u32, category u16, flags u16 (1: open, 2: coalesced, 4: open and suspended), thread_id
    u64 (of a suspended op, the thread on which it was suspended). ``lost`` is the number of ops
    dropped since the last drain for lack of memory, and ``unmarked`` the number of statements in
    recursive calls that were not recorded. Name ids of 2**31 and up are indices into the list
    ``op_names``; args ids minus 1 are indices into the list ``op_args`` of JSON texts. Both lists
    belong to the session, which appends to them.
    """

def start_cell_log() -> None:
    """Log the stack of the cell's thread, and sample its CPU time on a thread of the core."""

def stop_cell_log() -> None:
    """Stop the log of the cell's thread and discard the rest."""

def take_cell_log() -> dict[str, Any]:
    """Take the log of the cell's thread.

    Columns: top_ns i64 and top_op_id u64, the op on top of the stack from that time on (0: none),
    where the last entry is of now; cpu_at_ns i64 and cpu_ns i64, samples of the CPU time used so
    far. ``thread_id``: the cell's thread; 0 if there is no log.
    """

def drain_launches() -> dict[str, Any]:
    """Take the launch log.

    Columns: correlation_id u64, op_id u64 (top bit set: no op was open on the thread, and the
    other bits are the op open on the cell's thread), start_ns i64, end_ns i64, name_id u32,
    return_value i32, flags u16 (1: captured into a CUDA graph, 2: call of the profiler itself, 4:
    call in progress; since the thread's last launch the cell's thread 8: used no CPU time, 16:
    used CPU time), domain u16 (0: driver, 1: runtime, 2: host), thread_id u64. ``lost`` is the
    number of calls dropped since the last drain for lack of memory.
    """

def drain_node_usage() -> dict[str, Any]:
    """Take what ONNX Runtime reported about the memory and the threads of nodes.

    Columns: op_id u64, arena_held_bytes i64, in_use_bytes i64, requested_bytes i64, peak_bytes
    i64; changes since the start of the node: arena_held_delta_bytes i64, in_use_delta_bytes i64,
    requested_delta_bytes i64; pool_start_ns i64, pool_wait_ns i64. -2**63: not reported.
    """

def drain_op_stacks() -> dict[str, Any]:
    """Take the stacks in which ops were opened: op_id u64, op_stack i32.

    Nodes and operators have none; a statement has the stack of its first execution in the op around
    it.
    """

def ended_threads() -> dict[str, Any]:
    """Return the threads that have ended and whose logs are not freed yet.

    Columns: thread_id u64, name_id u32 (the name that the system had for the thread).
    """

def launch(name_id: int, start_ns: int, end_ns: int, correlation_id: int, /) -> None:
    """Log an API call of the host device on the calling thread, under its topmost op."""

def next_correlation() -> int:
    """New correlation id for the host device, from 2**32 up."""

# -- what recording takes of the program's threads
def cost_begin(kind: int, /) -> int:
    """Return when the profiler's part of an event begins, or 0 if this event is not timed.

    `kind` is one of `epprof_nb.core.recording_costs`. The first events of a kind on each thread are
    timed, then about one in 32.
    """

def cost_resume(begin: int, /) -> int:
    """Return when the next part of an event begins, or 0 if `begin` is 0."""

def cost_end(kind: int, begin: int, /) -> None:
    """Add the time since `begin` for this event and those that are not timed.

    Does nothing if `begin` is 0.
    """

def cost_add(kind: int, begin: int, /) -> None:
    """Add the CPU time of the calling thread since `begin`, for an event that is always timed."""

def take_costs(begins: bool, /) -> list[tuple[int, int]]:
    """Take the sum by kind, ns, and its number of events, of which only a sample was timed.

    `begins`: what follows is another recording.
    """

def take_op_costs() -> list[tuple[int, int, int, int]]:
    """Take what statements took by op and kind: both, the sum, ns, and its number of events.

    The op is the one that was open after the event.
    """

# -- Python stacks
def prepare_stacks(minor: int, /) -> str | None:
    """Prepare to read the frames of Python 3.`minor`; return the reason if that is impossible.

    From then on, it follows the end of code objects, to detect another one at the same address.
    """

def begin_stacks() -> None:
    """Forget the stacks so far, whose numbers begin anew."""

def start_stacks() -> None:
    """Read the stack of each launch from now on; forgets the stacks so far."""

def pause_stacks() -> None:
    """Read no stacks until `resume_stacks` or `start_stacks`."""

def resume_stacks() -> None:
    """Read the stack of each launch again; the stacks so far are kept."""

def stop_stacks() -> None:
    """Read no stacks until `start_stacks`, and free the memory of those that were drained."""

def end_stacks() -> None:
    """Read no more stacks in this process; return when none is being read."""

def set_stack_bound(max_bytes: int, /) -> None:
    """Bound the memory of all stacks; new stacks beyond it are not recorded."""

def drain_stacks() -> dict[str, Any]:
    """Take the stacks that are new since the last call.

    Columns of stacks: stack_id i32 and parent_id i32 (-1: none), from 0 in each recording,
    stack_code_id i32, line i32 (-1: the instruction has none). Columns of code objects: code_id
    i32, first_line i32, file_bytes u32, function_bytes u32, the lengths of the texts that follow
    each other in ``files`` and ``functions`` (UTF-8, cut after 4,096 characters). ``truncated``:
    stacks so far whose outermost frames were cut off; ``dropped``: launches so far without a stack
    for lack of memory.
    """

def prepare_samples() -> str | None:
    """Prepare to sample threads, after `prepare_stacks`; return a reason if impossible."""

def start_samples() -> str | None:
    """Start the thread that samples those that launch or run the cell, if it does not run.

    Returns why that is not possible.
    """

def stop_samples() -> None:
    """Stop that thread and forget its samples; returns when it has ended."""

def end_samples() -> None:
    """Take no more samples in this process; earlier ones can still be drained."""

def drain_samples() -> dict[str, Any]:
    """Take the samples since the last call.

    Columns: time, interval, processor and core_wait i64 (ns; the last two -1 if unknown), thread_id
    u64, stack_id u32 (as in `drain_stacks`).
    Counts since the start: ``exact`` samples; ``outer``: of the outer frames only, because the
    inner ones changed too fast; ``inconsistent``: without a stack; ``dropped``: for lack of memory.
    """

def drain_node_stacks() -> dict[str, Any]:
    """Take the nodes of PyTorch's autograd at launches, while calls of modules are recorded.

    Columns of launches with a stack: forward_thread u64 (PyTorch's number), forward_number u64 (of
    the newest node that the thread has created), forward_stack i32. Columns of launches without
    one: backward_correlation u64, backward_thread u64, backward_number u64 (of the node that ran),
    backward_is_own u32 (0: the node has no number, and this one ran before it).
    """

def stay_in_function(depth: int, /) -> None:
    """Announce that this thread stays in a function on its stack, ``sys._getframe(depth)``.

    Until `leave_function`, which must come before the function returns, stacks of this thread are
    read from their innermost frame to this one only: the frames of its callers do not change. Does
    nothing if the function is a generator or coroutine, or if stacks are not recorded.
    """

def leave_function() -> None:
    """End `stay_in_function`."""

def current_stack() -> int:
    """Id of the calling thread's stack, as at a launch; -1 if stacks are not recorded."""

def walk_stack(
    getframe: Callable[[], FrameType], /
) -> tuple[list[tuple[int, int, str, str, int, int]], list[tuple[int, int, str, str, int, int]]]:
    """Frames of the calling thread, read without the GIL, and the frames of ``sys._getframe``.

    The innermost comes first: address of the code object, offset of the instruction, file,
    qualified name, first line, line.
    """

def counters() -> dict[str, int]:
    """Chunks in use and their bounds, for the op and the launch log."""

# -- CUPTI
def cupti_load(path: str, driver_path: str, /) -> int:
    """Load libcupti and return its API version; raises RuntimeError on failure."""

def cupti_set_layout(layout: bytes, /) -> None:
    """Set the record layout of the loaded CUPTI version."""

def cupti_start(
    *, kinds: bytes, callbacks: bool, all_calls: bool, external: bool, part: int
) -> dict[str, int]:
    """Start recording; raises RuntimeError on failure.

    Parameters
    ----------
    kinds : bytes
        uint32 CUpti_ActivityKind numbers.
    callbacks : bool
        Log launches by API callbacks.
    all_calls : bool
        Log every runtime and driver call.
    external : bool
        Tag calls with external correlation ids, the fallback without callbacks.
    part : int
        Number of the session's part. The launch log has it above 40 bits of correlation ids,
        because CUPTI numbers calls anew after another profiler has finalized it.

    Returns
    -------
    dict
        ``subscribed`` (1: launches are logged by callbacks), ``subscribe_result`` and
        ``clock_result`` (CUptiResult), ``failed_kinds`` (number of kinds CUPTI refused).
    """

def cupti_stop() -> None: ...
def cupti_finalize() -> None:
    """End CUPTI in this process if nothing is recorded, before CUDA has been started.

    The next start starts it anew, also in a forked child. There, CUPTI crashes if the parent has
    started it.
    """

# -- delays on CUDA devices
def follow_streams(follow: bool, /) -> None:
    """Let sessions note the streams that calls launch to, and which of them are destroyed.

    Their destruction is also seen after the sessions. Until False is passed, other profilers cannot
    subscribe to CUPTI's callbacks.
    """

def launched_streams() -> list[tuple[int, bool, bool, list[int]]] | None:
    """Streams of the last session: id, whether it was created in it, whether it still exists.

    Then correlation ids of graph launches and of its first other launches. None if the last
    session followed no streams.
    """

def begin_delays() -> None:
    """Load the kernel of delays into the contexts of the launched streams; may raise RuntimeError.

    Requires `ep_load_driver`.
    """

def end_delays() -> None:
    """Free what `begin_delays` made."""

def launch_delay(stream: int, tag: int, length_ns: int, /) -> tuple[int, int]:
    """Delay a launched stream; returns a result of ``native/delays/api.h`` and a CUresult."""

def wait_for_delays() -> None:
    """Wait for all work of the contexts; raises RuntimeError on failure."""

def take_delays() -> list[tuple[int, int]]:
    """Take the tags and lengths (ns) of the delays that have ended."""

def cupti_has_callbacks() -> bool:
    """Whether CUPTI calls this module at each API call now."""

def cupti_configure(*, buffer_bytes: int, buffers: int, max_records: int) -> None: ...
def cupti_sync() -> list[tuple[int, int]]:
    """Synchronize every context in use; returns (context, CUresult) of those that failed."""

def cuda_error(result: int, /) -> tuple[str, str]:
    """Name and description of a CUresult."""

def cupti_pending_records() -> int:
    """Launches, copies and memsets since the start minus those that have been recorded."""

def cupti_flush(*, forced: bool) -> int:
    """Flush CUPTI's buffers; returns a CUptiResult."""

def cupti_first_launch() -> bool:
    """Launch a memset of the profiler in the current context, if there is one, without waiting."""

def cuda_started() -> bool:
    """Whether CUDA is initialised in this process. Requires `cupti_load`."""

def cupti_read_clock() -> tuple[int, int, int] | None:
    """Read our clock, the clock of CUPTI's records, and our clock; None if CUPTI refuses."""

def cupti_drain() -> dict[str, Any]:
    """Take the decoded records; ``native/gpu/activity_store.cpp`` lists the columns.

    ``lost``: records beyond `max_records`; ``unfinished``: records without times; ``dropped``:
    records for which CUPTI had no buffer; ``decode_ns``: decoding time.
    """

def cupti_graph_nodes() -> dict[str, memoryview]:
    """Take the graph nodes: node u64, original u64 (0: not a clone), op_id u64 (0: none).

    stack_id i64 (-1: none).
    """

def cupti_state() -> dict[str, int]: ...
def cupti_callback_name(domain: int, cbid: int, /) -> str | None:
    """Name of an API call by callback id."""

def decode(raw: bytes, layout: bytes, /) -> dict[str, Any]:
    """Decode one raw activity buffer by a packed layout of `recording.cupti.layouts`.

    Columns as in `cupti_drain`.
    """

# -- analysis
def add_by_group(
    sums: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int32] | npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    /,
) -> None:
    """Add each value to the sum of its group; of -1 or the number of groups, to the last sum.

    Raises
    ------
    ValueError
        If the columns differ in length, or there is no such group. This holds for the following
        functions, too.
    """

def add_column(
    codes: npt.NDArray[np.int64],
    column: npt.NDArray[np.int32] | npt.NDArray[np.int64],
    low: int,
    span: int,
    /,
) -> None:
    """Set each code to ``code * span + column - low``."""

def number_groups(codes: npt.NDArray[np.int64], first: npt.NDArray[np.int64], size: int, /) -> int:
    """Number codes below `size` by first appearance, set their first rows; return their number."""

def find_positions(
    found: npt.NDArray[np.int64],
    ascending: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    after_equal: bool,
    /,
) -> None:
    """Set how many elements of a column are less than each value, or also equal to it."""

def merge_intervals(
    merged_starts: npt.NDArray[np.int64],
    merged_ends: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    /,
) -> int:
    """Merge intervals that overlap or touch into disjoint, ascending ones; return their number.

    It is -1 if their order makes that slow; the result is then invalid.
    """

def find_first(
    found: npt.NDArray[np.int64],
    earliest: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    mask: npt.NDArray[np.bool_],
    times: npt.NDArray[np.int64],
    /,
) -> int:
    """Set the first row with the least value from each ascending time until the next one.

    Only values less than those in `earliest`, which is set, too, and rows in `mask` count. Return
    the last row with the greatest value; -1 for none.
    """

def add_covered_before(
    covered: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    total: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    sign: int,
    /,
) -> None:
    """Add `sign` times the time that disjoint, ascending intervals cover before each time.

    `total` has the time that the intervals before each one cover.
    """

def extend_ranges(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], /, *rows: npt.NDArray[np.int64]
) -> None:
    """Extend the time ranges of groups by rows: their group (negative: none), begin and end."""

def add_to_bins(
    sums: npt.NDArray[np.int64],
    edges: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    /,
) -> None:
    """Add activities to the bins between edges.

    The sums are six rows with a value per bin, and one more, and group. These are the activities
    that start in the bin and their bytes, the time in it, and the changes from the bin before of:
    activities that take all of it, that started before it, and their bytes. `sizes` may be empty.
    """

def order_rows(
    order: npt.NDArray[np.int32],
    free: npt.NDArray[np.int64],
    codes: npt.NDArray[np.unsignedinteger[Any]],
    code_bytes: int,
    /,
) -> None:
    """Set the events of each row of the timeline from the first free position of the row on.

    Codes are rows; codes beyond them are of no row. The free positions become the ends.
    """

def summarise_rows(
    longest: npt.NDArray[np.int64],
    covered: npt.NDArray[np.int64],
    overlapping: npt.NDArray[np.bool_],
    unsorted: npt.NDArray[np.bool_],
    first: npt.NDArray[np.int64],
    order: npt.NDArray[np.int32],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    block: int,
    /,
) -> tuple[int, int]:
    """Summarise the events of each row; return their earliest start and latest end.

    Of each block of positions: the longest duration, and the sum. Of each row: whether an event
    starts before the end, or start, of the one before it.
    """

def find_nearest(
    nearest: npt.NDArray[np.int64], parent: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], /
) -> bool:
    """Set the nearest row in `mask` of each row; False if a parent does not precede its row."""

def count_levels(
    times: npt.NDArray[np.int64],
    levels: npt.NDArray[np.int32],
    up: npt.NDArray[np.int64],
    down: npt.NDArray[np.int64],
    /,
) -> int:
    """Set the distinct times of two ascending columns, and how many more of `up` have passed.

    Returns the number of these times.
    """

def number_ops(
    end: npt.NDArray[np.int64], depth: npt.NDArray[np.int64], parent: npt.NDArray[np.int64], /
) -> bool:
    """Set where the subtree of each op ends, and its depth; False for rows not in preorder."""

def add_to_parents(totals: npt.NDArray[np.int64], parent: npt.NDArray[np.int64], /) -> None:
    """Add the total of each op to its parent's, for rows in preorder."""

def find_outermost(
    found: npt.NDArray[np.bool_],
    until: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    /,
) -> None:
    """Set which ops have no ancestor of their group, for rows in preorder.

    `until` has a 0 for each group. Ops of a negative group are not outermost.
    """

def add_activities(sums: npt.NDArray[np.int64], /, *columns: npt.NDArray[Any]) -> None:
    """Add the measures of the activities that are device work to the sums of their groups.

    `sums` has one row per measure and one column per group, and a last one for no group. Columns:
    group (int32), kind (uint8), is_work (bool), start, duration, bytes and row of the API call
    (int64), of one length; and the starts of all API calls (int64). Groups and rows of calls must
    be valid; see `epprof_nb.analysis.base.activity_sums`.
    """

def add_covered(
    covered: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    group: npt.NDArray[np.int32],
    is_work: npt.NDArray[np.bool_],
    start: npt.NDArray[np.int64],
    duration: npt.NDArray[np.int64],
    /,
) -> bool:
    """Add the time in which the groups work to `covered`; groups must be valid.

    `last`, shape ``(2, groups)``, has the ends and starts so far, initially the least integer.
    Returns False if a start precedes an earlier one of its group; the result is then invalid.
    """

def critical_path(
    columns: tuple[npt.NDArray[Any], ...],
    /,
    *,
    threads: int,
    home: int,
    start_ns: int,
    end_ns: int,
    latency_ns: int,
    variants: int,
    rows: bool,
    follow_home: bool,
    ends_with_home: bool,
) -> dict[str, memoryview]:
    """Find the longest path through host threads and device lanes.

    Parameters
    ----------
    columns : tuple of arrays
        The columns of `epprof_path_input` in ``native/analysis/api.h``, in that order. Rows must be
        valid.
    threads, home : int
        Number of threads, and the number of the thread that starts the others.
    start_ns, end_ns : int
        Start and end of the profile.
    latency_ns : int
        Usual time from a launch to its activity if the stream is free.
    variants : int
        Number of variants: 1; 8 with factors; or 4 without them, whose removed work differs.
    rows : bool
        Whether to return the path of the first variant as well.
    follow_home : bool
        Whether a thread without an op begins the next one only when `home` has come to that time,
        unless it takes the time between its ops. Its first op always does.
    ends_with_home : bool
        Whether the path ends with `home` or device work, whatever other threads still do.

    Returns
    -------
    dict
        ``length_ns`` i64: a value per variant, or one with `rows`. With `rows`,
        the path from its end to its start: ``step`` u8, ``row`` i32, ``start_ns`` and ``end_ns``
        i64.
    """

# -- NVTX
def nvtx_allow() -> None:
    """Attach to the copies of NVTX that ask from now on.

    They ask at their first call, if ``NVTX_INJECTION64_PATH`` names the file of this module.
    """

def nvtx_record(on: bool, /) -> None:
    """Record ranges and marks as ops while a session is open; off, NVTX's functions do nothing."""

def nvtx_attached() -> list[str]:
    """Paths of the libraries whose copies of NVTX are attached."""

def nvtx_details(first: int, /) -> dict[str, memoryview]:
    """Return the attributes of ranges and marks besides their name, from id `first` on.

    Columns: domain u32, category u32 (number; 0: none), category_name u32, flags u32 (1: has a
    color, 2: is a mark), color u32 (ARGB), payload_type i32 (1: u64, 2: i64, 3: f64, 4: u32, 5:
    i32, 6: f32; 0: none), payload u64 (its bits). Names are ids of `names`; 0: none.
    """

def nvtx_dropped() -> tuple[int, int]:
    """Number of ranges and marks of this process without attributes, and without payload.

    A process keeps 1,048,576 distinct sets of attributes. Later ones have no payload, and after
    65,536 more without payload, no attributes. It keeps 65,536 distinct payloads with a schema, of
    64 MiB in total, as JSON.
    """

def xla_compiling(on: bool | None, /) -> None:
    """Count the compilations by XLA in progress: one begins (True) or ends (False); None: none.

    During these, XLA's ranges on threads without open ops get no row: XLA runs programs there to
    find the fastest one. Their work is attributed to the thread that waits.
    """

# -- operators of PyTorch, named by its NVTX observer
def operators_record(on: bool, /) -> None:
    """Record operators as ops, on the calling thread and on threads that work for it."""

def operators_pause(on: bool, /) -> None:
    """Record no operators for a while, but count them."""

def operators_backward(op_id: int, /) -> None:
    """Set the parent of operators on threads other than the recording one, without an open op.

    0: these are not recorded.
    """

def operators_seen() -> int:
    """Return the number of messages of operators so far."""

def operator_sizes(first: int, /) -> list[str]:
    """Return the sizes of operators' inputs, as PyTorch writes them, from id `first` on."""

def torch_observe(library: str, /) -> bool:
    """Receive the observer's messages in a build of PyTorch without CUDA.

    `library` is the path of its ``libtorch_cpu.so``. Returns False if it is not loaded or lacks the
    functions.
    """

def torch_enable(on: bool, /) -> None:
    """Let PyTorch enable its observer, after `torch_observe`."""

# -- calls of PyTorch's modules, and its backward passes
def engine_open(library: str, /) -> bool:
    """Find functions of PyTorch's autograd engine in its ``libtorch_cpu.so``.

    Returns False if it is not loaded or lacks the functions that number nodes and backward passes.
    """

def engine_is_known() -> bool:
    """Whether `engine_open` found the functions that number nodes and backward passes."""

def engine_check_node(node: object, number: int, edges: list[int], /) -> bool:
    """Whether the memory of an autograd node is as expected.

    Parameters
    ----------
    node
        Node that the calling thread has created.
    number
        Its number.
    edges
        Numbers of the nodes that follow it, without missing ones.
    """

def engine_reads_nodes() -> bool:
    """Whether the last node that `engine_check_node` saw was as expected."""

def modules_record(on: bool, /) -> None:
    """Start or stop the log of the calls of modules. It forgets all calls and modules."""

def modules_begin_thread(number: int, /) -> None:
    """Log the calling thread, whose next node has this number, if its log has not begun."""

def modules_on_host() -> bool:
    """Whether modules were called that have parameters on the CPU."""

def modules_on_outermost(
    function: Callable[[tuple[Any, ...], dict[str, Any] | None], None] | None, /
) -> None:
    """Call a function at each outermost call of a module, with its arguments, the module first.

    Recomputations in a backward pass are left out. None ends this.
    """

def modules_renumbered() -> None:
    """Look the numbers of modules up again: `known` of a `RecordedModule` has lost entries."""

def module_add(name_id: int, forward: int, recompute: int, backward: int, on_host: bool, /) -> int:
    """Add a module to the log: its name and the kinds of its ops; return its number."""

def model_matches(
    module: object, entries: tuple[tuple[int, int, bool, tuple[tuple[str, int, bool], ...]], ...], /
) -> bool:
    """Whether a model of PyTorch still consists of the same modules, on the same devices.

    Parameters
    ----------
    module
        The outermost module.
    entries
        Each module, in the order in which they are visited: its ``id``, the ``id`` of its class,
        whether it has own parameters that are not on a CUDA GPU, and its children: for each the
        name, the ``id``, and whether it is visited there rather than before.
    """

class RecordedModule:
    """A substitute for ``torch.nn.Module.__call__`` that makes each call of a module an op.

    Parameters
    ----------
    original
        The function that it replaces.
    known
        Number of each known module by ``id``.
    find
        Returns the number of another module; None if its calls are not to be ops.
    compiler, is_compiling
        The namespace and the function of ``torch.compiler``. While it compiles, calls are not ops.
    next_number, task
        Functions that return the number of the next node of the calling thread, and the number of
        the backward pass that it executes, or -1. None: the functions of the engine.
    begin_model
        Gets a module that may be called with a KV cache, and the arguments of the call, the module
        first. Returns a function to call with the result (None after an error), or None for
        another module. It does not get calls inside such a call, nor calls of a backward pass.
    plain
        Types of arguments that hold no cache.
    takes_cache
        Whether the modules of a class take a cache. `begin_model` gets all calls of classes that do
        and of classes that are not listed, and calls of the other classes with an argument that is
        not plain.

    Raises
    ------
    ValueError
        If a function is None and the engine's functions were not found (`engine_is_known`).
    """

    __wrapped__: Callable[..., Any]
    def __init__(
        self,
        original: Callable[..., Any],
        known: dict[int, int],
        find: Callable[[Any], int | None],
        compiler: dict[str, Any],
        is_compiling: Callable[[], bool],
        next_number: Callable[[], int] | None,
        task: Callable[[], int] | None,
        begin_model: Callable[
            [Any, tuple[Any, ...], dict[str, Any] | None], Callable[[Any], None] | None
        ],
        plain: set[type],
        takes_cache: dict[type, bool],
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> object: ...
    def stop(self) -> None:
        """Only call the original from now on."""

def stretches(roots: list[Any], leaf: type | None, /) -> tuple[list[tuple[Any, int]], int, int]:
    """First node of each stretch of an autograd graph of PyTorch, with the call that created it.

    It considers calls of the calling thread and leaves out nodes without edges. Nodes run by
    descending number.

    Parameters
    ----------
    roots : list
        The nodes that run first, each once.
    leaf : type or None
        Type of nodes that are left out as well; their edges are not followed.

    Returns
    -------
    first : list of (node, call)
        Call 0 is for nodes outside of all calls, or of an unknown one.
    nodes, unlinked : int
        Number of nodes, and of nodes of an unknown call, which are older than the log, or for which
        another thread called modules under the same number.
    """

def pass_begin(name_id: int, kind: int, follow: bool, /) -> tuple[int, int]:
    """Begin a backward pass; return its number and its op.

    Parameters
    ----------
    name_id, kind
        Name and kind of its op.
    follow
        Whether to make the module call that created a node the open op. The node that runs is read
        whenever a thread opens an op or makes an API call. Needs `engine_reads_nodes`.
    """

def pass_end(number: int, op_id: int, /) -> tuple[int, int]:
    """End a backward pass, its op and the ops of its module calls.

    Returns
    -------
    nodes, unlinked : int
        Number of nodes that were followed, and of nodes of an unknown call.
    """

def switch_calls(
    number: int,
    calls: dict[Any, int],
    current_node: Callable[[], Any],
    gradient: object,
    /,
) -> None:
    """Make the call of a node, and those that contain it, the open ops of the calling thread.

    Parameters
    ----------
    number : int
        The backward pass.
    calls : dict
        Call of each node, as in `stretches`.
    current_node : callable
        Returns the node that runs on the calling thread. Nodes that are not in `calls` change
        nothing.
    gradient : object
        Ignored, so that the function can be a hook of an autograd node.
    """

# -- calls of jitted functions of JAX
def vectorcalls_record(kind: type, describe: Callable[[Any], tuple[int, int]], /) -> None:
    """Record the calls of all objects of a type as ops, until `vectorcalls_stop`.

    Calls inside a recorded one, on the same thread, are part of it. The type must be a C or C++
    type that can be changed: its ``__call__`` is replaced, and vectorcall is switched off.

    Parameters
    ----------
    kind
        The type. There is one for the process.
    describe
        Returns the ids of the name and of the kind of an object's ops. It is called once for each
        object, which must allow weak references.

    Raises
    ------
    RuntimeError
        If calls are recorded already, or this type cannot be changed; the message says why.
    """

def vectorcalls_stop() -> None:
    """Restore the type, unless other code has replaced its ``__call__`` since."""

def vectorcalls_pause(on: bool, /) -> None:
    """Record no calls on this thread for a while; pauses add up.

    A pause ends with the recorded call that it began in, or when the next recording begins.
    """

# -- the execution provider with kernels in Python
def ep_register_host_only(host_only: bool, /) -> None:
    """Whether the next registration on this thread offers the host device only."""

def ep_set_functions(
    open_session: Callable[[dict[str, str], int], tuple[Any, ...]],
    limit_of: Callable[[Any, dict[str, Any], tuple[bool, ...]], str | None],
    make_node: Callable[[Any, str, dict[str, Any], int], tuple[list[Any], Any, bool]],
    describe_error: Callable[[Any, BaseException], str],
    record: Callable[[Any, int, int, Any], None],
    record_copy: Callable[[int, int, int, int], None],
    begin_replay: Callable[[tuple[Any, ...]], int],
    end_replay: Callable[[Any, int, int], None],
    release_graphs: Callable[[int, int], None],
    list_domains: Callable[[], tuple[object, ...]],
    /,
) -> None:
    """Set the functions that sessions and kernels call.

    Parameters
    ----------
    open_session
        Gets the provider's options, and the CUDA device that ONNX Runtime has chosen (-1: the host
        device). Returns the number of the session, whether it captures graphs, the address of the
        user's stream (0: none), the selected operator types and node names (empty: all), and its
        kernels (`ep_make_kernels`).
    limit_of
        Gets the handle of a kernel with limits, the attributes of a node, and whether it has each
        input. Returns the reason why the kernel does not take the node, or None.
    make_node
        Gets a kernel's handle, and name, attributes and number of outputs of a node. Returns a
        list with the function to call, the object whose attributes `KernelContext` has, and whether
        outputs must have the shapes that ONNX Runtime inferred.
    describe_error
        Gets the node, or None, and the exception. Returns the message.
    record
        Gets the node, start and end of its kernel, and the replay, during a recording. A replay is
        its correlation id, stream, graph and the node in it; None outside of a replay.
    record_copy
        Gets start, end and bytes of a copy, and whether it goes to the device, during a recording.
    begin_replay
        Gets a graph as `ep_describe_graph` does, at the start of a replay that is recorded. Returns
        the number of the stream.
    end_replay
        Gets the replay, and its start and end.
    release_graphs
        Gets the number of a session and the id of the graphs that ONNX Runtime releases.
    list_domains
        Returns the domains of operators without a schema (`ep_make_domain`), for sessions whose
        provider is chosen by device.
    """

def ep_set_device_functions(
    view: Callable[[int, int, int, int, tuple[int, ...]], Any],
    current_stream: Callable[[int, int], Any],
    capturing_stream: Callable[[int, int], Any],
    stream_getter: Callable[[], Callable[[int], Any]],
    /,
) -> None:
    """Set the functions that kernels on CUDA devices need.

    Parameters
    ----------
    view
        Returns an array for a device, an address, a size in bytes, ONNX's element type and a shape.
    current_stream
        Returns a context manager for a device and the address of a stream.
    capturing_stream
        Likewise, for a stream that is being captured into a graph.
    stream_getter
        Returns a function that returns the current stream of a device: the context manager that was
        entered last.
    """

def ep_launch(
    kernel: object,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    args: tuple[object, ...],
    shared_mem: int = 0,
    /,
) -> None:
    """`KernelContext.launch` in the kernel of a node on a CUDA device.

    Elsewhere, a call ``kernel(grid, block, args, shared_mem)``.
    """

def ep_repeat_nothing() -> None:
    """Do not let the kernel on this thread repeat its launches, because it makes others, too."""

def ep_note_scratch(address: int, nbytes: int, /) -> None:
    """Note device memory whose contents only the launches of the kernel on this thread use.

    A node that repeats the launches allocates other memory for them.
    """

def ep_current_node() -> object | None:
    """Return the node whose kernel runs on this thread."""

def ep_leave_stream() -> None:
    """Make the stream current that was current before a failed run of this thread."""

def ep_device_allocate(device: int, nbytes: int, /) -> int:
    """Allocate memory of a CUDA device, and of the graph that this thread captures, if any.

    Raises MemoryError if there is none.
    """

def ep_device_free(device: int, address: int, /) -> None:
    """Free memory of `ep_device_allocate`."""

def ep_device_configure(device: int, limit: int | None, grow_exactly: int, /) -> None:
    """Set the limit of a device's memory in bytes (0: none), and whether regions are exact.

    None and -1 leave a setting unchanged.
    """

def ep_load_driver(path: str, /) -> int:
    """Open NVIDIA's driver, unless one is open, and return the number of its devices."""

def ep_leave_streams_to_others(leave: bool, /) -> None:
    """Let another provider create the streams of sessions that this thread creates."""

def ep_device_of(address: int, /) -> int | None:
    """CUDA device of a tensor's memory; -1 for the host device, None for other memory."""

def ep_cuda_device_at(address: int, /) -> int | None:
    """CUDA device of memory, whoever allocated it; None for other memory, or without a driver."""

def ep_open_cublaslt(path: str, /) -> None:
    """Open cuBLASLt, unless it is open. Raises RuntimeError if that fails."""

def ep_make_product(
    device: int,
    types: tuple[int, int, int, int],
    sizes: tuple[int, int, int, int],
    a: tuple[bool, int, int],
    b: tuple[bool, int, int],
    alpha: float,
    beta: float,
    has_bias: bool,
    most_workspace: int,
    /,
) -> tuple[object, int] | None:
    """Return a product of matrices by columns, and the bytes of its workspace.

    None if cuBLASLt has no algorithm for it.

    Parameters
    ----------
    device
        The current CUDA device.
    types
        cuBLAS's numbers of the types of elements and results, and of the types to compute and scale
        in.
    sizes
        Rows, columns, depth and number of products.
    a, b
        Whether the matrices are transposed, elements from one column to the next, and elements from
        one matrix to the next.
    alpha, beta
        Factors of the product and of a matrix that is added; 0 if there is none.
    has_bias
        Whether one number per row is added.
    most_workspace
        Bytes of workspace that the algorithm may use.
    """

def ep_launch_product(
    product: object,
    a: int,
    b: int,
    added: int,
    bias: int,
    result: int,
    workspace: int,
    stream: int,
    /,
) -> int:
    """Launch a product on a stream and return cuBLAS's status.

    Parameters
    ----------
    product
        The product, of the current device.
    a, b, added, bias, result, workspace
        Addresses, multiples of 16; 0 for arrays that the product lacks.
    stream
        Address of the stream.
    """

def ep_take_allocation_failure() -> str | None:
    """Message about the last allocation on a CUDA device that failed, once."""

def ep_device_statistics(device: int, /) -> dict[str, int]:
    """Statistics of a CUDA device's memory.

    Bytes ``in_use`` by tensors, ``most_in_use``, and ``reserved`` from the driver; number of
    ``allocations``, and of ``regions`` of the driver. All are 0 for a device that no session has
    opened.
    """

def ep_memory_log_start(most: int, /) -> None:
    """Log the memory of the provider's devices from now on, at most `most` changes of each."""

def ep_memory_log_stop() -> None:
    """Stop the log, and forget its events."""

def ep_memory_log_read() -> dict[str, Any]:
    """Columns of the log since its start, in the order of events on each device.

    ``time_ns`` (-2**63: before the start), ``address``, ``bytes``, ``requested_bytes``,
    ``stream_id``, ``op_id`` (0: none) and ``device_id`` (-1: host) are int64; ``action``, uint8, is
    0 for an allocation, 1 for a release, 2 for a region from the driver and 3 for its release.
    ``dropped`` is the number of events that the limit cut.
    """

def ep_allow_capture(allowed: bool, /) -> None:
    """Set whether a session that this thread creates may capture graphs."""

def ep_is_replaying() -> bool:
    """Whether the run that this thread has marked replays a graph."""

def ep_is_capturing() -> bool:
    """Whether the kernels of this thread are being captured."""

def ep_capture_is_intact() -> bool:
    """Whether this thread captures kernels, and no call on a CUDA device has ended the capture."""

def ep_report_violation(what: str, /) -> None:
    """End the capture of this thread after the current kernel; `what` has fault and remedy."""

def ep_begin_call(session: int, /) -> int:
    """Open the op of a call of a session, in which ONNX Runtime makes several runs.

    End it with `ort_end_run`. Returns 0 if it is not recorded, or open already.
    """

def ep_begin_graph_run(session: int, gpu_graph_id: int, graph: object, warm_ups: int, /) -> object:
    """Mark the runs of a session on this thread: they replay `graph`, a capsule.

    With None they capture one, after as many eager runs as `warm_ups`.
    """

def ep_end_graph_run(run: object, /) -> tuple[object | None, bool, str | None, str | None]:
    """Unmark the runs; end each begin once.

    Returns the captured graph, whether one was replayed, and the name of the node that a graph
    cannot have, with the reason.
    """

def ep_take_replays() -> list[tuple[int, int]]:
    """Take the replays on CUDA devices that were recorded: the op that was open, and the graph."""

def ep_describe_graph(graph: object, /) -> tuple[Any, ...]:
    """Fields of `epprof_nb.core.python_kernel_log.CapturedGraph`, with nodes as tuples."""

def ep_set_captured_in(graph: object, line: str, /) -> None:
    """Set the line of code that captured a graph."""

def ep_changed_nodes(graph: object, /) -> list[str]:
    """Nodes of a graph whose kernel has another function since the capture."""

def ep_has_control_flow() -> bool:
    """Whether the session that this thread created last has If, Loop or Scan."""

def ep_unclaimed_nodes() -> list[tuple[str, str, str, str]]:
    """Nodes that the last session of this thread left to other providers.

    A node: its name, its operator's type and domain, and the limit of its kernel that the node
    exceeds, or an empty string.
    """

def ep_unmatched() -> tuple[list[str], list[str]]:
    """Types and names that were selected for that session, but that no node of its model has."""

def ep_session_options_type() -> object:
    """C++ type information of OrtSessionOptions, for pybind11's conduit."""

def ep_run_config_entry(run_options: object, key: str, /) -> str | None:
    """Return an entry of run options (a capsule of OrtRunOptions), None if they have none."""

def ep_add_dtype(onnx_type: int, number: int, /) -> None:
    """Set NumPy's number of the dtype of ml_dtypes for one of ONNX's element types."""

def ep_make_kernels(device: int, kernels: tuple[tuple[Any, ...], ...], /) -> object:
    """Kernels on a CUDA device, or on the host device (-1), for any number of sessions.

    A kernel: operator type, domain, first and last version, element types by type constraint,
    inputs and outputs in host memory, whether it has limits, whether the output may lie in the
    memory of the first input, and a handle for `limit_of` and `make_node`.
    """

def ep_make_domain(
    name: str,
    operators: tuple[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], Any], ...],
    /,
) -> object:
    """Domain of operators without a schema, which lives as long as the process.

    An operator: its type, element types of its inputs, whether each is optional, element types
    of its outputs, and a handle for `make_node`.
    """

def ep_add_domain(session_options: object, domain: object, /) -> None:
    """Add a domain to session options (a capsule of OrtSessionOptions)."""

class KernelContext:
    """The ``ctx`` of a kernel in Python; see `epprof_nb.ep.kernel`."""

    def out(
        self, shape: Sequence[int] | int, dtype: object = None, *, index: int | None = None
    ) -> object:
        """Array of an output, to be written into; None if the node leaves the output out."""

    def launch(
        self,
        kernel: object,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[object, ...],
        shared_mem: int = 0,
    ) -> None:
        """Launch a CUDA kernel on the stream of the node.

        See `epprof_nb.ep.kernel`.
        """

    def repeat_launches(self) -> None:
        """Let later runs repeat the launches of this call without calling the kernel."""

# -- the observer of ONNX Runtime
def ort_runtime() -> str:
    """Version of the ONNX Runtime that loaded the observer, or an empty string."""

def ort_new_session() -> int:
    """Number the session that is created on this thread; 0 if another provider has."""

def ort_begin_session() -> None:
    """Begin to create a session on this thread."""

def ort_end_session() -> int:
    """End the creation of a session; return its number, or 0 if no provider reports its events."""

def ort_run_options_type() -> object:
    """C++ type information of OrtRunOptions, for pybind11's conduit."""

def ort_profile_run(run_options: object, file_prefix: str | None, /) -> None:
    """Profile the runs made with these options (a capsule of OrtRunOptions); None: stop."""

def ort_allocator_statistics(
    session: int, memory: str, device_type: int, vendor: int, device: int, /
) -> str:
    """Lines ``name=value``: the statistics of the allocator of a session's memory on a device.

    ``session`` is the address of an OrtSession, which must exist; the others are the fields of its
    OrtMemoryInfo. Raises RuntimeError if the session has no such allocator.
    """

def ort_event_details(first: int, /) -> dict[str, memoryview]:
    """Details of events, ids `first` and up.

    Columns: session u32, node_index i32 (-1: none), name ids (u32) op_type, provider,
    input_shapes, output_shapes, and i64 output_bytes, parameter_bytes, activation_bytes (-1: not
    reported).
    """

def ort_nodes_of_last_run() -> int:
    """Node events of the profiled run that ended last on the calling thread; -1: unknown."""

def ort_begin_run(session: int, /) -> int:
    """Open the op of a run, under which its profiler adds events; 0 if not recording."""

def ort_end_run(op_id: int, /) -> None:
    """End the op that `ort_begin_run` opened."""

def ort_end_refused_run(session: int, since_ns: int, /) -> None:
    """End what a call that raised left open on this thread since a time of the clock.

    This is for sessions that ONNX Runtime profiles as a whole.
    """

def ort_observe_run(session: int, /) -> None:
    """Observe the next run of a session on the calling thread, until `ort_take_run`.

    If the run is not profiled, its op is open while ONNX Runtime executes it.
    """

def ort_take_run() -> tuple[int, int, int, int, bool, bool]:
    """Return the observations of the run.

    Returns
    -------
    op_id : int
        Its op; 0 if the run did not start or was not recorded.
    launches : int
        Launches, copies and memsets that the thread of the run made and CUPTI's callbacks saw.
    launch_hash : int
        Hash of these in order: kernels, grids, blocks and sizes.
    function_hash : int
        Hash of these in order: kernels only.
    is_profiled : bool
        Whether ONNX Runtime reported its nodes.
    has_subgraphs : bool
        Whether a node has subgraphs; False for a run that is not profiled.
    """

def ort_on_run_file(
    opened: Callable[[int, int], object], ending: Callable[[int, int], object], /
) -> None:
    """Set callbacks on the profile files of single runs, called on the run's thread.

    Both get the session and the run's op; `opened` gets (0, 0). `ending` is called before the
    file's events are written, with op 0 if the run was not recorded. Exceptions are written to
    standard error.
    """

def ort_set_node_hooks(at_end: dict[str, Callable[[], None]] | None, /) -> None:
    """Set the functions that are called when nodes end, by the name of the node; None: none.

    They are called on the thread of the node, in runs with profiling enabled, outside of sessions.
    Exceptions are written to standard error, apart from Ctrl-C.
    """

def ort_expect_run_file(expected: bool, /) -> None:
    """Declare whether the next profiled run on the calling thread writes a file."""

def ort_add_device_event(
    session: int,
    run_op: int,
    is_call: bool,
    name: str,
    start_ns: int,
    duration_ns: int,
    thread_id: int,
    args: tuple[str, ...],
    /,
) -> None:
    """Queue an event for the profile that ONNX Runtime writes.

    Parameters
    ----------
    run_op : int
        Op of the run whose profile gets the event; 0: the profile of the whole session.
    is_call : bool
        Whether it is a call of an API that caused device work, instead of device work.
    args : tuple of str
        Alternating keys and values, at most 16 pairs.
    """
