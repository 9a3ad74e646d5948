"""Gains of findings against the time that removing their causes saves.

::

    python -m tests.benchmarks.finding_gains [--rounds 10] [--device cuda:0]

Each case runs with its cause and without it, in turns. On the host device, kernels sleep, so that
the speed of the machine hardly matters. The cases of a CUDA device are in `tests.gpu.causes`; the
time that removing the cause saves is measured without the profiler as well.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.host import operations
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.profiles import Profile

TOLERANCE = 0.3


def sleeping(ms):
    """A kernel that takes some milliseconds."""
    return lambda *_: time.sleep(ms / 1e3)


def waits(remove):
    total = host.to_device(np.zeros(4))
    for _ in range(12):
        host.launch(sleeping(5), total, name="step")
        if not remove:
            host.default_stream().synchronize()
        time.sleep(0.004)
    host.synchronize()


def idles(remove):
    total = host.to_device(np.zeros(4))
    for i in range(4):
        host.launch(sleeping(10), total, name="step")
        host.synchronize()
        with epprof_nb.op("load"):
            if not remove and i < 3:
                time.sleep(0.03)


def launches(remove):
    total = host.to_device(np.zeros(4))
    for _ in range(200):
        host.launch(sleeping(0.3), total, name="small")
        if not remove:
            time.sleep(0.0006)
    host.synchronize()


def copies(remove):
    source = np.ones(1_000_000, np.uint8)
    buffers = [host.empty(source.shape, source.dtype) for _ in range(2)]
    stream = host.Stream() if remove else host.default_stream()
    for i in range(8):
        with epprof_nb.op("copy"):
            host.memcpy(buffers[i % 2], source, stream)
        event = host.Event()
        event.record(stream)
        host.default_stream().wait_event(event)
        host.launch(sleeping(12), buffers[i % 2], name="compute")
    host.synchronize()
    if remove:
        stream.close()


def small_copies(remove):
    values = np.ones(60, np.float32)
    device = host.empty((1,), values.dtype)
    for i in range(1 if remove else 60):
        with epprof_nb.op("copy"):
            host.memcpy(device, values[i : i + 1])
    host.synchronize()


class SlowLink:
    """NumPy, but copies take longer, independent of other use of the machine's memory."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def copyto(target, source):
        time.sleep(0.008 if target.nbytes > 1_000 else 0.002)
        np.copyto(target, source)


CASES = {
    "wait": waits,
    "idle": idles,
    "launch-bound": launches,
    "copies that could overlap": copies,
    "small copies": small_copies,
}


def recorded(run, remove):
    host.synchronize()
    with epprof_nb.profile() as prof:
        run(remove)
    return prof


def gain_of(prof, kind):
    rows = prof.insights()
    # Only what the loop itself causes, not how it begins and ends.
    rows = rows[~rows["text"].str.contains("before its first|after its last")]
    gain = rows.loc[rows["kind"] == kind, "gain_ns"].sum()
    if kind == "launch-bound":
        # More than 0.1 ms before a launch is work of the host.
        gain += rows.loc[rows["kind"] == "idle", "gain_ns"].sum()
    return int(gain)


class Case(NamedTuple):
    """A case: its kind of finding, and functions that record and time it, with or without it."""

    kind: str
    record: Callable[[bool], Profile]
    seconds: Callable[[bool], float]


def timed(run: Callable[[bool], None], remove: bool) -> float:
    begin = time.perf_counter()
    run(remove)
    return time.perf_counter() - begin


def on_host() -> dict[str, Case]:
    """Return the cases of the host device."""
    operations.np = SlowLink()
    return {
        kind: Case(kind, partial(recorded, run), partial(timed, run)) for kind, run in CASES.items()
    }


def on_cuda() -> dict[str, Case]:
    """Return the cases of a CUDA device."""
    from tests.gpu.causes import CAUSES, FALLBACK, has_sessions, profiled, seconds

    causes = {
        name: cause for name, cause in CAUSES.items() if cause is not FALLBACK or has_sessions()
    }
    return {
        name: Case(
            cause.kind,
            lambda remove, cause=cause: profiled(cause.fast if remove else cause.slow),
            lambda remove, cause=cause: seconds(cause.fast if remove else cause.slow),
        )
        for name, cause in causes.items()
    }


def main() -> None:
    """Print one row per case: the time won, the gain, and the gain without the cause."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--device", choices=["host", "cuda:0"], default="host")
    parser.add_argument("--show", action="store_true", help="print the findings of a round")
    options = parser.parse_args()
    header("Gains of findings (medians), and how often within 30 % of the time won")
    print(
        f"{'finding':<28}{'won':>10}{'profiled':>10}{'gain':>10}{'without':>10}{'within 30 %':>16}"
    )
    shown = []
    cases = on_host() if options.device == "host" else on_cuda()
    for name, case in cases.items():
        rows = []
        for _ in range(options.rounds):
            slow, fast = (case.record(remove) for remove in (False, True))
            won = round(1e9 * (case.seconds(False) - case.seconds(True)))
            gains = (gain_of(prof, case.kind) for prof in (slow, fast))
            rows.append((won, slow.wall_ns - fast.wall_ns, *gains))
        close = sum(abs(gain - won) <= TOLERANCE * won for won, _, gain, _ in rows)
        columns = (statistics.median(column) / 1e6 for column in zip(*rows, strict=True))
        numbers = "".join(f"{value:7.1f} ms" for value in columns)
        print(f"{name:<28}{numbers}{close:>10} of {options.rounds}")
        shown += [(name, "with", slow), (name, "without", fast)]
    for name, which, prof in shown if options.show else ():
        print(f"\n{name}, {which} its cause: {prof.wall_ns / 1e6:.1f} ms")
        for row in prof.insights().itertuples():
            bounds = [round(ns / 1e6, 2) for ns in (row.gain_low_ns, row.gain_ns, row.gain_high_ns)]
            print(f"  {row.kind}, line {row.line}, {bounds} ms: {row.text}")


if __name__ == "__main__":
    main()
