"""False alarms of `epprof_nb.compare` over pairs of recordings of the same code, and its power.

    python -m tests.benchmarks.compare_aa --pairs 60 --planted 30

Each recording has 20 repeats of ten ops on the host device. For false alarms the code of both
recordings is the same. For the power, the kernel of one op of the new code does 5 % more steps.

The simulated part draws the times instead, with a coefficient of variation of 2 %, as on a device
with fixed clocks: the power of the statistics, whatever else this machine does.
"""

from __future__ import annotations

import argparse
import os
import uuid
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.compare.spread import ASSUMED
from epprof_nb.analysis.compare.statistics import ratios
from epprof_nb.capture import session
from epprof_nb.capture.alternation import split
from epprof_nb.profiles import Profile
from tests.benchmarks.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

OPS, REPEATS, STEPS = 10, 20, 40


def workload() -> Callable[[float], None]:
    """Return ten ops, of which the sixth takes a share (0.05: 5 %) longer."""
    array = host.empty((4096,))
    host.launch(lambda values: values.fill(1), array)

    def work(values, steps):
        for _ in range(steps):
            np.sqrt(values, out=values)

    def step(planted):
        for number in range(OPS):
            steps = round(STEPS * (1 + planted)) if number == 5 else STEPS
            with epprof_nb.op(f"op {number}"):
                host.launch(lambda values, n=steps: work(values, n), array, name=f"k{number}")
        host.synchronize()

    return step


def record(planted: float = 0.0) -> Profile:
    """Profile 20 repeats."""
    step = workload()
    step(planted)
    running = session.start()
    for _ in range(REPEATS):
        running.mark_repeat()
        step(planted)
    return Profile.from_data(running.stop())


def alternate(planted: float = 0.0) -> list[Profile]:
    """Profile 20 repeats of each side, alternately: old new new old."""
    step = workload()
    step(planted)
    running = session.start()
    sides = [0, 1, 1, 0] * (REPEATS // 2)
    for number, side in enumerate(sides):
        if number:
            running.end_repeat()
        running.mark_repeat()
        step(planted * side)
    running.end_repeat()
    names = ["old", "new"]
    return [
        Profile.from_data(side)
        for side in split(running.stop(), sides, names, names, recording=uuid.uuid4().hex)
    ]


def one_each(planted: float = 0.0) -> list[Profile]:
    """Profile one recording per side, one after the other."""
    return [record(), record(planted)]


def false_alarms(pairs: int, recorded: Callable[[], list[Profile]]) -> None:
    """Compare recordings of the same code."""
    total, ops, kernels, gates, spreads = 0, 0, 0, 0, []
    for _ in range(pairs):
        result = epprof_nb.compare(*recorded())
        is_changed = result.verdict in ("faster", "slower")
        total += is_changed
        ops += bool(set(result.ops["verdict"]) & {"faster", "slower"})
        kernels += bool(set(result.kernels["verdict"]) & {"faster", "slower"})
        gates += (result.change_low or 0) > 0.03
        spreads.append(abs(result.change))
    median, high = np.quantile(spreads, [0.5, 0.95])
    print(
        f"same code, {pairs} pairs, {recorded.__name__}: total differs in {total}, an op in {ops}, "
        f"a kernel in {kernels}; --fail-above 3% fails {gates}\n"
        f"  change of the total: median {median:.1%}, 95th percentile {high:.1%}"
    )


def power_alternated(pairs: int, planted: float) -> None:
    """Compare with alternating repeats, in which one op is slower."""
    verdicts: Counter[str] = Counter()
    others = 0
    for _ in range(pairs):
        ops = epprof_nb.compare(*alternate(planted)).ops.set_index("name")["verdict"]
        verdicts[str(ops["op 5"])] += 1
        others += bool(set(ops.drop("op 5")) & {"faster", "slower"})
    print(
        f"one op {planted:.0%} slower, {pairs} pairs, alternating repeats: {dict(verdicts)}; "
        f"another op called in {others}"
    )


def power(pairs: int, planted: float, recordings: int) -> None:
    """Compare with recordings in which one op is slower."""
    verdicts: Counter[str] = Counter()
    others = 0
    for _ in range(pairs):
        sides: tuple[list[Profile], list[Profile]] = ([], [])
        for _ in range(recordings):  # alternately, so that a drift meets both sides
            sides[0].append(record())
            sides[1].append(record(planted))
        ops = epprof_nb.compare(*sides).ops.set_index("name")["verdict"]
        verdicts[str(ops["op 5"])] += 1
        others += bool(set(ops.drop("op 5")) & {"faster", "slower"})
    print(
        f"one op {planted:.0%} slower, {pairs} pairs, {recordings} recordings per side: "
        f"{dict(verdicts)}; another op called in {others}"
    )


def simulated(pairs: int) -> None:
    """Draw times of ten ops, without drift or with recordings that vary."""
    rng = np.random.default_rng(0)
    floor = np.full(OPS, ASSUMED["cuda"].device)

    def side(spread: float, slower: float = 0.0) -> np.ndarray:
        base = np.exp(spread * rng.standard_normal((OPS, 1)))
        base[5] *= 1 + slower
        return 1e6 * base * np.exp(0.02 * rng.standard_normal((OPS, REPEATS)))

    for planted in (0.03, 0.05, 0.1):
        called = others = 0
        for _ in range(pairs):
            differs = ratios([side(0.0)], [side(0.0, planted)], floor).differs
            called += bool(differs[5])
            others += bool(np.delete(differs, 5).any())
        print(f"simulated, one op {planted:.0%} slower: {called} of {pairs} found; others {others}")
    for spread in (0.0, 0.005, 0.01):
        alarms = sum(
            bool(ratios([side(spread)], [side(spread)], floor).differs.any()) for _ in range(pairs)
        )
        several = sum(
            bool(
                ratios(
                    [side(spread) for _ in range(3)], [side(spread) for _ in range(3)], floor
                ).differs.any()
            )
            for _ in range(pairs)
        )
        print(
            f"simulated, same code, recordings vary by {spread:.1%}: {alarms} of {pairs} false "
            f"alarms, {several} with three recordings per side"
        )


def main() -> None:
    """Run the parts that were chosen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--planted", type=int, default=30)
    parser.add_argument("--simulated", type=int, default=200)
    options = parser.parse_args()
    header("False alarms and power of comparisons")
    print(f"  load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    simulated(options.simulated)
    if options.pairs:
        false_alarms(options.pairs, one_each)
        false_alarms(options.pairs, alternate)
    if options.planted:
        power(options.planted, 0.05, 1)
        power(options.planted // 3, 0.05, 3)
        power_alternated(options.planted, 0.05)


if __name__ == "__main__":
    main()
