"""Cost of recording graph replays with CUPTI, node by node, as a whole, and switched per replay.

Answers whether a profiler can record a few replays node by node and the rest more cheaply. Each
part runs in a process of its own, because CUPTI can crash or wait forever; its times are beside
those of replays without records in the same process. Needs an NVIDIA GPU and libcupti, but no
framework.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import statistics
import subprocess
import sys
import threading
import time
from ctypes import byref, c_uint8, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING

from epprof_nb.recording.cupti import find_library
from tests.benchmarks.shared.driver_kernel import DriverKernel
from tests.benchmarks.shared.harness import header, median_error

if TYPE_CHECKING:
    from collections.abc import Callable

# CUPTI_ACTIVITY_KIND_*; GRAPHS: GRAPH_TRACE
MEMCPY, MEMSET, KERNELS, PEER_COPIES, SYNCHRONIZATION, GRAPHS = 1, 2, 10, 22, 38, 51
COPIES = (MEMCPY, PEER_COPIES, MEMSET)
START_OFFSET = {KERNELS: 16, GRAPHS: 8}
DRIVER_DOMAIN, GRAPH_LAUNCH, GRAPH_LAUNCH_PTSZ = 1, 514, 515


def check(status: int) -> None:
    """Raise if a call failed."""
    if status:
        raise RuntimeError(f"a call failed with {status}")


class Cupti:
    """CUPTI's activity records, counted after the measured work."""

    def __init__(self) -> None:
        self.path = find_library.locate_libcupti().path
        self.library = ctypes.CDLL(self.path)
        self._full: list[tuple[object, int]] = []
        self._out: dict[int, object] = {}
        self.lengths_ns: list[int] = []
        requested = ctypes.CFUNCTYPE(
            None, ctypes.POINTER(c_void_p), ctypes.POINTER(ctypes.c_size_t),
            ctypes.POINTER(ctypes.c_size_t),
        )  # fmt: skip
        completed = ctypes.CFUNCTYPE(
            None, c_void_p, c_uint32, c_void_p, ctypes.c_size_t, ctypes.c_size_t
        )
        self._callbacks = requested(self._request), completed(self._complete)
        check(self.library.cuptiActivityRegisterCallbacks(*self._callbacks))

    def _request(self, buffer, size, records) -> None:
        made = ctypes.create_string_buffer((4 << 20) + 8)
        address = -(-ctypes.addressof(made) // 8) * 8
        self._out[address] = made
        buffer[0], size[0], records[0] = address, 4 << 20, 0

    def _complete(self, _context, _stream, buffer, _size, valid) -> None:
        self._full.append((self._out.pop(buffer), valid))

    def enable(self, *kinds: int) -> None:
        """Enable records."""
        for kind in kinds:
            check(self.library.cuptiActivityEnable(c_uint32(kind)))

    def disable(self, *kinds: int) -> None:
        """Disable records."""
        for kind in kinds:
            check(self.library.cuptiActivityDisable(c_uint32(kind)))

    def forget(self) -> None:
        """Forget the records so far."""
        check(self.library.cuptiActivityFlushAll(c_uint32(1)))
        self._full.clear()

    def counts(self) -> dict[int, int]:
        """Return the number of records with valid times by kind, and forget them; -1: invalid.

        `lengths_ns` then has the durations of the kernels.
        """
        check(self.library.cuptiActivityFlushAll(c_uint32(1)))
        found: dict[int, int] = {}
        self.lengths_ns = []
        for made, valid in self._full:
            address, record = -(-ctypes.addressof(made) // 8) * 8, c_void_p()
            while valid and not self.library.cuptiActivityGetNextRecord(
                c_void_p(address), ctypes.c_size_t(valid), byref(record)
            ):
                kind = c_uint32.from_address(record.value).value
                if kind in START_OFFSET:
                    start = c_uint64.from_address(record.value + START_OFFSET[kind]).value
                    end = c_uint64.from_address(record.value + START_OFFSET[kind] + 8).value
                    if kind == KERNELS:
                        self.lengths_ns.append(end - start)
                    kind = kind if 0 < start <= end else -1
                found[kind] = found.get(kind, 0) + 1
        self._full.clear()
        return found

    def on_graph_launches(
        self, entered: Callable[[], None], left: Callable[[], None] | None = None
    ) -> None:
        """Call functions when a thread enters and leaves the launch of a graph."""

        def called(_user, _domain, _cbid, data) -> None:
            if c_uint32.from_address(data).value == 0:  # the call site: enter
                entered()
            elif left:
                left()

        kind = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_void_p)
        self._subscribed = kind(called)
        subscriber = c_void_p()
        check(self.library.cuptiSubscribe(byref(subscriber), self._subscribed, None))
        for cbid in (GRAPH_LAUNCH, GRAPH_LAUNCH_PTSZ):
            check(self.library.cuptiEnableCallback(
                c_uint32(1), subscriber, c_uint32(DRIVER_DOMAIN), c_uint32(cbid)
            ))  # fmt: skip


class Part:
    """A kernel, a graph that was made before CUPTI was loaded, and CUPTI."""

    def __init__(self, nodes: int, replays: int, rounds: int) -> None:
        self.nodes, self.replays, self.rounds = nodes, replays, rounds
        self.device = DriverKernel()
        self.replay = self.device.graph(nodes)
        self.plain = self.seconds()[0]
        self.cupti = Cupti()

    def seconds(self, replay: Callable[[], None] | None = None) -> tuple[float, float]:
        """Return the seconds of a replay with its work, and those of the host alone."""
        replay = replay or self.replay
        replay()
        self.device.synchronize()
        begin = time.perf_counter()
        for _ in range(self.replays):
            replay()
        launched = time.perf_counter() - begin
        self.device.synchronize()
        return (time.perf_counter() - begin) / self.replays, launched / self.replays

    def compare(
        self, title: str, begin: Callable[[], None], end: Callable[[], None],
        replay: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Print the time of a replay between `begin` and `end`, beside one without."""
        ratios, plain, own, host = [], [], [], []
        counts: dict[int, int] = {}
        for number in range(-1, self.rounds):
            without = self.seconds()[0]
            self.cupti.forget()
            begin()
            with_records, on_host = self.seconds(replay)
            end()
            if number == self.rounds - 1:
                counts = self.cupti.counts()
            if number >= 0:
                ratios.append(with_records / without)
                plain.append(without), own.append(with_records), host.append(on_host)
        print(
            f"  {title}: {statistics.median(ratios):.3f} +- {median_error(ratios):.3f}x of "
            f"{statistics.median(plain) * 1e6:.0f} us ({self.plain * 1e6:.0f} us before CUPTI was "
            f"loaded), {statistics.median(own) * 1e6:.0f} us, host "
            f"{statistics.median(host) * 1e6:.0f} us a replay; records of the last "
            f"{self.replays + 1} replays by kind: {counts}",
            flush=True,
        )

    def times(self, title: str, run: Callable[[], object], count: int = 30) -> None:
        """Print the time of a call."""
        found = []
        for _ in range(count):
            begin = time.perf_counter()
            run()
            found.append(time.perf_counter() - begin)
        print(f"  {title}: first {found[0] * 1e6:.0f}, median "
              f"{statistics.median(found) * 1e6:.0f}, most {max(found) * 1e6:.0f} us",
              flush=True)  # fmt: skip


def nothing() -> None:
    """Do nothing."""


def node_records(part: Part) -> None:
    """Kernel records, node by node."""
    part.compare("kernel records", lambda: part.cupti.enable(KERNELS),
                 lambda: part.cupti.disable(KERNELS))  # fmt: skip
    part.compare("all disabled again", nothing, nothing)
    kinds = (KERNELS, MEMCPY, MEMSET)
    part.compare("kernel, copy and memset records", lambda: part.cupti.enable(*kinds),
                 lambda: part.cupti.disable(*kinds))  # fmt: skip
    for records, nodes in (("kernel records", 20), ("kernel records", 1000)):
        part.replay = part.device.graph(nodes)
        part.compare(f"{records}, {nodes} nodes", lambda: part.cupti.enable(KERNELS),
                     lambda: part.cupti.disable(KERNELS))  # fmt: skip


def pinned(part: Part) -> None:
    """Kernel records, times in pinned host memory."""
    value, size = c_uint8(1), ctypes.c_size_t(1)
    check(part.cupti.library.cuptiActivitySetAttribute(c_uint32(8), byref(size), byref(value)))
    part.compare("kernel records", lambda: part.cupti.enable(KERNELS),
                 lambda: part.cupti.disable(KERNELS))  # fmt: skip


def events(part: Part) -> None:
    """Two events around each replay, without CUPTI."""
    driver, stream = part.device.driver, part.device.stream
    made = []
    for _ in range(2 * part.replays + 2):
        event = c_void_p()
        check(driver.cuEventCreate(byref(event), 0))
        made.append(event)
    left = iter(())

    def replay() -> None:
        nonlocal left
        first, second = next(left), next(left)
        check(driver.cuEventRecord(first, stream))
        part.replay()
        check(driver.cuEventRecord(second, stream))

    def begin() -> None:
        nonlocal left
        left = iter(made)

    part.compare("events", begin, nothing, replay)


def subscribed(part: Part) -> None:
    """A callback at each graph launch, without records."""
    part.cupti.on_graph_launches(nothing)
    part.compare("callback", nothing, nothing)


def switch_cost(part: Part) -> None:
    """Kernel records enabled and disabled, without replays and between them."""
    cupti = part.cupti

    def first_launch() -> None:
        cupti.enable(KERNELS)
        part.device.launch()
        cupti.disable(KERNELS)

    part.times("enable and disable", lambda: (cupti.enable(KERNELS), cupti.disable(KERNELS)))
    part.times("enable, launch, disable", first_launch)
    cupti.enable(KERNELS)
    part.device.launch()
    part.times("disable", lambda: cupti.disable(KERNELS), 1)
    part.times("replay while disabled", part.replay)
    part.times("disable and enable, a replay on the device",
               lambda: (part.replay(), cupti.disable(KERNELS), cupti.enable(KERNELS)))  # fmt: skip
    part.device.synchronize()
    print(f"  records {cupti.counts()}", flush=True)


def switched_by(part: Part, wait: bool, every: int) -> None:
    """Compare replays of which one in `every` is recorded node by node."""
    number = 0

    def begin() -> None:
        nonlocal number
        number = 0

    def replay() -> None:
        nonlocal number
        recorded = number % every == every // 2
        number += 1
        if recorded:
            part.cupti.enable(KERNELS)
        part.replay()
        if recorded:
            if wait:
                part.device.synchronize()
            part.cupti.disable(KERNELS)

    how = "waiting for it" if wait else "without waiting"
    part.compare(f"one in {every} with kernel records, {how}", begin, nothing, replay)


def switched_waiting(part: Part) -> None:
    """Kernel records for one replay in some, disabled after its work."""
    switched_by(part, wait=True, every=10)
    switched_by(part, wait=True, every=50)


def switched_at_once(part: Part) -> None:
    """Kernel records for one replay in some, disabled while it runs."""
    switched_by(part, wait=False, every=10)
    switched_by(part, wait=False, every=50)


def switched_in_callback(part: Part) -> None:
    """Kernel records switched in the callback of the graph launch."""
    number = 0

    def entered() -> None:
        nonlocal number
        (part.cupti.enable if number % 10 == 0 else part.cupti.disable)(KERNELS)
        number += 1

    part.cupti.on_graph_launches(entered)
    part.compare("one in 10 with kernel records", nothing, nothing)


def windows(part: Part) -> None:
    """Records off from the begin to the end of the launch of most replays, in callbacks."""
    device, cupti = part.device, part.cupti
    made, number, off, one_in = [], 0, (), 1
    for _ in range(2048):
        event = c_void_p()
        check(device.driver.cuEventCreate(byref(event), 0))
        made.append(event)

    def record(index: int) -> None:
        check(device.driver.cuEventRecord(made[index % len(made)], device.stream))

    def entered() -> None:
        nonlocal number
        number += 1
        record(2 * number)
        if number % one_in:
            cupti.disable(*off)

    def left() -> None:
        if number % one_in:
            cupti.enable(*off)
        record(2 * number + 1)

    every = (KERNELS, *COPIES, SYNCHRONIZATION)
    plain, _ = part.seconds()
    print(f"  without callbacks and records: {plain * 1e6:.1f} us", flush=True)
    cupti.on_graph_launches(entered, left)
    # Off: nothing to switch. The times of replays follow, not ratios.
    for title, on, switched, replays in (
        ("events only", (), (), 1),
        ("kernel records, all replays", every, (), 1),
        ("copies' records only, all replays", (*COPIES, SYNCHRONIZATION), (), 1),
        ("all but one in 32 without kernels", every, (KERNELS,), 32),
        ("all but one in 64 without kernels", every, (KERNELS,), 64),
        ("all but one in 256 without kernels", every, (KERNELS,), 256),
        ("all but one in 64 without kernels and copies", every, (KERNELS, *COPIES), 64),
        ("all but one in 64 without records of kernels alone", (KERNELS,), (KERNELS,), 64),
        ("events only, again", (), (), 1),
    ):
        cupti.enable(*on)
        off, number, one_in = switched, 0, replays
        found = [part.seconds() for _ in range(part.rounds)]
        cupti.disable(*on)
        device.synchronize()
        counts = cupti.counts()
        seconds, host = (statistics.median(values) * 1e6 for values in zip(*found, strict=True))
        lengths = sorted(cupti.lengths_ns) or [0]
        print(f"  {title}: {seconds:.1f} us, {seconds / plain / 1e6:.3f}x, host {host:.1f} us; "
              f"records of {number} replays: {counts}; kernels of "
              f"{lengths[len(lengths) // 2] / 1e3:.1f} us, at most {lengths[-1] / 1e3:.1f} us",
              flush=True)  # fmt: skip
    elapsed = ctypes.c_float()
    between = []
    for index in range(2 * number - 200, 2 * number, 2):
        first, second = made[index % len(made)], made[(index + 1) % len(made)]
        check(device.driver.cuEventElapsedTime(byref(elapsed), first, second))
        between.append(elapsed.value * 1e3)
    print(f"  between the events of a replay: {min(between):.1f} to {max(between):.1f} us, median "
          f"{statistics.median(between):.1f}", flush=True)  # fmt: skip


def of_context(part: Part) -> None:
    """Kernel records disabled for the context alone."""
    cupti, context = part.cupti, part.device.context
    for name in ("cuptiActivityEnableContext", "cuptiActivityDisableContext"):
        status = getattr(cupti.library, name)(context, c_uint32(KERNELS))
        print(f"  {name}: {status}", flush=True)
    cupti.enable(KERNELS)
    part.compare("enabled, disabled for the context", nothing, nothing)
    cupti.library.cuptiActivityEnableContext(context, c_uint32(KERNELS))
    part.compare("enabled, enabled for the context", nothing, nothing)


def whole_graphs_first(part: Part) -> None:
    """Graph records, enabled before the graph is made."""
    part.cupti.enable(GRAPHS)
    part.replay = part.device.graph(part.nodes)
    part.compare("graph records, compare with the time before CUPTI", nothing, nothing)
    part.times("disable and enable graph records",
               lambda: (part.cupti.disable(GRAPHS), part.cupti.enable(GRAPHS)))  # fmt: skip


def whole_graphs_later(part: Part) -> None:
    """Graph records, enabled after the graph was made."""
    part.compare("graph records", lambda: part.cupti.enable(GRAPHS),
                 lambda: part.cupti.disable(GRAPHS))  # fmt: skip


def both(part: Part) -> None:
    """Graph and kernel records, enabled before the graph is made."""
    part.cupti.enable(GRAPHS, KERNELS)
    part.replay = part.device.graph(part.nodes)
    part.compare("graph and kernel records, compare with the time before CUPTI", nothing, nothing)


def both_later(part: Part) -> None:
    """Graph and kernel records, enabled after the graph was made."""
    part.compare("graph and kernel records", lambda: part.cupti.enable(GRAPHS, KERNELS),
                 lambda: part.cupti.disable(GRAPHS, KERNELS))  # fmt: skip


def kind_switched(part: Part) -> None:
    """Kernel records on, graph records off for one replay in ten; the graph is made before."""
    part.cupti.enable(KERNELS, GRAPHS)
    part.replay = part.device.graph(part.nodes)
    number = 0

    def replay() -> None:
        nonlocal number
        recorded = number % 10 == 0
        number += 1
        if recorded:
            part.cupti.disable(GRAPHS)
        part.replay()
        if recorded:
            part.cupti.enable(GRAPHS)

    part.compare("one in 10 without graph records, compare with the time before CUPTI", nothing,
                 nothing, replay)  # fmt: skip


def kernels_then_graphs(part: Part) -> None:
    """Graph records enabled while kernel records are on, for a graph that was replayed before."""
    part.cupti.enable(KERNELS)
    part.compare("kernel records", nothing, nothing)
    part.cupti.enable(GRAPHS)
    part.compare("graph records, too", nothing, nothing)
    part.cupti.disable(GRAPHS)
    part.compare("kernel records again", nothing, nothing)


def beside_launches(part: Part) -> None:
    """Kernel records switched around each replay while two other threads launch."""
    stop = threading.Event()

    def launching() -> None:
        kernel = DriverKernel()
        while not stop.is_set():
            kernel.launch()

    threads = [threading.Thread(target=launching) for _ in range(2)]
    for thread in threads:
        thread.start()
    begin, switched = time.perf_counter(), 0
    while switched < 2000 and time.perf_counter() - begin < 8:
        part.cupti.enable(KERNELS)
        part.replay()
        part.cupti.disable(KERNELS)
        switched += 1
    stop.set()
    for thread in threads:
        thread.join()
    part.device.synchronize()
    part.cupti.forget()
    print(f"  switched {switched:,} times without a crash", flush=True)


PARTS: dict[str, Callable[[Part], None]] = {
    part.__name__: part
    for part in (
        node_records, pinned, events, subscribed, switch_cost, switched_waiting, switched_at_once,
        switched_in_callback, windows, of_context, whole_graphs_first, whole_graphs_later,
        both, both_later, kind_switched, kernels_then_graphs, beside_launches,
    )
}  # fmt: skip


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--replays", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--limit", type=float, default=25, help="seconds of a part")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        faulthandler.enable()
        PARTS[options.child](Part(options.nodes, options.replays, options.rounds))
        return
    header(f"Recording of graph replays, {options.nodes} nodes")
    begin = time.perf_counter()
    for part in options.parts:
        print(f"{part}: {PARTS[part].__doc__}", flush=True)
        command = [sys.executable, "-m", __spec__.name, f"--child={part}"]
        command += [f"--{name}={getattr(options, name)}" for name in ("nodes", "replays", "rounds")]
        try:
            done = subprocess.run(
                command, timeout=options.limit, stderr=subprocess.PIPE, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"  did not end within {options.limit:g} s", flush=True)
            continue
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            print(f"  ended with {done.returncode}: {' | '.join(lines[:3])} ... {lines[-1:]}",
                  flush=True)  # fmt: skip
    print(f"took {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
