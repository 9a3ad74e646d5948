"""Which ONNX Runtime sessions are observed, and the profiling of each of their runs.

A run that is profiled by itself has a profiler of its own in the observer, so its nodes belong to
exactly one run, also when runs overlap. Python's ``RunOptions`` cannot ask for that; the C API
can, from release 1.25 (``OrtApi::RunOptionsEnableProfiling``), and the observer calls it.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.recorders.onnxruntime import unprofiled_runs as ort_pace

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_FILE = "/dev/null/epprof"
"""A prefix under which no file can be made: ONNX Runtime then profiles without writing one."""

# pybind11's name of the C++ ABI it was built for (PYBIND11_PLATFORM_ABI_ID), as all Linux wheels
# from 1.25 have it.
_ABI = b"system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1"


class Seen(threading.local):
    """CUDA graphs whose replays were seen on a thread: the CUDA provider keeps graphs by thread."""

    def __init__(self) -> None:
        self.graphs: set[str] = set()


@dataclass(slots=True)
class Sight:
    """How a session is observed: by its number, or why not."""

    name: str
    number: int | None = None
    reason: str | None = None
    providers: tuple[str, ...] = ()
    """The execution providers it has, as the user sees them."""
    refused: tuple[str, ...] = ()
    """Providers that the user asked for and ONNX Runtime did not give it."""
    session_profile: bool = False
    """ONNX Runtime profiles the whole session, and would warn at each run profiled by itself."""
    graphs: bool = False
    """We had it do so, for the CUDA graphs that the session captures; see `ort_graphs`."""
    replayed: Seen = field(default_factory=Seen)
    """See `ort_replays`."""
    ran: bool = False
    """A run of it was recorded."""
    going: int = 0
    """Runs going on, counted while ONNX Runtime profiles the whole session."""


_sights: weakref.WeakKeyDictionary[Any, Sight] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_recording = False
_unseen: dict[str, int] = {}
_refused: list[str] = []
_users_own: weakref.WeakSet[Any] = weakref.WeakSet()  # the user's options, profiled by us ...
# ... and by the user: options -> start of the files' names.
_profiled: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_whole: weakref.WeakSet[Any] = weakref.WeakSet()  # sessions profiled as a whole
_uncertain: set[int] = set()
_seen: dict[int, Sight] = {}
_fresh: Any = None


def recording() -> bool:
    """Whether runs are to be profiled now."""
    return _recording


def start() -> None:
    """Profile the runs of observed sessions from now on."""
    global _recording  # noqa: PLW0603
    with _lock:
        _unseen.clear()
        _uncertain.clear()
        ort_pace.forget_calls()
        # Runs that began before are not recorded: their pool threads' nodes would seem to be of
        # the next run.
        _uncertain.update(
            sight.number
            for sight in (_sights[session] for session in _whole)
            if sight.going and sight.number is not None
        )
    _recording = True


def stop() -> None:
    """Profile runs no longer, and leave the user's run options as they were."""
    global _recording  # noqa: PLW0603
    _recording = False
    with _lock:
        ours, whole = list(_users_own), list(_whole)
        _users_own.clear()
    for options in ours:
        _native.ort_profile_run(_pointer(options), None)
    for session in whole:
        sight = _sights[session]
        if sight.graphs and sight.ran:
            session._sess.end_profiling()  # noqa: SLF001 - past our own wrapper
            end_whole(session)


def notes() -> list[str]:
    """Name the sessions that ran unobserved."""
    with _lock:
        unseen = list(_unseen.items())
    return [*_refused, *(f"{what}. {runs:,} of its runs show no nodes." for what, runs in unseen)]


def refuse(why: str | None) -> None:
    """Say in every profile why no session can be observed; None: they can."""
    _refused[:] = [] if why is None else [why]


def see(session: object, sight: Sight) -> None:
    """Remember how a session is observed."""
    with _lock:
        _sights[session] = sight
        if sight.number is not None:
            _seen[sight.number] = sight
        if sight.session_profile:
            _whole.add(session)


def end_whole(session: object) -> None:
    """Remember that a session is no longer profiled as a whole."""
    with _lock:
        _whole.discard(session)
        _sights[session].session_profile = False
    ort_pace.follow(session)


def count_runs() -> bool:
    """Whether a session is profiled as a whole, so that its runs must be counted."""
    return bool(_whole)


