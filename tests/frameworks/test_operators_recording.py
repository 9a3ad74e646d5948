"""Operators of torch beside torch.profiler, threads, compiled code and other builds."""

from __future__ import annotations

import threading

import pytest

import epprof_nb
from epprof_nb import _native

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.frameworks.layers import (  # noqa: E402
    Layer,
    cpu_profiler,
    kernel_modules,
    names_of,
    nested,
)
from tests.frameworks.notes import notes_of  # noqa: E402
from tests.frameworks.operators import operators  # noqa: E402


def test_shapes_that_another_thread_asks_for_are_named_in_a_note(values):
    def ask():
        with epprof_nb.profile(detail="shapes"):
            pass

    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        torch.sin(values)
    assert [row[0] for row in operators(prof)] == ["aten::exp", "aten::sin"]
    assert "recording began on another thread" in notes_of(prof)[0]


def test_torch_profiler_inside_works_and_a_note_says_what_is_missing(values):
    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
        with cpu_profiler() as theirs:
            torch.sin(values)
        torch.cos(values)
    assert {event.name for event in theirs.events()} == {"aten::sin"}
    assert [row[0] for row in operators(prof)] == ["aten::exp", "aten::cos"]
    (note,) = (note for note in prof.info["notes"] if "Operators" in note)
    assert note.startswith("Operators of torch were not recorded for ")


def test_torch_profiler_that_outlives_the_profile(values):
    theirs = cpu_profiler()
    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
        theirs.start()
        torch.sin(values)
    torch.cos(values)
    theirs.stop()
    assert {event.name for event in theirs.events()} == {"aten::sin", "aten::cos"}
    assert [row[0] for row in operators(prof)] == ["aten::exp"]
    assert any("while another PyTorch profiler ran" in note for note in prof.info["notes"])
    assert not torch.autograd._profiler_enabled()
    with epprof_nb.profile(detail="operators") as again:
        torch.exp(values)
    assert [row[0] for row in operators(again)] == ["aten::exp"]


def test_torch_profiler_around_works_and_a_note_says_what_is_missing(values):
    with cpu_profiler() as theirs:
        with epprof_nb.profile(detail="operators") as prof:
            torch.exp(values)
        torch.sin(values)
    assert {event.name for event in theirs.events()} >= {"aten::exp", "aten::sin"}
    assert operators(prof) == []
    assert any("another PyTorch profiler is running" in note for note in prof.info["notes"])
    with epprof_nb.profile() as after:
        pass
    assert notes_of(after) == []


def test_the_function_of_torchs_profiler_is_put_back(values):
    from torch.autograd import profiler

    enable, disable = profiler._enable_profiler, profiler._disable_profiler
    with epprof_nb.profile(detail="operators"):
        assert profiler._enable_profiler is not enable
    assert (profiler._enable_profiler, profiler._disable_profiler) == (enable, disable)


def test_a_profile_that_another_thread_ends(values):
    """Only the thread that began the recording can end the observer."""
    session = epprof_nb.profile(detail="operators")
    prof = session.__enter__()
    torch.exp(values)
    thread = threading.Thread(target=session.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert [row[0] for row in operators(prof)] == ["aten::exp"]
    with cpu_profiler() as theirs:
        torch.sin(values)
    assert {event.name for event in theirs.events()} == {"aten::sin"}
    with epprof_nb.profile(detail="operators") as again:
        torch.cos(values)
    assert [row[0] for row in operators(again)] == ["aten::cos"]
    assert not torch.autograd._profiler_enabled()


def test_threads_of_the_user_are_not_recorded(values):
    with epprof_nb.profile(detail="operators") as prof:
        thread = threading.Thread(target=torch.exp, args=(values,))
        thread.start()
        thread.join()
    assert operators(prof) == []


def test_threads_of_autograd(named, values):
    """Backward passes nested more than 60 deep run on a pool of threads of autograd."""
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile(detail="operators") as prof:
        result, threads = nested(layer(values), layer, 70)
        result.sum().backward()
    assert kernel_modules(prof) == {"a forward": {"layer"}, "a backward": {"layer"}}
    ops = prof.ops
    rows = ops[ops["category"] == "operator"]
    assert set(rows["thread_id"]) == threads
    assert (ops["status"] == "complete").all()
    nodes = rows[rows["op_type"] == "autograd_node"]
    assert nodes["parent_op_id"].notna().all()
    assert (nodes["name"] == "_NestedBackward").sum() == 71


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(named, values, reentrant):
    model = nn.Sequential(Layer("a"), Layer("b"))
    named(model=model)
    found = []
    for detail in ("default", "operators"):
        with epprof_nb.profile(detail=detail) as prof:
            checkpoint(model, values, use_reentrant=reentrant).sum().backward()
        found.append((kernel_modules(prof), prof.by_module()["kernels"].to_dict()))
        assert notes_of(prof) == []
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_code_is_not_compiled_again(named, values):
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    model = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend=counter)
    named(model=model)
    with epprof_nb.profile(detail="operators") as prof:
        model(values)
    model(values)
    with epprof_nb.profile(detail="operators") as again:
        model(values)
    assert counter.frame_count == 1
    assert names_of(prof, "compile") == ["torch.compile"]
    # Operators that the compiler itself runs are not the user's.
    inside = prof.ops["name"].reindex(prof.ops["parent_op_id"]) == "torch.compile"
    assert not inside.any()
    assert "aten::linear" in {row[0] for row in operators(again)}
    torch._dynamo.reset()


def test_many_profiles_are_alike(named, values):
    model = nn.Sequential(Layer("a"), nn.ReLU())
    named(model=model)
    found = []
    for _ in range(50):
        with epprof_nb.profile(detail="operators") as prof:
            model(values).sum().backward()
        found.append(operators(prof))
    assert len(found[0]) > 10
    # The first backward pass accumulates no gradients into those of an earlier one.
    assert all(rows == found[1] for rows in found[1:])


def test_data_loader_workers_are_left_alone(values):
    from torch.utils.data import DataLoader

    loader = DataLoader(values.detach(), batch_size=1, num_workers=2)
    with epprof_nb.profile(detail="operators") as prof:
        total = sum(batch.sum() for batch in loader)
    assert total == 8
    assert "aten::sum" in {row[0] for row in operators(prof)}


def test_an_unknown_build_without_cuda_is_named_in_a_note(values, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "9.0.1+cpu")
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
    assert operators(prof) == []
    (note,) = notes_of(prof)
    assert note == (
        "Operators of torch are not recorded: builds without CUDA are supported from 2.6 to 2.13, "
        "and this is 9.0.1+cpu."
    )


def test_messages_that_do_not_arrive_are_named_in_a_note(values, monkeypatch):
    monkeypatch.setattr(_native, "operators_seen", lambda: 0)
    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
    assert operators(prof) == []
    assert any("another tool receives its ranges" in note for note in prof.info["notes"])
    assert not torch.autograd._profiler_enabled()
