"""A live view is removed with its output, in the browser and in the kernel."""

from __future__ import annotations

import pytest

from tests.browser.helpers.open_notebook import WAIT_MS
from tests.browser.helpers.settling import settled, wait_until

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

HELD = """import gc, weakref
from epprof_nb.testing import synthetic_profile
profile = synthetic_profile(activities=60_000)
made = globals().get("made", [])
made.append(weakref.ref(profile))
live = profile.timeline().widget()
del profile"""
FREED = "gc.collect() * [] + [one() is None for one in made]"


# What a view of these 60,000 activities holds in the browser is about three times this.
SOME = 500_000


def _bytes_held(page) -> int:
    """Bytes of the buffers that the page's scripts hold."""
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    held = client.send("Runtime.getHeapUsage")["backingStorageSize"]
    client.detach()
    return held


def test_running_a_cell_again_frees_what_its_view_held(in_jupyterlab):
    in_jupyterlab.run(1, "made = []")  # another test may have left some
    page = in_jupyterlab.show_by(HELD)
    assert in_jupyterlab.told(FREED).endswith("[False]")
    once = _bytes_held(page)
    for _ in range(3):
        in_jupyterlab.show_by(HELD)
    assert in_jupyterlab.told(FREED).endswith("[True, True, True, False]")
    assert page.locator(".epprof-live").count() == 1
    assert _bytes_held(page) < once + SOME


def test_clearing_an_output_frees_its_view(in_jupyterlab):
    page = in_jupyterlab.show_by(HELD)
    in_jupyterlab.run(
        1, "made.clear(); made.append(weakref.ref(live.selections.view_model.profile))"
    )
    shown = _bytes_held(page)
    in_jupyterlab.cell(0).locator(".jp-InputPrompt").click()
    page.click(".lm-MenuBar-item:has-text('Edit')")
    page.click(".lm-Menu-item:has-text('Clear Cell Output')")
    expect(page.locator(".epprof-live")).to_have_count(0)
    assert in_jupyterlab.told(FREED).endswith("[True]")
    assert in_jupyterlab.told("len(live.selection)") == "0"
    assert _bytes_held(page) < shown - SOME


def test_a_view_scrolled_out_of_sight_or_folded_lives_on(in_jupyterlab):
    page = in_jupyterlab.show_by(HELD)
    view = page.locator(".epprof-live")
    in_jupyterlab.run(2, "for i in range(400): print(i)")
    page.locator(".jp-Notebook .jp-CodeCell").last.scroll_into_view_if_needed()
    # So far out of view that it is not in the document, or not drawn.
    wait_until(
        page, "() => !(document.querySelector('.epprof-live')?.getBoundingClientRect().top > 0)"
    )
    in_jupyterlab.cell(0).scroll_into_view_if_needed()
    collapser = in_jupyterlab.cell(0).locator(".jp-OutputCollapser")
    collapser.click()
    expect(view).to_have_count(0)
    in_jupyterlab.cell(0).locator(".jp-OutputPlaceholder, .jp-Placeholder").first.click()
    view.wait_for()
    page.locator("[role=tab][data-tab=source]").click()
    page.locator(".ep-source").wait_for(timeout=WAIT_MS)  # Python answers
    assert in_jupyterlab.told("len(live.selection)") == "60000"


def test_a_view_shown_anew_leaves_where_it_was(in_jupyterlab):
    page = in_jupyterlab.show_by(HELD)
    in_jupyterlab.run(2, "live")
    view = in_jupyterlab.cell(2).locator(".epprof-output .epprof-live")
    view.locator(".ep-timeline[data-start]").wait_for(timeout=WAIT_MS)
    view.locator(".ep-headline .ep-count").first.wait_for(timeout=WAIT_MS)
    expect(in_jupyterlab.cell(0).locator(".epprof-live")).to_have_count(0)
    expect(in_jupyterlab.cell(0).locator("iframe.epprof-frame")).to_be_visible()
    # At the edge of the window, the notebook scrolls during a click.
    view.evaluate("e => e.scrollIntoView({ block: 'start' })")
    settled(page)
    view.locator("[role=tab][data-tab=source]").click()
    view.locator(".ep-source").wait_for(timeout=WAIT_MS)  # Python answers
    expect(view.locator(".ep-silent")).to_have_text("")
    in_jupyterlab.run(2, "None")
    expect(page.locator(".epprof-live")).to_have_count(0)
    assert in_jupyterlab.told("len(live.selection)") == "0"
