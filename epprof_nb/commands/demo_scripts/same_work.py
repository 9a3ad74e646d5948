"""Ten ops of the same length on the host device, in 20 steps, for ``epprof calibrate``."""

import numpy as np

import epprof_nb
from epprof_nb import host

array = host.empty((4096,))


def work(values: np.ndarray) -> None:
    for _ in range(40):
        np.sqrt(values, out=values)


for _ in range(21):
    epprof_nb.step()
    for number in range(10):
        with epprof_nb.op(f"op {number}"):
            host.launch(work, array, name=f"kernel {number}")
    host.synchronize()
