"""Ranges of XLA: programs and instructions as ops, and none of its compiler's passes."""

from __future__ import annotations

import ctypes
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.recording.jax import hlo_lines, nvtx_attachment
from epprof_nb.recording.jax.hlo_lines import HloLines
from epprof_nb.recording.jax.nvtx_attachment import is_xla_attached
from tests.helpers.nvtx_libraries import built, rows

TEXT = """HloModule jit_step, is_scheduled=true

FileNames
1 "/home/me/my model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=26 end_line=26 column=8 end_column=18}
2 {file_name_id=1 function_name_id=1 line=LINE end_line=12 column=12 end_column=42}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%one_line (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %tanh.1 = f32[8]{0} tanh(%a), metadata={op_name="jit(step)/tanh" stack_frame_id=2}
  ROOT %mul.1 = f32[8]{0} multiply(%tanh.1, %tanh.1), metadata={stack_frame_id=2}
}

%two_lines (a.2: f32[8]) -> (f32[8], f32[8]) {
  %a.2 = f32[8]{0} parameter(0), metadata={op_name="x"}
  %tanh.2 = f32[8]{0} tanh(%a.2), metadata={op_name="jit(step)/tanh" stack_frame_id=1}
  ROOT %mul.2 = f32[8]{0} multiply(%tanh.2, %tanh.2), metadata={stack_frame_id=2}
}

ENTRY %main.4 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), metadata={op_name="x" scheduling_name="x.1"}
  %fusion.8 = f32[8]{0} fusion(%x.1), kind=kCustom, calls=%two_lines
  %fusion.9 = f32[8]{0} fusion(%x.1), kind=kLoop, calls=%one_line, metadata={op_name="jit(step)/x"}
  ROOT %add.1 = f32[8]{0} add(%x.1, %x.1), metadata={op_name="jit(step)/a/add" stack_frame_id=2}
}
"""
PROGRAM = b"XlaModule:#hlo_module=jit_step,program_id=7#"
ADD = b"Thunk:#name=jit(step)/a/add,hlo_op=add.1,unique_hlo_op_id=3#"
FUSION = b"Thunk:#hlo_op=fusion.8,unique_hlo_op_id=4#"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return ctypes.CDLL(str(built(tmp_path_factory.mktemp("xla"))))


@pytest.fixture(params=[True, False], ids=["registered", "not registered"])
def within(library, request):
    """A context manager of a range in the domain of XLA's runtime."""

    @contextmanager
    def within(message, domain=b"TSL"):
        library.push_in(domain, message, request.param)
        yield
        library.pop_in(domain)

    return within


@pytest.fixture
def programs(monkeypatch):
    """A list of the programs that JAX holds: pairs of name and text."""
    held = []

    def executables():
        return [
            SimpleNamespace(
                fingerprint=None,
                hlo_modules=lambda name=name, text=text: [
                    SimpleNamespace(name=name, to_string=lambda: text)
                ],
            )
            for name, text in held
        ]

    monkeypatch.setattr(hlo_lines, "live_executables", executables)
    return held


def text(line):
    return TEXT.replace("LINE", str(line))


def ops_of_kernels(prof):
    names, activities = prof.ops["name"], prof.activities
    return [names[op] for op in activities.loc[activities["kind"] == "kernel", "op_id"]]


def launch():
    array = host.to_device(np.ones(4, np.float32))
    host.launch(np.sqrt, array, array)


def test_programs_and_instructions_are_ops_with_their_lines(within, programs):
    programs += [("jit_step", text(12)), ("jit_other", text(13))]
    with epprof_nb.profile() as prof, within(PROGRAM):
        with within(ADD):
            launch()
        with within(FUSION):
            launch()
    assert rows(prof) == [
        ("jit_step", "hlo_module", None, {"program_id": 7}),
        (
            "a/add", "hlo", "jit_step",
            {"hlo_op": "add.1", "op_name": "jit(step)/a/add", "file": "/home/me/my model.py",
             "line": 12},
        ),
        ("fusion.8", "hlo", "jit_step", {"hlo_op": "fusion.8"}),
    ]  # fmt: skip
    assert set(prof.ops["source"]) == {"xla"}
    assert set(prof.ops["category"]) == {"framework"}
    assert ops_of_kernels(prof) == ["a/add", "fusion.8"]


