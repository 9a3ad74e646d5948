"""Parts of killed processes: their journals are correlated when somebody opens the job."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.dataset.manifest import MANIFEST, Manifest
from epprof_nb.files.dataset.part import write_part
from epprof_nb.files.epprof.manifest_checks import DAMAGE
from epprof_nb.recording.children.journal import BEGUN, JOURNAL, MAX_BYTES
from epprof_nb.recording.children.proc_filesystem import boot_id, start_ticks

if TYPE_CHECKING:
    import os

_QUIET_S = 60.0
"""A journal that is older than this is complete; a process writes its own every 5 seconds."""
_LARGEST = MAX_BYTES + 16 * 2**20
_LARGEST_FACTS = 16 * 2**20


def complete_killed(folder: str | os.PathLike[str], *, into: Path | None = None) -> bool:
    """Write the part of a killed process from its journal, if it has one and no manifest.

    Without a journal, or with one that has no complete batch yet, the part says that the process
    was not recorded.

    Parameters
    ----------
    folder
        Folder of the part, which may be from an untrusted source.
    into
        Folder to write the part to, if `folder` is read-only; its journal then remains.

    Returns
    -------
    done
        Whether the part is complete now. It is not if the process still runs.

    Raises
    ------
    ProfileFileError
        If the journal is damaged.
    OSError
        If the part cannot be written.
    """
    folder = Path(folder)
    journal = folder / JOURNAL
    if (folder / MANIFEST).exists():
        return False
    if not journal.is_file() or journal.is_symlink():
        return _complete_begun(folder, into)
    if journal.stat().st_size > _LARGEST:
        raise ProfileFileError(f"{journal} is larger than the limit of {_LARGEST:,} bytes")
    age_s = time.time() - journal.stat().st_mtime
    from epprof_nb.recording.children.journal_reading import KilledRecording

    try:
        try:
            recording = KilledRecording(journal)
        except EOFError:
            if not (folder / BEGUN).exists():
                raise
            return _complete_begun(folder, into)
        manifest = Manifest.from_json(recording.facts["manifest"])
        if _may_run(manifest, recording.facts["start_ticks"], age_s):
            return False
        data = recording.profile()
        manifest = replace(
            manifest, state="killed", begin_ns=recording.begin_ns, end_ns=recording.end_ns,
            reason="it was killed, or could not write its part: the recording comes from its "
            "journal, which may lack the last 5 seconds",
        )  # fmt: skip
    except DAMAGE as error:
        raise ProfileFileError(
            f"{journal} is damaged: {error or type(error).__name__}. Remove the folder of the part "
            "to load the job without it."
        ) from error
    _write(data, manifest, folder, into)
    return True


def _write(data: ProfileData, manifest: Manifest, folder: Path, into: Path | None) -> None:
    write_part(data, into or folder, manifest)
    if into is None:
        (folder / JOURNAL).unlink(missing_ok=True)
        (folder / BEGUN).unlink(missing_ok=True)


def _complete_begun(folder: Path, into: Path | None) -> bool:
    """Write which process was killed before it had written its journal."""
    begun = folder / BEGUN
    if not begun.is_file() or begun.is_symlink():
        return False
    try:
        with begun.open("rb") as file:
            facts = json.loads(file.read(_LARGEST_FACTS))
        manifest = Manifest.from_json(facts["manifest"])
        if _may_run(manifest, facts["start_ticks"], time.time() - begun.stat().st_mtime):
            return False
    except DAMAGE as error:
        raise ProfileFileError(f"{begun} could not be read: {error}") from error
    reason = "it crashed or was killed, less than 5 seconds after its recording began"
    manifest = replace(manifest, state="not recorded", reason=reason, end_ns=manifest.begin_ns)
    _write(ProfileData(), manifest, folder, into)
    return True


def _may_run(manifest: Manifest, start: int, age_s: float) -> bool:
    """Whether a process may run; `age_s` is the age of its last record."""
    if start and start_ticks(manifest.pid) == start:
        return True
    here = manifest.hostname, manifest.clock.get("boot_id")
    # Processes of another machine or container are not visible here.
    return here != (socket.gethostname(), boot_id()) and age_s < _QUIET_S
