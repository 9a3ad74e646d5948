"""A comparison of recordings as text, Markdown and HTML.

The HTML needs no script, and keeps its order and numbers where styles are removed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from epprof_nb.analysis.compare.causes import CHANGED
from epprof_nb.analysis.compare.statistics import is_too_wide
from epprof_nb.util.format import duration, in_backticks, plural, shorten, signed_percent
from epprof_nb.util.html import with_code
from epprof_nb.views.renderers.aligned_timelines import as_svg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.compare.verdict import ComparisonResult

_ROWS = 12
_NAME_WIDTH = 48

# The theme of a notebook is that of its page, not that of the system: text inherits the page's
# colour. The colours that mean slower and faster are legible on white and on black, and brighter
# where JupyterLab, VS Code or a browser says that the page is dark.
_BRIGHT = (
    "{page} .epprof-compare .epprof-slower{{color:#ff9d5c}}"
    "{page} .epprof-compare .epprof-faster{{color:#4fd1a1}}"
)
_STYLE = (
    ".epprof-compare{font:13px/1.5 system-ui,sans-serif}"
    ".epprof-compare p{margin:.3em 0;max-width:60em}"
    ".epprof-compare table{border-collapse:collapse;margin:.5em 0;"
    "font:inherit;font-variant-numeric:tabular-nums;color:inherit}"
    ".epprof-compare tr{background:none}"
    ".epprof-compare td,.epprof-compare th{text-align:right;padding:2px 14px 2px 0;"
    "font-weight:normal;white-space:nowrap;background:none}"
    ".epprof-compare thead th{opacity:.7;border-bottom:1px solid #8b95a3}"
    ".epprof-compare td:first-child,.epprof-compare th:first-child{text-align:left;"
    "white-space:normal;overflow-wrap:anywhere}"
    ".epprof-compare td:last-child,.epprof-compare th:last-child{text-align:left;padding-right:0}"
    ".epprof-compare tr.epprof-same{opacity:.7}"
    ".epprof-compare .epprof-slower{color:#c24e00;font-weight:600}"
    ".epprof-compare .epprof-faster{color:#00855f;font-weight:600}"
) + "".join(_BRIGHT.format(page=page) for page in ('[data-jp-theme-light="false"]', ".vscode-dark"))

_PAGE_STYLE = (
    ":root{color-scheme:light dark}body{margin:16px;background:#fff;color:#1b2430}"
    "@media (prefers-color-scheme:dark){body{background:#14181d;color:#e6eaf0}"
    f"{_BRIGHT.format(page='body')}}}"
    "h1{font:600 16px system-ui,sans-serif}"
)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the shown table, as text."""

    name: str
    cells: tuple[str, ...]
    verdict: str


def as_text(comparison: ComparisonResult) -> str:
    """Return the verdict, the reason and the largest changes as plain text."""
    lines = [comparison.verdict, *(f"  {line}" for line in _sentences(comparison))]
    of_before, of_after, of_change, of_interval, of_verdict = _titles(comparison)
    width = max(8, len(of_change))
    for title, table in _tables(comparison):
        rows, omitted = _rows(table)
        head = f"{title:<{_NAME_WIDTH}} {of_before:>9} {of_after:>9} {of_change:>{width}}"
        lines += ["", f"{head}  {of_interval:>18}  {of_verdict}"]
        for row in rows:
            before, after, change, interval, verdict = row.cells
            lines.append(
                f"{shorten(row.name, _NAME_WIDTH):<{_NAME_WIDTH}} {before:>9} {after:>9} "
                f"{change:>{width}}  {interval:>18}  {verdict}"
            )
        if omitted:
            lines.append(f"({plural(omitted, 'more row')})")
    return "\n".join(lines)


def as_markdown(comparison: ComparisonResult) -> str:
    """Return the same as Markdown."""
    parts = [f"**{comparison.verdict}**"]
    parts += [_markdown_text(line) for line in _sentences(comparison)]
    for title, table in _tables(comparison):
        rows, omitted = _rows(table)
        lines = [
            f"| {title} | {' | '.join(_titles(comparison))} |",
            "|---|---:|---:|---:|---:|---|",
        ]
        lines += [f"| {_markdown_code(row.name)} | {' | '.join(row.cells)} |" for row in rows]
        parts.append("\n".join(lines))
        if omitted:
            parts.append(f"({plural(omitted, 'more row')})")
    return "\n\n".join(parts) + "\n"


