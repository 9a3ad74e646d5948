"""False alarms of `epprof_nb.compare` over pairs of recordings of the same code, and its power.

    python -m tests.benchmarks.compare_false_alarms --pairs 60 --planted 30 [--device cuda:0]

Each recording has 20 repeats of ten ops. For false alarms the code of both recordings is the same.
For the power, the kernel of one op of the new code does 5 % more steps. ``--keep`` writes the
times that were compared, so that other statistics can be tried on them.

The simulated part draws the times instead, with a coefficient of variation of 2 %, as on a device
with fixed clocks. It shows the power of the statistics, independent of the load of this machine.
"""

from __future__ import annotations

import argparse
import os
import time
import uuid
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import epprof_nb
from epprof_nb.analysis.compare.recordings import Recordings
from epprof_nb.analysis.compare.significance import ratios
from epprof_nb.analysis.compare.spread_between_recordings import ASSUMED
from epprof_nb.profiles import Profile
from epprof_nb.recording.session import session
from epprof_nb.recording.session.interleaving import split
from tests.benchmarks.shared.compare_work import OPS, PLANTED, on_cuda, on_host
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.shared.compare_work import Step

Sides: TypeAlias = "list[Profile] | list[list[Profile]]"

REPEATS, GATE = 20, 0.03
WORK = {"host": on_host, "cuda:0": on_cuda}
WAYS = ("one_each", "alternate", "three_each")


