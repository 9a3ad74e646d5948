"""Train a two-layer network on the GPU with CuPy."""

import zlib

import cupy as cp
import numpy as np

import epprof_nb
from epprof_nb.commands.demo_scripts.batch_file import BATCH, FILE, WIDTH

STEPS = 5
random = np.random.default_rng(0)


def read_batch():
    """Decode a batch, while the device is idle."""
    pixels = np.frombuffer(zlib.decompress(FILE), np.uint8).reshape(BATCH, WIDTH, -1)
    return (pixels.mean(axis=2, dtype=np.float32) - 16) / 9


with epprof_nb.op("initialise"):
    w1, w2 = (cp.asarray(random.standard_normal((WIDTH, WIDTH), np.float32) / 28) for _ in range(2))

for step in range(STEPS):
    with epprof_nb.op("step", step=step):
        with epprof_nb.op("load batch"):
            batch = read_batch()
            x = cp.asarray(batch)
        with epprof_nb.op("forward"):
            pre = x @ w1
            hidden = cp.maximum(pre, 0)
            out = hidden @ w2
        with epprof_nb.op("backward"):
            error = out - x
            grad2 = hidden.T @ error
            back = (error @ w2.T) * (pre > 0)
            grad1 = x.T @ back
        with epprof_nb.op("update"):
            w1 -= 1e-6 * grad1
            w2 -= 1e-6 * grad2
        with epprof_nb.op("read loss"):
            loss = float((error * error).mean())
