"""The button that opens a profile in Perfetto."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from epprof_nb.files.readers.read_trace import read_trace

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

COMMAND = 'prof.to_perfetto("trace.pftrace")'


def test_a_page_says_what_to_call(exported):
    page = exported()
    page.click(".ep-perfetto")
    expect(page.locator(".ep-dialog textarea")).to_have_value(COMMAND)
    expect(page.locator(".ep-dialog")).to_contain_text("https://ui.perfetto.dev")
    page.keyboard.press("Escape")
    expect(page.locator(".ep-dialog")).to_have_count(0)


def test_a_live_view_in_jupyterlab_downloads_the_trace(in_jupyterlab, tmp_path):
    page = in_jupyterlab.show("loop")
    with page.expect_download() as download:
        page.locator(".epprof-live .ep-perfetto").last.click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == "trace.json.gz"
    assert json.loads(gzip.decompress(Path(path).read_bytes()))["traceEvents"]
    assert len(read_trace(path).activities) == 3000
    expect(page.locator(".ep-dialog").last).to_contain_text("trace.json.gz")
    page.keyboard.press("Escape")
