"""Delays on CUDA devices, with stand-ins for NVIDIA's driver and for libcupti in a process."""

import pytest

from tests.ep.fake_cuda import library
from tests.helpers import cupti_stub
from tests.paths import ROOT

PROGRAM = f"""
sys.path.insert(0, {str(ROOT)!r})
epprof_nb._native = sys.modules["epprof_nb._native"] = _native  # may be one with sanitizers
from contextlib import contextmanager
from tests.ep.fake_cuda.library import FakeDriver
from tests.helpers.planted import info
from tests.helpers.tiny import kernel as kernel_row, op as op_row, profile
from epprof_nb.analysis.experiments.ops_to_delay import Factor
from epprof_nb.core.errors import ExperimentError
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.delays.cuda import CudaDelays
from epprof_nb.recording.delays.delays_at_op_ends import OpEnds
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


def test_activities_are_on_the_stream_that_their_launch_named(run):
    run("""
streams = [create_stream() for _ in range(2)]
other = create_stream(1)
with recording():
    launch(1, streams[0])
    launch(2, streams[1])
    launch(3, other, 1)
    for number in (4, 5):
        launch(number, streams[1], id=GRAPH)
first, second, third = [row[0] for row in _native.launched_streams()]
delays = CudaDelays()

def row(correlation, stream=7, **more):
    return kernel_row(0, 1, correlation_id=correlation, stream_id=stream, context_id=1, **more)

found = delays.streams(profile((), [
    row(1), row(99), row(2, 8), row(2, 8), row(98, 8), row(97, 9),
    row(3, device_id=1), row(96, device_id=1),
    row(4, 20, graph_id=3), row(4, 21, graph_id=3), row(5, 7, graph_id=3), row(95, 8, graph_id=3),
    row(2, device_id=HOST_DEVICE_ID),
]))
assert found.tolist() == [
    first, first, second, second, second, -1, third, third, second, second, second, -1, -2
], found
assert delays.uncovered(first) == delays.uncovered(third) == ""
assert "is not known" in delays.uncovered(-1)
assert "cannot be delayed" in delays.uncovered(-2)
""")


def test_streams_that_come_and_go_are_not_delayed(run):
    run("""
old, gone = create_stream(), create_stream()
with recording():
    launch(1, old)
    launch(2, gone)
    new = create_stream()
    launch(3, new)
destroy_stream(gone)
delays = CudaDelays()
found = delays.streams(profile((), [
    kernel_row(0, 1, correlation_id=number, stream_id=number, context_id=1) for number in (1, 2, 3)
]))
reasons = [delays.uncovered(stream) for stream in found.tolist()]
assert reasons[0] == ""
assert reasons[1].startswith("its stream was destroyed")
assert reasons[2].startswith("the code creates its stream")
""")


def test_nothing_is_delayed_if_the_recording_noted_no_streams(run):
    run("""
_native.follow_streams(False)
with recording():
    launch(1, create_stream())
try:
    CudaDelays().streams(profile((), [kernel_row(0, 1, correlation_id=1)]))
except ExperimentError as error:
    assert "the streams of the code are not known" in str(error)
else:
    raise AssertionError
""")


OPS = """
streams = [create_stream(device) for device in (0, 1)]
with recording():
    for device, stream in enumerate(streams):
        launch(device + 1, stream, device)
delays = CudaDelays()
numbers = delays.streams(profile((), [
    kernel_row(0, 1, correlation_id=d + 1, device_id=d, context_id=d + 1) for d in (0, 1)
])).tolist()
ends = OpEnds(
    (Factor("first", "device"), Factor("second", "device"), Factor("first", "host")),
    delays, spin_on_host, dict(zip(("first", "second"), numbers)),
)
ends.install()

def repeat(*due):
    ends.begin_repeat(due)
    for name in ("first", "second", "first", "third"):
        with _native.Op(name):
            pass
    return ends.end_repeat()

def refused(*due):
    try:
        repeat(*due)
    except ExperimentError as error:
        return str(error)
    raise AssertionError("not refused")
"""


def test_ops_are_delayed_on_their_streams_of_several_devices(run):
    run(f"""{OPS}
first, second, on_host = repeat({{0: 200 * US, 1: 0}}, {{0: 100 * US}}, {{}})
assert first >= 200 * US and second >= 100 * US and on_host == 0
first, second, on_host = repeat({{1: 200 * US}}, {{}}, {{0: 50 * US}})
assert first >= 200 * US and second == 0 and on_host > 0
assert fake.calls("cuLaunchKernel") == 2 + 4  # the first ones are of no repeat
ends.remove()
assert fake.modules() == 0
""")


def test_a_stream_that_is_being_captured_is_not_delayed(run):
    run(f"""{OPS}
