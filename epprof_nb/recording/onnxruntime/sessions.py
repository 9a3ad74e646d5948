"""Registry of observed ONNX Runtime sessions, and the profiling of their runs.

Each run is profiled on its own and has its own profiler in the observer, so a node belongs to
exactly one run even if runs overlap. Python's ``RunOptions`` cannot enable this. The C API can,
from release 1.25 (``OrtApi::RunOptionsEnableProfiling``), and is called by the observer.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.analysis.onnx.fallback import has_accelerator
from epprof_nb.core.options import ORT_NODES, OrtNodes, check_ort_nodes
from epprof_nb.core.ort_binding import run_options_pointer
from epprof_nb.recording.onnxruntime import (
    choice_of_runs,
    failed_runs,
    run_file_notes,
    run_log,
    unprofiled_runs,
)
from epprof_nb.recording.onnxruntime.run_log import RunInProgress
from epprof_nb.recording.onnxruntime.session_titles import session_title
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_FILE = "/dev/null/epprof"
"""A file prefix that cannot be written: ONNX Runtime then profiles without writing a file."""


class ReplayedGraphs(threading.local):
    """Ids of the CUDA graphs replayed on a thread; the CUDA provider keeps graphs per thread."""

    def __init__(self) -> None:
        self.graphs: set[str] = set()


@dataclass(slots=True)
class ObservedSession:
    """Observation state of a session: its number, or the reason why it is not observed."""

    name: str
    number: int | None = None
    reason: str | None = None
    providers: tuple[str, ...] = ()
    """Execution providers of the session, without the observer."""
    missing_providers: tuple[str, ...] = ()
    """Providers that the user requested and the session did not get."""
    session_profile: bool = False
    """ONNX Runtime profiles the whole session. Profiling a run on its own would cause a warning."""
    uses_pool_threads: bool = False
    """Nodes run on the threads of a pool (``ORT_PARALLEL``)."""
    captures_graphs: bool = False
    """The session profile was enabled for CUDA graphs; see `epprof_nb.onnxruntime.cuda_graphs`."""
    replayed: ReplayedGraphs = field(default_factory=ReplayedGraphs)
    """See `epprof_nb.onnxruntime.graph_runs`."""
    ran: bool = False
    """At least one run was recorded."""
    by_own_provider: bool = False
    """Observed because its provider reports its nodes, without `install`."""
    has_own_profiler: bool = False
    """The provider of Python kernels, which reports its nodes itself, is in the session."""
    selected: dict[str, list[str]] = field(default_factory=dict)
    """The options ``only`` and ``nodes`` of the provider of kernels in Python, as given."""
    optimization_level: str = ""
    """Its ``graph_optimization_level``, if that leaves out fusions."""
    active_runs: int = 0
    """Number of runs in progress, counted while ONNX Runtime profiles the whole session."""


_lock = fork_safe_lock()
_recording = False
_delays_nodes = False
_mode: OrtNodes = "auto"
_default_mode: OrtNodes = "auto"
_sessions: weakref.WeakKeyDictionary[Any, ObservedSession] = weakref.WeakKeyDictionary()
_by_number: dict[int, ObservedSession] = {}
_session_profiled: weakref.WeakSet[Any] = weakref.WeakSet()
_uncertain: set[int] = set()
_unobserved_runs: dict[str, int] = {}
_disabled_reasons: list[str] = []
_default_options: Any = None
# The user's run options with profiling enabled for a recording ...
_user_run_options: weakref.WeakSet[Any] = weakref.WeakSet()
# ... or enabled by the user, with their file prefix.
_file_prefixes: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def recording() -> bool:
    """Whether runs are being profiled."""
    return _recording


def set_default_mode(mode: str) -> None:
    """Set which runs are recorded node by node in recordings without their own mode."""
    global _default_mode  # noqa: PLW0603
    _default_mode = check_ort_nodes(mode)


def mode() -> OrtNodes:
    """Return the mode of the current recording, or of the last one."""
    return _mode


def raise_mode(mode: str | None) -> None:
    """Record at least as many nodes as `mode` requires, until the recording ends."""
    global _mode  # noqa: PLW0603
    _mode = max(_mode, check_ort_nodes(mode or _default_mode), key=ORT_NODES.index)


def start(mode: str | None = None) -> None:
    """Start profiling the runs of observed sessions; `mode` None is the default mode."""
    global _recording, _mode  # noqa: PLW0603
    _mode = check_ort_nodes(mode or _default_mode)
    with _lock:
        _unobserved_runs.clear()
        run_log.begin_recording()
        run_file_notes.clear()
        _uncertain.clear()
        unprofiled_runs.clear_calls()
        failed_runs.clear()
        # Runs in progress are not recorded. Nodes on their pool threads would be mistaken for
        # nodes of the next run.
        _uncertain.update(
            observed_session.number
            for observed_session in (_sessions[session] for session in _session_profiled)
            if observed_session.active_runs and observed_session.number is not None
        )
    _recording = True


def stop() -> None:
    """Stop profiling runs, and restore the user's run options."""
    global _recording  # noqa: PLW0603
    _recording = False
    run_log.end_recording()
    _restore_run_options()
    with _lock:
        session_profiled = list(_session_profiled)
    for session in session_profiled:
        observed_session = _sessions[session]
        if observed_session.captures_graphs and observed_session.ran:
            session._sess.end_profiling()  # noqa: SLF001 - bypasses our own wrapper
            end_session_profile(session)


