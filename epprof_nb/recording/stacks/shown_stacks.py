"""Stacks as a profile shows them: which frames are left out, whose code each is, and its text."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from epprof_nb.analysis.stacks.ownership import Ownership
from epprof_nb.data.schema import MISSING
from epprof_nb.data.stack_table import stack_table
from epprof_nb.recording.code_texts import CodeTexts
from epprof_nb.recording.ranges.range_sources import shown_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.analysis.stacks.ownership import Owner
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.core.options import Options
    from epprof_nb.data.python_stacks import PythonStacks
    from epprof_nb.data.table import Table

PACKAGE = str(Path(__file__).parents[2])
"""Folder of this package, whose frames are left out."""
_OLD_CELL = re.compile(r"<ipython-input-(\d+)-")
_FUNCTIONS = 400


class ShownStacks(NamedTuple):
    """The stacks of a profile with whose code they are.

    Attributes
    ----------
    table
        A table of schema `epprof_nb.data.schema.STACKS`.
    row
        int32 array: row of each stack, as of `epprof_nb.data.stack_table.stack_table`.
    texts
        File or cell to its text, in which only the user's functions are there, at their lines.
    """

    table: Table
    row: npt.NDArray[np.int32]
    texts: dict[str, str]


def shown_stacks(
    stacks: PythonStacks,
    options: Options,
    *,
    script: tuple[str, str] | None = None,
    known: Mapping[str, str] | None = None,
) -> ShownStacks:
    """Return the stacks without the frames of machinery, with owners and text.

    Parameters
    ----------
    stacks
        The stacks as they were recorded.
    options
        Options of the session, with what the user has named as their own or as a library.
    script
        Path of the program that runs, and the name to show for it; None without one.
    known
        Cell to its text, for cells that need no other.
    """
    owners = owner_of_files(set(stacks.file), options, script=script)
    of_code = [owners[file] for file in stacks.file]
    shown = [
        shown_cell(file) if owner == "cell" else _shown_script(file, script)
        for file, owner in zip(stacks.file, of_code, strict=True)
    ]
    is_kept = ~_is_machinery(stacks, of_code)
    table, row = stack_table(stacks, shown, of_code, is_kept)
    known = known or {}
    users = [
        code
        for code in np.unique(stacks.code_id[is_kept]).tolist()
        if of_code[code] in ("cell", "own") and shown[code] not in known
    ]
    whole = [code for code in users if of_code[code] == "cell"]
    return ShownStacks(table, row, _texts(stacks, shown, users, whole))


def owner_of_files(
    files: Iterable[str], options: Options, *, script: tuple[str, str] | None = None
) -> dict[str, str]:
    """Return the owner of each file; see `epprof_nb.analysis.stacks.ownership.Owner`."""
    home = "" if script is None else os.path.dirname(script[0])  # noqa: PTH120 - no real path
    folders = (*_both(_working_directory()), *_both(home))
    chosen_own, chosen_library = (_paths_of(names) for names in (options.own, options.library))
    chosen_own += _unnamed_program()
    ownership = Ownership(chosen_own, chosen_library, (PACKAGE,), _library_folders(), folders)
    found = {file: _known(ownership, file) for file in files}
    unknown = [file for file, owner in found.items() if owner is None]
    if unknown:  # reading the list of installed packages takes a while
        installed = Ownership(own=_editable_folders())
        found |= {file: _known(installed, file) for file in unknown}
    return {file: owner or "library" for file, owner in found.items()}


def _known(ownership: Ownership, file: str) -> Owner | None:
    # A file may be below a link to a folder of the user. Following links takes a while.
    return ownership.known(absolute(file)) or ownership.known(_resolved(file))


def _is_machinery(stacks: PythonStacks, owners: Sequence[str]) -> BoolArray:
    """Return which stacks end in a frame that is left out.

    Such frames belong to machinery, or call code of the user through machinery, as
    the event loop of Jupyter's kernel does. A library that launches by machinery stays.
    """
    names = np.array([*owners, ""], object)[stacks.code_id]
    is_machinery: BoolArray = names == "machinery"
    below_user = (names == "cell") | (names == "own")
    above_user, above_machinery = below_user.copy(), np.zeros(len(stacks), np.bool_)
    parents = stacks.parent_id.tolist()
    for row, parent in enumerate(parents):  # a parent precedes its rows
        below_user[row] |= parent != MISSING and below_user[parent]
    for row in reversed(range(len(parents))):
        above_machinery[row] |= is_machinery[row] and above_user[row]
        if parents[row] != MISSING:
            above_user[parents[row]] |= above_user[row]
            above_machinery[parents[row]] |= above_machinery[row] and not below_user[row]
    dropped: BoolArray = is_machinery | (above_machinery & ~below_user)
    return dropped


def shown_cell(file: str) -> str:
    """Return the name of a cell, as ``In[3]``; the name of its code if it has no number."""
    old = _OLD_CELL.match(file)
    return f"In[{old[1]}]" if old else shown_file(file)


def _shown_script(file: str, script: tuple[str, str] | None) -> str:
    return script[1] if script is not None and absolute(file) == script[0] else file


def _texts(
    stacks: PythonStacks, shown: Sequence[str], codes: Sequence[int], cells: Sequence[int]
) -> dict[str, str]:
    """Return the text of some code objects by the file that is shown for them.

    For a cell, or a module's own code, it is the whole text, otherwise the text of the function.
    """
    of_cells, texts = set(cells), CodeTexts()
    for code in codes[:_FUNCTIONS]:
        whole = code in of_cells or stacks.function[code] == "<module>"
        first = 1 if whole else int(stacks.first_line[code])
        texts.add(stacks.file[code], first, shown=shown[code], whole=whole)
    return texts.by_file()


def absolute(file: str) -> str:
    """Return the full path of a file, if it can be found, else the name as it is."""
    return _path(os.path.abspath, file)


def _resolved(file: str) -> str:
    """Return the path of a file without links; the name of code that is in no file as it is."""
    return _path(os.path.realpath, file)


def _path(find: Callable[[str], str], file: str) -> str:
    try:
        return file if file.startswith("<") else find(file)
    except (OSError, ValueError):  # the working directory was removed, or the name is not a path
        return file


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        return ""


def _unnamed_program() -> tuple[str, ...]:
    """Return the name of the program's own code if it is in no file: ``python -c``, or stdin."""
    name = {"-c": "<string>", "": "<stdin>", "-": "<stdin>"}.get("".join(sys.argv[:1]))
    file = getattr(sys.modules.get("__main__"), "__file__", name)
    return (name,) if name and file == name else ()


