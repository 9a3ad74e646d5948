"""Registration of the provider: library, devices, options, and unchanged behaviour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import CPU, OURS, on_cpu, placement, session
from tests.ort import models, programs


def printed(code):
    """Return the JSON that a program prints last."""
    return json.loads(programs.lines(code)[-1])


def test_the_entry_works_as_a_provider_of_an_ordinary_session(ep, x):
    made = session(models.chain(), ep.provider("host"))
    assert made.get_providers() == [OURS, CPU]
    assert placement(made) == {"first": OURS, "second": OURS, "third": OURS}
    np.testing.assert_allclose(
        made.run(None, {"x": x})[0], on_cpu(models.chain()).run(None, {"x": x})[0], rtol=1e-6
    )


def test_the_library_has_the_helpers_of_packages_with_plugin_providers():
    code = """
import json, onnxruntime as ort
from epprof_nb import ep
ort.register_execution_provider_library("any", ep.get_library_path())
names = [d.ep_name for d in ort.get_ep_devices()]
print(json.dumps([ep.get_ep_name() in names, ep.get_ep_names() == [ep.get_ep_name()]]))
"""
    assert printed(code) == [True, True]


def test_kernels_need_no_pandas():
    code = """
import json, sys, onnxruntime as ort
from epprof_nb import ep
from tests.ort import models
ort.InferenceSession(models.chain(), providers=[ep.provider("host")])
print(json.dumps(sorted({"pandas", "pyarrow"} & set(sys.modules))))
"""
    assert printed(code) == []


def test_an_entry_serves_several_sessions(ep, x):
    entry = ep.provider("host", nodes=["first"])
    first, second = (session(models.chain(), entry) for _ in range(2))
    assert placement(first) == placement(second) == {"first": OURS, "second": CPU, "third": CPU}
    np.testing.assert_array_equal(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0])


def test_the_short_form_is_a_session_with_the_cpu_as_second(ep, x):
    made = ep.session(models.chain(), only=["Relu"])
    assert made.get_providers() == [OURS, CPU]
    assert made.run(None, {"x": x})[0].shape == (2, 4)


def test_nothing_is_registered_until_it_is_asked_for():
    code = """
import json, sys, onnxruntime as ort, epprof_nb
from epprof_nb.core.ort_binding import PROVIDER
epprof_nb.onnxruntime.install()
print(json.dumps([PROVIDER in ort.get_available_providers(), "epprof_nb.ep" in sys.modules]))
"""
    assert printed(code) == [False, False]


def test_registered_it_is_chosen_by_no_policy_and_by_no_other_session():
    code = """
import json, onnxruntime as ort
from tests.ort import models
from epprof_nb import ep
def chosen():
    found = [ort.InferenceSession(models.chain()).get_providers()]
    for policy in ort.OrtExecutionProviderDevicePolicy.__members__.values():
        options = ort.SessionOptions()
        options.set_provider_selection_policy(policy)
        found.append(ort.InferenceSession(models.chain(), options).get_providers())
    return found
before = chosen()
ep.provider("host")
after = chosen()
print(json.dumps([before == after, len(before) > 3]))
"""
    assert printed(code) == [True, True]


def test_a_cuda_device_without_a_driver_is_refused_with_the_reason():
    code = """
import json
from epprof_nb import ep
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda
cuda.DRIVER = "libcuda.so.none"
said = []
for device in ("cuda:0", "cuda"):
    try:
        ep.provider(device)
    except KernelError as error:
        said.append(str(error))
