"""Load a profile, or a job from the folder of its parts."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.dataset import remote
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.files.dataset.part import MAX_BYTES, MAX_PARTS, read_manifest
from epprof_nb.files.dataset.part_name import PART_NAME
from epprof_nb.files.dataset.remote import is_url
from epprof_nb.files.epprof.manifest_checks import stated
from epprof_nb.jobs.job import Job
from epprof_nb.jobs.killed_processes import complete_killed
from epprof_nb.jobs.part_profiles import PartProfiles
from epprof_nb.jobs.process_numbers import Broken, numbered
from epprof_nb.profiles import load as load_profile
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.files.dataset.manifest import Manifest
    from epprof_nb.profiles import Profile

_MAX_BYTES_OF_MANIFESTS = 2**30
_MAX_NAMED = 5


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Profile | Job:
    """Read a profile from an ``.epprof`` file, or a job from a folder.

    Both may be from an untrusted source. The part of a process that was killed is written first,
    from its journal.

    Parameters
    ----------
    path
        Path of the file, or of the folder of a job, such as ``run/`` of ``epprof run --out run/``.
        A URL that fsspec opens, such as ``s3://bucket/run/``, is copied to a temporary folder.
    max_bytes
        Maximum memory of the tables in bytes; for a job, of the tables of one process.

    Returns
    -------
    profile
        `Profile` of a file, `Job` of a folder. Tables and columns of a newer minor version of the
        format are skipped and listed in ``profile.info["notes"]``. A job reads the tables of a
        process on demand. Processes whose part is missing, unfinished or damaged are
        listed in `Job.ranks`, and other things in ``job.notes``.

    Raises
    ------
    ProfileFileError
        If the file is not an ``.epprof`` file, is damaged or too large, or needs a newer version;
        or if the folder has no part of a job.
    OSError
        If the file or folder cannot be opened.

    Examples
    --------
    >>> import epprof_nb
    >>> epprof_nb.load("run/").by_rank()  # doctest: +SKIP
    """
    if isinstance(path, str) and is_url(path):
        return _load_url(path, max_bytes)
    path = Path(path)
    return (
        load_job(path, max_bytes=max_bytes)
        if path.is_dir()
        else load_profile(path, max_bytes=max_bytes)
    )


def _load_url(url: str, max_bytes: int) -> Profile | Job:
    """Return a profile or a job of a storage; the copy of a job lives as long as the job."""
    folder = Path(tempfile.mkdtemp(prefix="epprof-load-"))
    try:
        if not remote.is_folder(url):
            remote.get_file(url, folder / "profile.epprof")
            return load_profile(folder / "profile.epprof", max_bytes=max_bytes)
        remote.get_job(url, folder / "job", max_bytes=max_bytes)
        job = load_job(folder / "job", max_bytes=max_bytes)
        weakref.finalize(job.profiles, shutil.rmtree, folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return job


def load_job(
    folder: Path, *, max_bytes: int = MAX_BYTES, unwritten: Sequence[Manifest] = ()
) -> Job:
    """Read a job from the folder of its parts; see `load`.

    `unwritten` are the manifests of processes without a profile that could not be written.
    """
    names, notes = _names(folder)
    parts: list[tuple[Path, Manifest]] = []
    broken = []
    temporary: list[tempfile.TemporaryDirectory[str]] = []
    size = 0
    for name in names:
        part = folder / name
        found = PART_NAME.fullmatch(name)
        rank = None if found is None or found[1] == "none" else int(found[1])
        pid = None if found is None else int(found[2])
        state = "damaged"
        try:
            part = _completed(part, temporary)
            state = "damaged" if (part / MANIFEST).exists() else "unfinished"
            size += _manifest_size(part)
            manifest = _manifest(part, size)
        except ProfileFileError as error:
            broken.append(Broken(part, state, str(error), rank, pid))
        else:
            parts.append((part, manifest))
    parts, of_others = _own(parts)
    parts, copies = _once(parts)
    notes += [*of_others, *copies]
    if not parts and not broken and not unwritten:
        raise ProfileFileError(
            f"{folder} is not the folder of a job: it has no part (a folder such as "
            f"rank-00000-1234 with {MANIFEST}). Pass the folder that `epprof run --out` was given."
        )
    listed = [(None, manifest) for manifest in unwritten]
    processes, missing = numbered([*parts, *listed], broken)
    stored = {p.number: (p.part, p.manifest) for p in processes if p.has_profile and p.manifest}
    job = Job(PartProfiles(stored, max_bytes), processes=processes, notes=[*notes, *missing])
    for kept in temporary:
        weakref.finalize(job.profiles, kept.cleanup)
    job.notes += job.dropped_notes()
    return job


def _completed(part: Path, temporary: list[tempfile.TemporaryDirectory[str]]) -> Path:
    """Complete the part of a killed process, and return its folder.

    That is in a temporary folder, which is made once, if the part is read-only or its disk is full.
    """
    try:
        complete_killed(part)
    except OSError:
        with suppress(OSError):  # without any space, it is unfinished
            if not temporary:
                temporary.append(tempfile.TemporaryDirectory(prefix="epprof-load-"))
            copy = Path(temporary[0].name) / part.name
            if complete_killed(part, into=copy):
                return copy
    return part


def _names(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the folders that look like parts, in order."""
    with os.scandir(folder) as entries:
        names = sorted(
            entry.name
            for entry in entries
            if entry.name.startswith("rank-") and entry.is_dir(follow_symlinks=False)
        )
    if len(names) <= MAX_PARTS:
        return names, []
    return names[:MAX_PARTS], [
        f"The folder has {len(names):,} parts; only the first {MAX_PARTS:,} were read."
    ]


