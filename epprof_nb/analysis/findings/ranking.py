"""insights: the findings of all analyses, causes first, ranked by their gain."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.base.device_memory import nearly_full
from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.lines_of_work import lines_at
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.processes import only_process, processes
from epprof_nb.analysis.base.processor_use import NOTABLE_SHARE, share_kept_from_cores
from epprof_nb.analysis.base.result_table import (
    ResultTable,
    categorical,
    objects,
    optional,
)
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.asked_savings import findings_of
from epprof_nb.analysis.findings.finding import MIN_GAIN_SHARE
from epprof_nb.analysis.findings.rules.device_work.hot_places import device_time
from epprof_nb.analysis.findings.rules.registry import (
    ALWAYS,
    OF_DEVICE_WORK,
    OF_HOST_WORK,
    OF_MEMORY,
)
from epprof_nb.analysis.findings.shared_idle_time import with_causes, with_references
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.util.format import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from epprof_nb.analysis.added_time.added_time import AddedTime
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.processes import ProcessPart
    from epprof_nb.analysis.findings.finding import Finding
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


_HOT_PLACES = frozenset(
    {"hot function", "hot line", "hot op", "hot module", "hot operator", "hot node"}
)
"""Kinds that say where time goes, but not why; they come after those that name a cause."""
SHOWN_BELOW_CELL = 2
"""Number of findings below a profiled cell; `Profile.insights` has all."""
_ONLY_IMPORTS = 0.8
"""Minimum share of the wall time for imports to come before what the rest could save."""
_NOTABLE_PART = 0.1
"""Minimum part of the wall time that profiling added for findings to say so."""
_MOST = 0.5
"""Minimum part from which findings that leave it out say so: their shares are of what is left."""
WITHOUT_GAIN = frozenset({"hot line", "hot op"})
"""Kinds whose gain is not known: less of this work, or none, would have to do."""


def findings(index: ProfileIndex, *, limit: int | None = SHOWN_BELOW_CELL) -> list[Finding]:
    """Return up to `limit` findings, all if None, causes first, by descending gain.

    Weak ones are left out.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> findings(ProfileIndex(synthetic_profile(activities=100)))[0].text  # doctest: +ELLIPSIS
    'GPU idle 60.0 ms before its first work while the host ran line 1 (`model, opti...).'
    """
    return index.cached(_ranked)[:limit]


def _ranked(index: ProfileIndex) -> list[Finding]:
    parts = index.cached(processes)
    if parts:
        # The host of one process does not explain the devices of another.
        wall_ns = wall_of(index.profile)
        found = [
            finding for part in parts for finding in _of_process(part) if counts_in_job(finding)
        ]
        found = [f for f in found if is_much_of(f, wall_ns)]
        return sorted(found, key=lambda f: order_of(f, wall_ns))
    alone = only_process(index)  # cached, it would refer to its index
    if alone is None:
        return with_references(_of_one(index))
    own = alone.in_own_time
    return [_in_whole(f, alone, own) for f in with_references(own.cached(_of_one))]


def _of_one(index: ProfileIndex) -> list[Finding]:
    """Return the findings on one process."""
    # The sum is negative if it includes times of an overflown clock.
    of_work = OF_DEVICE_WORK if index.cached(device_time) > 0 else OF_HOST_WORK
    if index.cached(lacks_records):
        of_work = ()  # the missing records may hold the largest costs
    wall_ns = wall_of(index.profile)
    found = [_within(f, wall_ns) for f in findings_of(index, (*of_work, *ALWAYS))]
    least = MIN_GAIN_SHARE * wall_ns
    found = [f for f in found if f.gain_ns >= least or f.kind in WITHOUT_GAIN]
    added = index.cached(added_time)
    if added is not None and wall_ns:
        found = [_without_profiler(f, added, wall_ns) for f in found]
    kept = 0.0 if used_gpu(index) else share_kept_from_cores(index.profile.info)
    if kept >= NOTABLE_SHARE:  # a GPU may have worked meanwhile
        found = [f if f.is_wait else _without_waits(f, kept) for f in found]
    shown = with_causes(found)
    shown.sort(key=lambda f: (_level(f, wall_ns), -f.gain_ns, -f.low_ns))
    of_memory = [finding for function in OF_MEMORY for finding in function(index)]
    # Who asks for memory alone wants it first.
    is_first = nearly_full(index) or index.profile.info.get("detail") == "memory"
    return [*of_memory, *shown] if is_first else [*shown, *of_memory]


def _of_process(part: ProcessPart) -> Iterator[Finding]:
    """Yield the findings on one of several processes.

    They use the times of the process alone, because shares and gains refer to its wall time.
    """
    own = part.in_own_time
    for finding in own.cached(_of_one):
        yield replace(_in_whole(finding, part, own), text=f"{part.name}: {finding.text}")


def _in_whole(finding: Finding, part: ProcessPart, own: ProfileIndex) -> Finding:
    """Return a finding in the own time of a process with rows and times of the whole profile."""
    begin = 0 if part.recorded is None else part.recorded[0]
    return replace(
        finding,
        start_ns=finding.start_ns + begin,
        end_ns=finding.end_ns + begin,
        # Nothing else keeps an index that is only of the own time.
        rows=partial(
            _rows_of_whole,
            finding,
            own.profile,
            part.first[finding.table],
            None if own is part.index else own,
        ),
        spans=None,
    )


def _rows_of_whole(
    finding: Finding,
    own: ProfileData,
    first: int,
    kept: ProfileIndex | None,  # noqa: ARG001 - the finding refers to it weakly
) -> IntArray:
    rows: IntArray = finding.evidence_rows(own) + first
    return rows


def _without_profiler(finding: Finding, added: AddedTime, wall_ns: int) -> Finding:
    """Return a finding with the gain of the code without the profiler.

    What profiling added is spread over the critical path, from which gains are computed. If it is
    much, the sentence says that its times include it. One whose times leave it out says so if it
    is most of the wall time.
    """
    estimated = "" if added.is_measured else "an estimated "
    if finding.is_unprofiled:
        if added.total_ns < _MOST * wall_ns:
            return finding
        rest = (
            f" Profiling added {estimated}{duration(added.total_ns)} to the wall time of "
            f"{duration(wall_ns)}, which this leaves out."
        )
        return replace(finding, text=finding.text + rest)
    part = 1 - added.total_ns / wall_ns
    low, gain, high = (
        round(value * part) for value in (finding.low_ns, finding.gain_ns, finding.high_ns)
    )
    text = finding.text
    if gain and added.total_ns >= _NOTABLE_PART * wall_ns:
        text += (
            f" Profiling added {estimated}{duration(added.total_ns)} to the wall time, which the "
            "gain leaves out."
        )
    return replace(finding, text=text, gain_ns=gain, gain_low_ns=low, gain_high_ns=high)


def _without_waits(finding: Finding, kept: float) -> Finding:
    """Return a finding with the gain of the code on a machine without other processes.

    They kept all of the code from a core alike, as far as is known. The headline says so.
    """
    low, gain, high = (
        round(value * (1 - kept)) for value in (finding.low_ns, finding.gain_ns, finding.high_ns)
    )
    return replace(finding, gain_ns=gain, gain_low_ns=low, gain_high_ns=high)


def counts_in_job(finding: Finding) -> bool:
    """Return whether a finding on a process counts in its job.

    A process that idles without an op, line or function may have nothing to do, such as a worker
    of a pool at the end.
    """
    has_place = (finding.op_id, finding.stack_id, finding.at) != (MISSING, MISSING, None)
    return finding.kind != "idle" or has_place


def is_much_of(finding: Finding, wall_ns: int) -> bool:
    """Return whether a gain is worth a look: much of a short process can be little of a job."""
    return not 0 < finding.gain_ns < MIN_GAIN_SHARE * wall_ns


def order_of(finding: Finding, wall_ns: int) -> tuple[int, int]:
    """Return a key that sorts findings of several processes: causes first, by descending gain."""
    return _level(finding, wall_ns), -finding.gain_ns


def without_references(index: ProfileIndex) -> list[Finding]:
    """Return the findings on a process in the order of `findings`, which do not refer to others."""
    return index.cached(_of_one)


def _level(finding: Finding, wall_ns: int) -> int:
    """Return 0 for a cause, 1 for a place that is hot, 2 for imports, which are mostly needed."""
    if finding.kind == "import":
        return 0 if finding.gain_ns >= _ONLY_IMPORTS * wall_ns else 2
    return int(finding.kind in _HOT_PLACES)


def _within(finding: Finding, wall_ns: int) -> Finding:
    """Bound a gain by the wall time: work of several threads or streams can sum up to more."""
    if finding.high_ns <= wall_ns:
        return finding
    return replace(finding, gain_ns=min(finding.gain_ns, wall_ns), gain_high_ns=wall_ns)


def findings_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.insights`."""
    found = findings(index, limit=None)
    op_ids = np.array([finding.op_id for finding in found], np.int64)
    cell, line = places_of(index, found)
    return ResultTable(
        {
            "rank": np.arange(1, len(found) + 1),
            "kind": categorical([finding.kind for finding in found]),
            "text": objects(finding.text for finding in found),
            "remedy": objects(finding.remedies for finding in found),
            "gain_ns": _times(finding.gain_ns for finding in found),
            "gain_low_ns": _times(finding.low_ns for finding in found),
            "gain_high_ns": _times(finding.high_ns for finding in found),
            "op_id": optional(op_ids),
            "cell": cell,
            "line": optional(line),
            "start_ns": _times(finding.start_ns for finding in found),
            "end_ns": _times(finding.end_ns for finding in found),
        }
    )


