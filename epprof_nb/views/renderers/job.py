"""HTML and text of a job: a notebook's output, and a page.

The picture is in a frame, as in `comparison_output` beside this file; without frames, scripts and
styles, the same sentences, an image and the table remain. A page also has a timeline of some ranks.
"""

from __future__ import annotations

import json
import zlib
from html import escape
from typing import IO, TYPE_CHECKING

from epprof_nb.util.format import plural
from epprof_nb.util.html import to_base64, with_code
from epprof_nb.views.renderers.html import POLICY, Around, framed, static_file
from epprof_nb.views.renderers.html import write_page as write_viewer_page
from epprof_nb.views.renderers.job_picture import STYLE as PICTURE_STYLE
from epprof_nb.views.renderers.job_picture import draw, strips_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.views.renderers.job_model import Process, ShownJob
    from epprof_nb.views.renderers.svg_drawing import Drawing
    from epprof_nb.views.view_model import ViewModel

_ROWS = 20
_STYLE = (
    ".epprof-job{font:13px/1.5 system-ui,sans-serif}"
    ".epprof-job p{margin:.3em 0;max-width:70em}"
    ".epprof-job table{border-collapse:collapse;margin:.5em 0;font:inherit;"
    "font-variant-numeric:tabular-nums;color:inherit}"
    ".epprof-job.epprof-job tbody tr{background:none}"
    ".epprof-job.epprof-job td,.epprof-job.epprof-job th{padding:2px 14px 2px 0;"
    "font-weight:normal;text-align:left;vertical-align:top;background:none;white-space:normal;"
    "overflow-wrap:break-word;max-width:40em}"
    ".epprof-job .epprof-wide{overflow-x:auto}"
    ".epprof-job thead th{opacity:.75;border-bottom:1px solid #8b95a3}"
    ".epprof-job.epprof-job td:first-child{white-space:nowrap}"
    ".epprof-job .epprof-faint{opacity:.75}"
    ".epprof-page{padding:8px 16px;font:13px/1.5 system-ui,sans-serif}"
    ".epprof-page h1{font:600 16px system-ui,sans-serif;margin:4px 0 8px}"
)
_STYLED = f"<style>{_STYLE}</style>"
_PAGE_STYLE = (
    "html,body{margin:0;background:#fff;color:#1b2430}"
    "html[data-theme=dark],html[data-theme=dark] body{background:#14181d;color:#e6eaf0}"
)
# JupyterLab's dark background: in a notebook, sentences of the same output surround the frame.
_FRAME_STYLE = "<style>html[data-theme=dark],html[data-theme=dark] body{background:#111}</style>"
# Styles of the picture and of the elements that `frontend/src/job/strips.ts` adds.
_STRIPS_STYLE = (
    f"{PICTURE_STYLE}.epprof-wide svg{{min-width:600px}}"
    ".epprof-strips{cursor:crosshair;touch-action:pan-y;user-select:none;outline-offset:2px}"
    ".epprof-cursor{stroke:currentColor;stroke-opacity:.6;pointer-events:none}"
    ".epprof-selection{fill:currentColor;fill-opacity:.12;stroke:currentColor;"
    "stroke-width:1.5;pointer-events:none}"
    ".epprof-selection.epprof-row{fill:none;stroke-width:1;stroke-opacity:.5}"
    ".epprof-about{font:12px/1.6 system-ui,sans-serif;margin:2px 0 0;min-height:20px;"
    "font-variant-numeric:tabular-nums}"
    ".epprof-about button{font:inherit;padding:0 6px;color:inherit;background:none;"
    "border:1px solid #8b95a3;border-radius:3px;cursor:pointer}"
    ".epprof-about button[hidden]{display:none}"
)


def as_text(job: ShownJob) -> str:
    """Return the headline, the sentences and the processes that are missing as plain text."""
    lines = ["   ".join(job.headline), *(f"  {line}" for line in (*job.sentences, *job.notes))]
    lines += [f"  {process.label}: {_why(process)}" for process in job.absent[:_ROWS]]
    if len(job.absent) > _ROWS:
        lines.append(f"  {_more(job)}")
    return "\n".join(lines)


