"""Code blocks with magics in README and the documentation are cells: they run when pasted."""

import ast
import re

import numpy as np
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from epprof_nb import host
from epprof_nb.notebook.arguments import parse, parse_line
from epprof_nb.notebook.magic import ProfileMagics
from epprof_nb.notebook.settings import GpuProfile
from tests.paths import ROOT

PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted(ROOT.glob("docs/*.md")))]


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


CELLS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
    if re.search(r"^%", block, re.MULTILINE)
]


def test_pages_have_cells_with_magics():
    assert len(CELLS) > 20


@pytest.mark.parametrize("cell", CELLS)
def test_a_block_with_a_magic_is_a_cell(cell):
    lines = cell.splitlines()
    assert not any(line.startswith("%%") for line in lines[1:])
    body = cell
    if lines[0].startswith("%%gpuprofile"):
        parse(ProfileMagics.gpuprofile, lines[0].removeprefix("%%gpuprofile"), GpuProfile())
        body = "\n".join(lines[1:]) + "\n"
        assert body.strip()
    ast.parse(TransformerManager().transform_cell(body))
    for line in lines:
        if line.startswith("%gpuprofile"):
            _, statement = parse_line(
                ProfileMagics.gpuprofile, line.removeprefix("%gpuprofile"), GpuProfile()
            )
            ast.parse(statement)


@pytest.fixture
def run_blocks(run, shell, shown, tmp_path, monkeypatch):
    """Run blocks as cells, with stand-ins for the names that the pages leave to the reader."""
    monkeypatch.chdir(tmp_path)
    x, y = host.to_device(np.ones(64, "f4")), host.empty((64,), "f4")

    def model(a):
        host.launch(np.sqrt, a, y)
        return y

    shell.push({"model": model, "faster_model": model, "x": x, "loader": [x]})

    def run_all(cells):
        for cell in cells:
            result = run(cell)
            assert result.success, cell
        return shell.user_ns

    return run_all


def test_the_example_of_the_readme_shows_its_table(run_blocks, tmp_path):
    names = run_blocks(blocks("README.md"))
    assert {"layer", "x = host.to_device(batch)"} <= set(names["prof"].by_op()["name"])
    assert (tmp_path / "report.html").is_file()


def test_the_first_cells_of_the_guide_run(run_blocks, tmp_path):
    page = blocks("docs/guide.md")
    names = run_blocks(page[: 1 + next(i for i, b in enumerate(page) if "profile() as prof" in b)])
    assert names["prof"].ops["name"].tolist()[-1] == "attention"
    assert (tmp_path / "run.epprof").is_file()


@pytest.mark.parametrize(("page", "name"), [("docs/compare.md", "new"), ("docs/index.md", "prof")])
def test_the_cells_with_magics_of_a_page_run(run_blocks, page, name):
    names = run_blocks([block for block in blocks(page) if block.startswith("%")])
    assert names[name].by_kernel()["name"].tolist() == ["sqrt"]
