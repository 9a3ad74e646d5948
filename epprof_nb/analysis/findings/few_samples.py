"""The reason why a profile has no findings: its functions have too few samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import is_cell
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.findings.rules.device_work.hot_places import device_time
from epprof_nb.analysis.findings.rules.host_work.hot_function import (
    MIN_SAMPLES,
    are_functions,
    time_without_findings,
)
from epprof_nb.analysis.utilisation.sampled_host import functions_of_host, sampled_host
from epprof_nb.arrays.intervals import length
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import percent, plural

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex


def few_samples(index: ProfileIndex) -> str:
    """Return that functions took much of the time, and that too few samples say which; else empty.

    Only profiles without device work have findings on functions.
    """
    start, end = time_without_findings(index)
    found = functions_of_host(index, start, end)
    count, of_function = int(found.samples.sum()), are_functions(index, found.stack)
    part = length(start, end) / max(wall_of(index.profile), 1)
    share = part * float(found.share.sum(where=of_function))
    if count >= MIN_SAMPLES or share < HOT_ON_HOST:
        return ""
    if index.cached(lacks_records) or index.cached(device_time) > 0:
        return ""
    where, top = "in functions", sampled_host(index, start, end)
    if top != MISSING and are_functions(index, found.stack[:1])[0]:
        where += f", most in {host_code_name(index, top)}"
    longer = "Run it longer"
    if is_cell(index.profile.info):
        longer = "Repeat the cell (`%%gpuprofile --repeat N`), or run it longer"
    return (
        f"Too few samples to say what takes the time: {percent(share)} of it was {where}, and the "
        f"host has {plural(count, 'sample')} of the {MIN_SAMPLES} that a finding on a function "
        f"needs. {longer}."
    )
