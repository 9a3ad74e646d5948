"""``epprof report``: a saved profile as an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import (
    FILE_OR_JOB,
    NEW_FILE,
    redact_option,
    redacted_parts,
    refuse_same_file,
    refuse_unwritable,
)
from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("file", type=FILE_OR_JOB)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="Path of the HTML page; default: FILE with the suffix .html.",
)
@redact_option("Remove")
def report(file: Path, output: Path | None, redact: str) -> None:
    """Write a saved profile (.epprof), or the folder of a job, as one self-contained HTML page."""
    from epprof_nb.jobs.loading import load

    target = output or file.with_suffix(".html")
    refuse_same_file("--output", target, {"the profile to read": file})
    refuse_unwritable(target, "--output")
    parts = redacted_parts(redact)
    try:
        load(file).to_html(target, redact=parts)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Wrote {target}")
