"""Forks of a process whose threads use the native core at that moment."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.paths import ROOT, TESTS

NATIVE = ROOT / "epprof_nb" / "native"
SOURCES = [
    *NATIVE.glob("core/*.cpp"),
    *(NATIVE / f"ort/{name}.cpp" for name in ("device_events", "event_details", "runtime")),
]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_child_of_a_fork_never_waits_for_threads_of_its_parent(tmp_path):
    # A Python thread holds the GIL inside the core, so only native threads can hold its locks
    # while another thread forks.
    program = tmp_path / "fork_stress"
    stress = TESTS / "helpers" / "native" / "fork_stress.cpp"
    subprocess.run(
        ["g++", "-std=c++17", "-pthread", f"-I{NATIVE}", *SOURCES, stress, "-o", program, "-ldl"],
        check=True,
    )
    # A sanitizer's preloaded allocator has locks that a fork does not reset.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
