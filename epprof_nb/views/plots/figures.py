"""``prof.plot``: figures of a profile for papers, each drawn on Matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.data.profile_data import ProfileData

By = Literal["op", "op_type", "node", "kernel", "line", "stream"]


class Figures:
    """Figures of one profile.

    Every method takes ``ax``, the Matplotlib axes to draw on, and returns the axes. Left out, a
    new pyplot figure is made, which a notebook shows. Times on the axes are nanoseconds; the ticks
    are labelled in the unit that fits. Colours are safe for colour-blind readers, and no setting
    of Matplotlib is changed.

    Parameters
    ----------
    profile
        What to draw.

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
        """Draw ops of the host above the streams of the devices.

        Parameters
        ----------
        ax
            Where to draw; a new figure where left out.
        start_ns, end_ns
            The window, nanoseconds since the profile's start; all of it where left out.
        rows
            Levels of nesting drawn of a thread, and rows of a stream, at most.

        Returns
        -------
        axes
            One `matplotlib.collections.PolyCollection` a kind of op or activity. What cannot be
            told apart is put together, fainter the less of it was busy. Many shapes are
            rasterised, so that a vector file stays small.

        Raises
        ------
        ValueError
            For a window that does not end after it starts.
        """
        from epprof_nb.views.plots.timeline import timeline
        from epprof_nb.views.view_model import ViewModel

        return timeline(ViewModel(self._profile), ax, start_ns, end_ns, rows)

    def breakdown(self, ax: Axes | None = None, *, by: By = "op", top: int = 15) -> Axes:
        """Draw a breakdown as horizontal bars, the longest on top.

        Parameters
        ----------
        ax
            Where to draw; a new figure where left out.
        by
            What to break down by, as in ``prof.by_op()``, ``prof.by_kernel()`` and so on.
        top
            Number of rows.

        Returns
        -------
        axes
            Bars as wide as ``device_ns`` (``host_ns`` where no device did any work); in front of
            them, where there is one, the self time.

        Raises
        ------
        ValueError
            For another `by`.
        """
        from epprof_nb.views.plots.breakdown import breakdown

        if by not in get_args(By):
            raise ValueError(f"by must be one of {', '.join(get_args(By))}, not {by!r}")
        return breakdown(getattr(self._profile, f"by_{by}")(), by, ax, top)

    def utilisation(self, ax: Axes | None = None, *, bins: int = 300) -> Axes:
        """Draw the share of time in which each device was busy.

        Parameters
        ----------
        ax
            Where to draw; a new figure where left out.
        bins
            Number of equal stretches of the profile, each with one share.

        Returns
        -------
        axes
            One step patch a device, in percent.
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
        """Draw how long the launches of the kernels took.

        Parameters
        ----------
        ax
            Where to draw; a new figure where left out.
        top
            Number of kernels, those with the most device time.
        kind
            ``"ecdf"``: the share of launches up to a duration; ``"hist"``: launches in bins, ten
            a decade.

        Returns
        -------
        axes
            One line or step patch a kernel, over a logarithmic axis of durations.

        Raises
        ------
        ValueError
            For another `kind`.
        """
        from epprof_nb.views.plots.distributions import kernels

        return kernels(self._profile, ax, top, kind)

    def gaps(self, ax: Axes | None = None, *, min_ns: int = 10_000) -> Axes:
        """Draw how much time the devices were idle, by the length of the idle stretches.

        Parameters
        ----------
        ax
            Where to draw; a new figure where left out.
        min_ns
            Shortest stretch, nanoseconds.

        Returns
        -------
        axes
            One step patch: the idle time of stretches of each length, ten bins a decade.
        """
        from epprof_nb.views.plots.distributions import gaps

        return gaps(self._profile, ax, min_ns)
