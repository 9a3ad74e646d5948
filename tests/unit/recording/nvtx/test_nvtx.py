"""Ranges and marks of NVTX as ops, from libraries with copies of NVTX of their own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.commands import doctor_checks
from epprof_nb.recording.nvtx import injection as nvtx_injection
from tests.helpers.nvtx_libraries import built, compiled, rows
from tests.helpers.threads import run_all


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return built(tmp_path_factory.mktemp("nvtx"))


@pytest.fixture(scope="module")
def library(path):
    assert nvtx_injection.is_ours()
    loaded = ctypes.CDLL(str(path))
    loaded.start.restype = ctypes.c_ulonglong
    loaded.end.argtypes = [ctypes.c_ulonglong]
    return loaded


def test_the_interface_is_that_of_the_headers(tmp_path):
    compiled("nvtx_abi.cpp", tmp_path / "abi.o", "-c")


def test_ranges_are_nested_ops_with_the_work_inside(library):
    array = host.to_device(np.ones(4, np.float32))
    with epprof_nb.profile() as prof:
        assert library.push(b"outer") == 0
        assert library.push_wide("innér 名") == 1
        host.launch(np.sqrt, array, array)
        library.mark(b"here")
        assert library.pop() == 1
        assert library.pop() == 0
    assert rows(prof) == [
        ("outer", "range", None, None),
        ("innér 名", "range", "outer", None),
        ("here", "mark", "innér 名", None),
    ]
    assert prof.joined()["range_name"].tolist() == ["innér 名"]
    assert set(prof.ops["source"]) == {"nvtx"}
    assert set(prof.ops["category"]) == {"user"}


def test_ranges_have_domain_category_and_payload(library):
    with epprof_nb.profile() as prof:
        library.push_registered()
        library.domain_pop()
    assert rows(prof) == [
        ("registered 名", "range", None, {"domain": "näme", "category": "seven", "payload": -5})
    ]


@pytest.fixture
def operators():
    """A function that records operators of PyTorch, as its framework does."""
    yield lambda: _native.operators_record(True)
    _native.operators_backward(0)
    _native.operators_record(False)


def operator_rows(prof):
    ops = prof.ops[["name", "op_type", "input_shapes", "sequence_number"]].astype(object)
    return [tuple(None if value != value else value for value in row)
            for row in ops.where(ops.notna(), None).to_numpy()]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "name", "shapes", "number"),
    [
        (b"aten::linear, seq = 16680, op_id = 2", "aten::linear", None, 16680),
        (b"aten::empty, op_id = 3", "aten::empty", None, None),
        (
            (b"aten::addmm, seq = 0, op_id = 7, sizes = [[8], [2, 4], [4, 8], [], []], "
             b"input_op_ids = [(0,-1), (0,-1), (5,0), (0,-1), (0,-1)]"),
            "aten::addmm", "[8], [2,4], [4,8], [], []", 0,
        ),
        (b"aten::zeros, op_id = 8, sizes = [], input_op_ids = []", "aten::zeros", None, None),
        (b"aten::one, op_id = 9, sizes = [[0, 5]]", "aten::one", "[0,5]", None),
        (b"mine, seq = x, op_id = 4", "mine, seq = x", None, None),
        (b"a, op_id = 1, op_id = 2", "a, op_id = 1", None, None),
    ],
)  # fmt: skip
def test_messages_of_pytorchs_observer_are_operators(library, operators, message, name, shapes,
                                                     number):  # fmt: skip
    with epprof_nb.profile() as prof:
        operators()
        assert library.push(message) == 0
        assert library.pop() == 0
    assert operator_rows(prof) == [(name, "operator", shapes, number)]
    assert set(prof.ops["category"]) == {"operator"}


@pytest.mark.parametrize(
    "message",
    [
        b"mine", b"", b", op_id = 3", b"mine, op_id = ", b"mine, op_id = x", b"mine, op_id = 3 and",
        b"mine, op_id = 99999999999999999999", b"mine, seq = 3", b"mine, sizes = [[1]]",
    ],
)  # fmt: skip
def test_other_messages_are_ranges(library, operators, message):
    with epprof_nb.profile() as prof:
        operators()
        library.push(message)
        library.pop()
    assert prof.ops["op_type"].tolist() == ["range"]
    assert prof.ops["name"].tolist() == [message.decode() or "(unnamed)"]


def test_a_node_is_what_its_engine_range_names(library, operators):
    with epprof_nb.profile() as prof:
        operators()
        library.push(b"autograd::engine::evaluate_function: AddBackward0, seq = 3, op_id = 1")
        library.push(b"aten::empty, op_id = 2")
        library.pop()
        library.push(b"AddBackward0, seq = 3, op_id = 3")
        library.push(b"AddBackward0, op_id = 4")
        library.pop()
        library.pop()
        library.pop()
        library.push(b"after")
        library.pop()
    assert [row[:3] for row in rows(prof)] == [
        ("aten::empty", "operator", None), ("AddBackward0", "autograd_node", None),
        ("AddBackward0", "operator", "AddBackward0"), ("after", "range", None),
    ]  # fmt: skip


def test_operators_of_other_threads_need_the_op_of_a_backward_pass(library, operators):
    def push_on_a_thread():
        thread = threading.Thread(target=lambda: (library.push(b"a, op_id = 1"), library.pop()))
        thread.start()
        thread.join()

    with epprof_nb.profile() as prof:
        operators()
        push_on_a_thread()
        with epprof_nb.op("backward"):
            _native.operators_backward(_native.top())
            push_on_a_thread()
        _native.operators_backward(0)
        push_on_a_thread()
    assert [row[:3] for row in rows(prof)] == [
        ("backward", "range", None), ("a", "operator", "backward"),
    ]  # fmt: skip


def test_operators_without_ranges(library, operators):
    with epprof_nb.profile(frameworks=["torch"]) as prof:
        operators()
        library.push(b"mine")
        library.push(b"a, op_id = 1")
        library.pop()
        library.mark(b"here")
        library.end(library.start(b"request"))
        library.domain_push(b"other")
        library.domain_pop()
        library.pop()
        library.push(b"b, op_id = 2")
        library.pop()
    assert prof.ops["name"].tolist() == ["a", "b"]


def test_each_domain_has_a_stack_of_its_own(library):
    with epprof_nb.profile() as prof:
        library.push(b"a")
        assert library.domain_push(b"b") == 0
        assert library.pop() == 0  # ends a, although b is open
        library.mark(b"c")
        library.domain_pop()
    assert [row[:3] for row in rows(prof)] == [
        ("a", "range", None), ("b", "range", "a"), ("c", "mark", "b"),
    ]  # fmt: skip
    assert (prof.ops["status"] == "complete").all()


def test_a_range_may_end_on_another_thread(library):
    with epprof_nb.profile() as prof:
        started = library.start(b"request")
        thread = threading.Thread(target=library.end, args=(started,))
        thread.start()
        thread.join()
        library.end(started)  # has ended
        library.end(12345)  # was never started
        with epprof_nb.op("after"):
            pass
    assert [row[:3] for row in rows(prof)] == [("request", "range", None), ("after", "range", None)]
    assert (prof.ops["status"] == "complete").all()


def test_unbalanced_pushes_and_pops(library):
    with epprof_nb.profile() as first:
        assert library.pop() < 0
        library.push(b"left open")
    assert library.push(b"outside of sessions") < 0
    with epprof_nb.profile() as second:
        assert library.pop() < 0
        library.push(b"own")
        library.pop()
    assert first.ops["status"].tolist() == ["open"]
    assert [row[0] for row in rows(second)] == ["own"]


def test_attributes_that_cannot_be_read(library):
    with epprof_nb.profile() as prof:
        library.push_short()
        library.push_without_attributes()
        library.pop()
        library.pop()
        library.push(None)
        library.pop()
    assert [row[0] for row in rows(prof)] == ["(unnamed)"] * 3


@pytest.mark.parametrize("handle", [123456789, 1 << 31, (1 << 32) + 1, (3 << 32) + 5, 2**47 + 2])
def test_an_unknown_string_has_a_placeholder(library, handle):
    with epprof_nb.profile() as prof:
        library.push_handle(ctypes.c_ulonglong(handle))
        library.pop()
    assert rows(prof) == [("(unknown string)", "range", None, None)]


def test_nothing_is_recorded_without_the_framework(library):
    with epprof_nb.profile(frameworks=["torch"]) as prof:
        assert library.push(b"not recorded") < 0
        library.pop()
    assert len(prof.ops) == 0


def test_threads_push_at_once(library):
    def work(number):
        for _ in range(500):
            library.push(f"thread {number}".encode())
            library.domain_push(b"inner")
            library.domain_pop()
            library.pop()

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work, args=(number,)) for number in range(4))
    inner = prof.ops[prof.ops["name"] == "inner"]
    parents = prof.ops["name"].reindex(inner["parent_op_id"]).astype(str)
    assert parents.value_counts().to_dict() == {f"thread {n}": 500 for n in range(4)}


def test_a_forked_child_records_nothing(library):
    with epprof_nb.profile() as prof:
        library.push(b"parent")
        child = os.fork()
        if not child:
            ok = library.push(b"child") < 0 and library.pop() < 0
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        library.pop()
    assert [row[0] for row in rows(prof)] == ["parent"]


def test_the_python_package(library):
    nvtx = pytest.importorskip("nvtx")
    with epprof_nb.profile() as prof, nvtx.annotate("outer", color="blue", domain="mine"):
        nvtx.mark("here", payload=2.5, color=0x102030)
    assert rows(prof) == [
        ("outer", "range", None, {"domain": "mine", "color": "#0000ff"}),
        ("here", "mark", "outer", {"color": "#102030", "payload": 2.5}),
    ]


def test_the_attached_libraries_are_known(library, path):
    with epprof_nb.profile():
        library.mark(b"asks at the latest now")
    assert str(path) in _native.nvtx_attached()
    check = doctor_checks._nvtx()
    assert (check.status, path.name in check.found) == ("ok", True)


def test_distinct_payloads_have_a_bound(path):
    code = """
        import ctypes, sys
        import epprof_nb
        from epprof_nb import _native
        library = ctypes.CDLL(sys.argv[1])
        push = library.push_numbers
        push.argtypes = [ctypes.c_ulonglong] * 2
        bound = 2**20 - 1  # and a range without anything
        _native.nvtx_record(True)
        push(0, bound - 2)
        for first, end in ((bound - 2, bound + 5), (3, 5)):
            with epprof_nb.profile() as prof:
                push(first, end)
            args = [dict(args) for args in prof.ops["args"]]
            assert {each["domain"] for each in args} == {"n\xe4me"}
            notes = [note for note in prof.info.get("notes", []) if "payload" in note]
            print([each.get("payload") for each in args], *notes)
    """
    first, second = in_a_process(code, path).splitlines()
    assert first.startswith("[1048573, 1048574, None, None, None, None, None] 5 ranges of NVTX")
    assert second == "[3, 4]"


def in_a_process(code, path, **environment):
    plain = {k: v for k, v in os.environ.items() if k != nvtx_injection.VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", "import gc; gc.disable()\n" + textwrap.dedent(code), str(path)],
        env={**plain, "PYTHONPATH": ":".join(sys.path), **environment},
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_a_process_that_only_inherits_the_variable_is_not_attached(path):
    code = """
        import ctypes, sys
        library = ctypes.CDLL(sys.argv[1])
        print(library.push(b"a"), library.push(b"b"))
        import epprof_nb
        from epprof_nb import _native
        print(_native.nvtx_attached())
    """
    printed = in_a_process(code, path, NVTX_INJECTION64_PATH=_native.__file__)
    assert printed == "-2 -2\n[]\n"


def test_the_injection_of_another_tool_stays(path, tmp_path):
    tool = compiled("nvtx_tool.cpp", tmp_path / "tool.so", "-shared", "-fPIC")
    code = """
        import ctypes, os, sys
        import epprof_nb
        from epprof_nb.commands import doctor_checks
        library = ctypes.CDLL(sys.argv[1])
        with epprof_nb.profile() as prof:
            library.push(b"a")
        tool = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        print(tool.times_asked(), len(prof.ops), doctor_checks._nvtx().status)
    """
    assert in_a_process(code, path, NVTX_INJECTION64_PATH=str(tool)) == "1 0 warning\n"


def test_it_can_be_switched_off_for_the_notebook(path):
    code = """
        import ctypes, os, sys
        import epprof_nb
        from epprof_nb.notebook.settings import GpuProfile
        settings = GpuProfile()
        settings.frameworks = ["torch"]
        assert "NVTX_INJECTION64_PATH" not in os.environ
        ctypes.CDLL(sys.argv[1]).push(b"a")
        print(epprof_nb._native.nvtx_attached())
        settings.frameworks = ["torch", "nvtx"]
        print(os.environ["NVTX_INJECTION64_PATH"] == epprof_nb._native.__file__)
    """
    assert in_a_process(code, path) == "[]\nTrue\n"


def test_an_empty_variable_counts_as_not_set(path):
    code = """
        import ctypes, sys
        import epprof_nb
        library = ctypes.CDLL(sys.argv[1])
        with epprof_nb.profile() as prof:
            library.push(b"a")
            library.pop()
        print(prof.ops["name"].tolist(), prof.info.get("notes"))
    """
    assert in_a_process(code, path, NVTX_INJECTION64_PATH="").startswith("['a']")


def test_a_variable_that_names_no_file_leaves_a_note(tmp_path):
    code = """
        import epprof_nb
        from epprof_nb.commands import doctor_checks
        with epprof_nb.profile() as prof:
            pass
        print([note for note in prof.info["notes"] if "NVTX" in note])
        print(doctor_checks._nvtx().found)
    """
    tool = tmp_path / "gone.so"
    printed = in_a_process(code, tool, NVTX_INJECTION64_PATH=str(tool)).splitlines()
    assert f"names {tool}, which does not exist" in printed[0]
    assert "the file does not exist" in printed[1]
