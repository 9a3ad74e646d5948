"""Histories of PyTorch's allocator that the program records itself."""

import pytest

import epprof_nb
from epprof_nb.recording.memory import recorder
from epprof_nb.recording.memory.history_calls import HISTORY_CALLS
from tests.helpers.torch_stand_in import recorded, spin


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


def test_a_history_that_the_program_ends_is_told(stand_in):
    torch = stand_in()
    prof = recorded(lambda: torch.record(enabled=None))
    assert len(prof.memory_blocks) == 0
    assert any("the program ended" in note for note in prof.info["notes"])


def test_pytorch_is_asked_for_its_history_only_once_it_has_started_cuda(stand_in):
    """PyTorch 2.11 crashes if it is asked before."""
    torch = stand_in(started=False)

    def is_enabled():
        assert torch.started or HISTORY_CALLS.number
        return torch.on

    torch.torch._C._cuda_isHistoryEnabled = is_enabled
    HISTORY_CALLS.follow()
    assert HISTORY_CALLS.reason() == ""
    torch.record(context=None)
    assert HISTORY_CALLS.reason() == ""
    torch.record(context="all", stacks="python")
    assert "holds stacks" in HISTORY_CALLS.reason()