def places_of(index: ProfileIndex, found: Sequence[Finding]) -> tuple[CategoryColumn, IntArray]:
    """Return cell or file, and line, of each finding; `MISSING` for a finding without one."""
    op = index.tree.rows(np.array([finding.op_id for finding in found], np.int64))
    stack = np.array([finding.stack_id for finding in found], np.int64)
    cell, line = lines_at(index, stack, op)
    at = [row for row, finding in enumerate(found) if finding.at]
    if at:
        places = [finding.at for finding in found if finding.at]
        cell = cell.replaced(np.array(at), CategoryColumn.of([file for file, _ in places]))
        line = line.copy()
        line[at] = [number for _, number in places]
    return cell, line


def _times(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int64)


def evidence_frame(index: ProfileIndex, insight: Mapping[str, Any] | int) -> pd.DataFrame:
    """Return the rows behind a finding; see `Profile.evidence`."""
    from epprof_nb.analysis.findings.evidence_frame import EvidenceFrame

    profile, finding = index.profile, _find(index, insight)
    table, rows = profile.tables[finding.table], finding.evidence_rows(profile)
    frame = table.take(rows).to_frame()
    if table.schema.index is None:
        import pandas as pd

        frame.index = pd.Index(rows)
    return EvidenceFrame(frame)


