"""Profile, and `profile` and `load`, which return one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self

from epprof_nb import _native
from epprof_nb.core.options import FRAMEWORKS, Options
from epprof_nb.profiles.added_time_in_info import state_added_time
from epprof_nb.profiles.analyses import ProfileAnalyses
from epprof_nb.recording.out_of_memory.recognize_errors import allocation_error
from epprof_nb.recording.out_of_memory.torch_failures import Watch
from epprof_nb.recording.session import marked_steps, session

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from types import TracebackType

    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.recording.session.session import Session
    from epprof_nb.views.plots.figures import Figures
    from epprof_nb.views.view import View


_NOTE_FORKED = (
    "This process was forked inside the profile, which only the parent process records. Start a "
    "new profile in the child."
)


class Profile(ProfileAnalyses):
    """Tables of one profiling session, with their analyses, views and files.

    Parameters
    ----------
    tables
        Table name to `Table`; tables left out are empty.
    info
        Metadata of the recording, such as devices and dropped records; JSON-serialisable.
    sources
        Cell name (such as ``In[3]``) to the cell's source text.

    Notes
    -----
    A table consists of columns (NumPy arrays). Each access builds a new DataFrame, so changes of a
    DataFrame do not change the profile.
    """

    baseline: Profile | None = None
    """Profile of the baseline's code if its repeats alternated with the repeats of this profile
    (``--interleave``), for `epprof_nb.compare`; None otherwise. `save` does not include it."""

    @classmethod
    def from_data(cls, data: ProfileData) -> Self:
        """Return a profile of `data`; the tables are shared, not copied."""
        return cls(data.tables, data.info, data.sources)

    def summary(
        self,
        max_chars: int = 8_000,
        format: Literal["text", "json"] = "text",  # noqa: A002 - as in other libraries
        *,
        redact: bool | str | Iterable[str] = False,
        sql: bool = True,
    ) -> str:
        """Summary of the profile for people, programs and language models.

        Parameters
        ----------
        max_chars
            Maximum length of the result, at least 500, whatever the size of the profile. The least
            important parts are left out and counted.
        format
            ``"text"``, or ``"json"`` for an object with the same parts.
        redact
            Parts to leave out; see `redacted`.
        sql
            Whether a text includes the queries, which language models need. False returns a shorter
            text with units and aligned columns. JSON always has them.

        Returns
        -------
        text
            Totals, findings, notes and rankings. Each number and ranking has the query for
            `Profile.sql` that reproduces it, and each finding the query of its evidence. A text
            lists the queries at its end. Names longer than 100 characters are shortened.

        Raises
        ------
        ValueError
            If an argument is not as described.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> print(synthetic_profile(activities=100).summary().splitlines()[3])
        Totals:
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.summary.summary_facts import summary_of
        from epprof_nb.analysis.summary.summary_text import render

        made = summary_of(index_of(self.redacted(redact)))
        return render(made, max_chars, format, sql=sql)

    def timeline(self, *, select: pd.DataFrame | None = None) -> View:
        """Return a view of the profile that opens on the timeline.

        Parameters
        ----------
        select
            Rows of `activities`, `ops` or `api_calls` of this profile, in any order and with their
            original index. The timeline highlights them and opens at their position.

        Raises
        ------
        TypeError, ValueError
            If `select` does not hold rows of this profile; the message says what to pass.

        Examples
        --------
        >>> kernels = prof.activities[prof.activities["kind"] == "kernel"]  # doctest: +SKIP
        >>> prof.timeline(select=kernels.nlargest(10, "duration_ns"))  # doctest: +SKIP
        """
        from epprof_nb.views.view import View

        return View(self, tab="timeline", select=select, write_trace=self.to_chrome)

    def breakdown(
        self,
        by: Literal[
            "op", "op_type", "node", "kernel", "line", "stream", "module", "tree", "module_tree"
        ] = "op",
    ) -> View:
        """Return a view of the profile that opens on the breakdown.

        Parameters
        ----------
        by
            The table shown first: ``"op"`` for `by_op` and so on; ``"tree"`` for the icicle of
            `by_path`; ``"module_tree"`` for its icicle of modules. Tables of modules are in a
            separate tab if the profile has modules.

        Returns
        -------
        view
            The view; its ``to_frame()`` returns the DataFrame of the table.

        Raises
        ------
        ValueError
            If `by` is unknown.
        """
        from epprof_nb.views.view import View

        return View(self, tab="breakdown", by=by, write_trace=self.to_chrome)

    def lines(self) -> View:
        """Return a view of the profile that opens on the source, with device time at each line."""
        from epprof_nb.views.view import View

        return View(self, tab="source", write_trace=self.to_chrome)

    def redacted(self, redact: bool | str | Iterable[str] = True) -> Profile:  # noqa: FBT001, FBT002
        """Return a copy to share, without source, paths, host names or shapes.

        Parameters
        ----------
        redact
            Parts to remove: ``"source"``, ``"paths"``, ``"hosts"``, ``"shapes"``, several of these,
            or True for all; see `epprof_nb.files.redaction.redacted_columns.redacted`.

        Raises
        ------
        ValueError
            If a part is unknown.
        """
        from epprof_nb.files.redaction.redacted_columns import redacted

        copy = redacted(self, redact)
        return self if copy is self else Profile.from_data(copy)

    @property
    def plot(self) -> Figures:
        """Matplotlib figures: timeline, breakdown, utilisation, kernels and gaps."""
        from epprof_nb.views.plots.figures import Figures

        return Figures(self)

    def save(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write the profile to an ``.epprof`` file, which `epprof_nb.load` reads.

        `redact` selects what to remove from the file; see `redacted`.
        """
        from epprof_nb.files.epprof.reading_writing import save

        save(self.redacted(redact), path)

    def to_chrome(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a Chrome trace (JSON), which Perfetto can open.

        It is compressed if the name ends in ``.gz`` or has no suffix.
        `redact` selects what to remove from the file; see `redacted`.
        """
        from epprof_nb.files.exporters.chrome_trace import to_chrome

        to_chrome(self.redacted(redact), path)

    def to_perfetto(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a trace in Perfetto's own format, for https://ui.perfetto.dev.

        It is compressed if the name ends in ``.gz``. `redact` selects what to remove from the file;
        see `redacted`. The export requires ``pip install epprof-nb[perfetto]`` and raises
        ImportError without it.
        """
        from epprof_nb.files.exporters.perfetto import to_perfetto

        to_perfetto(self.redacted(redact), path)

    def to_speedscope(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write flame graphs for https://www.speedscope.app: device time by op, and host threads.

        Each stream is a profile whose stacks lead from the statement to the kernel. The file is
        compressed if its name ends in ``.gz``. `redact` selects what to remove from it; see
        `redacted`.
        """
        from epprof_nb.files.exporters.speedscope import to_speedscope

        to_speedscope(self.redacted(redact), path)

    def to_collapsed(
        self,
        path: str | PathLike[str],
        *,
        measure: Literal["device_ns", "launches", "waits", "wait_ns"] = "device_ns",
        library: bool = True,
        redact: bool | str | Iterable[str] = False,
    ) -> None:
        """Write the Python stacks as collapsed stacks, the input of flame graphs.

        Each line is a path of frames, from the outermost one down to a kernel, and its weight:
        `measure`, a column of `by_stack`. `library` says whether to write frames of libraries;
        `redact` selects what to remove from the file; see `redacted`.
        """
        from epprof_nb.files.exporters.collapsed import to_collapsed

        to_collapsed(self.redacted(redact), path, measure=measure, library=library)

    def to_html(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a self-contained HTML page with every event. It needs neither kernel nor network.

        A million activities with their API calls take about 10 MB. The page inflates the events of
        the window in view. `redact` selects what to remove from the page; see `redacted`.
        """
        from epprof_nb.views.view import write_html

        write_html(self.redacted(redact), path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from epprof_nb.views.view import View

        return View(self).mimebundle()

    def __repr__(self) -> str:
        from epprof_nb.analysis.summary.headline import headline_text

        return headline_text(self)


class profile(_native.GuardedContext):  # noqa: N801 - used as a function, like contextlib's own
    """Profile the body of a ``with`` statement.

    A body that calls `epprof_nb.step` is divided into steps, which `epprof_nb.compare` compares.
    Step 0 lasts from the start of the body to the first call.

    Parameters
    ----------
    detail, max_records, time_limit_s, ort_nodes, frameworks, stacks, samples, own, library
        See `epprof_nb.core.options.Options`.

    Yields
    ------
    Profile
        Empty until the body has ended, with or without an exception; then it has the tables.

    Examples
    --------
    >>> import epprof_nb
    >>> with epprof_nb.profile() as prof:
    ...     with epprof_nb.op("work"):
    ...         pass
    >>> prof.ops["name"].tolist()
    ['work']
    """

    def __init__(
        self,
        *,
        detail: str = "default",
        max_records: int = 5_000_000,
        time_limit_s: float | None = None,
        ort_nodes: str | None = None,
        frameworks: Iterable[str] = FRAMEWORKS,
        stacks: bool = True,
        samples: bool = True,
        own: Iterable[str] = (),
        library: Iterable[str] = (),
    ) -> None:
        self._options = Options(
            detail,
            max_records,
            time_limit_s,
            ort_nodes,
            frameworks=_texts(frameworks),
            stacks=stacks,
            samples=samples,
            own=_texts(own),
            library=_texts(library),
        )
        self._entered: list[tuple[Session, Profile, Watch]] = []

    def _make(self) -> tuple[Session, Profile, Watch]:
        return session.Session(self._options), Profile(), Watch()

    def _enter(self, made: tuple[Session, Profile, Watch]) -> Profile:
        opened, result, watch = made
        watch.begin()
        opened.open()
        marked_steps.on_step(opened.mark_step)
        return result

    def _exit(
        self,
        made: tuple[Session, Profile, Watch],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        opened, result, watch = made
        if opened.belongs_to_parent:
            result.info["notes"] = [_NOTE_FORKED]
            return
        finished = opened.stop(error=None if kind is None else kind.__name__)
        result.__dict__.update(finished.__dict__)  # all or nothing
        state_added_time(result)
        # A notebook and `epprof run` explain the error themselves, below the traceback.
        if error is not None and watch.is_open and allocation_error(error) is not None:
            from epprof_nb.profiles.out_of_memory_in_scripts import print_explanation

            print_explanation(error, watch.before)

    def _end(self, made: tuple[Session, Profile, Watch]) -> None:
        opened, _, watch = made
        opened.abort()  # does nothing if it has stopped
        watch.end()
        with suppress(ValueError):  # `_enter` was interrupted, or this was
            marked_steps.off_step(opened.mark_step)

    def __call__(self, *_: object) -> Self:
        """Raise TypeError: this is not a decorator."""
        raise TypeError(
            "profile() is a context manager: write `with epprof_nb.profile() as prof:`. To name "
            'a function as an op, decorate it with @epprof_nb.op("name").'
        )


def _texts(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def load(path: str | PathLike[str], *, max_bytes: int = 16 * 2**30) -> Profile:
    """Read a profile from an ``.epprof`` file, which may be from an untrusted source.

    Parameters
    ----------
    path
        Path of the file.
    max_bytes
        Maximum memory of its tables in bytes.

    Returns
    -------
    Profile
        The profile. Tables and columns of a newer minor version of the format are skipped and
        listed in ``profile.info["notes"]``.

    Raises
    ------
    ProfileFileError
        If the file is not an ``.epprof`` file, is damaged or too large, or needs a newer version.
    OSError
        If the file cannot be opened.
    """
    from epprof_nb.files.epprof import reading_writing as epprof

    return Profile.from_data(epprof.read(path, max_bytes=max_bytes))


def read_trace(path: str | PathLike[str], *, max_bytes: int = 16 * 2**30) -> Profile:
    """Read a trace of another tool, which may be from an untrusted source.

    Parameters
    ----------
    path
        Path of a trace of PyTorch's profiler (Kineto), a JSON profile of ONNX Runtime, or a Chrome
        trace, such as one of viztracer or `Profile.to_chrome`; plain or compressed with gzip. They
        are distinguished by their content. The file is read in pieces.
    max_bytes
        Maximum memory of the tables in bytes.

    Returns
    -------
    Profile
        The profile. Columns without values in the trace are missing; ``profile.info["notes"]``
        lists what was skipped, with counts.

    Raises
    ------
    ProfileFileError
        If the file is not such a trace, or is too large.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import epprof_nb
    >>> epprof_nb.read_trace("rank0.pt.trace.json.gz").by_op()  # doctest: +SKIP
    """
    from epprof_nb.files.readers import read_trace as traces

    return Profile.from_data(traces.read_trace(path, max_bytes=max_bytes))
