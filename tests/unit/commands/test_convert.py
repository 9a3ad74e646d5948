"""`epprof convert`, and the parts that reading does not change."""

import gc

import pytest
from click.testing import CliRunner

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.core.errors import ProfileFileError
from tests.helpers.traces import GOOD, KINETO, NEW_ORT


@pytest.mark.parametrize("name", ["out.epprof", "out.html", "out.json", "out.json.gz"])
def test_traces_are_converted(tmp_path, name):
    out = tmp_path / name
    run = CliRunner().invoke(main, ["convert", str(KINETO), str(out)])
    assert run.exit_code == 0, run.output
    assert "note: Skipped" in run.output
    if "html" not in name:
        again = (epprof_nb.load if "epprof" in name else epprof_nb.read_trace)(out)
        assert len(again.ops) == len(epprof_nb.read_trace(KINETO).ops)


def test_notes_of_a_file_send_no_control_sequences_to_the_terminal(tmp_path):
    profile = epprof_nb.testing.synthetic_profile(activities=3)
    profile.info["notes"] = ["cleared\x1b[2J\r"]
    profile.save(tmp_path / "in.epprof")
    files = [str(tmp_path / name) for name in ("in.epprof", "out.json")]
    run = CliRunner().invoke(main, ["convert", *files])
    assert r"note: cleared\x1b[2J\r" in run.output


def test_bad_conversions_are_refused(tmp_path):
    assert CliRunner().invoke(main, ["convert", str(KINETO), "x.txt"]).exit_code == 2
    (tmp_path / "bad.json").write_text("nothing")
    run = CliRunner().invoke(
        main, ["convert", str(tmp_path / "bad.json"), str(tmp_path / "x.html")]
    )
    assert run.exit_code == 1
    assert "could not be read" in run.output
    summary = CliRunner().invoke(main, ["summary", str(NEW_ORT)])
    assert "MatMul" in summary.output


def test_reading_leaves_the_garbage_collector_as_it_was(read):
    read(GOOD)
    assert not gc.isenabled()  # as in all tests
    gc.enable()
    try:
        read(GOOD)
        assert gc.isenabled()
        with pytest.raises(ProfileFileError):
            read(b"no trace")
        assert gc.isenabled()
    finally:
        gc.disable()
