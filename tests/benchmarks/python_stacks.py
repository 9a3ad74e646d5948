"""Cost of the Python stacks of launches: reading them is switched on and off within one profile.

A block of launches with stacks and one without make a pair, in the order on, off, off, on. On a
GPU, the launches are those of PyTorch's ``add_`` on a small tensor.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import time
import timeit
from typing import TYPE_CHECKING, Any

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.core.options import Options
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from epprof_nb.recording.stacks.availability import why_unavailable
from epprof_nb.recording.stacks.resolution import resolve
from tests.benchmarks.shared.harness import header, median_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTHS = (8, 30, 60)


def deeper(depth: int, function: Callable[[], Any]) -> Any:
    """Call a function under `depth` more frames."""
    return deeper(depth - 1, function) if depth > 0 else function()


def under(depth: int, function: Callable[[], Any]) -> Any:
    """Call a function that runs at this depth of the stack."""
    walked, _ = deeper(0, _frames)
    return deeper(depth - len(walked) - 1, function)


def _frames() -> tuple[list[Any], list[Any]]:
    import sys

    return _native.walk_stack(sys._getframe)


def reads() -> None:
    """Print the time to read a stack that was seen before."""
    print("a stack that was seen before, ns (least of 9)")
    with epprof_nb.profile():
        for depth in DEPTHS:

            def seconds(function: Callable[[], object]) -> float:
                return min(timeit.repeat(function, number=20_000, repeat=9)) / 20_000

            def difference() -> float:
                return seconds(_native.current_stack) - seconds(_native.depth)

            took = under(depth, difference)
            print(f"  depth {depth:3}  {took * 1e9:8.0f}")
    print()


def launches(name: str, launch: Callable[[], object], block: int, pairs: int) -> None:
    """Print the time of launches with stacks over those without, by depth."""
    print(f"{name}: {pairs} pairs of {block} launches")
    for depth in DEPTHS:
        times: dict[bool, list[float]] = {True: [], False: []}

        def measure(times: dict[bool, list[float]] = times) -> None:
            for number in range(-4, 2 * pairs):
                is_on = number % 4 in {0, 3}
                (_native.resume_stacks if is_on else _native.pause_stacks)()
                begin = time.perf_counter()
                for _ in range(block):
                    launch()
                if number >= 0:
                    times[is_on].append(time.perf_counter() - begin)
            _native.resume_stacks()

        with epprof_nb.profile(frameworks=[]):
            under(depth, measure)
        ratios = [on / off for on, off in zip(times[True], times[False], strict=True)]
        print(
            f"  depth {depth:3}  {statistics.median(times[False]) / block * 1e6:8.2f} us a launch"
            f"  x {statistics.median(ratios):.4f}  (95 % bound {median_bounds(ratios)[1]:.4f})",
            flush=True,
        )
    print()


def first_sights(count: int, launches_of_each: int) -> None:
    """Print the time of the first sight of stacks, and the memory of many."""
    lines = "\n".join(f"    if i == {i}: return read()" for i in range(count))
    namespace: dict[str, Any] = {"read": _native.current_stack}
    # Half of the lines is passed on average: a function of ten lines for each ten stacks.
    for start in range(0, count, 10):
        part = "\n".join(lines.split("\n")[start : start + 10])
        exec(f"def f{start}(i):\n{part}", namespace)

    subscription = Subscription(Options())
    service.open(subscription)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def see(calls: list[Callable[[], object]]) -> float:
        begin = time.perf_counter()
        for call in calls:
            call()
        return (time.perf_counter() - begin) / len(calls)

    calls = [
        (lambda function=namespace[f"f{i // 10 * 10}"], i=i: function(i)) for i in range(count)
    ]
    first = under(30, lambda: see(calls))
    ids = under(30, lambda: [call() for call in calls])
    again = min(under(30, lambda: see(calls)) for _ in range(launches_of_each))
    recording = service.close(subscription)
    begin = time.perf_counter()
    resolved = resolve(recording.stacks, [ids])
    resolving = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{count:,} stacks at depth 30: first sight {(first - again) * 1e6:.1f} us, "
        f"{(after - before) / 1024:.0f} MiB more, {len(resolved.stacks):,} rows in "
        f"{resolving * 1e3:.0f} ms\n"
    )


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=100_000, help="with stacks, by depth")
    parser.add_argument("--block", type=int, default=200)
    parser.add_argument("--stacks", type=int, default=10_000)
    options = parser.parse_args()
    header("Python stacks of launches")
    reason = why_unavailable()
    if reason is not None:
        raise SystemExit(f"Python stacks cannot be read here: {reason}")
    pairs = options.launches // options.block
    reads()
    first_sights(options.stacks, 10)
    launches("host device", lambda: host.launch(int), options.block, max(pairs // 2, 1))
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        tensor = torch.zeros(16, device="cuda")
        launches(torch.cuda.get_device_name(), lambda: tensor.add_(1), options.block, pairs)


if __name__ == "__main__":
    main()
