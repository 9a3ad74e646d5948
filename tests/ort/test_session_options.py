"""Sessions with providers in their options are observed, and look the same."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import epprof_nb
from epprof_nb.core import added_providers
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.onnxruntime import attach
from epprof_nb.recording.onnxruntime import sessions
from tests.helpers.threads import run_all
from tests.ort import models
from tests.ort.rows import nodes

CPU = "CPUExecutionProvider"


def profiled(session, x):
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    return prof


def devices(ort, name):
    return [device for device in ort.get_ep_devices() if device.ep_name == name]


def add_cpu_devices(ort, options):
    options.add_provider_for_devices(devices(ort, CPU), {})


def add_cpu_by_name(ort, options):
    options.add_provider(CPU, {})


def add_python_devices(ort, options):
    epprof_nb.ep.provider("host")
    # Without its CUDA devices, which another test may have registered.
    host = [d for d in devices(ort, PROVIDER) if d.ep_metadata["cuda_device_id"] == "-1"]
    options.add_provider_for_devices(host, {"only": '["Relu"]'})


def add_both(ort, options):
    add_python_devices(ort, options)
    add_cpu_by_name(ort, options)


WAYS = [add_cpu_devices, add_cpu_by_name, add_python_devices, add_both]


@pytest.mark.parametrize("add", WAYS)
def test_many_sessions_from_the_same_options_are_each_observed(installed, x, add):
    seen = []
    for on in (False, True):
        (epprof_nb.onnxruntime.install if on else epprof_nb.onnxruntime.uninstall)()
        options = installed.SessionOptions()
        add(installed, options)
        made = [installed.InferenceSession(models.chain(), options) for _ in range(3)]
        assert options.has_providers()
        seen.append([
            (s.get_providers(), s.get_provider_options(), s.run(None, {"x": x})[0].tolist())
            for s in made
        ])  # fmt: skip
    assert seen[0] == seen[1]
    profiles = [profiled(session, x) for session in made]
    expected = PROVIDER if "python" in add.__name__ or "both" in add.__name__ else CPU
    for prof in profiles:
        found = nodes(prof)
        assert set(found["name"]) - {"Memcpy"} == {"first", "second", "third"}
        assert set(found[found["name"] == "first"]["provider"]) == {expected}
        assert not any("not observed" in note for note in prof.info["notes"])
    numbers = [nodes(prof)["session"].iloc[0] for prof in profiles]
    assert len(set(numbers)) == 3


def test_providers_may_be_added_between_two_sessions(installed, x):
    options = installed.SessionOptions()
    add_cpu_devices(installed, options)
    assert len(nodes(profiled(installed.InferenceSession(models.chain(), options), x))) == 3
    add_python_devices(installed, options)
    session = installed.InferenceSession(models.chain(), options)
    assert session.get_providers() == [CPU, PROVIDER]
    # Both the observer and the other provider can report the nodes; one of them does.
    prof = profiled(session, x)
    assert len(nodes(prof)) == 3
    assert len(prof.by_run()) == 1


@pytest.mark.parametrize("policy", ["policy", "delegate"])
def test_a_policy_beside_devices_is_kept_and_noted(installed, x, policy):
    options = installed.SessionOptions()
    add_cpu_devices(installed, options)
    assert len(nodes(profiled(installed.InferenceSession(models.chain(), options), x))) == 3
    if policy == "policy":
        options.set_provider_selection_policy(installed.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    else:
        options.set_provider_selection_policy_delegate(lambda found, *_: found[:1])
    session = installed.InferenceSession(models.chain(), options)
    assert session.get_providers() == [CPU]
    prof = profiled(session, x)
    assert any("hold a policy that selects" in note for note in prof.info["notes"])


def test_options_from_before_are_noted(installed, x):
    epprof_nb.onnxruntime.uninstall()
    options = installed.SessionOptions()
    add_cpu_by_name(installed, options)
    added_providers._added.pop(options, None)  # which sessions with kernels in Python record
    epprof_nb.onnxruntime.install()
    prof = profiled(installed.InferenceSession(models.chain(), options), x)
    assert any("Create the options and the session again" in n for n in prof.info["notes"])
    add_python_devices(installed, options)
    assert not added_providers.added_to(options).is_complete


def test_a_call_that_fails_adds_nothing(installed):
    options = installed.SessionOptions()
    with pytest.raises(TypeError):
        options.add_provider(None)
    with pytest.raises(Exception):  # noqa: B017 - of a kind that ONNX Runtime chooses
        options.add_provider_for_devices([], {})
    assert not options.has_providers()
    assert added_providers.added_to(options).providers == []


def test_options_are_not_kept_alive(installed):
    options = installed.SessionOptions()
    add_cpu_devices(installed, options)
    session = installed.InferenceSession(models.chain(), options)
    seen = weakref.ref(options)
    del options, session
    gc.collect()
    assert seen() is None


def test_threads_may_share_options(installed, x):
    options = installed.SessionOptions()
    add_cpu_devices(installed, options)
    made = []

    def work():
        made.append(installed.InferenceSession(models.chain(), options))

    run_all(threading.Thread(target=work) for _ in range(8))
    assert len({sessions.observed(session).number for session in made} - {None}) == 8
    with epprof_nb.profile() as prof:
        for session in made:
            session.run(None, {"x": x})
    assert len(nodes(prof)) == 24
    assert nodes(prof)["session"].nunique() == 8


def test_a_session_that_could_not_be_created_leaves_no_number(installed, x):
    with pytest.raises(Exception):  # noqa: B017 - of a kind that ONNX Runtime chooses
        installed.InferenceSession(b"no model", providers=[CPU])
    session = installed.InferenceSession(models.chain())
    number = sessions.observed(session).number
    assert set(nodes(profiled(session, x))["session"]) == {number}


def test_the_options_show_no_observer(installed):
    options = installed.SessionOptions()
    add_cpu_devices(installed, options)
    session = installed.InferenceSession(models.chain(), options)
    assert attach.NAME not in session.get_providers()
    assert attach.NAME not in session.get_provider_options()
    assert len(session.get_inputs()) == 1