def test_a_fusion_of_one_line_has_that_line(within, programs):
    programs.append(("jit_step", text(12)))
    fusion = b"Thunk:#name=jit(step),hlo_op=fusion.9,unique_hlo_op_id=5#"
    with epprof_nb.profile() as prof, within(PROGRAM), within(fusion):
        launch()
    args = {
        "hlo_op": "fusion.9",
        "op_name": "jit(step)",
        "file": "/home/me/my model.py",
        "line": 12,
    }
    assert rows(prof)[1] == ("fusion.9", "hlo", "jit_step", args)


@pytest.mark.parametrize("name", [b"jit(step),", b""])
def test_a_fusion_is_named_after_what_its_operations_have_in_common(within, programs, name):
    programs.append(("jit_step", text(12)))
    message = b"Thunk:#" + (b"name=" + name if name else b"") + b"hlo_op=fusion.9#"
    with epprof_nb.profile() as prof, within(PROGRAM), within(message):
        launch()
    assert rows(prof)[1][3]["line"] == 12


def test_a_command_buffer_does_not_hide_the_other_instructions(within, programs):
    programs.append(("jit_step", text(12)))
    with epprof_nb.profile() as prof, within(PROGRAM):
        with within(b"Thunk:#hlo_op=command_buffer_1#"):
            launch()
        with within(ADD):
            launch()
    (_, _, _, command_buffer), (*_, add) = rows(prof)[1:]
    assert command_buffer == {"hlo_op": "command_buffer_1"}
    assert add["line"] == 12


def test_instructions_of_a_loop_are_those_of_the_program(within, programs):
    programs.append(("jit_step", text(12)))
    with epprof_nb.profile() as prof, within(PROGRAM), within(FUSION), within(ADD):
        launch()
    found = rows(prof)
    assert [name for name, *_ in found] == ["jit_step", "fusion.8", "a/add"]
    assert found[2][2:] == (
        "fusion.8",
        {
            "hlo_op": "add.1",
            "op_name": "jit(step)/a/add",
            "file": "/home/me/my model.py",
            "line": 12,
        },
    )


def test_a_place_that_two_programs_disagree_on_is_missing(within, programs):
    programs += [("jit_step", text(12)), ("jit_step", text(13))]
    with epprof_nb.profile() as prof, within(PROGRAM), within(ADD):
        launch()
    assert rows(prof)[1][3] == {"hlo_op": "add.1", "op_name": "jit(step)/a/add"}


def test_programs_without_the_instruction_do_not_matter(within, programs):
    programs += [("jit_step", text(12)), ("jit_step", text(13).replace("/a/", "/b/"))]
    with epprof_nb.profile() as prof, within(PROGRAM), within(ADD):
        launch()
    assert rows(prof)[1][3]["line"] == 12


def test_two_programs_of_one_name_are_told_apart(within, programs):
    programs += [("jit_step", text(12)), ("jit_step", text(13).replace("/a/", "/b/"))]
    with epprof_nb.profile() as prof:
        with within(PROGRAM), within(ADD):
            launch()
        with within(PROGRAM.replace(b"7", b"8")), within(ADD.replace(b"/a/", b"/b/")):
            launch()
    assert [(name, args.get("line")) for name, _, _, args in rows(prof)] == [
        ("jit_step", None), ("a/add", 12), ("jit_step", None), ("b/add", 13),
    ]  # fmt: skip


