"""Marks in generated code: before each call that launches, with the line of its kernel."""

from __future__ import annotations

import types

import pytest

from epprof_nb.recording.torch.compiled_calls import Roots, root_names
from epprof_nb.recording.torch.compiled_modules import _fused_name
from epprof_nb.recording.torch.inductor_lines import marked_functions, restore, switch
from epprof_nb.recording.torch.modules_of_inductor_lines import (
    CompiledCode,
    Kernel,
    modules_of_lines,
    read,
    write,
)

SOURCE = """
import contextlib
log = []
class Function:
    def __init__(self, name):
        self.name = name
    def __call__(self, *args):
        log.append(self.name)
        return self.name
    def run(self, *args):
        log.append(self.name)
    zero_ = __call__
empty_strided_cuda = assert_size_stride = lambda *args: None
addmm, copy, triton_add_0, workspace = map(Function, ("addmm", "copy", "add", "zero"))

# Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
triton_source = "the definition of a kernel"

def partition_0(args):
    # Topologically Sorted Source Nodes: [mul], Original ATen: [aten.mul]
    triton_add_0.run(args)

class Runner:
    def __init__(self):
        self.partitions = [partition_0]
    def call(self, args):
        assert_size_stride(args)
        with contextlib.nullcontext(0):
            buf0 = empty_strided_cuda(8)
            # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
            addmm(args)
            copy(args)
            # Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
            workspace.zero_()
            triton_add_0.run(args)
        fused_gelu_1 = copy
        fused_gelu_1(buf0)
        self.partitions[0](args)
        if args == "fail":
            raise ValueError(args)
        return buf0

runner = Runner()
call = runner.call
"""
COMMENTS = {
    key: f"# Topologically Sorted Source Nodes: [{node}], Original ATen: [{aten}]"
    for key, node, aten in (
        ("mul", "mul", "aten.mul"), ("linear", "linear", "aten.t, aten.addmm"),
        ("add", "add", "aten.add"),
    )
}  # fmt: skip


def chain(name):
    return frozenset([(f"L['self'].{name}",)])


def line_of(text, nth=0):
    lines = [n for n, line in enumerate(SOURCE.splitlines(), 1) if line.strip() == text]
    return lines[nth]


@pytest.fixture
def module():
    made = types.ModuleType("generated")
    exec(compile(SOURCE, "generated.py", "exec"), made.__dict__)
    return made


@pytest.fixture
def marked(module):
    """The module while its functions mark their kernels in its log."""
    lines = [
        line_of(COMMENTS["mul"]), line_of(COMMENTS["linear"]), line_of(COMMENTS["add"], 1),
        line_of("fused_gelu_1(buf0)"),
    ]  # fmt: skip
    functions = marked_functions(module, SOURCE, {line: f"module {line}" for line in lines})
    switch(functions, module, lambda: module.log.append)
    yield module
    restore(functions)


def test_each_launch_has_the_line_of_its_kernel(marked):
    marked.call("args")
    assert marked.log == [
        line_of(COMMENTS["linear"]), "addmm",
        -1, "copy",  # it has no comment, so it is not the kernel above
        line_of(COMMENTS["add"], 1), "zero", "add",
        line_of("fused_gelu_1(buf0)"), "copy",
        -1, line_of(COMMENTS["mul"]), "add", 0, 0,
    ]  # fmt: skip


def test_kernels_of_the_same_modules_have_one_mark(module):
    first, second = line_of(COMMENTS["linear"]), line_of("fused_gelu_1(buf0)")
    kernels = {first: chain("a"), line_of(COMMENTS["add"], 1): None, second: frozenset()}
    functions = marked_functions(module, SOURCE, kernels)
    switch(functions, module, lambda: module.log.append)
    module.call("args")
    restore(functions)
    assert module.log == [first, "addmm", -1, "copy", "zero", "add", "copy", "add", 0, 0]


def test_code_that_fails_ends_its_kernels_and_keeps_its_lines(marked):
    with pytest.raises(ValueError, match="fail") as caught:
        marked.call("fail")
    assert marked.log[-1] == 0
    assert caught.traceback[-1].lineno + 1 == line_of("raise ValueError(args)")
    assert caught.traceback[-1].frame.code.raw.co_qualname == "Runner.call"


def test_restored_code_is_the_original(module):
    before = module.Runner.call.__code__, module.partition_0.__code__
    functions = marked_functions(module, SOURCE, {})
    switch(functions, module, lambda: module.log.append)
    assert module.call.__func__.__code__ is not before[0]
    restore(functions)
    assert (module.Runner.call.__code__, module.partition_0.__code__) == before
    module.call("args")
    assert module.log == ["addmm", "copy", "zero", "add", "copy", "add"]


