"""Perfetto traces, read back with the messages of the package ``perfetto``."""

import gzip
import sys

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.data.table import Table
from epprof_nb.files.exporters import perfetto, perfetto_packets, perfetto_slices
from epprof_nb.files.exporters.perfetto import to_perfetto
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, nested, op, profile
from tests.paths import DATA


class Read:
    """A trace as a viewer reads it: tracks by path, slices that ends close, counters."""

    def __init__(self, data):
        self.tracks, self.counters, self.slices, self.packets = {}, {}, [], 0
        interned = {"event_names": {}, "event_categories": {}, "debug_annotation_names": {}}
        for packet in Trace.FromString(data).packet:
            self.packets += 1
            assert packet.trusted_packet_sequence_id
            assert bool(packet.sequence_flags & 1) == (self.packets == 1)
            for field, names in interned.items():
                names |= {entry.iid: entry.name for entry in getattr(packet.interned_data, field)}
            if packet.HasField("track_descriptor"):
                self._add_track(packet.track_descriptor)
            elif packet.HasField("track_event"):
                self._add_event(packet.timestamp, packet.track_event, interned)
        assert not any(stack for _, stack, _ in self.tracks.values())

    def _add_track(self, track):
        above = self.tracks[track.parent_uuid][0] if track.parent_uuid else ()
        assert track.uuid not in self.tracks
        self.tracks[track.uuid] = ((*above, track.name), [], track.counter.unit_name)

    def _add_event(self, time, event, interned):
        path, stack, unit = self.tracks[event.track_uuid]
        if event.type == TrackEvent.TYPE_COUNTER:
            assert unit
            self.counters.setdefault(path, []).append((time, event.double_counter_value))
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            args = {
                interned["debug_annotation_names"][arg.name_iid]: getattr(
                    arg, arg.WhichOneof("value")
                )
                for arg in event.debug_annotations
            }
            (category,) = event.category_iids
            stack.append({
                "track": path,
                "name": interned["event_names"][event.name_iid],
                "category": interned["event_categories"][category],
                "start": time,
                "args": args,
                "depth": len(stack),
                "flows": list(event.flow_ids),
                "from": list(event.terminating_flow_ids),
            })  # fmt: skip
        else:
            assert event.type == TrackEvent.TYPE_SLICE_END
            closed = stack.pop()
            assert time >= closed["start"]
            self.slices.append(closed | {"end": time})


@pytest.fixture
def written(tmp_path):
    def write(some):
        path = tmp_path / "run.pftrace"
        to_perfetto(some, path)
        return Read(path.read_bytes())

    return write


def small():
    return profile(
        ops=[
            line(1, 3, -1_500, 90_001, args={"layer": 3, "x": float("nan"), "shape": [1, 2]}),
            op(2, "f", 10, 60_000, 1),
        ],
        activities=[
            kernel(70_123, 80_000, 2, correlation_id=5, grid_x=1, grid_y=2, grid_z=3),
            activity("memcpy", 80_000, 80_001, 1, bytes=4096, stream_id=13, device_id=1),
            activity("synchronization", 0, 85_000, 1, thread_id=1, correlation_id=5),
        ],
        api_calls=[call(20, 30, correlation_id=5)],
        info={
            "devices": [{"device_id": 0, "name": "H200", "kind": "gpu"}],
            "repeats": [[0, 100], [100, 300]],
        },
    )


def test_tracks_slices_and_arguments(written):
    read = written(small())
    shown = {s["name"]: s for s in read.slices}
    assert {name: s["track"] for name, s in shown.items()} == {
        "repeat 0": ("host", "repeats"),
        "repeat 1": ("host", "repeats"),
        "line 3": ("host", "thread 1"),
        "f": ("host", "thread 1"),
        "cuLaunchKernel": ("host", "thread 1"),
        "kernel": ("device 0: H200", "stream 7"),
        "memcpy": ("device 1: unknown", "stream 13"),
        "synchronization": ("device 0: H200", "waits of thread 1"),
    }
    # Times are those of the tables, from the earliest event on.
    assert {n: (s["start"], s["end"]) for n, s in shown.items() if not n.startswith("repeat")} == {
        "line 3": (0, 91_501),
        "f": (1_510, 61_500),
        "cuLaunchKernel": (1_520, 1_530),
        "kernel": (71_623, 81_500),
        "memcpy": (81_500, 81_501),
        "synchronization": (1_500, 86_500),
    }
    assert [shown[name]["depth"] for name in ("line 3", "f", "cuLaunchKernel")] == [0, 1, 2]
    args = shown["line 3"]["args"]
    assert args.pop("args.x") != args.get("args.x")
    assert args == {
        "op_id": 1, "line": 3, "count": 1, "args.layer": 3, "args.shape": "[1, 2]",
    }  # fmt: skip
    assert shown["kernel"]["args"] == {
        "correlation_id": 5, "op_id": 2, "grid_x": 1, "grid_y": 2, "grid_z": 3,
    }  # fmt: skip
    assert shown["memcpy"]["args"]["bytes"] == 4096
    assert [shown[n]["category"] for n in ("line 3", "f", "kernel")] == ["line", "range", "kernel"]