def as_html(comparison: ComparisonResult) -> str:
    """Return the same as HTML for a notebook."""
    verdict = escape(comparison.verdict)
    css = f' class="epprof-{verdict}"' if comparison.verdict in CHANGED else ""
    parts = [f"<p><strong{css}>{verdict}</strong></p>"]
    parts += [f"<p>{with_code(line)}</p>" for line in _sentences(comparison)]
    parts.append(_timelines(comparison))
    for title, table in _tables(comparison):
        rows, omitted = _rows(table)
        head = "".join(
            f'<th scope="col">{escape(text)}</th>' for text in (title, *_titles(comparison))
        )
        body = "".join(_html_row(row) for row in rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if omitted:
            parts.append(f"<p>({plural(omitted, 'more row')})</p>")
    return f'<style>{_STYLE}</style><div class="epprof-compare">{"".join(parts)}</div>'


def as_page(comparison: ComparisonResult) -> str:
    """Return an HTML document that may not use the network."""
    title = f"Comparison: {comparison.verdict}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{as_html(comparison)}</body></html>\n"
    )


def _timelines(comparison: ComparisonResult) -> str:
    paths, anchor = comparison.paths, comparison.timelines.anchor
    ops, kernels = comparison.ops, comparison.kernels
    numbers: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        numbers.setdefault(path, []).append(number)
    verdicts: dict[tuple[int, str | None], str] = {}
    for table, names in ((ops, [None] * len(ops)), (kernels, kernels.values("name"))):
        for path, name, verdict in zip(
            table.values("path"), names, table.values("verdict"), strict=True
        ):
            if verdict in CHANGED:
                verdicts |= {(number, name): verdict for number in numbers.get(path, ())}
    return as_svg(comparison.timelines, verdicts, "" if anchor is None else paths[anchor])


def _html_row(row: _Row) -> str:
    *cells, verdict = (escape(cell) for cell in row.cells)
    is_changed = row.verdict in CHANGED
    css = f' class="epprof-{escape(row.verdict)}"' if is_changed else ""
    start = "<tr>" if is_changed else '<tr class="epprof-same">'
    return (
        f"{start}"
        f'<td title="{escape(row.name)}">{escape(shorten(row.name, 80))}</td>'
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}<td{css}>{verdict}</td></tr>"
    )


def _titles(comparison: ComparisonResult) -> tuple[str, ...]:
    """Return the titles of the columns after the name."""
    change = "change of pairs" if comparison.total.is_paired else "change"
    return "before", "after", change, "95 % interval", "verdict"


def _sentences(comparison: ComparisonResult) -> Iterator[str]:
    yield comparison.reason
    yield from comparison.notes


def _tables(comparison: ComparisonResult) -> Iterator[tuple[str, ResultTable]]:
    if len(comparison.ops):
        yield "op", comparison.ops
    if any(verdict in CHANGED for verdict in comparison.kernels.values("verdict")):
        yield "kernel", comparison.kernels


def _rows(table: ResultTable) -> tuple[list[_Row], int]:
    """Return the first rows, those with a difference before others, and how many are left out."""
    verdicts = table.values("verdict")
    order = sorted(range(len(table)), key=lambda row: verdicts[row] not in CHANGED)
    columns = [
        table.values(name)
        for name in (
            "name",
            "before_ns",
            "after_ns",
            "change",
            "change_low",
            "change_high",
            "status",
        )
    ]
    paths = table.values("path")
    rows = []
    for row in order[:_ROWS]:
        name, before, after, change, low, high, status = (column[row] for column in columns)
        verdict = verdicts[row]
        shown = f"{verdict} ({status})" if status == "renamed" else verdict
        cells = (
            "" if before is None else duration(before),
            "" if after is None else duration(after),
            signed_percent(change) if change == change else "",  # noqa: PLR0124
            _interval(low, high),
            shown,
        )
        # Names alone may be ambiguous; the path is long. Kernels have names of their own.
        text = f"{paths[row]} / {name}" if "measure" not in table else paths[row]
        rows.append(_Row(text, cells, verdict))
    return rows, len(order) - len(rows)


def _interval(low: float, high: float) -> str:
    if low != low:  # noqa: PLR0124 - NaN, not tested
        return ""
    if is_too_wide(low, high):
        return "varies too much"
    return f"{signed_percent(low)} to {signed_percent(high)}"


def _markdown_text(text: str) -> str:
    """Return text in which only `backticks` have a meaning in Markdown and HTML."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\\[\]*_~|#])", r"\\\1", escape(parts[i], quote=False))
    return "`".join(parts)


def _markdown_code(text: str) -> str:
    """Return a name as code in a cell of a table."""
    return in_backticks(text, 80).replace("|", "\\|")
