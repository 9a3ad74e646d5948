"""`prof.insights()`: ranking, evidence, texts, and damaged profiles."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings import ranking
from epprof_nb.analysis.findings.finding import Finding, gain_text
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.planted import MS, info, of_kind, repeats, short_kernels, steady, synchronising
from tests.helpers.tiny import activity, call, kernel, line, op, profile
from tests.paths import ROOT


def test_a_range_without_a_name_has_no_finding():
    prof = profile([op(1, None, 0, 10 * MS)], [kernel(0, 9 * MS, 1)], info=info(10 * MS))
    assert not of_kind(prof, "hot op")


def test_without_device_work_findings_do_not_speak_of_a_device():
    fell = {
        "before": {"gpus": [{"sm_clock_mhz": 1980}]},
        "after": {"gpus": [{"sm_clock_mhz": 900}]},
    }
    walls = [90 * MS, *(wall + i * MS // 10 for i, wall in enumerate(steady(40)))]
    walls[30] = 60 * MS
    prof = repeats(walls, gpu=fell)
    on_host = Profile(prof.tables | {"activities": profile().tables["activities"]}, prof.info)
    for kind in ("warm-up", "outliers", "drift"):
        (found,), (of_device,) = of_kind(on_host, kind), of_kind(prof, kind)
        told = found.text + found.remedy
        assert not any(word in told for word in ("device", "GPU", "SM clock"))
        assert "GPU" in of_device.text or "SM clock" in of_device.text


def test_findings_that_save_less_than_2_percent_are_left_out():
    def idle(gap):
        return profile([op(1, "f", 0, 100 * MS)], [kernel(0, 50 * MS, 1),
                       kernel(50 * MS + gap, 100 * MS, 1)], info=info(100 * MS))  # fmt: skip

    assert len(of_kind(idle(2 * MS), "idle")) == 1
    assert not of_kind(idle(2 * MS - 1), "idle")


def test_insights_are_ranked_and_have_bounds():
    rows = synchronising().insights()
    assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
    assert rows["gain_ns"].is_monotonic_decreasing
    assert (rows["gain_low_ns"] <= rows["gain_ns"]).all()
    assert (rows["gain_ns"] <= rows["gain_high_ns"]).all()
    assert (rows["gain_ns"] >= 0.02 * 90 * MS).all()
    assert rows["remedy"].str.endswith(".").all()


def test_of_equal_gains_the_surer_one_comes_first(monkeypatch):
    made = [Finding("Text.", 5, 0, 1, kind="idle", gain_low_ns=low) for low in (1, 3, 2)]
    monkeypatch.setattr(ranking, "OF_HOST_WORK", ())
    monkeypatch.setattr(ranking, "ALWAYS", [lambda _: made])
    found = findings(ProfileIndex(profile(info=info(10))), limit=None)
    assert [finding.low_ns for finding in found] == [3, 2, 1]


def test_each_kind_is_documented():
    rules = (ROOT / "epprof_nb/analysis/findings/rules").rglob("*.py")
    text = "".join(path.read_text("utf-8") for path in rules)
    kinds = sorted({*re.findall(r'\bkind="([^"]+)"', text)} - {"stable"})  # a kind of np.argsort
    rows = (ROOT / "docs" / "findings.md").read_text("utf-8").split("| kind |")[1].split("\n\n")[0]
    told = [
        kind for row in rows.splitlines() for kind in re.findall("`([^`]+)`", row.split("|")[1])
    ]
    assert sorted(told) == kinds


@pytest.mark.parametrize("causes", [1, 2])
def test_a_hot_line_follows_the_causes(causes):
    gaps = [0, 8 * MS, 5 * MS][: causes + 1]
    ops, work, end = [], [], 0
    for number, gap in enumerate(gaps, 1):
        length = 70 * MS if number == 1 else 2 * MS
        ops.append(line(number, number, end, end + gap + length))
        work.append(kernel(end + gap, end + gap + length, number, thread_id=1))
        end += gap + length
    prof = profile(ops, work, info=info(end))
    assert prof.insights()["kind"].tolist() == ["idle"] * causes + ["hot line"]
    # The findings in the output of a cell.
    assert [f.kind for f in findings(ProfileIndex(prof))] == [
        "idle",
        ["hot line", "idle"][causes - 1],
    ]


@pytest.mark.parametrize("make", [synchronising, short_kernels, lambda: synthetic_profile(3_000)])
def test_evidence_are_rows_that_the_timeline_highlights(make):
    prof = make()
    rows = prof.insights()
    assert len(rows)
    for _, row in rows.iterrows():
        evidence = prof.evidence(row)
        assert len(evidence)
        view = prof.timeline(select=evidence)
        assert sum(map(len, view._selected_rows.values())) == len(evidence)


def test_evidence_is_shown_without_empty_columns():
    prof = short_kernels()
    frame = prof.evidence(1)
    assert list(frame) == list(prof.activities)
    for shown in (repr(frame), frame._repr_html_()):
        assert "correlation_id" in shown
        assert "graph_node_id" not in shown
        assert "columns without values are not shown." in shown
    assert type(pickle.loads(pickle.dumps(frame))) is pd.DataFrame
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(frame)), pd.DataFrame(frame))


def test_evidence_of_something_else_is_refused():
    prof = synchronising(prepare=27 * MS)
    row = prof.insights().iloc[0]
    other = short_kernels()
    with pytest.raises(ValueError, match="of another profile"):
        other.evidence(row)
    with pytest.raises(ValueError, match="has no finding, not 1"):
        profile().evidence(1)
    count = len(prof.insights())
    assert count > 1
    for rank in (0, -1, count + 1):
        with pytest.raises(ValueError, match=f"has findings 1 to {count}, not {rank}: ranks count"):
            prof.evidence(rank)
    for wrong in (prof.activities.iloc[0], "idle", None, True, np.True_, prof.insights()):
        with pytest.raises(TypeError, match="expects a row"):
            prof.evidence(wrong)
    pd.testing.assert_frame_equal(prof.evidence(row), prof.evidence(np.int64(1)))
    pd.testing.assert_frame_equal(prof.evidence(row.to_dict()), prof.evidence(1))


def test_the_outputs_say_what_to_change_and_what_it_saves():
    prof = synchronising()
    advice = (
        "Read the value later, or less often, so that the next work is launched while the GPU is "
        "busy (saves about 39.0 ms, 29.3 ms to 42.0 ms)."
    )
    bundle = prof._repr_mimebundle_()
    assert advice in bundle["text/plain"]
    assert advice in bundle["text/html"]
    assert "Saves about 39.0 ms, 29.3 ms to 42.0 ms." in prof.summary()
    first = json.loads(prof.summary(format="json"))["findings"][0]
    row = prof.insights().iloc[first["rank"] - 1]
    for name in ("kind", "text", "gain_ns", "gain_low_ns", "gain_high_ns"):
        assert first[name] == row[name]
    assert f"{first['remedy']} {first['other_remedy']}" == row["remedy"]
    assert first["other_remedy"].startswith("Or: do this work while the GPU is busy")
    assert first["other_remedy"] in prof.summary()


TIMES = st.one_of(st.integers(0, 10**9), st.sampled_from([-(2**63), 2**63 - 1, -1, 2**61]))


ROWS = st.lists(
    st.tuples(st.sampled_from(["kernel", "memcpy", "graph_launch", "synchronization", None]),
              TIMES, TIMES, st.integers(-1, 4), st.integers(-1, 2), st.integers(-1, 9)),
    max_size=30,
)  # fmt: skip


CALLS = st.lists(
    st.tuples(st.sampled_from(["cuLaunchKernel", "cuStreamSynchronize", "cuMemcpy", None]),
              TIMES, TIMES, st.integers(-1, 4), st.integers(-1, 9)),
    max_size=30,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@example([("kernel", 0, 2**63 - 1, 0, 0, 0)], [], 0)
@given(ROWS, CALLS, st.integers(0, 10**9))
def test_damaged_profiles_have_insights_with_bounds(rows, calls, wall):
    prof = profile(
        [line(1, 1, 0, 10**9), op(2, "f", 5, 4, 1), op(3, None, -9, 9)],
        [activity(kind, start, end, op_id, name=kind, device_id=device, correlation_id=number,
                  bytes=start, copy_kind="HtoD", duration_ns=0)
         for kind, start, end, op_id, device, number in rows],
        [call(start, end, op_id=op_id, correlation_id=number, name=name, duration_ns=0)
         for name, start, end, op_id, number in calls],
        info={"wall_ns": wall, "repeats": [[i, i + 1] for i in range(7)], "gpu": {"before": 3}},
    )  # fmt: skip
    with np.errstate(over="ignore"):
        found = prof.insights()
        for name in ("overlap", "launches", "transfers", "waits", "steadiness"):
            getattr(prof, name)()
    assert (found["gain_low_ns"] <= found["gain_ns"]).all()
    assert (found["gain_ns"] <= found["gain_high_ns"]).all()
    for rank in found["rank"]:
        prof.evidence(rank)


def test_without_statements_an_insight_has_the_cell_of_its_op():
    ops = [op(1, "In[5]", 0, 90 * MS, op_type="cell"), op(2, "load", 0, 80 * MS, 1)]
    prof = profile(ops, [kernel(80 * MS, 90 * MS, 2)], info=info(90 * MS))
    row = prof.insights().iloc[0]
    assert row["text"] == "GPU idle 80.0 ms before its first work while the host ran `load`."
    assert (row["op_id"], row["cell"]) == (2, "In[5]")
    assert pd.isna(row["line"])


def test_findings_are_shown_in_full():
    prof = synchronising(statement="total += <b>y.item()  # " + "x" * 200)
    frame = prof.insights()
    gains = [gain_text(r.gain_ns, r.gain_low_ns, r.gain_high_ns) for r in frame.itertuples()]
    for row in frame.itertuples():
        shown = " ".join(str(frame).split())
        assert f"{row.rank}. {row.kind}" in shown
        assert " ".join(row.text.split()) in shown
        assert " ".join(row.remedy.split()) in shown
    html = frame._repr_html_()
    assert "<code>total += &lt;b&gt;y.item()" in html
    assert "<b>" not in html
    assert all(f'min-width: 11em">{gain}<' in html for gain in gains)
    assert all(column in html and column in str(frame) for column in frame.columns)
    with pd.option_context("display.notebook_repr_html", False):
        assert frame._repr_html_() is None


@pytest.mark.parametrize(("own", "place"), [("In[1]", ""), ("In[7]", " of In[1]")])
def test_lines_of_other_cells_are_named_with_their_cell(own, place):
    prof = profile(
        [line(1, 3, 0, 90 * MS), line(2, 4, 90 * MS, 100 * MS)],
        info=info(100 * MS, cell=own),
        sources={"In[1]": "\n\nx = f()\n"},
    )
    frame = prof.insights()
    assert str(frame).startswith(f"1. hot line, line 3{place}: ")
    assert f"Line 3{place} (`x = f()`) accounts for" in str(frame)
    assert f">3{place}</td>" in frame._repr_html_()


def test_what_is_computed_from_findings_is_a_dataframe():
    frame = synchronising().insights()
    derived = [frame[["kind", "text"]], frame.query("gain_ns > 0"), frame.copy(), frame.head(1)]
    derived.append(pickle.loads(pickle.dumps(frame)))
    assert {type(one) for one in derived} == {pd.DataFrame}
    pd.testing.assert_frame_equal(derived[-1], pd.DataFrame(frame))


def test_control_characters_of_names_do_not_reach_the_terminal():
    prof = synchronising(statement="total += y.item()  # \x1b[31m")
    assert "\x1b" not in str(prof.insights())
