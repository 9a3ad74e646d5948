"""Figures: the data in the artists, and state that they do not change."""

import builtins
import doctest

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from epprof_nb.analysis.base.index import index_of
from epprof_nb.arrays.intervals import length
from epprof_nb.testing import synthetic_profile
from epprof_nb.util.palette import COPY, KERNEL
from epprof_nb.views.plots import figures
from epprof_nb.views.plots.distributions import distribution, kernel_labels, log_edges
from tests.helpers.tiny import activity, kernel, line, op, profile

BY = ["op", "op_type", "node", "kernel", "line", "stream"]


@pytest.fixture
def ax():
    return Figure(figsize=(6, 4)).subplots()


@pytest.fixture(scope="module")
def loop():
    return synthetic_profile(activities=3000)


def widths(container):
    return [bar.get_width() for bar in container]


def test_kernels_without_a_name_are_drawn_as_such(ax):
    kernels = [kernel(0, 10, -1, name=None), kernel(20, 30, -1, name="a"), kernel(30, 50, -1)]
    kernels.append(kernel(60, 90, -1, name=None))
    profile(activities=kernels).plot.kernels(ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "(no name)"
    assert len(labels) == 3


def test_bars_have_the_widths_of_the_breakdown(ax, loop):
    assert loop.plot.breakdown(ax, top=5) is ax
    frame = loop.by_op().nlargest(5, "device_ns")
    total, own = ax.containers
    assert widths(total) == frame["device_ns"].tolist()
    assert widths(own) == frame["self_device_ns"].tolist()
    # The longest is on top, and the ticks are in the unit that the label names.
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.get_xlabel() == "device time (ms)"
    assert ax.xaxis.get_major_formatter()(20_000_000, 0) == "20"


@pytest.mark.parametrize("by", BY)
def test_every_breakdown_can_be_drawn(ax, loop, by):
    loop.plot.breakdown(ax, by=by, top=3)
    frame = getattr(loop, f"by_{by}")()
    frame = frame[frame["device_ns"] > 0].nlargest(3, "device_ns")
    # No node, no operator: the bar shows the work without one.
    assert widths(ax.containers[0]) == frame["device_ns"].tolist()


def test_without_device_time_bars_show_host_time(ax):
    profile([op(1, "a", 0, 70), op(2, "b", 10, 40, 1)]).plot.breakdown(ax)
    assert widths(ax.containers[0]) == [70, 30]
    assert widths(ax.containers[1]) == [40, 30]
    assert ax.get_xlabel() == "host time (ns)"


def test_a_breakdown_by_something_else_is_refused(loop):
    with pytest.raises(ValueError, match="by must be one of op, op_type"):
        loop.plot.breakdown(by="colour")


def rectangles(ax):
    """{(colour, start, end, top)} of all that is drawn."""
    return {
        (to_hex(found.get_facecolor()[0]), *path.get_extents().intervalx, path.get_extents().y0)
        for found in ax.collections
        if isinstance(found, PolyCollection)
        for path in found.get_paths()
    }


def test_the_timeline_draws_each_event_where_its_times_say(ax):
    work = profile(
        [line(1, 1, 0, 1000), op(2, "inner", 100, 600, 1)],
        [
            kernel(200, 400, 2),
            kernel(500, 900, 2),
            activity("memcpy", 300, 700, 1, stream_id=9),
            activity("synchronization", 0, 1000, 1),
        ],
        info={"wall_ns": 1000},
    )
    assert work.plot.timeline(ax) is ax
    found = rectangles(ax)
    spans = {(colour, start, end) for colour, start, end, _ in found}
    assert {(KERNEL, 200, 400), (KERNEL, 500, 900), (COPY, 300, 700)} <= spans
    assert {(start, end) for colour, start, end in spans if colour not in (KERNEL, COPY)} == {
        (0, 1000),
        (100, 600),
    }
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "main thread",
        "stream 7",
        "stream 9",
    ]
    assert ax.get_xlim() == (0, 1000)
    assert "inner" in [text.get_text() for text in ax.texts]


def test_the_timeline_draws_a_window(ax, loop):
    loop.plot.timeline(ax, start_ns=62_000_000, end_ns=64_000_000)
    assert ax.get_xlim() == (62_000_000, 64_000_000)
    starts = [start for _, start, _, _ in rectangles(ax)]
    assert max(starts) <= 64_000_000
    with pytest.raises(ValueError, match="end after it starts"):
        loop.plot.timeline(ax, start_ns=5, end_ns=5)
    for end in (10**30, np.inf):
        with pytest.raises(ValueError, match="the profile is from 0 to"):
            loop.plot.timeline(ax, start_ns=5, end_ns=end)


