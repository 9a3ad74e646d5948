"""Progress of recordings as lines of text and as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.util import palette
from epprof_nb.util.format import percent, plural, shorten, size, three_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.recording.session.running_totals import Progress

_NAME_WIDTH = 56
_MAX_CHILDREN = 16

# Theme colours of JupyterLab and VS Code, with system colours as fallback.
_FAINT = "var(--jp-ui-font-color2,var(--vscode-descriptionForeground,GrayText))"
_BAR = palette.KERNEL
_TRACK = "rgba(128,128,128,.22)"
_WARN = "var(--jp-warn-color0,var(--vscode-editorWarning-foreground,#b35900))"


class Child(NamedTuple):
    """A child process, and its progress; None if it has not stated any yet."""

    pid: int
    progress: Progress | None


def elapsed(ns: int) -> str:
    """Format an elapsed time with steady width, such as ``12.4 s`` and ``3:07 min``."""
    seconds = ns / 1e9
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def _counts(progress: Progress) -> list[str]:
    """Return the counts so far, one text per number."""
    parts = []
    if progress.kernels:
        parts.append(f"{three_digits(progress.kernels_per_s)} kernels/s")
        parts.append(plural(progress.kernels, "kernel"))
    if progress.copies:
        copies = plural(progress.copies, "copy", "copies")
        parts.append(f"{copies} ({size(progress.copy_bytes)})")
    return parts or [f"no {progress.device_word} work yet"]


def _joined(parts: list[str]) -> str:
    return " \N{MIDDLE DOT} ".join(parts)


def _dropped(progress: Progress) -> str:
    return (
        f"{plural(progress.dropped, 'record')} dropped"
        if progress.dropped
        else "no records dropped"
    )


def as_line(progress: Progress, width: int) -> str:
    """Return the progress as one line of at most `width` characters, for a terminal."""
    parts = [elapsed(progress.elapsed_ns)]
    if progress.busy is not None:
        parts.append(f"{progress.device_word} busy {percent(progress.busy)}")
    parts += [*_counts(progress), _dropped(progress)]
    if progress.top:
        name, share = progress.top[0]
        parts.append(f"{shorten(name, 32)} {percent(share)}")
    while len(parts) > 1 and len(_joined(parts)) > width:
        parts.pop()
    return _joined(parts)[:width]


def as_lines(progress: Progress, width: int, children: Sequence[Child] = ()) -> list[str]:
    """Return a line for this process and for each child, of at most `width` characters."""
    lines = [as_line(progress, width)]
    for child in children[:_MAX_CHILDREN]:
        name = f"process {child.pid}: "
        shown = "-" if child.progress is None else as_line(child.progress, width - len(name))
        lines.append((name + shown)[:width])
    return [*lines, *_others(children)]


def _others(children: Sequence[Child]) -> list[str]:
    more = len(children) - _MAX_CHILDREN
    return [f"and {plural(more, 'other process', 'other processes')}"] if more > 0 else []


def as_html(progress: Progress, children: Sequence[Child] = ()) -> str:
    """Return the progress as HTML without style sheets or scripts."""
    busy = ""
    if progress.busy is not None:
        busy = (
            f"<span>{progress.device_word} busy <strong>{percent(progress.busy)}</strong> "
            f"{_bar(progress.busy, '5em')}</span>"
        )
    dropped = _dropped(progress)
    dropped_style = f' style="color:{_WARN}"' if progress.dropped else ""
    rows = "".join(
        f'<tr style="background:none"><td style="text-align:left;padding:0 1em 0 0;'
        f'font-family:var(--jp-code-font-family,monospace)">{escape(shorten(name, _NAME_WIDTH))}'
        f'</td><td style="padding:0 .6em 0 0;text-align:right;font-variant-numeric:tabular-nums">'
        f'{percent(share)}</td><td style="padding:0">{_bar(share, "8em")}</td></tr>'
        for name, share in progress.top
    )
    table = (
        f'<table style="border-collapse:collapse;margin:4px 0 0;font-size:12px">'
        f'<caption style="text-align:left;padding:0;color:{_FAINT}">Ops by device time so far'
        f"</caption><tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
    # Not a live region: a screen reader would read every update, twice a second.
    return (
        '<div role="group" aria-label="Profile in progress" style="font:13px/1.6 var('
        '--jp-ui-font-family,system-ui,sans-serif);padding:6px 0">'
        '<div style="display:flex;flex-wrap:wrap;gap:0 1.6em;font-variant-numeric:tabular-nums">'
        f"<span>Profiling <strong>{elapsed(progress.elapsed_ns)}</strong></span>{busy}"
        f"<span>{_joined(_counts(progress))}</span>"
        f'<span style="color:{_FAINT}"><span{dropped_style}>{dropped}</span></span></div>'
        f"{table}{_children_table(children)}</div>"
    )


def _children_table(children: Sequence[Child]) -> str:
    """Return a table with a row for each child process."""
    if not children:
        return ""
    rows = "".join(_child_row(child) for child in children[:_MAX_CHILDREN])
    rest = "".join(
        f'<div style="color:{_FAINT}">{escape(text)}</div>' for text in _others(children)
    )
    return (
        f'<table style="border-collapse:collapse;margin:4px 0 0;font-size:12px">'
        f'<caption style="text-align:left;padding:0;color:{_FAINT}">Child processes</caption>'
        f"<tbody>{rows}</tbody></table>{rest}"
    )


def _child_row(child: Child) -> str:
    known = child.progress
    busy = text = top = ""
    if known is not None:
        if known.busy is not None:
            word = f"{known.device_word} busy {percent(known.busy)}"
            busy = f"{word} {_bar(known.busy, '5em')}"
        parts = [*_counts(known), *([_dropped(known)] if known.dropped else [])]
        text = _joined(parts)
        top = shorten(known.top[0][0], _NAME_WIDTH) if known.top else ""
    cells = "".join(
        f'<td style="text-align:left;padding:0 1em 0 0">{cell}</td>'
        for cell in (f"process {child.pid}", busy, escape(text), escape(top))
    )
    return f'<tr style="background:none;font-variant-numeric:tabular-nums">{cells}</tr>'


def _bar(share: float, width: str) -> str:
    return (
        f'<span aria-hidden="true" style="display:inline-block;width:{width};height:.6em;'
        f'background:{_TRACK}"><span style="display:block;height:100%;background:{_BAR};'
        f'width:{min(max(share, 0.0), 1.0) * 100:.1f}%"></span></span>'
    )
