"""Parameters that commands share: paths, which are checked before any work, and redaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

NEW_FILE = click.Path(dir_okay=False, path_type=Path)
"""A file that need not exist."""
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE_OR_JOB = click.Path(exists=True, path_type=Path)
"""A file, or the folder of a job."""


def redact_option(verb: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds ``--redact``; `verb` begins its help."""
    return click.option(
        "--redact",
        metavar="PARTS",
        default="",
        help=f"{verb} source, paths, hosts or shapes (separated by commas), or all of them.",
    )


def redacted_parts(redact: str) -> tuple[str, ...]:
    """Return the parts that a value of ``--redact`` names.

    Raises
    ------
    click.BadParameter
        If a part is unknown.
    """
    from epprof_nb.files.redaction.redacted_columns import PARTS, parts_of

    names = [part.strip() for part in redact.split(",") if part.strip()]
    if unknown := [name for name in names if name not in (*PARTS, "all")]:
        raise click.BadParameter(
            f"cannot remove {', '.join(map(repr, unknown))}: choose from {', '.join(PARTS)}, or "
            "all.",
            param_hint="--redact",
        )
    return parts_of(True if "all" in names else names)


def refuse_same_file(option: str, path: Path | None, others: dict[str, Path | None]) -> None:
    """Refuse to overwrite another file of the command. Symbolic and hard links are followed.

    Raises
    ------
    click.BadParameter
        If `path` is one of the files in `others`. Its keys name the files in the message.
    """
    for what, other in others.items():
        if path is None or other is None:
            continue
        if path.resolve() == other.resolve() or (
            path.is_file() and other.is_file() and path.samefile(other)
        ):
            raise click.BadParameter(
                f"{path} is the file of {what}. Choose another path.", param_hint=option
            )


def refuse_unwritable(path: Path, option: str) -> None:
    """Refuse a path that cannot be written.

    Raises
    ------
    click.BadParameter
        If it cannot be written.
    """
    from epprof_nb.files.atomic_file import check_writable

    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=option) from error
