"""Explanations of torch's out-of-memory errors, with a simulated device of 100 MB."""

from __future__ import annotations

import gc
import threading
import weakref
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from epprof_nb.recording.memory.history_calls import HISTORY_CALLS  # noqa: E402
from epprof_nb.recording.out_of_memory import torch_failures  # noqa: E402
from epprof_nb.recording.out_of_memory.explain_error import explain  # noqa: E402
from epprof_nb.views.renderers.out_of_memory_text import as_html, as_text  # noqa: E402

MB = 2**20


def failed(run):
    """The error that a function raises; its own frame is the outermost of the traceback."""
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("it did not fail")


def named(made):
    return {(h.name, h.kind): h.nbytes for h in made.holders}


def test_holder_and_free_memory(memory):
    kept = [memory.empty(20 * MB) for _ in range(3)]
    made = explain(failed(lambda: memory.empty(50 * MB)), {"kept": kept})
    assert (made.device, made.library, made.requested) == ("cuda:0", "torch", 50 * MB)
    assert (made.free.total, made.free.largest, made.is_fragmented) == (40 * MB, 40 * MB, False)
    assert named(made) == {("kept", ""): 60 * MB}
    assert made.holders[0].buffers == 3
    assert (made.unheld, made.rest) == (0, 0)


def test_fragmentation_is_told_from_too_little(memory):
    memory.cached = [8 * MB] * 5
    kept = memory.empty(40 * MB)
    made = explain(failed(lambda: memory.empty(50 * MB)), {"kept": kept})
    assert (made.free.total, made.free.largest, made.free.pieces) == (60 * MB, 20 * MB, 6)
    assert made.is_fragmented
    assert "Fragmentation: 62.9 MB were free, which is enough, but in 6 pieces" in as_text(
        made, in_notebook=True
    )
    made = explain(failed(lambda: memory.empty(70 * MB)), {"kept": kept})
    assert not made.is_fragmented


@pytest.mark.parametrize("state", ["active_awaiting_free", "active_pending_free"])
def test_blocks_that_wait_for_a_stream_are_neither_free_nor_in_use(memory, state):
    memory.cached, memory.cached_state = [20 * MB] * 3, state
    made = explain(failed(lambda: memory.empty(50 * MB)), {})
    assert (made.waiting, made.free.total, made.pools[0].in_use) == (60 * MB, 40 * MB, 0)
    for text in (as_text(made, in_notebook=True), as_html(made, in_notebook=True)):
        assert "torch cannot use 62.9 MB of its cached memory yet" in text


def test_another_device(simulated):
    memory = simulated(device=1)
    made = explain(failed(lambda: memory.empty(101 * MB)), {})
    assert (made.device, made.requested, made.limit) == ("cuda:1", 101 * MB, 100 * MB)
    text = as_text(made, in_notebook=True)
    assert "more than all that this device has, 105 MB" in text
    assert "or use a device with more memory." in text


def test_the_limit_of_the_process(memory):
    kept = memory.empty(10 * MB)
    error = failed(lambda: memory.empty(200 * MB))
    last = torch_failures.last_failure()
    torch_failures._OBSERVER.last = last._replace(limit=30 * MB)
    made = explain(error, {"kept": kept})
    assert (made.limit, made.total, made.free.total) == (30 * MB, 100 * MB, 20 * MB)
    text = as_text(made, in_notebook=True)
    assert "torch may have 31.5 MB" in text
    assert "raise the limit with `torch.cuda.set_per_process_memory_fraction`" in text


def test_an_error_that_code_caught_is_not_the_one(memory):
    error = failed(lambda: memory.empty(150 * MB))
    failed(lambda: memory.empty(300 * MB))
    made = explain(error, {})
    assert made.requested == requested_of(error)
    assert made.requested != 300 * MB


def requested_of(error):
    from epprof_nb.recording.out_of_memory.recognize_errors import requested_bytes

    return requested_bytes(str(error))


