"""Headline: the line of numbers above every view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.added_time.added_time import (
    LEAST_STATED_SHARE,
    added_time,
    reason_without_added_time,
)
from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.analysis.base.devices import device_labels, device_name, device_word
from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.base.missing_records import (
    Counts,
    record_counts,
    statements_lost,
    total_count,
    unrecorded_gaps,
)
from epprof_nb.analysis.base.processes import has_several
from epprof_nb.analysis.base.processor_use import kept_from_cores_text
from epprof_nb.analysis.base.wall_time import span_of_device, timed_tables, wall_of
from epprof_nb.analysis.critical_path.profiler_costs import NOT_TIMED
from epprof_nb.analysis.memory.headline_memory import memory_lines
from epprof_nb.analysis.onnx.profiler_slowdown import NOTABLE_SLOWDOWN, largest_slowdown
from epprof_nb.analysis.steps.by_phase import decode_statistics
from epprof_nb.analysis.steps.by_repeat import RepeatStatistics, repeat_statistics
from epprof_nb.analysis.steps.by_step import step_statistics
from epprof_nb.analysis.utilisation.gaps import IDLE_GAP_NS
from epprof_nb.analysis.utilisation.idle_intervals import BETWEEN, idle_intervals
from epprof_nb.data.profiles_without_gpu import NO_GPU, is_first_without_gpu
from epprof_nb.util.format import duration, percent, plural, shorten, size

if TYPE_CHECKING:
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals
    from epprof_nb.data.profile_data import ProfileData

_MAX_GAPS = 1_000
_MAX_ERROR = 500


@dataclass(frozen=True, slots=True)
class Busy:
    """Busy time of one device.

    ``share`` is its part of the wall time, 0 to 1. If records are missing, it is the part of
    ``known_ns``, the time in which no unrecorded work can have run.
    """

    device_id: int
    label: str
    name: str
    share: float
    known_ns: int | None = None

    @property
    def text(self) -> str:
        """The share, and the known time if it is not the wall time."""
        if self.known_ns is None:
            return percent(self.share)
        if not self.known_ns:
            return "unknown"
        return f"{percent(self.share)} of the {duration(self.known_ns)} known"


@dataclass(frozen=True, slots=True)
class Overhead:
    """The profiler's own time, ns: to start, join its records, and draw; None if unknown.

    ``total_ns`` is without drawing.
    """

    total_ns: int
    start_ns: int | None = None
    join_ns: int | None = None
    draw_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """Numbers of the line above every view.

    ``gaps`` is the number of idle gaps (`epprof_nb.analysis.utilisation.gaps`) and
    ``longest_gaps`` has the start and end (ns) of up to a thousand of them, in the order of time.
    ``recorded`` is the number of records, without and with the missing ones, ``overhead`` the
    profiler's own time, and ``slowdown`` the ratio of the profiled to the unprofiled time of ONNX
    Runtime's runs; None if unknown. ``added`` is what profiling added, as a share of the unprofiled
    wall time, and None if unknown; ``is_measured`` is whether warm-ups have shown it, ``not_added``
    why they did not, or why it is unknown, ``asks_added`` whether repeats asked for it, and
    ``is_least`` whether it is only the least that profiling added. ``kept_from_cores`` says how
    long the process waited for a core that others used; empty if that is little.
    ``says_no_gpu`` is whether this profile is the first of its process without a GPU, and
    ``is_trace`` whether another tool recorded it, perhaps without devices, and ``skipped_events``
    how many of its events were skipped if none could be read. ``repeats`` are the statistics of the
    repeats, training steps or decode steps; None without any.
    """

    wall_ns: int
    device_word: str
    busy: tuple[Busy, ...]
    kernels: int
    copies: int
    copy_bytes: int
    memsets: int
    gaps: int
    longest_gaps: tuple[tuple[int, int], ...]
    recorded: Counts | None
    overhead: Overhead | None
    slowdown: float | None
    added: float | None
    is_measured: bool
    is_least: bool
    not_added: str
    asks_added: bool
    kept_from_cores: str
    unattributed: int
    error: str | None
    is_blank: bool
    skipped_events: int
    says_no_gpu: bool
    is_trace: bool
    repeats: RepeatStatistics | None
    statements_lost: int = 0
    """Executions of statements that were left out to keep the overhead low."""
    memory: tuple[str, ...] = ()
    """Lines on the memory of GPUs, if it was recorded."""

    @property
    def counted(self) -> list[tuple[str, str]]:
        """Numbers that are not 0, as (kind of activity or ``gaps``, text)."""
        parts = []
        if self.kernels:
            parts.append(("kernel", plural(self.kernels, "kernel")))
        if self.copies:
            text = f"{plural(self.copies, 'copy', 'copies')} ({size(self.copy_bytes)})"
            parts.append(("memcpy", text))
        if self.memsets:
            parts.append(("memset", plural(self.memsets, "memset")))
        if self.gaps:
            threshold = f"{IDLE_GAP_NS / 1e6:g} ms"
            parts.append(("gaps", f"{plural(self.gaps, 'idle gap')} > {threshold} between work"))
        return parts

    @property
    def counts(self) -> str:
        """The same as text: ``4,212 kernels · 36 copies (1.20 GB)``."""
        return " · ".join(text for _, text in self.counted)

    @property
    def data_quality_text(self) -> str:
        """How complete the profile is: ``recorded 100 %, 2 activities without an op``."""
        parts = (self.recording_text, self.overhead_text, self.unattributed_text)
        return ", ".join(part for part in parts if part)

    @property
    def unattributed_text(self) -> str:
        """Number of activities without an op; empty if there are none."""
        if not self.unattributed:
            return ""
        return f"{plural(self.unattributed, 'activity', 'activities')} without an op"

    @property
    def recording_text(self) -> str:
        """The part of `data_quality_text` about recording; empty if unknown."""
        parts = []
        if self.recorded is not None and self.is_complete:
            parts.append("recorded 100 %")
        elif self.recorded is not None:
            kept, launched = self.recorded
            parts.append(f"recorded {kept:,} of {plural(launched, 'record')}")
        if self.statements_lost:
            left_out = plural(self.statements_lost, "execution")
            parts.append(f"{left_out} of statements in recursive calls not recorded")
        return ", ".join(parts)

    @property
    def is_complete(self) -> bool:
        """Whether no record is known to be missing."""
        return self.recorded is None or self.recorded.recorded == self.recorded.all

    @property
    def overhead_text(self) -> str:
        """Waits for others, and the profiler's time; empty if unknown."""
        parts = [self.kept_from_cores] if self.kept_from_cores else []
        if self.added is not None and self.added >= LEAST_STATED_SHARE:
            about = "about" if self.is_measured else "an estimated"
            about = "at least" if self.is_least else about
            parts.append(f"profiling added {about} {self.added:.0%}".replace("%", " %"))
        if self.not_added and self.asks_added and self.added is None:
            parts.append(f"profiling added: not measured, {self.not_added}")
        if self.overhead is not None:
            parts.append(
                f"profiler took {duration(self.overhead.total_ns)} before and after the code (not "
                "in the wall time)"
            )
        is_slower = self.slowdown is not None and self.slowdown >= NOTABLE_SLOWDOWN
        if is_slower and not self.kept_from_cores:  # others may have slowed the runs down
            parts.append(f"ONNX Runtime {self.slowdown:.2g}x slower while profiled")
        return ", ".join(parts)

    @property
    def overhead_note(self) -> str:
        """Explanation of `overhead_text`; empty if there is nothing to explain."""
        sentences = []
        if self.overhead is not None:
            total, start, join = (
                self.overhead.total_ns, self.overhead.start_ns, self.overhead.join_ns,
            )  # fmt: skip
            took = (
                f"The profiler took {duration(start)} to start, and {duration(join)} after the "
                "code to find the op of each record."
                if start is not None and join is not None
                else f"The profiler took {duration(total)} before and after the code."
            )
            sentences = [
                took,
                "Drawing the view takes further time, which is `draw_ns` in the info's "
                "`profiling_cost` afterwards."
                if self.overhead.draw_ns is None
                else f"Drawing the view below the cell took {duration(self.overhead.draw_ns)}.",
                "Neither is part of the wall time or a slowdown.",
            ]
        if self.slowdown is not None:
            sentences.append(
                f"ONNX Runtime's runs took {self.slowdown:.3g} times as long as unprofiled ones."
            )
        if self.added is not None:
            how = (
                "measured by the warm-ups, which are not profiled"
                if self.is_measured
                else "estimated from what recording took of the program's threads; --warmup and "
                "--repeat measure it"
            )
            if self.not_added:
                how = f"estimated, because it could not be measured: {self.not_added}"
            least = "at least " * self.is_least
            sentences.append(
                f"Profiling added {least}{percent(self.added)} to the wall time, {how}."
            )
        elif self.not_added:
            sentences.append(
                f"What profiling added to the wall time is not known: {self.not_added}."
            )
        elif sentences and self.slowdown is None:
            sentences.append("How much recording slowed the code down is not known.")
        if self.kept_from_cores:
            sentences.append(
                f"It {self.kept_from_cores}. These waits are part of the wall time; without a GPU, "
                "the gains of findings leave them out."
            )
        return " ".join(sentences)

    @property
    def line(self) -> str:
        """The headline as one line of text.

        For example ``1.84 s wall   GPU busy 61 %   4,212 kernels   recorded 100 %``.
        """
        parts = [f"{duration(self.wall_ns)} wall"]
        for busy in self.busy:
            word = busy.label if len(self.busy) > 1 else self.device_word
            parts.append(f"{word} busy {busy.text}")
        parts += [self.counts or self.empty or "", self.data_quality_text]
        return "   ".join(part for part in parts if part)

    @property
    def empty(self) -> str | None:
        """Explanation of a profile without device work; else None."""
        if self.kernels or self.copies or self.memsets:
            return None
        if self.is_trace:
            return self._empty_trace
        is_gpu = self.device_word == "GPU"
        if self.is_blank:
            return f"No {'GPU' if is_gpu else 'device'} work and no ops were recorded."
        if is_gpu:
            return "No GPU work was launched. (Host ops are shown.)"
        if self.says_no_gpu:
            return f"{NO_GPU} (Host ops are shown.)"
        return "No device work. (Host ops are shown.)"

    @property
    def _empty_trace(self) -> str:
        if not self.is_blank:
            return "The trace has no device work. (Host ops are shown.)"
        if not self.skipped_events:
            return "The trace has no events."
        return (
            f"The trace has no events that can be read; skipped: {self.skipped_events:,}. "
            "(prof.info['notes'] says why.)"
        )


