"""``prof.plot``: Matplotlib figures of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.data.profile_data import ProfileData

By = Literal["op", "op_type", "node", "kernel", "line", "stream"]


class Figures:
    """Figures of one profile.

    Every method draws on the Matplotlib axes ``ax``, or in a new pyplot figure, and returns the
    axes. Times on the axes are nanoseconds; tick labels are in the unit that fits. Colours
    are safe for colour-blind readers. Matplotlib's settings are not changed.

    Parameters
    ----------
    profile
        The profile.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from epprof_nb.testing import synthetic_profile
    >>> prof = synthetic_profile(activities=500)
    >>> figure, (above, below) = plt.subplots(2, figsize=(6, 5), layout="constrained")
    >>> prof.plot.timeline(ax=above).get_xlabel(), prof.plot.breakdown(ax=below).get_xlabel()
    ('time (ms)', 'device time (ms)')
    >>> plt.close(figure)
    """

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile

    def timeline(
        self,
        ax: Axes | None = None,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        rows: int = 8,
    ) -> Axes:
        """Draw the ops of the host above the streams of the devices.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        start_ns, end_ns
            The time range, nanoseconds since the profile's start; the whole profile if None.
        rows
            Maximum number of nesting levels per thread, and of rows per stream.

        Returns
        -------
        axes
            One `matplotlib.collections.PolyCollection` per kind of op or activity. Events too short
            to distinguish are merged; a merged shape is fainter if more of it is idle. Large
            numbers of shapes are rasterised, so that a vector file stays small.

        Raises
        ------
        ValueError
            If the time range does not end after its start, or is infinite.
        """
        from epprof_nb.views.plots.timeline import timeline
        from epprof_nb.views.view_model import ViewModel

        return timeline(ViewModel(self._profile), ax, start_ns, end_ns, rows)

    def breakdown(self, ax: Axes | None = None, *, by: By = "op", top: int = 15) -> Axes:
        """Draw a breakdown as horizontal bars, the longest at the top.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        by
            The breakdown: ``"op"`` for ``prof.by_op()``, ``"kernel"`` for ``prof.by_kernel()``
            and so on.
        top
            Number of rows.

        Returns
        -------
        axes
            Bars of ``device_ns`` (``host_ns`` without device work), and inside of them the self
            time, if the breakdown has one.

        Raises
        ------
        ValueError
            If `by` is unknown.
        """
        from epprof_nb.views.plots.breakdown import breakdown

        if by not in get_args(By):
            raise ValueError(f"by must be one of {', '.join(get_args(By))}, not {by!r}")
        return breakdown(getattr(self._profile, f"by_{by}")(), by, ax, top)

    def utilisation(self, ax: Axes | None = None, *, bins: int = 300) -> Axes:
        """Draw the share of time during which each device was busy.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        bins
            Number of equal intervals of the profile, each with one share.

        Returns
        -------
        axes
            One step patch per device, in percent.
        """
        from epprof_nb.views.plots.utilisation import utilisation
        from epprof_nb.views.view_model import ViewModel

        return utilisation(ViewModel(self._profile), ax, bins)

    def kernels(
        self,
        ax: Axes | None = None,
        *,
        top: int = 6,
        kind: Literal["ecdf", "hist"] = "ecdf",
    ) -> Axes:
        """Draw the durations of kernels.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        top
            Number of kernels: those with the most device time are drawn.
        kind
            ``"ecdf"`` draws the share of launches up to each duration; ``"hist"`` a histogram
            with ten bins per decade.

        Returns
        -------
        axes
            One line or step patch per kernel over a logarithmic axis of durations.

        Raises
        ------
        ValueError
            If `kind` is unknown.
        """
        from epprof_nb.views.plots.distributions import kernels

        return kernels(self._profile, ax, top, kind)

    def gaps(self, ax: Axes | None = None, *, min_ns: int = 10_000) -> Axes:
        """Draw the idle time of the devices by the length of the idle intervals.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        min_ns
            Shortest interval, nanoseconds.

        Returns
        -------
        axes
            One step patch: idle time by length of the interval, ten bins per decade.
        """
        from epprof_nb.views.plots.distributions import gaps

        return gaps(self._profile, ax, min_ns)