def as_html(job: ShownJob) -> str:
    """Return the HTML that a notebook keeps."""
    if not job.rows:
        return _html(job, "")
    drawing = draw(job)
    image = (
        f'<img alt="{escape(drawing.label)}" width="{drawing.width}" '
        f'src="data:image/png;base64,{to_base64(drawing.png())}">'
    )
    document = _document("Ranks over time", f"{_FRAME_STYLE}<main>{_strips(job, drawing)}</main>")
    return _html(job, framed(document, image, title="Ranks over time", height=drawing.height + 24))


def write_page(job: ShownJob, file: IO[bytes], timeline: ViewModel | None, about: str) -> None:
    """Write an HTML document that may not use the network.

    Parameters
    ----------
    job
        The job.
    file
        File to write to.
    timeline
        Profile of some ranks to show as a timeline below the strips; None for none.
    about
        Sentence above the timeline.
    """
    title = f"Job: {job.headline[0]}"
    strips = _strips(job, draw(job)) if job.rows else ""
    body = f"<h1>{escape(title)}</h1>{_html(job, strips)}"
    if timeline is None:
        page = _document(title, f'<main class="epprof-page">{body}</main>')
        file.write(page.encode(errors="replace"))
        return
    body += f"<p>{with_code(about)}</p>"
    section = f'<section class="epprof-page" aria-label="Job">{body}</section>'
    write_viewer_page(timeline, file, Around(title, section, "job"))


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_PAGE_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _strips(job: ShownJob, drawing: Drawing) -> str:
    """Return the picture, and a program that shows its numbers; the picture needs no scripts."""
    svg = drawing.svg().replace("<svg ", "<svg data-epprof-strips ", 1)
    packed = zlib.compress(json.dumps(strips_data(job), separators=(",", ":")).encode(), 9)
    return (
        f'<style>{_STRIPS_STYLE}</style><div class="epprof-wide">{svg}</div>'
        f'<script type="text/plain" id="epprof-strips">{to_base64(packed)}</script>'
        f"<script>{static_file('job.js')}</script>"
    )


def _html(job: ShownJob, picture: str) -> str:
    return f'{_STYLED}<div class="epprof-job">{_head(job)}{picture}{_below(job)}</div>'


def _head(job: ShownJob) -> str:
    head = escape("   ".join(job.headline)).replace("   ", "\N{EM SPACE}")
    sentences = "".join(f"<p>{with_code(line)}</p>" for line in job.sentences)
    return f"<p><strong>{head}</strong></p>{sentences}"


def _below(job: ShownJob) -> str:
    notes = "".join(f'<p class="epprof-faint">{with_code(line)}</p>' for line in job.notes)
    return notes + "".join(_absent(job))


def _absent(job: ShownJob) -> Iterator[str]:
    """Yield the table of the processes that were not recorded, or not to their end."""
    if not job.absent:
        return
    titles = ("not recorded to the end", "pid", "host", "reason", "command or address")
    head = "".join(f'<th scope="col" align="left">{title}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td align="left">{escape(cell)}</td>' for cell in _cells(process))
        + "</tr>"
        for process in job.absent[:_ROWS]
    )  # fmt: skip
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    yield f'<div class="epprof-wide">{table}</div>'
    if len(job.absent) > _ROWS:
        yield f"<p>{with_code(_more(job))}</p>"


def _cells(process: Process) -> tuple[str, ...]:
    pid = "" if process.pid is None else str(process.pid)
    return process.label, pid, process.hostname, _why(process), process.command


def _why(process: Process) -> str:
    return f"{process.state}: {process.reason}" if process.reason else process.state


def _more(job: ShownJob) -> str:
    return f"{plural(len(job.absent) - _ROWS, 'more process', 'more processes')}: `job.ranks`."
