"""Lines of the user's code in the traceback of an error."""

from __future__ import annotations

import linecache
import os
import re
import sys
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Any

from epprof_nb.core.options import Options
from epprof_nb.data.out_of_memory_explanation import Place
from epprof_nb.recording.out_of_memory.own_attributes import dict_of
from epprof_nb.recording.ranges.range_sources import shown_file
from epprof_nb.recording.stacks.shown_stacks import PACKAGE, absolute, owner_of_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType, TracebackType

_QUOTED = re.compile(r'^  File "([^"\n]+)", line (\d+), in (\S+)\n(?:    (.*)\n)?', re.MULTILINE)
"""Frames in the text of a traceback: file, line, function and text."""
_COMPILED = tuple(EXTENSION_SUFFIXES)


def frames_of(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """Return the frames of a traceback and their lines, the outermost first."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of this package.

    A list of frames must not have the frame whose variable it is: it would live, with all that the
    others hold, until garbage is collected.
    """
    return frame.f_code.co_filename.startswith(PACKAGE)


def running_frames() -> list[tuple[FrameType, int]]:
    """Return the frames of all threads and their lines, without frames of this package."""
    found = []
    tops = [*sys._current_frames().values()]  # noqa: SLF001
    while tops:  # one of them is the frame of this function, which must not keep itself
        frame: FrameType | None = tops.pop()
        while frame is not None:
            if not is_own(frame):
                found.append((frame, frame.f_lineno))
            frame = frame.f_back
    return found


def program_of(frames: Iterable[tuple[FrameType, int]]) -> str:
    """Return the file of the script or cell that the outermost code of a module is; "" for none.

    A script may be in another folder than the working directory, also one that ``%run`` runs.
    """
    names = (frame.f_code for frame, _ in frames if not is_own(frame))
    return next((c.co_filename for c in names if c.co_name == "<module>"), "")


def users_frames(
    frames: Iterable[tuple[FrameType, int]], program: str
) -> list[tuple[FrameType, int]]:
    """Return the frames whose code is of a cell or of the user's files, in the same order.

    The files in the folder of the `program` are the user's.
    """
    frames = list(frames)
    files = [_file_of(frame) for frame, _ in frames]
    owners = _owners(set(files), program)
    return [
        pair for pair, file in zip(frames, files, strict=True) if owners[file] in ("cell", "own")
    ]


def _file_of(frame: FrameType) -> str:
    """Return the file of a frame's code, or the file of a compiled module.

    The code of such a module names its source, as a path in the folder in which it was built.
    """
    module = frame.f_globals.get("__file__")
    is_compiled = isinstance(module, str) and module.endswith(_COMPILED)
    return module if is_compiled else frame.f_code.co_filename  # type: ignore[return-value]


def users_modules(program: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files and attributes of the imported modules whose files are the user's."""
    files = {}
    main = sys.modules.get("__main__")
    for module in list(sys.modules.values()):
        # Other ways to read attributes would import a module that waits for its first use.
        attributes = dict_of(module)
        file = None if attributes is None else attributes.get("__file__")
        if attributes is not None and type(file) is str and module is not main:
            files[file] = attributes
    owners = _owners(files, program)
    yield from (item for item in files.items() if owners[item[0]] in ("cell", "own"))


def _owners(files: Iterable[str], program: str) -> dict[str, str]:
    script = (absolute(program), program) if program else None
    return owner_of_files(files, Options(), script=script)


def place_of(frame: FrameType, line: int) -> Place:
    """Return the line at which a frame is."""
    file, function = frame.f_code.co_filename, frame.f_code.co_name
    text = ""
    with suppress(Exception):  # loaders and linecache run code of others, which may fail
        text = linecache.getline(file, line, frame.f_globals).strip()
    return Place(short_file(file), line, text, "" if function == "<module>" else function)


def place_in_kernel(message: str, program: str) -> Place | None:
    """Return the innermost line of the user in the traceback that ONNX Runtime's message quotes.

    It is the traceback of a kernel in Python; its frames have ended, and their variables with them.
    The `program` is as in `users_frames`.
    """
    frames = _QUOTED.findall(message)
    owners = _owners({file for file, *_ in frames}, program)
    for file, line, function, text in reversed(frames):
        if owners[file] in ("cell", "own"):
            return Place(short_file(file), int(line), text.strip(), function)
    return None


def short_file(file: str) -> str:
    """Return the name of a cell, or the path of a file from the working directory."""
    shown = shown_file(file)
    try:
        relative = os.path.relpath(shown)
    except (OSError, ValueError):
        return shown
    return relative if os.path.isabs(shown) and not relative.startswith("..") else shown  # noqa: PTH117