def _overhead(info: dict[str, Any], wall_ns: int) -> Overhead | None:
    cost = info.get("profiling_cost")
    if not isinstance(cost, Mapping):
        return None
    # A file may contain anything.
    total, share, start, join, draw = (
        value if isinstance(value := cost.get(key), int | float) else None
        for key in ("ns", "share", "start_ns", "join_ns", "draw_ns")
    )
    if total is None:
        total = None if share is None else share * wall_ns
    if total is None:
        return None
    draw_ns = None if draw is None else int(draw)
    if start is None or join is None:
        return Overhead(int(total), draw_ns=draw_ns)
    return Overhead(int(total), int(start), int(join), draw_ns)


def _busy(index: ProfileIndex) -> tuple[Busy, ...]:
    result = []
    labels = device_labels(index.profile.info, index.device_ids)
    for device in index.device_ids:
        if device >= 0:
            starts, ends = index.busy(device)
            unknown = index.cached(unrecorded_gaps, device)
            begin_ns, end_ns = span_of_device(index.profile, device)
            known_ns = max(end_ns - begin_ns - int((unknown[1] - unknown[0]).sum()), 0)
            share = float((ends - starts).sum()) / known_ns if known_ns else 0.0
            name = device_name(index.profile.info, device)
            of_known = known_ns if len(unknown[0]) else None
            result.append(Busy(device, labels[device], name, min(share, 1.0), of_known))
    return tuple(result)


