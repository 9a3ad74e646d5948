"""Files and lines of kernels that are written in Python, with stand-ins for the libraries."""

from __future__ import annotations

import sys
import types

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.recording.frameworks.kernel_places import RUNTIMES, KernelFramework
from tests.helpers.tiny import kernel, op, profile

TRITON = next(runtime for runtime in RUNTIMES if runtime.name == "triton")


class Compiled:
    def __init__(self, name):
        self.name = name


class JITFunction:
    """A function of Triton: `run` returns the kernel that it has launched."""

    def __init__(self, function, *names):
        self.fn = function
        self._kernels = [Compiled(name) for name in names or (function.__name__,)]

    def run(self, which=0):
        return self._kernels[which]


def scale(values):
    return values


def shift(values):
    return values


@pytest.fixture
def triton(monkeypatch):
    module = types.ModuleType(TRITON.module)
    module.__spec__ = types.SimpleNamespace(_initializing=False)
    module.JITFunction = type("JITFunction", (JITFunction,), {"run": JITFunction.run})
    monkeypatch.setitem(sys.modules, TRITON.module, module)
    return module


@pytest.fixture
def framework(triton):
    framework = KernelFramework(TRITON)
    framework.start(Options())
    yield framework
    framework.stop()


def line_of(function):
    return function.__code__.co_firstlineno


def test_the_function_of_each_launched_kernel_is_known(triton, framework):
    one, other = triton.JITFunction(scale, "scale", "_Z5scalei"), triton.JITFunction(shift)
    triton.JITFunction(shift, "never launched")
    assert one.run().name == "scale"
    one.run(which=1)
    for _ in range(3):
        other.run()
    assert framework.kernel_places() == [
        ("scale", __file__, line_of(scale)),
        ("scale(int)", __file__, line_of(scale)),
        ("shift", __file__, line_of(shift)),
    ]
    assert framework.notes() == []


def test_the_method_is_put_back(triton):
    run = triton.JITFunction.run
    framework = KernelFramework(TRITON)
    for _ in range(2):
        framework.start(Options())
        assert triton.JITFunction.run is not run
        framework.stop()
        assert triton.JITFunction.run is run
    triton.JITFunction(scale).run()
    assert framework.kernel_places() == []


def test_launches_without_a_kernel_are_left_out(triton, framework):
    function = triton.JITFunction(scale)
    function._kernels = [None]
    assert function.run() is None
    assert framework.kernel_places() == []
    assert framework.notes() == []


class Broken:
    @property
    def name(self):
        raise RuntimeError("no binary \udc80")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Broken(), r"RuntimeError: no binary \udc80"),
        (Compiled(123), "TypeError: bad argument type for built-in operation"),
        (Compiled("a\udc80"), "UnicodeEncodeError: 'utf-8' codec can't encode"),
    ],
)
def test_kernels_that_cannot_be_described_are_counted_in_a_note(triton, tmp_path, broken, reason):
    function = triton.JITFunction(scale)
    function._kernels.append(broken)
    values = host.to_device([1.0])
    with epprof_nb.profile() as prof:
        function.run(which=1)
        function.run()
        host.launch(scale, values)
        host.synchronize()
    assert prof.info["kernel_places"] == {"scale": {"file": __file__, "line": line_of(scale)}}
    [note] = prof.info["notes"]
    assert note.startswith(
        "Places of some kernels of triton are not recorded, because describing 1 kernel failed "
        f"with {reason}"
    )
    prof.save(tmp_path / "p.epprof")
    assert epprof_nb.load(tmp_path / "p.epprof").info["notes"] == [note]


def test_a_release_without_the_method_is_named_in_a_note(triton):
    del triton.JITFunction
    framework = KernelFramework(TRITON)
    framework.start(Options())
    [note] = framework.notes()
    assert note == (
        "Places of kernels of triton are not recorded, because this release has no "
        "triton.runtime.jit.JITFunction.run."
    )
    framework.stop()


def test_by_kernel_has_the_places_of_the_profiles_kernels(triton):
    values = host.to_device([1.0])
    with epprof_nb.profile() as prof:
        triton.JITFunction(scale).run()
        triton.JITFunction(shift).run()
        host.launch(scale, values)
        host.launch(len, values)
        host.synchronize()
    assert prof.info["kernel_places"] == {"scale": {"file": __file__, "line": line_of(scale)}}
    found = prof.by_kernel().set_index("name")["source"]
    assert found["scale"] == f"{__file__}:{line_of(scale)}"
    assert found.isna().sum() == 1


def test_kernels_of_one_name_from_two_places_have_none(triton):
    values = host.to_device([1.0])
    with epprof_nb.profile() as prof:
        triton.JITFunction(scale).run()
        triton.JITFunction(shift, "scale").run()
        host.launch(scale, values)
        host.synchronize()
    assert "kernel_places" not in prof.info
    assert prof.by_kernel()["source"].isna().all()


def test_a_short_name_of_several_kernels_has_no_place():
    names = ["matmul_0d1d2d", "matmul_0d1d", "softmax_0d1d"]
    prof = profile(
        [op(1, "step", 0, 90)],
        [kernel(10 * i, 10 * i + 10, 1, name=name) for i, name in enumerate(names)],
        info={"kernel_places": {name: {"file": "a.py", "line": 3} for name in names}},
    )
    by_name = prof.by_kernel().set_index("name")["source"]
    assert by_name.to_dict() == dict.fromkeys(names, "a.py:3")
    by_short_name = prof.by_kernel(by="short_name").set_index("short_name")["source"]
    assert by_short_name.dropna().to_dict() == {"softmax": "a.py:3"}


def hlo(op_id, start, line=None, parent=1):
    args = {"hlo_op": f"add.{op_id}"} | ({"file": "a.py", "line": line} if line else {})
    return op(op_id, "add", start, start + 10, parent, op_type="hlo", category="framework",
              source="xla", args=args)  # fmt: skip


def test_kernels_of_xla_have_the_line_of_their_instruction():
    prof = profile(
        [op(1, "step", 0, 90), hlo(2, 0, 3), hlo(3, 10, 3), hlo(4, 20, 5), hlo(5, 30)],
        [
            kernel(0, 5, 2, name="one line"), kernel(10, 15, 3, name="one line"),
            kernel(20, 25, 3, name="two lines"), kernel(25, 30, 4, name="two lines"),
            kernel(30, 35, 4, name="partly"), kernel(35, 40, 5, name="partly"),
            kernel(40, 45, 5, name="none"), kernel(50, 55, 1, name="no instruction"),
            kernel(60, 65, 5, capture_op_id=4, name="command buffer"), kernel(70, 75, name="no op"),
        ],
    )  # fmt: skip
    found = prof.by_kernel().set_index("name")["source"]
    assert found.dropna().to_dict() == {"one line": "a.py:3", "command buffer": "a.py:5"}


def test_places_are_saved_and_redacted(tmp_path):
    places = {"k1": {"file": "/home/ann/a.py", "line": 3}}
    prof = profile(
        [op(1, "step", 0, 90)], [kernel(0, 10, 1, name="k1")], info={"kernel_places": places}
    )
    prof.save(tmp_path / "all.epprof")
    prof.save(tmp_path / "shared.epprof", redact="paths")
    loaded, shared = (epprof_nb.load(tmp_path / f"{name}.epprof") for name in ("all", "shared"))
    assert loaded.by_kernel()["source"].tolist() == ["/home/ann/a.py:3"]
    assert shared.by_kernel()["source"].isna().all()
