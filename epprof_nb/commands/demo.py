"""``epprof demo``: a small workload on the GPU, or on the host device if there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import epprof_nb

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from epprof_nb.profiles import Profile

    Host = npt.NDArray[np.float32]

STEPS = 5
SIZE = 768
BATCH = 512


def run() -> tuple[Profile, str]:
    """Profile a training loop of a two-layer network.

    Returns
    -------
    tuple of Profile and str
        The profile, and a sentence that names the device and the reason for its choice.
    """
    cupy, where = _arrays()
    data = _data()

    def loop() -> None:
        if cupy is None:
            _host_loop(*data)
        else:
            _cupy_loop(cupy, *data)

    loop()  # warm up: compilation and first allocations
    with epprof_nb.profile() as prof:
        loop()
    return prof, where


def _arrays() -> tuple[Any, str]:
    """Return CuPy if it and a GPU are usable, and a sentence that names the device."""
    try:
        import cupy

        cupy.arange(4).sum().item()
    except ImportError:
        return None, (
            "Ran on the host device (this machine's CPU), because CuPy is not installed. To use "
            'an NVIDIA GPU, run: pip install -e ".[cuda13]" (or cuda12).'
        )
    except Exception as error:  # noqa: BLE001 - after any CUDA error the demo uses the host device
        return None, (
            "Ran on the host device (this machine's CPU), because CuPy found no usable GPU "
            f"({type(error).__name__}). Run `epprof doctor` to find out what is missing."
        )
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return cupy, f"Ran on {name} through CuPy."


def _data() -> tuple[Host, Host, Host]:
    rng = np.random.default_rng(0)
    first, second = (
        rng.standard_normal((SIZE, SIZE), np.float32) / np.float32(28) for _ in range(2)
    )
    return rng.standard_normal((BATCH, SIZE), np.float32), first, second


def _cupy_loop(cupy: Any, x_host: Host, w1_host: Host, w2_host: Host) -> None:  # noqa: ANN401
    with epprof_nb.op("upload weights"):
        w1, w2 = cupy.asarray(w1_host), cupy.asarray(w2_host)
    for step in range(STEPS):
        with epprof_nb.op("step", step=step):
            with epprof_nb.op("load batch"):
                x = cupy.asarray(x_host)
            with epprof_nb.op("forward"):
                hidden = cupy.maximum(x @ w1, 0)
                out = hidden @ w2
            with epprof_nb.op("backward"):
                error = out - x
                grad2 = hidden.T @ error
                grad1 = x.T @ ((error @ w2.T) * (hidden > 0))
            with epprof_nb.op("update"):
                w1 -= 1e-6 * grad1
                w2 -= 1e-6 * grad2
            with epprof_nb.op("read loss"):
                float((error * error).mean())


def _host_loop(x_host: Host, w1_host: Host, w2_host: Host) -> None:
    from epprof_nb import host

    def launch(function: Callable[..., object], *arrays: Any, name: str) -> None:
        host.launch(function, *arrays, name=name)

    with epprof_nb.op("upload weights"):
        w1, w2 = host.to_device(w1_host), host.to_device(w2_host)
    x = host.empty((BATCH, SIZE), np.float32)
    hidden, out = (host.empty((BATCH, SIZE), np.float32) for _ in range(2))
    error, back = (host.empty((BATCH, SIZE), np.float32) for _ in range(2))
    grad1, grad2 = (host.empty((SIZE, SIZE), np.float32) for _ in range(2))
    for step in range(STEPS):
        with epprof_nb.op("step", step=step):
            with epprof_nb.op("load batch"):
                host.memcpy(x, x_host)
            with epprof_nb.op("forward"):
                launch(_matmul_relu, x, w1, hidden, name="matmul_relu")
                launch(_matmul, hidden, w2, out, name="matmul")
            with epprof_nb.op("backward"):
                launch(np.subtract, out, x, error, name="subtract")
                launch(_matmul_t, hidden, error, grad2, name="matmul_t")
                launch(_back, error, w2, hidden, back, name="matmul_mask")
                launch(_matmul_t, x, back, grad1, name="matmul_t")
            with epprof_nb.op("update"):
                launch(_descend, w1, grad1, name="descend")
                launch(_descend, w2, grad2, name="descend")
            with epprof_nb.op("read loss"):
                float(np.square(host.to_host(error)).mean())


def _matmul(a: Any, b: Any, out: Any) -> None:  # noqa: ANN401
    np.matmul(a, b, out=out)


def _matmul_relu(a: Any, b: Any, out: Any) -> None:  # noqa: ANN401
    np.matmul(a, b, out=out)
    np.maximum(out, 0, out=out)


def _matmul_t(a: Any, b: Any, out: Any) -> None:  # noqa: ANN401
    np.matmul(a.T, b, out=out)


def _back(error: Any, weights: Any, hidden: Any, out: Any) -> None:  # noqa: ANN401
    np.matmul(error, weights.T, out=out)
    out *= hidden > 0


def _descend(weights: Any, grad: Any) -> None:  # noqa: ANN401
    weights -= 1e-6 * grad
