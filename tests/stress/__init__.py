"""Stress programs; the environment variable EPPROF_STRESS is a factor of their length."""

import os

FACTOR = int(os.environ.get("EPPROF_STRESS", "1"))
