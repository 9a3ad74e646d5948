"""Sessions of CUPTI that begin and end while other threads launch work."""

import json

from tests.helpers import cupti_stub
from tests.stress import FACTOR

CODE = """
SESSIONS = {sessions}
stub.stub_start_threads(4)
calls = []
outside = sessions = waits = 0
while sessions < SESSIONS or not waits or not any(map(len, calls)):
    begin = _native.now_ns()
    start(all_calls=sessions % 2 == 0)
    _native.drain_launches()
    parts = []
    for _ in range(3):
        found = _native.drain_launches()
        in_progress = np.frombuffer(found["flags"], np.uint16) & 4 != 0
        columns = ("correlation_id", "start_ns", "end_ns")
        rows = np.stack([np.frombuffer(found[name], np.int64) for name in columns], axis=1)
        domain = np.frombuffer(found["domain"], np.uint16)
        parts.append(np.column_stack([rows, domain])[~in_progress])
        _native.cupti_graph_nodes()
        waits += len(_native.cupti_drain()["awaited.row"])
    _native.cupti_stop()
    rows = np.concatenate(parts)
    outside += int(((rows[:, 1] < begin) | (rows[:, 1] > rows[:, 2])).sum())
    calls.append(rows[:, 0] * 2 + rows[:, 3])
    sessions += 1
stub.stub_stop_threads()
_native.set_recording(ops=False, launches=False)
calls = np.concatenate(calls)
duplicates = len(calls) - len(np.unique(calls))
print(json.dumps([duplicates, outside, stub.stub_ended_in_callback(), len(calls) > 0]))
"""


def test_sessions_begin_and_end_while_threads_launch(tmp_path):
    code = CODE.replace("{sessions}", str(200 * FACTOR))
    printed = cupti_stub.run(cupti_stub.build(tmp_path), code)
    assert json.loads(printed) == [0, 0, 0, True]
