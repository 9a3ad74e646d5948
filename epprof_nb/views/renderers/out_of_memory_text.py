"""Text and HTML of an explanation of an out-of-memory error, with the same words and numbers."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.util.format import in_backticks, percent, plural, printable, size
from epprof_nb.util.html import with_code

if TYPE_CHECKING:
    from epprof_nb.data.out_of_memory_explanation import Explanation, Holder, Place

MOST_HOLDERS = 10
_NAME_WIDTH = 60
_CODE_WIDTH = 100

_DARK = (
    "{page} .epprof-oom .epprof-bar span{{background:#56b4e9}}"
    "{page} .epprof-oom .epprof-only span{{background:#ff9d5c}}"
)
# Text has the colour of the page, which may be light or dark. The class stands twice, so that these
# rules precede the notebook's rules for tables.
_STYLE = (
    ".epprof-oom{font:13px/1.5 system-ui,sans-serif;border-left:3px solid #d55e00;"
    "padding:2px 0 2px 12px;margin:4px 0}"
    ".epprof-oom h4{font:inherit;font-size:14px;font-weight:600;margin:0 0 .3em;color:inherit}"
    ".epprof-oom p{margin:.3em 0;max-width:60em}"
    ".epprof-oom.epprof-oom pre{margin:.3em 0;padding:4px 8px;color:inherit;overflow-x:auto;"
    "background:rgba(139,149,163,.15);font-size:12px}"
    ".epprof-oom table{border-collapse:collapse;margin:.5em 0;font:inherit;"
    "font-variant-numeric:tabular-nums;color:inherit}"
    ".epprof-oom.epprof-oom tbody tr{background:none}"
    ".epprof-oom.epprof-oom td,.epprof-oom.epprof-oom th{padding:2px 14px 2px 0;"
    "font-weight:normal;text-align:left;vertical-align:top;background:none;white-space:normal;"
    "max-width:none}"
    ".epprof-oom thead th{opacity:.75;border-bottom:1px solid #8b95a3}"
    ".epprof-oom.epprof-oom .epprof-number{text-align:right;white-space:nowrap}"
    ".epprof-oom.epprof-oom .epprof-bar{width:120px;padding-top:7px}"
    ".epprof-oom .epprof-bar span{display:block;height:9px;min-width:1px;background:#0072b2}"
    ".epprof-oom .epprof-only span{background:#d55e00}"
) + "".join(_DARK.format(page=page) for page in ('[data-jp-theme-light="false"]', ".vscode-dark"))


_EXPANDABLE = 'import os; os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"'
_CLEAR = "import sys, traceback; traceback.clear_frames(sys.last_traceback)"
_CLEAR_CHAIN = """import sys, traceback; errors = [sys.last_value]
for error in filter(None, errors):
    traceback.clear_frames(error.__traceback__)
    errors += [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]"""
# IPython's own command keeps the last three outputs.
_RESET = """%reset -f out
get_ipython().user_ns_hidden.update(dict.fromkeys(("_", "__", "___"), ""))"""


class _Row(NamedTuple):
    name: str
    what: str
    nbytes: int
    only_traceback: bool


class _Advice(NamedTuple):
    sentence: str
    code: str


class _Parts(NamedTuple):
    """The parts of an explanation, in order; backticks enclose code."""

    headline: str
    code: str
    sentences: list[str]
    rows: list[_Row]
    more: str
    advice: list[_Advice]
    notes: list[str]


def as_text(explanation: Explanation, *, in_notebook: bool) -> str:
    """Return the explanation as plain text.

    `in_notebook` is whether the process continues after the error, so that it can release memory.
    """
    parts = _parts(explanation, in_notebook=in_notebook)
    lines = [parts.headline]
    if parts.code:
        lines.append(f"    {parts.code}")
    lines += [f"  {sentence}" for sentence in parts.sentences]
    if parts.rows:
        lines += ["", f"  {'Holds the memory':<{_NAME_WIDTH}} {'size':>9} {'share':>7}"]
        for row in parts.rows:
            share = percent(row.nbytes / explanation.in_use)
            lines.append(f"  {row.name:<{_NAME_WIDTH}} {size(row.nbytes):>9} {share:>7}")
            if row.what:
                lines.append(f"      {row.what}")
    if parts.more:
        lines.append(f"  {parts.more}")
    if parts.advice:
        lines.append("")
    for sentence, code in parts.advice:
        lines.append(f"  {sentence}")
        lines += [f"      {line}" for line in code.split("\n")]
    lines += [f"  {note}" for note in parts.notes]
    return "\n".join(lines)


def as_html(explanation: Explanation, *, in_notebook: bool) -> str:
    """Return the explanation as HTML for a notebook, in the page's light or dark colours."""
    parts = _parts(explanation, in_notebook=in_notebook)
    made = [f"<style>{_STYLE}</style><div class='epprof-oom'><h4>{with_code(parts.headline)}</h4>"]
    if parts.code:
        made.append(f"<pre>{escape(parts.code)}</pre>")
    made += [f"<p>{with_code(sentence)}</p>" for sentence in parts.sentences]
    if parts.rows:
        most = max(row.nbytes for row in parts.rows)
        made.append(
            "<table><thead><tr><th>Holds the memory</th><th class='epprof-number'>size</th>"
            "<th class='epprof-number'>share</th><th></th></tr></thead><tbody>"
        )
        for row in parts.rows:
            what = f"<br><small>{with_code(row.what)}</small>" if row.what else ""
            kind = "epprof-bar epprof-only" if row.only_traceback else "epprof-bar"
            made.append(
                f"<tr><td>{with_code(row.name)}{what}</td>"
                f"<td class='epprof-number'>{size(row.nbytes)}</td>"
                f"<td class='epprof-number'>{percent(row.nbytes / explanation.in_use)}</td>"
                f"<td class='{kind}'><span style='width:{row.nbytes / most:.1%}'></span></td></tr>"
            )
        made.append("</tbody></table>")
    if parts.more:
        made.append(f"<p>{with_code(parts.more)}</p>")
    for sentence, code in parts.advice:
        made.append(f"<p>{with_code(sentence)}</p><pre>{escape(code)}</pre>")
    made += [f"<p><small>{with_code(note)}</small></p>" for note in parts.notes]
    made.append("</div>")
    return "".join(made)


