"""A comparison of recordings as text, Markdown and HTML.

If styles, scripts and frames are removed, the HTML keeps its order, its numbers and a picture.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from epprof_nb.analysis.compare.causes_of_changes import OWN, WAITS, cause, rows_of
from epprof_nb.analysis.compare.significance import CHANGED
from epprof_nb.util.format import duration, in_backticks
from epprof_nb.util.html import to_base64, with_code
from epprof_nb.util.printable import printable
from epprof_nb.util.text_controls import with_visible_controls
from epprof_nb.views.renderers.aligned_timelines import draw
from epprof_nb.views.renderers.comparison_rows import shown_tables
from epprof_nb.views.renderers.html import POLICY, framed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.compare.compare_sides import ComparisonResult
    from epprof_nb.views.renderers.comparison_rows import Row, ShownTable
    from epprof_nb.views.renderers.flame_graph import FlameGraph
    from epprof_nb.views.renderers.svg_drawing import Drawing

_NAME_WIDTH = 48
_UNIT = re.compile(r"(?<=\d) (?=%|[mnµ]?s\b)| (?=\N{RIGHTWARDS ARROW})")

# A notebook takes its theme from its page, not from the system: text inherits the page's
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
    # Cells wrap, and names keep a minimum width: a narrow page makes rows higher.
    ".epprof-compare td,.epprof-compare th{padding:2px 12px 2px 0;vertical-align:top;"
    "font-weight:normal;background:none;white-space:normal}"
    ".epprof-compare thead th{opacity:.7;border-bottom:1px solid #8b95a3;vertical-align:bottom}"
    ".epprof-compare td:first-child,.epprof-compare th:first-child{min-width:11em;"
    "overflow-wrap:anywhere}"
    ".epprof-compare td:last-child,.epprof-compare th:last-child{padding-right:0}"
    ".epprof-table{overflow-x:auto}"
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

# The document in the frame: it reports its height and follows the theme, like the viewer.
_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<style>
html,body{{margin:0;overflow:hidden;background:#fff;color:#1b2430}}
html[data-theme=dark],html[data-theme=dark] body{{background:#111;color:#e6eaf0}}
@media (prefers-color-scheme:dark){{
html:not([data-theme]),html:not([data-theme]) body{{background:#111;color:#e6eaf0}}}}
body{{overflow-x:auto}}
svg{{min-width:600px}}
</style></head><body>{svg}<script>
addEventListener("message", (event) => {{
  const theme = event.data && event.data.epprofTheme;
  if (theme) document.documentElement.dataset.theme = theme;
}});
new ResizeObserver(() => {{
  const height = document.body.getBoundingClientRect().height;
  if (height > 0) parent.postMessage({{ epprofHeight: height }}, "*");
}}).observe(document.body);
</script></body></html>
"""


