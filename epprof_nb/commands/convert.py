"""``epprof convert``: profiles and traces of other tools, written in another format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import (
    EXISTING_FILE,
    NEW_FILE,
    refuse_same_file,
    refuse_unwritable,
)
from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("source", metavar="IN", type=EXISTING_FILE)
@click.argument("target", metavar="OUT", type=NEW_FILE)
def convert(source: Path, target: Path) -> None:
    """Convert a saved profile or a trace of another tool.

    IN is an .epprof file, a trace of PyTorch (Kineto), a JSON profile of ONNX Runtime or a Chrome
    trace. The suffix of OUT selects the format: .epprof, .html (a page), .json or .json.gz (a
    Chrome trace), .pftrace or .pftrace.gz (Perfetto), .speedscope.json or .speedscope.json.gz
    (flame graphs).
    """
    from epprof_nb.commands.profile_files import SUFFIXES, open_any, writer_for

    write = writer_for(target)
    if write is None:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise click.BadParameter(f"its suffix must be {known}", param_hint="OUT")
    refuse_same_file("OUT", target, {"IN": source})
    refuse_unwritable(target, "OUT")
    try:
        profile = open_any(source)
        write(profile, target)
    except (EpprofError, ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for note in profile.info.get("notes") or ():
        click.echo(f"note: {note}")
    click.echo(f"Wrote {target}")
