"""``epprof info``: description of a profile as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from epprof_nb.analysis.base.devices import is_gpu
from epprof_nb.commands.parameters import FILE_OR_JOB
from epprof_nb.core.errors import EpprofError
from epprof_nb.data.profiles_without_gpu import NO_GPU, has_no_gpu
from epprof_nb.util.format import duration, printable, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from epprof_nb.data.profile_data import ProfileData

_MAX_CHARS = 1_000_000
_DROPPED = {"dropped": "activities", "ops_lost": "ops", "calls_lost": "API calls"}
"""Records by the keys of ``info["recorded"]``."""


@click.command()
@click.argument("file", type=FILE_OR_JOB)
def info(file: Path) -> None:
    """Print the contents of a saved profile: devices, versions, duration, counts and notes.

    FILE is a saved profile (.epprof), or the folder of a job, whose processes are listed.
    """
    from epprof_nb.jobs.job import Job
    from epprof_nb.jobs.loading import load
    from epprof_nb.jobs.summary import job_text

    try:
        profile = load(file)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if isinstance(profile, Job):
        click.echo(f"{printable(str(file))}\n{job_text(profile, _MAX_CHARS, ops=False)}")
        return
    click.echo(f"{printable(str(file))} ({size(file.stat().st_size)})")
    click.echo(describe(profile))


def describe(profile: ProfileData) -> str:
    """Return the devices, versions, duration, counts and notes of a profile as lines of text."""
    rows = [(label, text) for label, text in _rows(profile) if text]
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {text}" for label, text in rows]
    lines += [f"note: {note}" for note in profile.info.get("notes") or ()]
    # A file may come from anywhere: its texts must not send control sequences to the terminal.
    return "\n".join(map(printable, lines))


def _rows(profile: ProfileData) -> Iterator[tuple[str, str]]:
    info = profile.info
    yield "profiled", str(info.get("cell") or "")
    started = info.get("started_at_epoch_ns")
    if isinstance(started, int):
        yield "recorded", f"{datetime.fromtimestamp(started / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "duration", duration(profile.wall_ns)
    yield "ended by", str(info.get("error") or "")
    used = set(profile.tables["activities"]["device_id"].tolist())
    for device in info.get("devices") or ():
        is_unused = not is_gpu(device) and device.get("device_id") not in used
        name = str(device.get("name") or "unknown")
        yield f"device {device.get('device_id')}", name + " (nothing ran on it)" * is_unused
    if has_no_gpu(info):
        yield "GPU", f"{NO_GPU} (Do so on the machine of the profile.)"
    versions = info.get("versions") or {}
    yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    yield "detail", str(info.get("detail") or "")
    kinds = profile.tables["activities"].names("kind")
    of_kind = {kind: int(kinds.equals(kind).sum()) for kind in kinds.categories}
    for name, table in profile.tables.items():
        text = f"{len(table):,}" if len(table) else ""
        if name == "activities" and text:
            text += f" ({', '.join(f'{n:,} {kind}' for kind, n in of_kind.items() if n)})"
        yield name.replace("_", " "), text
    if info.get("no_stacks"):
        yield "Python stacks", f"not recorded: {info['no_stacks']}"
    if info.get("no_samples"):
        yield "Host samples", f"not taken: {info['no_samples']}"
    yield "sources", ", ".join(profile.sources)
    attribution = info.get("attribution") or {}
    yield "attribution", ", ".join(f"{n:,} {how}" for how, n in attribution.items() if n)
    recorded = info.get("recorded") or {}
    dropped = {what: recorded.get(key) for key, what in _DROPPED.items()}
    yield "dropped", ", ".join(f"{n:,} {what}" for what, n in dropped.items() if n)
    yield "redacted", ", ".join(info.get("redacted") or ())
