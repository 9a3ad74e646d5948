"""Journals of recordings: what a killed process leaves is what it has recorded until then."""

import ast
import gc
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.files.epprof.manifest_checks import DAMAGE
from epprof_nb.recording.children import journal as journal_module
from epprof_nb.recording.children.journal import Journal
from epprof_nb.recording.children.journal_reading import KilledRecording
from epprof_nb.recording.frameworks.framework_ops import kind_id
from epprof_nb.recording.session import session
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.statement_registry import Cell
from tests.helpers.marked_cells import run

pytestmark = pytest.mark.usefixtures("nothing_leaks")


def launch(name, times=1):
    x = host.to_device(np.ones(8, np.float32))
    for layer in range(times):
        with epprof_nb.op(f"op of {name}", layer=layer):
            host.launch(np.add, x, x, x, name=name)
    host.synchronize()


@pytest.fixture
def journal(tmp_path):
    opened = session.start(Options(samples=False))
    written = Journal(tmp_path / "journal.arrow", opened, {"manifest": "here"})

    def write():
        written._write(opened.so_far())
        return tmp_path / "journal.arrow"

    write.session, write.journal = opened, written
    yield write
    written.end()
    opened.abort()


def shown(data, table, columns):
    return data.tables[table].to_frame()[columns].reset_index().to_dict("list")


def test_a_journal_is_the_profile_that_the_process_would_have_returned(journal):
    launch("first", 3)
    journal()
    launch("second", 2)
    path = journal()
    read = KilledRecording(path)
    killed, whole = read.profile(), journal.session.stop()
    columns = ["name", "start_ns", "end_ns", "op_id", "attribution", "stack_id"]
    assert shown(killed, "activities", columns) == shown(whole, "activities", columns)
    assert len(killed.tables["activities"]) > 5
    columns = ["name", "start_ns", "end_ns", "parent_op_id", "args"]
    assert shown(killed, "ops", columns) == shown(whole, "ops", columns)
    columns = ["name", "thread_id", "start_ns", "op_id"]
    assert shown(killed, "api_calls", columns) == shown(whole, "api_calls", columns)
    columns = ["function", "line"]
    assert shown(killed, "stacks", columns) == shown(whole, "stacks", columns)
    assert read.facts["manifest"] == "here"
    assert read.begin_ns == journal.session.opened_ns
    # The whole profile also names threads that were waited for; journals have no waits.
    assert killed.info["threads"]
    assert all(thread in whole.info["threads"] for thread in killed.info["threads"])
    assert "killed" in killed.info["notes"][0]


