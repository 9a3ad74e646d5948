"""Sessions that capture graphs, and the choice of the runs that warm up, capture and replay.

On a replay, ONNX Runtime ignores the inputs and outputs of a run. It repeats the captured launches
with their original buffers, so every run must use the buffers of its graph: ours for plain arrays
(`epprof_nb.ep.graphs.runs_with_arrays`), or the user's if all are bound
(`epprof_nb.ep.graphs.runs_with_bindings`). All other runs are eager.
"""

from __future__ import annotations

import itertools
import re
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import GRAPH_ID, run_config_entry
from epprof_nb.core.python_kernel_log import KERNELS
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.user_code import user_level, user_line
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_Result = TypeVar("_Result")

MAX_WARM_UPS = 7
"""ONNX Runtime gives up if a graph is not captured after eight runs."""
DEFAULT_WARM_UPS = 2
SKIP = -1
_HOST = "Cpu"
"""ONNX Runtime's name of host memory."""
_NUMBER = re.compile(r"-?[0-9]{1,10}")
_DEFAULT_ID = 0
_MAX_ID = 2**31 - 1
_MAX_SETS_OF_SHAPES = 8
"""Maximum number of graphs per graph id and thread, one per set of input shapes."""
ATTRIBUTE = "_epprof_graphs"

_lock = fork_safe_lock()
_uses = itertools.count(1)
_by_number: weakref.WeakValueDictionary[int, SessionGraphs] = weakref.WeakValueDictionary()


@dataclass(slots=True, eq=False, weakref_slot=True)
class GraphSlot:
    """A graph with its buffers, captured or not yet captured."""

    gpu_graph_id: int
    buffers: Any
    """Keeps alive the memory that the graph reads and writes."""
    graph: Any = None
    noted: Any = None
    """The graph's description, for recordings of its replays."""
    version: int = -1
    """Version of the kernels at the last check for changes since the capture."""
    last_use: int = 0
    refused: bool = False
    """The graph cannot be captured. Its runs are eager until a kernel is redefined."""


class _Slots:
    """The graphs of one session on one thread, by their keys; see `SessionGraphs.slot`."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[int, Hashable], GraphSlot] = {}


class _ThreadSlots(threading.local):
    """The graphs of a session on the current thread; they end with the thread."""

    def __init__(self, every: weakref.WeakSet[_Slots]) -> None:
        self.slots = _Slots()
        with _lock:
            every.add(self.slots)


class SessionGraphs:
    """The graphs of a session.

    Parameters
    ----------
    number
        Number of the session.
    warm_ups
        Number of eager runs before a capture.
    cuda_device
        Number of the CUDA device; None for the host device.
    """

    def __init__(self, number: int, warm_ups: int, cuda_device: int | None) -> None:
        self.number = number
        self.warm_ups = warm_ups
        self.cuda_device = cuda_device
        self._every: weakref.WeakSet[_Slots] = weakref.WeakSet()
        self._threads = _ThreadSlots(self._every)
        self._warned: set[str] = set()
        self._used_ids: set[int] = set()
        self._host_inputs: frozenset[str] | None = None
        _by_number[number] = self

    def host_inputs(self, session: Any) -> frozenset[str]:  # noqa: ANN401
        """Names of the inputs in host memory. Their values are part of a graph."""
        if self._host_inputs is None:
            inputs = zip(session.get_inputs(), session.get_input_memory_infos(), strict=True)
            self._host_inputs = frozenset(i.name for i, where in inputs if where.name == _HOST)
        return self._host_inputs

    def slot(self, gpu_graph_id: int, key: Hashable) -> GraphSlot | None:
        """Return this thread's graph with these buffers, if there is one."""
        slot = self._threads.slots.by_key.get((gpu_graph_id, key))
        if slot is not None:
            slot.last_use = next(_uses)
        return slot

    def has_other(self, gpu_graph_id: int, key: Hashable, buffers: Any) -> bool:  # noqa: ANN401
        """Whether buffers belong to a graph of this thread with another id.

        Programs of the CUDA provider bind one ``IOBinding`` again for each graph. A run then names
        the graph to replay by its id alone, whatever buffers are bound then.
        """
        return any(
            number != gpu_graph_id and other == key and slot.buffers[0] == buffers
            for (number, other), slot in self._threads.slots.by_key.items()
        )

    def add(self, slot: GraphSlot, key: Hashable) -> None:
        """Keep a graph under a key; forget the least recently used one beyond a bound."""
        by_key = self._threads.slots.by_key
        same_id = [item for item in list(by_key.items()) if item[0][0] == slot.gpu_graph_id]
        if len(same_id) >= _MAX_SETS_OF_SHAPES:
            by_key.pop(min(same_id, key=lambda item: item[1].last_use)[0], None)
        slot.last_use = next(_uses)
        by_key[slot.gpu_graph_id, key] = slot
        self._used_ids.add(slot.gpu_graph_id)

    def release(self, gpu_graph_id: int) -> None:
        """Release the graphs with this id, on all threads. Replays in progress finish first."""
        with _lock:
            every = list(self._every)
        for slots in every:
            for key in list(slots.by_key):
                if key[0] == gpu_graph_id:
                    slots.by_key.pop(key, None)

    def release_all(self) -> None:
        """Release all graphs of the session."""
        for gpu_graph_id in list(self._used_ids):
            self.release(gpu_graph_id)

    def warn_unless_used(self, gpu_graph_id: int) -> None:
        """Warn that the user releases a graph id that no run has used.

        This is a warning, not an error: a program may release an id before its first run. It may
        also release an id again, because the threads that captured its graphs may have ended and
        released them.
        """
        if gpu_graph_id in self._used_ids:
            return
        used = ", ".join(map(str, sorted(self._used_ids)))
        runs = f"its runs have used the ids {used}" if used else "no run has used a graph yet"
        warnings.warn(
            f"There is no graph {gpu_graph_id} to release in this session: {runs}. The id is the "
            f"run option {GRAPH_ID!r} of the runs, or 0.",
            stacklevel=user_level(),
        )

    def run(self, slot: GraphSlot, call: Callable[[bool], object], warm_ups: int) -> bool:
        """Make a run with the buffers of a graph: replay it, or warm up and capture it.

        Parameters
        ----------
        slot
            The graph.
        call
            Makes the run; its argument says whether it is a replay.
        warm_ups
            Number of eager runs before the capture.

        Returns
        -------
        done
            Whether the run was made. If not, the graph could not be replayed, and an eager run is
            needed.
        """
        self.check_current(slot)
        if slot.refused or _native.ep_is_capturing():  # running inside a node of another session
            call(False)  # noqa: FBT003
            return True
        run = _MarkedRun(self.number, slot, warm_ups)
        try:
            _native.call_then(run.end, run.make, call, slot.graph is not None)
        except Exception:
            if run.violation is None:
                raise
        if run.node is not None and run.violation is not None:
            self._refuse(slot, run.node, run.violation)
            return run.completed
        if run.captured is not None:
            slot.graph = run.captured
            slot.version = REGISTRY.version
            _native.ep_set_captured_in(run.captured, user_line())
            add = KERNELS.add_graph if self.cuda_device is None else KERNELS.add_cuda_graph
            slot.noted = add(_native.ep_describe_graph(run.captured))
        return True

    def as_one_run(self, make: Callable[[], _Result]) -> _Result:
        """Return the result of `make`. Profiles show its runs of ONNX Runtime as one run."""
        call = _RecordedCall(self.number)
        result: _Result = _native.call_then(call.end, call.make, make)
        return result

    def warn_once(self, message: str) -> None:
        """Warn, unless this session has given the same warning."""
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, stacklevel=user_level())

    def check_current(self, slot: GraphSlot) -> None:
        """Drop a graph whose kernels were redefined, and retry a capture that failed."""
        version = REGISTRY.version
        if slot.version == version:
            return
        if slot.graph is not None:
            changed = _native.ep_changed_nodes(slot.graph)
            if changed:
                warnings.warn(
                    f"The kernel of {_names(changed)} was defined again after graph "
                    f"{slot.gpu_graph_id} was captured. The graph is captured again.",
                    stacklevel=user_level(),
                )
                slot.graph = None
        slot.refused = False
        slot.version = version

    def _refuse(self, slot: GraphSlot, node: str, violation: str) -> None:
        slot.graph = None
        slot.refused = True
        slot.version = REGISTRY.version
        reason = f"node {node!r} {violation}" if node else violation
        self.warn_once(f"Graph {slot.gpu_graph_id} was not captured: {reason}. Its runs are eager.")


