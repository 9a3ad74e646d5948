"""Profile, and `profile` and `load`, which return one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from epprof_nb import _native
from epprof_nb.capture import session
from epprof_nb.core.options import FRAMEWORKS, Options
from epprof_nb.data.columns import with_columns
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from types import TracebackType

    import pandas as pd

    from epprof_nb.capture.session import Session
    from epprof_nb.views.plots.figures import Figures
    from epprof_nb.views.view import View


_NOTE_FORKED = (
    "This process was forked inside the profile, which only the parent process records. Start a "
    "new profile in the child."
)


class Profile(ProfileData):
    """Tables of one profiling session, with the analyses, views and files made from them.

    Parameters
    ----------
    tables
        Table name to `Table`; tables left out are empty.
    info
        What was recorded, on which devices, and what was dropped; JSON-serialisable.
    sources
        Cell name (as ``In[3]``) to the cell's source text.

    Notes
    -----
    The tables are columns (NumPy arrays). Each access builds a new DataFrame, so changing it does
    not change the profile.
    """

    baseline: Profile | None = None
    """Profile of the baseline's code whose repeats alternated with those of this one
    (``--interleave``), for `epprof_nb.compare`; None otherwise. `save` does not include it."""

    @classmethod
    def from_data(cls, data: ProfileData) -> Self:
        """Return a profile of `data`; the tables are shared, not copied."""
        return cls(data.tables, data.info, data.sources)

    @with_columns("joined")
    def joined(
        self,
        *,
        args: Iterable[str] | None = None,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Activities, each with its op, named range and arguments, API call and launch delay.

        Parameters
        ----------
        args
            Names of the arguments of ranges that become columns; all if None.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> by_layer = prof.joined().groupby("arg_layer")["duration_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.joined import joined

        return joined(self, args=args, attribution=attribution)

    @with_columns("by_op")
    def by_op(
        self,
        *,
        args: Iterable[str] = (),
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each op name.

        Parameters
        ----------
        args
            Names of arguments to group by as well, as in ``prof.by_op(args=["layer"])``.
        attribution
            ``"launch"`` attributes an activity to the op that launched it, so those of a CUDA
            graph to the op that replayed it; ``"capture"`` attributes the activities of a graph
            to the op that captured them.

        Returns
        -------
        frame
            {columns}

            Device times are sums over activities: they exceed the wall time where activities
            overlap.

        Raises
        ------
        ValueError
            If `attribution` is unknown, or no op has one of `args`.
        """
        from epprof_nb.analysis.by_op import by_op

        return by_op(self, args=args, attribution=attribution)

    @with_columns("by_kernel")
    def by_kernel(self, by: Literal["name", "short_name"] = "name") -> pd.DataFrame:
        """Launches and device time of each kernel name.

        Parameters
        ----------
        by
            ``"name"`` for one row per full name, ``"short_name"`` for one row per short name, as
            ``reduce_kernel [sum f32]``. Several full names can share a short name; the column
            ``names`` counts them.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_kernel import by_kernel

        return by_kernel(self, by)

    @with_columns("by_stream")
    def by_stream(self) -> pd.DataFrame:
        """Busy time, activities, bytes and launch delay of each stream of a device.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_stream import by_stream

        return by_stream(self)

    @with_columns("by_line", "by_line_self")
    def by_line(
        self,
        *,
        inclusive: bool = True,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Device and host time of each line of the profiled cells.

        Parameters
        ----------
        inclusive
            Whether a line includes the statements nested in it. A table never has columns of both
            kinds: those of a self time or number begin with ``self_``.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_op import by_line

        return by_line(self, inclusive=inclusive, attribution=attribution)

    @with_columns("by_repeat")
    def by_repeat(self) -> pd.DataFrame:
        """Wall, device and idle time and device work of each repeat of the code (``--repeat``).

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_repeat()["wall_ns"].describe()  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_repeat import by_repeat

        return by_repeat(self)

    @with_columns("by_module")
    def by_module(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Device and host time of each module of PyTorch, forward and backward.

        Parameters
        ----------
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_module().loc["model.layers.0"]  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_module import by_module

        return by_module(self, attribution=attribution)

    @with_columns("by_step")
    def by_step(self) -> pd.DataFrame:
        """Device and host time of each step of a training loop, by phase.

        A step ends when the ``step`` of the optimizer returns, or where `epprof_nb.step` says.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_step()["data_ns"].sum() / prof.by_step()["wall_ns"].sum()  # doctest: +SKIP
        """
        from epprof_nb.analysis.by_step import by_step

        return by_step(self)

    @with_columns("by_path")
    def by_path(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Device and host time of each path from the session through cells and ops to kernels.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_path import by_path

        return by_path(self, attribution=attribution)

    @with_columns("by_node")
    def by_node(self, *, attribution: Literal["launch", "capture"] = "capture") -> pd.DataFrame:
        """Host time, device time and copies of each node of the ONNX Runtime sessions.

        Parameters
        ----------
        attribution
            ``"capture"`` counts the activities of a graph at the nodes that captured them, as if
            these had run; ``"launch"`` at the op that replayed it, which is no node.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_node import by_node

        return by_node(self, attribution=attribution)

    @with_columns("by_op_type")
    def by_op_type(self, *, attribution: Literal["launch", "capture"] = "capture") -> pd.DataFrame:
        """Host and device time of each ONNX operator and execution provider.

        Parameters
        ----------
        attribution
            See `by_node`.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_node import by_op_type

        return by_op_type(self, attribution=attribution)

    @with_columns("by_run")
    def by_run(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Host and device time of each run of the ONNX Runtime sessions.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.by_node import by_run

        return by_run(self, attribution=attribution)

    @with_columns("gaps")
    def gaps(self, min_ns: int = 1_000_000) -> pd.DataFrame:
        """Idle intervals of each device, and the op that the host ran meanwhile.

        Parameters
        ----------
        min_ns
            Shortest interval, nanoseconds. With 0 the intervals add up to the idle time.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).gaps()[["position", "line"]]
          position  line
        0   before     1
        """
        from epprof_nb.analysis.idle import gaps

        return gaps(self, min_ns)

    @with_columns("insights")
    def insights(self) -> pd.DataFrame:
        """Findings on what to change first, with remedies and gains.

        Returns
        -------
        frame
            {columns}

            Only findings that can save 2 % or more of the wall time are shown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).insights()[["rank", "kind", "line"]]
           rank      kind  line
        0     1      idle     1
        1     2  hot line    10
        """
        from epprof_nb.analysis.insights import insights

        return insights(self)

    def evidence(self, insight: Mapping[str, Any] | int) -> pd.DataFrame:
        """Return the rows behind a finding.

        Parameters
        ----------
        insight
            A row of `insights`, as ``prof.insights().iloc[0]``, or its rank.

        Returns
        -------
        frame
            Rows of `activities`, `ops` or `api_calls`, with their index; `timeline` highlights
            them.

        Raises
        ------
        TypeError
            If `insight` is neither a row nor a rank.
        ValueError
            If the profile has no such finding.

        Examples
        --------
        >>> prof.timeline(select=prof.evidence(1))  # doctest: +SKIP
        """
        from epprof_nb.analysis.insights import evidence

        return evidence(self, insight)

    @with_columns("overlap")
    def overlap(self) -> pd.DataFrame:
        """Time in which each device computed, copied, communicated or idled.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.overlap import overlap

        return overlap(self)

    @with_columns("launches")
    def launches(self) -> pd.DataFrame:
        """Launches of each statement: API time, delay, queue, and what a graph would save.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.launches import launches

        return launches(self)

    @with_columns("transfers")
    def transfers(self) -> pd.DataFrame:
        """Copies of each statement: bandwidth, kinds of memory, overlap with kernels.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.transfers import transfers

        return transfers(self)

    @with_columns("waits")
    def waits(self) -> pd.DataFrame:
        """Waits of the host for a device, and how long the device idled afterwards.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.waits import waits

        return waits(self)

    @with_columns("steadiness")
    def steadiness(self) -> pd.DataFrame:
        """Phase of each repeat or iteration of the code: warm-up, steady or outlier.

        Returns
        -------
        frame
            {columns}
        """
        from epprof_nb.analysis.steadiness import steadiness

        return steadiness(self)

    @with_columns("critical_path", "critical_path_op")
    def critical_path(
        self,
        by: Literal["step", "op"] = "step",
        *,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Longest chain of work and waits from the start of the profile to its end.

        Only what is on this path can make the profiled code faster.

        Parameters
        ----------
        by
            ``"step"`` for the steps of the path, in order; ``"op"`` for the time of each op on it,
            and what the op could save at most: the path is computed again without its time.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph's replay are on the path like others. Records do not say
            for which event a stream waited: the work of another stream that was launched before
            the wait and ended last before the next activity is taken.

        Raises
        ------
        ValueError
            If an argument is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> prof = synthetic_profile(activities=100)
        >>> prof.critical_path(by="op")[["name", "line"]].iloc[1]
        name    model, optimizer = build(layers=4, width=1024)
        line                                                 1
        Name: 1, dtype: object
        """
        from epprof_nb.analysis.critical_path import critical_path

        return critical_path(self, by, attribution=attribution)

    @with_columns("roofline")
    def roofline(self, *, measure: bool = True) -> pd.DataFrame:
        """FLOPs, least bytes and least time of the ONNX nodes whose shapes are known.

        Parameters
        ----------
        measure
            Whether to measure the peaks of the profile's devices, if it does not have them yet: by
            a matrix product and a copy, which take a second or two. A CUDA device needs CuPy or
            PyTorch to be imported. Devices of other machines are not measured. The peaks are kept
            in ``info["peaks"]``, and saved.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph count for the nodes that captured them. `device_ns` adds
            up to the device time of the profile, so the share of the last row is that of what is
            not covered. A matrix product in cache, or of another type, can exceed the peaks.

        Examples
        --------
        >>> prof.roofline().query("roof_share < 0.3")  # doctest: +SKIP
        """
        from epprof_nb.analysis.roofline import roofline

        if measure and "peaks" not in self.info:
            from epprof_nb.recorders.peaks import measure_devices

            found = measure_devices(self.info)
            if found:
                self.info["peaks"] = {str(device): p.to_info() for device, p in found.items()}
        return roofline(self)

    def sql(
        self, query: str, *, time_limit_s: float = 60.0, max_bytes: int = 2 * 2**30
    ) -> pd.DataFrame:
        """Result of a SQL query over the tables, by DuckDB.

        Parameters
        ----------
        query
            One SELECT statement in DuckDB's dialect. Its tables are those of the profile (``ops``,
            ``activities``, ``api_calls``, ``graphs``, ``memory``, ``overhead``) with the same
            columns; ``info``, with a JSON ``value`` for each ``key``; and the views
            ``device_work`` (the activities that keep a device busy), ``busy`` (``device_id``,
            ``start_ns`` and ``end_ns`` of the disjoint intervals in which a device was busy) and
            ``idle`` (the intervals between them). Missing ids and names are NULL.
        time_limit_s
            Maximum time of the query, seconds.
        max_bytes
            Maximum memory of the query and of its result, bytes each.

        Returns
        -------
        frame
            The rows. Integers and their sums are int64, or Int64 if a value is missing.

        Raises
        ------
        ImportError
            If DuckDB is not installed: ``pip install epprof-nb[sql]``.
        ValueError
            If the query fails or is not one SELECT statement. Queries cannot change the profile,
            read or write files, or install extensions.
        TimeoutError, MemoryError
            If a limit is exceeded.

        Examples
        --------
        >>> prof.sql(
        ...     "select name, sum(duration_ns) t from activities group by all order by t desc"
        ... )  # doctest: +SKIP
        """
        from epprof_nb.analysis.sql import sql

        return sql(self, query, time_limit_s=time_limit_s, max_bytes=max_bytes)

    def summary(
        self,
        max_chars: int = 8_000,
        format: Literal["text", "json"] = "text",  # noqa: A002 - the word of other libraries
        *,
        redact: bool | str | Iterable[str] = False,
    ) -> str:
        """Summary of the profile for people, programs and language models.

        Parameters
        ----------
        max_chars
            Maximum length of the result, at least 500, however large the profile is. The least
            important parts are left out, and counted.
        format
            ``"text"``, or ``"json"`` for an object with the same parts.
        redact
            What to leave out; see `redacted`.

        Returns
        -------
        text
            Totals, findings, notes and rankings. Each number and ranking has the query, for
            `sql`, that reproduces it; each finding the query of its evidence. Names longer than
            100 characters are shortened.

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
        from epprof_nb.analysis.index import ProfileIndex
        from epprof_nb.analysis.overview import overview
        from epprof_nb.analysis.overview_text import render

        return render(overview(ProfileIndex(self.redacted(redact))), max_chars, format)

    def timeline(self, *, select: pd.DataFrame | None = None) -> View:
        """Return a view of the profile that opens on the timeline.

        Parameters
        ----------
        select
            Rows of `activities`, `ops` or `api_calls` of this profile, in any order and with
            their original index. They are highlighted, and the timeline opens where they are.

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

        return View(self, tab="timeline", select=select)

    def breakdown(
        self,
        by: Literal["op", "op_type", "node", "kernel", "line", "stream", "tree"] = "op",
    ) -> View:
        """Return a view of the profile that opens on the breakdown.

        Parameters
        ----------
        by
            The table shown first: ``"op"`` for that of `by_op` and so on; ``"tree"`` for the
            icicle of `by_path`.

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

        return View(self, tab="breakdown", by=by)

    def lines(self) -> View:
        """Return a view of the profile that opens on the source, with device time at each line."""
        from epprof_nb.views.view import View

        return View(self, tab="source")

    def redacted(self, redact: bool | str | Iterable[str] = True) -> Profile:  # noqa: FBT001, FBT002
        """Return a copy to share, without source, paths, host names or shapes.

        Parameters
        ----------
        redact
            What to remove: ``"source"``, ``"paths"``, ``"hosts"``, ``"shapes"``, several of
            these, or True for all; see `epprof_nb.redaction.profile.redacted`.

        Raises
        ------
        ValueError
            If a part is unknown.
        """
        from epprof_nb.redaction.profile import redacted

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

        `redact` is what to remove from the file; see `redacted`.
        """
        from epprof_nb.formats.epprof import save

        save(self.redacted(redact), path)

    def to_chrome(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a Chrome trace (JSON), which Perfetto can open.

        It is compressed if the name ends in ``.gz`` or has no suffix.
        `redact` is what to remove from the file; see `redacted`.
        """
        from epprof_nb.exporters.chrome_trace import to_chrome

        to_chrome(self.redacted(redact), path)

    def to_html(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a self-contained HTML page that needs neither kernel nor network.

        `redact` is what to remove from the page; see `redacted`.
        """
        from epprof_nb.views.view import write_html

        write_html(self.redacted(redact), path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from epprof_nb.views.view import View

        return View(self).mimebundle()

    def __repr__(self) -> str:
        from epprof_nb.analysis.summary import summary_line

        return summary_line(self)


class profile(_native.GuardedContext):  # noqa: N801 - used as a function, like contextlib's own
    """Profile the body of a ``with`` statement.

    Parameters
    ----------
    detail, max_records, time_limit_s, ort_nodes, frameworks
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
    ) -> None:
        names = (frameworks,) if isinstance(frameworks, str) else tuple(frameworks)
        self._options = Options(detail, max_records, time_limit_s, ort_nodes, names)
        self._open: list[tuple[Session, Profile]] = []

    def _enter(self) -> Profile:
        result = Profile()
        self._open.append((session.start(self._options), result))
        return result

    def _exit(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,  # noqa: ARG002
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        opened, result = self._open[-1]
        if opened.belongs_to_parent:
            result.info["notes"] = [_NOTE_FORKED]
            return
        finished = opened.stop(error=None if kind is None else kind.__name__)
        result.__dict__.update(finished.__dict__)  # all or nothing

    def _end(self) -> None:
        opened, _ = self._open[-1]
        opened.abort()  # does nothing if it has stopped
        self._open.pop()

    def __call__(self, *_: object) -> Self:
        """Raise TypeError: this is not a decorator."""
        raise TypeError(
            "profile() is a context manager: write `with epprof_nb.profile() as prof:`. To name "
            'a function as an op, decorate it with @epprof_nb.op("name").'
        )


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
        If the file is no ``.epprof`` file, is damaged or too large, or needs a newer version.
    OSError
        If the file cannot be opened.
    """
    from epprof_nb.formats import epprof

    return Profile.from_data(epprof.read(path, max_bytes=max_bytes))


def read_trace(path: str | PathLike[str], *, max_bytes: int = 16 * 2**30) -> Profile:
    """Read a trace of another tool, which may be from an untrusted source.

    Parameters
    ----------
    path
        Path of a trace of PyTorch's profiler (Kineto), a JSON profile of ONNX Runtime, or a Chrome
        trace, as of viztracer or `Profile.to_chrome`; plain or compressed with gzip. They are
        distinguished by their content. The file is read in pieces.
    max_bytes
        Maximum memory of the tables in bytes.

    Returns
    -------
    Profile
        The profile. Columns that the trace has no values for are missing;
        ``profile.info["notes"]`` lists what was skipped, with numbers.

    Raises
    ------
    ProfileFileError
        If the file is no such trace, or is too large.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import epprof_nb
    >>> epprof_nb.read_trace("rank0.pt.trace.json.gz").by_op()  # doctest: +SKIP
    """
    from epprof_nb.readers import read_trace as traces

    return Profile.from_data(traces.read_trace(path, max_bytes=max_bytes))
