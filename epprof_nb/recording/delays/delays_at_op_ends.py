"""Delays at the ends of ops and ONNX nodes, while nothing is recorded."""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.analysis.base.op_tree import UNNAMED
from epprof_nb.analysis.experiments.ops_to_delay import Factor
from epprof_nb.recording.onnxruntime import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from epprof_nb.recording.delays.device import DelayDevice

    Spin = Callable[[int, bool], int]
    Hook = Callable[[], None]

Due = dict[int, int]
"""Execution of an op in a repeat, from 0, to the length of its delay (ns)."""
_Opened = tuple[int | None, int]
"""An open op: launches of its thread before it, if known, and its processor time, ns."""


class _Op:
    """The begins and ends of the ops of one name.

    An op can be as short as a few microseconds, so an execution without a delay takes one call, at
    its end. What has to be known at its begin takes more.
    """

    def __init__(self, name: str, device: DelayDevice, spin: Spin) -> None:
        self._name, self._device, self._spin = name, device, spin
        self._threads = threading.local()
        self.measured: list[tuple[int, int]] = []
        self.keeps_gil, self.measures = True, False
        self.begin_repeat(None, None)

    def begin_repeat(self, host: tuple[int, Due] | None, on_device: tuple[int, Due] | None) -> None:
        """Set the delays of a repeat; forget the executions and processor time of the last one."""
        self._next = itertools.count()  # ops end on all threads
        self._processor_ns = list[int]()
        self._host, self._on_device = host, on_device
        self._due = {number for part in (host, on_device) if part for number in part[1]}

    @property
    def executions(self) -> int:
        """Number of executions that have ended since the repeat began.

        Not to be asked while the op runs: threads that note the number of their own execution may
        do so in another order.
        """
        ended = next(self._next)
        self._next = itertools.count(ended)
        return ended

    @property
    def processor_ns(self) -> int:
        """Processor time of the threads in executions that have ended, ns, if it is measured."""
        return sum(self._processor_ns)

    def begin(self) -> None:
        """Note what `end_begun` has to know."""
        opened: list[_Opened] | None = getattr(self._threads, "opened", None)
        if opened is None:
            opened = self._threads.opened = []
        processor_ns = time.thread_time_ns() if self.measures else 0
        opened.append((self._device.launches(), processor_ns))

    def end_begun(self) -> None:
        """End an execution whose begin is known, and delay it if it is due."""
        opened: list[_Opened] | None = getattr(self._threads, "opened", None)
        if not opened:
            return
        launches, processor_ns = opened.pop()
        if self.measures and not opened:
            self._processor_ns.append(time.thread_time_ns() - processor_ns)
        self.end(launches)

    def end(self, launches: int | None = None) -> None:
        """End an execution, and delay it if it is due."""
        execution = next(self._next)
        if execution in self._due:
            self._delay(execution, launches)

    def _delay(self, execution: int, launches: int | None) -> None:
        if self._on_device is not None:
            tag, due = self._on_device
            if execution in due and self._has_launched(launches):
                self._device.delay(self._name, tag, due[execution])
        if self._host is not None:
            tag, due = self._host
            if execution in due:
                self.measured.append((tag, self._spin(due[execution], self.keeps_gil)))

    def _has_launched(self, before: int | None) -> bool:
        now = self._device.launches()
        return now is None or before is None or now > before


class OpEnds:
    """Delays of factors, until `remove`.

    Parameters
    ----------
    factors
        The factors.
    device
        The device of their device work.
    spin
        Takes a length (ns) and whether to keep the GIL; returns how long it was.
    streams
        The stream that an op launches to, by its name.
    has_nodes
        Whether nodes of ONNX Runtime with the names of factors are delayed, too. It then profiles
        all runs, which takes time in every repeat.
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        device: DelayDevice,
        spin: Spin,
        streams: Mapping[str, int],
        *,
        has_nodes: bool = False,
    ) -> None:
        self.factors, self._device, self._streams = factors, device, streams
        self._has_nodes = has_nodes
        self._ops = {factor.op: _Op(factor.op, device, spin) for factor in factors}

    def install(self, *, measures: bool = False) -> None:
        """Delay the ops from now on; with `measures`, also measure their processor time."""
        self._device.begin(self._streams)
        self._set_hooks(measures=measures)
        if self._has_nodes:
            _native.ort_set_node_hooks({name: op.end for name, op in self._ops.items()})
            sessions.set_delays_nodes(True)

    def measure_no_more(self) -> None:
        """Stop measuring the processor time."""
        self._set_hooks(measures=False)

    def _set_hooks(self, *, measures: bool) -> None:
        counts = self._device.launches() is not None
        launching = {factor.op for factor in self.factors if factor.side == "device" and counts}
        begins: dict[str, Hook] = {}
        ends: dict[str, Hook] = {}
        for name, op in self._ops.items():
            key = "" if name == UNNAMED else name
            op.measures = measures
            if measures or name in launching:
                begins[key], ends[key] = op.begin, op.end_begun
            else:
                ends[key] = op.end
        _native.set_hooks(begins or None, ends)

    def remove(self) -> None:
        """Delay no op any more."""
        _remove_hooks()
        self._device.end()

    def begin_repeat(self, due: Sequence[Due]) -> None:
        """Set the delays of the next repeat, one entry per factor, and forget what was measured."""
        self._take()
        of_factor = {
            factor: (tag, lengths)
            for tag, (factor, lengths) in enumerate(zip(self.factors, due, strict=True))
        }
        for name, op in self._ops.items():
            op.begin_repeat(*(of_factor.get(Factor(name, side)) for side in ("host", "device")))

    def end_repeat(self) -> list[int]:
        """Wait for the device, and return the length of each factor's delays, ns."""
        self._device.wait()
        lengths = [0] * len(self.factors)
        for tag, ns in self._take():
            lengths[tag] += ns
        return lengths

    def processor_ns(self) -> dict[str, int]:
        """Return the processor time of the threads in each op since the repeat began, ns."""
        return {name: op.processor_ns for name, op in self._ops.items()}

    def keep_gil(self, names: Collection[str]) -> None:
        """Keep the GIL only in delays of these ops."""
        for name, op in self._ops.items():
            op.keeps_gil = name in names

    def executions(self) -> dict[str, int]:
        """Return how often each op has ended since the repeat began."""
        return {name: op.executions for name, op in self._ops.items()}

    def _take(self) -> list[tuple[int, int]]:
        taken = self._device.take()
        for op in self._ops.values():
            of_op, op.measured = op.measured, []
            taken += of_op
        return taken


def _remove_hooks() -> None:
    _native.set_hooks(None, None)
    _native.ort_set_node_hooks(None)
    sessions.set_delays_nodes(False)


# A forked child does not repeat the code of its parent.
os.register_at_fork(after_in_child=_remove_hooks)
