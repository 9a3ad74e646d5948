"""Faults of kernels in Python on a CUDA device, many threads, and other libraries' launches."""

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import epprof_nb

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", minversion="1.26", reason="onnxruntime is not installed")
cp = pytest.importorskip("cupy", reason="CuPy is not installed")

from epprof_nb import _native, ep  # noqa: E402
from tests.ep.sessions import CPU, OURS, on_cpu, options  # noqa: E402
from tests.gpu.ep.test_python_ep import CUDA, kernels, needs_cuda_provider  # noqa: E402
from tests.ort import models  # noqa: E402
from tests.ort.rows import nodes, path  # noqa: E402

pytestmark = pytest.mark.usefixtures("every_node")


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)


def session(serialized, *providers):
    return ort.InferenceSession(serialized, options(), providers=[*providers, CPU])


def expected(x):
    return on_cpu(models.chain()).run(None, {"x": x})[0]


def relu_with(body):
    """Define a kernel of Relu that calls `body` first."""

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        body(ctx)
        cp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))


@pytest.mark.parametrize(
    "providers", [(), pytest.param((CUDA,), marks=needs_cuda_provider)], ids=["alone", "beside"]
)
def test_many_threads_run_one_session(x, providers):
    entry = ep.provider("cuda:0", **({"nodes": ["first", "third"]} if providers else {}))
    made = session(models.chain(), entry, *providers)
    with ThreadPoolExecutor(32) as pool:
        results = list(pool.map(lambda i: made.run(None, {"x": x * (i + 1)})[0], range(128)))
    for i, result in enumerate(results):
        # The CUDA provider multiplies matrices of 10 bits of precision.
        np.testing.assert_allclose(result, expected(x * (i + 1)), rtol=1e-2 if providers else 1e-4)


@needs_cuda_provider
@pytest.mark.filterwarnings("ignore:only=")
@pytest.mark.parametrize(
    "taken", [{"nodes": ["first", "third"]}, {"nodes": ["second"]}, {"only": ["Det"]}]
)
def test_nodes_of_the_cuda_provider_find_their_libraries_handles(x, taken):
    made = session(models.chain(), ep.provider("cuda:0", **taken), CUDA)
    for _ in range(3):
        np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-2)


@needs_cuda_provider
def test_a_stream_of_the_user_is_shared_with_the_cuda_provider(x):
    seen = set()
    relu_with(lambda ctx: seen.add((ctx.stream, cp.cuda.get_current_stream().ptr)))
    stream = cp.cuda.Stream(non_blocking=True)
    made = session(
        models.chain(),
        ep.provider("cuda:0", stream=stream.ptr, nodes=["first", "third"]),
        (CUDA, {"user_compute_stream": str(stream.ptr)}),
    )
    made.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        result = made.run(None, {"x": x})[0]
    assert seen == {(stream.ptr, stream.ptr)}
    assert kernels(prof)["stream_id"].nunique() == 1
    np.testing.assert_allclose(result, expected(x), rtol=1e-2)


def test_two_sessions_run_side_by_side(x):
    both = [session(models.chain(), ep.provider("cuda:0")) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: both[i % 2].run(None, {"x": x})[0], range(100)))
    for result in results:
        np.testing.assert_allclose(result, expected(x), rtol=1e-4)


def test_a_failing_kernel_names_its_node_and_the_session_goes_on(x):
    fails = [True]

    def body(ctx):
        if fails[0]:
            raise ValueError("not today")

    relu_with(body)
    made = session(models.chain(), ep.provider("cuda:0"))
    before = cp.cuda.get_current_stream()
    with pytest.raises(Exception, match=r"'first' \(Relu\) failed: ValueError: not today"):
        made.run(None, {"x": x})
    assert cp.cuda.get_current_stream() == before
    fails[0] = False
    np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-4)


def test_ctrl_c_interrupts_a_kernel(x):
    def body(ctx):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the interpreter handles the signal here
            pass

    relu_with(body)
    made = session(models.chain(), ep.provider("cuda:0"))
    with pytest.raises(KeyboardInterrupt):
        made.run(None, {"x": x})
    relu_with(lambda ctx: None)
    np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-4)


def test_a_kernel_is_redefined_while_it_runs(x):
    entered, go_on = threading.Event(), threading.Event()

    def body(ctx):
        entered.set()
        assert go_on.wait(60)

    relu_with(body)
    made = session(models.chain(), ep.provider("cuda:0"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(made.run, None, {"x": x})
        assert entered.wait(60)

        @ep.kernel("Relu", types="float32")
        def relu(ctx, x):
            cp.maximum(x, 5, out=ctx.out(x.shape, x.dtype))

        go_on.set()
        np.testing.assert_allclose(running.result()[0], expected(x), rtol=1e-4)
    assert made.run(None, {"x": x})[0].max() > expected(x).max()


def test_a_kernel_runs_its_own_session_again(x):
    depth = []

    def body(ctx):
        if not depth:
            depth.append(ctx.stream)
            np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-4)
            assert cp.cuda.get_current_stream().ptr == ctx.stream

    relu_with(body)
    made = session(models.chain(), ep.provider("cuda:0"))
    np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-4)
    assert depth


def test_the_memory_of_many_runs_stays_the_same(x):
    made = session(models.chain(), ep.provider("cuda:0"))
    for _ in range(100):
        made.run(None, {"x": x})
    before, pool = _native.ep_device_statistics(0), cp.get_default_memory_pool().total_bytes()
    for _ in range(2000):
        made.run(None, {"x": x})
    after = _native.ep_device_statistics(0)
    assert after["reserved"] == before["reserved"]
    assert after["in_use"] == before["in_use"]
    assert cp.get_default_memory_pool().total_bytes() == pool


