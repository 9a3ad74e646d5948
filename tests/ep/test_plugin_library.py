"""The library as users of ONNX Runtime's plugin API meet it: no function of epprof_nb is called."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
from onnxruntime import InferenceSession, SessionOptions, get_ep_devices

from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import registration
from tests.ep.plugin_programs import run
from tests.ort.models import chain


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("EpprofExecutionProvider", ""),
        ("any name", "import epprof_nb.ep"),
        ("EpprofExecutionProvider", "import epprof_nb"),
    ],
)
def test_a_library_registered_by_hand_runs_sessions(name, before):
    run(f"""
{before}
register({name!r})
check(ort.InferenceSession(models.chain(), options()))
check(ort.InferenceSession(models.chain(), providers=[OURS]))
check(ort.InferenceSession(models.chain(), providers=[(OURS, {{}}), CPU]))
""")


def test_the_first_session_of_another_thread_works():
    run("""
register()
def work():
    check(ort.InferenceSession(models.chain(), options()))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")


def test_memory_and_data_of_the_device_need_no_session():
    run("""
register()
device = ours()[0]
for info in [device.memory_info(ort.OrtDeviceMemoryType.DEFAULT)]:
    assert info.name == "EpprofHost", info.name
value = ort.OrtValue.ortvalue_from_numpy(x, "gpu", 0)
np.testing.assert_array_equal(value.numpy(), x)
""")


def test_the_options_of_the_cuda_provider_are_accepted_or_refused_by_name():
    run("""
register()
device = ours()[0]
for prefix in ("", "ep.cuda."):
    for given in ({"device_id": "0"}, {"use_tf32": "1"}, {"prefer_nhwc_layout": "1"},
                  {"user_compute_stream": "0"}, {"gpu_mem_limit": str(2**64 - 1)},
                  {"arena_extend_strategy": "kNextPowerOfTwo"}, {"arena.use_cuda_mempool": "1"},
                  {"arena_extend_strategy": "kSameAsRequested"}, {"enable_cudnn": "0"}):
        given = {prefix + key: value for key, value in given.items()}
        check(ort.InferenceSession(models.chain(), options(**given)))
        check(ort.InferenceSession(models.chain(), providers=[(OURS, given), CPU]))
        check(ort.InferenceSession(models.chain(), providers=[OURS, CPU],
                                   provider_options=[given, {}]))
    of_manual = {"device_id": 0, "arena_extend_strategy": "kNextPowerOfTwo",
                 "cudnn_conv_algo_search": "EXHAUSTIVE", "do_copy_in_default_stream": True}
    of_manual = {prefix + key: value for key, value in of_manual.items()}
    check(ort.InferenceSession(models.chain(), providers=[(OURS, of_manual), CPU]))
    for given, reason in (({"device_id": "9"}, "device_id"), ({"gpu_mem_limit": "10"}, "arena"),
                          ({"user_compute_stream": "16"}, "stream"), ({"speed": "1"}, "speed"),
                          ({"prefer_nhwc_layout": "maybe"}, "neither"),
                          ({"arena.max_mem": "10"}, "arena"), ({"gpu_mem_limit": "-1"}, "bytes"),
                          ({"arena_extend_strategy": "fast"}, "kSameAsRequested"),
                          ({"cudnn_conv_algo_search": "FAST"}, "HEURISTIC"),
                          ({"do_copy_in_default_stream": "False"}, "stream of the session"),
                          ({"arena.cuda_mempool_release_threshold": "1"}, "share one arena"),
                          ({"use_tf23": "1"}, "use_tf32")):
        given = {prefix + key: value for key, value in given.items()}
        refused(lambda: ort.InferenceSession(models.chain(), options(**given)), reason)
        refused(lambda: ort.InferenceSession(models.chain(), providers=[(OURS, given)]), reason)
    for name, value in (("user_compute_stream", "16"), ("user_compute_stream", "here"),
                        ("arena.max_mem", "-1"), ("prefer_nhwc_layout", "maybe"),
                        ("arena.extend_strategy", "fast")):
        given = {prefix + name: value}  # the message has the name that the user wrote
        refused(lambda: ort.InferenceSession(models.chain(), options(**given)), f"{name}=")
config = options()
config.add_session_config_entry("ep.cuda.prefer_nhwc_layout", "maybe")
refused(lambda: ort.InferenceSession(models.chain(), config), "neither 0 nor 1")
both = options(**{"prefer_nhwc": "0", "ep.cuda.prefer_nhwc_layout": "1"})
refused(lambda: ort.InferenceSession(models.chain(), both), "are the same option")
""")


def test_a_device_may_be_chosen_twice():
    run("""
register()
twice = ort.SessionOptions()
twice.set_provider_selection_policy_delegate(lambda devices, *_: [ours()[0]] * 2)
check(ort.InferenceSession(models.chain(), twice))
""")


