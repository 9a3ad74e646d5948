"""Kernels in Python on a CUDA device, alone and beside ONNX Runtime's CUDA provider.

The first tests need CuPy and any ONNX Runtime; the tests of the takeover need onnxruntime-gpu.
"""

import numpy as np
import pytest

import epprof_nb

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", minversion="1.26", reason="onnxruntime is not installed")
cp = pytest.importorskip("cupy", reason="CuPy is not installed")

from epprof_nb import _native, ep  # noqa: E402
from tests.ep.sessions import CPU, OURS, on_cpu, one_node, options, placement  # noqa: E402
from tests.ort import models  # noqa: E402
from tests.ort.rows import nodes  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.usefixtures("every_node")
CUDA = "CUDAExecutionProvider"
TAKEN = [f"n{i}" for i in range(1, 30, 3)]

needs_cuda_provider = pytest.mark.skipif(
    CUDA not in ort.get_available_providers(), reason="onnxruntime-gpu is not installed"
)


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)


def session(serialized, *providers):
    return ort.InferenceSession(serialized, options(), providers=[*providers, CPU])


def value(array):
    return ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0)


def kernels(prof):
    return prof.activities[prof.activities["kind"] == "kernel"]


def test_the_built_in_kernels_run_on_the_device(x):
    made = session(models.chain(), ep.provider("cuda:0"))
    assert set(placement(made).values()) == {OURS}
    for scale in (1, 2, 3):
        feeds = {"x": x * scale}
        np.testing.assert_allclose(
            made.run(None, feeds)[0], on_cpu(models.chain()).run(None, feeds)[0], rtol=1e-5
        )


