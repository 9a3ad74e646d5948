"""Stand-ins for libraries in ``sys.modules``, as tests put them there."""

import subprocess
import sys

PROGRAM = """
import sys
from unittest.mock import MagicMock
for name in ("torch", "cupy", "jax", "numba", "triton", "onnxruntime"):
    sys.modules[name] = MagicMock(name=name)
import epprof_nb
from epprof_nb import host
for _ in range(2):
    with epprof_nb.profile(detail="all") as prof, epprof_nb.op("fill"):
        array = host.empty(10)
print(prof.ops["name"].tolist(), prof.info["notes"])
"""


def test_code_is_profiled_beside_stand_ins():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "['fill']" in done.stdout
    assert "Modules of torch are not recorded" in done.stdout
