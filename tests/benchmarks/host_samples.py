"""Samples of the host: whether their shares are right, how many are inconsistent, and their cost.

The functions of each program note how long they ran on the clock of the samples. Their shares are
compared with those of the samples. The cost is that of a fixed amount of work with samples and
without, in blocks in the order on, off, off, on: wall time, processor time of the thread that
works, and of the process. Short blocks have the dense samples of a recording's begin only, and
hundreds of them give bounds that distinguish 1.005 from 1.
"""

from __future__ import annotations

import argparse
import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb import _native, op
from epprof_nb.core.options import Options
from epprof_nb.recording.samples.availability import why_no_samples
from epprof_nb.recording.samples.host_samples import COUNTS
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from epprof_nb.recording.stacks.resolution import resolve
from tests.benchmarks.shared.harness import header, median_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOK: defaultdict[str, int] = defaultdict(int)
"""Time of each function of a program, ns."""


def spin(name: str, ns: int) -> None:
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < ns:
        pass
    TOOK[name] += time.perf_counter_ns() - begin


def augment(ns: int) -> None:
    spin("augment", ns)


def collate(ns: int) -> None:
    spin("collate", ns)


def normalize(ns: int) -> None:
    spin("normalize", ns)


def sleeps(ns: int) -> None:
    begin = time.perf_counter_ns()
    time.sleep(ns * 1e-9)
    TOOK["sleeps"] += time.perf_counter_ns() - begin


def sorts(ns: int) -> None:
    begin, values = time.perf_counter_ns(), np.arange(20_000)[::-1]
    while time.perf_counter_ns() - begin < ns:
        np.sort(values)
    TOOK["sorts"] += time.perf_counter_ns() - begin


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursion(ns: int) -> None:
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < ns:
        fibonacci(8)
    TOOK["recursion"] += time.perf_counter_ns() - begin


def squares(count: int) -> Iterator[int]:
    for number in range(count):
        yield number * number


def generator(ns: int) -> None:
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < ns:
        sum(squares(50))
    TOOK["generator"] += time.perf_counter_ns() - begin


def execution(ns: int) -> None:
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < ns:
        exec("def f(x):\n    return [x * i for i in range(20)]\nfor i in range(9):\n    f(i)", {})
    TOOK["execution"] += time.perf_counter_ns() - begin


def clip(x: int) -> int:
    return min(x, 255)


def scale(x: int) -> int:
    return x * 3 // 2


def short_calls(ns: int) -> None:
    begin, x = time.perf_counter_ns(), 1
    while time.perf_counter_ns() - begin < ns:
        x = clip(x)
        x = scale(x)
        x = clip(x + 1)
    TOOK["short_calls"] += time.perf_counter_ns() - begin


CALLEES = {3: "clip", 4: "scale", 5: "clip"}
"""Functions that the lines of `short_calls` call, by the line's distance from the first."""

PROGRAMS: dict[str, Callable[[], None]] = {
    # A loop of 10 ms, the mean interval: samples of a fixed one would meet one function.
    "loop of 10 ms": lambda: (augment(5_000_000), collate(3_000_000), normalize(2_000_000)),
    "loop of 1 ms": lambda: (augment(500_000), collate(300_000), normalize(200_000)),
    "sleep, NumPy, spin": lambda: (sleeps(4_000_000), sorts(7_000_000), augment(2_000_000)),
    "short calls": lambda: (short_calls(3_000_000), augment(3_000_000), recursion(4_000_000)),
    "generators, exec": lambda: (generator(3_000_000), execution(4_000_000), collate(3_000_000)),
}  # fmt: skip


class Result(NamedTuple):
    """Shares of functions and counts of samples of a program."""

    shares: dict[str, float]
    counts: dict[str, int]
    impossible: int
    calls: int


def sampled(run: Callable[[], None], seconds: float) -> Result:
    """Run a program again and again, and sum up its samples by the functions that note times."""
    TOOK.clear()
    subscription = Subscription(Options(stacks=False))
    service.open(subscription)
    end = time.perf_counter() + seconds
    run()
    while time.perf_counter() < end:
        run()
    recording = service.close(subscription)
    drained = [batch.samples for batch in recording.batches if batch.samples]
    ids = np.concatenate([np.frombuffer(part["stack_id"], np.int32) for part in drained])
    weights = np.concatenate([np.frombuffer(part["interval"], np.int64) for part in drained])
    resolved = resolve(recording.stacks, [ids])
    weight: Counter[str] = Counter()
    impossible = calls = 0
    for row, ns in zip(resolved.rows(ids).tolist(), weights.tolist(), strict=True):
        frames = resolved.stacks.frames(row)
        names = [frame.function for frame in frames]
        weight[next((name for name in names if name in TOOK), "")] += ns
        if "short_calls" in names[1:]:
            at = names.index("short_calls")
            caller = frames[at]
            calls += 1
            callee = CALLEES.get(caller.line - caller.first_line)
            impossible += callee != names[at - 1]
    total = sum(ns for name, ns in weight.items() if name)
    counts = {name: drained[-1][name] for name in COUNTS}
    return Result({name: weight[name] / total for name in TOOK}, counts, impossible, calls)


