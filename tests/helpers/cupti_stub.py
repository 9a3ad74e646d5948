"""A stand-in for libcupti that reports the events of a test, in a separate process."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from epprof_nb import _native
from tests.helpers import forked_python

SOURCE = Path(__file__).parent / "native" / "cupti_stub.cpp"
PROGRAM = """
import ctypes, importlib.util, json, sys, threading
import numpy as np
import epprof_nb
from epprof_nb.recording.cupti.loading import packed_layout

native, path = sys.argv[1:]
spec = importlib.util.spec_from_file_location("epprof_nb._native", native)
_native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_native)
_native.cupti_set_layout(packed_layout(_native.cupti_load(path, path)))
stub = ctypes.CDLL(path)
stub.stub_report.argtypes = [ctypes.c_uint32] + 4 * [ctypes.c_uint64]
stub.stub_record.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
stub.stub_last_pushed.restype = ctypes.c_uint64
_native.set_recording(ops=True, launches=True)

def start(all_calls=False, external=False):
    _native.cupti_start(
        kinds=b"", callbacks=not external, all_calls=all_calls, external=external, part=0
    )
"""


def build(folder: Path) -> Path:
    """Build the library, with the compiler's options in ``CXXFLAGS``, for sanitizers."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    path = folder / "libcupti.so"
    flags = shlex.split(os.environ.get("CXXFLAGS", ""))
    # A compiler does not run with the sanitizer's library.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    options = ["-std=c++17", "-shared", "-fPIC", "-pthread", "-w", *flags]
    subprocess.run(["g++", *options, SOURCE, "-o", path], check=True, env=environment)
    return path


def run(library: Path, code: str, given: str = "") -> str:
    """Run `code` after `PROGRAM`; return what it prints."""
    done = forked_python.run(
        ["-c", PROGRAM + code, _native.__file__, str(library)], cwd=Path.cwd(), given=given,
        imported=("epprof_nb", "epprof_nb.recording.cupti.loading", "numpy"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
