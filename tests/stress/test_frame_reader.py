"""Readings of frames whose links lead anywhere: outside of memory, too, and in circles."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import tests
from tests.paths import ROOT
from tests.stress import FACTOR

NATIVE = ROOT / "epprof_nb" / "native"
SOURCES = ("samples/frame_reader.cpp", "samples/memory_reader.cpp")


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    path = tmp_path_factory.mktemp("fuzzer") / "fuzzer"
    layouts = path.with_suffix(".o")
    flags = ["-O1", "-g", "-w", *shlex.split(os.environ.get("CXXFLAGS", ""))]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(
        ["gcc", *flags, "-c", NATIVE / "stacks" / "cpython_layouts.c", "-I", NATIVE, "-o", layouts],
        check=True, env=environment,
    )  # fmt: skip
    helper = Path(tests.__file__).parent / "helpers" / "native" / "frame_fuzzer.cpp"
    sources = [helper, *(NATIVE / name for name in SOURCES), layouts]
    subprocess.run(
        ["g++", "-std=c++17", "-pthread", *flags, *sources, "-I", NATIVE, "-o", path],
        check=True, env=environment,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_a_reading_of_any_memory_ends(fuzzer, minor):
    done = subprocess.run(
        [fuzzer, str(minor), str(400 * FACTOR)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    readings, frames = map(int, done.stdout.split())
    assert readings > 400
    assert frames > readings
