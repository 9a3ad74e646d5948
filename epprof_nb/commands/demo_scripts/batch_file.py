"""The batch that the demo reads in each step: compressed pixels, made once per process."""

import zlib

import numpy as np

BATCH, WIDTH = 256, 512
_PIXELS = 48  # per feature
FILE = zlib.compress(
    np.random.default_rng(0).integers(0, 32, BATCH * WIDTH * _PIXELS, np.uint8).tobytes(), 1
)