def shares(seconds: float) -> None:
    """Print the shares of each program, as sampled and as they were."""
    print(f"shares of functions, each program for {seconds:g} s: sampled - true, in points")
    for name, run in PROGRAMS.items():
        result = sampled(run, seconds)
        total = sum(TOOK.values())
        errors = {one: 100 * (result.shares[one] - ns / total) for one, ns in TOOK.items()}
        samples = sum(result.counts[kind] for kind in ("exact", "outer"))
        print(
            f"  {name:20} {samples:6,} samples, largest error "
            f"{max(errors.values(), key=abs):+5.2f}  ("
            + ", ".join(f"{one} {error:+.2f}" for one, error in errors.items())
            + f"); outer {share(result.counts, 'outer')}, inconsistent "
            f"{share(result.counts, 'inconsistent')}"
            + (f", impossible calls {result.impossible} of {result.calls}" if result.calls else ""),
            flush=True,
        )
    print()


def share(counts: dict[str, int], kind: str) -> str:
    """Format the part of the samples that are of a kind."""
    return f"{100 * counts[kind] / max(sum(counts.values()), 1):.2f} %"


def consistency(seconds: float) -> None:
    """Print how many samples of 32 threads that do everything are inconsistent."""
    until = time.perf_counter() + seconds

    def work(number: int) -> None:
        choose = random.Random(number).choice
        with op("work"):
            while time.perf_counter() < until:
                choose([short_calls, generator, execution, recursion, sleeps])(1_000_000)

    def all_threads() -> None:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    counts = sampled(all_threads, 0).counts
    print(f"32 threads, {sum(counts.values()):,} samples: outer {share(counts, 'outer')}, "
          f"inconsistent {share(counts, 'inconsistent')}\n")  # fmt: skip


def work_of(milliseconds: int) -> Callable[[], None]:
    """Return a fixed amount of work that takes about this long here."""

    def some(count: int) -> None:
        x = 1
        for number in range(count):
            x = clip(x) + scale(number)

    begin = time.perf_counter()
    some(200_000)
    count = int(200_000 * milliseconds * 1e-3 / (time.perf_counter() - begin))
    return lambda: some(count)


def cost(milliseconds: int, quads: int) -> None:
    """Print the time of work with samples over that without."""
    work = work_of(milliseconds)
    clocks = {
        "wall time": time.perf_counter_ns,
        "processor time of the thread": time.thread_time_ns,
        "processor time of the process": time.process_time_ns,
    }
    times: dict[str, dict[bool, list[int]]] = {name: {True: [], False: []} for name in clocks}
    subscription = Subscription(Options(stacks=False, samples=True))
    service.open(subscription)
    rounds = 0
    for number in range(-4, 4 * quads):
        is_on = number % 4 in {0, 3}
        (_native.start_samples if is_on else _native.stop_samples)()
        begins = {name: clock() for name, clock in clocks.items()}
        work()
        ends = {name: clock() for name, clock in clocks.items()}
        rounds += _native.drain_samples()["exact"] if is_on else 0
        _native.stop_samples()
        for name in clocks:
            if number >= 0:
                times[name][is_on].append(ends[name] - begins[name])
    service.close(subscription)
    print(f"cost: {quads} times on, off, off, on, blocks of about {milliseconds} ms, "
          f"{rounds / (2 * quads + 2):.0f} samples in each")  # fmt: skip
    for name, of_clock in times.items():
        # Of two blocks each: then a drift of the machine does not count.
        on, off = (np.add(*np.reshape(of_clock[way], (-1, 2)).T) for way in (True, False))
        ratios = (on / off).tolist()
        low, high = median_bounds(ratios)
        whole = sum(of_clock[True]) / sum(of_clock[False])
        print(f"  {name:30} x {statistics.median(ratios):.4f}  (95 %: {low:.4f} to {high:.4f}, "
              f"sum {whole:.4f})")  # fmt: skip
    print()


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="for each program")
    parser.add_argument("--block", type=int, default=50, metavar="MS")
    parser.add_argument("--quads", type=int, default=600)
    options = parser.parse_args()
    header("samples of the host")
    reason: Any = why_no_samples()
    if reason is not None:
        raise SystemExit(f"The host cannot be sampled here: {reason}")
    shares(options.seconds)
    consistency(options.seconds)
    cost(options.block, options.quads)


if __name__ == "__main__":
    main()
