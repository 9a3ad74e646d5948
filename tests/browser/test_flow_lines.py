"""Flow lines: a few as lines, many as ribbons that do not hide the events they lead to."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.helpers.pixels import KERNEL, WHITE, lane_y, picture, x_at
from tests.browser.helpers.settling import settled
from tests.browser.test_renderers import MS, kernels

pytestmark = pytest.mark.browser

ROW = 18  # height of a stream's row, pixels


def chosen(page):
    """The picture before and after the cell's op was clicked, without the pointer on it."""
    page.mouse.move(0, 0)
    settled(page)
    before = picture(page)
    page.click(
        ".ep-timeline canvas", position={"x": x_at(page, 50), "y": lane_y(page, "main thread")}
    )
    page.mouse.move(0, 0)
    settled(page)
    return before, picture(page)


@pytest.mark.parametrize("launches", [40, 600])
def test_many_lines_do_not_hide_what_they_lead_to(shown, launches):
    # Kernels of 1 ms or less, half of the time, in the second half of the cell.
    period = 50 * MS // launches
    start = 40 * MS + np.arange(launches) * period
    page = shown(kernels(start, np.full(launches, period // 2), 100 * MS))
    before, after = chosen(page)
    top = round(lane_y(page, "stream 7")) - 8
    apart = np.abs(after - before)[top + 1 : top + ROW].max(axis=2)
    assert (np.abs(before[top + 1 : top + ROW] - KERNEL).max(axis=2) < 110).mean() > 0.2
    assert (apart > 24).mean() < 0.04


def test_a_ribbon_leads_from_where_work_was_launched_to_it(shown):
    start = 60 * MS + np.arange(60) * MS // 2
    page = shown(kernels(start, np.full(60, MS // 4), 100 * MS))
    before, after = chosen(page)
    middle = round((lane_y(page, "main thread") + lane_y(page, "stream 7")) / 2)
    tinted = np.flatnonzero(np.abs(after[middle] - before[middle]).max(axis=1) > 6)
    assert len(tinted) > 0.15 * after.shape[1]
    # It is not drawn over idle time below it, nor after the last kernel.
    assert tinted.max() < x_at(page, 91)
    idle = after[round(lane_y(page, "stream 7")), round(x_at(page, 23))]
    assert tuple(idle) == WHITE
