"""The committed front end equals the build of its sources, and is small."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "epprof_nb"
STATIC, FRONTEND = PACKAGE / "views" / "static", PACKAGE / "frontend"
NAMES = ("comparison.js", "job.js", "loader.js", "viewer.js", "viewer.css", "widget.js")


def test_the_committed_bundle_is_the_sources_build(tmp_path):
    node = shutil.which("node")
    if node is None or not (FRONTEND / "node_modules" / "esbuild").exists():
        pytest.skip("needs node and `npm ci` in epprof_nb/frontend")
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=FRONTEND, check=True)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), (
            f"{name} is stale: run `npm run build` in epprof_nb/frontend"
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_bundle_is_small_and_closes_no_element(name):
    text = (STATIC / name).read_text("utf-8")
    assert len(text) < 175_000
    assert "</script" not in text.lower()
    assert "</style" not in text.lower()
    assert "\0" not in text  # separates the styles from the program in a page
