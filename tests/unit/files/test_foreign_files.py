"""Files of another type than expected: errors and headlines say what they are, and what to do."""

import gzip
import json

import pytest
from click.testing import CliRunner

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.core.errors import ProfileFileError
from tests.helpers.tiny import nested

EXPORTS = {
    "a.html": ("to_html", "a web page"),
    "a.pftrace": ("to_perfetto", "Perfetto's own format"),
    "a.pftrace.gz": ("to_perfetto", "Perfetto's own format"),
    "a.speedscope.json": ("to_speedscope", "speedscope"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_are_named_as_files_that_cannot_be_read_back(name, tmp_path):
    method, what = EXPORTS[name]
    path = tmp_path / name
    getattr(nested(), method)(path)
    readers = [epprof_nb.read_trace, *[epprof_nb.load] * (not name.endswith(".gz"))]
    for read in readers:
        with pytest.raises(ProfileFileError, match=r"prof\.save\(path\)") as caught:
            read(path)
        message = str(caught.value)
        assert what in message
        assert f"as prof.{method}() writes it, which cannot be read back" in message
        assert message.count("be read") < 3


def test_a_profile_is_no_trace(tmp_path):
    nested().save(tmp_path / "a.epprof")
    with pytest.raises(ProfileFileError, match=r"load it with epprof_nb\.load\(path\)"):
        epprof_nb.read_trace(tmp_path / "a.epprof")


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_trace_is_no_profile(name, tmp_path):
    path = tmp_path / name
    nested().to_chrome(path)
    advice = r"read it with epprof_nb\.read_trace\(path\), or convert it with: epprof convert"
    with pytest.raises(ProfileFileError, match=advice):
        epprof_nb.load(path)
    run = CliRunner().invoke(main, ["info", str(path)])
    assert run.exit_code == 1
    assert "epprof convert" in run.output


def test_other_files_are_said_to_be_no_trace_once(tmp_path):
    for content in (b"", b"hello", b"{}", gzip.compress(b"null"), b"\n42"):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(ProfileFileError, match="could not be read: it is neither") as caught:
            epprof_nb.read_trace(tmp_path / "a")
        assert "Use a trace of" in str(caught.value)


def test_a_trace_without_events_says_so(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[]")
    assert "The trace has no events." in epprof_nb.read_trace(path).summary()
    path.write_text(json.dumps({"traceEvents": [1, None, "x", [], {}, {"ph": 5}, {"ph": "X"}]}))
    prof = epprof_nb.read_trace(path)
    assert "The trace has no events that can be read; skipped: 6." in prof.summary()
    assert "Host ops are shown" not in prof.summary()
    assert sum(int(note.rsplit(": ")[1][:-1]) for note in prof.info["notes"]) == 6
    prof.save(tmp_path / "a.epprof")
    assert "skipped: 6." in epprof_nb.load(tmp_path / "a.epprof").summary()