def test_operators_of_a_new_domain_run_however_the_provider_is_chosen():
    run("""
from epprof_nb import ep
from tests.ep.sessions import model_of
register()
for factor in (2, 3):  # the second one changes the operator of the domain
    def scale(ctx, x): np.multiply(x, factor, out=ctx.out(x.shape, x.dtype))
    ep.kernel("Scale", domain="com.example", types="float32")(scale)
    ep.kernel(f"Scale{factor}", domain=f"com.example{factor}", types="float32")(scale)
    for name, domain in (("Scale", "com.example"), (f"Scale{factor}", f"com.example{factor}")):
        by_name, by_delegate = ort.SessionOptions(), ort.SessionOptions()
        if hasattr(by_name, "add_provider"): by_name.add_provider(OURS, {})
        else: by_name = options()
        by_delegate.set_provider_selection_policy_delegate(lambda devices, *_: ours()[:1])
        for given in (options(), by_name, by_delegate):
            made = ort.InferenceSession(model_of(name, {"x": x}, domain=domain), given)
            assert made.get_providers() == [OURS, CPU]
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * factor)
""")


def test_registrations_come_and_go_with_live_sessions():
    run("""
live = []
for i in range(5):
    register(name := OURS if i % 2 else f"name{i}")
    live.append(check(ort.InferenceSession(models.chain(), options())))
    ort.unregister_execution_provider_library(name)
    assert not ours()
    for session in live: check(session)
from epprof_nb import ep
for _ in range(3):
    live.append(check(ort.InferenceSession(models.chain(), providers=[ep.provider("host"), CPU])))
    ort.unregister_execution_provider_library(OURS)
for entry in (OURS, (OURS, {}), (OURS, {"device": "host"})):
    refused(lambda: ort.InferenceSession(models.chain(), providers=[entry, CPU]), "unregistered")
register()
live.append(check(ort.InferenceSession(models.chain(), providers=[ep.provider("host"), CPU])))
register("again")
live.append(check(ort.InferenceSession(models.chain(), options(ours()[-1]))))
ort.unregister_execution_provider_library("again")
live.append(check(ort.InferenceSession(models.chain(), providers=[OURS])))
ort.unregister_execution_provider_library(OURS)
live.append(check(ort.InferenceSession(models.chain(), providers=[ep.provider("host"), CPU])))
for session in live: check(session)
np.testing.assert_array_equal(ort.OrtValue.ortvalue_from_numpy(x, "gpu", 0).numpy(), x)
""")


def test_profiles_show_the_nodes_of_sessions_that_exist_already():
    run("""
register()
by_hand = check(ort.InferenceSession(models.chain(), options()))
import epprof_nb
from epprof_nb import ep
by_name = ep.session(models.chain())
other = ort.InferenceSession(models.chain(), providers=[CPU])
for made, nodes in ((by_hand, 3), (by_name, 3), (other, 0)):
    with epprof_nb.profile() as prof:
        made.run(None, {"x": x})
    by_node = prof.by_node() if nodes else []
    assert len(by_node) == nodes, by_node
    kernels = prof.activities
    assert len(kernels) == nodes, kernels
    assert not nodes or (kernels["op_id"] > 0).all(), kernels
epprof_nb.onnxruntime.install()
installed = check(ort.InferenceSession(models.chain(), options()))
for made in (by_hand, installed):
    with epprof_nb.profile() as prof:
        made.run(None, {"x": x})
    assert len(prof.ops[prof.ops["category"] == "node"]) == 3, prof.ops
epprof_nb.onnxruntime.uninstall()
for made in (by_hand, installed, check(ort.InferenceSession(models.chain(), options()))):
    with epprof_nb.profile() as prof:
        made.run(None, {"x": x})
    assert len(prof.activities) == 3
""")


def test_memory_streams_and_refusals_are_those_of_the_plugin_api():
    done = run("""
register()
device = ours()[0]
assert device.ep_options == {"device_id": "0"}
assert device.ep_metadata["device"] == "host" and device.ep_metadata["cuda_device_id"] == "-1"
if hasattr(device, "create_sync_stream"):
    assert device.create_sync_stream() is not None
made = check(ort.InferenceSession(models.chain(), options()))
shrinking = ort.RunOptions()
shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "gpu:0")
np.testing.assert_allclose(made.run(None, {"x": x}, shrinking)[0], want, rtol=1e-6)
compiled = options()
compiled.add_session_config_entry("ep.context_enable", "1")
refused(lambda: ort.InferenceSession(models.chain(), compiled), "ep.context_enable=1")
named = ort.SessionOptions()
named.add_session_config_entry("ep.context_enable", "1")
refused(lambda: ort.InferenceSession(models.chain(), named, providers=[OURS]), "context_enable")
logged = options(nodes='["first"]')
logged.log_severity_level = 1
ort.InferenceSession(models.chain(), logged)
""")
    said = [line for line in done.stderr.splitlines() if "leaves node" in line]
    assert len(said) == 2
    assert "'second' (MatMul) to other providers: it is not selected" in said[0]


