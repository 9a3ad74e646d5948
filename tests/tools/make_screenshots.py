"""Write docs/images/timeline.png and timeline_dark.png: README's example in JupyterLab.

    python -m tests.tools.make_screenshots

Needs Chromium, Playwright and JupyterLab. Run it on an idle machine, and look at both pictures.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from tests.browser.conftest import _chromium, _server
from tests.browser.helpers.notebooks import in_lab, notebook, run_all
from tests.browser.jupyterlab.test_jupyterlab import set_theme
from tests.paths import ROOT

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT, RATIO = 1250, 1100, 1.5


def main() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup, profiled = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[:2]
    folder = Path(tempfile.mkdtemp())
    with _server("jupyterlab", folder) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_chromium(), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=RATIO
        )
        page = context.new_page()
        path = notebook(folder, "example.ipynb", setup.rstrip(), profiled.rstrip())
        in_lab(lambda address: page.goto(address) and page, lab, path)
        page.keyboard.press("Control+b")  # no list of files beside the notebook
        run_all(page)
        cell = page.locator(".jp-Notebook .jp-CodeCell").nth(1)
        viewer = cell.locator("iframe.epprof-frame").content_frame.locator(".ep-viewer")
        viewer.locator(".ep-timeline canvas").wait_for(timeout=60_000)
        for theme, name in (("light", "timeline.png"), ("dark", "timeline_dark.png")):
            set_theme(page, theme)
            expect(viewer).to_have_attribute("data-theme", theme)
            page.wait_for_timeout(2_000)  # until all is drawn
            cell.scroll_into_view_if_needed()
            picture = Image.open(io.BytesIO(cell.screenshot())).convert("RGB")
            few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(IMAGES / name, optimize=True)  # a third of the size, and looks the same
            print(IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main()
