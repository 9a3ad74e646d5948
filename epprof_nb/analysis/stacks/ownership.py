"""Ownership: whose code a file is, by the folder it is in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Owner: TypeAlias = Literal["cell", "own", "library", "machinery"]
"""Whose code a frame is; machinery runs code of the user and says nothing about it."""

_IN_PACKAGES = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_IN_INDUCTOR = re.compile(r"[\\/]torchinductor_[^\\/]+[\\/]")
_SHELL = re.compile(
    r"[\\/](?:site|dist)-packages[\\/](?:IPython|ipykernel)[\\/]"
    r"|[\\/]ipykernel_launcher\.py$|[\\/]runpy\.py$|^<frozen runpy>$"
)
CELL = re.compile(r"^In\[\d+\]$|^<ipython-input-\d+-|[\\/]ipykernel_\d+[\\/]\d+\.py$")
"""Names of the code of cells: as shown, as IPython names it, and as Jupyter's kernel does."""
BY_VALUE = "<dynamic-code>"
"""Name that cloudpickle gives to code that it sends by value, from a notebook or script."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Folders by whose code is in them.

    Paths are absolute, of files or of folders without a separator at their end.

    Attributes
    ----------
    chosen_own, chosen_library
        What the user has named as their own, or as a library; the longest path decides.
    machinery
        Code that runs the user's code, besides IPython and Python's ``runpy``.
    library
        Folders of Python's own modules, programs and packages.
    own
        Folders of the user: the working directory, the script's folder, editable installs.

    Examples
    --------
    >>> owners = Ownership(library=("/usr/lib/python3.11",), own=("/home/ada/code",))
    >>> owners.of("/home/ada/code/train.py"), owners.of("/usr/lib/python3.11/queue.py")
    ('own', 'library')
    >>> owners.of("/home/ada/code/env/site-packages/torch/nn.py"), owners.of("<string>")
    ('library', 'library')
    """

    chosen_own: tuple[str, ...] = ()
    chosen_library: tuple[str, ...] = ()
    machinery: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def of(self, file: str) -> Owner:
        """Return whose code a file is; of a library where nothing says otherwise."""
        return self.known(file) or "library"

    def known(self, file: str) -> Owner | None:
        """Return whose code a file is; None where nothing says so."""
        chosen = self._chosen(file)
        if chosen is not None:
            return chosen
        if file == BY_VALUE:
            return "own"
        if CELL.search(file):
            return "cell"
        if _SHELL.search(file) or _is_below(file, self.machinery):
            return "machinery"
        is_unnamed = file.startswith("<") and file.endswith(">")
        is_library = is_unnamed or _IN_PACKAGES.search(file) or _IN_INDUCTOR.search(file)
        if is_library or _is_below(file, self.library):
            return "library"
        return "own" if _is_below(file, self.own) else None

    def _chosen(self, file: str) -> Owner | None:
        paths: list[tuple[str, Owner]] = [
            *((path, "own") for path in self.chosen_own if _is_below(file, (path,))),
            *((path, "library") for path in self.chosen_library if _is_below(file, (path,))),
        ]
        return max(paths, key=lambda pair: len(pair[0]))[1] if paths else None


def _is_below(file: str, paths: tuple[str, ...]) -> bool:
    """Whether a file is one of these paths, or in a folder of them."""
    return any(
        file == path or file.startswith(path if path.endswith(os.sep) else path + os.sep)
        for path in paths
    )
