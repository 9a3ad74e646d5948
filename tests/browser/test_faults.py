"""Pages of odd profiles open without an error and draw their events."""

from __future__ import annotations

import io

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.views.view import write_html
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser

KERNEL = (0, 114, 178)
MS = 1_000_000


def _profile(start, end, *, stream=7, name="k", wall=0) -> Profile:
    count = len(start)
    return Profile(
        {
            "activities": Table(
                ACTIVITIES,
                {
                    "kind": CategoryColumn.constant("kernel", count),
                    "name": CategoryColumn.constant(name, count),
                    "device_id": np.zeros(count, np.int64),
                    "stream_id": np.broadcast_to(stream, count).astype(np.int64),
                    "start_ns": np.array(start, np.int64),
                    "end_ns": np.array(end, np.int64),
                    "duration_ns": np.zeros(count, np.int64),
                },
            )
        },
        {"wall_ns": wall},
    )


PROFILES = {
    "zero events": (_profile([], [], wall=MS), 0),
    "one event": (_profile([0], [MS]), 1),
    "no duration": (_profile([5], [5], wall=10), 1),
    "negative duration": (_profile([500], [400], wall=1000), 1),
    "out of order": (_profile([3 * MS, 0, 2 * MS], [4 * MS, MS, 3 * MS]), 1),
    "clock overflow": (_profile([-(2**63), 0], [-(2**63) + 5, 2**63 - 1]), 1),
    "a gap of a second": (_profile([0, 10**9 + MS], [MS, 10**9 + 2 * MS]), 1),
    "a name of 10,000 characters": (_profile([0], [MS], name="x" * 10_000), 1),
    "right-to-left text": (_profile([0], [MS], name="\u202e\u05d0<b>"), 1),
    "10,000 streams": (
        _profile(
            np.arange(30_000) * 1000, np.arange(30_000) * 1000 + 900, stream=np.arange(30_000) // 3
        ),
        1,
    ),
}


def _blue(png: bytes) -> int:
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return int((np.abs(pixels - KERNEL).max(axis=2) < 40).sum())


@pytest.mark.parametrize("name", PROFILES)
def test_a_page_of_an_odd_profile_draws_what_there_is(opened, tmp_path, name):
    profile, drawn = PROFILES[name]
    path = tmp_path / "page.html"
    write_html(profile, path)
    assert path.stat().st_size < 2_000_000
    page = opened(path.as_uri())
    canvas = page.locator(".ep-timeline canvas").last
    canvas.wait_for()
    settled(page)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("w")
    page.keyboard.press("0")
    settled(page)
    lanes = page.locator(".ep-label", has_text="stream")
    assert (lanes.count() > 0) == bool(drawn)
    if drawn:
        assert _blue(page.locator(".ep-timeline").screenshot()) > 0
