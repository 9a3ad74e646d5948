"""Stress programs: each runs longer with the environment variable EPPROF_STRESS, a factor."""

import os

FACTOR = int(os.environ.get("EPPROF_STRESS", "1"))
