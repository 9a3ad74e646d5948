"""Helpers for tests of the host device."""

from __future__ import annotations

import time


def fail(*_):
    raise ValueError("this kernel fails")


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()
