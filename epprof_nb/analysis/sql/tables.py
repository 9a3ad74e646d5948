"""Tables and views that SQL queries of a profile see."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.base.missing_records import unrecorded
from epprof_nb.analysis.base.op_totals import outermost_of_name
from epprof_nb.analysis.utilisation.sampled_host import host_sample_table
from epprof_nb.data.arrow import names_to_arrow, to_arrow

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

_EVIDENCE = re.compile(r"\bevidence_(\d{1,9})\b", re.IGNORECASE)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_NESTED = re.compile(r"\bnested_ops\b", re.IGNORECASE)
_SAMPLES = re.compile(r"\bhost_samples\b", re.IGNORECASE)
_INSIGHTS = re.compile(r"\binsights\b", re.IGNORECASE)

VIEWS = {
    "device_work": """
        select * replace (greatest(end_ns - start_ns, 0) as duration_ns) from activities
        where kind in ('kernel', 'memcpy', 'memset') or kind = 'graph_launch' and not exists (
            from activities as node where node.kind in ('kernel', 'memcpy', 'memset')
            and node.correlation_id = activities.correlation_id)""",
    "busy": """
        select device_id, min(start_ns) as start_ns, max(end_ns) as end_ns from (
            select *, sum(opens) over (partition by device_id order by start_ns, end_ns
                rows unbounded preceding) as interval from (
                select device_id, start_ns, end_ns, coalesce(start_ns > max(end_ns) over (
                        partition by device_id order by start_ns, end_ns
                        rows between unbounded preceding and 1 preceding), true)::int as opens
                from device_work where end_ns > start_ns))
        group by device_id, interval""",
    "idle": """
        select * from (select device_id, end_ns as start_ns,
            lead(start_ns) over (partition by device_id order by start_ns) as end_ns from busy
        ) as gap
        where end_ns is not null and not exists (from unrecorded
            where unrecorded.start_ns < gap.end_ns and unrecorded.end_ns > gap.start_ns)""",
}
"""Views of a connection besides the tables of a profile, in the order of their creation.

``device_work`` has the kernels, copies and memsets, and graph launches whose nodes were not
recorded; ``busy`` the disjoint intervals in which a device was busy; ``idle`` the intervals between
them in which nothing can have run; ``unrecorded`` has the times with missing records.
"""


def tables_of(profile: ProfileData, query: str) -> dict[str, pa.Table]:
    """Return the tables for a query.

    Parameters
    ----------
    profile
        The profile.
    query
        The query. ``nested_ops``, ``insights`` and ``evidence_<rank>`` take long to compute and are
        included only if it names them.

    Returns
    -------
    tables
        Name to table. The strings are copied, all else is shared with the profile.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> tables_of(profile, "from evidence_1")["evidence_1"]["line"].to_pylist()
    [1]
    """
    tables = {name: _to_table(table) for name, table in profile.tables.items()}
    tables["info"] = _info_table(profile)
    unknown = index_of(profile).cached(unrecorded)
    tables["unrecorded"] = pa.table(dict(zip(("start_ns", "end_ns"), unknown, strict=True)))
    if _NESTED.search(query):
        outermost = pa.array(index_of(profile).cached(outermost_of_name))
        tables["nested_ops"] = tables["ops"].append_column("is_outermost", outermost)
    if _SAMPLES.search(query):
        frame = host_sample_table(index_of(profile)).to_frame()
        tables["host_samples"] = pa.Table.from_pandas(frame, preserve_index=False)
    ranks = {int(rank) for rank in _EVIDENCE.findall(query)}
    with_insights = _INSIGHTS.search(query)
    if not ranks and not with_insights:
        return tables
    # The rules of all findings, which the process of a query does not need.
    from epprof_nb.analysis.findings.ranking import evidence_name, findings, findings_table

    if with_insights:
        frame = findings_table(index_of(profile)).to_frame()
        tables["insights"] = pa.Table.from_pandas(frame, preserve_index=False)
    found = findings(index_of(profile), limit=None) if ranks else []
    for rank, finding in enumerate(found, 1):
        if rank in ranks:
            rows = finding.evidence_rows(profile)
            tables[evidence_name(rank)] = _to_table(profile.tables[finding.table].take(rows))
    return tables


def _to_table(table: Table) -> pa.Table:
    columns = {}
    for column in table.schema.columns:
        columns[column.name] = to_arrow(table, column)
        if column.kind == "args":
            columns[column.name] = _without_surrogates(columns[column.name])
        for derived in table.schema.derived:
            if derived.source == column.name:
                columns[derived.name] = names_to_arrow(table.names(derived.name))
    return pa.table(columns)


def _without_surrogates(args: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace lone surrogates in JSON, which DuckDB rejects as malformed."""
    texts = args.dictionary.to_pylist()
    if not any(map(_SURROGATE_ESCAPE.search, texts)):
        return args
    valid = [_valid(text) if _SURROGATE_ESCAPE.search(text) else text for text in texts]
    return pa.DictionaryArray.from_arrays(args.indices, pa.array(valid, pa.string()))


def _valid(text: str) -> str:
    """Return JSON with U+FFFD for lone surrogates."""
    plain = json.dumps(json.loads(text), ensure_ascii=False)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _info_table(profile: ProfileData) -> pa.Table:
    """Return `info` as a table of keys and JSON values."""
    values = [_valid(json.dumps(value, default=str)) for value in profile.info.values()]
    keys = [str(key).encode("utf-8", "backslashreplace").decode() for key in profile.info]
    return pa.table({
        "key": pa.array(keys, pa.string()),
        "value": pa.array(values, pa.string()),
    })  # fmt: skip