def delays_nodes() -> bool:
    """Whether runs are profiled outside of recordings, so that the ends of nodes are known."""
    return _delays_nodes


def set_delays_nodes(delays_nodes: bool) -> None:  # noqa: FBT001
    """Profile runs outside of recordings from now on, or no longer."""
    global _delays_nodes  # noqa: PLW0603
    _delays_nodes = delays_nodes
    if not delays_nodes:
        _restore_run_options()


def _restore_run_options() -> None:
    with _lock:
        changed_options = list(_user_run_options)
        _user_run_options.clear()
    for options in changed_options:
        _native.ort_profile_run(run_options_pointer(options), None)


def notes() -> list[str]:
    """Return notes on sessions that ran without being observed."""
    with _lock:
        unobserved = list(_unobserved_runs.items())
    return [
        *_disabled_reasons,
        *(f"{reason}. {runs:,} of its runs have no nodes." for reason, runs in unobserved),
        *run_file_notes.notes(),
    ]


def disable_with_reason(reason: str | None) -> None:
    """Set the reason, shown in every profile, why no session can be observed; None clears it."""
    _disabled_reasons[:] = [] if reason is None else [reason]


def register(session: object, observed_session: ObservedSession) -> None:
    """Register the observation state of a session."""
    with _lock:
        _sessions[session] = observed_session
        if observed_session.number is not None:
            _by_number[observed_session.number] = observed_session
        if observed_session.session_profile:
            _session_profiled.add(session)
    if not observed_session.session_profile:
        _attach_runs(session, observed_session)


def end_session_profile(session: object) -> None:
    """Record that ONNX Runtime no longer profiles the whole session."""
    with _lock:
        _session_profiled.discard(session)
        _sessions[session].session_profile = False
    unprofiled_runs.attach_baseline(session)
    _attach_runs(session, _sessions[session])


def _attach_runs(session: object, observed_session: ObservedSession) -> None:
    """Let the runs of this session be recorded without their nodes."""
    if observed_session.number is not None and not observed_session.captures_graphs:
        # The device work of a node on a pool thread cannot be distinguished from other work. The
        # kernels of the host device lack their nodes unless these are recorded.
        must_record_all = observed_session.has_own_profiler or (
            observed_session.uses_pool_threads and has_accelerator(observed_session.providers)
        )
        runs = choice_of_runs.SessionRuns(observed_session.number, must_record_all=must_record_all)
        setattr(session, choice_of_runs.ATTRIBUTE, runs)


def counts_runs() -> bool:
    """Whether any session is profiled as a whole, so that its active runs must be counted."""
    return bool(_session_profiled)


@contextmanager
def active_run(session: object, *, returns_early: bool) -> Iterator[None]:
    """Count a run of a session that is profiled as a whole while the run is in progress.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    returns_early
        Whether the run continues after the call. Its end is then unknown, and the run stays
        counted.
    """
    observed_session = _sessions.get(session)
    if observed_session is None or not observed_session.session_profile:
        yield
        return
    with _lock:
        observed_session.active_runs += 1
    try:
        yield
    finally:
        if not returns_early:
            with _lock:
                observed_session.active_runs -= 1


def uncertain_sessions() -> list[int]:
    """Return the sessions profiled as a whole with runs that began before the recording."""
    return sorted(_uncertain)


