"""Commands on the folder of a job."""

import json

import pytest
from click.testing import CliRunner

from epprof_nb.cli import main
from tests.helpers.jobs import add_part


@pytest.fixture
def folder(tmp_path):
    for rank in range(2):
        add_part(tmp_path / "run", rank, world_size=3, command=["train.py", "\x1b[31mred"])
    return tmp_path / "run"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_info_lists_the_processes(folder):
    result = run("info", folder)
    assert result.exit_code == 0
    assert "job of 2 of 3 processes" in result.output
    assert "rank 1" in result.output
    assert "note: 1 rank of 3 is missing (2)" in result.output
    assert "\x1b" not in result.output


def test_summary_has_ranks_and_ops(folder):
    text = run("summary", folder).output
    assert "by rank" in text
    assert "In[3]" in text
    found = json.loads(run("summary", folder, "--json").output)
    assert [row["rank"] for row in found["by_rank"]] == [0, 1]
    assert "train.py" not in run("summary", folder, "--redact", "all").output


def test_a_folder_of_something_else_is_an_error(tmp_path):
    for command in ("info", "summary"):
        result = run(command, tmp_path)
        assert result.exit_code == 1
        assert "not the folder of a job" in result.output


def test_compare_says_how_to_compare_ranks(folder):
    result = run("compare", folder, folder)
    assert result.exit_code == 4
    assert f'epprof_nb.load("{folder}")[0].save("rank0.epprof")' in result.output


def test_a_folder_becomes_a_page_or_a_trace(folder, tmp_path):
    page, trace = tmp_path / "run.html", tmp_path / "run.json"
    assert run("report", folder, "-o", page, "--redact", "all").exit_code == 0
    assert "train.py" not in page.read_text()
    result = run("convert", folder, trace)
    assert "note: 1 rank of 3 is missing (2)" in result.output
    processes = {event.get("pid") for event in json.loads(trace.read_text())["traceEvents"]}
    assert len(processes) > 1


@pytest.mark.parametrize("name", ["run.epprof", "run.speedscope.json"])
def test_formats_without_a_place_for_several_processes_are_refused(folder, tmp_path, name):
    result = run("convert", folder, tmp_path / name)
    assert result.exit_code == 2
    assert "its suffix must be .html, .pftrace, .pftrace.gz, .json or .json.gz" in result.output


def test_a_trace_says_which_process_it_lacks(folder, tmp_path):
    next(folder.glob("rank-00001-*/ops.parquet")).write_bytes(b"damaged")
    result = run("convert", folder, tmp_path / "run.json")
    assert result.exit_code == 0
    assert "note: The trace lacks rank 1: " in result.output
