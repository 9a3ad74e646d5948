"""Pages of hostile, damaged and nearly empty profiles: they open, and say what is missing."""

from __future__ import annotations

import pytest

from epprof_nb.views.view import write_html
from tests.browser.helpers.pixels import ready
from tests.browser.helpers.settling import settled
from tests.helpers.tiny import kernel, line, op, profile

pytestmark = pytest.mark.browser

MS = 1_000_000
LONG = "x" * 10_000
RIGHT_TO_LEFT = "\u202eشبكة عصبية\u202c"
EMOJI = "\N{FIRE}" * 300 + "\N{ZERO WIDTH JOINER}\N{ROCKET}"


def named(name):
    info = {
        "wall_ns": 100 * MS,
        "devices": [{"device_id": 0, "name": name, "kind": "gpu"}],
        "threads": [{"thread_id": 2, "name": name}],
        "notes": [name],
        "error": name,
    }
    ops = [line(1, 1, 0, 90 * MS) | {"name": name}, op(2, name, MS, 80 * MS, parent=1)]
    ops.append(op(3, name, MS, 80 * MS, thread_id=2))
    activities = [
        kernel(5 * MS, 60 * MS, op_id=2, name=f"void ns::{name}<int>(float)"),
        kernel(61 * MS, 70 * MS, op_id=2, name=name),
    ]
    return profile(ops, activities, info=info, sources={name: name})


def jumped():
    ops = [op(1, "a", 0, 90 * MS), op(2, "back", 80 * MS, 10 * MS, parent=1)]
    ops.append(op(3, "far", MS, 3 * 10**18))
    activities = [kernel(5 * MS, 60 * MS, op_id=1), kernel(50 * MS, 40 * MS, op_id=1)]
    activities.append(kernel(-(10**18), 5 - 10**18, op_id=1))
    return profile(ops, activities, info={"wall_ns": 100 * MS})


PROFILES = {
    "long names": lambda: named(LONG),
    "right to left": lambda: named(RIGHT_TO_LEFT),
    "emoji": lambda: named(EMOJI),
    "nothing": lambda: profile(info={"wall_ns": 0}),
    "zero length": lambda: profile([op(1, "a", 0, 0)], [kernel(0, 0, op_id=1)]),
    "one kernel": lambda: profile(activities=[kernel(5, 9)], info={"wall_ns": 20}),
    "one op": lambda: profile([op(1, "only", 5, 9)], info={"wall_ns": 20}),
    "no gpu": lambda: profile(
        [op(1, "only", 5, 9)], info={"wall_ns": 20, "no_gpu": {"is_first": True}}
    ),
    "jumping clock": jumped,
}


@pytest.fixture
def page_of(opened, tmp_path):
    def open_page(name):
        write_html(PROFILES[name](), tmp_path / "page.html")
        return ready(opened((tmp_path / "page.html").as_uri()))

    return open_page


@pytest.mark.parametrize("name", PROFILES)
def test_the_page_opens_and_every_tab_fits_it(page_of, name):
    page = page_of(name)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for tab in ("breakdown", "source", "timeline"):
        page.click(f"[role=tab][data-tab={tab}]")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, tab
    assert not errors
    assert len(page.title()) < 250
    start, end = (int(page.get_attribute(".ep-timeline", f"data-{of}")) for of in ("start", "end"))
    assert 0 < end - start <= 21 * 100 * MS


def test_the_details_of_a_long_name_fit_a_narrow_page(page_of):
    page = page_of("long names")
    page.set_viewport_size({"width": 380, "height": 760})
    settled(page).locator(".ep-timeline").focus()
    page.keyboard.press("/")
    page.keyboard.type("void")
    page.keyboard.press("Enter")
    page.locator(".ep-panel .ep-groups").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_events_of_a_clock_that_jumped_are_counted(page_of):
    page = page_of("jumping clock")
    assert "2 events outside of -1.00 s to 1.10 s cannot be shown" in page.inner_text(".ep-header")


def test_an_empty_profile_says_so(page_of):
    assert "No device work and no ops were recorded." in page_of("nothing").inner_text(".ep-header")
    assert "No device work." in page_of("one op").inner_text(".ep-header")
    assert "No GPU was found" in page_of("no gpu").inner_text(".ep-header")