def test_many_shapes_are_rasterised_and_few_are_not(ax):
    synthetic_profile(activities=60_000).plot.timeline(ax)
    drawn = [found for found in ax.collections if isinstance(found, PolyCollection)]
    assert {(len(found.get_paths()) > 2000) == found.get_rasterized() for found in drawn} == {True}
    assert any(found.get_rasterized() for found in drawn)


def test_utilisation_adds_up_to_the_busy_time(ax, loop):
    loop.plot.utilisation(ax, bins=40)
    (patch,) = (p for p in ax.patches if isinstance(p, StepPatch))
    values, edges, _ = patch.get_data()
    assert len(values) == 40
    assert (np.diff(edges) * values / 100).sum() == pytest.approx(
        length(*index_of(loop).busy()), rel=1e-9
    )


def test_kernels_show_the_share_of_launches_up_to_a_duration(ax, loop):
    loop.plot.kernels(ax, top=2)
    assert len(ax.lines) == 2
    name, activities = loop.by_kernel()["name"].iloc[0], loop.activities
    durations = np.sort(activities["duration_ns"][activities["name"] == name])
    x, y = ax.lines[0].get_data()
    assert (x.min(), x.max(), y.max()) == (durations[0], durations[-1], 1.0)
    assert len(x) <= 1001
    for value, share in zip(x[1::97], y[1::97], strict=True):
        assert share <= (durations <= value).mean()


def test_kernels_as_a_histogram_count_every_launch(ax, loop):
    loop.plot.kernels(ax, top=3, kind="hist")
    counts = loop.by_kernel()["count"].head(3).tolist()
    assert [int(patch.get_data().values.sum()) for patch in ax.patches] == counts
    with pytest.raises(ValueError, match="'ecdf' or 'hist'"):
        loop.plot.kernels(ax, kind="pie")


def test_gaps_add_up_to_the_idle_time(ax, loop):
    loop.plot.gaps(ax, min_ns=1000)
    (patch,) = ax.patches
    assert patch.get_data().values.sum() == loop.gaps(1000)["duration_ns"].sum()


def test_a_distribution_reaches_from_nothing_to_all():
    x, y = distribution(np.array([5, 7, 7]))
    assert (x.tolist(), y.tolist()) == ([5, 5, 7, 7], [0, 1 / 3, 2 / 3, 1])
    edges = log_edges(np.array([1, 999]))
    assert edges[0] <= 1
    assert edges[-1] > 999


def test_kernels_are_called_by_their_own_names_where_these_differ():
    names = ["void at::(anonymous namespace)::norm<int>(f)", "a::k()", "b::k()", "<lambda>"]
    assert kernel_labels(names) == ["norm [i32]", "a::k()", "b::k()", "<lambda>"]


@pytest.mark.parametrize("name", ["timeline", "breakdown", "utilisation", "kernels", "gaps"])
@pytest.mark.filterwarnings("error")
def test_empty_figures_and_odd_names(ax, name):
    getattr(profile().plot, name)(ax)
    assert ax.texts or name == "timeline"
    ax.figure.canvas.draw()
    ax.clear()
    odd = profile([op(1, "$a_{b$ \x00", 0, 50)], [kernel(0, 40, 1, name="$k^$"), kernel(45, 50)])
    getattr(odd.plot, name)(ax)
    ax.figure.canvas.draw()


def test_matplotlib_settings_are_unchanged_and_a_new_figure_is_made(loop):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    before = dict(mpl.rcParams)
    made = loop.plot.breakdown()
    assert plt.fignum_exists(made.figure.number)
    assert dict(mpl.rcParams) == before
    plt.close(made.figure)


def test_the_example_of_the_documentation_holds(monkeypatch):
    # doctest displays results as plain Python does, which sets `_` for every later test.
    monkeypatch.setattr(builtins, "_", None, raising=False)
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    assert doctest.testmod(figures).failed == 0


def test_the_timeline_names_kernels_and_cuts_no_name_at_its_beginning(ax):
    name = "time.sleep(0.001); losses.append(float(loss))"
    ops = [op(1, name, 0, 100), op(2, name, 0, 10, parent=1)]
    kernels = [
        kernel(0, 50, op_id=1, name="void ns::gemm<float>(int)"),
        kernel(52, 60, op_id=1, name="void ns::elementwise_kernel<4>(int)"),
    ]
    profile(ops, kernels, info={"wall_ns": 100}).plot.timeline(ax)
    texts = [text.get_text() for text in ax.texts]
    assert "gemm [f32]" in texts
    assert len(texts) >= 4
    for text in texts:
        assert text.startswith(("time", "gemm", "elem")), text
