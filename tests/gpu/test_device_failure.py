"""A device that fails inside a profile is named, and earlier records are shown."""

import json
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")

ASSERT = """
    import torch
    x = torch.zeros(16, device="cuda")
    def good():
        x.add_(1)
        torch.cuda.synchronize()
    def bad():
        x[torch.tensor([100], device="cuda")]
        torch.cuda.synchronize()
"""
ILLEGAL_ADDRESS = """
    import cupy
    kernel = cupy.RawKernel('extern "C" __global__ void bad(int* p) { *p = 1; }', "bad")
    ok = cupy.zeros(4, cupy.int32)
    kernel((1,), (1,), (ok,))
    def good():
        kernel((1,), (1,), (ok,))
        cupy.cuda.Device().synchronize()
    def bad():
        kernel((1,), (1,), (cupy.uint64(0xdead0000),))
        cupy.cuda.Device().synchronize()
"""
HOLDER = """
    with torch.profiler.profile() as theirs:
        good()
"""
PROFILES = """
    import json, os, epprof_nb
    with epprof_nb.profile() as before:
        good()
    raised = False
    try:
        with epprof_nb.profile() as prof:
            with epprof_nb.op("good"):
                good()
            with epprof_nb.op("bad"):
                bad()
    except Exception as error:
        raised = True
    try:
        with epprof_nb.profile() as after:
            good()
    except Exception:
        pass
    print("RESULT", json.dumps({
        "raised": raised,
        "before": before.info, "failed": prof.info, "after": after.info,
        "ops": prof.ops["name"][prof.ops["op_type"] != "gc"].tolist(), "repr": repr(prof),
    }, default=str), flush=True)
    os._exit(0)  # the libraries complain when they free memory of a lost device
"""


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (ASSERT, "CUDA_ERROR_ASSERT"),
        (ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (ASSERT + HOLDER, "CUDA_ERROR_ASSERT"),
    ],
    ids=["device-side assert", "illegal address", "assert after torch.profiler"],
)
def test_a_lost_device_is_called_by_its_name(program, error):
    if "torch" in program:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + textwrap.dedent(PROFILES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.rpartition("RESULT ")[2])
    assert result["raised"]  # the cell's own exception
    assert result["before"]["device_error"] is None
    failed = result["failed"]
    assert failed["device_error"] == error
    (note,) = (n for n in failed["notes"] if error in n)
    assert "restart the Jupyter kernel" in note
    assert not any("max_records" in n for n in failed["notes"])
    recorded = failed["recorded"]
    # Each launch is either shown or lost, and the note gives both numbers.
    lost = sum(recorded["lost"].values())
    assert lost > 0
    assert str(recorded["lost"]["kernel"]) in note
    assert result["ops"] == ["good", "bad"]
    # A later profile in the same process says so, too.
    assert result["after"]["device_error"] == error
