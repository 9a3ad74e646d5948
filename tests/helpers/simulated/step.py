"""Steps on a simulated machine: a host, streams and a clock that runs only when they work."""

from contextlib import contextmanager

import numpy as np

import epprof_nb
from epprof_nb.recording.delays.experiment import Experiment
from epprof_nb.recording.session.host_load import WaitReading
from tests.helpers.planted import info
from tests.helpers.tiny import call, kernel, op, profile

LAUNCH = 2_000
RETURN = 7


class Machine:
    """A host and two streams; also the device of an experiment's delays.

    Parameters
    ----------
    scatter
        Standard deviation of the wall time, ns.
    drift
        How much longer each step takes than the one before, ns.
    dead
        Whether delays are launched and do not delay.
    busy
        How long the host waits for a core after a spin, as a share of the spin; also how long it
        waits in each step on average, in ms.
    """

    def __init__(self, seed=0, scatter=0, drift=0, *, dead=False, busy=0):
        self.random = np.random.default_rng(seed)
        self.scatter, self.drift, self.dead, self.busy = scatter, drift, dead, busy
        self.waited = 0
        self.now, self.steps, self.kept_gil = 0, 0, []
        self.begin_step()

    def begin_step(self):
        self.done, self.last, self.taken = {7: self.now, 8: self.now}, None, []
        self.ops, self.work, self.calls = [], [], []
        self.open, self.number, self.launched = [], 0, 0

    # -- what a step does

    @contextmanager
    def op(self, name):
        self.number += 1
        number, start = self.number, self.now
        self.open.append(number)
        with epprof_nb.op(name):
            yield
        self.open.pop()
        parent = self.open[-1] if self.open else -1
        self.ops.append(op(number, name, start, self.now, parent))

    def host(self, ns):
        self.now += ns

    def launch(self, ns, stream=7):
        start = self.now
        self.now += LAUNCH
        self.last, self.launched = stream, self.launched + 1
        begin = max(self.done[stream], self.now)
        self.done[stream] = begin + ns
        self.number += 1
        of_op = self.open[-1] if self.open else -1
        self.calls.append(call(start, self.now, correlation_id=self.number, op_id=of_op))
        self.work.append(
            kernel(begin, begin + ns, of_op, correlation_id=self.number, stream_id=stream)
        )

    def synchronize(self, stream=7):
        start = self.now
        self.now = max(self.now, self.done[stream]) + RETURN
        self.number += 1
        self.calls.append(
            call(start, self.now, correlation_id=self.number, name="cuStreamSynchronize",
                 op_id=self.open[-1] if self.open else -1)
        )  # fmt: skip
        self.work.append({
            **kernel(start, self.now, correlation_id=self.number, stream_id=stream),
            "kind": "synchronization", "name": "stream",
        })  # fmt: skip

    # -- the device of an experiment

    def streams(self, profile):
        return profile.tables["activities"]["stream_id"]

    def uncovered(self, stream):
        return ""

    def begin(self, streams):
        """Nothing has to be followed."""

    def end(self):
        """Nothing was followed."""

    def launches(self):
        return self.launched

    def delay(self, op, tag, length_ns):
        self.now += LAUNCH
        if self.last is not None:
            took = 0 if self.dead else length_ns
            self.done[self.last] = max(self.done[self.last], self.now) + took
            self.taken.append((tag, length_ns))

    def wait(self):
        self.now = max(self.now, *self.done.values())

    def take(self):
        taken, self.taken = self.taken, []
        return taken

    def spin(self, length_ns, keeps_gil):
        self.kept_gil.append(keeps_gil)
        self.now += 0 if self.dead else length_ns
        self.wait_for_core(self.busy * length_ns)
        return length_ns

    def wait_for_core(self, ns):
        self.now += int(ns)
        self.waited += int(ns)

    def waits(self):
        return WaitReading(0, {"1": self.waited})

    # -- the experiment

    def run(self, step):
        self.begin_step()
        self.steps += 1
        step(self)
        if self.busy:
            self.wait_for_core(self.busy * 1e6 * self.random.exponential())
        if self.scatter or self.drift:
            self.wait()
            later = self.drift * self.steps + self.scatter * self.random.standard_normal()
            self.now += max(int(later), 0)

    def recorded(self, step):
        """Return the profile of one step."""
        self.now = 0
        self.begin_step()
        step(self)
        self.wait()
        return profile(self.ops, self.work, self.calls, info=info(self.now))

    def experiment(self, step, repeats=40, seed=0, recorded=None):
        """Return the profile of a step with the result of an experiment, and what was said.

        `recorded` is the step that is recorded, if it is another one.
        """
        said = []
        prof = self.recorded(recorded or step)
        made = Experiment(
            repeats, self, said.append, seed=seed, clock=lambda: self.now, spin=self.spin,
            waits=self.waits,
        )  # fmt: skip
        try:
            made.begin(prof)
            while made.next():
                self.run(step)
        finally:
            made.end()
            prof.info["experiment"] = made.measured.as_info()
        return prof, said
