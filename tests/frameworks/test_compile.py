"""torch.compile, scripting, tracing and export behave the same with and without a profile."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from tests.frameworks.layers import names_of  # noqa: E402
from tests.frameworks.notes import notes_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))

    def forward(self, values):
        return self.rest(self.linear(values))


@pytest.fixture
def counter():
    from torch._dynamo.testing import CompileCounter  # takes two seconds, which most workers save

    torch._dynamo.reset()
    yield CompileCounter()
    torch._dynamo.reset()


def test_profiles_cause_no_recompilation(named, counter, recwarn):
    model, values = torch.compile(Block(), backend=counter, fullgraph=True), torch.ones(2, 4)
    named(model=model)
    model(values)
    for _ in range(2):
        with epprof_nb.profile() as prof:
            model(values)
        model(values)
    assert counter.frame_count == 1
    assert names_of(prof, "compile") == []
    assert names_of(prof, "module") == ["model"]
    assert [str(warning.message) for warning in recwarn] == []


def test_models_are_compiled_and_copied_in_a_profile(named, counter):
    model, values = Block(), torch.ones(2, 4)
    named(model=model)
    expected = model(values)
    with epprof_nb.profile() as prof:
        compiled = torch.compile(model, backend=counter)
        results = [compiled(values), copy.deepcopy(compiled)(values)]
        results.append(torch.compile(model.__call__, backend="eager")(values))
    assert all(torch.equal(result, expected) for result in results)
    assert counter.frame_count >= 1
    assert len(names_of(prof, "compile")) >= 2
    torch.compile(model, backend=counter)(values)


def test_what_is_compiled_in_a_profile_is_not_compiled_again(named, counter):
    model, values = torch.compile(Block(), backend=counter, fullgraph=True), torch.ones(2, 4)
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
        model(values)
    model(values)
    with epprof_nb.profile() as again:
        model(values)
    assert counter.frame_count == 1
    assert names_of(prof, "compile") == ["torch.compile"]
    assert names_of(again, "compile") == []
    (args,) = prof.ops["args"][prof.ops["op_type"] == "compile"]
    assert args["function"] == "forward"
    assert args["trigger"] == "dynamo"
    assert "recompile_reason" not in args


def test_a_compiled_module_has_the_class_of_the_module_in_it(named, counter):
    model = torch.compile(Block(), backend=counter)
    named(model=model)
    with epprof_nb.profile() as prof:
        model(torch.ones(2, 4))
    assert prof.by_module().loc["model", "class"] == "Block"
    (args,) = prof.ops["args"][prof.ops["name"] == "model"]
    assert args == {"class": "Block", "wrapper": "OptimizedModule"}


def test_a_recompilation_has_its_reason(named, counter):
    from torch._dynamo.utils import CompilationMetrics

    model = torch.compile(Block(), backend=counter, dynamic=False)
    named(model=model)
    with epprof_nb.profile() as prof:
        model(torch.ones(2, 4))
        model(torch.ones(3, 4))
        model(torch.ones(3, 4))
    ops = prof.ops[prof.ops["op_type"] == "compile"]
    if "recompile_reason" in CompilationMetrics.__annotations__:  # from torch 2.7 on
        assert [("recompile_reason" in args) for args in ops["args"]] == [False, True]
        assert "size mismatch" in ops["args"].iloc[1]["recompile_reason"]
    assert prof.by_module().loc["torch.compile", ["type", "calls"]].tolist() == ["compile", 2]
    if "recompile_reason" in CompilationMetrics.__annotations__:
        parents = prof.ops["name"].reindex(ops["parent_op_id"]).astype(str)
        assert parents.tolist() == ["model", "model"]


def test_a_compiled_backward_pass_belongs_to_its_module(named):
    torch._dynamo.reset()
    model = torch.compile(Block(), backend="aot_eager")
    named(model=model)
    for _ in range(2):  # compiled in the first profile
        with epprof_nb.profile() as prof:
            model(torch.ones(2, 4)).sum().backward()
    # This backend calls its graph as a module, too.
    assert names_of(prof, "module") in (["model", "GraphModule"], ["model"])
    assert names_of(prof, "backward")[0] == "model"
    assert prof.by_module().loc["model", "backward_host_ns"] > 0
    assert notes_of(prof) == []


def test_the_capture_of_a_graph_is_no_compilation(named):
    callback = pytest.importorskip("torch._dynamo.callback")
    if not hasattr(callback, "CallbackTrigger"):
        pytest.skip("this release does not tell when it captures")
    trigger = callback.CallbackTrigger.CUDAGRAPH_RECORDING
    inner = Block()
    named(inner=inner)
    with (
        epprof_nb.profile(detail="operators") as prof,
        callback.callback_handler.install_callbacks(trigger, "0/0"),
    ):
        inner(torch.ones(2, 4))
    assert names_of(prof, "compile") == []
    assert names_of(prof, "module")[:2] == ["inner", "inner.linear"]
    assert "aten::linear" in names_of(prof, "operator")


def test_a_reset_of_dynamo_in_a_profile(named, counter):
    model = torch.compile(Block(), backend=counter)
    named(model=model)
    with epprof_nb.profile() as prof:
        model(torch.ones(2, 4))
        torch._dynamo.reset()
        model(torch.ones(2, 4))
    assert names_of(prof, "compile") == ["torch.compile"] * 2


def test_an_import_of_dynamo_in_a_profile_keeps_no_function_of_ours():
    code = textwrap.dedent("""
        import sys
        import epprof_nb
        import torch
        assert "torch._dynamo" not in sys.modules
        with epprof_nb.profile() as prof:
            import torch._dynamo.utils as utils
            model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
            model(torch.ones(2, 4))
        assert utils.unpatched_nn_module_call is torch.nn.Module.__call__
        # Releases before 2.7 name the stages of a compilation by record_function.
        print(prof.ops["name"][prof.ops["category"] == "framework"].tolist())
    """)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['model', 'torch.compile']"


@pytest.mark.parametrize(
    "make",
    [
        torch.jit.script,
        lambda model: torch.jit.trace(model, torch.ones(2, 4)),
        torch.fx.symbolic_trace,
        lambda model: torch.export.export(model, (torch.ones(2, 4),)).module(),
    ],
    ids=["script", "trace", "fx", "export"],
)
def test_other_ways_to_compile(make):
    model, values = Block(), torch.ones(2, 4)
    expected, call = model(values), nn.Module.__call__
    with epprof_nb.profile():
        made = make(model)
        inside = made(values)
    assert torch.allclose(inside, expected)
    assert torch.allclose(made(values), expected)
    assert nn.Module.__call__ is call
