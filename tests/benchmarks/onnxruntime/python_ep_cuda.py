"""Cost of kernels in Python on a CUDA device. Needs onnx, CuPy and a GPU.

The first part compares a node with the bare CuPy launch: launched by CuPy, by ``ctx.launch``, and
repeated without Python. In the second part, equally fast kernels take over nodes of ONNX Runtime's
CUDA provider: every third node of a chain, and one type of operator in models exported by torch
(``--exported``). These need onnxruntime-gpu, and torch, transformers and torchvision. If a package
is missing, the row names it.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import onnxruntime as ort

import epprof_nb
from epprof_nb import ep
from tests.benchmarks.onnxruntime.python_ep import CPU, chain, plain_options, seconds
from tests.benchmarks.shared.harness import header, paired, ratios
from tests.ep.sessions import OURS, placement
from tests.gpu import exported

CUDA = "CUDAExecutionProvider"


def bound(session, feeds):
    """A binding of inputs and output in device memory, and the inputs."""
    values = {n: ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0) for n, x in feeds.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output(session.get_outputs()[0].name, "cuda", 0)
    return binding, values


def runs(session, feeds, count):
    """A function that measures `count` runs, after some that are not measured."""
    binding, values = bound(session, feeds)

    def run(_keep=values):
        session.run_with_iobinding(binding)

    seconds(run, 20)
    return lambda: seconds(run, count)


def session(nodes, *providers, length=4):
    """A session of a chain of Neg."""
    model = chain(nodes, length=length)
    return ort.InferenceSession(model, plain_options(), providers=[*providers, CPU])


ELEMENTWISE = r"""
__device__ float f(float x) { return %s; }
extern "C" __global__ void %s(const float4* x, float4* y, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float4 v = x[i];
  y[i] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
}
"""


def elementwise(cp, name, expression):
    """A function of arrays whose size is a multiple of 4, as fast as the CUDA provider's."""
    kernel = cp.RawKernel(ELEMENTWISE % (expression, name), name)

    def launch(x, y, by=lambda kernel, *args: kernel(*args)):
        count = x.size // 4
        by(kernel, ((count + 255) // 256,), (256,), (x, y, count))

    return launch


def define(cp):
    """Define a kernel as fast as the CUDA provider's; return it."""
    negative = elementwise(cp, "own_neg", "-x")

    ep.kernel("Neg", types="float32")(variants(negative)["repeated"])
    return negative


def variants(negative):
    """Kernels of Neg, by how they launch."""

    def by_cupy(ctx, x):
        negative(x, ctx.out(x.shape, x.dtype))

    def by_context(ctx, x):
        negative(x, ctx.out(x.shape, x.dtype), ctx.launch)

    def repeated(ctx, x):
        negative(x, ctx.out(x.shape, x.dtype), ctx.launch)
        ctx.repeat_launches()

    return {"called by CuPy": by_cupy, "ctx.launch": by_context, "repeated": repeated}


def node_cost(cp, negative, args) -> None:
    """Print the cost of a node over the bare launch, for each way to launch."""
    x = np.ones(4, np.float32)
    entry = ep.provider("cuda:0")
    a, b = cp.ones(4, cp.float32), cp.empty(4, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)

    def bare():
        with stream:
            for _ in range(args.nodes):
                negative(a, b)
        stream.synchronize()

    measured = {"bare": lambda: seconds(bare, args.runs)}
    defined = variants(negative)
    for name, kernel in defined.items():
        ep.kernel("Neg", types="float32")(kernel)
        measured |= {
            f"{name}, {count}": chain_runs(kernel, count, entry, {"x": x}, args)
            for count in (1, args.nodes)
        }
    results = paired(measured, args.rounds)
    bare_us = statistics.median(results["bare"]) * 1e6 / args.runs / args.nodes
    print(f"{'bare CuPy launch':32} {bare_us:8.2f} us")
    for name in defined:
        cost = statistics.median(
            (many - one) * 1e6 / args.runs / (args.nodes - 1)
            for many, one in zip(
                results[f"{name}, {args.nodes}"], results[f"{name}, 1"], strict=True
            )
        )
        print(f"{f'a node, {name}':32} {cost:8.2f} us   over the launch {cost - bare_us:.2f} us")
    print_misses(defined, entry, args)


def chain_runs(kernel, count, entry, feeds, args):
    """A function that measures runs of a chain of nodes with a kernel."""
    run = runs(session(count, entry), feeds, args.runs)

    def measured():
        ep.kernel("Neg", types="float32")(kernel)
        run()  # launches are not repeated in the first run after a definition
        return run()

    return measured


def print_misses(defined, entry, args) -> None:
    """Print the time of a node if each run has other shapes, so that no launch is repeated."""
    sizes = [4 * (1 + i) for i in range(64)]

    def chains(kernel, count):
        made = session(count, entry, length=None)
        bindings = [bound(made, {"x": np.ones(size, np.float32)})[0] for size in sizes]

        def run():
            for binding in bindings:
                made.run_with_iobinding(binding)

        def measured():
            ep.kernel("Neg", types="float32")(kernel)
            run()
            return seconds(run, 1)

        return measured

    measured = {
        (name, count): chains(kernel, count)
        for name, kernel in defined.items()
        for count in (1, args.nodes)
    }
    results = paired(measured, args.rounds)
    for name in defined:
        cost = statistics.median(
            (many - one) * 1e6 / len(sizes) / (args.nodes - 1)
            for many, one in zip(results[name, args.nodes], results[name, 1], strict=True)
        )
        print(f"{f'new shapes, {name}':32} {cost:8.2f} us")


def copies_of(made, feeds) -> int:
    """Copies in a profile of one run."""
    binding, _values = bound(made, feeds)
    made.run_with_iobinding(binding)
    with epprof_nb.profile() as prof:
        made.run_with_iobinding(binding)
    return int((prof.activities["kind"] == "memcpy").sum())


def takeover(args) -> None:
    """Print the cost of taking over one node of three, and the copies that it adds."""
    feeds = {"x": np.ones(args.length, np.float32)}
    taken = [f"n{i}" for i in range(1, args.nodes, 3)]
    alone = session(args.nodes, CUDA, length=args.length)
    shared = session(args.nodes, ep.provider("cuda:0", nodes=taken), CUDA, length=args.length)
    compare(f"{len(taken)} of {args.nodes} nodes", alone, shared, feeds, args)


def compare(title, alone, shared, feeds, args) -> None:
    """Print what a session costs over one of the CUDA provider alone, and the copies it adds."""
    results = paired(
        {
            "CUDA provider": runs(alone, feeds, args.runs),
            "taken over": runs(shared, feeds, args.runs),
        },
        args.rounds,
    )
    low, middle, high = ratios(results, "CUDA provider")["taken over"]
    us = statistics.median(results["CUDA provider"]) * 1e6 / args.runs
    added = copies_of(shared, feeds) - copies_of(alone, feeds)
    print(
        f"{title} taken over: {middle:.2f}x ({low:.2f}-{high:.2f}) of {us:.0f} us a run, "
        f"{added} copies added"
    )


SOFTMAX = r"""
extern "C" __global__ void own_softmax(const float* x, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += (size_t)row * width;
  y += (size_t)row * width;
  float most = __int_as_float(0xff800000), sum = 0;  // minus infinity
  for (int i = threadIdx.x; i < width; i += 32) most = fmaxf(most, x[i]);
  for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  for (int i = threadIdx.x; i < width; i += 32) sum += __expf(x[i] - most);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int i = threadIdx.x; i < width; i += 32) y[i] = __expf(x[i] - most) / sum;
}
"""


def define_operators(cp) -> None:
    """Define kernels of operators of the exported models, as fast as the CUDA provider's."""
    softmax_rows = cp.RawKernel(SOFTMAX, "own_softmax")
    erf_of = elementwise(cp, "own_erf", "erff(x)")
    relu_of = elementwise(cp, "own_relu", "fmaxf(x, 0)")

    @ep.kernel("Softmax", types="float32")
    def softmax(ctx, x):
        width = x.shape[-1]
        rows = x.size // width
        softmax_rows(((rows + 7) // 8,), (32, 8), (x, ctx.out(x.shape), rows, width))

    @ep.kernel("Erf", types="float32")
    def erf(ctx, x):
        erf_of(x, ctx.out(x.shape))

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        relu_of(x, ctx.out(x.shape))


def exported_models(cp, args) -> None:
    """Print the cost of taking over one type of operator of models exported by torch.

    Both sessions have the same nodes: fusions of the CUDA provider are off.
    """
    define_operators(cp)
    for name, op_type in (("bert", "Softmax"), ("bert", "Erf"), ("resnet50", "Relu")):
        if name not in args.exported:
            continue
        model, (feeds,) = exported.get(name)

        def made(*providers, _model=model):
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
            options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
            return ort.InferenceSession(_model, options, providers=[*providers, CPU])

        alone, shared = made(CUDA), made(ep.provider("cuda:0", only=[op_type]), CUDA)
        np.testing.assert_allclose(
            shared.run(None, feeds)[0], alone.run(None, feeds)[0], rtol=1e-2, atol=1e-3
        )
        where = list(placement(shared).values())
        title = f"{name}: {where.count(OURS)} of {len(where)} nodes ({op_type})"
        compare(title, alone, shared, feeds, args)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=99)
    parser.add_argument("--length", type=int, default=1 << 20, help="of tensors, in the takeover")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--exported", nargs="*", default=[], help="bert, resnet50")
    args = parser.parse_args()
    header(f"Kernels in Python, ONNX Runtime {ort.__version__}, CUDA device")
    try:
        import cupy as cp

        name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:
        print(f"skipped: needs CuPy and a GPU ({error})")
        return
    print(f"GPU {name}, CuPy {cp.__version__}")
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    negative = define(cp)
    node_cost(cp, negative, args)
    if CUDA in ort.get_available_providers():
        takeover(args)
        exported_models(cp, args)
    else:
        print("takeover skipped: needs onnxruntime-gpu")


if __name__ == "__main__":
    main()
