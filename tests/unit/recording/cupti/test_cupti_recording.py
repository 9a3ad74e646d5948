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


def test_buffers_of_zeros_are_promised_in_a_session_only(library):
    code = """
_native.cupti_configure(buffer_bytes=1 << 16, buffers=2, max_records=100)
found = []
for session in range(2):
    start()
    taken = [external_record(1, correlation) for correlation in range(3)]
    found.append([taken, stub.stub_expects_zeros(), stub.stub_stale_bytes()])
    _native.cupti_stop()
    found.append(stub.stub_expects_zeros())
"""
    assert found(library, code) == [[[1, 1, 1], 1, 0], 0] * 2


def test_cupti_ends_between_sessions_and_starts_anew(library):
    code = """
found = []

def finalize():
    _native.cupti_finalize()
    found.append([stub.stub_finalizations(), stub.stub_clocks()])

finalize()
for session in range(2):
    start()
    finalize()
    _native.cupti_stop()
    finalize()
    finalize()
"""
    # Not before it has been started, and not while it records. Then the clock is registered again.
    assert found(library, code) == [[0, 0], [0, 1], [1, 1], [1, 1], [1, 2], [2, 2], [2, 2]]


def test_events_and_the_rows_that_waited_for_them_are_drained(library):
    code = """
_native.cupti_configure(buffer_bytes=4096, buffers=4, max_records=3)
start()

def record(kind, *fields):
    types, values = zip(("u4", kind), *fields)
    record = np.array([tuple(values)], ",".join(types)).tobytes()
    return stub.stub_record(record, len(record))

def event(correlation, sync):
    # CUpti_ActivityCudaEvent2
    return record(36, *[("u4", v) for v in (correlation, 1, 13, 5, 0, 0, 0)],
                  ("u8", 0), ("u8", 0), ("u8", sync))

def wait(correlation, event, sync, end=110):
    # CUpti_ActivitySynchronization2
    return record(38, ("u4", 2), ("u8", 100), ("u8", end),
                  *[("u4", v) for v in (correlation, 1, 14, event)], ("u8", sync),
                  ("u4", 0), ("u4", 0))

found = [wait(19, 5, 7, end=0), wait(20, 0xFFFFFFFF, 0), wait(21, 5, 8), event(10, 8), event(11, 9)]
for columns in (_native.cupti_drain(), _native.cupti_drain()):
    found.append([
        np.frombuffer(columns[name], dtype).tolist()
        for name, dtype in (("awaited.row", "u4"), ("awaited.event_id", "u4"),
                            ("awaited.sync_id", "u8"), ("event.correlation_id", "u4"),
                            ("event.stream_id", "i4"), ("event.sync_id", "u8"))
    ])
    found.append([columns["unfinished"], columns["lost"]])
found.append(columns["decode_ns"])
"""
    # The first wait has not ended, and the last event is one record too many.
    drained = [[1], [5], [8], [10], [13], [8]]
    assert found(library, code) == [1, 1, 1, 1, 1, drained, [1, 1], [[]] * 6, [0, 0], 0]


CALLS_ON_EVENTS = """
RECORD, STREAM_WAIT, EVENT_WAIT, QUERY, DESTROY, CONTEXT_WAIT = range(320, 326)
NOT_READY = 600
_native.cupti_configure(buffer_bytes=4096, buffers=4, max_records=100)

def call(number, correlation, first=0, second=0, result=0):
    args = [ctypes.c_uint64(first), ctypes.c_uint64(second)]
    stub.stub_call_on(number, correlation, *args, result)
"""


