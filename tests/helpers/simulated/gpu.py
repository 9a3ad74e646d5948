"""A simulated GPU: programs with known costs, their profiles, and the time that they take.

Each program is a function of a `SimulatedGpu`; the profile of the slow program and the times of
the slow and the cured one show whether a gain is right.
"""

from contextlib import contextmanager

from tests.helpers.planted import MS, US, info
from tests.helpers.tiny import activity, call, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

LATENCY, GAP, RETURN = 6 * US, 1 * US, 5 * US
"""Time from a launch's call to its start, between queued kernels, and from an end to its wait's."""


class SimulatedGpu:
    """One host thread and streams, in virtual nanoseconds.

    With ``function``, the lines are those of a function of another cell, known from stacks only.
    """

    def __init__(self, function=None):
        self.now, self.function = 0, function
        self._line, self._ends = 1, {}
        self._ops, self._work, self._calls, self._stacks = [], [], [], []

    @contextmanager
    def line(self, number):
        """A statement of the program."""
        self._line, begin = number, self.now
        row = len(self._ops) + 10
        self._ops.append(None)
        yield self
        self._ops[row - 10] = line(row, number, begin, self.now, 1)

    def host(self, ns):
        """Work of the host."""
        self.now += ns

    def launch(self, ns, *, before=0, api=3 * US, stream=7, kind="kernel", **more):
        """Launch work that takes some time, after some work of the host."""
        self.now += before
        start = max(self.now + LATENCY, self._ends.get(stream, -GAP) + GAP)
        self._ends[stream] = start + ns
        self._record(kind, start, start + ns, stream, **more)
        self._call("cuLaunchKernel" if kind == "kernel" else "cuMemcpyHtoDAsync_v2", api)

    def copy(self, ns, direction="HtoD", size=8, memory="pageable", **more):
        """Copy; the host waits for pageable memory."""
        host, device = ("src_kind", "dst_kind")[:: 1 if direction == "HtoD" else -1]
        more |= {"copy_kind": direction, "bytes": size, host: memory, device: "device"}
        self.launch(ns, kind="memcpy", **more)
        if memory == "pageable":
            self._calls[-1] |= {"end_ns": self._ends[7] + RETURN}
            self._calls[-1]["duration_ns"] = self._calls[-1]["end_ns"] - self._calls[-1]["start_ns"]
            self.now = self._calls[-1]["end_ns"]

    def wait(self, name="cuCtxSynchronize"):
        """Wait for all work."""
        end = max(self.now + 2 * US, max(self._ends.values(), default=0) + RETURN)
        self._call(name, end - self.now)

    def _record(self, kind, start, end, stream, **more):
        self._work.append(
            activity(kind, start, end, len(self._ops) + 9, correlation_id=len(self._calls) + 1,
                     stream_id=stream, thread_id=1, context_id=1, **more)
        )  # fmt: skip

    def _call(self, name, ns):
        self._calls.append(
            call(self.now, self.now + ns, name=name, correlation_id=len(self._calls) + 1,
                 op_id=len(self._ops) + 9)
        )  # fmt: skip
        self._stacks.append(self._line)
        self.now += ns

    def profile(self, source, domain=None, **more):
        """The profile of what has run."""
        for row in self._calls:
            row["domain"] = domain
        if self.function is None:
            return profile(self._ops, self._work, self._calls, sources={"In[1]": source},
                           info=info(self.now, cell="In[1]", **more))  # fmt: skip
        walks, ids = stack_rows(*(f"In[2]:1 In[1]:{self.function}:{n}" for n in self._stacks))
        of_call = {
            row["correlation_id"]: number for row, number in zip(self._calls, ids, strict=True)
        }
        for row in (*self._work, *self._calls):
            row |= {"stack_id": of_call[row["correlation_id"]], "stack_source": "exact", "op_id": 1}
        prof = profile(
            [line(1, 1, 0, self.now, cell="In[2]")], self._work, self._calls,
            sources={"In[1]": source, "In[2]": f"{self.function}()\n"},
            info=info(self.now, cell="In[2]", **more),
        )  # fmt: skip
        return with_stacks(prof, walks)


__all__ = ["MS", "US", "SimulatedGpu"]
