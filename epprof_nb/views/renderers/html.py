"""HTML of a profile: a standalone page, and the output that a notebook keeps.

Notebook front ends differ in what they allow, and the output has to work in each of them:

- A front end that runs HTML as is (JupyterLab, nbviewer, an exported page) runs the viewer in a
  sandboxed iframe, isolated from the notebook and its styles.
- A front end that shows iframes but runs no scripts shows the plain HTML at the start of the
  document in the frame: the headline and the top ops.
- A sanitizer that drops ``iframe``, ``script`` and ``style`` (GitHub, an untrusted notebook) leaves
  the fallback: the headline, the findings, and an image or a table of the tab. A single rule in a
  ``style`` element hides it next to an iframe. If the iframe or the rule is dropped, the fallback
  shows. It is never hidden by an inline style, since sanitizers often keep those.
- In print, the fallback replaces the frame.

The viewer and the payload are embedded compressed, since a notebook has a copy of them per output.
`epprof_nb.views.wire.page_payload` limits its size.
"""

from __future__ import annotations

import functools
import zlib
from html import escape
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from epprof_nb.analysis.breakdowns.registry import breakdown
from epprof_nb.analysis.summary.profile_origin import title_of
from epprof_nb.util.format import duration, percent, plural, shorten
from epprof_nb.util.html import to_base64, with_code
from epprof_nb.util.text_controls import with_visible_controls
from epprof_nb.views.view_model import FINDINGS_LEFT_OUT
from epprof_nb.views.wire.embedded_events import detail_blocks
from epprof_nb.views.wire.page_payload import is_merged, page_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from epprof_nb.views.queries.view_selection import ActiveSelection
    from epprof_nb.views.view_model import ViewModel

Tab = Literal["timeline", "breakdown", "source"]

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_FRAME_HEIGHT = 520
"""Height in pixels until the viewer reports its own."""
_FALLBACK_ROWS = 8
_TAB_ROWS = 20
_TRUST = (
    '<p class="epprof-trust"><em>Trust the notebook for the interactive view: Trust Notebook is in '
    "the File menu of Jupyter Notebook, and in the command palette of JupyterLab "
    "(Ctrl+Shift+C).</em></p>"
)

_PAGE_STYLE = (
    "html,body{margin:0;background:#fff;color:#1b2430}"
    "html[data-theme=dark],html[data-theme=dark] body{background:#14181d;color:#e6eaf0}"
    "@media (prefers-color-scheme:dark){html:not([data-theme]),html:not([data-theme]) body"
    "{background:#14181d;color:#e6eaf0}}"
    "body>h1{position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%)}"
    ".plain{font:13px/1.5 system-ui,sans-serif;padding:12px}"
    ".plain td,.plain th{text-align:right;padding:1px 12px 1px 0;font-weight:normal}"
    ".plain td:first-child,.plain th:first-child{text-align:left}"
)

# In print, a frame is cut off at its height; the image and the table are complete.
_NOTEBOOK_STYLE = (
    "@media not print{iframe.epprof-frame + .epprof-fallback{display:none}}"
    "@media print{iframe.epprof-frame{display:none!important}"
    ".epprof-fallback img,.epprof-fallback table{break-inside:avoid}"
    ".epprof-trust{display:none}"
    ".epprof-fallback img{max-width:100%;height:auto}"
    ".epprof-fallback td,.epprof-fallback th"
    "{text-align:right;white-space:nowrap;padding:1px 12px 1px 0}"
    ".epprof-fallback td:first-child,.epprof-fallback th:first-child"
    "{text-align:left;white-space:normal}}"
)

# Installed once per notebook by the first output. Frames report their height and receive the theme,
# which they cannot read themselves. Without the listener, a frame keeps its initial height and uses
# the system theme.
_LISTENER = """
(() => {
  if (window.epprofFrames) return;
  window.epprofFrames = true;
  const frames = () => document.querySelectorAll("iframe.epprof-frame");
  const theme = () => {
    const light = document.body.dataset.jpThemeLight;
    const vscode = document.body.dataset.vscodeThemeKind;
    if (light) return light === "false" ? "dark" : "light";
    if (vscode) return /dark|high-contrast$/.test(vscode) ? "dark" : "light";
    return null;
  };
  const sendTheme = (frame) => frame.contentWindow?.postMessage({ epprofTheme: theme() }, "*");
  addEventListener("message", (event) => {
    const height = event.data && event.data.epprofHeight;
    if (typeof height !== "number") return;
    for (const frame of frames()) {
      if (frame.contentWindow !== event.source) continue;
      frame.style.height = Math.min(Math.max(height, 80), 1200) + "px";
      sendTheme(frame);
    }
  });
  new MutationObserver(() => frames().forEach(sendTheme)).observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"],
  });
})();
"""


