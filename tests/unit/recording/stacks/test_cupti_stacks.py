"""Stacks read in CUPTI's callbacks, where the calling thread does not hold the GIL."""

import json

import pytest

from epprof_nb.recording.stacks import availability
from tests.helpers import cupti_stub

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)

CODE = """
from epprof_nb.recording.stacks.resolution import resolve
assert _native.prepare_stacks(sys.version_info.minor) is None
_native.start_stacks()
start(all_calls=ALL_CALLS)

def call():
    stub.stub_call(1)

def outer():
    call()
    stub.stub_report(13, 1, 1 << 32, 0, 0)
    stub.stub_report(20, 1, 2 << 32, 1 << 32, 0)

def on_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def begin():
    stub.stub_report_call(1, 307, 99, 0)

RUN
launches, stacks = _native.drain_launches(), _native.drain_stacks()
nodes = _native.cupti_graph_nodes()
ids = {
    "launches": np.frombuffer(launches["stack_id"], np.int32),
    "nodes": np.frombuffer(nodes["stack_id"], np.int64),
}
resolved = resolve([stacks], ids.values())
tree = resolved.stacks
print(json.dumps({
    name: [[(frame.function, frame.line) for frame in tree.frames(row)
            if not frame.file.endswith("forked_python.py")]  # which executes this program
           for row in resolved.rows(found)]
    for name, found in ids.items()
}))
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return cupti_stub.build(tmp_path_factory.mktemp("stub"))


def run(stub, code, *, all_calls=False):
    program = CODE.replace("ALL_CALLS", str(all_calls)).replace("RUN", code)
    return json.loads(cupti_stub.run(stub, program))


def functions(frames):
    return [function for function, _ in frames]


@pytest.mark.parametrize("all_calls", [False, True])
def test_a_call_has_the_frames_of_its_thread(stub, all_calls):
    # A call of the runtime and the call of the driver in it have one stack.
    found = run(stub, "outer()", all_calls=all_calls)["launches"]
    assert len(found) == 1 + all_calls
    assert all(frames == found[0] for frames in found)
    assert functions(found[0]) == ["call", "outer", "<module>"]
    (_, line), (_, caller), _ = found[0]
    assert caller - line == 3


def test_threads_have_their_own_frames(stub):
    found = run(stub, "for _ in range(3): on_thread(outer)")["launches"]
    assert [functions(frames)[:2] for frames in found] == [["call", "outer"]] * 3
    assert functions(found[0])[-1] == "Thread._bootstrap"


def test_threads_without_python_have_no_stack(stub):
    code = """
stub.stub_start_threads(2)
while not len(_native.drain_launches()["stack_id"]): pass
stub.stub_stop_threads()
stub.stub_call(1)
"""
    found = run(stub, code)["launches"]
    assert sum(functions(frames) == ["<module>"] for frames in found) == 1
    assert sum(frames == [] for frames in found) == len(found) - 1


def test_a_call_in_progress_has_its_stack(stub):
    [frames] = run(stub, "begin()")["launches"]
    assert functions(frames) == ["begin", "<module>"]


def test_graph_nodes_have_the_stack_that_created_them(stub):
    created, cloned = run(stub, "outer()")["nodes"]
    assert functions(created) == ["outer", "<module>"]
    assert cloned == []
