"""``--live``: the progress shown while a cell runs, and its removal afterwards."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.notebook import live_progress
from epprof_nb.notebook.progress_display import Child, as_html, as_lines
from epprof_nb.recording.session import session
from epprof_nb.recording.session.running_totals import Progress, RunningTotals
from tests.helpers.time_limits import TimeLimits

WORK = """\
import numpy as np, epprof_nb
from epprof_nb import host
x = host.empty((256, 256), np.float32)
with epprof_nb.op("attention"):
    for _ in range(30):
        host.launch(np.sin, x, x, name="sin")
"""
UNTIL_SHOWN = "screen.seen.wait(60)\n"


class Screen:
    """The shown progress, in order; None for a clear."""

    def __init__(self):
        self.shown = []
        self.seen = threading.Event()

    def show(self, progress, children=()):
        self.shown.append(progress)
        if progress.kernels:
            self.seen.set()

    def clear(self):
        self.shown.append(None)


@pytest.fixture
def screen(monkeypatch, shell):
    monkeypatch.setattr(live_progress, "_INTERVAL_S", 0.02)
    screen = Screen()
    monkeypatch.setattr(live_progress, "screen_of", lambda shell: screen)
    shell.user_ns["screen"] = screen
    return screen


def no_thread_is_left():
    return not any("live progress" in thread.name for thread in threading.enumerate())


def test_progress_is_shown_while_the_cell_runs_and_cleared_after_it(run, screen, shell):
    assert run(f"%%gpuprofile --live prof\n{WORK}{UNTIL_SHOWN}").success
    *shown, cleared = screen.shown
    assert cleared is None
    assert None not in shown
    assert no_thread_is_left()
    last = shown[-1]
    assert 0 < last.kernels <= 30
    assert last.device_word == "device"
    assert 0 < last.busy <= 1
    assert last.top[0][0] == "attention"
    assert last.dropped == 0
    prof = shell.user_ns["prof"]
    assert (prof.activities["kind"] == "kernel").sum() == 30
    assert set(prof.ops["status"].dropna()) == {"complete"}
    assert prof.info["recorded"]["lost"] == {}


@pytest.mark.parametrize("ending", ["1 / 0", "raise KeyboardInterrupt"])
def test_a_cell_that_fails_leaves_no_thread_and_no_display(run, screen, shell, ending, capsys):
    result = run(f"%%gpuprofile --live prof\n{WORK}{UNTIL_SHOWN}{ending}")
    assert not result.success
    assert screen.shown[-1] is None
    assert no_thread_is_left()
    assert (shell.user_ns["prof"].activities["kind"] == "kernel").sum() == 30


def test_a_cell_that_awaits_is_followed_too(run, screen):
    wait = "import asyncio\nwhile not screen.seen.is_set():\n    await asyncio.sleep(0.01)\n"
    assert run(f"%%gpuprofile --live\n{WORK}{wait}").success
    assert screen.shown[-1] is None
    assert no_thread_is_left()


def test_the_line_magic_and_the_setting_are_followed_too(run, screen, shell):
    shell.run_cell(f"def work():\n    {WORK.strip().replace(chr(10), chr(10) + '    ')}\n"
                   f"    {UNTIL_SHOWN}")  # fmt: skip
    assert run("%gpuprofile --live -q work()").success
    assert screen.shown[-1] is None
    screen.shown.clear()
    screen.seen.clear()
    run("%config GpuProfile.live = True")
    assert run("%%gpuprofile -q\nwork()").success
    assert screen.shown[-1] is None
    assert len(screen.shown) > 1
    assert no_thread_is_left()


def test_a_screen_that_breaks_is_told_in_a_line_and_costs_nothing(run, screen, shell, capsys):
    def broken(progress, children):
        screen.seen.set()
        raise OSError("no more room on the screen")

    screen.show = broken
    assert run(f"%%gpuprofile --live prof\n{WORK}{UNTIL_SHOWN}").success
    assert (shell.user_ns["prof"].activities["kind"] == "kernel").sum() == 30
    errors = capsys.readouterr().err
    assert "display failed (OSError: no more room on the screen). The profile is complete" in errors
    assert "Traceback" not in errors


def test_progress_ends_where_a_time_limit_ends_the_recording(run, screen, shell, monkeypatch):
    shell.user_ns["limits"] = TimeLimits(monkeypatch)
    cell = (
        "%%gpuprofile --live --time-limit 0.2 prof\n" + WORK + UNTIL_SHOWN + "limits.reach()\n"
        "import threading\nwhile any('live' in t.name for t in threading.enumerate()):\n    pass\n"
    )  # fmt: skip
    assert run(cell).success
    assert screen.shown[-1] is None
    assert "Recording stopped after 0.2 s" in " ".join(shell.user_ns["prof"].info["notes"])


def test_looking_loses_nothing_of_the_profile():
    begun = session.start()
    x = host.empty((64,), np.float32)
    seen, totals = 0, RunningTotals(0)
    for _ in range(5):
        with epprof_nb.op("outer"):
            for _ in range(20):
                with epprof_nb.op("inner"):
                    host.launch(np.sin, x, x, name="sin")
            for batch in begun.batches_since(seen):
                seen += 1
                totals.add(batch)
        host.synchronize()
    for batch in begun.batches_since(seen):
        totals.add(batch)
    prof = begun.stop()
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert len(kernels) == 100
    assert kernels["op_id"].map(prof.ops["name"]).eq("inner").all()
    assert prof.ops["name"].value_counts().to_dict() == {"inner": 100, "outer": 5}
    assert prof.ops["op_type"].eq("range").all()
    assert begun.batches_since(0) is None
    progress = totals.progress(10**18)
    assert (progress.kernels, progress.dropped, [name for name, _ in progress.top]) == (
        100,
        0,
        ["inner"],
    )


def test_looking_bounds_the_whole_recording_not_each_part():
    begun = session.start(Options(max_records=50))
    x = host.empty((8,), np.float32)
    for _ in range(4):
        for _ in range(20):
            host.launch(np.sin, x, x, name="sin")
        host.synchronize()
        begun.batches_since(0)
    prof = begun.stop()
    assert len(prof.activities) == 50
    assert prof.info["recorded"]["dropped"] == 34  # 80 kernels and 4 waits


def test_a_terminal_shows_one_line_and_clears_it(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(live_progress.sys, "stderr", written)
    monkeypatch.setenv("COLUMNS", "60")
    terminal = live_progress.TerminalScreen()
    for seconds in (1, 2):
        terminal.show(
            Progress(seconds * 10**9, "GPU", 0.614, 4212, 36, 1_200_000_000, 4212.0,
                     (("attention", 0.8),), 0)
        )  # fmt: skip
    terminal.clear()
    first, second, third = written.getvalue().split("\r\x1b[2K")[1:]
    assert first.startswith("1.0 s · GPU busy 61 % · 4,212 kernels/s")
    assert second.startswith("2.0 s")
    assert third == ""
    assert "\n" not in written.getvalue()
    assert len(first) < 60


def test_a_terminal_shows_a_line_per_process_and_clears_them(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(live_progress.sys, "stderr", written)
    monkeypatch.setenv("COLUMNS", "60")
    own = Progress(10**9, "GPU", 0.614, 4212, 36, 1_200_000_000, 4212.0, (), 0)
    terminal = live_progress.TerminalScreen()
    terminal.show(own, [Child(71, own), Child(72, None)])
    lines = written.getvalue().removeprefix("\r\x1b[2K").split("\n")
    assert [line.partition(":")[0] for line in lines[1:]] == ["process 71", "process 72"]
    assert lines[1].startswith("process 71: 1.0 s · GPU busy 61 %")
    assert lines[2] == "process 72: -"
    assert all(len(line) < 60 for line in lines)
    written.truncate(0)
    terminal.clear()
    assert written.getvalue().count("\x1b[2K") == 3
    assert written.getvalue().count("\x1b[1A") == 2


def test_many_children_are_counted():
    own = Progress(10**9, "device", None, 0, 0, 0, 0.0, (), 0)
    busy = Progress(10**9, "GPU", 0.5, 7, 0, 0, 7.0, (("<b>op</b>", 1.0),), 3)
    children = [Child(pid, busy) for pid in range(20)]
    assert as_lines(own, 100, children)[-1] == "and 4 other processes"
    page = as_html(own, children)
    assert page.count("GPU busy 50 %") == 16
    assert "and 4 other processes" in page
    assert "3 records dropped" in page
    assert "<b>op</b>" not in page


def test_a_log_gets_no_progress(run, shell, monkeypatch, capsys):
    assert live_progress.screen_of(shell) is None  # pytest's stderr is no terminal
    assert run(f"%%gpuprofile --live\n{WORK}").success
    assert capsys.readouterr().err == ""


def progress_in(messages):
    """The pages of progress that were displayed."""
    shown = [m["content"] for m in messages if "display_data" in m["msg_type"]]
    pages = [content["data"].get("text/html", "") for content in shown]
    return [page for page in pages if "Profile in progress" in page]


@pytest.mark.parametrize("ending", ["x = 1", "1 / 0"])
def test_a_saved_notebook_holds_nothing_of_the_progress(ending, tmp_path):
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    seen = tmp_path / "seen"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(seen)!r}).exists():\n"
    code = f"{WORK}{wait}    time.sleep(0.05)\nprint('done')\n{ending}"
    cells = [
        nbformat.v4.new_code_cell("%load_ext epprof_nb"),
        nbformat.v4.new_code_cell(f"%%gpuprofile --live prof\n{code}"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    messages = []

    class Client(NotebookClient):
        def process_message(self, message, cell, index):
            messages.append(message)
            if len(progress_in(messages)) == 2:
                seen.touch()  # the cell ends
            return super().process_message(message, cell, index)

    try:
        Client(notebook, timeout=120).execute()
    except CellExecutionError:
        assert ending == "1 / 0"
    assert "attention" in progress_in(messages)[-1]
    saved = nbformat.writes(notebook)
    assert "Profile in progress" not in saved
    assert "kernels/s" not in saved
    outputs = [o for o in cells[1]["outputs"] if o.get("data")]
    assert [set(o["data"]) for o in outputs] == [{"text/html", "image/png", "text/plain"}]
