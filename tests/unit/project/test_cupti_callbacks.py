"""Calls that are in progress on other threads when a session begins or ends."""

import json

import pytest

from tests.helpers import cupti_stub

DRIVER, RUNTIME = (1, 307), (2, 211)
CALLS = """
def begin(call, correlation): stub.stub_report_call(*call, correlation, 0)
def end(call, correlation): stub.stub_report_call(*call, correlation, 1)

def launches():
    found = _native.drain_launches()
    widths = {"domain": np.uint16, "flags": np.uint16, "correlation_id": np.uint64}
    start, end = (np.frombuffer(found[name], np.int64) for name in ("start_ns", "end_ns"))
    assert (start <= end).all() and (start > 0).all()
    rows = [np.frombuffer(found[name], width).tolist() for name, width in widths.items()]
    return list(zip(*rows))

DRIVER, RUNTIME = (1, 307), (2, 211)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return cupti_stub.build(tmp_path_factory.mktemp("stub"))


def found(stub, code):
    printed = cupti_stub.run(stub, CALLS + code + "print(json.dumps(found))")
    return [tuple(row) for row in json.loads(printed)]


def test_the_end_of_a_call_that_began_before_the_session_is_ignored(stub):
    code = """
start()
begin(DRIVER, 1)
_native.cupti_stop()
start()
end(DRIVER, 1)
begin(DRIVER, 2)
end(DRIVER, 2)
end(DRIVER, 3)
found = launches()
"""
    assert found(stub, code) == [(0, 0, 2)]


def test_a_call_whose_end_is_not_reported_does_not_matter_to_others(stub):
    code = """
start(all_calls=True)
for correlation in range(1, 100):
    begin(RUNTIME, correlation)
    begin(DRIVER, correlation)
    end(RUNTIME, correlation)
found = launches()
"""
    assert found(stub, code) == [(1, 0, correlation) for correlation in range(1, 100)]


def test_a_call_of_the_runtime_and_its_call_of_the_driver(stub):
    code = """
start(all_calls=True)
begin(RUNTIME, 1)
found = launches()
begin(DRIVER, 1)
found += launches()
end(DRIVER, 1)
end(RUNTIME, 1)
found += launches() + launches()
"""
    in_progress = 4
    assert found(stub, code) == [(1, in_progress, 1), (0, in_progress, 1), (0, 0, 1), (1, 0, 1)]


def test_the_end_of_a_session_waits_for_callbacks(stub):
    code = """
start()
stub.stub_slow_callbacks(100_000)
thread = threading.Thread(target=stub.stub_report, args=(13, 1, 1 << 32, 0, 0))
thread.start()
while not stub.stub_is_in_callback():
    pass
_native.cupti_stop()
found = [[stub.stub_ended_in_callback(), len(_native.cupti_graph_nodes()["node"]) // 8]]
thread.join()
"""
    assert found(stub, code) == [(0, 1)]
