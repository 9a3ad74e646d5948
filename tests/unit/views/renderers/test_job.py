"""Views of a job: the numbers of its rows, the lines of collectives, and untrusted texts."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.views.job_view import JobView
from epprof_nb.views.renderers.job_model import BINS, MAX_COLLECTIVE_LINES, MAX_STRIPS
from epprof_nb.views.renderers.job_picture import LEFT, draw
from tests.helpers.ranks import GPU, MS, job_view, rank_tables
from tests.helpers.tiny import kernel, profile

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def alone(profiles, begins=None, **more):
    ranks = ResultTable({"rank": np.array(sorted(profiles))})
    begins = begins or {}
    bounds = {
        rank: (begins.get(rank, 0), begins.get(rank, 0) + prof.wall_ns)
        for rank, prof in profiles.items()
    }
    return JobView(profiles, bounds=bounds, ranks=ranks, **more)


def test_each_row_has_the_utilisation_and_the_waits_of_its_rank():
    shown = job_view(4, steps=10).shown
    assert [row.label for row in shown.rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [row.busy_share for row in shown.rows] == [0.95] * 4
    assert [row.waiting_share for row in shown.rows] == pytest.approx([0.4, 0, 0.4, 0.4])
    # Steps of 20 ms: work until 9 ms, arrival at 10 ms, the late rank at 18 ms.
    first = slice(0, BINS // 10)
    times = (np.arange(BINS // 10) + 0.5) * 20 / (BINS // 10)
    assert shown.rows[0].busy[first] == pytest.approx(((times < 9) | (times > 10)).astype(float))
    assert shown.rows[0].waiting[first] == pytest.approx(
        ((times > 10) & (times < 18)).astype(float)
    )
    assert not shown.rows[1].waiting.any()
    assert [row.is_late for row in shown.rows] == [False, True, False, False]


def test_the_headline_counts_collectives_once_and_says_what_was_not_recorded():
    text = job_view(4, absent=[(9, "started before")]).text
    assert text.splitlines()[0] == (
        "4 of 5 processes recorded   200 ms   devices busy 95 %   10 collectives   "
        "waiting for later ranks 30 %"
    )
    assert text.splitlines()[-1] == "  process 9: not recorded: started before"


def test_ranks_that_begin_at_different_times_share_one_axis():
    short = profile((), [kernel(0, 10 * MS)], info={"wall_ns": 10 * MS, **GPU})
    shown = alone({0: short, 1: short}, {1: 30 * MS}).shown
    assert shown.span_ns == 40 * MS
    quarter = BINS // 4
    assert (shown.rows[0].busy[:quarter] == 1).all()
    assert np.isnan(shown.rows[0].busy[quarter:]).all()
    assert np.isnan(shown.rows[1].busy[: 3 * quarter]).all()
    assert (shown.rows[1].busy[3 * quarter :] == 1).all()


def test_two_devices_of_a_process_count_half_each():
    work = [kernel(0, 10 * MS), kernel(0, 5 * MS, device_id=1)]
    shown = alone({0: profile((), work, info={"wall_ns": 10 * MS, **GPU})}).shown
    assert shown.rows[0].busy[: BINS // 2] == pytest.approx(1)
    assert shown.rows[0].busy[BINS // 2 :] == pytest.approx(0.5)


def test_many_ranks_share_rows_but_a_straggler_has_its_own():
    view = job_view(200, steps=2, late=77)
    rows = view.shown.rows
    assert len(rows) <= MAX_STRIPS + 2
    assert [p.rank for row in rows for p in row.processes] == list(range(200))
    (late,) = [row for row in rows if row.is_late]
    assert late.label == "rank 77"
    assert late.waiting_share == 0
    assert "200 ranks in" in view.text
    assert rows[0].label == "ranks 0\N{EN DASH}3"
    assert rows[0].waiting_share == pytest.approx(0.4)


def test_the_lines_of_a_collective_are_at_the_arrivals():
    view = job_view(3, steps=1, late=2)
    (front,) = view.shown.fronts
    assert front.arrivals == (10 * MS, 10 * MS, 18 * MS)
    drawing = draw(view.shown)
    (path,) = re.findall(r'class="epprof-front" d="([^"]+)"', drawing.svg())
    xs = {float(x) for x in re.findall(r"[MH]([\d.]+)", path)}
    plot = drawing.width - LEFT - 104
    assert sorted(xs) == pytest.approx([LEFT + plot / 2, LEFT + plot * 0.9])


def test_the_collectives_with_the_longest_waits_are_drawn_and_the_rest_is_counted():
    profiles, bounds, ranks, _ = rank_tables(2)
    count = MAX_COLLECTIVE_LINES + 60
    waited = np.stack([np.arange(count), np.zeros(count, np.int64)], axis=1).ravel()
    collectives = ResultTable({
        "collective": np.repeat(np.arange(count), 2),
        "rank": np.tile([0, 1], count),
        "kind": np.full(2 * count, "all-reduce"),
        "arrive_ns": np.repeat(np.arange(count), 2) * MS,
        "waited_ns": waited,
    })  # fmt: skip
    view = JobView(profiles, bounds=bounds, ranks=ranks, collectives=collectives)
    assert [front.waited_ns for front in view.shown.fronts] == list(range(60, count))
    assert f"{MAX_COLLECTIVE_LINES} of {count} collectives are drawn" in view.text


def test_hostile_hostnames_commands_and_reasons_are_escaped(tmp_path):
    view = job_view(2, absent=[(2, HOSTILE)], hostname=HOSTILE, command=HOSTILE)
    view.write_html(tmp_path / "job.html")
    for html in ((tmp_path / "job.html").read_text(), view.mimebundle()["text/html"]):
        assert "<img src=x" not in html
        assert "\x1b" not in html
        assert "onerror" in html
    assert "\x1b" not in view.text


def test_a_job_without_a_recorded_process_says_why():
    ranks = ResultTable({
        "rank": np.array([0]), "name": categorical(["process 0"]),
        "state": np.array(["not recorded"]), "reason": np.array(["no epprof_nb"]),
    })  # fmt: skip
    view = JobView({}, bounds={}, ranks=ranks)
    bundle = view.mimebundle()
    assert "image/png" not in bundle
    assert "<iframe" not in bundle["text/html"]
    assert "process 0" in bundle["text/html"]
    assert "no epprof_nb" in bundle["text/plain"]


def test_the_picture_without_styles_has_the_colours_of_both_parts():
    png = base64.b64decode(job_view(2).mimebundle()["image/png"])
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    for colour in ((0, 114, 178), (213, 94, 0)):
        assert (pixels == colour).all(axis=2).mean() > 0.05


def test_a_rank_whose_part_is_damaged_is_listed_with_the_reason():
    class Parts(dict):
        def __getitem__(self, rank):
            if rank == 1:
                raise ProfileFileError("activities.parquet is damaged")
            return super().__getitem__(rank)

    profiles, bounds, ranks, _ = rank_tables(3)
    view = JobView(Parts(profiles), bounds=bounds, ranks=ranks)
    assert [np.isnan(row.busy).all() for row in view.shown.rows] == [False, True, False]
    assert "rank 1: damaged: activities.parquet is damaged" in view.text
