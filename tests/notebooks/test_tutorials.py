"""The tutorials run from top to bottom, and their files can be read without a kernel.

The documentation executes them too. ``EPPROF_EXECUTED_NOTEBOOKS`` is the folder of its cache
(``nb_execution_cache_path``), where these tests find them executed. They wait for its file
``complete``.
"""

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.helpers.jupyter_kernels import run_notebook
from tests.paths import ROOT
from tests.tools.store_tutorial_outputs import CODE, code_hash, read

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def executed(request):
    if "pytorch" in request.param.stem and find_spec("torch") is None:
        pytest.skip("needs PyTorch; tests.run_matrix runs it")
    notebook = read(request.param)
    folder = os.environ.get("EPPROF_EXECUTED_NOTEBOOKS")
    if folder:
        from jupyter_cache import get_cache

        while not Path(folder, "complete").exists():  # the test has a time limit
            time.sleep(1)
        return get_cache(folder).merge_match_into_notebook(notebook)[1]
    run_notebook(notebook, cwd=request.param.parent, timeout_s=240)
    return notebook


def outputs(notebook):
    return [
        (cell, output)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def test_profiled_cells_show_a_page_a_picture_and_text(executed):
    profiled = [cell for cell in executed.cells if cell.source.startswith("%%gpuprofile")]
    assert profiled
    for cell in profiled:
        bundles = [o.data for o in cell.outputs if o.output_type == "display_data" and o.data]
        # The comparison with a baseline, or the result of an experiment, is below the profile.
        more = [option for option in ("--baseline", "--experiment") if option in cell.source]
        assert len(bundles) == 1 + len(more)
        assert {"text/html", "image/png", "text/plain"} <= set(bundles[0])
        assert "wall" in bundles[0]["text/plain"]
        for comparison in bundles[1:]:
            assert {"text/html", "text/plain"} <= set(comparison)


def test_nothing_saved_needs_a_kernel_or_the_network(executed):
    for _, output in outputs(executed):
        data = output.get("data", {})
        assert not [mime for mime in data if "widget-view" in mime]
        html = data.get("text/html", "")
        assert "src=&quot;http" not in html
        assert 'src="http' not in html


def test_no_cell_writes_an_error_or_a_warning(executed):
    for cell, output in outputs(executed):
        assert output.output_type != "error", cell.source
        assert output.get("name") != "stderr", (cell.source, output.get("text"))


def test_the_last_expression_of_each_cell_is_not_empty(executed):
    results = [o for _, o in outputs(executed) if o.output_type == "execute_result"]
    assert len(results) >= 6
    for result in results:
        assert result.data["text/plain"].strip()


@pytest.mark.parametrize(
    "executed", [p for p in NOTEBOOKS if p.stem.startswith("06")], indirect=True
)
def test_comparisons_that_would_mislead_are_refused(executed):
    texts = {
        cell.id: "".join(output.get("text", "") for output in cell.outputs)
        for cell in executed.cells
        if cell.cell_type == "code"
    }
    assert texts["single-reason"].startswith("cannot be compared - One run each")
    assert texts["refused"].startswith("cannot be compared - 1 op ran a different number of times")
    (table,) = (
        output.data["text/html"]
        for cell in executed.cells
        if cell.id == "diff"
        for output in cell.outputs
        if output.output_type == "execute_result"
    )
    assert "renamed" in table
    assert "removed" not in table


def test_words_leave_to_the_tables_what_a_machine_decides():
    """Text that is true on one machine may contradict the tables of another."""
    claims = (
        "cannot mislead", "is what takes longest", "takes less time, and", "find a difference\n",
        "shows no difference", "The device is busy nearly all", "Two findings name this line",
    )  # fmt: skip
    for path in NOTEBOOKS:
        cells = read(path).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert not [claim for claim in claims if claim in text], path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_with_the_code_they_belong_to(path):
    stored = read(path)
    again = "run: python -m tests.tools.store_tutorial_outputs"
    assert stored.metadata.get(CODE) == code_hash(stored), again
    profiled = [
        [output.data for output in cell.outputs if output.output_type == "display_data"]
        for cell in stored.cells
        if cell.source.startswith("%%gpuprofile")
    ]
    assert profiled
    for bundles in profiled:
        assert bundles, again
        assert "image/png" in bundles[0]  # what GitHub shows
    assert path.stat().st_size < 200_000


def test_stored_outputs_are_small():
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 1_500_000
