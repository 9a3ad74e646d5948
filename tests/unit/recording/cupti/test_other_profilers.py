"""Other profilers beside ours: PyTorch's profiler gets CUPTI, and ends its use of CUPTI."""

import sys
from enum import Enum
from types import SimpleNamespace

import pytest

from epprof_nb.recording.clock_conversion import Probe, same_clock
from epprof_nb.recording.cupti import other_profilers
from epprof_nb.recording.cupti.other_profilers import (
    TorchProfilerHooks,
    notes_on_profilers,
    teardown_attempts,
)


class Activity(Enum):
    CPU = 0
    CUDA = 1


CPU, CUDA = Activity.CPU, Activity.CUDA


@pytest.fixture
def torch_profiler(monkeypatch):
    """A module with the functions of torch.autograd.profiler; `calls` lists what ran."""
    calls: list[str] = []
    module = SimpleNamespace(
        calls=calls,
        _prepare_profiler=lambda *_: calls.append("prepare"),
        _enable_profiler=lambda *_: calls.append("enable"),
        _disable_profiler=lambda: calls.append("disable") or "result",
    )
    monkeypatch.setitem(sys.modules, "torch.autograd.profiler", module)
    return module


@pytest.fixture
def hooks(torch_profiler):
    calls = torch_profiler.calls
    hooks = TorchProfilerHooks(lambda: calls.append("pause"), lambda: calls.append("resume"))
    hooks.install()
    yield hooks
    hooks.remove()


@pytest.mark.usefixtures("hooks")
def test_the_recorder_is_paused_while_torch_profiler_records_the_gpu(torch_profiler):
    torch_profiler._prepare_profiler("config", {CPU, CUDA})
    torch_profiler._enable_profiler("config", {CPU, CUDA})
    assert torch_profiler._disable_profiler() == "result"
    starts = ["pause", "prepare", "pause", "enable"]
    assert torch_profiler.calls == [*starts, "pause", "disable", "resume"]


@pytest.mark.usefixtures("hooks")
def test_it_goes_on_at_once_if_torch_profiler_records_the_cpu_only(torch_profiler):
    torch_profiler._enable_profiler("config", {CPU})
    assert torch_profiler.calls == ["pause", "enable", "resume"]


def test_a_failing_start_resumes_and_its_error_comes_through(torch_profiler):
    def refuse(*_):
        raise RuntimeError("already enabled")

    torch_profiler._enable_profiler = refuse
    calls = torch_profiler.calls
    hooks = TorchProfilerHooks(lambda: calls.append("pause"), lambda: calls.append("resume"))
    hooks.install()
    with pytest.raises(RuntimeError, match="already enabled"):
        torch_profiler._enable_profiler("config", {CUDA})
    assert calls == ["pause", "resume"]
    hooks.remove()
    assert torch_profiler._enable_profiler is refuse


def test_removed_hooks_leave_functions_of_others_in_place(torch_profiler, hooks):
    def theirs(*_):
        pass

    ours = torch_profiler._prepare_profiler
    torch_profiler._enable_profiler = theirs
    hooks.remove()
    assert torch_profiler._enable_profiler is theirs
    assert torch_profiler._prepare_profiler is not ours
    torch_profiler._prepare_profiler("config", {CUDA})
    assert torch_profiler.calls == ["prepare"]


def test_without_torch_there_is_nothing_to_hook(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.autograd.profiler", raising=False)
    hooks = TorchProfilerHooks(pytest.fail, pytest.fail)
    hooks.install()
    hooks.remove()


def fake_torch(monkeypatch, *, initialized=True):
    calls: list[int] = []
    cuda = SimpleNamespace(
        is_initialized=lambda: initialized, current_device=lambda: calls.append(0)
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    return calls


def test_a_teardown_is_provoked_by_calls_of_the_cuda_runtime(monkeypatch):
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")
    calls = fake_torch(monkeypatch)
    attempts = teardown_attempts()
    next(attempts)
    assert len(calls) == 1
    next(attempts)
    assert len(calls) == 2
    monkeypatch.setattr(other_profilers, "_TEARDOWN_S", 0)
    assert list(teardown_attempts()) == []


@pytest.mark.parametrize("variable", [None, "0"])
def test_without_a_teardown_no_call_is_made(monkeypatch, variable):
    if variable is None:
        monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    else:
        monkeypatch.setenv("TEARDOWN_CUPTI", variable)
    calls = fake_torch(monkeypatch)
    assert list(teardown_attempts()) == []
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")
    calls = fake_torch(monkeypatch, initialized=False)
    assert list(teardown_attempts()) == []
    assert calls == []


def probe(ours_ns: int, offset: int = 0, rate: float = 1.0) -> Probe:
    return Probe(ours_ns - 100, int(ours_ns * rate) + offset, ours_ns + 100)


def test_a_clock_that_was_replaced_is_not_taken_for_the_same():
    second = 1_000_000_000
    earlier = probe(second, rate=2.1)
    assert same_clock(earlier, probe(60 * second, rate=2.1), probe(61 * second, rate=2.1))
    epoch = 1_795_324_517 * second
    assert not same_clock(earlier, probe(60 * second, epoch), probe(61 * second, epoch))
    # Back from the epoch to a clock that started at zero.
    assert not same_clock(probe(second, epoch), probe(60 * second), probe(61 * second))
    # One reading only: nothing to compare with.
    assert not same_clock(earlier, probe(60 * second), probe(60 * second))


@pytest.mark.parametrize(
    ("refusal", "injected", "start"),
    [
        (None, "", None),
        (None, "/opt/nsys/libinject.so", "Nsight Systems is active in this process."),
        ("CUPTI_ERROR_UNKNOWN", "", "CUPTI's callbacks are held by an unknown tool ("),
        ("CUPTI_ERROR_MAX_LIMIT_REACHED", "", "CUPTI's callbacks are held by another profiler ("),
        ("CUPTI_ERROR_UNKNOWN", "/opt/nsys", "CUPTI's callbacks are held by Nsight Systems ("),
    ],
)
def test_a_note_names_the_other_profiler(monkeypatch, refusal, injected, start):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv("CUDA_INJECTION64_PATH", injected)
    notes = [*notes_on_profilers(refusal)]
    assert len(notes) == (start is not None)
    for note in notes:
        assert note.startswith(start)
        assert refusal is None or refusal in note
