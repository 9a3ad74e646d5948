"""Nodes on a CUDA device that repeat their launches without a call of Python."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import epprof_nb

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", minversion="1.26", reason="onnxruntime is not installed")
cp = pytest.importorskip("cupy", reason="CuPy is not installed")

from onnx import helper  # noqa: E402

from epprof_nb import ep  # noqa: E402
from tests.ep import models  # noqa: E402
from tests.ep.sessions import CPU, model, on_cpu, options  # noqa: E402

pytestmark = pytest.mark.usefixtures("every_node")

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, long long n, float factor) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
"""


@pytest.fixture
def calls():
    """Define a kernel of Neg that repeats its launch; the shapes of the calls of Python."""
    scale, made = cp.RawKernel(SCALE, "scale"), []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        made.append(x.shape)
        args = (x, ctx.out(x.shape), x.size, np.float32(-1))
        ctx.launch(scale, (-(-x.size // 128),), (128,), args)
        ctx.repeat_launches()

    return made


def chain(nodes):
    names = ["x", *(f"t{i}" for i in range(1, nodes)), "y"]
    made = [
        helper.make_node("Neg", [a], [b], name=f"n{i}")
        for i, (a, b) in enumerate(itertools.pairwise(names))
    ]
    return model(made, {"x": np.ones((1, 1), np.float32)}, {"y": np.float32})


def session(serialized, **named):
    providers = [ep.provider("cuda:0", **named), CPU]
    return ort.InferenceSession(serialized, options(), providers=providers)


def test_repeated_launches_stand_under_their_nodes(calls):
    made = session(chain(4))
    x = np.random.default_rng(0).standard_normal((32, 7)).astype(np.float32)
    made.run(None, {"x": x})
    assert len(calls) == 4
    with epprof_nb.profile() as prof:
        for run in range(5):
            np.testing.assert_array_equal(made.run(None, {"x": x + run})[0], x + run)
    assert len(calls) == 4
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert (kernels["attribution"] == "stack").all()
    names = prof.ops["name"].reindex(kernels["op_id"]).astype(str)
    assert names.value_counts().to_dict() == {f"n{i}": 5 for i in range(4)}


def test_threads_and_shapes_have_the_right_results(calls):
    made = session(chain(5))
    rng = np.random.default_rng(1)
    inputs = [
        rng.standard_normal((1 + i % 5, 1000 * (1 + i % 3))).astype(np.float32) for i in range(200)
    ]
    with ThreadPoolExecutor(32) as pool:
        results = pool.map(lambda x: made.run(None, {"x": x})[0], inputs)
        for x, y in zip(inputs, results, strict=True):
            np.testing.assert_array_equal(y, -x)


def test_a_graph_captures_them(calls):
    made = session(chain(3), enable_cuda_graph=True)
    for run in range(6):
        x = np.full((8, 8), run, np.float32)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)


def test_a_redefined_kernel_is_called(calls):
    made = session(chain(1))
    x = np.ones((4, 4), np.float32)
    for _ in range(3):
        made.run(None, {"x": x})

    @ep.kernel("Neg", types="float32")
    def other(ctx, x):
        cp.multiply(x, 5, out=ctx.out(x.shape))

    np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 5)
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_models_have_the_same_results_in_every_run(name):
    serialized = models.load(name)
    made, right = session(serialized), on_cpu(serialized)
    for length in (8, 5, 8, 8):
        for seed in (1, 2):
            feeds = models.feeds(name, length=length, seed=seed)
            for got, wanted in zip(made.run(None, feeds), right.run(None, feeds), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