@pytest.fixture
def found(ep, driver):
    """The CUDA devices."""
    registration.register(0)
    numbers = ("0", "1")
    return [d for d in get_ep_devices() if d.ep_metadata.get("cuda_device_id") in numbers]


def test_devices_of_one_kind_can_be_told_apart(found):
    assert [d.ep_metadata["device"] for d in found] == ["cuda:0", "cuda:1"]
    assert [d.ep_options["device_id"] for d in found] == ["0", "1"]
    keys = ("name", "pci_bus_id")
    assert len({tuple(d.ep_metadata[key] for key in keys) for d in found}) == 2
    assert all(d.ep_metadata["compute_capability"] == "9.0" for d in found)
    assert all(d.ep_metadata["cuda_compute_capability"] == "9.0" for d in found)
    assert all(d.ep_metadata["cuda_device_name"] == d.ep_metadata["name"] for d in found)
    assert all(d.ep_metadata["total_memory"] == str(2**30) for d in found)


@pytest.mark.parametrize(
    ("given", "device"),
    [
        ({"enable_cuda_graph": "1"}, "cuda:0"),
        ({"ep.cuda.use_tf32": "0"}, "cuda:0"),
        ({"user_compute_stream": "1"}, "cuda:0"),
        ({"device_id": "1", "enable_cuda_graph": "1"}, "cuda:1"),
        ({"device": "host", "enable_cuda_graph": "1"}, "host"),
        ({"only": "Add"}, None),
        ({}, None),
    ],
)
def test_options_of_the_cuda_provider_choose_its_device(found, given, device):
    (entry,), _ = registration.with_device([(PROVIDER, given)], None)
    assert entry[1].get("device") == device


@pytest.mark.usefixtures("driver")  # it is built
def test_a_cuda_device_has_the_hardware_device_of_its_gpu():
    """ONNX Runtime lists the second GPU, and another one; the first has the CPU's, as before."""
    if not list(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")):
        pytest.skip("this wheel has no library with OrtGetApiBase")
    run("""
import ctypes as C, pathlib
from epprof_nb.ep import cuda
from tests.ep.fake_cuda import library
cuda.open_driver(library.FakeDriver().path)
P, S, I, T = C.c_void_p, C.c_size_t, C.c_int32, C.c_char_p
runtime = C.CDLL(str(next(pathlib.Path(ort.__file__).parent.glob("capi/libonnxruntime.so.*"))))
runtime.OrtGetApiBase.restype = P
base = C.cast(runtime.OrtGetApiBase(), C.POINTER(P))
api = C.cast(C.CFUNCTYPE(P, C.c_uint32)(base[0])(25), C.POINTER(P))
ep_api = C.cast(C.CFUNCTYPE(P)(api[317])(), C.POINTER(P))
make_pairs, add = C.CFUNCTYPE(None, P)(api[295]), C.CFUNCTYPE(None, P, T, T)(api[296])
make_hardware = C.CFUNCTYPE(P, I, C.c_uint32, C.c_uint32, T, P, P)(ep_api[16])
type_of, hardware_of = C.CFUNCTYPE(I, P)(api[307]), C.CFUNCTYPE(P, P)(api[316])
def hardware(kind, bus_id=None):
    pairs, made = P(), P()
    make_pairs(C.byref(pairs))
    if bus_id: add(pairs, b"pci_bus_id", bus_id)
    assert not make_hardware(kind, 0x10DE, 1, b"NVIDIA", pairs, C.byref(made))
    return made
listed = [hardware(1, b"0000:0a:00.0"), hardware(0), hardware(1), hardware(1, b"0000:02:00.0")]
create = C.CFUNCTYPE(P, T, P, P, P, S, P)(("CreateEpFactories", C.CDLL(PATH)))
factories, count = (P * 2)(), S()
assert not create(cuda.LIBRARY.encode(), base, None, factories, 2, C.byref(count))
found, number = (P * 8)(), S()
for factory in factories[:count.value]:
    supported = C.CFUNCTYPE(P, P, P, S, P, S, P)(C.cast(factory, C.POINTER(P))[3])
    assert not supported(factory, (P * 4)(*listed), 4, found, 8, C.byref(number))
assert number.value == 2, number
assert [hardware_of(found[i]) for i in range(2)] == [listed[1].value, listed[3].value]
assert [type_of(hardware_of(found[i])) for i in range(2)] == [0, 1]
""")


def test_a_session_on_several_devices_is_refused(found):
    options = SessionOptions()
    options.add_provider_for_devices(found, {})
    with pytest.raises(Exception, match=r"a session has one device of .*, and 2 were given"):
        InferenceSession(chain(), options)
