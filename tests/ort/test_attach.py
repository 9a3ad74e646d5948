"""Attaching the observer has no visible effect, and unobserved sessions are reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.ort_releases import check_release
from epprof_nb.onnxruntime import attach
from tests.ort import models, programs
from tests.ort.rows import nodes


def profiled(session, x):
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    return prof


def test_providers_options_and_results_are_those_without_the_observer(installed, x):
    cpu = "CPUExecutionProvider"
    given = (
        {},
        {"providers": [cpu]},
        {"providers": [cpu], "provider_options": [{}]},
        {"providers": [(cpu, {"a": "b"})]},
    )

    def results():
        made = [installed.InferenceSession(models.chain(), **arguments) for arguments in given]
        return [
            (s.get_providers(), s.get_provider_options(), s.run(None, {"x": x})[0]) for s in made
        ]

    epprof_nb.onnxruntime.uninstall()
    before = results()
    available = [p for p in installed.get_available_providers() if p != attach.NAME]
    epprof_nb.onnxruntime.install()
    after = results()
    for a, b in zip(before, after, strict=True):
        assert a[:2] == b[:2]
        np.testing.assert_array_equal(a[2], b[2])
    assert installed.get_available_providers() == available
    assert all(d.ep_name != attach.NAME for d in installed.get_ep_devices())


def test_the_optimised_graph_is_the_same(installed, tmp_path):
    saved = []
    for i, on in enumerate((False, True)):
        (epprof_nb.onnxruntime.install if on else epprof_nb.onnxruntime.uninstall)()
        options = installed.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / f"{i}.onnx")
        installed.InferenceSession(models.branching(), options)
        saved.append((tmp_path / f"{i}.onnx").read_bytes())
    assert saved[0] == saved[1]


def test_nothing_is_registered_before_a_session_is_made():
    code = """
