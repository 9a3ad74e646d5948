"""Interrupts of profiles at random moments: ``python -m tests.stress.interrupts [NUMBER]``.

Another process sends SIGINT to this one. Each signal raises KeyboardInterrupt in the Python code
that the main thread is running, including the profiler's. Afterwards, no state may remain.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.recording.session.service import service

SENDER = """
import os, random, sys, time
victim = int(sys.argv[1])
while os.getppid() == victim:
    time.sleep(random.expovariate(1 / 0.002))
    os.kill(victim, 2)
"""


class Interrupts:
    """Raises KeyboardInterrupt for a signal, but only between `arm` and the interrupt."""

    def __init__(self) -> None:
        self.armed = False
        self.raised = 0
        self.before = signal.signal(signal.SIGINT, self.on_signal)

    def arm(self) -> None:
        self.armed = True

    def on_signal(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            self.raised += 1
            raise KeyboardInterrupt


def leaks(handler: object) -> dict[str, object]:
    """Return the state that a profile left, except for objects that a traceback still holds."""
    counters = _native.counters()
    found = {
        "subscriptions": service.open_subscriptions,
        "recorders": len(service._running),
        "batches": len(service._batches),
        "open ops": _native.top(),
        "ops recorded": _native.push(_native.intern("probe"), 1),
        "profile function": sys.getprofile(),
        "other handler": signal.getsignal(signal.SIGINT) != handler,
        "time limits": sum(
            thread.name == "epprof time limit" and not limit_ended(thread)
            for thread in threading.enumerate()
        ),
        "chunks": counters["op_chunks"] > 64,
    }
    return {name: value for name, value in found.items() if value}


def limit_ended(thread: threading.Thread) -> bool:
    """Return whether the thread of a time limit ends soon."""
    thread.join(60)
    return not thread.is_alive()


def one_profile(array: host.Array, rng: random.Random) -> None:
    """Profile code that enters and leaves each kind of context."""
    limit = rng.choice([None, None, 60.0])
    with epprof_nb.profile(time_limit_s=limit) as outer, epprof_nb.op("outer"):
        stream = host.Stream()  # its thread starts with the first launch
        for _ in range(rng.randrange(3)):
            host.launch(lambda a: a.fill(1), array, name="fill", stream=stream)
        if rng.random() < 0.5:
            stream.synchronize()
        if rng.random() < 0.5:
            with epprof_nb.profile(), epprof_nb.op("inner"):
                host.launch(lambda a: a.fill(2), array, name="fill")
    assert len(outer.ops) >= 1


def run(number: int, seed: int = 0) -> Counter[str]:
    """Run profiles until `number` of them were interrupted; return the state that each left."""
    rng = random.Random(seed)
    array = host.empty((8,))
    one_profile(array, rng)  # imports pandas, which an interrupt may break for good
    interrupts = Interrupts()
    left: Counter[str] = Counter()
    kept: BaseException | None = None
    sender = subprocess.Popen([sys.executable, "-c", SENDER, str(os.getpid())])
    try:
        while interrupts.raised < number:
            try:
                interrupts.arm()
                one_profile(array, rng)
                interrupts.armed = False
            except KeyboardInterrupt as error:
                kept = error  # with its traceback, as IPython keeps it
            interrupts.armed = False
            found = leaks(interrupts.on_signal)
            left.update(f"{name}: {value}" for name, value in found.items())
            if found:
                print(found)
                traceback.print_exception(kept)
                for subscription in list(service._subscriptions):
                    service.abort(subscription)
        host.synchronize()
    finally:
        sender.kill()
        sender.wait()
        signal.signal(signal.SIGINT, interrupts.before)
    return left


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    result = run(number)
    print(f"{number} interrupts, left behind: {dict(result) or 'nothing'}")
    sys.exit(bool(result))
