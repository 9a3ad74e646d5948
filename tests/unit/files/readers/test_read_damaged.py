"""Reading damaged, hostile and huge traces: bounded, and without silently wrong totals."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.readers import byte_stream, json_events
from epprof_nb.files.readers.json_events import JsonEvents
from tests.helpers.traces import GOOD, TRACES, kineto, notes, x
from tests.unit.data.result_columns.test_result_columns import FRAMES


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.gz")), ids=lambda path: path.name)
def test_every_table_of_a_real_trace_can_be_made(path):
    prof = epprof_nb.read_trace(path)
    # The ops of a trace lack the argument by which these group them.
    without = {"by_op", "by_op_memory", *(["what_if"] if prof.api_calls.empty else [])}
    for name, make in FRAMES.items():
        if name not in without and not name.startswith("compare"):
            make(prof)
    work = prof.activities["kind"].isin(["kernel", "memcpy", "memset"])
    device_ns = prof.activities.loc[work, "duration_ns"].sum()
    assert prof.by_op()["self_device_ns"].sum() == device_ns


def test_cut_json_keeps_what_is_complete(read):
    text = json.dumps(GOOD)
    for at in (len(text) // 2, len(text) - 1, len(text) - 3):
        prof = read(text[:at])
        assert len(prof.ops) == text[:at].count('"args": {}}')
        if at < len(text) - 1:
            assert "The end of the trace is missing: the file is cut off" in notes(prof)


def test_truncated_and_damaged_gz(read):
    rng = np.random.default_rng(0)
    events = [x(rng.bytes(20).hex(), i, 1) for i in range(3_000)]
    data = gzip.compress(json.dumps(kineto(*events)).encode())
    prof = read(data[: len(data) // 2], "t.json.gz")
    assert 500 < len(prof.ops) < 3_000
    assert "compressed data is truncated" in notes(prof)
    flipped = data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :]
    assert "compressed data is damaged" in notes(read(flipped, "t.json.gz"))
    with pytest.raises(ProfileFileError, match="could not be read"):
        read(data[:12], "t.json.gz")
    double = gzip.compress(json.dumps(GOOD).encode()[:900]) + gzip.compress(
        json.dumps(GOOD).encode()[900:]
    )
    assert len(read(double).ops) == 50


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"no json", b'{"a": 1}', b"PK\x03\x04", b'"traceEvents": [', b"\x1f\x8b"),
        *(b'{"x": {"traceEvents": [{}]}}', b"\xff\xfe" * 9, b"[" * 99, b"[", b"[1, 2"),
    ],
)
def test_other_files_are_refused(read, content):
    with pytest.raises(ProfileFileError, match="could not be read"):
        read(content)


def test_invalid_times_and_events_are_skipped_and_counted(read):
    bad = ["NaN", "Infinity", "1e300", "-1e300", '"soon"', "null", "true", "[]"]
    events = [
        f'{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":{ts},"dur":1}}' for ts in bad
    ]
    events += ['{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":1,"dur":-1}', "[1]", "{a}"]
    events += ['{"ph":"X","cat":"cpu_op","name":"good","pid":1,"tid":1,"ts":-7,"dur":2}']
    prof = read('{"schemaVersion":1,"traceEvents":[' + ",".join(events) + "]}")
    assert prof.ops["name"].tolist() == ["good"]
    assert "Skipped events without a valid time and duration: 9." in prof.info["notes"]
    assert "Skipped events that are invalid JSON objects: 2." in prof.info["notes"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_times_that_overflow_are_skipped_without_a_warning(read, field):
    prof = read(kineto(x("good", 1.0, 2.0), {**x("bad", 1.0, 2.0), field: 1e308}))
    assert prof.ops["name"].tolist() == ["good"]
    assert "Skipped events without a valid time and duration: 1." in prof.info["notes"]


def test_lone_surrogates_are_replaced(read, tmp_path):
    prof = read(
        kineto(x("a\ud800", 1, 2), deviceProperties=[{"id": 0, "name": "H\udcff\ud83d\ude00"}])
    )
    assert prof.ops["name"].tolist() == ["a\ufffd"]
    assert prof.info["devices"][0]["name"] == "H\ufffd\U0001f600"
    prof.to_html(tmp_path / "report.html")


def test_totals_that_would_overflow_are_refused(read):
    longest = 2**53 // 1000
    with pytest.raises(ProfileFileError, match=r"ops.duration_ns exceeds 64 bits"):
        read(kineto(*(x("a", 0, longest) for _ in range(600))))


def test_times_that_no_recording_has_count_as_0(read):
    prof = read(kineto(x("a", 1, 2), x("b", 3, 2**50)))
    assert prof.ops["duration_ns"].tolist() == [2_000, 0]
    assert prof.info["notes"][-1].startswith("1 of 2 rows of ops have impossible numbers (")


def test_deep_nesting_skips_one_event(read):
    deep = '{"ph":"X","args":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"
    prof = read('{"schemaVersion":1,"traceEvents":[' + deep + "," + json.dumps(x("a", 1, 1)) + "]}")
    assert prof.ops["name"].tolist() == ["a"]
    assert "Skipped events that are invalid JSON objects: 1." in prof.info["notes"]


def test_huge_events_are_skipped_and_huge_names_cut(read, monkeypatch):
    monkeypatch.setattr(json_events, "MAX_EVENT_BYTES", 100_000)
    monkeypatch.setattr(byte_stream, "PIECE_BYTES", 10_000)
    prof = read(kineto(x("a", 1, 1), x("{[" * 100_000, 2, 1), x("c" * 50_000, 3, 1), x("d", 4, 1)))
    assert [name[0] for name in prof.ops["name"]] == ["a", "c", "d"]
    assert len(prof.ops["name"].iloc[1]) == 32_769
    assert "Skipped events larger than 64 MiB: 1." in prof.info["notes"]


def test_zip_bombs_and_too_many_events_are_refused(read):
    bomb = gzip.compress(b'{"schemaVersion":1,"traceEvents":[' + b" " * (100 * 2**20), 9)
    with pytest.raises(ProfileFileError, match="300 times their size"):
        read(bomb, "t.json.gz")
    with pytest.raises(ProfileFileError, match="larger max_bytes"):
        read(GOOD, max_bytes=1_000)


def test_duplicate_events_and_disorder_are_kept(read):
    prof = read(kineto(x("b", 5, 1), x("a", 1, 10), x("b", 5, 1)))
    assert prof.ops["name"].tolist() == ["a", "b", "b"]
    assert prof.ops["parent_op_id"].tolist() == [pd.NA, 1, 2]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\{}[],:\n\u00fc', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\}', max_size=3), inner)
    ),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", 'b"', "c\\"]), _JSON), max_size=6),
       st.integers(1, 40), st.booleans())  # fmt: skip
def test_events_are_found_wherever_the_pieces_end(events, size, as_object):
    whole = {"before": 'x"traceEvents": [', "traceEvents": events, "after": [{}]}
    text = json.dumps(whole if as_object else events).encode()
    pieces = (text[i : i + size] for i in range(0, len(text), size))
    stream = JsonEvents(pieces)
    assert [event for piece in stream for event in piece] == events
    assert stream.complete
    assert (stream.invalid, stream.oversized) == (0, 0)
    if as_object:
        assert stream.metadata == {k: v for k, v in whole.items() if k != "traceEvents"}
