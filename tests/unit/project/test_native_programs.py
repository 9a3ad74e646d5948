"""Programs in C++ around the native core, where Python could not reach the moment in question."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.paths import ROOT, TESTS

NATIVE = ROOT / "epprof_nb" / "native"
COMPILE = ["g++", "-std=c++17", "-pthread", f"-I{NATIVE}"]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Options with the object files of the core, whose compilation takes most of the time."""
    folder = tmp_path_factory.mktemp("core")
    sources = [*NATIVE.glob("core/*.cpp")]
    # Headers of the system take most of that: they are compiled once.
    text = "".join(file.read_text() for file in [*sources, *NATIVE.glob("core/*.h")])
    header = folder / "system.h"
    header.write_text("\n".join(sorted(set(re.findall("^#include <.*>$", text, re.MULTILINE)))))
    subprocess.run([*COMPILE, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    included = ["-include", header]
    subprocess.run([*COMPILE, *included, "-c", *sources], cwd=folder, check=True)
    return [*included, *sorted(folder.glob("*.o"))]


def build_and_run(name, objects, folder, **options):
    program = folder / name
    source = TESTS / "helpers" / "native" / f"{name}.cpp"
    subprocess.run([*COMPILE, *objects, source, "-o", program, "-ldl"], check=True)
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, check=False, **options
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ids_follow_ops_that_end_or_pause_in_any_order(core, tmp_path):
    build_and_run("op_ids", core, tmp_path)


def test_a_child_of_a_fork_never_waits_for_threads_of_its_parent(core, tmp_path):
    # A Python thread holds the GIL inside the core, so only native threads can hold its locks
    # while another thread forks.
    ort = [NATIVE / f"ort/{name}.cpp" for name in ("device_events", "interned_details", "runtime")]
    # A sanitizer's allocator, preloaded, has locks of its own that a fork does not reset.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    build_and_run("fork_stress", [*core, *ort], tmp_path, env=environment)


def test_a_buffer_keeps_its_first_pages(tmp_path):
    build_and_run("buffer_pages", [], tmp_path)


def test_launches_are_told_apart_by_their_parameters(tmp_path):
    build_and_run("launch_signature", [NATIVE / "gpu/launch_signature.cpp"], tmp_path)
