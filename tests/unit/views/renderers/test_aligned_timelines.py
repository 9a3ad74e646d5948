"""The timelines of both sides of a comparison, aligned on the first common op."""

import re
import xml.etree.ElementTree as ET
from html import unescape

import numpy as np
import pytest

from epprof_nb import compare
from epprof_nb.views.renderers.aligned_timelines import draw
from epprof_nb.views.widget.widget import LiveView
from tests.helpers.repeated import repeated
from tests.helpers.tiny import kernel, op, profile

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"


def svg_of(result):
    html = result._repr_mimebundle_()["text/html"]
    [document] = re.findall(r'srcdoc="([^"]*)"', html)
    [text] = re.findall(r"<svg.*</svg>", unescape(document))
    return ET.fromstring(text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def rects(svg):
    """Title of each rectangle to its left edge, width and top."""
    found = {}
    for rect in svg.iter(f"{SVG}rect"):
        place = tuple(float(rect.get(name)) for name in ("x", "width", "y"))
        found.setdefault(rect.find(f"{SVG}title").text.split(":")[0], []).append(place)
    return found


def test_time_0_is_the_start_of_the_first_common_op():
    old = repeated({"prepare()": 3 * MS, "model(x)": 4 * MS, "sum()": MS}, noise=0)
    new = repeated({"model(x)": 8 * MS, "sum()": MS}, noise=0)
    result = compare(old, new)
    timelines = result._result.timelines
    assert result._result.paths[timelines.anchor] == "model(x)"
    starts = [
        dict(zip(side.rows[0].names.to_list(), side.rows[0].starts.tolist(), strict=True))
        for side in (timelines.old, timelines.new)
    ]
    assert starts == [
        {"prepare()": -3 * MS, "model(x)": 0, "sum()": 4 * MS},
        {"model(x)": 0, "sum()": 8 * MS},
    ]
    svg = svg_of(result)
    places = rects(svg)
    before, after = places["model(x)"]
    assert before[0] == after[0]
    assert after[1] == pytest.approx(2 * before[1], rel=0.01)
    assert after[2] > before[2]
    kernels = places["kernel kernel of model(x)"]
    assert [k[:2] for k in kernels] == [before[:2], after[:2]]
    # The bar below an op and its kernels marks a change.
    assert len(places["slower"]) == 2 * 2
    assert "0: start of model(x)" in "".join(svg.itertext())


def test_a_typical_repeat_is_shown():
    speed = np.array([9.0, *np.linspace(0.9, 1.1, 19)])
    result = compare(repeated({"a": MS}, noise=0, speed=speed), repeated({"a": MS}, noise=0))
    row = result._result.timelines.old.rows[0]
    assert (row.ends - row.starts)[0] == pytest.approx(MS, rel=0.02)


def test_a_typical_step_is_shown_though_the_first_ones_are_not_compared():
    """Step 0 holds the preparation."""
    speed = np.array([1.0, *[1.5, 0.5] * 9, 1.0])
    steps = repeated({"a": MS}, noise=0, speed=speed, first_step=0)
    result = compare(steps, repeated({"a": MS}, noise=0, first_step=0))
    timelines = result._result.timelines
    row = timelines.old.rows[0]
    assert (row.ends - row.starts).tolist() == [MS]
    starts = steps.ops["start_ns"].tolist()
    assert starts.index(timelines.origins[0]) == len(starts) - 1


def test_without_a_common_op_repeats_are_aligned():
    result = compare(repeated({"a": MS, "b": MS}), repeated({"x": MS}))
    assert result._result.timelines.anchor is None
    assert "0: start of the repeat" in "".join(svg_of(result).itertext())


def test_profiles_without_events_have_no_timelines():
    html = compare(profile(), profile())._repr_mimebundle_()["text/html"]
    assert "iframe" not in html
    assert "<img" not in html


def test_the_size_is_bounded_and_nothing_is_lost():
    count = 4_000
    ops = [op(i + 1, "step", 100 * i, 100 * i + 90, thread_id=i % 7) for i in range(count)]
    ops.append(op(count + 1, "last", 500 * count, 500 * count + 90, thread_id=0))
    work = [
        kernel(100 * i, 100 * i + 80, i + 1, name=f"k{i}", stream_id=i % 9) for i in range(count)
    ]
    prof = profile(ops, work, info={"wall_ns": 501 * count})
    result = compare(prof, prof)
    html = result._repr_mimebundle_()["text/html"]
    assert len(html) < 60_000
    text = "".join(svg_of(result).itertext())
    # Four threads and three streams are not shown.
    assert text.count("7 more rows") == 2
    shown = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) events: ", text)]
    streams = [count // 9 + (s < count % 9) for s in range(9)]
    assert sum(shown) >= sum(sorted(streams)[-6:])


def test_hostile_names_stay_text_and_odd_times_are_drawn():
    name = "</svg><script>alert(1)</script>\x00\ud800"
    old = repeated({name.replace("\ud800", "").replace("\x00", ""): MS})
    svg = svg_of(compare(old, old))
    assert not list(svg.iter(f"{SVG}script"))
    odd = profile([op(1, "a", 0, 0), op(2, "b", 2**61, 2**61)], info={"wall_ns": 2**61})
    places = rects(svg_of(compare(odd, odd)))
    assert {"a", "b"} <= set(places)


def test_the_axis_has_round_times():
    result = compare(repeated({"a": 7 * MS}), repeated({"a": 13 * MS}))
    text = draw(result._result.timelines, {}, "a").svg()
    labels = re.findall(r"text-anchor:\w+\">([^<]+)<", text)
    assert labels[:3] == ["0 s", "5.00 ms", "10.0 ms"]


def test_the_views_of_both_sides_show_the_same_time_range(monkeypatch):
    """They zoom together about the start of the common op, at one scale."""
    monkeypatch.setattr(LiveView, "show", lambda *_: None)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    old = repeated({"prepare()": 3 * MS, "model(x)": 4 * MS}, noise=0)
    new = repeated({"model(x)": 8 * MS}, noise=0)
    views = compare(old, new).widget()
    assert [data["text/plain"] for data in shown] == ["before", "after"]
    links = [view.link for view in views]
    assert links[0]["group"] == links[1]["group"]
    ranges = [
        np.subtract(view.selections.view_model.time_range, link["origin"])
        for view, link in zip(views, links, strict=True)
    ]
    assert ranges[0].tolist() == ranges[1].tolist()
    for link, prof, name in zip(links, (old, new), ("model(x)", "model(x)"), strict=True):
        ops = prof.tables["ops"]
        starts = ops["start_ns"][ops.names("name").equals(name)]
        assert link["origin"] in starts
        assert link["first"] == {"start": -3 * MS, "end": 8 * MS}
    for view in views:
        view.close()
