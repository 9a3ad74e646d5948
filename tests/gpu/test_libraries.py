"""Other ways to launch work: Triton, Numba, cuda-python; and a device reset inside a cell."""

import subprocess
import sys
import textwrap

import pytest

import epprof_nb

pytest.importorskip("cupy", reason="CuPy is not installed")


def kernels(prof):
    found = prof.activities
    return found[found["kind"] == "kernel"]


def ops_of(prof, rows):
    names = prof.ops["name"]
    return {names[op] for op in rows["op_id"].dropna()}


def test_triton_kernels_belong_to_their_op():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    # Triton compiles from source, so the kernel is in a separate file.
    from tests.gpu.triton_kernel import add_one

    x = torch.zeros(1024, device="cuda")
    add_one[(4,)](x, 1024, BLOCK=256)
    torch.cuda.synchronize()
    with epprof_nb.profile() as prof, epprof_nb.op("triton"):
        for _ in range(10):
            add_one[(4,)](x, 1024, BLOCK=256)
    rows = kernels(prof)
    assert rows["name"].tolist() == ["add_one"] * 10
    assert ops_of(prof, rows) == {"triton"}
    assert rows["grid_x"].tolist() == [4] * 10


def test_numba_kernels_belong_to_their_op():
    pytest.importorskip("numba.cuda", reason="Numba is not installed")
    from tests.gpu.numba_kernel import add_one, array_for_add_one

    a = array_for_add_one()
    with epprof_nb.profile() as prof, epprof_nb.op("numba"):
        for _ in range(5):
            add_one[1, 256](a)
    rows = kernels(prof)
    assert len(rows) == 5
    assert ops_of(prof, rows) == {"numba"}
    assert a.copy_to_host()[0] == 6


def test_cuda_python_launches_belong_to_their_op():
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-python is not installed")

    def check(result):
        assert int(result[0]) == 0, result[0]
        return result[1] if len(result) == 2 else result[1:]

    source = b'extern "C" __global__ void plain() {}'
    program = check(nvrtc.nvrtcCreateProgram(source, b"plain.cu", 0, [], []))
    assert int(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90"])[0]) == 0
    buffer = b" " * check(nvrtc.nvrtcGetCUBINSize(program))
    assert int(nvrtc.nvrtcGetCUBIN(program, buffer)[0]) == 0
    assert int(driver.cuInit(0)[0]) == 0
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    driver.cuCtxSetCurrent(context)
    module = check(driver.cuModuleLoadData(buffer))
    function = check(driver.cuModuleGetFunction(module, b"plain"))
    with epprof_nb.profile() as prof, epprof_nb.op("driver"):
        for _ in range(7):
            driver.cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, 0, 0, 0)
        driver.cuCtxSynchronize()
    rows = kernels(prof)
    assert rows["name"].tolist() == ["plain"] * 7
    assert ops_of(prof, rows) == {"driver"}


def test_a_device_reset_in_the_profile_costs_neither_the_process_nor_the_ops():
    code = """
        import ctypes, cupy, epprof_nb
        from tests.gpu.oracle import launch
        launch("before")
        with epprof_nb.profile() as prof:
            with epprof_nb.op("first"):
                launch("before")
                cupy.cuda.Device().synchronize()
            cupy.cuda.runtime.deviceSynchronize()
            with epprof_nb.op("reset"):
                driver = ctypes.CDLL("libcuda.so.1")
                assert driver.cuDevicePrimaryCtxReset_v2(0) == 0
        print("OPS", prof.ops["name"].tolist(), prof.info["recorded"], flush=True)
        import os
        os._exit(0)  # CuPy's own handles died with the context
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out.stderr[-2000:]
    assert "OPS ['first', 'reset']" in out.stdout


def test_a_profile_before_cudas_first_use_is_quiet_and_one_around_it_is_right():
    code = """
        import epprof_nb
        with epprof_nb.profile() as before, epprof_nb.op("nothing"):
            pass
        assert before.info["notes"] == [], before.info["notes"]
        with epprof_nb.profile() as prof, epprof_nb.op("first"):
            import cupy
            from tests.gpu.oracle import launch
            launch("first")
            cupy.cuda.Device().synchronize()
        from tests.gpu.oracle import pairs
        assert pairs(prof) == [("first", "first")], pairs(prof)
        assert prof.info["clock"]["cupti"] == "shared", prof.info["clock"]
        assert prof.info["notes"] == [], prof.info["notes"]
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out.stderr[-2000:]
