"""The history of PyTorch's allocator in a session, with a stand-in for torch and a model of its
allocator."""

import os
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.cupti import nvml
from epprof_nb.recording.memory import process_memory, recorder, torch_history
from epprof_nb.recording.memory.called_models import CalledModels
from epprof_nb.recording.memory.history_calls import HISTORY_CALLS
from epprof_nb.recording.session import service
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


@pytest.fixture
def stand_in(monkeypatch):
    def install(**options):
        made = StandIn(**options)
        monkeypatch.setitem(sys.modules, "torch", made.torch)
        monkeypatch.setitem(
            sys.modules,
            "torch.optim.optimizer",
            SimpleNamespace(
                register_optimizer_step_post_hook=lambda hook: (
                    made.hooks.append(hook) or SimpleNamespace(remove=made.hooks.clear)
                )
            ),
        )
        return made

    return install


def recorded(body):
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        body()
    return prof


def spin(seconds=0.0001):
    """Let some microseconds pass, so that an event is not at the boundary of an op."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_blocks_have_the_ops_that_allocated_and_released_them(stand_in):
    torch = stand_in()
    before = torch.alloc(5000)

    def body():
        with epprof_nb.op("first"):
            spin()
            kept = torch.alloc(1000)
            gone = torch.alloc(2 << 20)
            spin()
        with epprof_nb.op("second"):
            spin()
            torch.free(gone)
            torch.free(before)
            spin()
        return kept

    prof = recorded(body)
    blocks = prof.memory_blocks
    names = prof.ops["name"]
    shown = [
        tuple(names.get(op) for op in pair)
        for pair in blocks[["op_id", "freed_op_id"]].astype(object).to_numpy()
    ]
    assert shown == [(None, "second"), ("first", None), ("first", "second")]
    assert blocks["bytes"].tolist() == [5120, 1024, 2 << 20]
    assert blocks["requested_bytes"].tolist() == [5000, 1000, 2 << 20]
    assert prof.memory_at()["bytes"].sum() == torch.allocator.peak
    held = prof.memory_pools().set_index("pool").loc["torch"]
    assert held["held_bytes"] == 8 << 20
    assert held["in_use_bytes"] == torch.allocator.allocated
    assert not torch.on
    assert torch.hooks == []


def on_thread(body):
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def names_of_allocations(torch):
    def body():
        with epprof_nb.op("first"):
            spin()
            torch.alloc(1000)
            on_thread(lambda: torch.alloc(2000))
            spin()

    prof = recorded(body)
    names = prof.ops["name"]
    return [names.get(op) for op in prof.memory_blocks["op_id"].astype(object)]


def test_blocks_of_a_thread_without_ops_are_not_of_another_one(stand_in):
    torch = stand_in()
    torch.keep_texts()
    assert names_of_allocations(torch) == ["first", None]
    assert torch.allocator.texts.value == ""


def test_a_text_of_the_program_is_left_alone(stand_in):
    torch = stand_in()
    torch.keep_texts()
    torch.allocator.texts.value = "step 1"
    assert names_of_allocations(torch)[0] == "first"
    assert torch.allocator.texts.value == "step 1"


def test_a_text_that_the_program_sets_later_ends_the_mark(stand_in):
    torch = stand_in()
    torch.keep_texts()

    def body():
        torch.allocator.texts.value = ""
        with epprof_nb.op("first"):
            spin()
            torch.alloc(1000)
            spin()

    prof = recorded(body)
    assert prof.memory_blocks["op_id"].notna().all()


def test_tensors_given_to_models_are_inputs(stand_in, monkeypatch):
    torch, noted = stand_in(), []
    monkeypatch.setattr(
        CalledModels, "read", lambda self: {"input": np.array(noted).reshape(-1, 2)}
    )
    before = torch.alloc(512)

    def give(address):
        spin()
        noted.append((_native.now_ns(), address))
        spin()

    def body():
        other = torch.alloc(1024)
        give(before)
        batch = torch.alloc(2048)
        give(batch)
        torch.free(batch)
        spin()
        assert torch.alloc(2048) == batch  # other memory at the same address
        give(0x1234)
        torch.free(other)

    blocks = recorded(body).memory_blocks.sort_values("allocated_ns")
    assert blocks["category"].astype(object).fillna("").tolist() == ["", "input", "", "input"]


def test_parameters_of_models_that_are_gone_have_their_category(stand_in, monkeypatch):
    torch, noted = stand_in(), {"input": [], "parameter": []}
    monkeypatch.setattr(
        CalledModels,
        "read",
        lambda self: {name: np.array(rows).reshape(-1, 2) for name, rows in noted.items()},
    )

    def body():
        weights = torch.alloc(1024)
        spin()
        for rows in noted.values():
            rows.append((_native.now_ns(), weights))
        spin()
        torch.free(weights)
        spin()
        assert torch.alloc(1024) == weights  # other memory at the same address

    blocks = recorded(body).memory_blocks.sort_values("allocated_ns")
    assert blocks["category"].astype(object).fillna("").tolist() == ["parameter", ""]


def test_a_clock_that_was_set_leaves_the_ops_unknown(stand_in):
    torch = stand_in()
    torch.shift_us = 3_000_000

    def body():
        with epprof_nb.op("first"):
            spin()
            torch.alloc(1000)
            spin()

    prof = recorded(body)
    assert prof.memory_blocks["op_id"].isna().all()
    assert prof.memory_blocks["bytes"].tolist() == [1024]
    assert any("time of day" in note for note in prof.info["notes"])


@pytest.mark.parametrize(("time_us", "agrees"), [(0, False), (1, True), (10, True), (11, False)])
def test_the_clocks_are_compared_to_the_microsecond(time_us, agrees):
    history = torch_history.TorchHistory(process_memory.ProcessMemory())
    history._bracket = (1_500, 9_000)
    events = SimpleNamespace(of=lambda _: np.array([True]), time_us=np.array([time_us]))
    assert history._agrees(SimpleNamespace(events=events), 0, 0) == agrees


@pytest.fixture
def followed(stand_in):
    """A torch whose history the program records after epprof_nb was loaded."""

    def install():
        made = stand_in()
        HISTORY_CALLS.follow()
        return made

    return install


def is_left_alone(torch, before):
    is_same = (torch.on, torch.options, torch.max_entries) == before
    return is_same and getattr(torch.allocator.texts, "value", "") == ""


def in_op(torch):
    with epprof_nb.op("first"):
        spin()
        torch.alloc(1000)
        spin()


def test_a_history_of_the_program_without_stacks_is_read(followed):
    torch = followed()
    torch.keep_texts()
    torch.record(context=None)
    old = torch.alloc(4000)
    torch.free(torch.alloc(512))
    spin(0.002)
    before = torch.on, torch.options, torch.max_entries
    events = len(torch.allocator.trace)

    def body():
        in_op(torch)
        torch.snapshot()
        torch.free(old)

    for kept in ([], [1024]):
        prof = recorded(body)
        is_new = prof.memory_blocks["allocated_ns"].notna()
        (new,) = prof.memory_blocks[is_new].itertuples()
        assert (new.bytes, prof.ops["name"][new.op_id]) == (1024, "first")
        assert sorted(prof.memory_blocks.loc[~is_new, "bytes"]) == [*kept, 4096]
        assert is_left_alone(torch, before)
        assert not any("PyTorch" in note for note in prof.info.get("notes", ()))
        old = torch.alloc(4000)
    assert len(torch.allocator.trace) > events


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "C++ stacks"),
        ({"stacks": "python"}, "holds stacks"),
        ({"context": None, "skip_actions": ("free_requested",)}, "leaves out actions"),
    ],
)
def test_a_history_of_the_program_with_stacks_is_not_read(followed, monkeypatch, options, reason):
    torch = followed()
    monkeypatch.setattr(recorder, "used_devices", lambda: [0])
    torch.alloc(512)
    torch.record(**options)
    torch.record(context=None)  # the stacks stay
    torch.record(**options)
    before = torch.on, torch.options, torch.max_entries
    prof = recorded(lambda: torch.alloc(1000))
    assert torch.snapshots == 0
    assert is_left_alone(torch, before)
    assert any(reason in note for note in prof.info["notes"])
    pools = prof.memory_pools().set_index("pool")
    assert pools.loc["torch", ["held_bytes", "in_use_bytes"]].tolist() == [8 << 20, 1536]
    assert reason in pools.loc["torch", "note"]
    assert prof.memory_at("end")["bytes"].sum() == 1536


def test_a_history_that_began_unseen_may_have_stacks(stand_in):
    torch = stand_in()
    torch.record(context=None)
    prof = recorded(lambda: torch.alloc(1000))
    assert (torch.on, torch.snapshots) == (True, 0)
    assert any("began unseen" in note for note in prof.info["notes"])
    torch.record(enabled=None)
    recorded(lambda: torch.alloc(1000))
    assert torch.snapshots == 0  # blocks may still hold stacks


@pytest.mark.parametrize(("stacks", "is_read"), [("python", True), ("all", False)])
def test_blocks_hold_the_stacks_of_a_history_that_has_ended(followed, stacks, is_read):
    torch = followed()
    torch.record(stacks=stacks)
    torch.record(enabled=None)
    prof = recorded(lambda: torch.alloc(1000))
    assert bool(torch.snapshots) == is_read
    assert len(prof.memory_blocks) == is_read
    assert not torch.on
    assert any("C++ stacks" in note for note in prof.info.get("notes", ())) != is_read


def test_arguments_of_older_functions_are_known(stand_in):
    torch = stand_in()
    core = torch.torch._C
    core._cuda_record_memory_history_legacy = lambda enabled, *_: torch.record_core(
        "all" if enabled else None, None, "python", 1, False
    )
    HISTORY_CALLS.follow()
    core._cuda_record_memory_history_legacy(True, False, 100, False, True, False)
    assert HISTORY_CALLS.reason() == ""
    core._cuda_record_memory_history_legacy(True, True, 100, False, False, False)
    assert "holds stacks" in HISTORY_CALLS.reason()
    core._cuda_record_memory_history_legacy(False, True, 100, False, False, False)
    assert HISTORY_CALLS.reason() == ""


def test_a_history_that_fails_to_begin_changes_nothing(followed):
    torch = followed()
    with pytest.raises(TypeError):
        torch.torch._C._cuda_record_memory_history()
    assert HISTORY_CALLS.number == 0


@pytest.mark.parametrize("context", [None, "all"])
def test_a_history_that_the_program_begins_in_the_profile_stays(followed, context):
    torch = followed()

    def body():
        torch.alloc(1000)
        torch.record(context=context, max_entries=50)

    prof = recorded(body)
    assert (torch.on, torch.max_entries, torch.snapshots) == (True, 50, 1)
    assert len(prof.memory_blocks) == 0
    assert any("began PyTorch's history in" in note for note in prof.info["notes"])


def test_a_small_history_of_the_program_has_the_last_events(followed):
    torch = followed()
    torch.record(context=None, max_entries=4)
    old = torch.alloc(4000)

    def body():
        torch.free(old)
        for _ in range(3):
            torch.free(torch.alloc(1000))
        in_op(torch)
        torch.snapshot()

    prof = recorded(body)
    assert any("keeps 4 events" in note for note in prof.info["notes"])
    assert prof.memory_at("end")["bytes"].sum() == torch.allocator.allocated
    assert set(prof.ops["name"]) >= {"first"}
    seen = prof.memory_blocks.dropna(subset=["allocated_ns"])
    assert prof.ops["name"][seen["op_id"].dropna()].tolist() == ["first"]


@pytest.mark.parametrize("shift_us", [-3_000_000, 3_000_000])
def test_a_history_of_the_program_with_another_clock_has_no_ops(followed, shift_us):
    torch = followed()
    torch.shift_us = shift_us
    torch.record(context=None)
    torch.alloc(512)
    prof = recorded(lambda: in_op(torch))
    assert prof.memory_blocks["op_id"].isna().all()
    assert any("the time of day was set" in note for note in prof.info["notes"])


def test_the_history_begins_when_the_program_starts_cuda(stand_in, monkeypatch):
    torch = stand_in(started=False)

    def body():
        assert not torch.on
        torch.start_cuda()
        torch.alloc(1000)

    (recorder,) = (one for one in service._recorders() if one.name == "memory")
    monkeypatch.setattr(recorder._process, "context_bytes", None)
    prof = recorded(body)
    assert prof.memory_blocks["bytes"].tolist() == [1024]
    torch = stand_in(started=False)
    assert len(recorded(lambda: None).memory_blocks) == 0
    assert torch.torch.cuda._queued_calls == []
    assert torch.contexts == []


@pytest.mark.parametrize(
    ("devices", "others", "measured"), [(1, False, 500), (2, False, None), (1, True, None)]
)
def test_the_context_is_measured_before_there_is_memory(
    stand_in, monkeypatch, devices, others, measured
):
    """NVML lists the process once it has a context, which PyTorch has not made when it starts."""
    torch = stand_in(started=False)
    torch.devices = devices
    monkeypatch.setattr(process_memory, "used_devices", lambda: [0] if others else torch.contexts)
    monkeypatch.setattr(
        nvml, "own_memory_bytes", lambda: 500 + torch.made * 1024 if torch.contexts else None
    )

    def body():
        torch.start_cuda()
        torch.alloc(1000)

    (recorder,) = (one for one in service._recorders() if one.name == "memory")
    monkeypatch.setattr(recorder._process, "context_bytes", None)
    prof = recorded(body)
    assert prof.memory_blocks["bytes"].tolist() == [1024]
    assert prof.info.get("memory", {}).get("context_bytes") == measured
    assert torch.contexts == ([0] if measured else [])


def test_a_device_that_cannot_be_used_starts_as_without_us(stand_in, monkeypatch):
    torch = stand_in(started=False)

    def fail():
        raise RuntimeError("device is busy")

    torch.torch.cuda.synchronize = fail
    (recorder,) = (one for one in service._recorders() if one.name == "memory")
    monkeypatch.setattr(recorder._process, "context_bytes", None)

    def body():
        torch.start_cuda()
        torch.alloc(1000)

    assert recorded(body).memory_blocks["bytes"].tolist() == [1024]
    assert recorder._process.context_bytes is None


@pytest.mark.parametrize("name", ["cudaMallocAsync", "pluggable"])
def test_an_allocator_without_a_history_is_named(stand_in, name):
    torch = stand_in()
    torch.torch.cuda.memory.get_allocator_backend = lambda: name
    prof = recorded(lambda: torch.alloc(1000))
    assert not torch.on
    assert len(prof.memory_blocks) == 0
    assert any(f"its allocator is {name}," in note for note in prof.info["notes"])


def test_a_profile_in_the_handler_of_an_out_of_memory_error(stand_in):
    torch = stand_in()
    try:
        torch.alloc(1 << 40)
    except ValueError:  # no piece is large enough
        prof = recorded(lambda: torch.alloc(1000))
    assert prof.memory_blocks["bytes"].tolist() == [1024]
    assert not torch.on


def test_a_forked_child_leaves_pytorch_alone(stand_in, monkeypatch):
    torch = stand_in()
    (recorder,) = (one for one in service._recorders() if one.name == "memory")

    def body():
        torch.alloc(1000)
        child = os.fork()
        if not child:
            status = 1
            try:
                torch.torch.cuda.memory = None  # CUDA cannot be used here
                ended = recorder.drain()
                recorder.stop()
                is_left = recorder._torch.notes() == [] and not recorder._torch.is_wanted
                status = int(ended.torch_memory is not None or not is_left)
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.on

    prof = recorded(body)
    assert prof.memory_blocks["bytes"].tolist() == [1024]


def test_a_release_that_keeps_its_hooks_is_not_used(stand_in):
    torch = stand_in()
    torch.torch.cuda.memory._record_memory_history = lambda enabled=None: None
    prof = recorded(lambda: torch.alloc(1000))
    assert len(prof.memory_blocks) == 0
    assert any("153571" in note for note in prof.info["notes"])


def test_a_history_that_the_program_ends_is_told(stand_in):
    torch = stand_in()
    prof = recorded(lambda: torch.record(enabled=None))
    assert len(prof.memory_blocks) == 0
    assert any("the program ended" in note for note in prof.info["notes"])


@pytest.mark.parametrize("fails_at_once", [True, False])
def test_an_error_of_torch_costs_only_the_blocks(stand_in, fails_at_once):
    torch = stand_in()

    def fail():
        raise RuntimeError("device lost")

    def body():
        torch.torch.cuda.memory._snapshot = fail

    if fails_at_once:
        body()
    with epprof_nb.op("work"):
        prof = recorded(body)
    assert len(prof.memory_blocks) == 0
    assert any("RuntimeError: device lost" in note for note in prof.info["notes"])
    assert not torch.on


def test_dropped_events_are_counted(stand_in, monkeypatch):
    monkeypatch.setattr(torch_history, "MAX_ENTRIES", 4)
    torch = stand_in()

    def body():
        for _ in range(10):
            torch.free(torch.alloc(1000))
        torch.alloc(3000)

    prof = recorded(body)
    assert any("9 allocations" in note for note in prof.info["notes"])
    assert prof.memory_at("end")["bytes"].sum() == torch.allocator.allocated


def test_no_history_without_the_option(stand_in):
    torch = stand_in()
    with epprof_nb.profile(frameworks=()) as prof:
        assert not torch.on
        torch.alloc(1000)
    assert len(prof.memory_blocks) == 0
    assert prof.memory_at().attrs["note"] == "Nothing was recorded in this profile."