def _longest(gaps: IdleIntervals) -> tuple[tuple[int, int], ...]:
    longest = gaps.take(np.argsort(gaps.start - gaps.end, kind="stable")[:_MAX_GAPS])
    return tuple(sorted(zip(longest.start.tolist(), longest.end.tolist(), strict=True)))


def headline_of(index: ProfileIndex) -> Headline:
    """Compute the numbers of the headline."""
    profile = index.profile
    gaps = idle_intervals(index, IDLE_GAP_NS)
    gaps = gaps.take(gaps.position == BETWEEN)
    is_copy = index.kinds == MEMCPY
    wall = wall_of(profile)
    error = profile.info.get("error")
    added = index.cached(added_time)
    not_added = reason_without_added_time(index.profile.info)
    sizes = profile.tables["activities"]["bytes"][is_copy]
    return Headline(
        wall_ns=wall,
        device_word=device_word(profile.info),
        busy=_busy(index),
        kernels=int((index.kinds == KERNEL).sum()),
        copies=int(is_copy.sum()),
        copy_bytes=int(np.maximum(sizes, 0).sum()),
        memsets=int((index.kinds == MEMSET).sum()),
        gaps=len(gaps.start),
        longest_gaps=_longest(gaps),
        recorded=record_counts(profile.info),
        overhead=_overhead(profile.info, wall),
        slowdown=largest_slowdown(profile.info),
        added=None if added is None else added.stated_share(),
        is_measured=added is not None and added.is_measured,
        is_least=added is not None and added.is_least,
        not_added=not_added,
        # Without statements and the like, recording takes little.
        asks_added=bool(profile.info.get("repeats")) and not_added != NOT_TIMED,
        kept_from_cores=kept_from_cores_text(profile.info),
        unattributed=total_count((profile.info.get("attribution") or {}).get("none")),
        error=None if error is None else shorten(str(error), _MAX_ERROR),
        says_no_gpu=is_first_without_gpu(profile.info),
        is_trace="trace_format" in profile.info,
        is_blank=not any(map(len, timed_tables(profile))),
        skipped_events=profile.info.get("skipped_events", 0),
        # Steps of different processes run at the same time: they are not a sequence.
        repeats=None
        if has_several(index)
        else repeat_statistics(index)
        or index.cached(step_statistics)
        or index.cached(decode_statistics),
        statements_lost=statements_lost(profile.info),
        memory=memory_lines(index),
    )


def headline_text(profile: ProfileData) -> str:
    """Return the headline as one line of text; see `Headline.line`."""
    return headline_of(index_of(profile)).line