def observed_by_number(number: int) -> ObservedSession:
    """Return the state of the session with this number, even if the session is deleted."""
    return _by_number.get(number) or ObservedSession(session_title(None), number)


def all_sessions() -> list[Any]:
    """Return the sessions that were created since the observer was installed, and still exist."""
    return list(_sessions)


def observed(session: object) -> ObservedSession | None:
    """Return the state of a session; None if it was created without `install`."""
    return _sessions.get(session)


def run_options_for(session: object, run_options: Any) -> Any:  # noqa: ANN401
    """Return the run options for a run of `session` during a recording.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    run_options
        The run options passed by the user, or None.

    Returns
    -------
    object
        `run_options` with profiling enabled, or shared options if it is None. If the session is
        not observed, `run_options` unchanged.
    """
    observed_session = _sessions.get(session)
    if observed_session is None or observed_session.number is None:
        _count_unobserved_run(session, observed_session)
        return run_options
    observed_session.ran = True
    if observed_session.session_profile:
        return run_options
    if run_options is None:
        return _default_run_options()
    if not is_profiled(run_options):
        _native.ort_profile_run(run_options_pointer(run_options), NO_FILE)
        with _lock:
            _user_run_options.add(run_options)
    return run_options


def begin_run(session: object, run_options: Any, key: object) -> RunInProgress | None:  # noqa: ANN401
    """Begin a run whose nodes need not be recorded.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    run_options
        The run options passed by the user, or None.
    key
        Its input key; see `epprof_nb.recording.onnxruntime.unprofiled_runs.input_key`.

    Returns
    -------
    run
        The run, or None if its nodes must be recorded.
    """
    runs: choice_of_runs.SessionRuns | None = getattr(session, choice_of_runs.ATTRIBUTE, None)
    if _mode == "every" or runs is None or file_prefix(run_options) is not None:
        return None
    if _mode == "off":
        key = None
    elif runs.must_record_all:
        return None
    run = RunInProgress(runs, key)
    if run.records_nodes or run_options is None or not _user_run_options:
        return run
    if run_options in _user_run_options:
        with _lock:
            _user_run_options.discard(run_options)
        _native.ort_profile_run(run_options_pointer(run_options), None)
    return run


def is_profiled(run_options: object) -> bool:
    """Whether profiling is enabled in these run options, by the user or by a recording."""
    return run_options is not None and (
        run_options in _file_prefixes or run_options in _user_run_options
    )


def enable(run_options: object, file_prefix: str) -> None:
    """Enable profiling to a file for runs with these options."""
    _native.ort_profile_run(run_options_pointer(run_options), file_prefix)
    _file_prefixes[run_options] = file_prefix


def has_run_profile_files() -> bool:
    """Whether runs with any options write profile files."""
    return bool(_file_prefixes)


def file_prefix(run_options: object) -> str | None:
    """Return the prefix of the profile files that runs with these options write, if any."""
    if run_options is None or not _file_prefixes:  # usual; a look-up costs more
        return None
    return _file_prefixes.get(run_options)


def set_file_prefix(run_options: object, prefix: str) -> None:
    """Set the prefix of the profile file that the next run with these options writes."""
    _native.ort_profile_run(run_options_pointer(run_options), prefix)


def disable(run_options: object) -> None:
    """Disable profiling again; see `enable`."""
    _native.ort_profile_run(run_options_pointer(run_options), None)
    _file_prefixes.pop(run_options, None)


def _default_run_options() -> Any:  # noqa: ANN401
    global _default_options  # noqa: PLW0603
    if _default_options is None:
        import onnxruntime

        options = onnxruntime.RunOptions()
        _native.ort_profile_run(run_options_pointer(options), NO_FILE)
        # Never changed, and shared by all runs without options of their own.
        _default_options = options
    return _default_options


def _count_unobserved_run(session: object, observed_session: ObservedSession | None) -> None:
    if observed_session is None:
        path = getattr(session, "_model_path", None)
        reason = (
            f"{session_title(path)} is not observed: it was created before "
            "epprof_nb.onnxruntime.install(). Create it again"
        )
    else:
        reason = f"{observed_session.name} is not observed: {observed_session.reason}"
    with _lock:
        _unobserved_runs[reason] = _unobserved_runs.get(reason, 0) + 1
