"""The history of PyTorch's allocator in a session, with a stand-in for torch and a model of its
allocator."""

import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.cupti import gpu_state
from epprof_nb.recording.memory import process_memory, torch_history
from epprof_nb.recording.memory.called_models import CalledModels
from epprof_nb.recording.session import service
from tests.helpers.torch_stand_in import recorded, spin


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
        gpu_state, "own_memory_bytes", lambda: 500 + torch.made * 1024 if torch.contexts else None
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