def test_kernels_in_the_order_of_the_code():
    keys = [COMMENTS["mul"], COMMENTS["linear"], COMMENTS["add"], "fused_gelu_1"]
    kernels = [Kernel(key, chain(str(n))) for n, key in enumerate(keys)]
    # A comment above the definition of a kernel is not a call.
    assert modules_of_lines(SOURCE, kernels) == {
        line_of(COMMENTS["mul"]): chain("0"),
        line_of(COMMENTS["linear"]): chain("1"),
        line_of(COMMENTS["add"], 1): chain("2"),
        line_of("fused_gelu_1(buf0)"): chain("3"),
    }


def test_kernels_in_another_order_have_modules_only_if_these_agree():
    call = "    # Source Nodes: [], Original ATen: [aten.mm]\n    mm()\n"
    other = "    # Source Nodes: [], Original ATen: [aten.add]\n    add()\n"
    mm, add = call.splitlines()[0].strip(), other.splitlines()[0].strip()
    kernels = [Kernel(mm, chain("a")), Kernel(add, chain("b")), Kernel(mm, chain("c"))]
    assert modules_of_lines(call + call + other, kernels) == {1: None, 3: None, 5: chain("b")}
    same = [Kernel(mm, chain("a")), Kernel(add, chain("b")), Kernel(mm, chain("a"))]
    found = modules_of_lines(call + call + other, same)
    assert found == {1: chain("a"), 3: chain("a"), 5: chain("b")}


A, AB = ("L['self'].a",), ("L['self'].a", "L['self'].a.b")
NODES = {"x": (), "linear": AB, "add": A, "mul": A}


def test_modules_are_kept_beside_the_code(tmp_path):
    path = str(tmp_path / "code.py")
    code = CompiledCode("backward", {3: frozenset([AB, ()]), 9: None, 12: frozenset([A])})
    assert read(path, NODES) is None
    write(path, code, NODES)
    kept = read(path, NODES)
    assert (kept.kind, kept.modules) == (code.kind, code.modules)
    assert [entry.name for entry in tmp_path.iterdir()] == ["code.py.epprof.json"]
    write(str(tmp_path / "no folder" / "code.py"), code, NODES)  # is no error
    for damaged in ("{", "[]", '{"format": 1, "nodes": 3}', '{"format": 2}'):
        (tmp_path / "code.py.epprof.json").write_text(damaged)
        assert read(path, NODES) is None


def test_modules_of_another_model_with_the_same_code(tmp_path):
    path = str(tmp_path / "code.py")
    write(path, CompiledCode("forward", {3: frozenset([AB]), 12: frozenset([A])}), NODES)
    first, second = ("L['self'].first",), ("L['self'].second",)
    found = read(path, {"x": (), "linear": first, "add": second, "mul": second})
    assert found.modules == {3: frozenset([first]), 12: frozenset([second])}
    # One module of the other model is two modules in this one.
    found = read(path, {"x": (), "linear": first, "add": first, "mul": second})
    assert found.modules == {3: frozenset([first]), 12: None}
    assert read(path, {"x": (), "linear": first}) is None  # another graph


class Model:
    def __init__(self, **modules):
        self._modules = modules


def test_paths_of_modules_begin_with_a_variable():
    leaf = Model()
    model = Model(blocks=Model(**{"0": Model(up=leaf)}))
    roots = Roots({"L['self']": model, "G['n']": 3})
    for path in (
        "L['self'].blocks.0.up", "L['self']._modules['blocks']._modules['0'].up",
        "L['self'].blocks[0].up",
    ):  # fmt: skip
        assert roots.find(path) is leaf
    for path in ("L['self'].blocks.1", "G['n'].up", "L['other'].up", "self.up", "L['self']-1"):
        assert roots.find(path) is None
    assert root_names(["L['self'].a", "G['net']", "L['self']", "other"]) == (
        "G['net']", "L['self']",
    )  # fmt: skip


def test_names_of_fused_kernels():
    assert _fused_name(["m.a.b", "m.a"]) == ("m.(a + a.b)", ["m.a", "m.a.b"])
    assert _fused_name(["m.a", ""]) == ("m.(a + no module)", ["m.a"])
    many = [f"m.layers.{n}" for n in range(6)]
    assert _fused_name(many) == ("m.layers.(0 + 1 + 2 + 3 more)", many)