def _both(folder: str) -> tuple[str, ...]:
    """Return a folder as it is named and as it is; nothing for none, and for the root."""
    found = dict.fromkeys((folder, _resolved(folder))) if folder else ()
    return tuple(path for path in found if path != os.sep)


@cache
def _library_folders() -> tuple[str, ...]:
    """Return the folders of Python's own modules, and of installed packages and programs."""
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(p for name in names if name in paths for p in _both(paths[name])))


@cache
def _editable_folders() -> tuple[str, ...]:
    """Return the folders of packages that are installed from a checkout (``pip install -e``)."""
    folders: dict[str, None] = {}
    for distribution in metadata.distributions():
        with suppress(Exception):  # its files may be damaged, or not readable
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            if origin.get("dir_info", {}).get("editable"):
                folders |= dict.fromkeys(_both(unquote(urlsplit(origin["url"]).path)))
    return tuple(folders)


def _paths_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of folders, files and packages that the user has named."""
    paths: list[str] = []
    for name in names:
        with suppress(Exception):  # finders, and packages above a module, run code of others
            paths += _paths_of_name(name)
    return tuple(paths)


def _paths_of_name(name: str) -> list[str]:
    if os.sep in name or os.path.exists(name):  # noqa: PTH110 - also for names that are not paths
        return [*_both(absolute(os.path.expanduser(name)))]  # noqa: PTH111
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) or util.find_spec(name)
    if spec is None:
        return []
    if spec.submodule_search_locations:
        return [path for folder in spec.submodule_search_locations for path in _both(folder)]
    return [*_both(spec.origin or "")]
