"""Finding on the function that takes most of the host's time, in profiles without device work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding, capitalised, code
from epprof_nb.analysis.findings.host_name import host_name
from epprof_nb.analysis.utilisation.host_activity import functions_of_host
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex

HOT_SHARE = 0.3
"""Minimum share of the sampled time for a function to be named."""
MIN_SAMPLES = 20
"""Minimum number of samples of the function: its share is then known within a fifth."""


def hot_function(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the innermost function of the user's code with most samples.

    Code outside of functions has findings on its lines.
    """
    wall_ns = wall_of(index.profile)
    found = functions_of_host(index, np.array([0]), np.array([wall_ns]))
    lines = index.cached(StackLines)
    names = lines.function.take(np.maximum(found.stack, 0)).to_list() if len(found.stack) else []
    of_function = np.array([name not in (None, "", "<module>") for name in names], np.bool_)
    of_function &= found.stack >= 0
    if not of_function.any():
        return
    top = int(of_function.argmax())  # the first one has most
    stack, share = int(found.stack[top]), float(found.share[top])
    if share < HOT_SHARE or found.samples[top] < MIN_SAMPLES:
        return
    (file,) = lines.file.take(np.array([stack])).to_list()
    source = source_line(index.profile, file, int(lines.line[stack]))
    most = f", most of it at {code(source)}" if source else ""
    error = 2 * float(np.sqrt(share * (1 - share) / found.samples.sum()))
    yield Finding(
        f"{capitalised(host_name(index, stack))} took {percent(share)} of the host's time "
        f"({duration(share * wall_ns)}, in {plural(int(found.samples[top]), 'sample')}){most}.",
        int(share * wall_ns),
        0,
        wall_ns,
        kind="hot function",
        remedy="Make this function faster, call it less often, or do its work beside the rest, in "
        "other processes.",
        gain_high_ns=int(min(share + error, 1.0) * wall_ns),
        stack_id=stack,
        table="ops",
    )