@functools.cache
def static_file(name: str) -> str:
    """Read a built file of the frontend."""
    return files("epprof_nb.views").joinpath("static", name).read_text("utf-8")


@functools.cache
def _packed(program: str) -> str:
    """Return the styles of the viewer and a program, compressed, as base64 text."""
    text = "\0".join((static_file("viewer.css"), static_file(program)))
    return to_base64(zlib.compress(text.encode(), 9))


def program_html(program: str, payload: bytes) -> str:
    """Return elements that start a built program, which finds its compressed payload in the page.

    Parameters
    ----------
    program
        Name of a file in ``static``.
    payload
        The payload, compressed.
    """
    return (
        f'<script type="text/plain" id="epprof-payload">{to_base64(payload)}</script>'
        f'<script type="text/plain" id="epprof-viewer">{_packed(program)}</script>'
        f"<script>{static_file('loader.js')}</script>\n"
    )


def _top_ops_table(view_model: ViewModel) -> str:
    """Return the ops with the most device time as a table without styles or scripts.

    Without device work, the table has the operators of nodes, or framework ops.
    """
    if view_model.colours_operators:
        titles = (view_model.operators.label, "host time", "share", "count")
        top = view_model.top_operators(len(view_model.operators.names))
        all_ns = max(sum(host_ns for _, host_ns, _ in top), 1)
        top = top[:_FALLBACK_ROWS]
    else:
        titles = ("launched by", "device time", "share", "count")
        top = view_model.top_ops(_FALLBACK_ROWS)
        all_ns = max(int(view_model.by_op["self_device_ns"].sum()), 1)
    rows = "".join(
        f"<tr><td>{escape(shorten(name, 80))}</td><td>{escape(duration(total_ns))}</td>"
        f"<td>{escape(percent(total_ns / all_ns))}</td><td>{count:,}</td></tr>"
        for name, total_ns, count in top
    )
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""


def _plain_html(view_model: ViewModel) -> str:
    """Return the headline, repeats, findings and top ops as HTML without styles or scripts."""
    return f"{_facts(view_model)}{_top_ops_table(view_model)}"


def _facts(view_model: ViewModel) -> str:
    """Return the headline, repeats, and findings with what to do, as HTML without styles."""
    sentences = "".join(
        f"<p>{with_code(f'{finding.text} {finding.advice}'.rstrip())}</p>"
        for finding in view_model.findings
    )
    if not view_model.with_findings:
        sentences = f"<p>{with_code(FINDINGS_LEFT_OUT)}</p>"
    line = escape(view_model.headline.line).replace("   ", "\N{EM SPACE}")
    memory = "".join(f"<p>{with_code(text.strip())}</p>" for text in view_model.headline.memory)
    return f"<p><strong>{line}</strong></p>{memory}{_repeats(view_model)}{sentences}"


def _tab_html(view_model: ViewModel, png: bytes, tab: str) -> str:
    """Return what a tab shows as HTML without styles or scripts: a picture, or a table."""
    if tab == "timeline":
        return (
            f'<img alt="{escape(_alt_text(view_model))}" width="900" '
            f'src="data:image/png;base64,{to_base64(png)}">{_top_ops_table(view_model)}'
        )
    by = tab.partition(":")[2] or "line"
    table = view_model.index.cached(breakdown, _TABLE_OF_TREE.get(by, by))
    names = [name for name in _NAME_COLUMNS if name in table][:1]
    columns = [*names, *(name for name in _PLAIN_COLUMNS if name in table and name not in names)]
    head = "".join(
        f'<th scope="col">{_PLAIN_COLUMNS.get(name, ("name",))[0]}</th>' for name in columns
    )
    shown = table.take(slice(0, _TAB_ROWS))
    cells = zip(
        *(map(_PLAIN_COLUMNS.get(n, ("", _text))[1], shown.values(n)) for n in columns), strict=True
    )
    rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in cells)
    if not rows:
        return ""
    left = len(table) - len(shown)
    more = f"<p>({plural(left, 'more row')})</p>" if left else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _text(value: object) -> str:
    return "" if value is None else shorten(str(value), 80)


def _time(value: int | None) -> str:
    return "" if value is None else duration(value)


def _share(value: float | None) -> str:
    return "" if value is None else percent(value)


_NAME_COLUMNS = ("short_name", "source", "stream", "type", "name", "function", "op_type")
"""Columns of breakdowns that name a row; plain HTML has the first one."""
_PLAIN_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "op_type": ("type", _text),
    "cell": ("cell", _text),
    "line": ("line", _text),
    "device_ns": ("device time", _time),
    "share": ("share", _share),
    "host_ns": ("host time", _time),
    "count": ("count", _text),
    "calls": ("calls", _text),
}
"""Further columns in plain HTML: their titles, and texts of their values."""
_TABLE_OF_TREE = {
    "tree": "op",
    "module_tree": "module",
    "stack_tree": "line",
    "full_stack_tree": "line",
}
"""Breakdowns that are shown in place of trees, which plain HTML cannot fold."""


