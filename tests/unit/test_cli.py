"""The command line: arguments that are refused before anything runs."""

import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from epprof_nb.cli import main
from epprof_nb.files.epprof.reading_writing import save
from tests.helpers.saved_profiles import some
from tests.helpers.tiny import kernel, op, profile


@pytest.fixture
def saved(tmp_path):
    save(some(), tmp_path / "run.epprof")
    return str(tmp_path / "run.epprof")


@pytest.fixture
def no_work(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("work was done for a report that cannot be written")

    monkeypatch.setattr("epprof_nb.commands.demo_workload.run", fail)
    monkeypatch.setattr("epprof_nb.jobs.loading.load", fail)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nonexistent/x.html", "/nonexistent does not exist"),
        ("/proc/self/status/x.html", ""),
        ("", ""),
    ],
)
@pytest.mark.parametrize("command", ["demo --report", "report RUN --output"])
def test_a_report_that_cannot_be_written_is_refused_first(no_work, saved, command, path, why):
    arguments = [saved if part == "RUN" else part for part in command.split()]
    result = CliRunner().invoke(main, [*arguments, path])
    assert result.exit_code == 2, result.output
    assert why in result.output.replace("\n", " ")
    assert not result.exception or isinstance(result.exception, SystemExit)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_first(no_work, saved, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    result = CliRunner().invoke(main, ["report", saved, "-o", str(folder / "x.html")])
    assert result.exit_code == 2
    assert "cannot be written" in result.output


def test_a_report_is_written_to_a_file_or_a_device(saved, tmp_path):
    for target in (tmp_path / "x.html", "/dev/null"):
        result = CliRunner().invoke(main, ["report", saved, "-o", str(target)])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")


def test_redact_says_which_parts_there_are(saved):
    result = CliRunner().invoke(main, ["report", saved, "--redact", "sources"])
    assert result.exit_code == 2
    text = " ".join(result.output.replace("│", " ").split())
    assert "cannot remove 'sources': choose from source, paths, hosts, shapes, or all." in text


def test_info_writes_the_size_of_a_small_file(saved):
    result = CliRunner().invoke(main, ["info", saved])
    assert "(0.0 MB)" not in result.output
    assert re.match(r".*run\.epprof \(\d[\d.]* (B|kB)\)\n", result.output)


def test_info_names_the_dropped_records(tmp_path):
    recorded = {"dropped": 1_000, "ops_lost": 2, "calls_lost": 0}
    save(profile([op(1, "a", 0, 9)], info={"recorded": recorded}), tmp_path / "run.epprof")
    run = CliRunner().invoke(main, ["info", str(tmp_path / "run.epprof")])
    assert "1,000 activities, 2 ops\n" in run.output


@pytest.mark.parametrize("used", [False, True])
def test_info_says_whether_the_host_device_was_used(tmp_path, used):
    host = [{"device_id": 1000, "name": "host device", "kind": "host"}]
    work = [kernel(1, 2, device_id=1000)] if used else []
    save(profile([], work, info={"devices": host}), tmp_path / "host.epprof")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "host.epprof")])
    assert ("host device (nothing ran on it)" in result.output) == (not used)
    assert "host device" in result.output


def test_the_command_line_imports_only_what_the_command_needs():
    code = "import sys, epprof_nb.cli; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "epprof_nb.commands.run" in loaded
    heavy = {"numpy", "pandas", "pyarrow", "mcp", "epprof_nb.profiles"}
    assert not heavy & set(loaded)


def test_info_shows_control_characters_as_escapes(tmp_path):
    evil = "\x1b]0;title\x07\x1b[31m\r\x9bred\u202e"
    info = {
        "cell": evil, "error": evil, "notes": [evil, f"two\n{evil}"], "versions": {evil: evil},
        "devices": [{"device_id": 0, "name": evil, "kind": "gpu"}], "redacted": [evil],
    }  # fmt: skip
    prof = profile([op(1, evil, 0, 5)], [kernel(0, 5, 1)], info=info, sources={evil: "x"})
    save(prof, tmp_path / "evil.epprof")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "evil.epprof")])
    assert result.exit_code == 0
    assert all(c.isprintable() for c in result.output.replace("\n", ""))
    assert r"note: two\n\x1b]0;title" in result.output