class Recorder:
    """Recordings of one piece of work, and the times that were compared."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.times: dict[str, list[np.ndarray]] = {}
        self.seconds: list[float] = []

    def record(self, planted: float = 0.0) -> Profile:
        """Profile 20 repeats."""
        self.step(planted)
        begin = time.perf_counter()
        running = session.start()
        for _ in range(REPEATS):
            running.mark_repeat()
            self.step(planted)
        data = running.stop()
        self.seconds.append(time.perf_counter() - begin)
        return Profile.from_data(data)

    def one_each(self, planted: float = 0.0) -> list[Profile]:
        """Profile one recording per side, one after the other."""
        return self.keep("one_each", planted, [self.record(), self.record(planted)])

    def alternate(self, planted: float = 0.0) -> list[Profile]:
        """Profile 20 repeats of each side, alternately: old new new old."""
        self.step(planted)
        running = session.start()
        sides = [0, 1, 1, 0] * (REPEATS // 2)
        for number, side in enumerate(sides):
            if number:
                running.end_repeat()
            running.begin_repeat()
            self.step(planted * side)
        running.end_repeat()
        names = ["old", "new"]
        parts = split(running.stop(), sides, names, names, recording=uuid.uuid4().hex)
        return self.keep("alternate", planted, [Profile.from_data(side) for side in parts])

    def keep(self, name: str, planted: float, profiles: list[Profile]) -> list[Profile]:
        """Keep the elapsed time per repeat, and the device and host times of each op."""
        for profile in profiles:
            measured = Recordings([profile])
            rows = [measured.elapsed[0], measured.ops[0].device_ns, measured.ops[0].host_ns]
            self.times.setdefault(f"{name}_{planted}", []).append(np.concatenate(rows))
        return profiles


def false_alarms(pairs: int, name: str, recorded: Callable[[], Sides]) -> None:
    """Compare recordings of the same code."""
    totals: Counter[str] = Counter()
    ops, kernels, gates, spreads = 0, 0, 0, []
    for _ in range(pairs):
        result = epprof_nb.compare(*recorded())
        totals[result.verdict] += 1
        ops += bool(set(result.ops["verdict"]) & {"faster", "slower"})
        kernels += bool(set(result.kernels["verdict"]) & {"faster", "slower"})
        gates += (result.change_low or 0) > GATE
        spreads.append(abs(result.change))
    median, high = np.quantile(spreads, [0.5, 0.95])
    print(
        f"same code, {pairs} pairs, {name}: {dict(totals)}; an op differs in {ops}, "
        f"a kernel in {kernels}; --fail-above {GATE:.0%} fails {gates}\n"
        f"  change of the total: median {median:.2%}, 95th percentile {high:.2%}, "
        f"largest {max(spreads):.2%}"
    )


def power(pairs: int, planted: float, name: str, recorded: Callable[[float], Sides]) -> None:
    """Compare recordings in which one op is slower."""
    verdicts: Counter[str] = Counter()
    others, changes = 0, []
    for _ in range(pairs):
        ops = epprof_nb.compare(*recorded(planted)).ops.set_index("name")
        verdicts[str(ops.loc[f"op {PLANTED}", "verdict"])] += 1
        changes.append(ops.loc[f"op {PLANTED}", "change"])
        others += bool(set(ops.drop(f"op {PLANTED}")["verdict"]) & {"faster", "slower"})
    low, median, high = np.quantile(np.array(changes, float), [0.05, 0.5, 0.95])
    print(
        f"one op {planted:.0%} slower, {pairs} pairs, {name}: {dict(verdicts)}; "
        f"another op called in {others}\n"
        f"  change of the op: median {median:.1%}, 90 % between {low:.1%} and {high:.1%}"
    )


def several(recorder: Recorder, planted: float = 0.0, recordings: int = 3) -> Sides:
    """Profile several recordings per side, alternately, so that a drift affects both sides."""
    pairs = [recorder.one_each(planted) for _ in range(recordings)]
    old, new = zip(*pairs, strict=True)
    return [list(old), list(new)]


def unsteadiness(recorder: Recorder) -> None:
    """Print how much the times vary within a recording, and their medians between recordings."""
    for name, times in recorder.times.items():
        logs = [np.log(np.maximum(of, 1)) for of in times if of.shape == times[0].shape]
        within = np.median([np.std(of, axis=1) for of in logs], axis=0)
        between = np.std([np.median(of, axis=1) for of in logs], axis=0)
        devices = slice(-2 * OPS, -OPS)  # elapsed, device times, host times
        print(
            f"{name}: elapsed {within[0]:.2%} within, {between[0]:.2%} between; device times of "
            f"ops {within[devices].max():.2%} and {between[devices].max():.2%}, host times "
            f"{within[-OPS:].max():.2%} and {between[-OPS:].max():.2%}"
        )


def simulated(pairs: int) -> None:
    """Draw times of ten ops, without drift or with recordings that vary."""
    rng = np.random.default_rng(0)
    floor = np.full(OPS, ASSUMED["gpu"].device)

    def side(spread: float, slower: float = 0.0) -> np.ndarray:
        base = np.exp(spread * rng.standard_normal((OPS, 1)))
        base[PLANTED] *= 1 + slower
        return 1e6 * base * np.exp(0.02 * rng.standard_normal((OPS, REPEATS)))

    for planted in (0.03, 0.05, 0.1):
        called = others = 0
        for _ in range(pairs):
            differs = ratios([side(0.0)], [side(0.0, planted)], floor).differs
            called += bool(differs[PLANTED])
            others += bool(np.delete(differs, PLANTED).any())
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
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--device", choices=list(WORK), default="host")
    parser.add_argument("--keep", help="file for the times, .npz")
    options = parser.parse_args()
    header(f"False alarms and power of comparisons, device {options.device}")
    print(f"  load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    if options.simulated:
        simulated(options.simulated)
    recorder = Recorder(WORK[options.device]())
    recorder.record()
    begin = time.perf_counter()
    ways = {
        "one_each": recorder.one_each,
        "alternate": recorder.alternate,
        "three_each": partial(several, recorder),
    }
    for way in options.ways:
        if options.pairs:
            false_alarms(options.pairs, way, ways[way])
        if options.planted:
            power(options.planted, 0.05, way, ways[way])
    unsteadiness(recorder)
    median, longest = np.median(recorder.seconds), max(recorder.seconds)
    print(
        f"a recording took {median:.3f} s (median), {longest:.3f} s (longest), "
        f"all comparisons {time.perf_counter() - begin:.1f} s"
    )
    if options.keep:
        arrays = {name: np.stack(times) for name, times in recorder.times.items()}
        np.savez_compressed(options.keep, **arrays)


if __name__ == "__main__":
    main()
