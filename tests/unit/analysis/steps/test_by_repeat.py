"""by_repeat and the statistics of repeats in the summary, the views and Chrome traces."""

import json

import pandas as pd
import pytest

from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.data.repeats import with_repeats
from epprof_nb.profiles import Profile
from epprof_nb.views.renderers.html import notebook_html, page_html
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header, full_header
from tests.helpers.tiny import activity, call, kernel, line, op, profile

BOUNDS = [[10, 110], [110, 310], [310, 340]]


def three(**info):
    """Three repeats; the second one's kernel runs into the third, and a statement spans all."""
    made = profile(
        ops=[
            op(1, "In[1]", 0, 345, op_type="cell"),
            line(2, 1, 12, 100, 1),
            line(3, 1, 112, 300, 1),
            line(4, 1, 312, 338, 1),
            line(5, 2, 100, 339, 1, count=9),
            op(6, "run", 115, 120, 3, run_id=0, source="onnxruntime"),
        ],
        activities=[
            kernel(20, 70, 2),
            kernel(115, 320, 6),
            kernel(330, 345, 4),
            activity("memcpy", 330, 335, 5, correlation_id=7, bytes=64),
            kernel(102, 104),
            activity("synchronization", 20, 300, 3),
        ],
        api_calls=[call(200, 210, correlation_id=7)],
        info={"wall_ns": 350, "repeats": BOUNDS, **info},
    )
    return Profile(with_repeats(made.tables, made.info), made.info)


def test_activities_belong_to_the_repeat_that_launched_them():
    assert three().ops["repeat"].fillna(-1).tolist() == [-1, 0, 1, 2, -1, 1]
    # The copy's op spans all repeats, but its call does not.
    assert three().activities["repeat"].tolist() == [0, 1, 2, 1, 0, 1]


def test_one_row_per_repeat():
    frame = three().by_repeat()
    assert frame["repeat"].tolist() == [0, 1, 2]
    assert frame["start_ns"].tolist() == [10, 110, 310]
    assert frame["wall_ns"].tolist() == [100, 200, 30]
    assert frame["device_ns"].tolist() == [52, 210, 15]
    assert frame["busy_ns"].tolist() == [52, 195, 20]
    assert (frame["idle_ns"] == frame["wall_ns"] - frame["busy_ns"]).all()
    assert frame["kernels"].tolist() == [2, 1, 1]
    assert frame["memcpys"].tolist() == [0, 1, 0]
    assert frame["bytes"].tolist() == [0, 64, 0]
    assert frame["device_ns"].sum() == three().by_op()["self_device_ns"].sum()


def test_without_repeats_the_table_is_empty_and_nothing_is_said():
    made = profile([op(1, "f", 0, 9)], [kernel(1, 2, 1)], info={"wall_ns": 10})
    frame = made.by_repeat()
    assert len(frame) == 0
    assert frame.dtypes.equals(three().by_repeat().dtypes)
    assert "repeats" not in as_text(ViewModel(made))
    assert full_header(ViewModel(made))["headline"]["repeats"] is None
    assert made.ops["repeat"].isna().all()


def test_the_summary_has_the_statistics_of_the_repeats():
    repeats = ViewModel(three()).headline.repeats
    wall = three().by_repeat()["wall_ns"]
    assert repeats.count == 3
    assert repeats.mean_ns == pytest.approx(wall.mean())
    assert repeats.median_ns == wall.median()
    assert repeats.std_ns == pytest.approx(wall.std())
    said = (
        "3 repeats: mean 110 ns, median 100 ns, standard deviation 85 ns; findings add up all "
        "repeats"
    )
    assert f"{said}   ▄█▁" in as_text(ViewModel(three()))
    view_model = ViewModel(three())
    assert f"<p>{said}   ▄█▁</p>" in page_html(view_model)
    fallback = notebook_html(view_model, b"").split('"epprof-fallback"')[1]
    assert said in fallback


def test_steps_of_a_script_keep_their_numbers_and_leave_out_the_setup():
    header = first_view_header(ViewModel(three(first_step=2)))
    assert header["repeat_names"] == {"unit": "step", "first": 2}
    assert header["headline"]["repeats"]["text"].startswith("3 steps: mean 110 ns")
    assert header["headline"]["repeats"]["names"] == {"unit": "step", "first": 2}
    whole = ViewModel(three(first_step=0)).headline.repeats
    assert (whole.count, whole.mean_ns, whole.names) == (2, 115, ("step", 1))
    steps = as_text(ViewModel(three(first_step=0)))
    assert "2 steps: mean 115 ns" in steps
    assert "all repeats" not in steps


