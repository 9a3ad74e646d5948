"""Traces for the tests of readers: recorded files, and events written by hand."""

from tests.paths import DATA

TRACES = DATA / "traces"
KINETO, OLD_ORT, NEW_ORT, VIZTRACER = (
    next(TRACES.glob(name))
    for name in ("kineto_cpu*", "onnxruntime_1.30*", "onnxruntime_1.31*", "viztracer*")
)


def x(name, ts, dur, cat="cpu_op", pid=1, tid=2, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def kineto(*events, **top):
    return {"schemaVersion": 1, **top, "traceEvents": list(events)}


def notes(prof):
    return "\n".join(prof.info["notes"])


def gpu_trace():
    gpu = {"device": 0, "context": 1, "stream": 7}
    return kineto(
        x("step", 0, 100, "user_annotation"),
        x("aten::mm", 10, 20),
        x("cudaLaunchKernel", 12, 3, "cuda_runtime", correlation=5),
        x("cuLaunchKernel", 13, 1, "cuda_driver", correlation=5),
        x("gemm", 40, 10.5, "kernel", 0, 7, correlation=5, grid=[1, 2, 3], block=[4, 5, 6], **gpu),
        x("cudaGraphLaunch", 50, 2, "cuda_runtime", correlation=6),
        x("g1", 60, 5, "kernel", 0, 7, correlation=6, **{"graph id": 3, "graph node id": 8, **gpu}),
        x("g2", 65, 5, "kernel", 0, 7, correlation=6, **{"graph id": 3, "graph node id": 9, **gpu}),
        x("Memcpy HtoD (Pageable -> Device)", 80, 2, "gpu_memcpy", 0, 7, bytes=64,
          **{"graph id": 0, "graph node id": 0, **gpu}),
        x("step", 40, 40, "gpu_user_annotation", 0, 7),
        deviceProperties=[{"id": 0, "name": "H200"}], baseTimeNanoseconds=10**18,
    )  # fmt: skip


GOOD = kineto(*(x(f'op {i} \\" \u00fc', i * 10, 5) for i in range(50)))
