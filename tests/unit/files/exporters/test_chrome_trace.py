"""Chrome traces: valid JSON, nested slices, arrows between slices, escaped names."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.files.exporters import json_rows
from epprof_nb.files.exporters.activity_tracks import ActivityTracks
from epprof_nb.files.exporters.chrome_trace import to_chrome
from epprof_nb.testing import synthetic_profile
from tests.helpers.chrome_events import slices_and_arrows
from tests.helpers.tiny import activity, call, kernel, line, op, profile


def strict(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture
def device_events(tmp_path):
    def write(some):
        path = tmp_path / "trace.json"
        to_chrome(some, path)
        trace = json.loads(path.read_text(encoding="ascii"), parse_constant=strict)
        assert list(tmp_path.iterdir()) == [path]
        return trace["traceEvents"]

    return write


def tracks(events):
    """Process id to its name, and (process id, thread id) to the track's name."""
    named = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    processes = {key[1]: args["name"] for key, args in named.items() if key[0] == "process_name"}
    threads = {key[1:]: args["name"] for key, args in named.items() if key[0] == "thread_name"}
    return processes, threads


def shown_on(events):
    """Slice name to the names of its process and track."""
    processes, threads = tracks(events)
    slices = [event for event in events if event["ph"] == "X"]
    return {e["name"]: (processes[e["pid"]], threads[e["pid"], e["tid"]]) for e in slices}


def small():
    return profile(
        ops=[line(1, 1, -1_500, 90_001, args={"layer": 3}), op(2, "f", 10, 60_000, 1)],
        activities=[
            kernel(70_123, 80_000, 2, correlation_id=5, grid_x=1, grid_y=2, grid_z=3),
            activity("memcpy", 80_000, 80_001, 1, bytes=4096, stream_id=13, device_id=1),
            activity("synchronization", 0, 85_000, 1, thread_id=1),
        ],
        api_calls=[call(20, 30, correlation_id=5)],
        info={"devices": [{"device_id": 0, "name": "H200", "kind": "gpu"}]},
    )


def test_host_threads_and_streams_are_tracks(device_events):
    assert shown_on(device_events(small())) == {
        "line 1": ("host", "thread 1"),
        "f": ("host", "thread 1"),
        "cuLaunchKernel": ("host", "thread 1"),
        "kernel": ("device 0: H200", "stream 7"),
        "memcpy": ("device 1: unknown", "stream 13"),
        "synchronization": ("device 0: H200", "waits of thread 1"),
    }


def test_no_track_but_a_main_thread_has_its_process_s_id(device_events):
    many = profile(activities=[kernel(0, 10, stream_id=i) for i in range(6)])
    named = {e["args"]["name"]: e for e in device_events(many) if e["name"] == "thread_name"}
    assert sorted(named) == [f"stream {i}" for i in range(6)]
    assert all(e["tid"] != e["pid"] for e in named.values())
    assert len({e["tid"] for e in named.values()}) == 6


def test_the_cell_s_thread_comes_first(device_events):
    two = profile(
        ops=[op(1, "cell", 0, 90, thread_id=8, category="cell"), op(2, "f", 0, 9, thread_id=3)]
    )
    events = device_events(two)
    assert tracks(events)[1] == {(1, 8): "main thread", (1, 3): "thread 3"}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    assert order[8] < order[3]


def test_ops_of_an_earlier_profile_are_left_out(device_events):
    both = profile(ops=[op(1, "now", 5, 9), op(2, "before", 0, 9, status="earlier")])
    assert {e["name"] for e in device_events(both) if e["ph"] in "Xb"} == {"now"}


def test_counters_are_busy_share_and_queued_launches(device_events):
    some = profile(
        activities=[
            kernel(500_000, 1_500_000, correlation_id=1),
            kernel(1_500_000, 2_000_000, correlation_id=2),
            activity("synchronization", 0, 2_000_000, 1, thread_id=1),
            kernel(1_000_000, 2_000_000, device_id=1),
        ],
        api_calls=[call(0, 10, correlation_id=1), call(100_000, 100_010, correlation_id=2)],
    )
    counted = {}
    for event in device_events(some):
        if event["ph"] == "C":
            (value,) = event["args"].values()
            counted.setdefault((event["pid"], event["name"]), []).append((event["ts"], value))
    assert set(counted) == {(pid, name) for pid in (3, 4) for name in ("busy", "queued")}
    # To a two-thousandth of the profile: 1 us.
    assert counted[3, "busy"] == [(0, 0), (500, 100), (2_000, 0)]
    assert counted[3, "queued"] == [(0, 1), (100, 2), (1_500, 1), (2_000, 0)]
    assert counted[4, "busy"] == [(0, 0), (1_000, 100), (2_000, 0)]
    assert counted[4, "queued"] == [(0, 0), (1_000, 1), (2_000, 0)]


