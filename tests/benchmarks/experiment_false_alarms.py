"""Intervals of experiments whose delays take no time: how many exclude a sensitivity of 0.

::

    python -m tests.benchmarks.experiment_false_alarms [--runs 100] [--repeats 40]

Repeats of a step on the host device. The delays of both levels have a length of zero, but those of
the upper level are said to have the length that was ordered. So the true sensitivity of each op is
0, and whatever an interval finds is scatter or the cost of a launch. Fails if more intervals
exclude 0 than 95 % intervals would in 99 of 100 benchmarks.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING

import epprof_nb
from epprof_nb import host
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.device import HostDelays
from epprof_nb.recording.delays.experiment import Experiment
from epprof_nb.recording.delays.spins import spin_on_host
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from epprof_nb.analysis.experiments.slopes import Slope

EXCLUDED, CONFIDENCE = 0.05, 0.99


class ZeroDelays(HostDelays):
    """Delays of length zero, with the lengths that were ordered."""

    def __init__(self) -> None:
        super().__init__()
        self._ordered: list[tuple[int, int]] = []
        self._ended, self.take = self.take, self._take

    def delay(self, op: str, tag: int, length_ns: int) -> None:
        """Launch a delay of length zero."""
        self._ordered.append((tag, length_ns))
        super().delay(op, tag, 0)

    def _take(self) -> list[tuple[int, int]]:
        self._ended()
        taken, self._ordered = self._ordered, []
        return taken


def no_spin(length_ns: int, keeps_gil: bool) -> int:
    """Delay the host by nothing."""
    spin_on_host(0, keeps_gil)
    return length_ns


def step(streams: tuple[host.Stream, host.Stream]) -> None:
    """Launch to two streams, work on the host, and wait."""
    first, second = streams
    for _ in range(3):
        with epprof_nb.op("first"):
            host.launch(time.sleep, 0.001, stream=first)
        with epprof_nb.op("second"):
            host.launch(time.sleep, 0.0008, stream=second)
        with epprof_nb.op("prepare"):
            begun = time.perf_counter()
            while time.perf_counter() - begun < 0.0005:
                pass
    host.synchronize()


def slopes(streams: tuple[host.Stream, host.Stream], repeats: int, seed: int) -> list[Slope]:
    """Return the sensitivities of an experiment; none if it was refused."""
    experiment = Experiment(repeats, ZeroDelays(), lambda _: None, seed=seed, spin=no_spin)
    with epprof_nb.profile() as prof:
        step(streams)
    try:
        experiment.begin(prof)
        while experiment.next():
            step(streams)
    except ExperimentError:
        return []
    finally:
        experiment.end()
    return [slope for part in experiment.measured.rounds for slope in part.slopes()]


def most_by_chance(count: int) -> int:
    """Return how many of `count` intervals exclude the truth at most, at `CONFIDENCE`."""
    below = 0.0
    for excluded in range(count + 1):
        below += (
            math.comb(count, excluded) * EXCLUDED**excluded * (1 - EXCLUDED) ** (count - excluded)
        )
        if below >= CONFIDENCE:
            return excluded
    return count


def main() -> None:
    """Print how many intervals exclude 0, and fail if these are too many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    header("Intervals of sensitivities that exclude 0, with delays that take no time")
    streams = host.Stream(), host.Stream()
    for _ in range(3):
        step(streams)
    tried = [slopes(streams, options.repeats, seed) for seed in range(options.runs)]
    found = [slope for run in tried for slope in run if not math.isnan(slope.value)]
    if not found:
        raise SystemExit("All experiments were refused: the machine is too busy to measure.")
    above, below = (sum(outside) for outside in (
        (slope.low > 0 for slope in found), (slope.high < 0 for slope in found)
    ))  # fmt: skip
    refused = sum(not run for run in tried)
    share = (above + below) / len(found)
    print(
        f"{len(found)} intervals of {options.runs} experiments ({refused} refused): {above} are "
        f"above 0 and {below} below, {share:.1%}"
    )
    if above + below > most_by_chance(len(found)):
        raise SystemExit("Intervals exclude the truth too often.")


if __name__ == "__main__":
    main()
