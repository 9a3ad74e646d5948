"""Delays at the ends of ops, while nothing is recorded."""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.analysis.base.op_tree import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from epprof_nb.analysis.experiments.candidates import Factor
    from epprof_nb.recording.delays.device import DelayDevice

    Spin = Callable[[int, bool], int]

Due = dict[int, int]
"""Execution of an op in a repeat, from 0, to the length of its delay (ns)."""


class _Opened(NamedTuple):
    """An open op: launches of its thread before it, if known, and its processor time, ns."""

    launches: int | None
    processor_ns: int


class _Op:
    """The begins and ends of the ops of one name."""

    def __init__(self, name: str, device: DelayDevice, spin: Spin) -> None:
        self._name, self._device, self._spin = name, device, spin
        self._threads = threading.local()
        self.host: tuple[int, Due] | None
        self.on_device: tuple[int, Due] | None
        self.measured: list[tuple[int, int]] = []
        self.keeps_gil = True
        self.begin_repeat()

    def begin_repeat(self) -> None:
        """Forget the delays, executions and processor time of the last repeat."""
        self._next = itertools.count()  # ops end on all threads
        self.processor_ns = 0
        self.host = self.on_device = None

    @property
    def executions(self) -> int:
        """Number of executions that have ended since the repeat began.

        Not to be asked while the op runs: threads that note the number of their own execution may
        do so in another order.
        """
        ended = next(self._next)
        self._next = itertools.count(ended)
        return ended

    def __call__(self, is_end: bool) -> None:  # noqa: FBT001
        opened: list[_Opened] | None = getattr(self._threads, "opened", None)
        if opened is None:
            opened = self._threads.opened = []
        if not is_end:
            opened.append(_Opened(self._device.launches(), time.thread_time_ns()))
        elif opened:
            self._end(opened.pop(), is_outermost=not opened)

    def _end(self, begun: _Opened, *, is_outermost: bool) -> None:
        if is_outermost:
            self.processor_ns += time.thread_time_ns() - begun.processor_ns
        execution = next(self._next)
        if self.on_device is not None:
            tag, due = self.on_device
            if execution in due and self._has_launched(begun.launches):
                self._device.delay(self._name, tag, due[execution])
        if self.host is not None:
            tag, due = self.host
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
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        device: DelayDevice,
        spin: Spin,
        streams: Mapping[str, int],
    ) -> None:
        self.factors, self._device, self._streams = factors, device, streams
        self._ops = {factor.op: _Op(factor.op, device, spin) for factor in factors}

    def install(self) -> None:
        """Delay the ops from now on."""
        self._device.begin(self._streams)
        hooks: dict[str, Callable[[bool], None]] = dict(self._ops)
        if UNNAMED in hooks:
            hooks[""] = hooks[UNNAMED]
        _native.set_hooks(hooks)

    def remove(self) -> None:
        """Delay no op any more."""
        _native.set_hooks(None)
        self._device.end()

    def begin_repeat(self, due: Sequence[Due]) -> None:
        """Set the delays of the next repeat, one entry per factor, and forget what was measured."""
        self._take()
        for op in self._ops.values():
            op.begin_repeat()
        for tag, (factor, lengths) in enumerate(zip(self.factors, due, strict=True)):
            op = self._ops[factor.op]
            if factor.side == "host":
                op.host = tag, lengths
            else:
                op.on_device = tag, lengths

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


# A forked child is no repeat of its parent.
os.register_at_fork(after_in_child=lambda: _native.set_hooks(None))