def test_busy_counter_adds_up_to_the_busy_time(device_events):
    made_up = synthetic_profile(20_000, seed=4)
    events = [e for e in device_events(made_up) if e["ph"] == "C" and e["name"] == "busy"]
    lasts = [after["ts"] - before["ts"] for before, after in pairwise(events)]
    told = sum(last * e["args"]["%"] / 100 for last, e in zip(lasts, events, strict=False))
    starts, ends = ProfileIndex(made_up).busy(0)
    assert told == pytest.approx(float((ends - starts).sum()) / 1000, rel=1e-3)


def test_times_are_microseconds_to_the_nanosecond(device_events):
    times = {e["name"]: (e["ts"], e["dur"]) for e in device_events(small()) if e["ph"] == "X"}
    assert times["line 1"] == (-1.5, 91.501)
    assert times["kernel"] == (70.123, 9.877)
    assert times["memcpy"] == (80.0, 0.001)


def test_large_times_keep_their_nanoseconds(tmp_path):
    day = 86_400_000_000_000
    path = tmp_path / "trace.json"
    to_chrome(profile([op(1, "f", day + 1, day + 3)]), path)
    assert '"ts":86400000000.001,"dur":0.002' in path.read_text()


def test_details_are_arguments(device_events):
    details = {e["name"]: e["args"] for e in device_events(small()) if e["ph"] == "X"}
    assert details["line 1"] == {"op_id": 1, "line": 1, "count": 1, "args": {"layer": 3}}
    assert details["f"]["args"] is None
    assert details["kernel"]["grid"] == [1, 2, 3]
    assert details["kernel"]["block"] == [None, None, None]
    assert details["kernel"]["op_id"] == 2
    assert details["memcpy"] == {"correlation_id": None, "op_id": 1, "bytes": 4096}


def test_an_arrow_leads_from_the_call_to_each_activity(device_events):
    replayed = profile(
        activities=[
            kernel(100, 200, correlation_id=5),
            kernel(200, 300, correlation_id=5),
            kernel(400, 500, correlation_id=6),
        ],
        api_calls=[call(20, 30, correlation_id=5, thread_id=9)],
    )
    events = device_events(replayed)
    left = {e["id"]: e for e in events if e["ph"] == "s"}
    arrived = {e["id"]: e for e in events if e["ph"] == "f"}
    assert len(left) == len(arrived) == 2
    assert {e["ts"] for e in left.values()} == {0.02}
    assert {e["tid"] for e in left.values()} == {9}
    assert [arrived[i]["ts"] for i in sorted(arrived)] == [0.1, 0.2]
    assert {e["bp"] for e in arrived.values()} == {"e"}
    assert [e["name"] for e in left.values()] == [e["name"] for e in arrived.values()]


HOSTILE = ['"}]}', "\\", "</script><script>alert(1)</script>", "a\nb\x00\u2028", "\udc80", "ü"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_can_break_out(device_events, name):
    events = device_events(
        profile(
            [op(1, name, 0, 10, op_type=name, args={name: name})],
            [activity("kernel", 0, 5, name=name)],
            [call(0, 1, name=name)],
            info={"devices": [{"device_id": 0, "name": name}]},
        )
    )
    assert [e["name"] for e in events if e["ph"] == "X"] == [name] * 3
    assert f"device 0: {name}" in tracks(events)[0].values()


def test_arguments_that_json_lacks_become_strings(device_events):
    events = device_events(profile([op(1, "f", 0, 10, args={"x": float("nan")})]))
    assert [e["args"]["args"] for e in events if e["ph"] == "X"] == [{"x": "NaN"}]


def test_ops_that_cannot_nest_are_asynchronous_slices(device_events):
    events = device_events(
        profile(
            [
                line(1, 2, 0, 900, count=50),
                line(2, 3, 10, 990, count=50),
                op(3, "coroutine", 0, 500, suspended_ns=100),
                op(4, "plain", 0, 10),
            ]
        )
    )
    assert [e["name"] for e in events if e["ph"] == "X"] == ["plain"]
    begun = {(e["id"], e["name"]): e["ts"] for e in events if e["ph"] == "b"}
    ended = {(e["id"], e["name"]): e["ts"] for e in events if e["ph"] == "e"}
    assert (
        list(begun)
        == list(ended)
        == [
            ("op 1", "line 2"),
            ("op 2", "line 3"),
            ("op 3", "coroutine"),
        ]
    )
    assert [round(ended[key] - begun[key], 3) for key in begun] == [0.9, 0.98, 0.5]


def assert_slices_nest(events):
    by_track = {}
    for event in events:
        if event["ph"] == "X":
            span = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            by_track.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in by_track.values():
        enclosing = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while enclosing and enclosing[-1] <= start:
                enclosing.pop()
            assert not enclosing or end <= enclosing[-1]
            enclosing.append(end)
    return by_track


def test_activities_that_overlap_in_a_stream_get_tracks_of_their_own(device_events):
    events = device_events(
        profile(
            activities=[
                *(kernel(start, end) for start, end in [(0, 100), (10, 30), (20, 50), (30, 40)]),
                *(kernel(start, start + 10, stream_id=8) for start in (0, 10)),
            ]
        )
    )
    labels = sorted(name for (_, thread), name in tracks(events)[1].items() if thread)
    assert labels == ["stream 7", "stream 7, overlapping (2)", "stream 7, overlapping (3)",
                      "stream 8"]  # fmt: skip
    for spans in assert_slices_nest(events).values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))


