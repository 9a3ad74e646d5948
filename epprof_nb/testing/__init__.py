"""Synthetic profiles for tests, demos and benchmarks."""

from __future__ import annotations

from epprof_nb.testing.synthetic import synthetic_profile

__all__ = ["synthetic_profile"]
