"""``epprof mcp``: saved profiles for assistants, over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import EXISTING_FILE, redact_option, redacted_parts
from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from epprof_nb.profiles import Profile


@click.command()
@click.argument("files", nargs=-1, required=True, type=EXISTING_FILE)
@redact_option("Leave out")
def mcp(*, files: tuple[Path, ...], redact: str) -> None:
    """Offer profiles to an assistant through the Model Context Protocol on stdin and stdout.

    FILES are saved profiles (.epprof) or traces of other tools. The tools are profiles, summary,
    sql, compare and timeline_png. Needs: pip install epprof-nb[mcp]
    """
    parts = redacted_parts(redact)
    try:
        _serve(files, parts)
    except (EpprofError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error


def _serve(paths: Sequence[Path], redact: Sequence[str]) -> None:
    """Serve the profiles until standard input ends.

    Parameters
    ----------
    paths
        Saved profiles, or traces of other tools.
    redact
        What to leave out of all answers; see `Profile.redacted`.

    Raises
    ------
    EpprofError, OSError
        If a file cannot be read.
    ImportError
        If the MCP SDK is not installed.
    """
    from epprof_nb.commands.profile_files import open_any
    from epprof_nb.mcp.tools import make_server

    profiles: dict[str, Profile] = {}
    for path in paths:
        stem = path.name.partition(".")[0] or path.name
        name = stem if stem not in profiles else str(path)
        profiles[name] = open_any(path)
    make_server(lambda: profiles, redact=tuple(redact)).run("stdio")