def test_failures_before_the_cell_are_not_the_one(memory):
    error = failed(lambda: memory.empty(150 * MB))
    torch_failures._OBSERVER.last = torch_failures.last_failure()._replace(limit=7)
    before = torch_failures.failures()
    assert explain(error, {}, failures_before=before).limit == 100 * MB
    assert explain(error, {}, failures_before=before - 1).limit == 7


def test_one_snapshot_a_second(memory, monkeypatch):
    now = SimpleNamespace(monotonic=lambda: clock[0])
    clock = [100.0]
    monkeypatch.setattr(torch_failures, "time", now)
    for _ in range(50):
        failed(lambda: memory.empty(150 * MB))
    assert memory.snapshots == 1
    assert torch_failures.last_failure().number == 50
    error = failed(lambda: memory.empty(150 * MB))
    made = explain(error, {})
    assert "read after the code had ended" in made.notes[0]
    clock[0] += 1
    failed(lambda: memory.empty(150 * MB))
    assert torch_failures.last_failure().pool is not None


@pytest.mark.parametrize(
    ("fails", "when"), [(1, "was read after the code had ended"), (9, "was not read")]
)
def test_memory_that_torch_cannot_report_has_its_reason(memory, monkeypatch, fails, when):
    errors = iter([RuntimeError("no snapshot")] * fails)
    snapshot = torch._C._cuda_memorySnapshot

    def failing(*args):
        for error in errors:
            raise error
        return snapshot(*args)

    monkeypatch.setattr(torch._C, "_cuda_memorySnapshot", failing)
    (note,) = explain(failed(lambda: memory.empty(200 * MB)), {}).notes
    reason = "torch could not report it when the allocation failed (RuntimeError: no snapshot)"
    assert note == f"torch's memory {when}, because {reason}."


def test_the_observer_never_raises_and_keeps_no_tensor(memory, monkeypatch):
    monkeypatch.setattr(torch._C, "_cuda_memorySnapshot", lambda _: {}["segments"])
    held = memory.empty(90 * MB)
    error = failed(lambda: memory.empty(50 * MB))
    assert type(error) is torch.OutOfMemoryError
    assert torch_failures.last_failure().pool is None
    gone = weakref.ref(held)
    explain(error, {"held": held})
    del held, error
    gc.collect()
    assert gone() is None


def test_no_reference_is_left_to_the_traceback_even_before_garbage_is_collected(memory):
    def layer():
        hidden = memory.empty(20 * MB)
        memory.empty(90 * MB)
        return hidden

    gc.collect()
    gc.disable()
    try:
        error = failed(layer)
        made = explain(error, {})
        assert named(made) == {("hidden", ""): 20 * MB}
        assert memory.held == 20 * MB
        del error
        assert memory.held == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("history", [False, True])
def test_blocks_that_cannot_be_read_have_a_reason(memory, history):
    memory.history, memory.backend = history, "native" if history else "cudaMallocAsync"
    kept = memory.empty(60 * MB)
    made = explain(failed(lambda: memory.empty(50 * MB)), {"kept": kept})
    assert memory.snapshots == 0
    assert ("PyTorch's history" if history else "cudaMallocAsync") in made.notes[0]
    assert made.is_fragmented is None
    assert named(made) == {("kept", ""): 60 * MB}
    assert made.notes[0] in as_text(made, in_notebook=True)


def test_free_pieces_are_read_in_a_profile_of_memory(memory, monkeypatch):
    memory.history = True
    monkeypatch.setattr(HISTORY_CALLS, "_is_on", True)  # ours, which holds no stacks
    memory.cached = [20 * MB, 20 * MB]
    kept = memory.empty(60 * MB)
    made = explain(failed(lambda: memory.empty(30 * MB)), {"kept": kept})
    assert memory.snapshots
    assert made.is_fragmented


def test_attaching_waits_until_torch_starts_cuda(simulated, monkeypatch):
    queued = []
    monkeypatch.setattr(torch.cuda, "_queued_calls", queued)
    memory = simulated()  # CUDA runs
    assert len(memory.observers) == 1
    torch_failures.uninstall()
    monkeypatch.setattr(torch_failures, "_OBSERVER", torch_failures._Observer())
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    torch_failures.install()
    assert len(memory.observers) == 1
    for call, _ in queued:
        call()
    assert len(memory.observers) == 2
    torch_failures.uninstall()
    torch_failures.install()
    for call, _ in queued:
        call()
    assert len(memory.observers) == 2  # one for the process


