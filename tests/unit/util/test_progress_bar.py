"""Progress bars of long exports: when and where they are shown, and their removal."""

from __future__ import annotations

import contextlib
import io
import threading
import time

import pytest

import epprof_nb
from epprof_nb.testing import synthetic_profile
from epprof_nb.util import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal to use in a ``with`` statement, as pytest replaces stderr after fixtures."""

    @contextlib.contextmanager
    def used():
        with monkeypatch.context() as patch:
            patch.setattr(progress_bar.sys, "stderr", terminal := Terminal())
            yield terminal

    return used


def _everything(tmp_path):
    profile = synthetic_profile(activities=2_000)
    profile.save(tmp_path / "run.epprof")
    loaded = epprof_nb.load(tmp_path / "run.epprof")
    loaded.to_chrome(tmp_path / "trace.json")
    loaded.to_html(tmp_path / "page.html")


def test_a_long_export_tells_how_far_it_is_and_clears_its_line(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_bar, "_DELAY_S", 0)
    before = threading.enumerate()  # other libraries start the one of tqdm
    with terminal() as screen:
        _everything(tmp_path)
    written = screen.getvalue()
    for what in ("Writing run.epprof", "Reading run.epprof", "Writing trace.json",
                 "Writing page.html"):  # fmt: skip
        assert what in written
    assert "\n" not in written
    assert written.rsplit("\r", 1)[-1] == ""
    assert written.rsplit("\r", 2)[-2].strip() == ""
    assert not {*threading.enumerate()} - {*before}


def test_what_is_quick_shows_nothing(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_bar, "_DELAY_S", progress_bar._DELAY_S * 3600)
    with terminal() as screen, progress_bar.progress_bar("Quick", 10) as bar:
        bar.update(10)
    assert screen.getvalue().strip() == ""


def test_the_whole_is_reached(terminal, tmp_path, monkeypatch):
    bars = []
    real = progress_bar.progress_bar

    def kept(*args):
        bars.append(real(*args))
        return bars[-1]

    for module in ("files.epprof.reading_writing", "files.exporters.trace_file", "views.view"):
        monkeypatch.setattr(f"epprof_nb.{module}.progress_bar", kept)
    monkeypatch.setattr(progress_bar, "_DELAY_S", 0)
    with terminal():
        _everything(tmp_path)
    assert len(bars) == 4
    for bar in bars:
        assert 0.7 * bar.total <= bar.n <= 1.1 * bar.total, bar.desc


def test_a_log_gets_nothing(monkeypatch, tmp_path):
    log = io.StringIO()
    monkeypatch.setattr(progress_bar.sys, "stderr", log)
    monkeypatch.setattr(progress_bar, "_DELAY_S", 0)
    with progress_bar.progress_bar("Logged", 3) as bar:
        for _ in range(3):
            bar.update()
            time.sleep(0.15)
    _everything(tmp_path)
    assert log.getvalue() == ""


def test_a_notebook_shows_one_display_and_empties_it(monkeypatch, tmp_path):
    shown = []

    class Publisher:
        def publish(self, data, metadata, *, transient, update):
            shown.append((data, transient["display_id"], update))

    monkeypatch.setattr(progress_bar, "_DELAY_S", 0)
    monkeypatch.setattr(progress_bar, "_screen", lambda: progress_bar._NotebookLine(Publisher()))
    synthetic_profile(activities=2_000).save(tmp_path / "run.epprof")
    assert "Writing run.epprof" in shown[0][0]["text/plain"]
    assert "\r" not in shown[0][0]["text/plain"]
    assert shown[-1][0] == {}
    assert len({display_id for _, display_id, _ in shown}) == 1
    assert [update for _, _, update in shown] == [False] + [True] * (len(shown) - 1)