def test_another_process_reads_the_names_of_the_journal(journal):
    with epprof_nb.op("outer"):
        launch("a kernel of its own")
    path = journal()
    code = (
        "import sys; from pathlib import Path\n"
        "from epprof_nb.recording.children.journal_reading import KilledRecording\n"
        "data = KilledRecording(Path(sys.argv[1])).profile()\n"
        "for name in ('activities', 'ops', 'api_calls'):\n"
        "    print(*sorted(data.tables[name].names('name').compact().categories), sep=', ')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    kernels, ops, calls = done.stdout.splitlines()
    assert "a kernel of its own" in kernels
    assert ops == "op of a kernel of its own, outer"
    assert calls == "hostDeviceSynchronize, hostLaunchKernel, hostMemcpyAsync"


def test_statements_keep_their_lines_in_another_process(journal):
    source = "x = 1\n\ny = [\n    x,\n]\n"
    tree = ast.parse(source)
    tree.body[:] = instrument(tree.body, Cell("In[9]", source))
    run(tree)
    path = journal()
    code = (
        "import sys; from pathlib import Path\n"
        "from epprof_nb.recording.children.journal_reading import KilledRecording\n"
        "ops = KilledRecording(Path(sys.argv[1])).profile().tables['ops'].to_frame()\n"
        "print(ops[['name', 'cell', 'line', 'end_line']].to_numpy().tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[['x = 1', 'In[9]', 1, 1], ['y = [ x, ]', 'In[9]', 3, 5]]\n"


def test_another_process_reads_pauses_of_the_garbage_collector(journal):
    kind_id("of no pause", "test")  # the reader has none of its id
    gc.collect()
    gc.collect(0)
    journal()
    gc.collect()
    path = journal()
    code = (
        "import sys; from pathlib import Path\n"
        "from epprof_nb.recording.children.journal_reading import KilledRecording\n"
        "from epprof_nb.recording.frameworks.framework_ops import kind_id\n"
        "kind_id('another', 'reader', number=1)\n"
        "ops = KilledRecording(Path(sys.argv[1])).profile().ops\n"
        "ops = ops[ops['name'] == 'garbage collection']\n"
        "print(set(ops['op_type']), [row['generations'] for row in ops['args']].count([2]))\n"
        "print([0, 1] in [row['generations'] for row in ops['args']])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'gc'} 2\nTrue\n"


def test_what_exceeds_the_limit_is_dropped_and_counted(journal, monkeypatch):
    launch("kept", 2)
    journal()
    monkeypatch.setattr(journal_module, "MAX_BYTES", journal.journal._bytes)
    launch("dropped", 3)
    read = KilledRecording(journal())
    kernels = read.profile().activities
    assert set(kernels.loc[kernels["kind"] == "kernel", "name"]) == {"kept"}
    assert any("5 later activities were dropped" in note for note in read.profile().info["notes"])


def test_the_limit_is_for_all_batches_together(journal, monkeypatch):
    launch("many", 30)
    journal()
    first = journal.journal._bytes
    launch("few")
    journal()
    assert journal.journal._bytes > first
    monkeypatch.setattr(journal_module, "MAX_BYTES", first)
    launch("dropped")
    kernels = KilledRecording(journal()).profile().activities
    assert "dropped" not in set(kernels["name"])


def test_a_journal_that_is_cut_short_has_its_complete_batches(journal):
    launch("first")
    complete = journal().stat().st_size
    launch("second")
    path = journal()
    content = path.read_bytes()
    for size in (complete, (complete + len(content)) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        activities = KilledRecording(path).profile().activities
        assert set(activities.loc[activities["kind"] == "kernel", "name"]) == {"first"}


def test_a_damaged_journal_is_refused(journal, tmp_path):
    launch("first")
    content = journal().read_bytes()
    path = tmp_path / "damaged.arrow"
    refused = 0
    for at in range(0, len(content), max(1, len(content) // 200)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            KilledRecording(path).profile()
        except DAMAGE:
            refused += 1
    assert refused


def test_a_recording_that_has_ended_ends_the_journal(journal, monkeypatch):
    monkeypatch.setattr(journal_module, "INTERVAL_S", 0.01)
    journal.journal.start()
    journal.session.stop()
    journal.journal._thread.join(60)
    assert not journal.journal._thread.is_alive()


def test_entries_are_those_that_the_last_batches_lack(journal):
    launch("first")
    path = journal()
    journal()
    with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
        first = stream.read_next_batch().to_pydict()
        second = stream.read_next_batch().to_pydict()
    assert "facts" in first["name"]
    assert "facts" not in second["name"]
    names = dict(zip(second["name"], second["value"], strict=True))
    assert json.loads(names["names"]) == []
    assert json.loads(names["op_names"]) == []


def test_a_daemon_that_has_closed_the_file_keeps_its_own(journal, tmp_path):
    launch("first")
    journal()
    number = journal.journal._file.fileno()
    os.close(number)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    os.dup2(other, number)
    with pytest.raises(OSError, match="closed the file"):
        journal()
    journal.journal.end()
    os.write(number, b"mine")
    for descriptor in {other, number}:
        os.close(descriptor)
    assert (tmp_path / "other").read_bytes() == b"mine"
    KilledRecording(tmp_path / "journal.arrow")


def test_a_compressed_journal_is_refused(journal, tmp_path):
    launch("first")
    with pa.ipc.open_stream(journal()) as stream:
        table = stream.read_all()
    path = tmp_path / "compressed.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(path, table.schema, options=options) as stream:
        stream.write_table(table)
    with pytest.raises(ValueError, match="compressed"):
        KilledRecording(path)
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)
    KilledRecording(path)


def test_another_stream_is_no_journal(tmp_path):
    table = pa.table({"name": ["a"], "value": [1]})
    with pa.ipc.new_stream(tmp_path / "other.arrow", table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(ValueError, match="not a journal"):
        KilledRecording(tmp_path / "other.arrow")
