"""``epprof convert``: profiles and traces of other tools, written in another format."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import (
    FILE_OR_JOB,
    NEW_FILE,
    refuse_same_file,
    refuse_unwritable,
)
from epprof_nb.core.errors import EpprofError
from epprof_nb.util.printable import printable

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("source", metavar="IN", type=FILE_OR_JOB)
@click.argument("target", metavar="OUT", type=NEW_FILE)
def convert(source: Path, target: Path) -> None:
    """Convert a saved profile, the folder of a job, or a trace of another tool.

    IN is an .epprof file, a trace of PyTorch (Kineto), a JSON profile of ONNX Runtime, a Chrome
    trace, or the folder of a job, of which pages and traces can be written. The suffix of OUT
    selects the format: .epprof, .html (a page), .json or .json.gz (a Chrome trace), .pftrace or
    .pftrace.gz (Perfetto), .speedscope.json or .speedscope.json.gz (flame graphs).
    """
    from epprof_nb.commands.profile_files import JOB_SUFFIXES, SUFFIXES, open_job_or_any, writer_for
    from epprof_nb.jobs.job import Job

    write = writer_for(target, of_job=source.is_dir())
    if write is None:
        known = JOB_SUFFIXES if source.is_dir() else SUFFIXES
        suffixes = f"{', '.join(known[:-1])} or {known[-1]}"
        raise click.BadParameter(f"its suffix must be {suffixes}", param_hint="OUT")
    refuse_same_file("OUT", target, {"IN": source})
    refuse_unwritable(target, "OUT")
    try:
        profile = open_job_or_any(source)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            write(profile, target)
    except (EpprofError, ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    notes = profile.notes if isinstance(profile, Job) else profile.info.get("notes")
    for note in [*(notes or ()), *(warning.message for warning in caught)]:
        click.echo(printable(f"note: {note}"))
    click.echo(f"Wrote {target}")
