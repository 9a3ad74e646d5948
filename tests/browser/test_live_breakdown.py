"""The live view's breakdown in a real JupyterLab: Python sends rows that the page lacks."""

from __future__ import annotations

import pytest

from tests.browser.helpers.notebooks import no_error

pytestmark = pytest.mark.browser

# 900 ops of as many names: more than a page would hold.
MANY = """
import numpy as np
from epprof_nb.profiles import Profile
from epprof_nb.data.schema import OPS
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.table import Table
from epprof_nb.views.view import View

n, one = 900, np.ones(900, np.int64)
start, length = np.arange(n) * 1000, 990 - np.arange(n)
ops = Table(OPS, {
    "op_id": np.arange(1, n + 1), "parent_op_id": -one,
    "name": CategoryColumn.of([f"op {i:03}" for i in range(n)]),
    "op_type": CategoryColumn.constant("range", n),
    "thread_id": one, "start_ns": start, "end_ns": start + length,
    "duration_ns": length, "count": one, "status": CategoryColumn.constant("complete", n),
})
live = View(Profile({"ops": ops}, {"wall_ns": n * 1000}), tab="breakdown").widget()
"""


def test_python_answers_searches_sorts_and_the_tree_in_jupyterlab(in_jupyterlab):
    from playwright.sync_api import expect

    page = in_jupyterlab.page
    in_jupyterlab.run(0, MANY.strip())
    viewer = page.locator(".epprof-output .ep-live")
    said, rows = viewer.locator(".ep-filter-status"), viewer.locator(".ep-table-place tbody tr")
    expect(said).to_contain_text("900 rows, the first 400 shown", timeout=60_000)
    assert rows.count() == 400
    # The shortest ops have no place among the longest: only Python can find them.
    viewer.locator(".ep-tools input").fill("op 89[0-4]")
    expect(said).to_contain_text("5 of 900 rows", timeout=60_000)
    expect(rows).to_have_count(5)
    # Op 890 is also the first by duration, so the heading shows when the answer is there.
    name = viewer.locator("th[data-column=name]")
    name.locator("button").click()
    expect(name).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text("op 890")
    name.locator("button").click()
    expect(name).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_contain_text("op 894")
    viewer.locator("[data-by=tree]").click()
    viewer.locator(".ep-icicle canvas").wait_for(timeout=60_000)
    expect(said).to_contain_text("5 found", timeout=60_000)
    no_error(page)
