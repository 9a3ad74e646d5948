"""Train a two-layer network on the host device, which runs kernels on the CPU's threads."""

import zlib

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.commands.demo_scripts.batch_file import BATCH, FILE, WIDTH
from epprof_nb.commands.demo_scripts.host_kernels import matmul, matmul_t, relu, relu_grad, sgd

STEPS = 5
random = np.random.default_rng(0)


def empty(*shape):
    return host.empty(shape, np.float32)


def read_batch():
    """Decode a batch, while the device is idle."""
    pixels = np.frombuffer(zlib.decompress(FILE), np.uint8).reshape(BATCH, WIDTH, -1)
    return (pixels.mean(axis=2, dtype=np.float32) - 16) / 9


def load_batch(x, stream, batch):
    with epprof_nb.op("load batch"):
        host.memcpy(x, batch, stream)
        stream.synchronize()


with epprof_nb.op("initialise"):
    w1, w2 = (
        host.to_device(random.standard_normal((WIDTH, WIDTH), np.float32) / 28) for _ in range(2)
    )
    batches = [empty(BATCH, WIDTH) for _ in range(2)]
    pre, hidden, out, error, back = (empty(BATCH, WIDTH) for _ in range(5))
    grad1, grad2 = (empty(WIDTH, WIDTH) for _ in range(2))
    for grad in (grad1, grad2):
        host.memset(grad, 0)

copies = host.Stream()

for step in range(STEPS):
    with epprof_nb.op("step", step=step):
        x = batches[step % 2]
        batch = read_batch()
        load_batch(x, copies, batch)
        with epprof_nb.op("forward"):
            host.launch(matmul, x, w1, pre)
            host.launch(relu, pre, hidden)
            host.launch(matmul, hidden, w2, out)
        with epprof_nb.op("backward"):
            host.launch(np.subtract, out, x, error, name="mse_grad")
            host.launch(matmul_t, hidden, error, grad2)
            host.launch(matmul, error, w2, back)
            host.launch(relu_grad, pre, back)
            host.launch(matmul_t, x, back, grad1)
        with epprof_nb.op("update"):
            host.launch(sgd, w1, grad1)
            host.launch(sgd, w2, grad2)
        with epprof_nb.op("read loss"):
            loss = float(np.square(host.to_host(error)).mean())

copies.close()
