"""The headline, the findings and the formats of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.analysis.summary.headline import headline_of, headline_text
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.util.format import duration, percent, plural, shorten, size
from tests.helpers import tiny

MS = 1_000_000
CUDA = [{"device_id": 0, "name": "H", "kind": "gpu"}]
HOST = [{"device_id": 0, "name": "host", "kind": "host"}]
SOURCE = "a = f()\nb = `g`\nc = h()"


def profile(acts, *, devices=CUDA, wall=100 * MS, **info) -> Profile:
    """Three statements of 30 ms; `acts` are (kind, line, start ms, end ms, bytes, memory)."""
    ops = Table(
        OPS,
        {
            "op_id": np.array([1, 2, 3]),
            "name": CategoryColumn.of(["a = f()", "b = g()", "c = h()"]),
            "op_type": CategoryColumn.constant("line", 3),
            "thread_id": np.full(3, 9),
            "start_ns": np.array([0, 30, 60]) * MS,
            "end_ns": np.array([30, 60, 99]) * MS,
            "duration_ns": np.array([30, 30, 39]) * MS,
            "count": np.ones(3, np.int64),
            "cell": CategoryColumn.constant("In[1]", 3),
            "line": np.array([1, 2, 3]),
        },
    )
    n = len(acts)
    kinds, lines, starts, ends, sizes, memory = zip(*acts, strict=True) if acts else [()] * 6
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of(kinds),
            "name": CategoryColumn.constant("k", n),
            "device_id": np.zeros(n, np.int64),
            "stream_id": np.full(n, 7),
            "start_ns": (np.array(starts, float) * MS).astype(np.int64),
            "end_ns": (np.array(ends, float) * MS).astype(np.int64),
            "duration_ns": ((np.array(ends, float) - np.array(starts, float)) * MS).astype(
                np.int64
            ),
            "op_id": np.array(lines, np.int64),
            "bytes": np.array(sizes, np.int64),
            "src_kind": CategoryColumn.of(memory),
            "thread_id": np.full(n, 9),
        },
    )
    tables = {"ops": ops, "activities": activities}
    return Profile(tables, {"wall_ns": wall, "devices": devices, **info}, {"In[1]": SOURCE})


def kernel(line, start, end):
    return ("kernel", line, start, end, -1, None)


def test_line_has_the_totals():
    line = headline_text(
        profile(
            [kernel(1, 0, 20), kernel(1, 10, 30), ("memcpy", 2, 40, 50, 1_200_000, "pinned")],
            recorded={"launched": {"kernel": 2, "memcpy": 1}, "lost": {}},
            profiling_cost={"share": 0.04},
        )
    )
    assert line.startswith("100 ms wall   GPU busy 40 %")
    assert "2 kernels · 1 copy (1.20 MB) · 1 idle gap > 1 ms between work" in line
    took = "profiler took 4.00 ms before and after the code (not in the wall time)"
    assert f"recorded 100 %, {took}" in line


def test_statements_that_were_left_out_are_stated():
    lost = {"recorded": {"statements_lost": 103_952}}
    line = headline_text(profile([kernel(1, 0, 20)], **lost))
    assert line.endswith("103,952 executions of statements in recursive calls not recorded")
    assert "not recorded" not in headline_text(profile([kernel(1, 0, 20)], recorded={}))
    both = {"launched": {"kernel": 1}, "lost": {}, "statements_lost": 1}
    line = headline_text(profile([kernel(1, 0, 20)], recorded=both))
    assert "recorded 100 %, 1 execution of statements in recursive calls not recorded" in line


@pytest.mark.parametrize("share", [0.0097, 4.3])
def test_overhead_is_always_a_time(share):
    cost = {"share": share, "ns": 97_000_000}
    line = headline_text(profile([kernel(1, 0, 20)], profiling_cost=cost))
    assert "profiler took 97.0 ms before and after the code (not in the wall time)" in line


def test_the_overhead_is_explained():
    cost = {"ns": 40_000_000, "start_ns": 30_000_000, "join_ns": 10_000_000}
    summary = headline_of(ProfileIndex(profile([kernel(1, 0, 20)], profiling_cost=cost)))
    assert summary.overhead_note == (
        "The profiler took 30.0 ms to start, and 10.0 ms after the code to find the op of each "
        "record. Drawing the view takes further time, which is `draw_ns` in the info's "
        "`profiling_cost` afterwards. Neither is part of the wall time or a slowdown. How much "
        "recording slowed the code down is not known."
    )
    cost["draw_ns"] = 300_000_000
    drawn = headline_of(ProfileIndex(profile([kernel(1, 0, 20)], profiling_cost=cost)))
    assert "Drawing the view below the cell took 300 ms." in drawn.overhead_note
    assert (
        "took 40.0 ms"
        in headline_of(
            ProfileIndex(profile([kernel(1, 0, 20)], profiling_cost={"ns": 40_000_000}))
        ).overhead_note
    )


def test_a_known_slowdown_is_stated():
    stretch = [{"session": 1, "runs": 2, "compared": 0}, {"session": 2, "stretch": 1.31}]
    info = {"profiling_cost": {"ns": 1_000_000}, "onnxruntime_stretch": stretch}
    summary = headline_of(ProfileIndex(profile([kernel(1, 0, 20)], **info)))
    assert "(not in the wall time), ONNX Runtime 1.3x slower while profiled" in summary.line
    assert "1.31 times as long" in summary.overhead_note
    assert "not known" not in summary.overhead_note


@pytest.mark.parametrize("cost", [None, [], {"ns": "much"}, {"share": None}])
def test_a_damaged_overhead_is_left_out(cost):
    summary = headline_of(ProfileIndex(profile([kernel(1, 0, 20)], profiling_cost=cost)))
    assert (summary.overhead, summary.overhead_text, summary.overhead_note) == (None, "", "")


def test_dropped_records_are_stated():
    info = {"recorded": {"launched": {"kernel": 1000}, "lost": {"kernel": 8}},
            "attribution": {"none": 5}}  # fmt: skip
    line = headline_text(profile([kernel(1, 0, 20)], **info))
    assert "recorded 992 of 1,000 records" in line
    assert "5 activities without an op" in line


def test_the_host_device_is_no_gpu():
    host = profile([kernel(1, 0, 70), kernel(2, 70, 80)], devices=HOST)
    assert "GPU" not in headline_text(host)
    assert "device busy 80 %" in headline_text(host)
    assert all("GPU" not in finding.text for finding in findings(ProfileIndex(host)))


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ({"no_gpu": {"is_first": True}}, "No GPU was found: run epprof doctor to see why."),
        ({"no_gpu": {"is_first": False}}, "No device work."),
        ({}, "No device work."),
        ({"no_gpu": "damaged"}, "No device work."),
    ],
)
def test_a_missing_gpu_is_said_by_the_first_profile_of_a_process(search, text):
    empty = headline_of(ProfileIndex(profile([], devices=HOST, **search))).empty
    assert empty == f"{text} (Host ops are shown.)"


def test_profile_without_device_work_is_explained():
    assert "No GPU work was launched. (Host ops are shown.)" in headline_text(profile([]))
    (found,) = findings(ProfileIndex(profile([])))
    assert found.text.startswith("Line 3 (`c = h()`) accounts for 39 % of the wall time")


def test_hot_line_has_its_source():
    (finding,) = findings(
        ProfileIndex(profile([kernel(1, 0, 80), kernel(3, 80, 99.5)], wall=100 * MS))
    )
    assert finding.text == "Line 1 (`a = f()`) accounts for 80 % of the GPU time."
    assert (finding.start_ns, finding.end_ns) == (0, 30 * MS)


def test_only_line_with_work_is_no_finding():
    assert findings(ProfileIndex(profile([kernel(1, 0, 99.5)]))) == []


def test_idle_finding_names_the_host_op():
    found = findings(
        ProfileIndex(profile([kernel(1, 0, 20), kernel(1, 58, 60), kernel(3, 60, 80)]))
    )
    idle = [finding for finding in found if "idle" in finding.text]
    assert idle[0].text == "GPU idle 38.0 ms while the host ran line 2 (`b = g()`)."
    assert (idle[0].start_ns, idle[0].end_ns) == (20 * MS, 58 * MS)
    assert found == sorted(found, key=lambda finding: -finding.gain_ns)


def test_idle_finding_states_the_slowdown_of_its_run():
    acts = [kernel(1, 0, 20), kernel(1, 58, 60), kernel(3, 60, 80)]
    plain = profile(acts)
    session = np.array([4, 5, 4])
    tables = plain.tables | {"ops": plain.tables["ops"].replace(session=session)}
    stretch = [{"session": 5, "stretch": 2.5}, {"session": 4, "stretch": 1.02}]
    slow = Profile(tables, plain.info | {"onnxruntime_stretch": stretch}, plain.sources)
    by_text = {f.text: f.gain_ns for f in findings(ProfileIndex(slow), limit=9)}
    doing = "GPU idle 38.0 ms while the host ran line 2 (`b = g()`)"
    told = f"{doing}; profiling slowed it by 2.50x."
    # The gain is the time that remains without profiling.
    assert by_text[told] == 38 * MS * 2 // 5
    assert not any("by 1.02x" in text for text in by_text)
    strange = Profile(
        tables, plain.info | {"onnxruntime_stretch": [7, {"session": 5}]}, plain.sources
    )
    assert any(f.text == f"{doing}." for f in findings(ProfileIndex(strange), limit=9))


def test_pageable_copies_are_a_finding():
    copies = [("memcpy", 1, i, i + 1, 10**6, "pageable") for i in range(60)]
    texts = [
        f.text for f in findings(ProfileIndex(profile([*copies, kernel(2, 60, 99.5)])), limit=9)
    ]
    assert any(text.startswith("60 copies of pageable memory (60.0 MB)") for text in texts)


@pytest.mark.parametrize(("ms", "copied"), [(90, 32), (0.5, 10**7)])
def test_few_bytes_or_little_time_of_copies_are_no_finding(ms, copied):
    made = profile([("memcpy", 1, 0, ms, copied, "pageable")])
    texts = [found.text for found in findings(ProfileIndex(made), limit=9)]
    assert not any("pageable" in text for text in texts)


def test_an_op_of_worker_threads_is_a_finding():
    made = tiny.profile(
        ops=[
            tiny.line(1, 1, 0, 100, 0),
            tiny.op(2, "train", 0, 95, thread_id=3),
            tiny.op(3, "layer", 5, 45, 2, thread_id=3),
            tiny.op(4, "layer", 50, 90, 2, thread_id=3),
        ],
        activities=[
            tiny.kernel(0, 1, 1), tiny.kernel(10, 50, 3), tiny.kernel(50, 98, 4),
        ],
        info={"wall_ns": 100, "devices": CUDA},
    )  # fmt: skip
    found = [f for f in findings(ProfileIndex(made), limit=9) if "accounts" in f.text]
    assert [f.text for f in found] == ["`layer` accounts for 99 % of the GPU time."]
    assert (found[0].gain_ns, found[0].start_ns, found[0].end_ns) == (0, 5, 90)


@pytest.mark.parametrize("open_ms", [0, 3])
def test_idle_time_with_an_op_open_in_part_is_not_said_to_have_none(open_ms):
    made = tiny.profile(
        ops=[tiny.op(1, "f", 10 * MS - open_ms * MS, 20 * MS, 0)],
        activities=[tiny.kernel(10 * MS, 20 * MS, 1)],
        info={"wall_ns": 20 * MS, "devices": CUDA},
    )
    (finding,) = findings(ProfileIndex(made))
    none = "" if open_ms else " while no op was open on the host"
    assert finding.text == f"GPU idle 10.0 ms before its first work{none}."


@pytest.mark.parametrize("open_ms", [0, 3])
def test_idle_time_between_work_without_a_known_place_is_no_finding(open_ms):
    """An op of another thread is open in a part of the gap."""
    made = tiny.profile(
        ops=[tiny.op(1, "f", 12 * MS, (12 + open_ms) * MS, thread_id=2)],
        activities=[tiny.kernel(0, 10 * MS), tiny.kernel(36 * MS, 46 * MS)],
        info={"wall_ns": 46 * MS, "devices": CUDA},
    )
    texts = [finding.text for finding in findings(ProfileIndex(made))]
    known = ["GPU idle 26.0 ms while no op was open on the host."]
    assert texts == ([] if open_ms else known)


def test_source_with_backticks_keeps_code_apart():
    (finding,) = findings(ProfileIndex(profile([kernel(2, 0, 80), kernel(3, 80, 99.5)])))
    assert finding.text.count("`") == 2


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0 s"), (412, "412 ns"), (999_700, "1.00 ms"), (1.84e9, "1.84 s")]
)
def test_durations(ns, text):
    assert duration(ns) == text


def test_other_units():
    assert size(1_200_000_000) == "1.20 GB"
    assert [percent(x) for x in (0, 0.0001, 0.61, 0.999, 1)] == [
        "0 %", "< 0.1 %", "61 %", "> 99 %", "100 %",
    ]  # fmt: skip
    assert plural(1, "copy", "copies") == "1 copy"
    assert shorten("abcdefghijk", 6) == "abc…jk"
    assert len(shorten("x" * 500, 40)) == 40


def test_headline_and_finding_count_the_same_gaps():
    rounds = [kernel(1, 10 + 4 * i, 11 + 4 * i) for i in range(20)]
    index = ProfileIndex(profile(rounds))
    assert "19 idle gaps > 1 ms between work" in headline_of(index).line
    texts = [finding.text for finding in findings(index, limit=99) if "idle" in finding.text]
    in_gaps = [int(text.split(" in ")[1].split()[0]) for text in texts if " in " in text]
    assert sum(in_gaps) == 19
    # Idle time before the first and after the last work is not a gap.
    assert sum("before its first work" in text for text in texts) == 1
    assert sum("after its last work" in text for text in texts) == 1


def test_work_of_the_host_device_beside_an_idle_gpu_is_not_called_that_of_a_gpu():
    """A machine with a GPU that the process does not use, as with CUDA_VISIBLE_DEVICES=\"\"."""
    gpu = {"device_id": 0, "kind": "gpu", "name": "NVIDIA H200"}
    both = {"devices": [gpu, {"device_id": 1000, "kind": "host", "name": "host device"}]}
    prof = profile([kernel(1, 0, 20)])
    prof.tables["activities"] = prof.tables["activities"].replace(
        device_id=np.full(1, 1000, np.int64)
    )
    prof.info["devices"] = [gpu]
    assert "GPU busy" in headline_text(prof)
    prof = Profile(prof.tables, prof.info | both)
    assert "device busy" in headline_text(prof)
    assert "- busy of host device: 20.0 ms" in prof.summary(sql=False)


def test_an_unknown_gain_is_not_stated():
    ops = [tiny.line(1, 1, 0, 90 * MS), tiny.line(2, 2, 90 * MS, 100 * MS)]
    work = [tiny.kernel(0, 85 * MS, 1), tiny.kernel(90 * MS, 100 * MS, 2)]
    prof = tiny.profile(ops, work, info={"wall_ns": 100 * MS})
    hot = prof.insights().query("gain_ns == 0")
    assert hot["kind"].tolist() == ["hot line"]
    text = prof.summary(sql=False)
    assert hot["text"].iloc[0] in text
    assert "0 s" not in text
    (found,) = (f for f in findings(ProfileIndex(prof), limit=None) if f.kind == "hot line")
    assert found.advice == found.remedy