print(json.dumps([said, ep.provider("host")[1]]))
"""
    said, options = printed(code)
    assert len(said) == 2
    assert all("libcuda.so.none: cannot open shared object file" in text for text in said)
    assert all('device="host"' in text for text in said)
    assert options == {"device": "host"}


@pytest.mark.parametrize("device", ["cuda:x", "host:1", "tpu", "cuda:-1"])
def test_another_device_is_refused_with_what_is_supported(ep, device):
    with pytest.raises(KernelError, match='device="host"'):
        ep.provider(device)


def test_unknown_options_are_refused_with_the_known_ones(ep):
    name, options = ep.provider("host")
    with pytest.raises(KernelError, match=r"no option 'speed'\. Its options are device, "):
        session(models.chain(), (name, {**options, "speed": "high"}))


def test_misspelt_options_of_a_session_are_refused_with_the_known_ones(ep):
    with pytest.raises(KernelError, match=r"'enable_cuda_grap'.* use_tf32, enable_cuda_graph,"):
        ep.session(models.chain(), enable_cuda_grap=True)


@pytest.mark.parametrize("option", ["enable_cuda_graph", "prefer_nhwc"])
@pytest.mark.parametrize("value", ["0", "False", "1", None, 2])
def test_a_switch_is_true_or_false(ep, option, value):
    with pytest.raises(KernelError, match=f"{option}={value!r} is neither True nor False"):
        ep.provider("host", **{option: value})


def test_a_type_without_kernel_is_refused(ep):
    message = "no kernel for Softpluss; did you mean 'Softplus'. Otherwise define it with @"
    with pytest.raises(KernelError, match=message):
        ep.provider("host", only=["Softpluss"])
    with pytest.raises(KernelError, match=r"no kernel for QuiteAnother\. Define it with @"):
        ep.provider("host", only=["QuiteAnother", "Relu"])


@pytest.mark.parametrize("value", ["Softplus,Gelu", "Softplus Gelu", "['Softplus']", '{"a": 1}'])
def test_a_text_of_several_operators_is_refused_with_the_format(ep, value):
    name, options = ep.provider("host")
    with pytest.raises(KernelError, match=r"""as a JSON list: '\["Softplus", "Gelu"\]'\."""):
        session(models.chain(), (name, {**options, "only": value}))


def test_a_text_with_one_operator_is_a_name(ep):
    name, options = ep.provider("host")
    assert session(models.chain(), (name, {**options, "only": "Relu"}))


def test_names_of_nodes_that_the_model_lacks_are_refused(ep, x):
    message = r"nodes=: the model has no node 'frist', 'tsal'; did you mean 'first'\? .*verify\(\)"
    for create in (
        lambda **selected: ep.session(models.chain(), **selected),
        lambda **selected: session(models.chain(), ep.provider("host", **selected)),
        lambda **selected: ep.verify(models.chain(), {"x": x}, **selected),
    ):
        with pytest.raises(KernelError, match=message):
            create(nodes=["second", "tsal", "frist"])
        with pytest.raises(KernelError, match=r"no node 'layer9'\. "):
            create(nodes=["layer9"])


def test_a_type_that_the_model_lacks_is_in_a_warning(ep):
    with pytest.warns(UserWarning, match=r"only=: the model has no 'Softplus' node\. ") as seen:
        made = ep.session(models.chain(), only=["Softplus", "Relu"])
    assert [Path(w.filename) for w in seen] == [Path(__file__)]
    assert made.get_providers() == [OURS, CPU]


@pytest.mark.parametrize(
    "selection",
    [{"nodes": ["body_sigmoid"]}, {"only": ["Sigmoid", "Loop"]}, {"nodes": ["loop"]}, {}],
)
def test_names_in_subgraphs_are_names_of_the_model(ep, selection):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ep.session(models.looping(), **selection)


def test_verify_selects_nodes_without_a_warning(ep, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = ep.verify(models.chain(), {"x": x}, only=["Relu", "MatMul"], nodes=["second"])
    assert table["provider"].tolist() == [OURS]


def test_an_empty_selection_is_refused(ep):
    with pytest.raises(KernelError, match="Leave it out"):
        ep.provider("host", nodes=[])


def test_a_forked_child_can_define_kernels_while_another_thread_does(ep):
    from epprof_nb.ep import session_patches
    from epprof_nb.ep.kernel import REGISTRY

    for lock in (REGISTRY._lock, session_patches._lock):
        held, done = threading.Event(), threading.Event()

        def hold(lock=lock, held=held, done=done):
            with lock:
                held.set()
                done.wait(0.2)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            os._exit(0 if lock.acquire(timeout=60) else 1)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()


def test_a_release_without_graphs_says_so_and_runs_eagerly(ep, x):
    import onnxruntime

    release = tuple(int(n) for n in onnxruntime.__version__.split(".")[:2])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = ep.session(models.chain(), enable_cuda_graph=True)
    assert [str(w.message)[:12] for w in told] == ["This release"] * (release < (1, 26))
    for times in range(3):
        want = on_cpu(models.chain()).run(None, {"x": x * times})[0]
        np.testing.assert_allclose(made.run(None, {"x": x * times})[0], want, rtol=1e-6)


def test_the_observer_is_not_added_and_a_wrong_device_is_refused(ep, installed):
    name, options = ep.provider("host")
    made = installed.InferenceSession(models.chain(), providers=[(name, options), CPU])
    assert made.get_providers() == [OURS, CPU]
    with pytest.raises(KernelError, match="device is cuda:9, but ONNX Runtime has chosen host"):
        installed.InferenceSession(
            models.chain(), providers=[(name, {**options, "device": "cuda:9"}), CPU]
        )


def test_a_model_is_a_path_bytes_or_a_model_of_onnx(ep, x, tmp_path):
    serialized = models.chain()
    (tmp_path / "model.onnx").write_bytes(serialized)
    loaded = onnx.load_model_from_string(serialized)
    results = [
        ep.session(model).run(None, {"x": x})[0]
        for model in (serialized, loaded, tmp_path / "model.onnx", str(tmp_path / "model.onnx"))
    ]
    assert all(np.array_equal(result, results[0]) for result in results)
    assert ep.verify(loaded, {"x": x}, repeats=1)["matches"].all()


def test_a_missing_onnxruntime_is_explained():
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('onnxruntime'): raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from epprof_nb import ep\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: Kernels in Python (epprof_nb.ep) run in sessions" in done.stderr
    assert "Run `pip install onnxruntime`" in done.stderr