def evidence_name(rank: int) -> str:
    """Return the name of the table in SQL with the rows behind a finding.

    Examples
    --------
    >>> evidence_name(1)
    'evidence_1'
    """
    return f"evidence_{rank}"


def _find(index: ProfileIndex, insight: Mapping[str, Any] | int) -> Finding:
    found = findings(index, limit=None)
    text = None
    if isinstance(insight, int | np.integer) and not isinstance(insight, bool):
        rank = int(insight)
    else:
        try:
            rank, text = int(insight["rank"]), str(insight["text"])  # type: ignore[index]
        except (TypeError, KeyError, ValueError, IndexError):
            raise TypeError(
                "evidence expects a row of prof.insights(), such as prof.insights().iloc[0], or "
                f"its rank, not {type(insight).__name__}."
            ) from None
    has = "no finding" if not found else f"findings 1 to {len(found)}"
    is_known = 1 <= rank <= len(found)
    if text is None and not is_known:
        raise ValueError(
            f"This profile has {has}, not {rank}: ranks count from 1, as in prof.insights()."
        )
    if not is_known or text not in (None, found[rank - 1].text):
        raise ValueError(
            f"This profile has {has}, and none of them is the given one (rank {rank}): it is "
            "a row of another profile or an older version. Pass a row of prof.insights() of this "
            "profile."
        )
    return found[rank - 1]
