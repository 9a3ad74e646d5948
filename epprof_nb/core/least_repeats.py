"""Least numbers of repeats: options check them before any code runs, and analyses after it."""

from __future__ import annotations

MIN_COMPARED = 10
"""Minimum number of repeats of each recording of a comparison."""

MIN_OF_EXPERIMENT = 16
"""Minimum number of repeats of a round of an experiment."""
MAX_OF_EXPERIMENT = 10_000
"""Maximum number of repeats of an experiment: more take hours."""
