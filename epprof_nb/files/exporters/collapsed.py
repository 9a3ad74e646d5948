"""Collapsed stacks: the input of flame graphs, one line per path with its weight."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.analysis.base.stack_lines import frame_label
from epprof_nb.files.atomic_file import replacing
from epprof_nb.files.exporters.python_stacks import MEASURES, Measure, weighted_paths

if TYPE_CHECKING:
    import os

    from epprof_nb.data.profile_data import ProfileData

_SEPARATORS = re.compile(r"[;\r\n]")


def to_collapsed(
    profile: ProfileData,
    path: str | os.PathLike[str],
    *,
    measure: Measure = "device_ns",
    library: bool = True,
) -> None:
    """Write the Python stacks of a profile as collapsed stacks, atomically.

    Parameters
    ----------
    profile
        The profile.
    path
        The file; an existing file is replaced.
    measure
        The weight of each path, a column of `epprof_nb.Profile.by_stack`.
    library
        Whether to write the frames of libraries.

    Raises
    ------
    ValueError
        If the measure is unknown.
    OSError
        If the file cannot be written.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
    with replacing(path) as file:
        for nodes, weight in weighted_paths(profile, measure, library=library):
            labels = [name if at is None else frame_label(name, at, n) for name, at, n in nodes]
            text = ";".join(_SEPARATORS.sub(",", label) for label in labels)
            file.write(f"{text} {weight}\n".encode("utf-8", "backslashreplace"))