def test_arrows_lead_from_a_call_to_its_activities(written):
    read = written(
        profile(
            activities=[kernel(5, 9, correlation_id=1), *[kernel(i, i, correlation_id=2)
                        for i in (20, 30)], kernel(40, 50)],
            api_calls=[call(1, 2, correlation_id=2), call(3, 4, correlation_id=1)],
        )
    )  # fmt: skip
    ends = {flow: s["start"] for s in read.slices for flow in s["from"]}
    calls = [s for s in read.slices if s["category"] == "api"]
    assert [[ends.pop(flow) for flow in s["flows"]] for s in calls] == [[20, 30], [5]]
    assert not ends


def test_counters_have_units(written):
    read = written(small())
    assert read.counters.keys() == {
        (device, name)
        for device in ("device 0: H200", "device 1: unknown")
        for name in ("busy", "queued")
    }
    assert max(value for _, value in read.counters["device 0: H200", "busy"]) == 100
    assert {t[2] for t in read.tracks.values()} == {"", "%", "launches"}


def test_no_time_is_negative_if_a_repeat_begins_first(written):
    read = written(profile([op(1, "f", 0, 9)], info={"repeats": [[-100, 50], [50, 90]]}))
    assert {s["name"]: (s["start"], s["end"]) for s in read.slices} == {
        "repeat 0": (0, 150),
        "repeat 1": (150, 190),
        "f": (100, 109),
    }


def test_ops_that_do_not_nest_have_tracks_of_their_own(written):
    read = written(
        profile([op(1, "outer", 0, 9), op(2, "merged", 2, 8, count=3), op(3, "old", 0, 5,
                status="earlier")])
    )  # fmt: skip
    assert {s["name"]: s["track"][-1] for s in read.slices} == {
        "outer": "thread 1",
        "merged": "thread 1, overlapping (2)",
    }


@pytest.mark.parametrize(
    ("late", "track"), [(600, "thread 1"), (1_000, "thread 1, overlapping (2)")]
)
def test_calls_that_outlast_the_rounded_end_of_their_node_nest_in_it(written, late, track):
    """ONNX Runtime gives the durations of nodes in whole microseconds."""
    read = written(
        profile(
            ops=[op(1, "run", 0, 90_000), op(2, "node", 10_000, 20_000, 1)],
            api_calls=[call(15_000, 20_000 + late, op_id=2)],
        )
    )
    shown = {s["name"]: s for s in read.slices}
    assert shown["cuLaunchKernel"]["track"] == ("host", track)
    assert shown["cuLaunchKernel"]["end"] == (20_000 if late < 1_000 else 21_000)


def test_every_row_is_in_the_trace(written, monkeypatch):
    made = synthetic_profile(activities=3_000, seed=2)
    for module in (perfetto_packets, perfetto_slices):
        monkeypatch.setattr(module, "BATCH", 100)
    read = written(made)
    on_devices = [s for s in read.slices if s["track"][0] != "host"]
    total = sum(s["end"] - s["start"] for s in on_devices)
    assert total == made.activities["duration_ns"].sum()
    assert len(on_devices) == len(made.activities)
    host = [s for s in read.slices if s["track"][0] == "host"]
    assert len(host) == len(made.ops) + len(made.api_calls)
    ids = {s["args"]["op_id"] for s in host if "op_id" in s["args"]}
    assert ids == set(made.ops.index)


intervals = st.tuples(st.integers(-50, 50), st.integers(0, 30))


@given(st.lists(intervals), st.lists(intervals))
def test_any_times_make_a_valid_trace(tmp_path_factory, ops, activities):
    some = profile(
        ops=[op(i, f"op {i}", a, a + d) for i, (a, d) in enumerate(ops, 1)],
        activities=[kernel(a, a + d) for a, d in activities],
    )
    path = tmp_path_factory.mktemp("any") / "run.pftrace"
    to_perfetto(some, path)
    slices = Read(path.read_bytes()).slices
    durations = sorted(s["end"] - s["start"] for s in slices)
    assert durations == sorted(d for _, d in [*ops, *activities])