def test_an_allocator_without_observers_starts_as_without_us(simulated, monkeypatch):
    monkeypatch.setattr(torch.cuda, "_queued_calls", queued := [])
    memory = simulated()
    memory.backend = "cudaMallocAsync"
    monkeypatch.setattr(torch_failures, "_OBSERVER", torch_failures._Observer())
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    torch_failures.install()
    for call, _ in queued:
        call()  # raises nothing


def test_uninstalled_observers_do_nothing(memory):
    torch_failures.uninstall()
    failed(lambda: memory.empty(150 * MB))
    assert torch_failures.last_failure() is None
    assert memory.snapshots == 0


def test_memory_without_an_array_and_memory_that_went_with_the_error(memory):
    memory._blocks[64] = 10 * MB  # of C++ code
    temporary = memory.empty(30 * MB)
    error = failed(lambda: memory.empty(80 * MB))
    del temporary
    made = explain(error, {})
    assert (made.unheld, made.released) == (10 * MB, 30 * MB)
    text = as_text(made, in_notebook=True)
    assert "torch, without an array" in text
    assert "31.5 MB of it were released" in text


def test_only_the_traceback_is_told_from_variables_and_outputs(memory):
    def layer(x):
        hidden = memory.empty(20 * MB)
        return memory.empty(90 * MB), hidden, x

    def notebook(output):  # not a variable of this function, which runs
        return {"x": x, "Out": {3: output, 4: x}, "_": output}

    x = memory.empty(10 * MB)
    made = explain(failed(lambda: layer(x)), notebook(memory.empty(5 * MB)))
    assert named(made) == {("hidden", ""): 20 * MB, ("x", ""): 10 * MB, ("Out[3]", ""): 5 * MB}
    assert (made.held_by("traceback"), made.held_by("output")) == (20 * MB, 5 * MB)
    assert made.holders[0].where.startswith("in `layer` (")
    text = as_text(made, in_notebook=True)
    assert "The traceback of this error keeps 21.0 MB alive" in text
    assert "traceback.clear_frames(sys.last_traceback)" in text
    assert "The traceback" not in as_text(made, in_notebook=False)


def test_parameters_gradients_optimizer_state_and_saved_tensors(simulated):
    simulated()
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    adam = torch.optim.Adam(net.parameters())
    net(torch.ones(2, 64)).sum().backward()
    adam.step()
    losses = [net(torch.ones(100, 64)) for _ in range(3)]
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
    found = named(explain(error, {"losses": losses, "adam": adam, "net": net}))
    parameters = sum(p.nbytes for p in net.parameters())
    assert found["net", "parameters"] == found["net", "gradients"] == parameters
    assert found["adam", "optimizer state"] == 2 * parameters + 4 * 4  # with a step each
    # The input and the output of the ReLU, of which each is saved once.
    assert found["losses", "saved for the backward pass"] == 3 * 2 * 100 * 64 * 4
    assert found["losses", ""] == 3 * 100 * 64 * 4


def test_saved_tensors_are_not_unpacked(simulated):
    simulated()

    def unpack(_):
        raise AssertionError("this would copy to the device")

    x = torch.ones(1000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t.detach().clone()], unpack):
        y = -x.exp()
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
    found = named(explain(error, {"y": y}))
    assert sum(found.values()) == 3 * 4000  # x is held by the graph; y, and the packed copy


def test_subclasses_run_no_code(simulated):
    simulated()

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            raise AssertionError("code of the user ran")

    loud = torch.ones(1000).as_subclass(Loud)
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
    assert named(explain(error, {"loud": loud})) == {("loud", ""): 4000}