def test_calls_on_events_and_streams_are_waits(library):
    code = """
start()
call(RECORD, 1, 0xE1, 5)
call(STREAM_WAIT, 2, 6, 0xE1)
call(RECORD, 3, 0xE1, 6)
call(EVENT_WAIT, 4, 0xE1)
call(QUERY, 5, 5, result=NOT_READY)
call(QUERY, 6, 5)
call(CONTEXT_WAIT, 7)
call(EVENT_WAIT, 8, 0xE2)
call(QUERY, 9, 500)
call(RECORD, 10, 0xE3, 500)
call(EVENT_WAIT, 11, 0xE3)
raw = _native.cupti_drain()
column = lambda name, dtype: np.frombuffer(raw[name], dtype).tolist()
calls = _native.drain_launches()
starts = dict(zip(np.frombuffer(calls["correlation_id"], np.uint64).tolist(),
                  np.frombuffer(calls["start_ns"], np.int64).tolist()))
correlations = column("correlation_id", "u4")
found = [
    correlations, column("sync_type", "u1"), column("context_id", "i4"), column("stream_id", "i4"),
    [starts[c] for c in correlations] == column("start_ns", "i8"),
    column("event.correlation_id", "u4"), column("event.stream_id", "i4"),
    column("awaited.row", "u4"),
    [column("event.sync_id", "u8").index(n) if n else None
     for n in column("awaited.sync_id", "u8")],
    len({*column("awaited.event_id", "u4")}),
]
"""
    # The second wait for event 0xE1 is for its second record; 0xE2 has none.
    assert found(library, CALLS_ON_EVENTS + code) == [
        [2, 4, 6, 7, 8, 9, 11], [2, 1, 3, 4, 1, 3, 1], [*[3] * 5, 4, 4],
        [1006, -1, 5, -1, -1, 500, -1], True,
        [1, 3, 10], [5, 6, 500], [0, 1, 4, 6], [0, 1, None, 2], 3,
    ]  # fmt: skip


def test_an_event_is_known_in_the_next_session_until_it_is_destroyed(library):
    code = """
start()
call(RECORD, 1, 0xE1, 5)
call(RECORD, 2, 0xE2, 5)
call(DESTROY, 3, 0xE2)
first = np.frombuffer(_native.cupti_drain()["event.sync_id"], np.uint64).tolist()
_native.cupti_stop()
start()
call(EVENT_WAIT, 4, 0xE1)
call(EVENT_WAIT, 5, 0xE2)
second = np.frombuffer(_native.cupti_drain()["awaited.sync_id"], np.uint64).tolist()
found = [second == [first[0], 0]]
"""
    assert found(library, CALLS_ON_EVENTS + code) == [True]


def test_calls_in_a_capture_are_edges_of_its_graph_not_waits(library):
    code = """
BEGIN_CAPTURE, END_CAPTURE = 427, 428
start()
call(BEGIN_CAPTURE, 1, 5)
stub.stub_capture(ctypes.c_uint64(5))
call(RECORD, 2, 0xE1, 5)
call(RECORD, 3, 0xE1, 6)
stub.stub_capture(ctypes.c_uint64(0))
call(END_CAPTURE, 4, 5)
call(RECORD, 5, 0xE1, 5)
found = np.frombuffer(_native.cupti_drain()["event.correlation_id"], np.uint32).tolist()
"""
    assert found(library, CALLS_ON_EVENTS + code) == [3, 5]


def test_waits_beyond_the_limit_of_records_are_counted_as_lost(library):
    code = """
start()
_native.cupti_configure(buffer_bytes=4096, buffers=4, max_records=3)
for correlation in range(1, 8):
    call(RECORD if correlation % 2 else STREAM_WAIT, correlation, 0xE1, 0xE1)
raw = _native.cupti_drain()
found = [len(np.frombuffer(raw["correlation_id"], np.uint32)),
         len(np.frombuffer(raw["event.sync_id"], np.uint64)), raw["lost"]]
"""
    assert found(library, CALLS_ON_EVENTS + code) == [1, 2, 4]


