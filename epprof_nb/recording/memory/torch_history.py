"""The history of PyTorch's allocator of GPU memory during a session."""

from __future__ import annotations

import inspect
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.epoch import pair_with_epoch
from epprof_nb.recording.memory.called_models import CalledModels
from epprof_nb.recording.memory.earlier_blocks import EarlierBlocks, StorageReferences
from epprof_nb.recording.memory.history_calls import HISTORY_CALLS, is_recorded
from epprof_nb.recording.memory.thread_marks import ThreadMark
from epprof_nb.recording.memory.torch_snapshot import TorchSnapshot, read_snapshot
from epprof_nb.recording.memory.torch_tensors import KeptTensors, addresses_of
from epprof_nb.recording.memory.workspaces import workspace_addresses
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.recording.memory.earlier_blocks import Place
    from epprof_nb.recording.memory.process_memory import ProcessMemory

MAX_ENTRIES = 2_000_000
"""Events that PyTorch keeps, about 100 bytes each; older ones are dropped."""

_FAILED = "Blocks of PyTorch's memory are not recorded: {error}."
_SKIPS = (
    "Blocks of PyTorch's memory are not recorded, because the program's history leaves out actions."
    " Record it without skip_actions, or end it before the profile."
)
_CHANGED = (
    "Blocks of PyTorch's memory are not recorded: the program ended or began PyTorch's history in "
    "the profile. Do that before it, with context=None."
)
_OTHER_CLOCK = "the time of day was set, and the history of the program has that clock"
_NEEDED = "global_record_annotations"
"""A parameter of the releases that remove their hooks again (pytorch #153571)."""


@dataclass(frozen=True, slots=True)
class TorchMemory:
    """Record of PyTorch's allocator in a session.

    Attributes
    ----------
    before, after
        Snapshots at the begin and the end; `after` has the events between them.
    offset_ns
        Time since the epoch minus CLOCK_MONOTONIC; None if the clock of the events cannot be
        trusted, because the time of day was set.
    dropped
        Allocations of which the history has no event any more.
    kept
        Addresses of the tensors that models and optimizers keep at the end, by category.
    marked_thread
        The thread whose events have a mark; None if the threads of events are unknown.
    noted
        Time (CLOCK_MONOTONIC) and address of tensors that were in use then, of shape (n, 2), by
        category: those given to models, and the parameters of models.
    earlier
        Cells and lines of blocks that earlier profiles saw, by address.
    keep_places
        Gets the lines of the blocks in use at the end, for later profiles.
    """

    before: TorchSnapshot
    after: TorchSnapshot
    offset_ns: int | None
    dropped: int
    kept: dict[str, IntArray] = field(default_factory=dict)
    marked_thread: int | None = None
    noted: Mapping[str, IntArray] = field(default_factory=dict)
    earlier: Mapping[int, Place] = field(default_factory=dict)
    keep_places: Callable[[dict[int, Place]], None] = lambda _: None


