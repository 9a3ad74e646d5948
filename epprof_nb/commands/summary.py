"""``epprof summary``: totals, findings and rankings of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from epprof_nb.commands.parameters import FILE_OR_JOB, redact_option, redacted_parts
from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("file", type=FILE_OR_JOB)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the queries.")
@click.option("--sql", is_flag=True, help="Print the SQL queries that reproduce the numbers.")
@click.option("--max-chars", type=click.IntRange(min=500), default=8_000, show_default=True)
@redact_option("Leave out")
def summary(file: Path, *, as_json: bool, sql: bool, max_chars: int, redact: str) -> None:
    """Print totals, findings and rankings of a profile.

    FILE is a saved profile (.epprof), a trace of another tool, or the folder of a job, whose
    summary has its stragglers, processes, ranks and ops.
    """
    from epprof_nb.commands.profile_files import open_job_or_any
    from epprof_nb.jobs.job import Job

    parts = redacted_parts(redact)
    try:
        profile = open_job_or_any(file)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    form: Literal["text", "json"] = "json" if as_json else "text"
    if isinstance(profile, Job):
        click.echo(profile.summary(max_chars, form, redact=parts))
        return
    click.echo(profile.summary(max_chars, form, redact=parts, sql=sql))
