"""Locks of Python modules in forked children."""

import os
import pkgutil
import sys
import threading
import time

import pytest

LOCKS = [
    "epprof_nb.recording.native_columns._lock",
    "epprof_nb.recording.ranges.range_sources._lock",
    "epprof_nb.recording.statements.torch_dynamo._lock",
    "epprof_nb.core.ort_binding._registration_lock",
    "epprof_nb.onnxruntime.run_profile_files._naming_lock",
    "epprof_nb.recording.onnxruntime.sessions._lock",
    *(
        ["epprof_nb.recording.ranges.suspension._monitor.lock"]
        if sys.version_info >= (3, 12)
        else []
    ),
]


@pytest.mark.parametrize("path", LOCKS)
def test_a_child_finds_no_lock_locked(path):
    held, lock = threading.Event(), pkgutil.resolve_name(path)

    def hold():
        with lock:
            held.set()
            time.sleep(0.05)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if pkgutil.resolve_name(path).acquire(timeout=60) else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
