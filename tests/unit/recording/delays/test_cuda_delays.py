"""Delays on CUDA devices, with stand-ins for NVIDIA's driver and for libcupti in a process."""

import pytest

from tests.ep.fake_cuda import library
from tests.helpers import cupti_stub
from tests.paths import ROOT

PROGRAM = f"""
sys.path.insert(0, {str(ROOT)!r})
from contextlib import contextmanager
from tests.ep.fake_cuda.library import FakeDriver
from tests.helpers.planted import info
from tests.helpers.tiny import kernel as kernel_row, op as op_row, profile
from epprof_nb.analysis.experiments.candidates import Factor
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.cuda import CudaDelays
from epprof_nb.recording.delays.op_ends import OpEnds
from epprof_nb.recording.delays.spins import spin_on_host

KERNEL, PER_THREAD, CONFIG, GRAPH = 308, 309, 310, 311
CREATED, DESTROYED, CONTEXT_DESTROYED = 3, 4, 2
US = 1_000

stub.stub_launch_to.argtypes = [ctypes.c_uint32] * 2 + [ctypes.c_uint64] * 3
stub.stub_report_stream.argtypes = [ctypes.c_uint32] + [ctypes.c_uint64] * 2
fake = FakeDriver()
assert _native.ep_load_driver(fake.path) == 2
contexts = []
for device in range(2):
    context = ctypes.c_void_p()
    assert fake.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    contexts.append(context.value)

@contextmanager
def current(device=0):
    fake.library.cuCtxPushCurrent_v2(ctypes.c_void_p(contexts[device]))
    yield
    fake.library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

def create_stream(device=0):
    with current(device):
        stream = fake.create_stream()
    stub.stub_report_stream(CREATED, contexts[device], stream)
    return stream

def destroy_stream(stream, device=0):
    stub.stub_report_stream(DESTROYED, contexts[device], stream)
    with current(device):
        fake.destroy_stream(stream)

def launch(correlation, stream, device=0, id=KERNEL):
    stub.stub_launch_to(id, correlation, contexts[device], stream or 0, 0)

@contextmanager
def recording():
    _native.set_recording(ops=True, launches=True)
    start()
    yield
    _native.cupti_stop()
    _native.set_recording(ops=False, launches=False)

def done():
    _native.follow_streams(False)
    assert fake.misuse() == []
    assert not stub.stub_is_subscribed()

_native.set_recording(ops=False, launches=False)
_native.follow_streams(True)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    if library.compiler() is None:
        pytest.skip("the stand-in for the driver needs a C++ compiler")
    return cupti_stub.build(tmp_path_factory.mktemp("cupti"))


@pytest.fixture
def run(stub):
    return lambda code: cupti_stub.run(stub, f"{PROGRAM}\n{code}\ndone()\n")


def test_a_delay_is_as_long_as_ordered_and_measures_itself(run):
    run("""
stream = create_stream()
with recording():
    launch(1, stream)
    launch(2, None)
((number, is_new, exists, correlations), (default, *_)) = _native.launched_streams()
assert (is_new, exists, correlations) == (False, True, [1])
_native.begin_delays()
for at, length in enumerate((0, 10 * US, 300 * US)):
    for of in (number, default):
        assert _native.launch_delay(of, at, length) == (0, 0)
_native.wait_for_delays()
taken = _native.take_delays()
assert sorted(tag for tag, _ in taken) == [0, 0, 1, 1, 2, 2]
assert all(ns >= (0, 10 * US, 300 * US)[tag] for tag, ns in taken)
assert _native.take_delays() == []
assert fake.modules() == 1
_native.end_delays()
assert fake.modules() == 0
""")