with fake.capturing(streams[0]):
    ends.begin_repeat([{{0: 100 * US}}, {{0: 100 * US}}, {{}}])
    for name in ("first", "second"):
        with _native.Op(name):
            pass
first, second, _ = ends.end_repeat()
assert first == 0 and second >= 100 * US
with fake.capturing(streams[1]):
    assert "still being captured" in refused({{}}, {{}}, {{}})
ends.remove()
""")


def test_a_stream_that_is_destroyed_before_its_delay(run):
    run(f"""{OPS}
destroy_stream(streams[0])
text = refused({{0: 100 * US}}, {{0: 0}}, {{}})
assert text.startswith("first could not be delayed: its stream was destroyed"), text
ends.remove()
""")


def test_a_context_that_is_destroyed_takes_its_delays_along(run):
    run(f"""{OPS}
ends.begin_repeat([{{0: 100 * US}}, {{0: 100 * US}}, {{}}])
for name in ("first", "second"):
    with _native.Op(name):
        pass
stub.stub_report_stream(CONTEXT_DESTROYED, contexts[0], 0)
_, second, _ = ends.end_repeat()
assert second >= 100 * US
assert "its stream was destroyed" in refused({{0: 0}}, {{}}, {{}})
ends.remove()
assert fake.modules() == 1  # the destruction would have taken it
""")


def test_streams_may_be_destroyed_while_other_threads_delay_them(run):
    run("""
for _ in range(100):
    stream = create_stream()
    with recording():
        launch(1, stream)
    number = _native.launched_streams()[-1][0]
    _native.begin_delays()
    begun = threading.Event()
    results = [0]
    def delay():
        while results[-1] == 0:
            results.append(_native.launch_delay(number, 0, 0)[0])
            begun.set()
    thread = threading.Thread(target=delay)
    thread.start()
    begun.wait()
    destroy_stream(stream)
    thread.join()
    assert results[1] == 0
    assert results[-1] in (2, 4)  # destroyed, or too many at once
    assert len(_native.take_delays()) == len(results) - 2
_native.end_delays()
assert fake.modules() == 0
""")


def test_the_default_stream_of_a_thread_is_not_delayed_by_others(run):
    run("""
with recording():
    thread = threading.Thread(target=launch, args=(1, None), kwargs={"id": PER_THREAD})
    thread.start()
    thread.join()
((number, *_),) = _native.launched_streams()
_native.begin_delays()
assert _native.launch_delay(number, 0, 0) == (3, 0)
_native.end_delays()
""")


def test_more_delays_than_there_is_room_for(run):
    run("""
stream = create_stream()
with recording():
    launch(1, stream)
((number, *_),) = _native.launched_streams()
_native.begin_delays()
go_on = threading.Event()
block = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go_on.wait())
with current():
    assert fake.library.fake_launch(ctypes.c_void_p(stream), block, None, None, 0) == 0
results = [_native.launch_delay(number, 7, 0)[0] for _ in range(4097)]
assert results == [0] * 4096 + [4]
assert _native.take_delays() == []
_native.end_delays()
go_on.set()  # they write to memory that was kept
_native.begin_delays()
assert _native.launch_delay(number, 8, 0)[0] == 0
_native.wait_for_delays()
assert [tag for tag, _ in _native.take_delays()] == [8]
_native.end_delays()
assert fake.modules() == 1
""")


@pytest.mark.parametrize(
    "call", ["cuModuleLoadData", "cuModuleGetFunction", "cuMemHostAlloc", "cuLaunchKernel"]
)
def test_a_kernel_that_cannot_be_loaded(run, call):
    run(f"""
stream = create_stream()
with recording():
    launch(1, stream)
fake.fail({call!r}, 2)
try:
    CudaDelays().begin({{}})
except ExperimentError as error:
    assert str(error) == (
        "the device cannot be delayed: {call} failed with CUDA_ERROR_OUT_OF_MEMORY: an error."
    ), error
else:
    raise AssertionError
assert fake.modules() == 0
""")


def test_errors_of_the_device_are_said_and_reach_no_code(run):
    run(f"""{OPS}
fake.fail("cuLaunchKernel", 2)
text = refused({{0: 100 * US}}, {{}}, {{}})
assert text.startswith("first could not be delayed: "), text
with fake.sticky():
    text = refused({{}}, {{}}, {{}})
assert "failed with CUDA_ERROR_ILLEGAL_ADDRESS" in text, text
ends.remove()
""")


def test_a_forked_child_is_not_delayed(run):
    run(f"""{OPS}
import os
child = os.fork()
if not child:
    os._exit(_native.launch_delay(numbers[0], 0, 0)[0])
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
ends.remove()
""")
