"""Outputs of a view for front ends (payload, page, image, text), also for unusual profiles."""

from __future__ import annotations

import base64
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings import ranking
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.util.html import with_code
from epprof_nb.views import view
from epprof_nb.views.queries.selected_events import select_events
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.renderers.html import notebook_html, page_html
from epprof_nb.views.view import View, write_html
from epprof_nb.views.view_model import FINDINGS_LEFT_OUT, ViewModel
from epprof_nb.views.wire.headers import full_header
from epprof_nb.views.wire.live_messages import window_message
from epprof_nb.views.wire.page_payload import page_payload
from tests.helpers.planted import synchronising
from tests.helpers.tiny import activity, kernel, op, profile
from tests.unit.views.wire.test_wire_format import decode

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>`$\\frac$\x00\n"


def tiny(ops: int = 1, *, start=0, end=1000, kind="kernel", name="k", info=None) -> Profile:
    """One activity, and one op if requested."""
    op_table = Table(
        OPS,
        {
            "op_id": np.arange(1, ops + 1),
            "parent_op_id": np.full(ops, -1),
            "name": CategoryColumn.constant(name, ops),
            "op_type": CategoryColumn.constant("range", ops),
            "thread_id": np.full(ops, 5),
            "start_ns": np.full(ops, start),
            "end_ns": np.full(ops, end),
            "duration_ns": np.full(ops, end - start),
            "count": np.ones(ops, np.int64),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of([kind]),
            "name": CategoryColumn.of([name]),
            "device_id": np.array([0]),
            "stream_id": np.array([7]),
            "start_ns": np.array([start]),
            "end_ns": np.array([end]),
            "duration_ns": np.array([end - start]),
            "op_id": np.array([1 if ops else -1]),
        },
    )
    return Profile({"ops": op_table, "activities": activities}, info or {})


def unpack(profile: Profile, **options):
    return decode(zlib.decompress(page_payload(ViewModel(profile), **options)))


def whole(profile: Profile) -> WindowQuery:
    return WindowQuery(*ViewModel(profile).time_range)


class Tags(HTMLParser):
    """Collects tags and the text outside scripts, styles and frames."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.frame: str | None = None

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "iframe":
            self.frame = dict(attrs)["srcdoc"]


def parse(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    return parser


def test_payload_keeps_every_event_of_a_small_profile():
    profile = synthetic_profile(activities=500)
    header, columns = unpack(profile)
    activities = profile.tables["activities"]
    assert header["shown"]["activities"] == [500, 500]
    assert sorted(columns["act.start"]) == sorted(activities["start_ns"])
    rebuilt = {
        (start, header["names"][code])
        for start, code in zip(columns["act.start"], columns["act.name"], strict=True)
    }
    names = activities.names("name").to_list()
    assert rebuilt == set(zip(activities["start_ns"].tolist(), names, strict=True))


def test_the_header_lists_the_kinds_that_occur():
    def kinds(*activities):
        prof = profile(ops=[op(1, "a", 0, 10)], activities=activities)
        return full_header(ViewModel(prof))["kinds_present"]

    assert kinds() == []
    assert kinds(activity("synchronization", 1, 2), kernel(1, 2), kernel(3, 4)) == [
        "kernel",
        "synchronization",
    ]


def test_ops_in_the_payload_point_at_their_parents():
    profile = synthetic_profile(activities=300)
    _, columns = unpack(profile)
    ids = columns["op.id"]
    parents = np.where(columns["op.op"] >= 0, ids[columns["op.op"]], -1)
    table = profile.tables["ops"]
    expected = dict(zip(table["op_id"].tolist(), table["parent_op_id"].tolist(), strict=True))
    # A `with` statement has the row of its op, which takes its place in the tree.
    for statement in ViewModel(profile).op_of_statement:
        above = expected.pop(int(table["op_id"][statement]))
        below = int(table["op_id"][statement])
        expected = {op: above if parent == below else parent for op, parent in expected.items()}
    assert dict(zip(ids.tolist(), parents.tolist(), strict=True)) == expected


def test_slices_are_in_order_and_complete():
    header, columns = unpack(synthetic_profile(activities=2000))
    for prefix in ("op", "api", "act"):
        covered = 0
        for _, _, first, end in header["slices"][prefix]:
            assert first == covered
            covered = end
            assert np.all(np.diff(columns[f"{prefix}.start"][first:end]) >= 0)
        assert covered == len(columns[f"{prefix}.start"])


def test_of_a_large_profile_one_rectangle_stands_for_several_events():
    profile = synthetic_profile(activities=120_000)
    header, columns = unpack(profile)
    for name, prefix, table in (
        ("activities", "act", "activities"),
        ("ops", "op", "ops"),
        ("API calls", "api", "api_calls"),
    ):
        sent, total = header["shown"][name]
        assert sent == len(columns[f"{prefix}.start"])
        members = columns.get(f"{prefix}.members", np.ones(sent, np.int64))
        drawn = ViewModel(profile).layout.by_prefix()[prefix].is_drawn
        assert total == members.sum() == drawn.sum()
        # Only `with` statements are not drawn: each has the row of its op.
        assert drawn.all() or table == "ops"
    assert columns["act.members"].max() > 1
    assert sum(sent for sent, _ in header["shown"].values()) <= 60_000
    html = View(profile).mimebundle()["text/html"]
    assert len(html) < 2_000_000


def test_every_op_that_is_not_sent_is_stood_for_by_one_above():
    profile = synthetic_profile(activities=5000)
    _, columns = query_window(ViewModel(profile), whole(profile), max_rects=400)
    sent = len(columns["op.start"])
    assert sent < len(profile.tables["ops"])
    assert columns["act.op"].max() < sent
    assert (columns["act.op"] >= 0).mean() > 0.9


def test_a_window_holds_what_reaches_into_it():
    profile = synthetic_profile(activities=3000)
    middle = profile.wall_ns * 3 // 4
    window = WindowQuery(middle, middle + 10**6)
    header, columns = decode(window_message(ViewModel(profile), window))
    activities = profile.tables["activities"]
    inside = (activities["end_ns"] >= middle) & (activities["start_ns"] <= middle + 10**6)
    assert header["shown"]["activities"] == [int(inside.sum())] * 2
    assert sorted(columns["act.row"]) == np.flatnonzero(inside).tolist()


def test_a_window_asked_for_with_a_selection_says_what_is_highlighted():
    profile = synthetic_profile(activities=20_000)
    view_model = ViewModel(profile)
    op = len(profile.tables["ops"]) // 2
    wanted = {"what": "event", "prefix": "op", "row": op}
    is_highlighted = select_events(view_model, wanted).highlighted["act"]
    marked = Selections(view_model).of(wanted).highlighted
    _, columns = query_window(
        view_model, whole(profile), max_rects=2000, details=False, highlighted=marked
    )
    shown = np.flatnonzero(columns["act.highlighted"])
    start, dur = columns["act.start"][shown], columns["act.dur"][shown]
    first = profile.tables["activities"]["start_ns"][is_highlighted]
    # Every highlighted event lies in a highlighted rectangle, and each of these holds one.
    inside = (first[:, None] >= start) & (first[:, None] <= start + dur)
    assert inside.any(axis=1).all()
    assert inside.any(axis=0).all()
    assert 0 < len(shown) < len(columns["act.highlighted"])


@pytest.mark.parametrize("seen", [0, 1])
def test_lanes_out_of_view_have_fewer_rectangles(seen):
    work = [kernel(10 * i, 10 * i + 5, stream_id=7 + i % 2) for i in range(4000)]
    window = WindowQuery(0, 40_000, width=400.0, lanes=(seen, seen + 1))
    header, _ = query_window(ViewModel(profile([], work)), window)
    drawn = {lane: end - first for lane, _, first, end in header["slices"]["act"]}
    assert 4 * drawn[1 - seen] < drawn[seen]


def test_lanes_do_not_depend_on_the_window():
    profile = synthetic_profile(activities=3000)
    view_model = ViewModel(profile)
    full, _ = query_window(view_model, whole(profile))
    part, _ = query_window(view_model, WindowQuery(10**7, 2 * 10**7))
    lanes = {(lane, row) for lane, row, *_ in full["slices"]["act"]}
    assert {(lane, row) for lane, row, *_ in part["slices"]["act"]} <= lanes


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(Profile(), id="empty"),
        pytest.param(tiny(), id="one event"),
        pytest.param(tiny(ops=0), id="no op"),
        pytest.param(tiny(start=5, end=5), id="zero duration"),
        pytest.param(tiny(start=50, end=5), id="negative duration"),
        pytest.param(tiny(start=-900, end=2**60), id="far apart"),
        pytest.param(tiny(kind="a kind of tomorrow"), id="unknown kind"),
        pytest.param(tiny(kind="synchronization"), id="only a wait"),
        pytest.param(tiny(name=HOSTILE), id="hostile"),
        pytest.param(tiny(name=""), id="no name"),
        pytest.param(
            tiny(info={"devices": [{}, "?"], "recorded": {"launched": 3, "lost": {"kernel": 1}},
                       "profiling_cost": {}, "attribution": None, "error": "ValueError: <b>"}),
            id="odd info",
        ),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_every_profile_shows_itself(profile, tmp_path):
    data = View(profile).mimebundle()
    assert set(data) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"]
    unpack(profile)
    write_html(profile, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_hostile_names_never_become_markup():
    profile = tiny(name=HOSTILE)
    profile.sources["In[1]<b>"] = HOSTILE
    harmless = tiny(name="k")
    harmless.sources["In[1]"] = "k"
    for hostile, plain in (
        (page_html(ViewModel(profile)), page_html(ViewModel(harmless))),
        (notebook_html(ViewModel(profile), b""), notebook_html(ViewModel(harmless), b"")),
    ):
        assert parse(hostile).tags == parse(plain).tags
    frame = parse(notebook_html(ViewModel(profile), b"")).frame
    assert parse(frame).tags == parse(page_html(ViewModel(harmless))).tags
    assert "alert(1)</script>" not in frame


def test_the_page_may_use_no_network():
    html = page_html(ViewModel(tiny()))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert not re.search(r'(?:src|href)="(?!data:)', html)


def test_the_frame_is_sandboxed_and_the_fallback_has_a_picture_and_a_table():
    html = View(tiny()).mimebundle()["text/html"]
    assert 'sandbox="allow-scripts"' in html
    assert "allow-same-origin" not in html
    fallback = html[html.index('class="epprof-fallback"') :]
    assert "data:image/png;base64," in fallback
    assert "<table>" in fallback
    # Sanitisers that keep inline styles must not keep it hidden.
    assert "display:none" not in fallback


def test_the_page_of_a_large_profile_says_that_it_has_no_findings(monkeypatch, tmp_path):
    profile = synchronising()
    found = ranking.findings(ProfileIndex(profile))[0].text
    assert found in View(profile).mimebundle()["text/plain"]
    rows = sum(len(profile.tables[name]) for name in ("ops", "activities", "api_calls"))
    monkeypatch.setattr(view, "MAX_ROWS_WITH_FINDINGS", rows - 1)
    # A live view is there before its page, which may take longer.
    live = View(profile).mimebundle(selections=Selections(ViewModel(profile)))
    assert found in live["text/plain"]
    write_html(profile, tmp_path / "page.html")
    assert with_code(found) in (tmp_path / "page.html").read_text(encoding="utf-8")

    monkeypatch.setattr(ranking, "findings", None)  # neither shown nor computed
    shown = View(profile).mimebundle()
    assert FINDINGS_LEFT_OUT in shown["text/plain"]
    frame = parse(shown["text/html"]).frame
    assert with_code(FINDINGS_LEFT_OUT) in frame
    header = full_header(ViewModel(profile, with_findings=False))
    assert (header["findings"], header["headline"]["notes"][0]) == ([], FINDINGS_LEFT_OUT)


def test_the_frames_page_behind_a_view_are_its_rows():
    profile = synthetic_profile(activities=200)
    assert len(View(profile, tab="timeline").to_frame()) == 200
    assert "self_device_ns" in View(profile, tab="breakdown").to_frame()
    assert "source" in View(profile, tab="source").to_frame()


def test_control_characters_are_escaped_in_every_form_and_kept_in_the_data(tmp_path):
    evil = "a\x1b]0;t\x07\b\x00\x7f\x9b31m"
    shown = r"a\x1b]0;t\x07\x08\x00\x7f\x9b31m"
    prof = profile(
        ops=[op(1, evil, 0, 90)],
        activities=[kernel(20, 70, 1, name=evil)],
        info={"cell": "In[1]", "devices": [{"device_id": 0, "name": evil}], "error": f"{evil}\r"},
        sources={"In[1]": f"x = 1  # {evil}\r\n\ty = 2"},
    )
    bundle = View(prof, "breakdown")._repr_mimebundle_()
    write_html(prof, tmp_path / "page.html")
    comparison = epprof_nb.compare(prof, prof)
    comparison.to_html(tmp_path / "comparison.html")
    pages = [(tmp_path / f"{name}.html").read_text() for name in ("page", "comparison")]
    texts = [bundle["text/plain"], repr(comparison)]
    forms = [bundle["text/html"], comparison.to_markdown(), *pages, *texts]
    for text in [*forms, *comparison._repr_mimebundle_().values()]:
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
    for text in texts:
        assert "\r" not in text
    assert shown in bundle["text/plain"]
    header, _ = unpack(prof)
    assert shown in header["names"]
    assert prof.ops["name"].tolist() == [evil]


def test_controls_of_direction_are_escaped_in_every_form_and_kept_in_the_data(tmp_path):
    evil, isolated = "abc\u202etxt.exe (100 %", "\u2066a\u2069\u200e\u200f\\u202e"
    prof = profile(
        ops=[op(1, evil, 0, 90), op(2, isolated, 10, 80, 1)],
        activities=[kernel(20, 70, 1, name=evil), kernel(70, 80, 2, name=isolated)],
        info={"cell": "In[1]", "devices": [{"device_id": 0, "name": evil}]},
        sources={"In[1]": f"x = 1  # {evil}"},
    )
    bundle = View(prof, "breakdown")._repr_mimebundle_()
    write_html(prof, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    comparison = epprof_nb.compare(prof, prof)._repr_mimebundle_()
    forms = [bundle["text/html"], bundle["text/plain"], page, *comparison.values()]
    for text in forms:
        assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    for text in forms[:3]:
        assert r"abc\u202etxt.exe (100 %" in text
    header, _ = unpack(prof)
    assert r"abc\u202etxt.exe (100 %" in header["names"]
    assert r"\u2066a\u2069\u200e\u200f\u202e" in header["names"]
    assert prof.ops["name"].tolist() == [evil, isolated]


def _fallback(bundle) -> str:
    html = bundle["text/html"]
    return html[html.index('class="epprof-fallback"') : html.rindex("<script>")]


def test_without_scripts_each_tab_shows_its_own_content_and_how_to_get_the_view():
    prof = profile(
        [op(1, "outer", 0, 90), op(2, "inner", 5, 80, 1), op(3, "x", 5, 9, 2, op_type="line",
         line=7, cell="In[1]")],
        [kernel(20, 70, 2, name="gemm"), kernel(70, 80, 3, name="copy")],
        info={"cell": "In[1]", "devices": [{"device_id": 0}]},
        sources={"In[1]": "pass"},
    )  # fmt: skip
    tabs = {"timeline": View(prof), "source": View(prof, "source")}
    tabs |= {by: View(prof, "breakdown", by=by) for by in ("op", "kernel", "line", "tree")}
    bundles = {name: shown._repr_mimebundle_() for name, shown in tabs.items()}
    fallbacks = {name: _fallback(bundle) for name, bundle in bundles.items()}
    for name, html in fallbacks.items():
        assert ("<img" in html) == ("image/png" in bundles[name]) == (name == "timeline")
        assert html.count("<table>") == 1
        assert html.count("Trust the notebook") == 1
        assert not re.search("<(style|script|iframe|svg)| style=| onerror", html)
    cells = {name: re.findall("<td>(.*?)</td>", html) for name, html in fallbacks.items()}
    assert {"outer", "inner"} <= set(cells["op"])
    assert cells["tree"] == cells["op"]
    assert {"gemm", "copy"} <= set(cells["kernel"])
    assert "7" in cells["source"]
    assert cells["source"] == cells["line"]
    assert "outer" not in cells["line"]


def test_without_scripts_findings_have_their_remedies_and_gains():
    prof = synchronising()
    found = ViewModel(prof).findings
    assert any("saves" in finding.advice for finding in found)
    html = _fallback(View(prof)._repr_mimebundle_())
    for finding in found:
        assert with_code(finding.advice) in html
