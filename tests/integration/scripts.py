"""Scripts that run under python and under ``epprof run``."""

import subprocess
import sys

import epprof_nb
from tests.helpers import forked_python

RUN = [sys.executable, "-m", "epprof_nb", "run", "--quiet"]

WORK = """
import numpy as np
from epprof_nb import host
x = host.to_device(np.ones((8, 8), np.float32))
for i in range(5):
    epprof_nb.step()
    host.launch(np.add, x, x, x, name=f"add{i}")
host.synchronize()
"""


def without_work(source):
    """The script without the profiler and its work, line by line: plain python ends it alike."""
    assert WORK in source or "epprof_nb" not in source
    return source.replace(", epprof_nb\n", "\n").replace(WORK, "\n" * WORK.count("\n"))


def execute(command, folder):
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=240
    )


# Modules of most runs; a fork that has them takes a quarter of the time of a new process.
IMPORTED = (
    "epprof_nb.cli", "epprof_nb.commands.run_script", "epprof_nb.commands.main_module",
    "epprof_nb.files.epprof.reading_writing", "epprof_nb.files.redaction.redacted_columns",
    "epprof_nb.host", "epprof_nb.recording.cupti.recorder", "epprof_nb.recording.host.recorder",
    "epprof_nb.recording.memory.recorder", "epprof_nb.recording.onnxruntime.recorder",
    "epprof_nb.recording.session.framework_recorder",
    "epprof_nb.recording.statements.instrument_cell",
)  # fmt: skip


def execute_in_fork(command, folder):
    """Execute a command that begins like `RUN` in a process that has imported the profiler."""
    return forked_python.run(command[1:], cwd=folder, imported=IMPORTED)


def kernels(path):
    activities = epprof_nb.load(path).activities
    return activities.loc[activities["kind"] == "kernel", "name"].tolist()
