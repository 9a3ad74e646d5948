"""Profiles with hand-made or random blocks of memory."""

import numpy as np

from epprof_nb.data.schema import MEMORY_BLOCKS
from tests.helpers import tiny

MB = 1 << 20


def block(size, begin, end, op_id=None, **more):
    row = {"pool": "torch", "device_id": 0, "bytes": size, "requested_bytes": size}
    return row | {"allocated_ns": begin, "freed_ns": end, "op_id": op_id} | more


def profile_of(blocks):
    prof = tiny.profile([tiny.line(1, 1, 0, 1000)], info={"wall_ns": 1000})
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    return prof


def random_profile():
    """4,000 blocks in three pools of two devices, some of them from before or kept."""
    rng = np.random.default_rng(7)
    begin = rng.integers(0, 900_000, 4_000)
    end = begin + rng.integers(1, 9_000, 4_000)
    sizes = rng.integers(1, MB, 4_000)
    return profile_of(
        [
            block(
                int(size), None if row % 40 == 0 else int(start),
                None if row % 50 == 0 else int(stop), device_id=row % 2,
                pool=("torch", "driver", "ONNX Runtime")[row % 3],
                category=("parameter", None)[row % 2],
            )
            for row, (size, start, stop) in enumerate(zip(sizes, begin, end, strict=True))
        ]
    )  # fmt: skip
