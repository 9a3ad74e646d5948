"""Profile: the tables of one profiled stretch, and the doors to analyses, views and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from epprof_nb.schema import ACTIVITIES, API_CALLS, GRAPHS, MEMORY, OPS, OVERHEAD
from epprof_nb.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    import pandas as pd

    from epprof_nb.plots.figures import Figures
    from epprof_nb.views.page import View

_SCHEMAS = {s.name: s for s in (OPS, ACTIVITIES, API_CALLS, GRAPHS, MEMORY, OVERHEAD)}


class Profile:
    """One profiled stretch of work.

    Parameters
    ----------
    tables
        Table name to `Table`; tables left out are empty.
    info
        What was recorded, on what, and what was lost; JSON-serialisable. See `Profile.info`.
    sources
        Cell name (as ``In[3]``) to the cell's source text.

    Notes
    -----
    The tables are columns (NumPy arrays); a DataFrame is built when it is asked for, anew each
    time, so changing it does not change the profile.
    """

    def __init__(
        self,
        tables: Mapping[str, Table] | None = None,
        info: Mapping[str, Any] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        given = dict(tables or {})
        unknown = set(given) - set(_SCHEMAS)
        if unknown:
            raise ValueError(f"a profile has no table {sorted(unknown)}")
        self.tables: dict[str, Table] = {
            name: given[name] if name in given else Table(schema)
            for name, schema in _SCHEMAS.items()
        }
        self.info: dict[str, Any] = dict(info or {})
        self.sources: dict[str, str] = dict(sources or {})

    @property
    def ops(self) -> pd.DataFrame:
        """One row an op; see `epprof_nb.schema.OPS`."""
        return self.tables["ops"].to_frame()

    @property
    def activities(self) -> pd.DataFrame:
        """One row an activity of a device; see `epprof_nb.schema.ACTIVITIES`."""
        return self.tables["activities"].to_frame()

    @property
    def api_calls(self) -> pd.DataFrame:
        """One row an API call; see `epprof_nb.schema.API_CALLS`."""
        return self.tables["api_calls"].to_frame()

    @property
    def graphs(self) -> pd.DataFrame:
        """One row a CUDA graph launched; see `epprof_nb.schema.GRAPHS`."""
        return self.tables["graphs"].to_frame()

    @property
    def memory(self) -> pd.DataFrame:
        """One row an allocation or release, where recorded; see `epprof_nb.schema.MEMORY`."""
        return self.tables["memory"].to_frame()

    @property
    def overhead(self) -> pd.DataFrame:
        """One row a stretch of CUPTI's own overhead, where recorded."""
        return self.tables["overhead"].to_frame()

    @property
    def wall_ns(self) -> int:
        """Length of the profile on the host's clock, nanoseconds."""
        return int(self.info.get("wall_ns", 0))

    def by_op(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """One row an op name: device time in total and self, counts, bytes, host time, delay.

        Parameters
        ----------
        attribution
            ``"launch"`` counts an activity for the op that launched it (a graph's replay for the
            op that replayed); ``"capture"`` counts a graph's nodes for the op that captured them.
        """
        from epprof_nb.analysis.breakdown import by_op

        return by_op(self, attribution=attribution)

    def by_kernel(self) -> pd.DataFrame:
        """One row a kernel name: launches and device time."""
        from epprof_nb.analysis.kernels import by_kernel

        return by_kernel(self)

    def by_stream(self) -> pd.DataFrame:
        """One row a stream of a device: busy time, what ran on it, bytes, launch delay."""
        from epprof_nb.analysis.streams import by_stream

        return by_stream(self)

    def by_line(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """One row a line of a profiled cell: device time, launches, copies, host time."""
        from epprof_nb.analysis.breakdown import by_line

        return by_line(self, attribution=attribution)

    def by_path(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """A tree as a table: one row a path from the session through cells and ops to kernels."""
        from epprof_nb.analysis.paths import by_path

        return by_path(self, attribution=attribution)

    def by_node(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """One row a node of an ONNX Runtime session: host time, device time, copies."""
        from epprof_nb.analysis.nodes import by_node

        return by_node(self, attribution=attribution)

    def by_op_type(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """One row an ONNX operator and execution provider."""
        from epprof_nb.analysis.nodes import by_op_type

        return by_op_type(self, attribution=attribution)

    def by_run(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """One row a run of an ONNX Runtime session."""
        from epprof_nb.analysis.nodes import by_run

        return by_run(self, attribution=attribution)

    def timeline(self, *, select: pd.DataFrame | None = None) -> View:
        """The profile's view, opened on the timeline.

        Parameters
        ----------
        select
            Rows of `activities`, `ops` or `api_calls` of this profile, filtered or sorted as you
            like: they are lit, and the timeline opens where they are. Their index must be kept.

        Raises
        ------
        TypeError, ValueError
            For what holds no rows of this profile; the message says what to pass.

        Examples
        --------
        >>> kernels = prof.activities[prof.activities["kind"] == "kernel"]  # doctest: +SKIP
        >>> prof.timeline(select=kernels.nlargest(10, "duration_ns"))  # doctest: +SKIP
        """
        from epprof_nb.views.page import View

        return View(self, tab="timeline", select=select)

    def breakdown(
        self,
        by: Literal["op", "op_type", "node", "kernel", "line", "stream", "tree"] = "op",
    ) -> View:
        """The profile's view, opened on the breakdown.

        Parameters
        ----------
        by
            The table it opens on, as in `by_op`, `by_kernel` and so on; ``"tree"`` is the icicle
            of `by_path`.

        Returns
        -------
        view
            Its ``to_frame()`` is the DataFrame of that table.

        Raises
        ------
        ValueError
            For another `by`.
        """
        from epprof_nb.views.page import View

        return View(self, tab="breakdown", by=by)

    def lines(self) -> View:
        """The profile's view, opened on the source with device time at each line."""
        from epprof_nb.views.page import View

        return View(self, tab="source")

    def redacted(self, redact: bool | str | Iterable[str] = True) -> Profile:  # noqa: FBT001, FBT002
        """A copy to share, without source, paths, host names or shapes.

        Parameters
        ----------
        redact
            What to leave out: ``"source"``, ``"paths"``, ``"hosts"``, ``"shapes"``, several of
            them, or True for all; see `epprof_nb.redact.redacted`.

        Raises
        ------
        ValueError
            For a part that does not exist.
        """
        from epprof_nb.redact import redacted

        return redacted(self, redact)

    @property
    def plot(self) -> Figures:
        """Matplotlib figures for papers: timeline, breakdown, utilisation, kernels, gaps."""
        from epprof_nb.plots.figures import Figures

        return Figures(self)

    def save(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write the profile to one ``.epprof`` file; see `epprof_nb.load`.

        `redact` names what is left out of the file; see `redacted`.
        """
        from epprof_nb.formats.epprof import save

        save(self.redacted(redact), path)

    def to_chrome(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a Chrome trace (JSON), which Perfetto opens.

        `redact` names what is left out of the file; see `redacted`.
        """
        from epprof_nb.formats.chrome import to_chrome

        to_chrome(self.redacted(redact), path)

    def to_html(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write one self-contained HTML page that needs neither kernel nor network.

        `redact` names what is left out of the page; see `redacted`.
        """
        from epprof_nb.views.page import write_html

        write_html(self.redacted(redact), path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from epprof_nb.views.page import View

        return View(self).mimebundle()

    def __repr__(self) -> str:
        from epprof_nb.views.summary import summary_line

        return summary_line(self)
