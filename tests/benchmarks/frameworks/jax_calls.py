"""Cost of recording JAX: dispatches of a small jitted function, and of one with many instructions.

Ratios are to the same calls without a profile, and to a profile without frameworks. The small
function makes the ratio large: a profile adds an op to a dispatch of a few microseconds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp

import epprof_nb
from tests.benchmarks.shared.harness import header, paired, show


@jax.jit
def small(values: jax.Array) -> jax.Array:
    """Return the values with one added."""
    return values + 1


@jax.jit
def large(values: jax.Array) -> jax.Array:
    """Return the values after 30 products and sums, which XLA does not fuse into one."""
    for _ in range(30):
        values = jnp.tanh(jnp.cumsum(values, axis=0) @ values)
    return values


def seconds_of(function: Any, values: jax.Array, calls: int, frameworks: Any = None) -> float:
    """Return the seconds per call; in a profile with these frameworks unless None."""
    if frameworks is not None:
        with epprof_nb.profile(frameworks=frameworks):
            return seconds_of(function, values, calls)
    begin = time.perf_counter()
    for _ in range(calls):
        result = function(values)
    result.block_until_ready()
    return (time.perf_counter() - begin) / calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    arguments = parser.parse_args()
    header(f"Recording JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    for function, shape, calls in (
        (small, (4,), arguments.calls),
        (large, (64, 64), max(arguments.calls // 20, 1)),
    ):
        values = jnp.ones(shape) / 64
        for _ in range(3):  # XLA creates command buffers in one of the first calls
            function(values).block_until_ready()

        def variant(
            frameworks: Any, function: Any = function, values: Any = values, calls: int = calls
        ) -> Any:
            return lambda: seconds_of(function, values, calls, frameworks)

        variants = {
            "no profile": variant(None),
            "profile, no frameworks": variant(()),
            'profile, ["jax"]': variant(("jax",)),
            'profile, ["jax", "nvtx"]': variant(("jax", "nvtx")),
        }
        print(f"{function.__name__}, {calls} calls")
        bases = ("no profile", "profile, no frameworks")
        show(paired(variants, arguments.rounds), bases, "us a call", 1e6)


if __name__ == "__main__":
    main()
