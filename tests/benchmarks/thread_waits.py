"""Cost of recording the waits of threads for each other.

::

    python -m tests.benchmarks.thread_waits

Programs that do little but hand over between threads, in turns with and without the recording of
waits, within one profile. Fails if a hand-over takes more than 1.25 times as long.
"""

from __future__ import annotations

import concurrent.futures
import queue
import statistics
import threading
import time
from typing import TYPE_CHECKING

import epprof_nb
from epprof_nb.core.options import Options
from epprof_nb.recording.session import thread_waits
from tests.benchmarks.shared.harness import header, median_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, MAX_RATIO = 60, 1.25
HAND_OVERS = 200


def futures() -> None:
    """Wait for results of a pool."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for _ in range(HAND_OVERS):
            pool.submit(int).result()


def queues() -> None:
    """Send items there and back."""
    there, back = queue.Queue[int](), queue.Queue[int]()

    def answer() -> None:
        for _ in range(HAND_OVERS):
            back.put(there.get())

    thread = threading.Thread(target=answer)
    thread.start()
    for number in range(HAND_OVERS):
        there.put(number)
        back.get()
    thread.join()


def puts() -> None:
    """Fill and empty a queue, for which nothing waits."""
    items = queue.Queue[int]()
    for number in range(10 * HAND_OVERS):
        items.put(number)
        items.get()


def locks() -> None:
    """Take and release locks that nobody else holds."""
    lock, again = threading.Lock(), threading.RLock()
    for _ in range(10 * HAND_OVERS):
        with lock, again:
            pass


def contended_locks() -> None:
    """Wait for locks that another thread releases, there and back."""
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()

    def answer() -> None:
        for _ in range(HAND_OVERS):
            there.acquire()
            back.release()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(HAND_OVERS):
        there.release()
        back.acquire()
    thread.join()


def simple_queues() -> None:
    """Fill and empty a queue in C, for which nothing waits."""
    items = queue.SimpleQueue[int]()
    for number in range(10 * HAND_OVERS):
        items.put(number)
        items.get()


def joins() -> None:
    """Start threads and join them."""
    for _ in range(HAND_OVERS):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


PROGRAMS: dict[str, Callable[[], None]] = {
    "future.result": futures,
    "queue, there and back": queues,
    "queue, never empty": puts,
    "lock, never contended": locks,
    "lock, there and back": contended_locks,
    "simple queue, never empty": simple_queues,
    "thread.join": joins,
}


def timed(program: Callable[[], None]) -> float:
    """Return the time of a program, s."""
    begin = time.perf_counter()
    program()
    return time.perf_counter() - begin


def main() -> None:
    """Print one row per program."""
    header("A program with the recording of waits, relative to without")
    failed = []
    with epprof_nb.profile():
        for name, program in PROGRAMS.items():
            timed(program)
            ratios = []
            for _ in range(ROUNDS):
                times = []
                for is_on in (True, False, False, True):
                    (thread_waits.start(Options()) if is_on else thread_waits.stop())
                    times.append(timed(program))
                ratios.append((times[0] + times[3]) / (times[1] + times[2]))
            low, high = median_bounds(ratios)
            print(f"{name:<26}{statistics.median(ratios):>8.3f} ({low:.3f} - {high:.3f})")
            if low > MAX_RATIO:
                failed.append(name)
    if failed:
        raise SystemExit(f"Too slow: {', '.join(failed)}")


if __name__ == "__main__":
    main()
