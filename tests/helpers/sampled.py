"""Code that runs until it was sampled, and the frames of its samples."""

import threading
import time

import numpy as np

from epprof_nb.core.options import Options
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from epprof_nb.recording.stacks.resolution import resolve

NEEDED = 20
"""Samples of each thread, after which the code ends."""


def numbers(batches):
    """Columns of the samples of some batches."""
    names = {
        "time": np.int64, "interval": np.int64, "processor": np.int64, "core_wait": np.int64,
        "thread_id": np.uint64, "stack_id": np.int32,
    }  # fmt: skip
    parts = [batch.samples for batch in batches if batch.samples]
    return {
        name: np.concatenate([np.frombuffer(part[name], dtype) for part in parts] or [[]])
        for name, dtype in names.items()
    }


class Sampled:
    """The samples of a program.

    The program takes an event, which is set once each of `threads` threads was sampled `needed`
    times.
    """

    def __init__(self, program, *, needed=NEEDED, threads=1, **options):
        self.subscription = Subscription(Options(**options))
        service.open(self.subscription)
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done, needed, threads))
        watch.start()
        try:
            program(done)
        finally:
            done.set()
            watch.join()
            recording = service.close(self.subscription)
        found = numbers(recording.batches)
        self.resolved = resolve(recording.stacks, [found["stack_id"].astype(np.int32)])
        self.thread = found["thread_id"].astype(np.int64)
        self.interval, self.processor = found["interval"], found["processor"]
        self.core_wait = found["core_wait"]
        rows = self.resolved.rows(found["stack_id"].astype(np.int32)).tolist()
        trees = {row: self.resolved.stacks.frames(row) for row in set(rows)}
        self.stacks = [trees[row] for row in rows]
        drained = [batch.samples for batch in recording.batches if batch.samples]
        self.counts = (
            {k: v for k, v in drained[-1].items() if isinstance(v, int)} if drained else {}
        )

    def _watch(self, done, needed, threads):
        while not done.is_set():
            time.sleep(0.01)
            batches = service.batches_since(self.subscription, 0)
            _, counts = np.unique(numbers(batches)["thread_id"], return_counts=True)
            if (counts >= needed).sum() >= threads:
                done.set()

    def of(self, thread):
        """The stacks of a thread, by its native id: file, function and line, innermost first."""
        return [
            [(frame.file, frame.function, frame.line) for frame in stack]
            for stack, one in zip(self.stacks, self.thread.tolist(), strict=True)
            if one == thread
        ]