def _parts(made: Explanation, *, in_notebook: bool) -> _Parts:
    shown, more = made.holders[:MOST_HOLDERS], made.holders[MOST_HOLDERS:]
    # Without a notebook, the process ends and releases what the traceback holds.
    only = [in_notebook and holder.scope == "traceback" for holder in shown]
    rows = [_Row(_name(h), _what(h, o), h.nbytes, o) for h, o in zip(shown, only, strict=True)]
    if made.unheld:
        what = "no object of Python has it: work space of libraries, memory of C++ code"
        rows.append(_Row("torch, without an array", what, made.unheld, only_traceback=False))
        rows.sort(key=lambda row: -row.nbytes)
    text = ""
    if more:
        text = f"{plural(len(more), 'more holder')} with {size(sum(h.nbytes for h in more))}"
    return _Parts(
        _headline(made),
        printable(made.requested_at.text)[:_CODE_WIDTH] if made.requested_at else "",
        [*_why(made), *_memory(made)],
        rows,
        text,
        _advice(made, in_notebook=in_notebook),
        _notes(made),
    )


def _headline(made: Explanation) -> str:
    amount = "a size that the error does not report"
    if made.requested is not None:
        amount = size(made.requested)
        if made.requested >= 2**20 and made.device.startswith("cuda"):
            amount += f" ({_binary(made.requested)})"
    if made.requested_at is None:
        return f"Out of memory on {made.device}: {amount} was requested."
    place = made.requested_at
    who = f"{_place(place)} requested {amount}"
    if made.called_at:
        who += f", called from {', from '.join(map(_place, made.called_at))}"
    return f"Out of memory on {made.device}: {who}."


def _place(place: Place) -> str:
    inside = f" in {in_backticks(place.function, 40)}" if place.function else ""
    return f"line {place.line} of {printable(place.file)}{inside}"


def _binary(nbytes: int) -> str:
    """Write a size as torch does, so that readers find it in its message."""
    unit, scale = ("GiB", 2**30) if nbytes >= 2**30 else ("MiB", 2**20)
    return f"{nbytes / scale:.2f} {unit}"


def _why(made: Explanation) -> list[str]:
    free, found = made.free, []
    if made.raised_as:
        found.append(f"The cell ended in {made.raised_as}, which was raised from that error.")
    if made.exceeds_limit:
        return [*found, _too_large(made)]
    if free is None:
        return found
    total = size(free.total)
    if made.requested is None:
        found.append(f"{total} were free.")
    elif free.largest is None:
        found.append(f"{total} were free, in pieces whose sizes are not known.")
    elif made.is_fragmented:
        found.append(
            f"Fragmentation: {total} were free, which is enough, but in "
            f"{plural(free.pieces or 0, 'piece')}, of which the largest has {size(free.largest)}."
        )
    elif free.largest >= made.requested:
        found.append(
            f"A piece of {size(free.largest)} was free, but for another stream, a CUDA graph or "
            "another kind of allocation."
        )
    elif (free.pieces or 1) > 1:
        found.append(f"Too little was free: {total}, the largest piece {size(free.largest)}.")
    else:
        found.append(f"Too little was free: {total}.")
    return found


