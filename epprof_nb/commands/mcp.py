"""``epprof mcp``: saved profiles for assistants, over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.commands.convert import open_any
from epprof_nb.mcp.tools import make_server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from epprof_nb.profiles import Profile


def run(paths: Sequence[Path], redact: Sequence[str]) -> None:
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
    """
    profiles: dict[str, Profile] = {}
    for path in paths:
        stem = path.name.partition(".")[0] or path.name
        name = stem if stem not in profiles else str(path)
        profiles[name] = open_any(path)
    make_server(lambda: profiles, redact=tuple(redact)).run("stdio")
