"""``epprof demo``: every tab of its page has something to show."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from epprof_nb.cli import main
from epprof_nb.commands import demo_workload
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import full_header


@pytest.fixture(scope="module")
def prof():
    return demo_workload.run()[0]


def test_the_timeline_has_kernels_copies_and_memsets_on_several_rows(prof):
    header = full_header(ViewModel(prof))
    assert {"kernel", "memcpy", "memset"} <= set(header["kinds_present"])
    assert sum(lane["kind"] == "stream" for lane in header["lanes"]) == 2


def test_the_source_has_the_script_with_its_device_time(prof):
    (script,) = full_header(ViewModel(prof))["source"]
    assert script["cell"] == "train_on_host.py"
    lines = {script["lines"][of["line"] - 1].strip(): of for of in script["totals"]}
    assert lines["host.launch(matmul, x, w1, pre)"]["kernels"] == 5
    work = prof.activities.query("kind != 'synchronization'")
    assert sum(of["device_ns"] for of in script["totals"]) == work["duration_ns"].sum()


def test_the_page_is_titled(prof, tmp_path, monkeypatch):
    monkeypatch.setattr(demo_workload, "run", lambda: (prof, "Ran on the host device."))
    report = tmp_path / "demo.html"
    result = CliRunner().invoke(main, ["demo", "--report", str(report)])
    assert result.exit_code == 0, result.output
    assert "<title>train_on_host.py · host device" in report.read_text("utf-8")


def test_a_bottleneck_is_found(prof):
    first = prof.insights().iloc[0]
    assert first["kind"] in ("idle", "wait")  # the device is idle while the host reads a batch
    assert first["gain_ns"] > 0
    decode = prof.by_line().set_index("source").loc["batch = read_batch()"]
    assert decode["device_ns"] == 0
    assert decode["host_ns"] > 0


def test_the_working_directory_stays_as_it_is(prof, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_workload, "run", lambda: (prof, "Ran on the host device."))
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    assert list(tmp_path.iterdir()) == []
    line = next(line for line in result.output.splitlines() if line.startswith("Report"))
    report = Path(line.partition(": ")[2].partition(" (open")[0])
    assert report.is_file()
    report.unlink()
    report.parent.rmdir()
