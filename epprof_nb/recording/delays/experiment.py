"""Experiments: repeats of the user's code, with random delays at the ends of some of its ops.

Whoever runs the repeats calls `Experiment.begin` with the profile of a recorded repeat, then
`Experiment.next` before each repeat until it returns False, and `Experiment.end` in any case.
Nothing is recorded meanwhile, because recording slows down the launches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.experiments.design import (
    BASE_REPEATS,
    MAX_FACTORS,
    delay_of_factor,
    executions_to_delay,
    fold_over,
)
from epprof_nb.analysis.experiments.measurements_in_info import Measured, Round
from epprof_nb.analysis.experiments.ops_to_delay import delayed_ops, delays_nodes, factors_of
from epprof_nb.analysis.experiments.reasons_not_to_start import (
    check_executions,
    planned,
    scatter_bounds,
    scatter_of,
    unusual,
    without_waits,
)
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.delays_at_op_ends import OpEnds
from epprof_nb.recording.delays.spins import spin_on_host
from epprof_nb.recording.session.host_load import WaitReading, read_waits, waited
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from epprof_nb.analysis.experiments.ops_to_delay import Factor
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.recording.delays.device import DelayDevice

_OP_COST_NS, _MAX_COST = 1_000, 0.05
"""Time that an execution of an op takes to be recorded or counted, and the largest part of the wall
time that all of them may take without changing what is measured."""
_MAX_TAIL = 0.05
"""The largest part of a step that its device work may take after its code has ended, for a step
alone to be like one of many in a row."""
_RECORDINGS = 3
"""Number of times that the code is recorded until a recorded repeat is a usual one."""


class Experiment:
    """Delays in repeats of some code.

    Parameters
    ----------
    repeats
        Maximum number of repeats with delays.
    device
        The device whose work is delayed.
    say
        Called with a sentence before the repeats with delays: how exact they will be.
    seed
        Seed of the design; None for a random one.
    may_record
        Whether whoever runs the repeats can record again.
    in_steps
        Whether a repeat is some steps of a loop, as many as were recorded. If it is one, and its
        device work goes on after it, then the next one usually begins meanwhile: the experiment
        asks for a recording of more steps.
    clock, spin, waits
        Return the time (ns); delay the host, see `OpEnds`; and return for how long threads have
        waited for a core.

    Attributes
    ----------
    measured
        What was measured so far.
    total
        Number of repeats, those without delays included.
    delayed
        Number of repeats with delays; 0 before they are planned.
    steps
        Number of steps of a repeat.
    wants_recording
        Whether to record `steps` again and call `begin` with the new profile: the recorded repeat
        was unusual, or had too few steps.
    """

    def __init__(
        self,
        repeats: int,
        device: DelayDevice,
        say: Callable[[str], None],
        *,
        seed: int | None = None,
        may_record: bool = False,
        in_steps: bool = False,
        clock: Callable[[], int] = _native.now_ns,
        spin: Callable[[int, bool], int] = spin_on_host,
        waits: Callable[[], WaitReading] = read_waits,
    ) -> None:
        self.measured = Measured(repeats)
        self.total, self.delayed = BASE_REPEATS + repeats, 0
        self._device, self._say, self._clock, self._spin = device, say, clock, spin
        self._waits = waits
        self.steps, self._in_steps = 1, in_steps
        self.wants_recording = False
        self._recordings = _RECORDINGS if may_record else 1
        self._random = np.random.default_rng(seed)
        self._executions: dict[str, int] = {}
        self._streams: dict[str, int] = {}
        self._launching: dict[str, IntArray] = {}
        self._busy_ns: dict[str, float] = {}  # processor time from which on an op computes
        self._run_ns = 0.0
        self._base_waited_ns: list[int] = []
        self._tails: list[int] = []  # for how long the device worked after each of these repeats
        self._busy: set[str] = set()  # ops that use the processor
        self._has_nodes = False
        self._ends: OpEnds | None = None
        self._run: Iterator[None] = iter(())

    @property
    def done(self) -> int:
        """Number of repeats that have ended, of `total`."""
        return len(self.measured.base_ns) + self.measured.repeats

    @property
    def runs(self) -> int:
        """Number of executions that it takes: of the code, or of steps after the recorded ones."""
        # The first repeat does not count, and a cell has a last run without delays.
        return (self.total + 1) * self.steps + (not self._in_steps)

    @property
    def expected_ns(self) -> float:
        """About how long it takes if each execution takes as long as a recorded one, ns."""
        return self.runs * self._run_ns

    @property
    def announcement(self) -> str:
        """A sentence on how often the code will be executed, and for how long."""
        what = "up to {:,} more steps" if self._in_steps else "the code runs up to {:,} times more"
        first = f"{BASE_REPEATS + 1} repeats without delays first"
        return f"{what.format(self.runs)}, for about {duration(self.expected_ns)}; {first}."

    def begin(self, profile: ProfileData) -> None:
        """Choose the ops to delay.

        Called again with the profile of another recording, it goes on after the repeats without
        delays.

        Parameters
        ----------
        profile
            A profile of repeats without delays.

        Raises
        ------
        ExperimentError
            If there is nothing to delay.
        """
        self.wants_recording = False
        self._recordings -= 1
        repeats = max(len(profile.info.get("repeats") or ()), 1)
        if self._in_steps:
            self.steps, repeats = repeats, 1
        self.measured.steps = self.steps
        self._run_ns = profile.wall_ns / (repeats * self.steps)
        found = delayed_ops(ProfileIndex(profile), repeats, self._device)
        self._has_nodes = delays_nodes(profile)
        if not found:
            has_runs = profile.tables["ops"].names("op_type").equals("run").any()
            nodes = " Or delay the nodes of ONNX Runtime: --ort-nodes every." if has_runs else ""
            raise ExperimentError(
                "the code has no named op to delay. Name its parts: "
                f'with epprof_nb.op("forward"): ...{nodes}'
            )
        self.measured.uncovered = {op.name: op.uncovered for op in found if op.uncovered}
        self._executions = {op.name: op.executions for op in found}
        self._launching = {op.name: op.launching for op in found}
        self._streams = {op.name: op.streams[0] for op in found if len(op.streams) == 1}
        self._busy = set(self._executions)
        # Threads that compute at once share the GIL: each waits for most of its time.
        self._busy_ns = {op.name: min(op.host_ns, op.open_ns) / 2 for op in found}
        factors = factors_of(found, profile.wall_ns / repeats)
        if not factors:
            raise ExperimentError(
                f"none of the {plural(len(found), 'named op')} takes 2 % of the time, or none can "
                "be delayed. Name longer parts of the code with epprof_nb.op."
            )
        self._run = self._repeats(factors, profile.wall_ns / repeats)

    def next(self) -> bool:
        """End the repeat that runs, and begin the next one; False if there is none.

        Raises
        ------
        ExperimentError
            If the experiment cannot go on.
        """
        try:
            next(self._run)
        except StopIteration:
            self.end()
            return False
        return True

    def end(self) -> None:
        """Remove the delays. A repeat that runs is not counted."""
        self._run = iter(())
        ends, self._ends = self._ends, None
        if ends is not None:
            ends.remove()

    def _repeats(self, factors: list[Factor], wall_ns: float) -> Iterator[None]:
        """Yield at the start of each repeat; what runs until the next call is the repeat."""
        if not self.measured.base_ns:
            yield from self._base_repeats(factors[:MAX_FACTORS], wall_ns)
        walls = self.measured.base_ns
        if self._lengthen():
            return
        alike = without_waits(walls, self._base_waited_ns)
        scatters = scatter_bounds(walls, scatter_of(alike))
        plan, sentence = planned(
            alike, self.measured.asked, len(factors), scatters, in_steps=self._in_steps
        )
        if text := unusual(wall_ns, walls):
            self.wants_recording = self._recordings > 0
            if self.wants_recording:
                return
            raise ExperimentError(
                f"{text}. What the ops would save is not known. {self._advice(wall_ns)}"
            )
        self.measured.plan = f"{sentence}{self._length()}"
        self._say(self.measured.plan)
        self.delayed = plan.rounds * plan.repeats
        self.total = len(walls) + self.delayed
        wall_ns = float(np.median(walls))
        for number in range(plan.rounds):
            some = factors[number * plan.factors :][: plan.factors]
            yield from self._round(some, plan.repeats, wall_ns)

    def _lengthen(self) -> bool:
        """Ask for repeats of several steps if the device works on after a step; return whether."""
        wall = float(np.median(self.measured.base_ns))
        tail = float(np.median(self._tails)) / wall
        if self.steps > 1 or tail <= _MAX_TAIL or not (self._in_steps and self._recordings):
            return False
        # What remains of the end of the last step is the same small part of a repeat.
        self.steps = math.ceil(tail / _MAX_TAIL)
        self.measured.base_ns = []
        self.wants_recording = True
        return True

    def _length(self) -> str:
        """Return a sentence on the steps of a repeat; empty if it has one."""
        if self.steps == 1:
            return ""
        return f" A repeat has {self.steps} steps, at the end of which it waits for the device."

    def _advice(self, wall_ns: float) -> str:
        """Return what to do if the recorded repeat took another time than those that are not."""
        count = sum(self._executions.values())
        if count * _OP_COST_NS < _MAX_COST * wall_ns:
            if self._in_steps:
                return "Record several steps, and later ones, such as --steps 10:20."
            return "Run it again, with warm-ups if the first runs are slower."
        most = max(self._executions, key=lambda name: self._executions[name])
        return (
            f"The code executes its named ops {count:,} times, mostly {most!r}, and both recording "
            "and counting them takes about a microsecond each. Name fewer and longer parts of it."
        )

    def _base_repeats(self, base: list[Factor], wall_ns: float) -> Iterator[None]:
        """Yield at the start of each repeat with delays of length zero."""
        ends, walls, waited_ns = self._install(base, measures=True), list[int](), list[int]()
        tails = list[int]()
        for number in range(BASE_REPEATS + 1):
            chosen = self._chosen(base, wall_ns)
            waits = self._waits()
            begun = self._begin_repeat(ends, chosen, [0] * len(base))
            yield
            code_ended = self._clock()
            ends.end_repeat()
            walls.append(self._clock() - begun)
            tails.append(self._clock() - code_ended)
            waited_ns.append(waited(waits, self._waits()))
            check_executions(self._executions, ends.executions())
            if number == 0:
                self._see_processor(ends)
                ends.measure_no_more()
            # The first was the first with delays.
            self.measured.base_ns, self._base_waited_ns = walls[1:], waited_ns[1:]
            self._tails = tails[1:]

    def _round(self, factors: list[Factor], repeats: int, wall_ns: float) -> Iterator[None]:
        found = Round(factors)
        self.measured.rounds.append(found)
        ends = self._install(factors)
        length_ns = delay_of_factor(len(factors)) * wall_ns
        chosen = list[list[int]]()
        for number, levels in enumerate(fold_over(len(factors), repeats, self._random).tolist()):
            if number % 2 == 0:  # both of a pair delay the same executions
                chosen = self._chosen(factors, wall_ns)
            lengths = [
                round(length_ns / len(some)) if level > 0 else 0
                for some, level in zip(chosen, levels, strict=True)
            ]
            waits = self._waits()
            begun = self._begin_repeat(ends, chosen, lengths)
            yield
            delays = ends.end_repeat()
            wall = self._clock() - begun
            found.waited_ns.append(waited(waits, self._waits()))
            found.levels.append(levels)
            found.delay_ns.append(delays)
            found.wall_ns.append(wall)

    def _see_processor(self, ends: OpEnds) -> None:
        """Find the ops whose code computes, with the GIL, and does not sleep or wait."""
        for name, ns in ends.processor_ns().items():
            (self._busy.add if ns >= self._busy_ns[name] else self._busy.discard)(name)

    def _install(self, factors: list[Factor], *, measures: bool = False) -> OpEnds:
        if self._ends is not None:
            self._ends.remove()
        self._ends = OpEnds(
            factors, self._device, self._spin, self._streams, has_nodes=self._has_nodes
        )
        self._ends.keep_gil(self._busy)
        self._ends.install(measures=measures)
        return self._ends

    def _chosen(self, factors: list[Factor], wall_ns: float) -> list[list[int]]:
        """Draw the executions of each factor's op to delay."""
        length_ns = delay_of_factor(len(factors)) * wall_ns
        found = list[list[int]]()
        for factor in factors:
            of_op: IntArray = np.arange(self._executions[factor.op])
            if factor.side == "device":
                of_op = self._launching[factor.op]
            count = executions_to_delay(len(of_op), length_ns)
            found.append(self._random.choice(of_op, count, replace=False).tolist())
        return found

    def _begin_repeat(
        self, ends: OpEnds, chosen: Sequence[Sequence[int]], lengths: Sequence[int]
    ) -> int:
        """Begin a repeat with delays, and return when it began."""
        ends.begin_repeat(
            [dict.fromkeys(some, ns) for some, ns in zip(chosen, lengths, strict=True)]
        )
        return self._clock()
