"""Train a two-layer network on the host device, which runs kernels on the CPU's threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.commands.demo_scripts.host_kernels import matmul, matmul_t, relu, relu_grad, sgd

STEPS, BATCH, WIDTH = 5, 512, 768
random = np.random.default_rng(0)


def empty(*shape):
    return host.empty(shape, np.float32)


def load_batch(x, stream):
    with epprof_nb.op("load batch"):
        batch = random.standard_normal((BATCH, WIDTH), np.float32)
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
loader = ThreadPoolExecutor(1, thread_name_prefix="loader")
loading = loader.submit(load_batch, batches[0], copies)

for step in range(STEPS):
    with epprof_nb.op("step", step=step):
        x = batches[step % 2]
        loading.result()
        if step + 1 < STEPS:
            loading = loader.submit(load_batch, batches[(step + 1) % 2], copies)
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

loader.shutdown()
copies.close()