def steps_of_script(*, rest, last=None, has_ops=True, device=True):
    """Four steps of 100 ns, and `rest` ns after the last call of ``step`` with the op `last`."""
    bounds = [[start, start + 100] for start in range(0, 400, 100)] + [[400, 400 + rest]]
    names = [*["work()"] * 4, last] if has_ops else []
    ops = [op(i, name, 100 * i + 5, 100 * i + 50, repeat=i) for i, name in enumerate(names) if name]
    # The call that begins the next step ends in it.
    ops += [op(10 + i, "step()", 100 * i + 99, 100 * i + 101, repeat=i) for i in range(4)]
    kernels = [kernel(100 * i + 10, 100 * i + 40, repeat=i) for i in range(4)]
    info = {"repeats": bounds, "first_step": 0, "wall_ns": 400 + rest}
    return profile(ops, kernels if device else (), info=info)


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (steps_of_script(rest=90, last="work()"), 4),  # the loop begins with step()
        (steps_of_script(rest=90), 3),
        (steps_of_script(rest=90, last="evaluate()"), 3),
        (steps_of_script(rest=90, has_ops=False), 3),  # by its kernels
        (steps_of_script(rest=90, has_ops=False, device=False), 4),
        (steps_of_script(rest=20, has_ops=False, device=False), 3),
    ],
)
def test_what_follows_the_last_step_is_no_step(made, count):
    view_model = ViewModel(made)
    assert view_model.headline.repeats.count == count
    assert iterations(view_model.index).number.tolist() == list(range(1, count + 1))
    assert len(made.by_repeat()) == 5


def test_a_chrome_trace_numbers_the_steps(tmp_path):
    three(first_step=2).to_chrome(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    steps = [event for event in events if event.get("cat") == "step"]
    assert [event["name"] for event in steps] == ["step 2", "step 3", "step 4"]
    assert steps[0]["args"] == {"step": 2}
    assert any(event.get("args") == {"name": "steps"} for event in events)


def test_of_very_many_repeats_the_strip_chart_shows_means():
    bounds = [[i * 10, i * 10 + 10] for i in range(5000)]
    view_model = ViewModel(profile(info={"wall_ns": 50_000, "repeats": bounds}))
    header = first_view_header(view_model)
    assert len(header["headline"]["repeats"]["points"]) == 120
    assert len(header["repeats"]) == 2_000
    assert view_model.headline.repeats.count == 5000
    assert view_model.headline.repeats.std_ns == 0


def test_one_repeat_has_no_statistics():
    made = profile(info={"wall_ns": 50, "repeats": [[0, 40]]})
    assert ViewModel(made).headline.repeats is None
    assert made.by_repeat()["wall_ns"].tolist() == [40]


def test_repeats_are_saved(tmp_path):
    import epprof_nb

    three().save(tmp_path / "x.epprof")
    pd.testing.assert_frame_equal(
        epprof_nb.load(tmp_path / "x.epprof").by_repeat(), three().by_repeat()
    )


def test_repeats_are_a_track_of_a_chrome_trace(tmp_path):
    three().to_chrome(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text("utf-8"))["traceEvents"]
    slices = [e for e in events if e.get("cat") == "repeat"]
    assert [(e["name"], e["ts"], e["dur"]) for e in slices] == [
        ("repeat 0", 0.010, 0.1), ("repeat 1", 0.110, 0.2), ("repeat 2", 0.310, 0.03),
    ]  # fmt: skip
    (track,) = {(e["pid"], e["tid"]) for e in slices}
    names = [e for e in events if e["ph"] == "M" and (e["pid"], e["tid"]) == track]
    assert {e["name"] for e in names} == {"thread_name", "thread_sort_index"}
    others = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X" and e.get("cat") != "repeat"}
    assert track not in others


def test_a_negative_repeat_of_a_damaged_file_is_none():
    prof = profile(activities=[kernel(20, 70, repeat=-7)], info={"wall_ns": 350, "repeats": BOUNDS})
    assert prof.by_repeat()["device_ns"].tolist() == [0, 0, 0]