def _repeats(view_model: ViewModel) -> str:
    """Return the statistics of the repeats with a strip chart of block characters."""
    repeats = view_model.headline.repeats
    return "" if repeats is None else f"<p>{escape(repeats.line)}</p>"


def _alt_text(view_model: ViewModel) -> str:
    """Return the alternative text of the image."""
    lines = [view_model.headline.line.replace("   ", ", "), *(f.text for f in view_model.findings)]
    return " ".join(line if line.endswith(".") else f"{line}." for line in lines)


def page_html(
    view_model: ViewModel, selection: ActiveSelection | None = None, *, tab: str = "timeline"
) -> str:
    """Return an HTML document that works without a kernel and may not use the network.

    Parameters
    ----------
    view_model
        The profile.
    selection
        Initial selection.
    tab
        Tab to open, see `epprof_nb.views.view.View.tab_to_open`.
    """
    return "".join(_page_parts(view_model, page_payload(view_model, selection), tab=tab))


class Around(NamedTuple):
    """The title of a page, HTML above its viewer with a heading, and the viewer's group.

    Views of a group zoom and move together; see ``frontend/src/app/linked_views.ts``.
    """

    title: str
    above: str
    group: str


def _around(view_model: ViewModel) -> Around:
    title = title_of(view_model.profile)
    return Around(title, f"<h1>{escape(title)}</h1>", "")


def write_page(view_model: ViewModel, file: IO[bytes], around: Around | None = None) -> None:
    """Write an HTML document as from `page_html`, but with every event.

    The viewer starts before the events are read, and inflates only the blocks in view.
    """
    with_detail = is_merged(view_model)
    payload = page_payload(view_model, with_detail=with_detail)
    blocks = detail_blocks(view_model) if with_detail else ()
    for part in _page_parts(view_model, payload, blocks=blocks, around=around):
        file.write(part.encode(errors="replace"))  # names may have lone surrogates


def _page_parts(
    view_model: ViewModel,
    payload: bytes,
    *,
    tab: str = "timeline",
    blocks: Iterable[tuple[str, bytes]] = (),
    around: Around | None = None,
) -> Iterator[str]:
    around = around or _around(view_model)
    title, above, group = around
    title, above = map(with_visible_controls, (title, above))
    link = f' data-link="{escape(group)}"' if group else ""
    yield (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{_PAGE_STYLE}</style></head>"
        f"<body>{above}"
        f'<main id="epprof" data-tab="{escape(tab)}"{link}>'
        f'<div class="plain">{with_visible_controls(_plain_html(view_model))}</div></main>'
        f"{program_html('viewer.js', payload)}"
    )
    for name, data in blocks:
        yield f'<script type="text/plain" id="epprof-{name}">{to_base64(data)}</script>\n'
    yield "</body></html>\n"


def notebook_html(
    view_model: ViewModel,
    png: bytes,
    selection: ActiveSelection | None = None,
    *,
    tab: str = "timeline",
    mount_id: str | None = None,
) -> str:
    """Return the HTML that a notebook keeps; the module docstring describes its fallbacks.

    Parameters
    ----------
    view_model
        The profile.
    png
        Image of the timeline for front ends without iframes; empty for other tabs.
    selection
        Initial selection.
    tab
        Tab to open, see `epprof_nb.views.view.View.tab_to_open`.
    mount_id
        Id of the place of the output, which a live widget takes while it is open.
    """
    document = page_html(view_model, selection, tab=tab)
    fallback = f"{_facts(view_model)}{_tab_html(view_model, png, tab)}{_TRUST}"
    return framed(document, fallback, title="Profile", height=_FRAME_HEIGHT, mount_id=mount_id)


def framed(
    document: str, fallback: str, *, title: str, height: int, mount_id: str | None = None
) -> str:
    """Return HTML that shows a document in a frame, or the fallback where frames are dropped.

    Parameters
    ----------
    document, fallback
        HTML of the document and of its replacement.
    title
        Name of the frame.
    height
        Height of the frame in pixels, until the document reports its own.
    mount_id
        See `notebook_html`.
    """
    mount = f' data-epprof-mount="{escape(mount_id)}"' if mount_id else ""
    return (
        f"<style>{_NOTEBOOK_STYLE}</style>"
        f'<div class="epprof-output"{mount}>'
        f'<iframe class="epprof-frame" sandbox="allow-scripts" allowfullscreen '
        f'title="{escape(title)}" loading="lazy" width="100%" height="{height}" '
        'style="border:0;width:100%;display:block" '
        f'srcdoc="{escape(document)}"></iframe>'
        f'<div class="epprof-fallback">{with_visible_controls(fallback)}</div></div>'
        f"<script>{_LISTENER}</script>"
    )
