"""``epprof demo``: every tab of its page has something to show."""

import pytest
from click.testing import CliRunner

from epprof_nb.analysis.base.threads import thread_names
from epprof_nb.cli import main
from epprof_nb.commands import demo_run
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.payload import full_header


@pytest.fixture(scope="module")
def prof():
    return demo_run.run()[0]


def test_the_timeline_has_kernels_copies_and_memsets_on_several_rows(prof):
    header = full_header(ViewModel(prof))
    assert {"kernel", "memcpy", "memset"} <= set(header["kinds_present"])
    assert sum(lane["kind"] == "stream" for lane in header["lanes"]) == 2
    assert "loader_0" in thread_names(prof.info).values()


def test_the_source_has_the_script_with_its_device_time(prof):
    (script,) = full_header(ViewModel(prof))["source"]
    assert script["cell"] == "train_on_host.py"
    lines = {script["lines"][of["line"] - 1].strip(): of for of in script["totals"]}
    assert lines["host.launch(matmul, x, w1, pre)"]["kernels"] == 5
    work = prof.activities.query("kind != 'synchronization'")
    assert sum(of["device_ns"] for of in script["totals"]) == work["duration_ns"].sum()


def test_the_page_is_titled(prof, tmp_path):
    report = tmp_path / "demo.html"
    result = CliRunner().invoke(main, ["demo", "--report", str(report)])
    assert result.exit_code == 0, result.output
    assert "<title>train_on_host.py · host device" in report.read_text("utf-8")
