"""Processes of a job: which number each part gets, and which ones are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from epprof_nb.files.dataset.manifest import Manifest

_MAX_LISTED = 4_096
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of a job, with or without a profile.

    ``state`` is from the manifest, or ``missing``, ``unfinished`` or ``damaged`` for a process
    without one; ``part`` identifies its part to the loader.
    """

    number: int
    launched: bool
    state: str
    reason: str
    manifest: Manifest | None = None
    part: Any = None
    pid: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether its number was given with its profile, and nothing else is known."""
        return self.manifest is None and self.state == "complete"

    @property
    def has_profile(self) -> bool:
        """Whether the process was recorded."""
        return self.manifest is not None and self.state != "not recorded"


@dataclass(frozen=True, slots=True)
class Broken:
    """A part without a readable manifest; rank and pid come from its name, if it has them."""

    part: Any
    state: str
    reason: str
    rank: int | None = None
    pid: int | None = None


def numbered(
    parts: Sequence[tuple[Any, Manifest]], broken: Iterable[Broken] = ()
) -> tuple[list[Process], list[str]]:
    """Give each process of a job its number, and list the ranks that are missing.

    The number of a process is the rank that its launcher gave it. Others get the numbers after the
    largest rank, in the order of begin. Processes that a rank started have inherited its
    environment, so they state its rank, too: they count as others.

    Parameters
    ----------
    parts
        Parts with their manifests; each part is what the caller knows it by.
    broken
        Parts without a readable manifest.

    Returns
    -------
    processes
        The processes by ascending number.
    notes
        Sentences on ranks that are missing or there more than once.
    """
    notes: list[str] = []
    ranks: dict[int, int] = {}
    for rank, candidates in sorted(_by_rank(parts).items()):
        ranks[rank] = _chosen(parts, candidates)
        twins = len(_without_descendants(parts, candidates))
        if twins > 1:
            notes.append(
                f"Rank {rank} has {twins} parts. The one of pid {parts[ranks[rank]][1].pid}, which "
                "began last, counts as this rank; the others have numbers after the largest rank."
            )
    with_rank = set(ranks.values())
    # The notebook's own part comes first, although its children begin before it.
    rest = sorted(
        set(range(len(parts))) - with_rank,
        key=lambda i: (parts[i][1].followed != "cell", parts[i][1].begin_ns, i),
    )
    broken = list(broken)
    broken_ranks = {b.rank: b for b in broken if b.rank is not None and b.rank not in ranks}
    world = max((m.world_size or 0 for _, m in parts), default=0)
    # Without an id of the run, parts of another host count as another job.
    has_id = any(m.run_id for _, m in parts)
    named = list(broken_ranks.values())
    absent = list(_missing(world, {*ranks, *broken_ranks}))
    processes = [_of_part(rank, *parts[i], launched=True) for rank, i in ranks.items()]
    processes += [_of_broken(rank, b, launched=True) for rank, b in broken_ranks.items()]
    count = world - len({r for r in {*ranks, *broken_ranks} if r < world})
    if count > 0:
        some = ", ".join(map(str, absent[:_MAX_NAMED])) + (", ..." if count > _MAX_NAMED else "")
        notes.append(
            f"{plural(count, 'rank')} of {world} {'is' if count == 1 else 'are'} missing ({some}):"
            " the folder has no part of them. They were not recorded, or their parts are on "
            f"another host{': copy these into the folder' if has_id else ''}."
        )
    why = f"no part, although the job has {world} ranks"
    processes += [
        Process(number=rank, launched=True, state="missing", reason=why) for rank in absent
    ]
    number = max([-1, world - 1 if count <= _MAX_LISTED else -1, *ranks, *broken_ranks]) + 1
    processes += [
        *(_of_part(number + at, *parts[i], launched=False) for at, i in enumerate(rest)),
        *(
            _of_broken(number + at, b, launched=False)
            for at, b in enumerate((b for b in broken if b not in named), len(rest))
        ),
    ]
    return sorted(processes, key=lambda process: process.number), notes


def _of_part(number: int, part: Any, manifest: Manifest, *, launched: bool) -> Process:  # noqa: ANN401
    return Process(
        number=number,
        launched=launched,
        state=manifest.state,
        reason=manifest.reason,
        manifest=manifest,
        part=part,
        pid=manifest.pid,
    )


def _of_broken(number: int, broken: Broken, *, launched: bool) -> Process:
    return Process(
        number=number,
        launched=launched,
        state=broken.state,
        reason=broken.reason,
        part=broken.part,
        pid=broken.pid,
    )


def _by_rank(parts: Sequence[tuple[Any, Manifest]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, (_, manifest) in enumerate(parts):
        if manifest.rank is not None:
            found.setdefault(manifest.rank, []).append(i)
    return found


def _without_descendants(parts: Sequence[tuple[Any, Manifest]], rows: list[int]) -> list[int]:
    """Return the parts that were not started, also indirectly, by another one of them."""
    pids = {(parts[i][1].hostname, parts[i][1].pid) for i in rows}
    roots = []
    for i in rows:
        manifest = parts[i][1]
        parent = (manifest.hostname, manifest.parent_pid)
        if parent not in pids or manifest.parent_pid == manifest.pid:
            roots.append(i)
    return roots or rows


def _chosen(parts: Sequence[tuple[Any, Manifest]], rows: list[int]) -> int:
    """Return the part that counts as the rank: the recorded part that began last."""
    return max(
        _without_descendants(parts, rows),
        key=lambda i: (parts[i][1].state != "not recorded", parts[i][1].begin_ns, -i),
    )


def _missing(world: int, present: set[int]) -> Iterator[int]:
    """Yield the ranks below `world` that are not present, up to a number that can be listed."""
    listed = 0
    # At most this many can be present, so the loop ends soon even if a part states 2**31 ranks.
    for rank in range(world):
        if rank not in present:
            listed += 1
            if listed > _MAX_LISTED:
                return
            yield rank


def given(manifests: Mapping[int, Manifest], numbers: Iterable[int]) -> list[Process]:
    """Return the processes of profiles with numbers that were given, not found."""
    return [
        Process(number=number, launched=False, state="complete", reason="")
        if (manifest := manifests.get(number)) is None
        else _of_part(number, None, manifest, launched=manifest.rank == number)
        for number in sorted({*manifests, *numbers})
    ]