def test_every_slice_of_a_large_profile_nests_and_every_activity_is_there(
    device_events, monkeypatch
):
    count = 6_000
    monkeypatch.setattr(json_rows, "_MAX_ROWS", count // 2)
    made_up = synthetic_profile(count, seed=2)
    events = device_events(made_up)
    assert_slices_nest(events)
    kinds = [e["ph"] for e in events]
    assert kinds.count("X") == 2 * count + len(made_up.tables["ops"])
    waits = (made_up.activities["kind"] == "synchronization").sum()
    assert kinds.count("s") == kinds.count("f") == count - waits


def test_an_empty_profile_is_a_valid_trace(device_events):
    assert [e["args"] for e in device_events(profile())] == [{"name": "host"}]


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        to_chrome(profile(), tmp_path / "nowhere" / "trace.json")


def several_batches(monkeypatch):
    monkeypatch.setattr(json_rows, "_MAX_ROWS", 7)


def awkward():
    return profile(
        ops=[
            line(1, 1, -1_500, 90_001, args={"layer": 3, "x": float("inf")}),
            op(2, "coroutine", 10, 60_000, 1, suspended_ns=5),
            op(3, "coalesced", -999, -1, count=7),
            op(4, "backwards", 50, 40),
            op(5, "suspended backwards", 70, 60, suspended_ns=1),
        ],
        activities=[
            kernel(70_123, 80_000, 2, correlation_id=5, grid_x=1, grid_y=2, grid_z=3),
            kernel(-1, 5, correlation_id=6),
            activity("memcpy", 80_000, 80_001, 1, bytes=4096, stream_id=13, device_id=1),
            activity("memset", 5, 3, bytes=0, stream_id=9),
            activity("synchronization", 0, 85_000, 1, thread_id=1, correlation_id=6),
        ],
        api_calls=[call(20, 30, correlation_id=5), call(-20, 30, correlation_id=6)],
    )


@pytest.mark.parametrize("made", [awkward, lambda: synthetic_profile(3_000, seed=3)])
def test_events_are_those_of_a_writer_that_knows_no_columns(made, device_events, monkeypatch):
    several_batches(monkeypatch)
    written = [e for e in device_events(made()) if e["ph"] in "Xbesf"]
    expected = list(slices_and_arrows(made(), ActivityTracks(made())))
    in_order = [sorted(json.dumps(e, sort_keys=True) for e in es) for es in (written, expected)]
    assert in_order[0] == in_order[1]


@pytest.mark.parametrize("name", ["trace.json.gz", "trace.gz", "trace"])
def test_a_name_that_says_so_or_nothing_gives_a_compressed_trace(name, tmp_path):
    made = synthetic_profile(20_000, seed=1)
    to_chrome(made, tmp_path / name)
    to_chrome(made, tmp_path / "plain.json")
    packed, plain = (tmp_path / of for of in (name, "plain.json"))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.stat().st_size < 0.2 * plain.stat().st_size


def test_a_trace_is_the_same_each_time(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        to_chrome(synthetic_profile(5_000), tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_long_names_make_small_batches():
    sizes = [len(rows) for rows in json_rows.batches(1000, 1 << 20)]
    assert sum(sizes) == 1000
    assert max(sizes) == 64


def test_an_error_while_events_are_made_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"old")

    def broken(*_):
        raise MemoryError("no memory")

    monkeypatch.setattr("epprof_nb.files.exporters.chrome_trace.integers", broken)
    with pytest.raises(MemoryError):
        to_chrome(synthetic_profile(1_000), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_microseconds_are_exact_beyond_the_precision_of_a_double():
    times = np.array([2**62 + 1, -5, -1_000, 0, 999])
    text = bytes(json_rows.join_rows(*json_rows.microseconds(times, " ")))
    assert text == b"4611686018427387.905 -0.005 -1.000 0.000 0.999 "