import epprof_nb, onnxruntime as ort
from epprof_nb import _native
epprof_nb.onnxruntime.install()
print(_native.ort_runtime(), len(ort.capi._pybind_state.get_available_providers()))
"""
    assert programs.lines(code)[0].startswith(" ")


@pytest.mark.parametrize("order", ["import first", "install first"])
def test_either_import_order(order, x):
    imports = ["import onnxruntime as ort", "import epprof_nb; epprof_nb.onnxruntime.install()"]
    if order == "install first":
        imports.reverse()
    code = "\n".join(
        [
            *imports,
            "import numpy as np",
            "from tests.ort import models",
            "s = ort.InferenceSession(models.chain())",
            "with epprof_nb.profile() as prof: s.run(None, {'x': np.ones((1, 4), np.float32)})",
            "print((prof.ops['category'] == 'node').sum())",
        ]
    )
    assert programs.lines(code)[0] == "3"


def test_subclasses_are_observed(installed, x):
    class Mine(installed.InferenceSession):
        def __init__(self, model):
            super().__init__(model, providers=["CPUExecutionProvider"])

    assert len(nodes(profiled(Mine(models.chain()), x))) == 3


def test_uninstall_restores_every_function():
    import onnxruntime

    kind = onnxruntime.InferenceSession

    def functions():
        return kind.run, kind._create_inference_session, onnxruntime.get_available_providers

    before, names = functions(), set(vars(kind))
    epprof_nb.onnxruntime.install()
    assert all(a is not b for a, b in zip(before, functions(), strict=True))
    epprof_nb.onnxruntime.uninstall()
    assert functions() == before
    assert set(vars(kind)) == names


def test_the_explicit_form_needs_no_install(x):
    epprof_nb.onnxruntime.uninstall()
    session = epprof_nb.onnxruntime.session(models.chain())
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert len(nodes(profiled(session, x))) == 3


@pytest.mark.parametrize("policy", ["DEFAULT", "PREFER_CPU", "MAX_EFFICIENCY", "PREFER_GPU"])
def test_a_selection_policy_chooses_what_it_chose(installed, x, policy):
    installed.InferenceSession(models.chain())  # now the observer is registered
    assert _native.ort_runtime()
    options = installed.SessionOptions()
    options.set_provider_selection_policy(
        getattr(installed.OrtExecutionProviderDevicePolicy, policy)
    )
    session = installed.InferenceSession(models.chain(), options)
    assert session.get_providers() == ["CPUExecutionProvider"]
    prof = profiled(session, x)
    assert nodes(prof).empty
    assert any("Pass providers=[...]" in note for note in prof.info["notes"])


def test_a_policy_delegate_is_still_asked(installed, x):
    installed.InferenceSession(models.chain())
    asked = []

    def delegate(devices, *_):
        asked.append(len(devices))
        return [d for d in devices if d.ep_name == "CPUExecutionProvider"]

    options = installed.SessionOptions()
    options.set_provider_selection_policy_delegate(delegate)
    installed.InferenceSession(models.chain(), options)
    assert asked


def test_the_same_options_serve_many_sessions(installed, x):
    options = installed.SessionOptions()
    for _ in range(3):
        session = installed.InferenceSession(
            models.chain(), options, providers=["CPUExecutionProvider"]
        )
        assert len(nodes(profiled(session, x))) == 3
    assert not options.has_providers()


def test_the_users_error_is_the_users_own(installed):
    epprof_nb.onnxruntime.uninstall()
    with pytest.raises(Exception) as plain:
        installed.InferenceSession(b"no model", providers=["CPUExecutionProvider"])
    epprof_nb.onnxruntime.install()
    with pytest.raises(type(plain.value)) as seen:
        installed.InferenceSession(b"no model", providers=["CPUExecutionProvider"])
    assert str(seen.value) == str(plain.value)


@pytest.mark.parametrize("options", [None, [{}, {}]])
def test_a_warning_of_an_unknown_provider_is_the_users_own(installed, x, options):
    installed.InferenceSession(models.chain())
    with pytest.warns(UserWarning, match="NoSuchProvider") as seen:
        session = installed.InferenceSession(
            models.chain(), providers=["NoSuchProvider", "CPUExecutionProvider"],
            provider_options=options,
        )  # fmt: skip
    assert not any(attach.NAME in str(w.message) for w in seen)
    assert len(nodes(profiled(session, x))) == 3


def test_a_provider_that_was_asked_for_and_not_given_is_named(installed, x):
    with warnings.catch_warnings(action="ignore"):  # ONNX Runtime's own, of some releases
        session = installed.InferenceSession(
            models.chain(), providers=["NoSuchProvider", "CPUExecutionProvider"]
        )
    prof = profiled(session, x)
    number = str(nodes(prof)["session"].iloc[0])
    assert prof.info["onnxruntime_providers"] == {number: ["CPUExecutionProvider"]}
    assert any("was created for NoSuchProvider" in note for note in prof.info["notes"])
    plain = installed.InferenceSession(models.chain())
    assert not any("was created for" in note for note in profiled(plain, x).info["notes"])


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"])
def test_a_session_without_fusions_is_named(installed, x, level):
    options = installed.SessionOptions()
    options.graph_optimization_level = getattr(installed.GraphOptimizationLevel, level)
    notes = profiled(installed.InferenceSession(models.chain(), options), x).info["notes"]
    named = [note for note in notes if "graph_optimization_level" in note]
    assert len(named) == (level != "ORT_ENABLE_ALL")
    assert all(level in note and "did not fuse" in note for note in named)


def test_a_refused_attachment_is_tried_again_without(x, monkeypatch):
    import onnxruntime

    kind = onnxruntime.InferenceSession
    original = kind._create_inference_session
    made = []

    def refuse(session, providers, *more):
        if any(attach.is_observer(p) for p in providers):
            raise RuntimeError("no such provider")
        made.append((providers, *more))
        original(session, providers, *more)

    monkeypatch.setattr(kind, "_create_inference_session", refuse)
    epprof_nb.onnxruntime.install()
    try:
        given = ["CPUExecutionProvider"]
        session = kind(models.chain(), providers=given)
        prof = profiled(session, x)
    finally:
        epprof_nb.onnxruntime.uninstall()
    assert made[0][0] is given
    assert session.get_providers() == given
    assert nodes(prof).empty
    assert any("did not create it with the observer" in note for note in prof.info["notes"])


def test_a_session_from_before_is_named(x):
    import onnxruntime

    epprof_nb.onnxruntime.uninstall()
    session = onnxruntime.InferenceSession(models.chain())
    epprof_nb.onnxruntime.install()
    try:
        prof = profiled(session, x)
    finally:
        epprof_nb.onnxruntime.uninstall()
    assert any(
        "created before" in note and "Create it again" in note for note in prof.info["notes"]
    )


def test_set_providers_keeps_the_observer(installed, x):
    session = installed.InferenceSession(models.chain())
    session.set_providers(["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert len(nodes(profiled(session, x))) == 3


def test_the_users_run_options_are_left_as_they_were(installed, x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = installed.InferenceSession(models.chain())
    options = installed.RunOptions()
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x}, options)
        session.run(None, {"x": x}, run_options=options)
    assert len(nodes(prof)) == 6
    session.run(None, {"x": x}, options)
    assert list(tmp_path.iterdir()) == []


def test_many_run_options_are_not_kept_alive(installed, x):
    import weakref

    session = installed.InferenceSession(models.chain())
    seen = []
    with epprof_nb.profile():
        for _ in range(20):
            options = installed.RunOptions()
            seen.append(weakref.ref(options))
            session.run(None, {"x": x}, options)
    del options
    assert not any(ref() for ref in seen)


def test_run_profiles_to_a_file_and_to_a_profile(installed, x, tmp_path):
    session = installed.InferenceSession(models.chain())
    options = installed.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=str(tmp_path / "mine"))
    session.run(None, {"x": x}, options)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x}, options)
    assert len(nodes(prof)) == 3
    files = [p for p in tmp_path.iterdir() if p.name.startswith("mine")]
    assert files
    epprof_nb.onnxruntime.disable_profiling(options)
    session.run(None, {"x": x}, options)
    assert [p for p in tmp_path.iterdir() if p.name.startswith("mine")] == files


def test_what_is_no_run_options_is_refused_clearly(installed):
    with pytest.raises(CaptureError, match=r"Pass onnxruntime\.RunOptions"):
        epprof_nb.onnxruntime.enable_profiling(object())


@pytest.mark.parametrize("version", ["1.24.3", "1.9.0", "0.5"])
def test_an_older_release_is_refused_with_what_to_do(version):
    with pytest.raises(CaptureError, match="pip install -U onnxruntime"):
        check_release(version)


def test_exit_with_sessions_alive_and_profiled():
    code = """