def test_kernels_are_launched_on_the_sessions_stream_and_stand_under_their_nodes(x):
    seen = set()
    relu = cp.RawKernel(
        'extern "C" __global__ void own_relu(const float* x, float* y, int n) {'
        "  int i = blockDim.x * blockIdx.x + threadIdx.x;"
        "  if (i < n) y[i] = x[i] > 0 ? x[i] : 0; }",
        "own_relu",
    )

    @ep.kernel("Relu", types="float32")
    def own(ctx, x):
        seen.add((ctx.stream, cp.cuda.get_current_stream().ptr, cp.cuda.Device().id))
        relu((-(-x.size // 128),), (128,), (x, ctx.out(x.shape, x.dtype), x.size))

    made = session(models.chain(), ep.provider("cuda:0"))
    made.run(None, {"x": x})
    before = cp.cuda.get_current_stream().ptr
    with epprof_nb.profile() as prof:
        for _ in range(5):
            made.run(None, {"x": x})
    assert cp.cuda.get_current_stream().ptr == before
    ((stream, current, device),) = seen
    assert stream
    assert (stream, 0) == (current, device)
    launched = kernels(prof)
    assert (launched["attribution"] == "stack").all()
    names = prof.ops["name"].reindex(launched["op_id"]).to_numpy()
    is_own = launched["name"].str.contains("own_relu").to_numpy()
    assert is_own.sum() == 5
    assert set(names[is_own]) == {"first"}
    assert launched["stream_id"].nunique() == 1
    assert len(nodes(prof)[nodes(prof)["provider"] == OURS]) >= 15


def test_values_bindings_and_copies_stay_in_device_memory(x):
    made = session(models.chain(), ep.provider("cuda:0"))
    given, taken = value(x), value(np.zeros_like(x))
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output("t2", taken)
    made.run_with_iobinding(binding)
    with epprof_nb.profile() as prof:
        made.run_with_iobinding(binding)
    # Kernels of the package copy temporary arrays, on the device, into their outputs.
    assert set(prof.activities["copy_kind"].dropna()) <= {"DtoD"}
    expected = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(taken.numpy(), expected, rtol=1e-5)
    given.update_inplace(x * 2)
    copied = value(np.zeros_like(x))
    ort.copy_tensors([given], [copied])
    np.testing.assert_array_equal(copied.numpy(), x * 2)


def test_cupy_reads_a_value_by_dlpack_without_a_copy(x):
    ep.provider("cuda:0")
    given = value(x)
    array = cp.from_dlpack(ep.dlpack(given))
    assert array.data.ptr == given.data_ptr()
    array *= 2
    cp.cuda.get_current_stream().synchronize()
    np.testing.assert_array_equal(given.numpy(), x * 2)


def test_a_session_runs_on_a_stream_of_cupy(x):
    seen = set()

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.add(ctx.stream)
        cp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    stream = cp.cuda.Stream(non_blocking=True)
    made = session(models.chain(), ep.provider("cuda:0", stream=stream.ptr))
    made.run(None, {"x": x})
    assert seen == {stream.ptr}


def test_an_array_that_is_kept_is_told(x):
    kept = []

    @ep.kernel("Relu", types="float32")
    def keeping(ctx, x):
        kept.append(x[:1])
        cp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    made = session(models.chain(), ep.provider("cuda:0"))
    with pytest.raises(Exception, match=r"keeps input 0 after it has returned"):
        made.run(None, {"x": x})
    assert kept[0].get().shape == (1, 4)


def test_too_much_memory_names_the_node_and_the_size(x):
    @ep.kernel("Relu", types="float32")
    def huge(ctx, x):
        ctx.out((2**24, 2**22), x.dtype)

    serialized, feeds = one_node("Relu", [x])  # every dimension is free
    made = session(serialized, ep.provider("cuda:0"))
    with pytest.raises(Exception, match=rf"'node'.*cuda:0 has no memory left.* {2**48} bytes"):
        made.run(None, feeds)


def relu_of_torch(x, out):
    torch.clamp(x, min=0, out=out)


def relu_of_triton(x, out):
    triton_kernel = pytest.importorskip("tests.gpu.triton_kernel", reason="Triton is missing")
    out.copy_(torch.clamp(x, min=0) - 1)
    triton_kernel.add_one[(out.numel() // 128 + 1,)](out, out.numel(), BLOCK=128)


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("launch", [relu_of_torch, relu_of_triton])
def test_other_libraries_launch_on_the_sessions_stream(x, launch):
    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        with torch.cuda.stream(torch.cuda.ExternalStream(ctx.stream)):
            launch(torch.from_dlpack(x), torch.from_dlpack(ctx.out(x.shape, x.dtype)))

    made = session(models.chain(), ep.provider("cuda:0"))
    made.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        result = made.run(None, {"x": x})[0]
    np.testing.assert_allclose(
        result, on_cpu(models.chain()).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6
    )
    assert kernels(prof)["stream_id"].nunique() == 1


def test_verify_compares_on_the_device(x):
    table = ep.verify(models.chain(), {"x": x}, device="cuda:0", repeats=2)
    assert (table["provider"] == OURS).all()
    assert table["matches"].all()


@needs_cuda_provider
def test_nodes_taken_over_from_the_cuda_provider_add_no_copy(x):
    serialized = models.chain([f"n{i}" for i in range(30)])
    alone = session(serialized, CUDA)
    shared = session(serialized, ep.provider("cuda:0", nodes=TAKEN), CUDA)
    where = placement(shared)
    assert {n for n, provider in where.items() if provider == OURS} == set(TAKEN)
    assert set(where.values()) == {OURS, CUDA}
    copies, streams, results = [], [], []
    for made in (alone, shared):
        made.run(None, {"x": x})
        with epprof_nb.profile() as prof:
            results.append(made.run(None, {"x": x})[0])
        acts = prof.activities
        copies.append(int((acts["kind"] == "memcpy").sum()))
        streams.append(kernels(prof)["stream_id"].nunique())
    assert copies[0] == copies[1]
    assert streams == [1, 1]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-6)


@needs_cuda_provider
def test_the_arena_serves_a_shared_session_without_calls_of_the_driver(x):
    serialized = models.chain([f"n{i}" for i in range(30)])
    made = session(serialized, ep.provider("cuda:0", nodes=TAKEN), CUDA)
    for _ in range(5):
        made.run(None, {"x": x})
    before = _native.ep_device_statistics(0)
    for _ in range(50):
        made.run(None, {"x": x})
    after = _native.ep_device_statistics(0)
    assert after["allocations"] > before["allocations"]
    assert after["regions"] == before["regions"]


def test_a_session_runs_on_the_second_device(x):
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    seen = set()

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.add((ctx.device, x.device.id, cp.cuda.Device().id))
        cp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    made = session(models.chain(), ep.provider("cuda:1"))
    result = made.run(None, {"x": x})[0]
    np.testing.assert_allclose(result, on_cpu(models.chain()).run(None, {"x": x})[0], rtol=1e-5)
    assert seen == {("cuda:1", 1, 1)}


def test_blocks_of_the_arena_have_their_nodes(x):
    made = session(models.chain(), ep.provider("cuda:0"))
    made.run(None, {"x": x})
    with epprof_nb.profile(detail="memory") as prof:
        for _ in range(2):
            made.run(None, {"x": x})
        statistics = _native.ep_device_statistics(0)
    blocks = prof.memory_blocks[prof.memory_blocks["pool"] == "kernels in Python"]
    assert blocks["bytes"][blocks["freed_ns"].isna()].sum() == statistics["in_use"]
    new = blocks[blocks["allocated_ns"].notna()]
    assert len(new) > 0
    assert new["op_id"].notna().all()
    pools = prof.memory_pools()  # another device may have an arena, too
    pools = pools[(pools["pool"] == "kernels in Python") & (pools["device_id"] == 0)]
    assert pools["held_bytes"].tolist() == [statistics["reserved"]]
