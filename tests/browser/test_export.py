"""Views in exported, printed and sanitised notebooks."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pytest

from tests.browser.helpers.github import sanitised

pytestmark = pytest.mark.browser

KERNEL, COPY = (0, 114, 178), (230, 159, 0)


@pytest.fixture(scope="module")
def notebook(profile):
    """A notebook with one output: the known profile's."""
    import nbformat

    data = profile.timeline().mimebundle()
    output = nbformat.v4.new_output("display_data", data=data)
    cell = nbformat.v4.new_code_cell("View(profile)", execution_count=1, outputs=[output])
    return nbformat.v4.new_notebook(cells=[cell])


def _has_colours(pixels, *colours) -> bool:
    """Whether every colour is in a picture (rows, columns, 3) as an area, not as a stray pixel."""
    near = [(np.abs(pixels.astype(int) - colour).max(axis=2) <= 12).sum() for colour in colours]
    return min(near) > 50


def _pixels(png: bytes):
    from matplotlib import image

    return (image.imread(io.BytesIO(png))[..., :3] * 255).round().astype(np.uint8)


def test_the_viewer_works_in_exported_html(opened, notebook, tmp_path):
    exporter = pytest.importorskip("nbconvert").HTMLExporter()
    path = tmp_path / "notebook.html"
    path.write_text(exporter.from_notebook_node(notebook)[0])
    page = opened(path.as_uri())
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").first.wait_for()
    assert page.locator(".epprof-fallback").is_hidden()
    frame.locator("[role=tab][data-tab=breakdown]").click()
    assert "y = step(x)" in frame.locator(".ep-breakdown").text_content()
    frame.locator("[role=tab][data-tab=timeline]").click()
    shot = _pixels(page.locator("iframe.epprof-frame").screenshot())
    assert _has_colours(shot, KERNEL, COPY)


def test_paper_shows_the_picture_and_the_table(opened, notebook, tmp_path):
    exporter = pytest.importorskip("nbconvert").HTMLExporter()
    path = tmp_path / "notebook.html"
    path.write_text(exporter.from_notebook_node(notebook)[0])
    page = opened(path.as_uri())
    page.emulate_media(media="print")
    assert page.locator("iframe.epprof-frame").is_hidden()
    assert page.locator(".epprof-fallback table").is_visible()
    assert _has_colours(_pixels(page.locator(".epprof-fallback img").screenshot()), KERNEL, COPY)


def test_a_pdf_made_by_nbconvert_shows_the_picture_and_the_table(notebook, tmp_path, monkeypatch):
    nbconvert = pytest.importorskip("nbconvert")
    pdfium = pytest.importorskip("pypdfium2")
    api = pytest.importorskip("playwright.async_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs chromium on the PATH")
    launch = api.BrowserType.launch

    async def launch_installed(self, **options):
        return await launch(self, executable_path=chromium, **options)

    # The exporter takes only a Chromium that Playwright has downloaded itself.
    monkeypatch.setattr(api.BrowserType, "launch", launch_installed)
    exporter = nbconvert.WebPDFExporter(disable_sandbox=True)
    document = pdfium.PdfDocument(exporter.from_notebook_node(notebook)[0])
    text = " ".join(page.get_textpage().get_text_bounded() for page in document)
    text = " ".join(text.split())
    for words in ("launched by", "device time", "z = y.get()", "10.0 ms"):
        assert words in text, words
    assert "epprof-frame" not in text
    pages = [page.render(scale=2).to_numpy()[..., 2::-1] for page in document]
    assert any(_has_colours(pixels, KERNEL, COPY) for pixels in pages)


@pytest.mark.parametrize("pictures", [True, False])
def test_github_shows_the_picture_and_the_table_and_no_markup(opened, profile, tmp_path, pictures):
    path = tmp_path / "github.html"
    shown = sanitised(profile.timeline().mimebundle()["text/html"], pictures=pictures)
    path.write_text(f'<!doctype html><meta charset="utf-8">{shown}')
    page = opened(path.as_uri())
    assert page.locator("iframe, script, style").count() == 0
    assert page.locator("table").is_visible()
    assert "10.0 ms" in page.locator("table tr", has_text="z = y.get()").text_content()
    assert page.get_attribute("img", "alt").startswith("100 ms wall, GPU busy 45 %, 2 kernels")
    text = page.inner_text("body")
    assert text.startswith("100 ms wall")
    assert "launched by" in text
    for leak in ("epprof", "srcdoc", "postMessage", "display:none", "{", "doctype"):
        assert leak not in text
    if pictures:
        assert _has_colours(_pixels(page.locator("img").screenshot()), KERNEL, COPY)
    else:
        assert page.locator("img").get_attribute("src") is None  # its text replaces it
    assert page.title() != "hacked"


def test_text_only_shows_the_summary_and_the_ops(profile):
    text = profile.timeline().mimebundle()["text/plain"]
    assert text.startswith("100 ms wall")
    assert "y = step(x)" in text
    assert "<" not in text.replace("<script>", "").replace("<img", "")


def test_the_page_has_one_heading_that_only_screen_readers_meet(opened, page_file):
    page = opened(page_file.as_uri())
    page.locator(".ep-timeline canvas").first.wait_for()
    assert page.locator("h1").all_text_contents() == ["In[3] · Test <b>GPU</b>"]
    box = page.locator("h1").bounding_box()
    assert (box["width"], box["height"]) == (1, 1)
    for number in page.locator("[role=separator][tabindex]").all():
        assert 0 < int(number.get_attribute("aria-valuenow")) < 1000