import epprof_nb, onnxruntime as ort, numpy as np
from tests.ort import models
epprof_nb.onnxruntime.install()
keep = [ort.InferenceSession(models.chain()) for _ in range(3)]
prof = epprof_nb.profile()
prof.__enter__()
for s in keep: s.run(None, {'x': np.ones((1, 4), np.float32)})
print("end")
"""
    assert programs.lines(code)[0] == "end"


def test_threads_may_make_the_first_sessions_at_once():
    code = """
import threading, epprof_nb, onnxruntime as ort
from epprof_nb.recording.onnxruntime import sessions
from tests.ort import models
epprof_nb.onnxruntime.install()
made = []
def work():
    made.append(ort.InferenceSession(models.chain()))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len({sessions.observed(s).number for s in made} - {None}))
"""
    assert programs.lines(code)[0] == "8"


LOOKED_UP = """
import importlib.util, sys
from epprof_nb import onnxruntime
finders = len(sys.meta_path)
onnxruntime.install()
onnxruntime.install()
print(len(sys.meta_path) - finders)
assert importlib.util.find_spec("onnxruntime")  # as a program that only asks whether it is there
import onnxruntime as ort
print(onnxruntime.installation.installed(), len(sys.meta_path) - finders)
onnxruntime.uninstall()
print(onnxruntime.installation.installed(), len(sys.meta_path) - finders)
"""


def test_a_program_that_looks_for_the_module_first_is_observed():
    # Two modules are awaited: onnxruntime and onnxruntime_genai.
    assert programs.lines(LOOKED_UP)[:3] == ["2", "True 1", "False 0"]