def _manifest_size(part: Path) -> int:
    try:
        return (part / MANIFEST).lstat().st_size
    except OSError:
        return 0


def _manifest(part: Path, size: int) -> Manifest:
    """Return the manifest of a part whose tables are there; `size` is the total size so far.

    What the tables hold is checked when they are read.
    """
    if size > _MAX_BYTES_OF_MANIFESTS:
        raise ProfileFileError(
            f"{part} was not loaded: the manifests of the job have more than "
            f"{_MAX_BYTES_OF_MANIFESTS:,} bytes"
        )
    manifest = read_manifest(part)
    for name in stated(manifest.tables)[0]:
        if not (part / f"{name}.parquet").exists():
            raise ProfileFileError(f"{part} could not be loaded: the table {name} is missing")
    return manifest


def _own(
    parts: list[tuple[Path, Manifest]],
) -> tuple[list[tuple[Path, Manifest]], list[str]]:
    """Return the parts of the job with the most parts, and a note on the others."""
    counts = Counter(manifest.job_id for _, manifest in parts)
    if len(counts) < 2:
        return parts, []
    # With the same number of parts, the later one counts.
    begins = {job: max(m.begin_ns for _, m in parts if m.job_id == job) for job in counts}
    first = max(counts, key=lambda job: (counts[job], begins[job]))
    own = _with_other_hosts(first, parts)
    foreign = [part.name for part, manifest in parts if manifest.job_id not in own]
    if not foreign:
        return parts, []
    were, them = ("was", "it") if len(foreign) == 1 else ("were", "them")
    note = (
        f"{plural(len(foreign), 'part')} of another job {were} left out ({_some(foreign)}): move "
        f"{them} to a folder of {'its' if them == 'it' else 'their'} own to load {them}."
    )
    return [(part, m) for part, m in parts if m.job_id in own], [note]


def _with_other_hosts(first: str, parts: list[tuple[Path, Manifest]]) -> set[str]:
    """Return a job and the jobs of its run with other ranks, because each host begins a job."""
    ranks: dict[str, set[int | None]] = defaultdict(set)
    runs: dict[str, set[tuple[str, int | None]]] = defaultdict(set)
    for _, manifest in parts:
        ranks[manifest.job_id].add(manifest.rank)
        if manifest.run_id:
            runs[manifest.job_id].add((manifest.run_id, manifest.world_size))
    own, known = {first}, ranks[first] - {None}
    for job in sorted(ranks.keys() - own):
        if runs[first] and runs[job] == runs[first] and not known & ranks[job]:
            own.add(job)
            known |= ranks[job] - {None}
    return own


def _once(
    parts: list[tuple[Path, Manifest]],
) -> tuple[list[tuple[Path, Manifest]], list[str]]:
    """Return each part once, and a note on copies of the same part."""
    seen: dict[tuple[object, ...], Path] = {}
    kept, copies = [], []
    for part, manifest in parts:
        digests = tuple(sorted((n, str(t.get("sha256"))) for n, t in manifest.tables.items()))
        key = (manifest.hostname, manifest.pid, manifest.rank, manifest.begin_ns, digests)
        if key in seen:
            copies.append(part.name)
        else:
            seen[key] = part
            kept.append((part, manifest))
    if not copies:
        return kept, []
    return kept, [f"{plural(len(copies), 'part')} there twice, counted once: {_some(copies)}."]


def _some(names: list[str]) -> str:
    """Return the first names, which are untrusted, as text."""
    shown = ", ".join(repr(name[:100]) for name in names[:_MAX_NAMED])
    return shown + (", ..." if len(names) > _MAX_NAMED else "")