def as_text(comparison: ComparisonResult) -> str:
    """Return the verdict, the reason and the largest changes as plain text."""
    lines = [comparison.verdict, *(f"  {line}" for line in _sentences(comparison))]
    for table in shown_tables(comparison):
        cells = [table.titles, *(row.cells for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        names = [table.title, *(row.short_name(_NAME_WIDTH) for row in table.rows)]
        lines.append("")
        for name, row in zip(names, cells, strict=True):
            line = "  ".join(
                f"{cell:{'<' if i in table.text_columns else '>'}{width}}"
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append(f"{name:<{_NAME_WIDTH}}  {line}".rstrip())
    return printable("\n".join(lines))


def as_markdown(comparison: ComparisonResult) -> str:
    """Return the comparison as Markdown."""
    parts = [f"**{comparison.verdict}**"]
    parts += [_markdown_text(line) for line in _sentences(comparison)]
    for table in shown_tables(comparison):
        rules = ["---" if i in table.text_columns else "---:" for i in range(len(table.titles))]
        lines = [f"| {table.title} | {' | '.join(table.titles)} |", f"|---|{'|'.join(rules)}|"]
        for row in table.rows:
            name = _markdown_code(row.short_name(80)) if row.is_name else row.name
            lines.append(f"| {name} | {' | '.join(row.cells)} |")
        parts.append("\n".join(lines))
    return with_visible_controls("\n\n".join(parts) + "\n")


def as_html(comparison: ComparisonResult, flame_graph: FlameGraph | None = None) -> str:
    """Return the comparison as HTML for a notebook.

    The pictures are in frames, each with an image as its fallback: a sanitizer that drops the
    elements of SVG keeps their texts.
    """
    drawing = _timelines(comparison)
    below = "" if flame_graph is None else flame_graph.framed_html()
    if drawing is None:
        return _html(comparison, "", below)
    total = comparison.total
    alt = f"{drawing.label}. {duration(total.before_ns)} before, {duration(total.after_ns)} after."
    image = (
        f'<img alt="{escape(alt)}" width="{drawing.width}" '
        f'src="data:image/png;base64,{to_base64(drawing.png())}">'
    )
    document = _FRAME.format(svg=drawing.svg())
    picture = framed(document, image, title="Timelines", height=drawing.height)
    return _html(comparison, picture, below)


def _html(comparison: ComparisonResult, picture: str, below: str) -> str:
    verdict = escape(comparison.verdict)
    css = f' class="epprof-{verdict}"' if comparison.verdict in CHANGED else ""
    parts = [f"<p><strong{css}>{verdict}</strong></p>"]
    parts += [f"<p>{with_code(line)}</p>" for line in _sentences(comparison)]
    parts.append(picture)
    parts += [_html_table(table) for table in shown_tables(comparison)]
    parts.append(below)
    return f'<style>{_STYLE}</style><div class="epprof-compare">{"".join(parts)}</div>'


def as_page(comparison: ComparisonResult, flame_graph: FlameGraph | None = None) -> str:
    """Return an HTML document that may not use the network."""
    drawing = _timelines(comparison)
    below = "" if flame_graph is None else flame_graph.html()
    body = _html(comparison, "" if drawing is None else drawing.svg(), below)
    title = f"Comparison: {comparison.verdict}"
    return with_visible_controls(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _timelines(comparison: ComparisonResult) -> Drawing | None:
    paths, anchor = comparison.paths, comparison.timelines.anchor
    ops, kernels = comparison.ops, comparison.kernels
    numbers: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        numbers.setdefault(path, []).append(number)
    verdicts: dict[tuple[int, str | None], str] = {}
    # The rectangles of ops are elapsed times.
    causes = [(row["path"], *cause(row)) for row in rows_of(ops)]
    found = [(path, None, verdict) for path, verdict, source in causes if source in (OWN, WAITS)]
    found += [(row["path"], row["name"], row["verdict"]) for row in rows_of(kernels)]
    for path, name, verdict in found:
        if verdict in CHANGED:
            verdicts |= {(number, name): verdict for number in numbers.get(path, ())}
    return draw(comparison.timelines, verdicts, "" if anchor is None else paths[anchor])


def _html_table(table: ShownTable) -> str:
    titles = (table.title, *table.titles)
    head = "".join(
        f'<th scope="col"{_aligned(i - 1, table.text_columns)}>{escape(text)}</th>'
        for i, text in enumerate(titles)
    )
    body = "".join(_html_row(row, table.text_columns) for row in table.rows)
    return (
        f'<div class="epprof-table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _html_row(row: Row, text_columns: Sequence[int]) -> str:
    cells = []
    for i, cell in enumerate(row.cells):
        is_verdict = i == text_columns[0]
        css = f' class="epprof-{row.colour}"' if row.colour and is_verdict else ""
        # A number stays with its unit; lines break between the two times of a cell.
        text = escape(cell) if is_verdict else _UNIT.sub("\N{NO-BREAK SPACE}", escape(cell))
        cells.append(f"<td{css}{_aligned(i, text_columns)}>{text}</td>")
    start = "<tr>" if row.colour else '<tr class="epprof-same">'
    name = escape(row.name)
    named = escape(row.short_name(80)) if row.is_name else f"<em>{name}</em>"
    aligned = _aligned(-1, text_columns)
    return f'{start}<td title="{name}"{aligned}>{named}</td>{"".join(cells)}</tr>'


def _aligned(cell: int, text_columns: Sequence[int]) -> str:
    """Return attributes of a cell; -1 is the name. Sanitizers keep one of the two."""
    side = "left" if cell < 0 or cell in text_columns else "right"
    return f' align="{side}" style="text-align:{side}"'


def _sentences(comparison: ComparisonResult) -> Iterator[str]:
    yield comparison.reason
    yield from comparison.notes


def _markdown_text(text: str) -> str:
    """Return text in which Markdown and HTML interpret only `backticks`."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\\[\]*_~|#])", r"\\\1", escape(parts[i], quote=False))
    return "`".join(parts)


def _markdown_code(text: str) -> str:
    """Return a name as code in a cell of a table."""
    return in_backticks(text, 80).replace("|", "\\|")