def test_a_session_gives_back_its_memory(x):
    gc.collect()
    before = _native.ep_device_statistics(0)["in_use"]
    made = session(models.chain(), ep.provider("cuda:0"))
    made.run(None, {"x": x})
    assert _native.ep_device_statistics(0)["in_use"] > before
    del made
    gc.collect()
    assert _native.ep_device_statistics(0)["in_use"] == before


@pytest.mark.parametrize(
    ("serialized", "feeds", "inside"),
    [
        (models.branching, {"flag": np.array(True)}, "then_add"),
        (models.looping, {"times": np.array(3)}, "body_sigmoid"),
        (models.scanning, {"start": np.zeros(4, np.float32)}, "body_add"),
    ],
    ids=["if", "loop", "scan"],
)
@pytest.mark.parametrize("by_run", [False, True], ids=["profile", "profile of a run"])
def test_nodes_of_subgraphs_are_nested(x, serialized, feeds, inside, by_run, tmp_path):
    made = session(serialized(), ep.provider("cuda:0"))
    feeds = {"x": x[:2], **feeds}
    right = made.run(None, feeds)
    run_options = ort.RunOptions()
    if by_run:
        epprof_nb.onnxruntime.enable_profiling(run_options, profile_file_prefix=str(tmp_path / "p"))
    with epprof_nb.profile() as prof:
        result = made.run(None, feeds, run_options)
    for values in zip(result, right, on_cpu(serialized()).run(None, feeds), strict=True):
        np.testing.assert_allclose(values[0], values[2], rtol=1e-5)
        np.testing.assert_allclose(values[1], values[2], rtol=1e-5)
    found = nodes(prof)[nodes(prof)["name"] == inside]
    assert len(found)
    launched = kernels(prof)
    assert (launched["attribution"] == "stack").all()
    for op_id, node in found.iterrows():
        assert node["provider"] == OURS
        assert len(path(prof, op_id)) > 3
        assert (launched["op_id"] == op_id).any()
    assert not by_run or list(tmp_path.iterdir())


END = """
import numpy as np, onnxruntime as ort
if hasattr(ort, "preload_dlls"): ort.preload_dlls()
from epprof_nb import ep
from tests.ort import models
made = ort.InferenceSession(
    models.chain(), providers=[ep.provider("cuda:0"), "CPUExecutionProvider"]
)
values = [ort.OrtValue.ortvalue_from_numpy(np.ones((2, 4), np.float32), "cuda", 0)]
binding = made.io_binding()
binding.bind_ortvalue_input("x", values[0])
binding.bind_output("t2", "cuda", 0)
made.run_with_iobinding(binding)
print("ended", flush=True)
"""


def test_python_ends_with_sessions_alive():
    done = subprocess.run(
        [sys.executable, "-c", END], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def launch_with_raw_kernel(ctx, x, out):
    cp.RawKernel(
        'extern "C" __global__ void relu(const float* x, float* y, int n) {'
        "  int i = blockDim.x * blockIdx.x + threadIdx.x;"
        "  if (i < n) y[i] = x[i] > 0 ? x[i] : 0; }",
        "relu",
    )((-(-x.size // 128),), (128,), (x, out, x.size))


def launch_with_jit(ctx, x, out):
    pytest.importorskip("cupyx.jit")
    from tests.gpu.jit_kernel import relu

    relu[-(-x.size // 128), 128](x, out, x.size)


def launch_with_cuda_python(ctx, x, out):
    driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is missing")
    (error,) = driver.cuMemcpyAsync(out.data.ptr, x.data.ptr, x.nbytes, ctx.stream)
    assert not error
    cp.maximum(out, 0, out=out)


def launch_with_numba(ctx, x, out):
    numba_cuda = pytest.importorskip("numba.cuda", reason="numba is missing")
    from tests.gpu.numba_kernel import relu

    try:
        relu.compile("void(float32[::1], float32[::1])")
    except AttributeError as error:
        pytest.skip(f"this Numba does not work with this NumPy: {error}")
    relu[-(-x.size // 128), 128, numba_cuda.external_stream(ctx.stream)](x.ravel(), out.ravel())


@pytest.mark.parametrize(
    "launch",
    [launch_with_raw_kernel, launch_with_jit, launch_with_cuda_python, launch_with_numba],
)
def test_libraries_launch_on_the_stream_of_the_session(x, launch):
    skipped = []

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        try:
            launch(ctx, x, ctx.out(x.shape, x.dtype))
        except pytest.skip.Exception as skip:
            skipped.append(str(skip))

    made = session(models.chain(), ep.provider("cuda:0"))
    made.run(None, {"x": x})
    if skipped:
        pytest.skip(skipped[0])
    with epprof_nb.profile() as prof:
        result = made.run(None, {"x": x})[0]
    np.testing.assert_allclose(result, expected(x), rtol=1e-4)
    device = prof.activities[prof.activities["kind"].isin(["kernel", "memcpy"])]
    own = device[prof.ops["name"].reindex(device["op_id"]).to_numpy() == "first"]
    assert len(own)
    assert kernels(prof)["stream_id"].nunique() == 1
    assert set(own["stream_id"]) == set(kernels(prof)["stream_id"])
