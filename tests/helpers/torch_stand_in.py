"""A stand-in for torch with a model of its allocator, whose history a session records."""

import time
from types import SimpleNamespace

import epprof_nb
from tests.helpers.torch_snapshots import Allocator


class StandIn:
    """The functions of torch that the history uses."""

    def __init__(self, *, started=True):
        self.allocator = Allocator(8 << 20)
        self.shift_us = 0
        self.devices, self.contexts = 1, []
        self.max_entries, self.on, self.started, self.made = None, False, started, 0
        self.hooks, self.snapshots, self.options = [], 0, None
        memory = SimpleNamespace(
            get_allocator_backend=lambda: "native",
            _record_memory_history=self.record,
            _snapshot=self.snapshot,
        )
        self.torch = SimpleNamespace(
            __version__="2.11",
            __spec__=None,
            version=SimpleNamespace(cuda="13.0"),
            cuda=SimpleNamespace(
                memory=memory,
                memory_stats=self.statistics,
                is_initialized=lambda: self.started,
                device_count=lambda: self.devices,
                synchronize=lambda: self.contexts.append(0),
                _lazy_call=self.lazy_call,
                _queued_calls=[],
            ),
            _C=SimpleNamespace(
                _cuda_isHistoryEnabled=lambda: self.on, _cuda_record_memory_history=self.record_core
            ),
            nn=SimpleNamespace(Module=type("Module", (), {})),
            Tensor=type("Tensor", (), {}),
        )

    def keep_texts(self):
        """Give each thread a text, as newer releases do."""
        memory, texts = self.torch.cuda.memory, self.allocator.texts
        memory._set_memory_metadata = lambda text: setattr(texts, "value", text)
        memory._get_memory_metadata = lambda: getattr(texts, "value", "")

    def lazy_call(self, function):
        if self.started:
            function()
        else:
            self.torch.cuda._queued_calls.append((function, []))

    def start_cuda(self):
        self.started = True
        for function, _ in list(self.torch.cuda._queued_calls):
            function()

    def record(
        self,
        enabled="all",
        context="all",
        stacks="all",
        max_entries=10**6,
        clear_history=False,
        global_record_annotations=False,
        skip_actions=(),
    ):
        self.torch._C._cuda_record_memory_history(
            enabled, context, stacks, max_entries, clear_history, False, global_record_annotations,
            skip_actions,
        )  # fmt: skip

    def record_core(self, enabled, *options):
        self.on, self.options = enabled is not None, options
        self.max_entries = options[2] if enabled == "all" else 1
        if not self.on or options[3]:
            self.allocator.trace.clear()

    def snapshot(self):
        self.snapshots += 1
        self.tick()
        if not self.on:
            self.allocator.trace.clear()
        taken = self.allocator.snapshot()
        taken["device_traces"][0] = taken["device_traces"][0][-(self.max_entries or 1) :]
        return taken

    def statistics(self, device):
        return {
            "allocation.all.allocated": self.made,
            "allocated_bytes.all.current": self.allocator.allocated,
            "reserved_bytes.all.current": 8 << 20,
        }

    def tick(self):
        self.allocator.now_us = time.time_ns() // 1000 + self.shift_us

    def alloc(self, size):
        self.tick()
        self.made += 1
        return self.allocator.alloc(size)

    def free(self, address):
        self.tick()
        self.allocator.free(address)


def recorded(body):
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        body()
    return prof


def spin(seconds=0.0001):
    """Let some microseconds pass, so that an event is not at the boundary of an op."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