def test_a_forked_child_reads_calls_and_records_like_its_parent(library):
    code = """
import os
_native.cupti_configure(buffer_bytes=4096, buffers=2, max_records=100)
reader, writer = os.pipe()
start()
_native.cupti_stop()
pid = os.fork()
if pid == 0:
    _native.set_recording(ops=True, launches=True)
    _native.cupti_configure(buffer_bytes=4096, buffers=2, max_records=100)
    start()
    stub.stub_call(3)
    external_record(1, 7)
    correlations = np.frombuffer(_native.drain_launches()["correlation_id"], np.uint64)
    records = np.frombuffer(_native.cupti_drain()["external.correlation_id"], np.uint32)
    os.write(writer, json.dumps([correlations.tolist(), records.tolist()]).encode())
    os._exit(0)
found = [os.waitpid(pid, 0)[1]]
os.close(writer)
found += json.loads(os.read(reader, 1000) or b"[]")
"""
    assert found(library, code) == [0, [1, 2, 3], [7]]


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


RECORDER = """
from types import SimpleNamespace
from epprof_nb.core.options import Options
from epprof_nb.recording.cupti import layouts, loading
from epprof_nb.recording.cupti.recorder import CuptiRecorder

for name, module in list(sys.modules.items()):
    if name.startswith("epprof_nb.") and hasattr(module, "_native"):
        module._native = _native  # which sanitizers may have replaced
version = _native.cupti_load(path, path)
loading.load = lambda: (SimpleNamespace(path=path, cuda_major=13), version)

def memset(time_ns):
    layout = layouts.layout_for(version).records["memset"]
    record = bytearray(layout.size)
    record[:4] = np.uint32(2).tobytes()
    for name in ("start", "end"):
        at = layout.fields[name].offset
        record[at : at + 8] = np.uint64(time_ns).tobytes()
    return stub.stub_record(bytes(record), len(record))

def recorded(delivers, offset=0):
    recorder = CuptiRecorder()
    recorder.start(Options())
    began = _native.now_ns()
    if delivers:
        call(CONTEXT_WAIT, 1)
        assert memset(began + offset)
    recorder.sync()
    output = recorder.drain()
    notes, clock = recorder.notes(), recorder.clock["cupti"]
    recorder.stop()
    times = output.activities["start_ns"] - began
    return notes, clock, output.activities.names("kind").to_list(), bool((abs(times) < 10**9).all())
"""


def test_a_recorder_whose_buffers_were_taken_says_so(library):
    code = """
found = []
for context in (0, 7):
    stub.stub_set_context(ctypes.c_uint64(context))
    found += [len(recorded(delivers)[0]) for delivers in (True, False)]
found += recorded(delivers=False)[0]
"""
    *counts, note = found(library, CALLS_ON_EVENTS + RECORDER + code)
    # Without a context, no launch of ours could have been recorded.
    assert counts == [0, 0, 0, 1]
    assert note.startswith("CUPTI delivered no records.")


def test_calls_that_cupti_numbers_anew_in_a_pause_keep_their_own_records(library):
    code = """
from epprof_nb.core.options import Options

recorder = CuptiRecorder()
recorder.start(Options())
parts = []
for _ in range(3):
    call(RECORD, 1, 0xE1, 5)
    call(STREAM_WAIT, 2, 6, 0xE1)
    recorder._pause()
    recorder._resume()
activities = recorder.drain().activities
recorder.stop()
calls = np.frombuffer(_native.drain_launches()["correlation_id"], np.int64)
found = [
    len(np.unique(calls)),
    np.isin(activities["correlation_id"], calls).tolist(),
    (activities["correlation_id"] - activities["event_correlation_id"]).tolist(),
]
"""
    assert found(library, CALLS_ON_EVENTS + RECORDER + code) == [6, [True] * 3, [1] * 3]


def test_only_times_of_records_are_on_a_clock_that_another_profiler_registered(library):
    code = """
found = []
for offset in (0, 10**12):
    stub.stub_set_clock_offset(ctypes.c_uint64(offset))
    found.append(recorded(delivers=True, offset=offset)[1:])
"""
    expected = [["memset", "synchronization"], True]
    assert found(library, CALLS_ON_EVENTS + RECORDER + code) == [
        ["shared", *expected],
        ["calibrated", *expected],
    ]