def test_passes_of_the_compiler_have_no_row(within, programs):
    with epprof_nb.profile() as prof, epprof_nb.op("compile"):
        with within(b"XlaCompile:#module=jit_step#"), within(b"XlaPass:#name=cse,program_id=7#"):
            launch()
        with within(b"XlaPass of mine", b"mine"):
            pass
    assert [name for name, *_ in rows(prof)] == ["compile", "XlaPass of mine"]
    assert ops_of_kernels(prof) == ["compile"]


def test_programs_that_the_compiler_tries_have_no_row(within, programs):
    def tried():
        with within(PROGRAM), within(ADD):
            launch()

    with epprof_nb.profile() as prof, epprof_nb.op("jax.compile"):
        _native.xla_compiling(True)
        thread = threading.Thread(target=tried)
        thread.start()
        thread.join()
        with within(b"mine", b"mine"):
            tried()
        _native.xla_compiling(False)
        thread = threading.Thread(target=tried)
        thread.start()
        thread.join()
    assert [(name, parent) for name, _, parent, _ in rows(prof)] == [
        ("jax.compile", None), ("mine", "jax.compile"), ("jit_step", "mine"), ("a/add", "jit_step"),
        ("jit_step", None), ("a/add", "jit_step"),
    ]  # fmt: skip


@pytest.mark.parametrize("message", [b"Thunk:#", b"Thunk:#hlo_op=#", b"other", b"XlaModule:##"])
def test_other_ranges_of_the_domain_stay_as_they_are(within, programs, message):
    with epprof_nb.profile() as prof, within(message):
        pass
    assert rows(prof) == [(message.decode(), "range", None, {"domain": "TSL"})]


def test_a_program_is_read_once_if_it_has_a_fingerprint(monkeypatch):
    read = []

    def executable(fingerprint, name):
        def to_string():
            read.append(name)
            return text(12)

        module = SimpleNamespace(name=name, to_string=to_string)
        return SimpleNamespace(fingerprint=fingerprint, hlo_modules=lambda: [module])

    held = [executable(b"1", "jit_step"), executable(b"2", "jit_other")]
    monkeypatch.setattr(hlo_lines, "live_executables", lambda: held)
    places = HloLines()
    for _ in range(2):
        found = places.of_instructions("jit_step", {"add.1": "jit(step)/a/add", "fusion.8": None})
        assert found == {"add.1": ("/home/me/my model.py", 12)}
    assert places.of_instructions("jit_step", {"add.1": "jit(step)/b/add"}) == {}
    assert read == ["jit_step"]
    held.append(executable(None, "jit_step"))
    for _ in range(2):
        assert places.of_instructions("jit_step", {"fusion.8": None}) == {}
    assert read == ["jit_step"] * 3
    assert places.of_instructions("jit_other", {"add.1": "jit(step)/a/add"}) != {}


@pytest.mark.parametrize(
    ("plugin", "platform", "attached", "ours", "expected"),
    [
        (True, "cuda", False, True, False),
        (True, "cuda", True, True, True),
        (True, "cuda", False, False, True),
        (True, None, False, True, True),
        (True, "cpu", False, True, True),
        (False, "cpu", False, True, True),
    ],
)
def test_whether_the_library_of_jax_is_attached(
    monkeypatch, plugin, platform, attached, ours, expected
):
    if plugin:
        module = SimpleNamespace(__file__="/jax_plugins/xla_cuda13/__init__.py")
        monkeypatch.setitem(sys.modules, "jax_plugins.xla_cuda13", module)
    executable = SimpleNamespace(client=SimpleNamespace(platform=platform))
    monkeypatch.setattr(nvtx_attachment, "live_executables", lambda: [executable] * bool(platform))
    monkeypatch.setattr(nvtx_attachment, "is_ours", lambda: ours)
    paths = ["/jax_plugins/xla_cuda13/xla_cuda_plugin.so"] if attached else ["/usr/lib/other.so"]
    monkeypatch.setattr(_native, "nvtx_attached", lambda: paths)
    assert is_xla_attached() is expected
