"""Write docs/images/job.png and job_dark.png: a job of four ranks, of which one is late.

    python -m tests.tools.make_job_picture

Needs Chromium, Playwright and PyTorch. The ranks run on this machine: host device and gloo. Run it
on an idle machine, and look at both pictures.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import epprof_nb
from tests.browser.conftest import _chromium
from tests.helpers.jobs import add_part
from tests.helpers.rank_programs import run_ranks
from tests.paths import ROOT

IMAGES = ROOT / "docs" / "images"
RANKS = 4
PROGRAM = """
    from epprof_nb import host

    def forward():
        time.sleep(0.012)

    def backward():
        time.sleep(0.02)

    def augment(batch):
        if rank == 2 and step % 3:
            time.sleep(0.018)

    gradients = torch.ones(1000)
    with epprof_nb.profile():  # the first profile takes longer to begin
        dist.barrier()
    with epprof_nb.profile() as prof:
        for step in range(10):
            augment(step)
            host.launch(forward)
            host.launch(backward)
            host.synchronize()
            dist.all_reduce(gradients)
    save(prof)
    dist.destroy_process_group()
"""


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    ranks = run_ranks(folder, PROGRAM, RANKS)
    for rank in ranks:
        add_part(
            folder / "run", rank, profile=ranks.profiles[rank], begin_ns=ranks.offset_ns(rank),
            pid=4100 + rank, world_size=RANKS, hostname="node-1",
        )  # fmt: skip
    epprof_nb.load(folder / "run").to_html(folder / "job.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_chromium(), args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        for theme, name in (("light", "job.png"), ("dark", "job_dark.png")):
            page = browser.new_page(
                viewport={"width": 960, "height": 300}, device_scale_factor=1.5, color_scheme=theme
            )
            page.goto((folder / "job.html").as_uri())
            page.locator(".epprof-strips").wait_for()
            shown = page.locator(".epprof-page").screenshot()
            picture = Image.open(io.BytesIO(shown)).convert("RGB")
            few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(IMAGES / name, optimize=True)
            print(IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main()