def _too_large(made: Explanation) -> str:
    """Return the remedy for a request that cannot succeed, however much memory is released."""
    what, smaller = "this device has", "Use a smaller batch, smaller arrays or smaller parts"
    remedy = "use a device with more memory"
    if made.library == "host":
        what, smaller = "the host device may use", "Request less"
        remedy = "raise the limit with `epprof_nb.host.set_memory_limit`"
    elif made.limit != made.total:
        what = "torch may use of this device"
        remedy = "raise the limit with `torch.cuda.set_per_process_memory_fraction`"
    return (
        f"This is more than all that {what}, {size(made.limit or 0)}: to release memory is not "
        f"enough. {smaller}, or {remedy}."
    )


def _memory(made: Explanation) -> list[str]:
    """Return the sum of the memory in use, and its parts."""
    used = sum(pool.held for pool in made.pools) + (made.rest or 0)
    parts = []
    for pool in made.pools:
        parts.append(f"{pool.library} {size(pool.in_use)}")
        if pool.held > pool.in_use:
            parts[-1] += f" and {size(pool.held - pool.in_use)} cached"
    if made.rest:
        parts.append(f"context, other libraries and processes {size(made.rest)}")
    text = f"{size(used)}{'' if made.total is None else f' of {size(made.total)}'} were taken"
    if made.library == "host" and used > (made.limit or 0):
        text = f"{size(used)} were taken before the limit was lowered to {size(made.limit or 0)}"
    if made.library != "host":
        text += f": {' · '.join(parts)}"
    text += "."
    if made.limit is not None and made.total is not None and made.limit < made.total:
        text += f" torch may have {size(made.limit)} (set_per_process_memory_fraction)."
    if made.released:
        text += (
            f" {size(made.released)} of it were released when the error left the code: temporary "
            "arrays, or what an earlier error had kept."
        )
    return [text] if used else []


def _name(holder: Holder) -> str:
    if not holder.name:
        name = "objects that no variable leads to"
    else:
        name = in_backticks(printable(holder.name), 40)
    if holder.where:
        name += f" {printable(holder.where)}"
    return f"{name}, {holder.kind}" if holder.kind else name


def _what(holder: Holder, only_traceback: bool) -> str:  # noqa: FBT001
    largest = printable(holder.largest)
    several = f"{plural(holder.buffers, 'array')}, the largest {largest}"
    arrays = largest if holder.buffers == 1 else several
    if holder.also:
        arrays += f"; also {in_backticks(printable(holder.also[0]), 40)}"
        if len(holder.also) > 1:
            arrays += f" and {plural(len(holder.also) - 1, 'other name')}"
    return f"{arrays}; only the traceback holds it" if only_traceback else arrays


def _advice(made: Explanation, *, in_notebook: bool) -> list[_Advice]:
    found = []
    if made.is_fragmented and made.library == "torch":
        text = "Less fragmentation: restart the kernel and set this before torch starts CUDA."
        found.append(_Advice(text, _EXPANDABLE))
    if not in_notebook:
        return found
    by_traceback, by_outputs = made.held_by("traceback"), made.held_by("output")
    if by_traceback:
        text = f"The traceback of this error keeps {size(by_traceback)} alive. This releases it:"
        found.append(_Advice(text, _CLEAR if made.chained == 1 else _CLEAR_CHAIN))
    unknown = made.held_by("earlier") + made.held_by("object")
    if unknown:
        text = (
            f"Only {_holding(made)} {size(unknown)} of this. What is garbage in reference cycles "
            "is released by:"
        )
        found.append(_Advice(text, "import gc; gc.collect()"))
    if by_outputs:
        text = f"The outputs of cells keep {size(by_outputs)} alive. This releases them:"
        found.append(_Advice(text, _RESET))
    return found


def _holding(made: Explanation) -> str:
    """Return what holds memory that no variable of the notebook leads to."""
    earlier, unknown = "an earlier error keeps", "objects that no variable leads to hold"
    if not made.held_by("object"):
        return earlier
    return unknown if not made.held_by("earlier") else f"an earlier error and {unknown}"


def _notes(made: Explanation) -> list[str]:
    notes = list(made.notes)
    if made.waiting:
        notes.append(
            f"torch cannot use {size(made.waiting)} of its cached memory yet: the program has "
            "released it, but another stream still uses it, as `Tensor.record_stream` told torch, "
            "or a CUDA graph is being captured."
        )
    if not made.is_complete:
        notes.append(
            "The search for holders ended at its time limit; what it did not reach is missing."
        )
    if not made.holders and not made.unheld and not made.exceeds_limit:
        notes.append("No array of Python was found on this device.")
    return notes
