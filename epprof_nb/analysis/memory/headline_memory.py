"""The lines on memory below the headline: the peak, and the pools then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.base.devices import device_labels, device_word
from epprof_nb.analysis.memory.block_places import block_stacks, code_lines
from epprof_nb.analysis.memory.memory_at import holder_table
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.analysis.memory.memory_pools import pool_table
from epprof_nb.analysis.memory.memory_without_blocks import UNNAMED, process_bytes, without_timeline
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name, percent, shorten, size

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex

_MAX_SOURCE = 60


def memory_lines(index: ProfileIndex) -> tuple[str, ...]:
    """Return the peak with its line, what each pool has then, and the greatest holder.

    Empty without recorded blocks.
    """
    if not len(index.profile.tables["memory_blocks"]):
        return ()
    in_use = index.cached(InUse)
    word = device_word(index.profile.info)
    peak = f"{size(in_use.peak_bytes)} in use at the peak{_place(index)}"
    head = f"{word[0].upper()}{word[1:]} memory  {peak}"
    at_end = int(index.profile.tables["memory_blocks"]["bytes"][without_timeline(index)].sum())
    if at_end:
        head += f", {size(at_end)} of it as at the end, in pools without a timeline"
    whole = process_bytes(index)
    if whole is not None:
        head += f", {size(whole)} held by this process at the end"
    pools = pool_table(index, "peak")
    columns = ("pool", "device_id", "held_bytes", "in_use_bytes", "free_bytes")
    labels = device_labels(index.profile.info, set(pools.values("device_id")) - {None})
    parts = []
    for pool, device, held, used, free in zip(*map(pools.values, columns), strict=True):
        cached = f" ({size(free)} cached and unused)" if free else ""
        shown = held if used is None else used
        if shown == 0 and not free and pool != UNNAMED:
            continue
        if pool == UNNAMED and shown and whole:
            cached = f" ({percent(shown / whole)} of what the process holds)"
        on = f" on {labels[device]}" if len(labels) > 1 and device is not None else ""
        parts.append(f"{pool}{on} {'unknown' if shown is None else size(shown)}{cached}")
    lines = [head, f"  {' · '.join(parts)}"]
    holders = holder_table(index)
    totals: dict[tuple[str, str], int] = {}
    for category, module, nbytes in zip(
        *map(holders.values, ("category", "module", "bytes")), strict=True
    ):
        if category and module:
            key = category, module
            totals[key] = totals.get(key, 0) + nbytes
    if totals:
        category, module = max(totals, key=lambda key: totals[key])
        held = size(totals[category, module])
        lines.append(f"  `{module}` holds the most of a module at the peak: {held} ({category}).")
    return tuple(lines)


def _place(index: ProfileIndex) -> str:
    """Return the line whose allocation reached the peak: others can have allocated most of it."""
    in_use = index.cached(InUse)
    rows = (in_use.begin == in_use.peak_ns).nonzero()[0]
    op = index.tree.rows(index.profile.tables["memory_blocks"]["op_id"][rows])
    lines = code_lines(index, index.cached(block_stacks)[rows], op)
    has_line = (lines.line != MISSING).nonzero()[0]
    if not len(has_line):
        return ""
    shown = lines.take(has_line[:1])
    (file,), (function,) = shown.cell.to_list(), shown.functions(index)
    (text,) = shown.texts(index, op[has_line[:1]])
    where = f"line {shown.line[0]}"
    if function is not None and file != index.profile.info.get("cell"):
        where += f" of `{function}` in {base_name(file or '')}"
    return f" (reached by {where}, `{shorten(text or '', _MAX_SOURCE)}`)"
