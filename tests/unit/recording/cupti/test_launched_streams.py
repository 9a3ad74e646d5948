"""Streams that recorded calls launched to, with a stand-in for libcupti in a process."""

import pytest

from tests.helpers import cupti_stub

PROGRAM = """
HOST_FUNCTION, KERNEL, PER_THREAD, CONFIG, GRAPH = 307, 308, 309, 310, 311
CONTEXT_DESTROYED, CREATED, DESTROYED = 2, 3, 4
stub.stub_launch_to.argtypes = [ctypes.c_uint32] * 2 + [ctypes.c_uint64] * 3
stub.stub_report_stream.argtypes = [ctypes.c_uint32] + [ctypes.c_uint64] * 2
CONTEXT, OTHER = 0x1000, 0x2000

def launch(correlation, stream, context=CONTEXT, id=KERNEL, node=0):
    stub.stub_launch_to(id, correlation, context, stream, node)

def report(what, stream=0, context=CONTEXT):
    stub.stub_report_stream(what, context, stream)

def record(function=lambda: None):
    start()
    function()
    _native.cupti_stop()

def rows():
    return [row[1:] for row in _native.launched_streams()]

_native.follow_streams(True)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return cupti_stub.build(tmp_path_factory.mktemp("cupti"))


@pytest.fixture
def run(stub):
    return lambda code: cupti_stub.run(stub, f"{PROGRAM}\n{code}")


def test_the_first_launches_of_each_stream_are_noted(run):
    run("""
def work():
    for number in range(1, 7):
        launch(number, 0x10)
    launch(7, 0x10, OTHER)
    launch(8, 0x20, id=CONFIG)
    stub.stub_call(1)  # its parameters are not known
record(work)
known = [(False, True, list(range(1, 5))), (False, True, [7]), (False, True, [8])]
assert rows() == known, rows()
""")


def test_each_launch_of_a_graph_is_noted(run):
    run("""
record(lambda: [launch(number, 0x10, id=GRAPH) for number in range(20)])
assert rows() == [(False, True, list(range(20)))]
""")


def test_default_streams_of_a_context_and_of_threads(run):
    run("""
def work():
    launch(1, 0)
    launch(2, 1)  # CU_STREAM_LEGACY
    launch(3, 0, id=PER_THREAD)
    launch(4, 2)  # CU_STREAM_PER_THREAD
    thread = threading.Thread(target=launch, args=(5, 2))
    thread.start()
    thread.join()
record(work)
assert [correlations for *_, correlations in rows()] == [[1, 2], [3, 4], [5]]
""")


def test_launches_in_a_capture_are_no_launches_to_a_stream(run):
    run("""
record(lambda: [launch(1, 0x10, node=1 << 32), launch(2, 0x20)])
assert rows() == [(False, True, [2])]
""")


def test_launches_of_the_profiler_are_left_out(run):
    run("""
stub.stub_set_context(5)
record(lambda: (_native.cupti_first_launch() or 1 / 0, launch(9, 0x10)))
assert rows() == [(False, True, [9])]
""")


def test_streams_that_are_created_and_destroyed(run):
    run("""
def work():
    launch(1, 0x10)
    report(CREATED, 0x20)
    launch(2, 0x20)
    report(DESTROYED, 0x20)
    report(CREATED, 0x20)  # at the same address
    launch(3, 0x20)
    report(CREATED, 0x30)
    report(DESTROYED, 0x30)
    launch(4, 0x30)  # its creation was not seen
record(work)
assert rows() == [
    (False, True, [1]), (True, False, [2]), (True, True, [3]), (False, True, [4])
], rows()
""")


def test_the_end_of_a_stream_is_seen_after_the_session(run):
    run("""
record(lambda: [launch(1, 0x10), launch(2, 0x20), launch(3, 0x30, OTHER), launch(4, 0, OTHER)])
assert stub.stub_is_subscribed()
report(DESTROYED, 0x10)
report(DESTROYED)  # a default stream is never destroyed
report(CONTEXT_DESTROYED, context=OTHER)
assert [exists for _, exists, _ in rows()] == [False, True, False, False]
""")


def test_another_session_keeps_the_streams_and_notes_its_own_launches(run):
    run("""
record(lambda: [report(CREATED, 0x10), launch(1, 0x10), launch(2, 0x20)])
report(DESTROYED, 0x20)
first = [row[0] for row in _native.launched_streams()]
record(lambda: launch(3, 0x10))
assert rows() == [(False, True, [3]), (False, False, [])]
assert [row[0] for row in _native.launched_streams()] == first
""")


def test_sessions_follow_no_streams_unless_asked(run):
    run("""
_native.follow_streams(False)
record(lambda: launch(1, 0x10))
assert not stub.stub_is_subscribed()
assert _native.launched_streams() is None
_native.follow_streams(True)
record(lambda: launch(2, 0x20))
assert rows() == [(False, True, [2])]  # the first could have been destroyed
_native.follow_streams(False)
assert not stub.stub_is_subscribed()
""")


def test_a_session_that_runs_ends_its_subscription_itself(run):
    run("""
def work():
    launch(1, 0x10)
    _native.follow_streams(False)
    assert stub.stub_is_subscribed()
record(work)
assert not stub.stub_is_subscribed()
""")


def test_cupti_is_ended_with_its_subscription(run):
    run("""
record()
_native.cupti_finalize()
assert stub.stub_finalizations() == 1
assert not stub.stub_is_subscribed()
assert _native.launched_streams() is None
record(lambda: launch(1, 0x10))
assert rows() == [(False, True, [1])]
""")
