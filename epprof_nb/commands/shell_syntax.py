"""Detection of shell syntax in commands that run without a shell, before anything runs."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_REDIRECTION = re.compile(r"(?<!\S)\d*(?:&?>>?|<<?<?)\S*")
_OPERATOR = re.compile(r"(?<!\S)(?:\|\|?|&&?|;)|(?:;|&)(?!\S)|`|\$\(")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)=\S*\s")


def refuse_shell_syntax(text: str) -> None:
    """Refuse a command with syntax that only a shell understands; quoted text is left alone.

    Parameters
    ----------
    text
        The command, as the user wrote it.

    Raises
    ------
    ValueError
        If it has such syntax. The message suggests an alternative.

    Examples
    --------
    >>> refuse_shell_syntax("python train.py --comment 'a > b'")
    >>> refuse_shell_syntax("python train.py > log.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: 'python train.py > log.txt' has `> log.txt`, but it runs without a shell. Leave ...
    """
    # Quoted text does not count as syntax. The mask keeps the positions of the rest.
    bare = _QUOTED.sub(lambda found: "q" * len(found[0]), text)
    why = ""
    if found := _ASSIGNMENT.match(bare):
        why = (
            f"sets {found[1]} for a shell, but it runs without one. Set the variable for epprof, "
            f"as in `{found[0].strip()} epprof ...`, or in the script."
        )
    elif found := _REDIRECTION.search(bare):
        target = re.match(r"\s+\S+", bare[found.end() :]) if found[0][-1] in "<>" else None
        shown = text[found.start() : found.end() + (target.end() if target else 0)]
        why = (
            f"has `{shown}`, but it runs without a shell. Leave it out: the output of the script "
            "is only shown if it fails. Pass input to the script as an argument."
        )
    elif found := _OPERATOR.search(bare):
        why = (
            f"has `{found[0].strip()}`, but it runs without a shell. Name one Python script; run "
            "other commands before epprof, or from the script."
        )
    elif found := _VARIABLE.search(bare):
        why = (
            f"has `{found[0]}`, but it runs without a shell. Put the command in double quotes, so "
            "that your shell inserts the value, or read os.environ in the script."
        )
    if why:
        raise ValueError(f"{text!r} {why} Text in quotes inside the command is left as it is.")