def test_members_that_subclasses_replace_are_those_of_torch(simulated):
    simulated()
    ran = []

    def replaced(name):
        return property(lambda _: ran.append(name))

    names = ("dtype", "shape", "untyped_storage", "grad_fn", "grad", "__dict__")
    odd_type = type("Odd", (torch.Tensor,), {name: replaced(name) for name in names})
    odd = torch.zeros(1_000, requires_grad=True).as_subclass(odd_type)
    made = explain(RuntimeError("CUDA out of memory. Tried to allocate 8 bytes"), {"odd": odd})
    assert not ran
    assert named(made)["odd", ""] == 4_000


def test_views_count_once_and_names_follow_attributes(simulated):
    simulated()

    class Trainer:
        pass

    trainer = Trainer()
    trainer.cache = [torch.ones(1000)[i:] for i in range(5)]
    trainer.inner = Trainer()
    trainer.inner.table = torch.ones(500)
    first = trainer.cache[0]
    trainer.again = [first[:10], first[10:]]
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
    made = explain(error, {"trainer": trainer})
    assert named(made) == {("trainer.cache", ""): 20_000, ("trainer.inner.table", ""): 2000}


def test_an_array_with_several_names_has_its_variable_first(memory):
    best, other = memory.empty(20 * MB), memory.empty(10 * MB)
    names = {
        "history": {"best": best, "all": [best]},
        "best": best,
        "kept": {"first": {"x": other}},
        "many": [memory.empty(MB) for _ in range(3)],
    }
    names["last"] = names["many"][-1]
    text = as_text(explain(failed(lambda: memory.empty(90 * MB)), names), in_notebook=True)
    rows = [line.split("  ")[1] for line in text.split("\n") if line.startswith("  `")]
    assert rows == ["`best`", "`kept['first']['x']`", "`many`"]
    assert "also `history['best']` and 1 other name" in text
    assert "3 arrays" in text


def test_tensors_of_another_thread(memory):
    ready, done = threading.Event(), threading.Event()

    def work():
        loaded = memory.empty(30 * MB)
        ready.set()
        done.wait(60)
        return loaded

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(60)
    try:
        made = explain(failed(lambda: memory.empty(90 * MB)), {})
    finally:
        done.set()
        thread.join()
    assert made.holders[0].name == "loaded"
    assert made.holders[0].where.startswith("in `work` (")


def test_text_and_html_have_the_same_words(memory):
    names = {f"<b>{i}</b>": memory.empty((i + 1) * MB) for i in range(12)}
    made = explain(failed(lambda: memory.empty(90 * MB)), names)
    assert len(made.holders) == 12
    html = as_html(made, in_notebook=True)
    assert "<b>" not in html
    text = as_text(made, in_notebook=True)
    assert "2 more holders with 3.15 MB" in text
    for words in ("Too little was free", "2 more holders with 3.15 MB", "12.6 MB"):
        assert words in html
        assert words in text


def test_shares_are_of_all_memory_in_use(memory):
    memory._blocks[64] = 3 * MB  # of C++ code
    names = {f"of_{i}": memory.empty(5 * MB) for i in range(12)}
    temporary = memory.empty(16 * MB)
    error = failed(lambda: memory.empty(90 * MB))
    del temporary
    text = as_text(explain(error, names), in_notebook=True)
    rows = [line for line in text.split("\n") if line.startswith("  `of_")]
    assert len(rows) == 10
    assert {line.split("`")[-1].strip() for line in rows} == {"5.24 MB   6.3 %"}  # of 79 MiB
    html = as_html(explain(error, names), in_notebook=True)
    assert html.count(">6.3 %<") == 10


def test_garbage_is_not_collected_earlier_than_without(memory):
    class Node:
        pass

    node = Node()
    node.me, node.data = node, memory.empty(20 * MB)
    gone = weakref.ref(node)
    gc.disable()
    try:
        del node
        made = explain(failed(lambda: memory.empty(90 * MB)), {})
        assert gone() is not None
        assert not gc.isenabled()
        assert made.held_by("object") == 20 * MB
    finally:
        gc.enable()
    assert "gc.collect()" in as_text(made, in_notebook=True)
