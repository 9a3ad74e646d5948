"""HTML of a profile: a whole page, and the block that a notebook keeps.

The block has to work in three kinds of place, which differ in what they let through:

- A notebook that runs HTML as it is (JupyterLab, nbviewer, an exported page): the viewer runs in
  a sandboxed frame, so that nothing in it can reach the notebook, and its styles stay inside.
- A notebook that shows frames but no scripts: the frame's document starts as plain HTML with the
  summary and the top ops; the viewer would have replaced it.
- A sanitiser that drops ``iframe``, ``script`` and ``style`` (GitHub, an untrusted notebook): what
  is left is the fall-back, an image and a table. It is hidden by one rule, ``iframe + .fallback``,
  in a ``style`` element. A sanitiser that drops the frame, or the rule, or both, leaves no element
  that the rule still hides: the fall-back appears by itself. No inline style is used for it, since
  sanitisers often keep those.
- Paper: the fall-back takes the frame's place.
"""

from __future__ import annotations

import functools
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from epprof_nb.util.format import duration, percent, shorten
from epprof_nb.views.wire.payload import pack, to_base64

if TYPE_CHECKING:
    from epprof_nb.views.view_model import ViewModel

Tab = Literal["timeline", "breakdown", "source"]

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_FRAME_HEIGHT = 520
"""Pixels, until the viewer has told how much it needs."""
_FALLBACK_ROWS = 8

_PAGE_STYLE = (
    "html,body{margin:0;background:#fff;color:#1b2430}"
    "html[data-theme=dark],html[data-theme=dark] body{background:#14181d;color:#e6eaf0}"
    "@media (prefers-color-scheme:dark){html:not([data-theme]),html:not([data-theme]) body"
    "{background:#14181d;color:#e6eaf0}}"
    "h1{position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%)}"
    ".plain{font:13px/1.5 system-ui,sans-serif;padding:12px}"
    ".plain td,.plain th{text-align:right;padding:1px 12px 1px 0;font-weight:normal}"
    ".plain td:first-child,.plain th:first-child{text-align:left}"
)

# On paper a frame is a window cut off where it happens to end: the picture and the table are whole.
_BLOCK_STYLE = (
    "@media not print{iframe.epprof-frame + .epprof-fallback{display:none}}"
    "@media print{iframe.epprof-frame{display:none!important}"
    ".epprof-fallback img,.epprof-fallback table{break-inside:avoid}"
    ".epprof-fallback img{max-width:100%;height:auto}"
    ".epprof-fallback td,.epprof-fallback th"
    "{text-align:right;white-space:nowrap;padding:1px 12px 1px 0}"
    ".epprof-fallback td:first-child,.epprof-fallback th:first-child"
    "{text-align:left;white-space:normal}}"
)

# Installed once a notebook, whichever output comes first: frames tell their height, and are told
# the theme, which a frame of another origin cannot see. Without it a frame keeps its fixed height
# and follows the system's theme.
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
  const tell = (frame) => frame.contentWindow?.postMessage({ epprofTheme: theme() }, "*");
  addEventListener("message", (event) => {
    const height = event.data && event.data.epprofHeight;
    if (typeof height !== "number") return;
    for (const frame of frames()) {
      if (frame.contentWindow !== event.source) continue;
      frame.style.height = Math.min(Math.max(height, 80), 1200) + "px";
      tell(frame);
    }
  });
  new MutationObserver(() => frames().forEach(tell)).observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"],
  });
})();
"""


@functools.cache
def _static(name: str) -> str:
    """Read a built file of the front end."""
    return files("epprof_nb.views").joinpath("static", name).read_text("utf-8")


def _table(prepared: ViewModel) -> str:
    """The ops that launched most, as a table that needs neither styles nor scripts."""
    frame = prepared.by_op
    device_ns = max(int(frame["self_device_ns"].sum()), 1)
    frame = frame[frame["self_device_ns"] > 0].nlargest(_FALLBACK_ROWS, "self_device_ns")
    rows = "".join(
        f"<tr><td>{escape(shorten(str(row['name']), 80))}</td>"
        f"<td>{escape(duration(row['self_device_ns']))}</td>"
        f"<td>{escape(percent(row['self_device_ns'] / device_ns))}</td>"
        f"<td>{row['count']:,}</td></tr>"
        for row in frame.to_dict("records")
    )
    titles = ("launched by", "device time", "share", "count")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""


def _plain(prepared: ViewModel) -> str:
    """Summary, findings and top ops as HTML that needs neither styles nor scripts."""
    sentences = "".join(f"<p>{_with_code(finding.text)}</p>" for finding in prepared.findings)
    line = escape(prepared.summary.line).replace("   ", "\N{EM SPACE}")
    return f"<p><strong>{line}</strong></p>{sentences}{_table(prepared)}"


def _with_code(text: str) -> str:
    """Text in which `backticks` mark code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _told(prepared: ViewModel) -> str:
    """What the picture says, for who cannot see it."""
    lines = [prepared.summary.line.replace("   ", ", "), *(f.text for f in prepared.findings)]
    return " ".join(line if line.endswith(".") else f"{line}." for line in lines)


def page(prepared: ViewModel, *, tab: str = "timeline") -> str:
    """Make a whole HTML document that needs neither kernel nor network, and may use none.

    Parameters
    ----------
    prepared
        The profile.
    tab
        The view it opens on, as `epprof_nb.views.view.View.opens` names it.
    """
    profile = prepared.profile
    cells = ", ".join(profile.sources) or str(profile.info.get("cell") or "")
    title = f"Profile of {cells}" if cells else "Profile"
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(shorten(title, 120))}</title>"
        f"<style>{_PAGE_STYLE}{_static('viewer.css')}</style></head>"
        f'<body><h1>{escape(shorten(title, 120))}</h1><main id="epprof" data-tab="{escape(tab)}">'
        f'<div class="plain">{_plain(prepared)}</div></main>'
        f'<script type="text/plain" id="epprof-payload">{to_base64(pack(prepared))}</script>'
        f"<script>{_static('viewer.js')}</script></body></html>\n"
    )


def block(
    prepared: ViewModel, png: bytes, *, tab: str = "timeline", mark: str | None = None
) -> str:
    """Make the HTML that a notebook keeps; see the module's text for how it falls back.

    Parameters
    ----------
    prepared
        The profile.
    png
        The picture for places that show no frame.
    tab
        The view it opens on, as `epprof_nb.views.view.View.opens` names it.
    mark
        Where given, a live widget of this mark takes the block's place while it lives.
    """
    mount = f' data-epprof-mount="{escape(mark)}"' if mark else ""
    return (
        f"<style>{_BLOCK_STYLE}</style>"
        f'<div class="epprof-output"{mount}>'
        '<iframe class="epprof-frame" sandbox="allow-scripts" title="Profile" loading="lazy" '
        f'width="100%" height="{_FRAME_HEIGHT}" style="border:0;width:100%;display:block" '
        f'srcdoc="{escape(page(prepared, tab=tab))}"></iframe>'
        '<div class="epprof-fallback">'
        f'<img alt="{escape(_told(prepared))}" width="900" '
        f'src="data:image/png;base64,{to_base64(png)}">'
        f"{_table(prepared)}"
        "</div></div>"
        f"<script>{_LISTENER}</script>"
    )