def test_any_device_number_can_be_written(written):
    largest = 2**31 - 1
    read = written(profile(activities=[kernel(0, 5), kernel(5, 9, device_id=largest)]))
    slices = sorted(read.slices, key=lambda found: found["start"])
    devices = [found["track"][0] for found in slices]
    assert devices == ["device 0: unknown", f"device {largest}: unknown"]


def test_any_name_can_be_written(written):
    hostile = "\ud800 \x00 " + "x" * 10_000
    big = {"n": 2**70, "s": "\udfff", "none": None}
    read = written(profile([op(2**62, hostile, 0, 9, args=big)]))
    (only,) = read.slices
    assert only["name"] == hostile.replace("\ud800", "?")
    assert only["args"]["args.n"] == str(2**70)
    assert only["args"]["args.none"] == "null"
    assert only["args"]["op_id"] == 2**62


def test_an_empty_profile_and_compressed_ones(tmp_path, written):
    assert written(profile()).slices == []
    nested().to_perfetto(tmp_path / "run.pftrace.gz")
    nested().to_perfetto(tmp_path / "run.pftrace")
    packed = gzip.decompress((tmp_path / "run.pftrace.gz").read_bytes())
    assert packed == (tmp_path / "run.pftrace").read_bytes()


def test_tracks_keep_their_order(tmp_path):
    nested().to_perfetto(tmp_path / "run.pftrace")
    tracks = [
        packet.track_descriptor
        for packet in Trace.FromString((tmp_path / "run.pftrace").read_bytes()).packet
        if packet.HasField("track_descriptor")
    ]
    groups = {track.parent_uuid for track in tracks} - {0}
    assert groups
    for track in tracks:
        if track.uuid in groups:
            assert track.child_ordering == TrackDescriptor.ChildTracksOrdering.EXPLICIT


def test_traces_of_other_tools_are_converted(tmp_path):
    source = DATA / "traces" / "viztracer_1.1.1.json.gz"
    path = tmp_path / "run.pftrace"
    run = CliRunner().invoke(main, ["convert", str(source), str(path)])
    assert run.exit_code == 0, run.output
    assert len(Read(path.read_bytes()).slices) == len(epprof_nb.read_trace(source).ops) > 0


def test_a_missing_package_is_explained_before_anything_is_written(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "perfetto"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "perfetto", None)
    path = tmp_path / "run.pftrace"
    path.write_text("old")
    with pytest.raises(ImportError, match=r"pip install epprof-nb\[perfetto\]"):
        nested().to_perfetto(path)
    assert path.read_text() == "old"
    saved = tmp_path / "run.epprof"
    nested().save(saved)
    run = CliRunner().invoke(main, ["convert", str(saved), str(path)])
    assert run.exit_code == 1
    assert "epprof-nb[perfetto]" in run.output
    assert isinstance(run.exception, SystemExit)


def test_the_columns_are_read_as_often_for_many_tracks(tmp_path, monkeypatch):
    """Once for all tracks: reading them for each takes the square of the number of tracks."""
    read = []
    get = Table.__getitem__

    def counted(table, name):
        read.append(name)
        return get(table, name)

    monkeypatch.setattr(Table, "__getitem__", counted)
    counts = []
    for tracks in (2, 40):
        prof = profile(
            ops=[op(i + 1, "a", i, i + 9, thread_id=i) for i in range(tracks)],
            activities=[kernel(i, i + 9, i + 1, stream_id=i) for i in range(tracks)],
        )
        read.clear()
        prof.to_perfetto(tmp_path / "a.pftrace")
        counts.append(len(read))
    assert counts[0] == counts[1]


def test_the_library_makes_as_few_packets_for_many_launches(tmp_path, monkeypatch):
    """It takes tens of microseconds for each."""
    made = []
    add = perfetto_packets.trace_builder().add_packet

    def counted(builder):
        made.append(builder)
        return add(builder)

    monkeypatch.setattr(
        "perfetto.trace_builder.proto_builder.TraceProtoBuilder.add_packet", counted
    )
    counts = []
    for launches in (20, 400):
        starts = range(0, 10 * launches, 10)
        prof = profile(
            ops=[op(i + 1, "leaf", t, t + 9, args={"i": t % 70}) for i, t in enumerate(starts)],
            activities=[
                kernel(t + 4, t + 9, i + 1, correlation_id=i) for i, t in enumerate(starts)
            ],
            api_calls=[call(t + 1, t + 3, correlation_id=i) for i, t in enumerate(starts)],
            info={"devices": [{"device_id": 0}]},
        )
        monkeypatch.setattr(perfetto, "device_counters", lambda _: ())
        made.clear()
        to_perfetto(prof, tmp_path / "a.pftrace")
        assert len(Read((tmp_path / "a.pftrace").read_bytes()).slices) == 3 * launches
        counts.append(len(made))
    assert counts[0] == counts[1]
