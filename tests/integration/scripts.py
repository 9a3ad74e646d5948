"""Scripts that run under python and under ``epprof run``."""

import subprocess
import sys

import epprof_nb

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


def kernels(path):
    activities = epprof_nb.load(path).activities
    return activities.loc[activities["kind"] == "kernel", "name"].tolist()
