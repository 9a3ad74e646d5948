"""Record the profiles of a GPU that the tutorials on findings and comparisons show.

::

    python -m tests.tools.record_findings notebooks/recordings
"""

from __future__ import annotations

import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

import epprof_nb

LOOP = """
import zlib
import cupy
import numpy as np

rng = np.random.default_rng(0)
files = [zlib.compress(rng.integers(0, 32, 1024 * 4096, np.uint8).tobytes(), 1) for _ in range(8)]
weights = [cupy.asarray(rng.standard_normal((4096, 4096), np.float32) / 64) for _ in range(12)]

def decode(file):
    pixels = np.frombuffer(zlib.decompress(file), np.uint8)
    return pixels.reshape(1024, 4096).astype(np.float32) / 16 - 1

def network(x):
    for w in weights:
        x = cupy.maximum(x @ w, 0)
    return x

warm = float(network(cupy.asarray(decode(files[0]))).mean())
"""
SCORES = """
scores = []
for file in files:
    x = cupy.asarray(decode(file))
    y = network(x)
    scores.append(float(y.mean()))
"""
STEP = '''
import cupy
import epprof_nb

source = """
extern "C" __global__ void NAME(float* values, int steps) {
  float value = values[threadIdx.x];
  for (int step = 0; step < steps; ++step) value = fmaf(value, 0.999f, 0.001f);
  values[threadIdx.x] = value;
}
"""
gemm, softmax, sgd = (
    cupy.RawKernel(source.replace("NAME", name), name) for name in ("gemm", "softmax", "sgd")
)
values = cupy.ones(256, cupy.float32)

def step(attention=1.0):
    for name, kernel, steps in (
        ("project", gemm, 60_000), ("attention", softmax, round(240_000 * attention)),
        ("update", sgd, 90_000),
    ):
        with epprof_nb.op(name):
            kernel((132,), (256,), (values, cupy.int32(steps)))
    cupy.cuda.get_current_stream().synchronize()

step()
'''
CELLS = {
    "find_the_bottleneck": (LOOP, SCORES, ""),
    "did_it_help_old": (STEP, "step()", "--repeat 20 --warmup 2"),
    "did_it_help_new": (STEP, "step(attention=0.97)", "--repeat 20 --warmup 2"),
}


def main(folder: str) -> None:
    """Run the cells and write their profiles."""
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "epprof_nb")
    made, ready = {}, ""
    for name, (setup, code, options) in CELLS.items():
        if setup != ready:
            shell.run_cell(setup, store_history=True).raise_error()
            ready = setup
        cell = f"%%gpuprofile prof {options}\n{code.strip()}\n"
        shell.run_cell(cell, store_history=True).raise_error()
        made[name] = shell.user_ns["prof"].redacted(["hosts", "paths"])
        made[name].info["versions"].pop("platform")
        path = Path(folder) / f"{name}.epprof"
        made[name].save(path)
        print(f"{name}: {path.stat().st_size / 1e3:.0f} kB, {made[name].wall_ns / 1e6:.1f} ms")
        for row in made[name].insights().to_dict("records"):
            print("  ", row["kind"], row["line"], row["gain_ns"] / 1e6, row["text"])
    result = epprof_nb.compare(made["did_it_help_old"], made["did_it_help_new"])
    print(result.verdict, "-", result.reason)
    print(result.ops[["name", "change", "change_low", "change_high", "verdict"]].to_string())


if __name__ == "__main__":
    main(sys.argv[1])
