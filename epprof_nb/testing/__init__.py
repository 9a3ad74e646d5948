"""Synthetic profiles and jobs for tests, demos and benchmarks."""

from __future__ import annotations

from epprof_nb.testing.synthetic import synthetic_profile
from epprof_nb.testing.synthetic_job import synthetic_job

__all__ = ["synthetic_job", "synthetic_profile"]