class _RecordedCall:
    """The op of a call that makes several runs; an interrupt closes it, too."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._op_id = 0

    def make(self, call: Callable[[], _Result]) -> _Result:
        """Make the runs."""
        _native.uninterrupted(self._begin)
        return call()

    def end(self) -> None:
        """End the op, once."""
        _native.uninterrupted(self._end)

    def _begin(self) -> None:
        self._op_id = _native.ep_begin_call(self._number)

    def _end(self) -> None:
        _native.ort_end_run(self._op_id)
        self._op_id = 0


class _MarkedRun:
    """A run that captures or replays; no interrupt leaves its thread marked."""

    def __init__(self, number: int, slot: GraphSlot, warm_ups: int) -> None:
        self._arguments = (number, slot.gpu_graph_id, slot.graph, warm_ups)
        self._mark: Any = None
        self.completed = False
        self.captured: Any = None
        self.node: str | None = None
        self.violation: str | None = None
        """Reason why this node cannot be part of a graph."""

    def make(self, call: Callable[[bool], object], replays: bool) -> None:  # noqa: FBT001
        """Make the run."""
        _native.uninterrupted(self._begin)
        call(replays)
        self.completed = True

    def end(self) -> None:
        """Unmark the thread, once."""
        if self._mark is not None:
            _native.uninterrupted(self._end)

    def _begin(self) -> None:
        self._mark = _native.ep_begin_graph_run(*self._arguments)

    def _end(self) -> None:
        self.captured, _, self.node, self.violation = _native.ep_end_graph_run(self._mark)
        self._mark = None


def release(session_number: int, gpu_graph_id: int) -> None:
    """Release the graphs of a session with this id, on request of ONNX Runtime."""
    graphs = _by_number.get(session_number)
    if graphs is not None:
        graphs.release(gpu_graph_id)


def graph_id(run_options: Any) -> int:  # noqa: ANN401
    """Return the id of the graph of a run with these options; `SKIP` for none.

    Raises
    ------
    KernelError
        If the option is not a valid id.
    """
    if run_options is None:
        return _DEFAULT_ID
    text = run_config_entry(run_options, GRAPH_ID)
    if text is None:
        return _DEFAULT_ID
    # int() also accepts spaces, underscores and digits of other scripts, but ONNX Runtime does not.
    number = int(text) if _NUMBER.fullmatch(text) else SKIP - 1
    if not SKIP <= number <= _MAX_ID:
        raise KernelError(
            f"The run option {GRAPH_ID!r} is {text!r}. It is the number of a graph, 0 to "
            f"{_MAX_ID}, or -1 for a run without a graph."
        )
    return number


def _names(nodes: list[str]) -> str:
    shown = ", ".join(repr(node) for node in dict.fromkeys(nodes))
    return f"node {shown}" if len(set(nodes)) == 1 else f"nodes {shown}"
