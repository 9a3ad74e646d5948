"""Sessions with a stand-in for libcupti: external ids, buffers and stream captures."""

import json

import pytest

from tests.helpers import cupti_stub

PREPARE = """
def op(name):
    return _native.push(_native.intern(name), 0)

def innermost():
    return stub.stub_last_pushed() & ((1 << 40) - 1)

def external_record(number, correlation):
    # CUpti_ActivityExternalCorrelation: kinds, id, correlation id.
    record = np.array([(39, 5, number, correlation, 0)], "u4,u4,u8,u4,u4").tobytes()
    return stub.stub_record(record, len(record))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return cupti_stub.build(tmp_path_factory.mktemp("stub"))


def found(library, code):
    return json.loads(cupti_stub.run(library, PREPARE + code + "print(json.dumps(found))"))


def test_external_ids_follow_ops_that_end_out_of_order(library):
    code = """
start(external=True)
first, second = op("first"), op("second")
_native.pop(first)
is_second = innermost() == second
found = [is_second, stub.stub_pushed()]
_native.pop(second)
found += [stub.stub_pushed()]
"""
    assert found(library, code) == [True, 1, 0]


def test_external_ids_of_an_earlier_session_are_left_out(library):
    code = """
_native.cupti_configure(buffer_bytes=4096, buffers=2, max_records=100)
pushed = []
for _ in range(2):
    _native.set_recording(ops=True, launches=True)
    start(external=True)
    number = op("op")
    pushed.append(stub.stub_last_pushed())
    if len(pushed) < 2:
        _native.cupti_stop()
        _native.set_recording(ops=False, launches=False)
for correlation, external in enumerate(pushed, 1):
    external_record(external, correlation)
columns = _native.cupti_drain()
ids = np.frombuffer(columns["external.id"], np.uint64).tolist()
correlations = np.frombuffer(columns["external.correlation_id"], np.uint32).tolist()
found = [ids == [number], correlations]
"""
    assert found(library, code) == [True, [2]]


def test_buffers_are_used_again(library):
    code = """
_native.cupti_configure(buffer_bytes=4096, buffers=2, max_records=100)
start()
found = [external_record(1, correlation) for correlation in range(5)]
found.append(_native.cupti_state()["buffers_out"])
"""
    assert found(library, code) == [1, 1, 1, 1, 1, 0]


def test_contexts_are_not_synchronized_during_a_capture(library):
    code = """
LAUNCH, BEGIN, END = 307, 427, 428

def call(number, correlation):
    for is_end in (0, 1):
        stub.stub_report_call(1, number, correlation, is_end)

start()
found = []
for correlation, number in enumerate((LAUNCH, BEGIN, END), 1):
    call(number, correlation)
    failures = _native.cupti_sync()
    found.append([failures, stub.stub_synchronizations()])
"""
    # A synchronization would end the capture with an error.
    assert found(library, code) == [[[], 1], [[], 1], [[], 2]]


def test_the_first_launch_of_a_session_is_the_profilers_own(library):
    code = """
PROFILER_INTERNAL = 2
found = []
for context in (0, 7, 7, 9):
    stub.stub_set_context(ctypes.c_uint64(context))
    start()
    launched = _native.cupti_first_launch()
    stub.stub_call(1)
    launches = _native.drain_launches()
    flags = np.frombuffer(launches["flags"], np.uint16) & PROFILER_INTERNAL
    pending, allocations = _native.cupti_pending_records(), stub.stub_allocations()
    found.append([launched, flags.tolist(), pending, allocations])
    _native.cupti_stop()
"""
    # Flags of the calls, records that are pending, and allocations: one in each context.
    assert found(library, code) == [
        [False, [0], 1, 0],
        [True, [2, 0], 2, 1],
        [True, [2, 0], 2, 1],
        [True, [2, 0], 2, 2],
    ]