@contextmanager
def going(session: object, *, returns_early: bool) -> Iterator[None]:
    """Count a run of a session that is profiled as a whole, while it is going on.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    returns_early
        The run goes on after the call: its end is not known, and it counts for good.
    """
    sight = _sights.get(session)
    if sight is None or not sight.session_profile:
        yield
        return
    with _lock:
        sight.going += 1
    try:
        yield
    finally:
        if not returns_early:
            with _lock:
                sight.going -= 1


def uncertain_sessions() -> list[int]:
    """Return the sessions profiled as a whole with runs from before the recording."""
    return sorted(_uncertain)


def sight_by_number(number: int) -> Sight:
    """Return how the session with this number was observed, also when it is gone."""
    return _seen.get(number) or Sight(describe(None), number)


def sight_of(session: object) -> Sight | None:
    """Return how a session is observed; None for one made without `install`."""
    return _sights.get(session)


def options_for(session: object, given: Any) -> Any:  # noqa: ANN401
    """Return the run options for a run of `session` while recording.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    given
        The run options the user passed, or None.

    Returns
    -------
    object
        `given` itself, now with profiling on; fresh options where it is None; `given` unchanged
        where the session is not observed.
    """
    sight = _sights.get(session)
    if sight is None or sight.number is None:
        _count_unseen(session, sight)
        return given
    sight.ran = True
    if sight.session_profile:
        return given
    if given is None:
        return _fresh_options()
    if given not in _profiled and given not in _users_own:
        _native.ort_profile_run(_pointer(given), NO_FILE)
        with _lock:
            _users_own.add(given)
    return given


def is_profiled(run_options: object) -> bool:
    """Whether these run options have profiling on, for the user or for us."""
    return run_options is not None and (run_options in _profiled or run_options in _users_own)


def enable(run_options: object, file_prefix: str) -> None:
    """Turn profiling to a file on for the runs made with these options."""
    _native.ort_profile_run(_pointer(run_options), file_prefix)
    _profiled[run_options] = file_prefix


def any_files() -> bool:
    """Whether runs with any options write files."""
    return bool(_profiled)


def file_prefix(run_options: object) -> str | None:
    """Return the start of the names of the files that runs with these options write, if any."""
    return _profiled.get(run_options) if run_options is not None else None


def rename(run_options: object, prefix: str) -> None:
    """Have the next run with these options write a file whose name begins so."""
    _native.ort_profile_run(_pointer(run_options), prefix)


def disable(run_options: object) -> None:
    """Turn it off again."""
    _native.ort_profile_run(_pointer(run_options), None)
    _profiled.pop(run_options, None)


def _fresh_options() -> Any:  # noqa: ANN401
    global _fresh  # noqa: PLW0603
    if _fresh is None:
        import onnxruntime

        options = onnxruntime.RunOptions()
        _native.ort_profile_run(_pointer(options), NO_FILE)
        # Nobody changes these: all runs without options of their own share them.
        _fresh = options
    return _fresh


def _pointer(run_options: Any) -> Any:  # noqa: ANN401
    """Return a capsule of the ``OrtRunOptions`` inside a Python ``RunOptions``.

    pybind11 gives it to who names the C++ type (its conduit: ``_pybind11_conduit_v1_``).
    """
    try:
        capsule = run_options._pybind11_conduit_v1_(
            _ABI, _native.ort_run_options_type(), b"raw_pointer_ephemeral"
        )
    except AttributeError:
        capsule = None
    if capsule is None:
        raise CaptureError(
            f"A {type(run_options).__name__} gives no access to the OrtRunOptions inside it, so "
            "its runs cannot be profiled. Pass onnxruntime.RunOptions; if it is one, this build "
            "of ONNX Runtime is not known to this version of epprof_nb: please report it."
        )
    return capsule


def _count_unseen(session: object, sight: Sight | None) -> None:
    if sight is None:
        path = getattr(session, "_model_path", None)
        what = (
            f"{describe(path)} was made before epprof_nb.onnxruntime.install(), so it is not "
            "observed. Make it again"
        )
    else:
        what = f"{sight.name} is not observed: {sight.reason}"
    with _lock:
        _unseen[what] = _unseen.get(what, 0) + 1


def describe(path: str | None) -> str:
    """Name a session by its model's file."""
    return "An ONNX Runtime session" if path is None else f"The ONNX Runtime session of {path}"
