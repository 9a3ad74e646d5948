"""Stand-ins for libraries in ``sys.modules``, as tests put them there."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from unittest.mock import MagicMock
name = sys.argv[1]
sys.modules[name] = MagicMock(name=name)
import epprof_nb
from epprof_nb import host
for _ in range(2):
    with epprof_nb.profile(detail="all") as prof, epprof_nb.op("fill"):
        array = host.empty(10)
print(prof.ops["name"].tolist(), prof.info["notes"])
"""


@pytest.mark.parametrize("name", ["torch", "cupy", "jax", "numba", "triton", "onnxruntime"])
def test_code_is_profiled_beside_a_stand_in(name):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "['fill']" in done.stdout
    assert ("Modules of torch are not recorded" in done.stdout) == (name == "torch")
