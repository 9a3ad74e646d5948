"""Functions of profiled cells that are pickled by value work in processes without this package."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from marked_lines import lines

from epprof_nb.recording.statements.markers import MARKERS

CELL = """%%gpuprofile -q prof
import asyncio
def f(x):
    y = []
    for i in range(x):
        if i == 1:
            continue
        y.append(g(i))
    return y, list(numbers(3)), asyncio.run(coroutine()), A().method()
def g(x):
    y = x
    return y + 1
def numbers(n):
    for i in range(n):
        yield i
async def coroutine():
    await asyncio.sleep(0)
    return 4
class A:
    def method(self):
        x = 5
        return x
f(3)
"""
RESULT = ([1, 3], [0, 1, 2], 4, 5)
LOAD = """
import importlib.abc, pickle, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "epprof_nb":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
print(pickle.load(sys.stdin.buffer)(3))
"""


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_in_a_process_without_this_package(run, shell, protocol):
    cloudpickle = pytest.importorskip("cloudpickle")
    assert run(CELL).result == RESULT
    data = cloudpickle.dumps(shell.user_ns["f"], protocol)
    out = subprocess.run([sys.executable, "-c", LOAD], input=data, capture_output=True, check=True)
    assert out.stdout.decode().strip() == repr(RESULT)


def test_copies_in_this_process_work_and_leave_no_ops(run, shell):
    cloudpickle = pytest.importorskip("cloudpickle")
    run(CELL)
    shell.user_ns["copy"] = pickle.loads(cloudpickle.dumps(shell.user_ns["f"]))
    assert run("%%gpuprofile -q prof\ncopy(3)").result == RESULT
    assert lines(shell.user_ns["prof"]) == [(2, "copy(3)")]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_markers_do_nothing(protocol):
    copies = pickle.loads(pickle.dumps(MARKERS, protocol))
    assert copies.keys() == MARKERS.keys()
    for name, copy in copies.items():
        assert copy is not MARKERS[name]
        result = copy(7)
        if "body" in name:
            with result:
                pass
