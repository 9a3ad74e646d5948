"""The stack of op ids that a recorder keeps beside the core's op stack."""

import shutil
import subprocess

import pytest

from tests.paths import TESTS
from tests.unit.project.test_fork import NATIVE

CORE = sorted((NATIVE / "core").glob("*.cpp"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_ids_follow_ops_that_end_or_pause_in_any_order(tmp_path):
    program = tmp_path / "op_ids"
    source = TESTS / "helpers" / "native" / "op_ids.cpp"
    subprocess.run(
        ["g++", "-std=c++17", "-pthread", f"-I{NATIVE}", *CORE, source, "-o", program], check=True
    )
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
