"""Recordings of scripts, each in a separate process, for comparisons."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epprof_nb.commands.shell_syntax import refuse_shell_syntax
from epprof_nb.profiles import Profile, load

if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUED = ("-X", "-W", "--check-hash-based-pycs")
"""Options of Python that are followed by a value."""
_SHOWN_LINES = 20


class ScriptFailedError(Exception):
    """A script that could not be recorded; the message says why, with the end of its output."""


@dataclass(frozen=True, slots=True)
class Script:
    """A command such as ``python train.py --epochs 1``, or ``train.py --epochs 1``.

    Attributes
    ----------
    text
        The command as given.
    interpreter, options
        Python, and its options.
    arguments
        The script with its arguments, or ``-m`` with a module and its arguments.
    """

    text: str
    interpreter: str
    options: tuple[str, ...]
    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Script:
        """Return the script of a command line.

        Raises
        ------
        ValueError
            If it does not run a Python script or module, or needs a shell.
        """
        try:
            parts = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"{text!r} cannot be split into words: {error}.") from error
        refuse_shell_syntax(text)
        interpreter, options = sys.executable, []
        if parts and re.fullmatch(r"python[\d.]*", Path(parts[0]).name):
            named = parts.pop(0)
            # A bare name means the Python of this environment, which has the profiler.
            if "/" in named:
                interpreter = named
            while parts and parts[0].startswith("-") and parts[0] != "-m":
                options += [parts.pop(0) for _ in range(1 + (parts[0] in _VALUED)) if parts]
        if not parts or (parts[0] == "-m" and len(parts) == 1):
            raise ValueError(
                f"{text!r} does not run a Python script. Write it as: 'python script.py'"
            )
        if parts[0] != "-m" and not Path(parts[0]).is_file():
            raise ValueError(
                f"{text!r} does not run a Python script: the file {parts[0]} does not exist."
            )
        if shutil.which(interpreter) is None:
            raise ValueError(f"{text!r} cannot run: the interpreter {interpreter} does not exist.")
        return cls(text, interpreter, tuple(options), tuple(parts))

    def record(self, path: Path, *, steps: str | None = None, detail: str | None = None) -> Profile:
        """Run the script under ``epprof run`` and return its profile.

        Parameters
        ----------
        path
            File of the profile.
        steps
            Value of the option ``--steps``.
        detail
            Value of the option ``--detail``.

        Raises
        ------
        ScriptFailedError
            If it fails or records nothing.
        """
        run = ["-m", "epprof_nb.cli", "run", "--quiet", "--out", str(path)]
        run += [] if steps is None else ["--steps", steps]
        run += [] if detail is None else ["--detail", detail]
        command = [self.interpreter, *self.options, *run, *self.arguments]
        with tempfile.TemporaryFile() as output:
            code = subprocess.run(command, stdout=output, stderr=output, check=False).returncode  # noqa: S603
            output.seek(0)
            shown = output.read().decode(errors="replace").splitlines()[-_SHOWN_LINES:]
        if code or not path.is_file():
            problem = f"ended with exit code {code}" if code else "recorded nothing"
            raise ScriptFailedError("\n".join([f"{self.text} {problem}.", *shown]))
        return load(path)


def record_rounds(
    scripts: Sequence[Script],
    rounds: int,
    folder: Path,
    *,
    steps: str | None = None,
    detail: str | None = None,
) -> list[list[Profile]]:
    """Record each script once per round; the order changes from one round to the next.

    Returns
    -------
    profiles
        The profiles of each script, in the order of the rounds.

    Raises
    ------
    ScriptFailedError
        If a script fails.
    """
    profiles: list[list[Profile]] = [[] for _ in scripts]
    for number in range(rounds):
        click.echo(f"round {number + 1} of {rounds}", err=True)
        order = range(len(scripts))
        for side in order if number % 2 == 0 else reversed(order):
            path = folder / f"{number + 1:03}-{side + 1}.epprof"
            profiles[side].append(scripts[side].record(path, steps=steps, detail=detail))
    return profiles