class TorchHistory:
    """Records the history of PyTorch's allocator between `start` and `stop`.

    It begins once the program has started CUDA, and never starts CUDA itself. PyTorch does not make
    the context yet then; if there is one GPU, it is made at once, so that it can be measured. A
    history of the program is read if that is quick, and never changed.
    """

    def __init__(self, process: ProcessMemory) -> None:
        self._process = process
        self.is_wanted = False
        """Whether `start` was called, and not `stop`."""
        self._is_ours = False
        self._calls = 0
        """Number of calls that recorded a history, of which the last one began this one."""
        self._before: TorchSnapshot | None = None
        self._bracket = (0, 0)
        self._allocations = 0
        self._kept, self._called, self._mark = KeptTensors(), CalledModels(), ThreadMark()
        self._earlier, self._references = EarlierBlocks(), StorageReferences()
        self._certain: Mapping[int, Place] = {}
        self._note: str | None = None
        self._missing: list[str] = []

    def start(self) -> None:
        """Start now, or as soon as the program has started CUDA with PyTorch."""
        if not self.is_wanted:
            self.is_wanted, self._note, self._missing = True, None, []
            HISTORY_CALLS.follow()
            after_import("torch", self._when_started)

    def stop(self) -> None:
        """Stop, and leave PyTorch as it was."""
        self.is_wanted, self._note, self._missing = False, None, []
        cancel("torch", self._when_started)
        torch = sys.modules.get("torch")
        if torch is None:
            return
        with suppress(AttributeError):
            queued = torch.cuda._queued_calls  # noqa: SLF001 - it has no public name
            queued[:] = [call for call in queued if call[0] != self._begin_with_cuda]
        self._kept.stop()
        self._called.stop()
        with suppress(Exception):
            self._mark.remove()
        self._before = None
        if self._is_ours:
            self._is_ours = False
            if HISTORY_CALLS.number != self._calls:
                return  # the program has begun one, which stays
            with suppress(Exception):  # the device may be lost
                torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001

    def forget(self) -> None:
        """Forget the history in a forked child, which cannot use CUDA."""
        self.is_wanted = self._is_ours = False
        self._before = None
        cancel("torch", self._when_started)

    def notes(self) -> list[str]:
        """Return why there is no history, or what `take` found to be missing in it."""
        return [self._note, *self._missing] if self._note else self._missing

    def take(self) -> TorchMemory | None:
        """Return what was recorded since `start`; None without a history."""
        if self._before is None:
            return None
        try:
            return self._take(self._before, sys.modules["torch"])
        except Exception as error:  # noqa: BLE001 - the profile has other data
            self._missing = [_FAILED.format(error=f"{type(error).__name__}: {error}")]
            return None

    def _take(self, before: TorchSnapshot, torch: Any) -> TorchMemory | None:  # noqa: ANN401
        if HISTORY_CALLS.number != self._calls or not is_recorded():
            self._before = None
            self._missing = [_CHANGED]
            return None
        ended = _allocations(torch)  # before the snapshot: later blocks are not in it
        monotonic, epoch = pair_with_epoch()
        offset = epoch - monotonic
        raw = torch.cuda.memory._snapshot()  # noqa: SLF001
        made = _allocations(torch) - self._allocations
        is_whole = self._is_ours or self._leave_out_older(raw, offset)
        after = read_snapshot(raw)
        dropped = max(0 if is_whole else 1, made - int(after.events.of("alloc").sum()))
        is_same_clock = self._agrees(after, offset, dropped)
        self._missing = list(_missing(dropped, is_same_clock=is_same_clock))
        tensors = self._kept.tensors(self._called.models())
        addresses = {name: addresses_of(found) for name, found in tensors.items()}
        self._references = StorageReferences(chain.from_iterable(tensors.values()))
        return TorchMemory(
            before,
            after,
            offset if is_same_clock else None,
            dropped,
            {**_workspaces(before, after), **addresses},
            self._mark.thread(),
            self._called.read(),
            {} if dropped else self._certain,
            lambda places: self._earlier.keep(places, ended),
        )

    def _agrees(self, after: TorchSnapshot, offset: int, dropped: int) -> bool:
        """Return whether the event of the first snapshot is between our readings of the clock."""
        time = after.events.time_us * 1000 - offset
        taken = time[after.events.of("snapshot")]
        if ((self._bracket[0] - 1000 <= taken) & (taken <= self._bracket[1] + 1000)).any():
            return True
        # It may be among the dropped events, and the program may have taken later snapshots.
        return time.max(initial=0) <= _native.now_ns() if dropped else not len(taken)

    def _leave_out_older(self, raw: dict[str, Any], offset: int) -> bool:
        """Leave out the events before the first snapshot; return whether all later ones are there.

        Raises
        ------
        ValueError
            If the clock of the events cannot be compared with ours.
        """
        begin, end = ((time + offset) // 1000 for time in self._bracket)
        is_whole = True
        for device, trace in enumerate(raw["device_traces"]):
            row = len(trace)
            while row and trace[row - 1]["time_us"] >= begin - 1:
                row -= 1
            taken = (i for i in range(row, len(trace)) if trace[i]["action"] == "snapshot")
            first = next(taken, None)
            if first is not None and trace[first]["time_us"] <= end + 1:
                raw["device_traces"][device] = trace[first:]
            elif not trace:
                continue
            elif row:
                raise ValueError(_OTHER_CLOCK)
            else:  # newer events have replaced the snapshot
                is_whole = False
        return is_whole

    def _when_started(self) -> None:
        if self.is_wanted:
            try:
                self._await(sys.modules["torch"])
            except Exception as error:  # noqa: BLE001 - the program imports torch now, or a stand-in
                self._note = _FAILED.format(error=f"{type(error).__name__}: {error}")

    def _await(self, torch: Any) -> None:  # noqa: ANN401
        if torch.version.cuda is not None:
            begin = self._begin if torch.cuda.is_initialized() else self._begin_with_cuda
            torch.cuda._lazy_call(begin)  # noqa: SLF001

    def _begin_with_cuda(self) -> None:
        if self.is_wanted:
            with suppress(Exception):  # the program starts CUDA now
                cuda = sys.modules["torch"].cuda
                # Of several devices, it is not known yet which ones the program will use.
                if cuda.device_count() == 1:
                    self._process.measure_context(cuda.synchronize)
            self._begin()

    def _begin(self) -> None:
        if self.is_wanted and self._before is None:
            try:
                self._record(sys.modules["torch"])
            except Exception as error:  # noqa: BLE001 - the program starts CUDA now
                self._note = _FAILED.format(error=f"{type(error).__name__}: {error}")

    def _record(self, torch: Any) -> None:  # noqa: ANN401
        self._note = _why_not(torch)
        if self._note is not None:
            return
        memory = torch.cuda.memory
        self._is_ours = not is_recorded()
        if self._is_ours:
            # Another thread may end the session, and removes only hooks of all threads.
            memory._record_memory_history(  # noqa: SLF001
                context=None, max_entries=MAX_ENTRIES, clear_history=True, **{_NEEDED: True}
            )
            self._mark.set()
        self._calls = HISTORY_CALLS.number
        self._allocations = _allocations(torch)
        begin = _native.now_ns()
        raw = memory._snapshot()  # noqa: SLF001
        self._bracket = (begin, _native.now_ns())
        self._before = read_snapshot(raw | {"device_traces": []})
        self._certain = {}
        with suppress(Exception):  # the profile has other data
            self._certain = self._earlier.certain(_allocations(torch), self._references)
        self._kept.start()
        self._called.start()


def _workspaces(before: TorchSnapshot, after: TorchSnapshot) -> dict[str, IntArray]:
    try:
        return {"workspace": workspace_addresses(before, after)}
    except USER_ERRORS:  # tensors of the program may be anything
        return {}


def _missing(dropped: int, *, is_same_clock: bool) -> Iterator[str]:
    if dropped:
        yield (
            f"The history of PyTorch's memory begins late: {dropped:,} allocations before it were "
            f"dropped, because PyTorch keeps {HISTORY_CALLS.max_entries:,} events. Blocks in use "
            "later are complete, but the ops of older ones are unknown. Profile fewer steps."
        )
    if not is_same_clock:
        yield (
            "The ops of PyTorch's blocks are unknown, because the time of day was set after "
            "PyTorch started, and its history has that clock. Restart the Jupyter kernel."
        )


def _why_not(torch: Any) -> str | None:  # noqa: ANN401
    backend = torch.cuda.memory.get_allocator_backend()
    version = torch.__version__
    if backend != "native":
        return (
            f"Blocks of PyTorch's memory are not recorded: its allocator is {backend}, which has "
            "no history. Use PyTorch's own allocator to see them."
        )
    if reason := HISTORY_CALLS.reason():
        return f"Blocks of PyTorch's memory are not recorded, because {reason}."
    if is_recorded():
        return _SKIPS if HISTORY_CALLS.skips else None
    record = torch.cuda.memory._record_memory_history  # noqa: SLF001
    if _NEEDED not in inspect.signature(record).parameters:
        return (
            f"Blocks of PyTorch's memory are not recorded, because torch {version} would slow down "
            "all later code (pytorch #153571). Use torch 2.9 or newer."
        )
    return None


def _allocations(torch: Any) -> int:  # noqa: ANN401
    """Return how many blocks were allocated so far, on all devices."""
    stats = (torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count()))
    return sum(of.get("allocation.all.allocated", 0) for of in stats)
