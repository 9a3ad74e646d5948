"""The critical path of a profile, and its replay with other durations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


class CriticalPath(ProfileData):
    """Work that the wall time depends on, and what it would be without some of it."""

    @with_columns("critical_path", "critical_path_op", "critical_path_line")
    def critical_path(
        self,
        by: Literal["step", "op", "line"] = "step",
        *,
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Longest chain of work and waits from the start of the profile to its end.

        A change can make the profiled code faster only if it shortens this path.

        Parameters
        ----------
        by
            ``"step"`` for the steps of the path, in order; ``"op"`` for the time of each op on it,
            and the maximum that the op could save: the path is computed again without its time;
            ``"line"`` for the same by line of your code, in any cell or file.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph's replay are on the path like others. Records do not name
            the event for which a stream waited. The path takes the work of another stream that was
            launched before the wait and ended last before the next activity. There are no rows if
            missing records leave 2 % of the time or more unknown.

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
        from epprof_nb.analysis.critical_path.by_line import critical_path_line_table
        from epprof_nb.analysis.critical_path.by_op import critical_path_op_table
        from epprof_nb.analysis.critical_path.chain import critical_path_table

        tables = {
            "step": critical_path_table,
            "op": critical_path_op_table,
            "line": critical_path_line_table,
        }
        if by not in tables:
            raise ValueError(f"by must be 'step', 'op' or 'line', not {by!r}")
        return table_frame(self, "critical_path", tables[by], attribution)

    @with_columns("what_if")
    def what_if(
        self,
        changes: Mapping[str, float],
        *,
        on: Literal["both", "host", "device"] = "both",
        attribution: Literal["launch", "capture"] = "launch",
    ) -> pd.DataFrame:
        """Wall time of the profiled code if some of its work took more or less time.

        The recorded launches, streams, event waits and threads are replayed with other durations:
        the critical path is computed again. Work that the changed work hid becomes the limit.

        Parameters
        ----------
        changes
            Factor of the duration by name: 0 takes no time, 0.5 half of it, 2 twice. A name is an
            op, a type of ops, or a class of PyTorch's modules, with all below them; a line, as
            ``"line 12"``, ``"In[3] line 12"`` or ``"train.py line 12"``, or a function whose
            statements are recorded (``"flatten"``, ``"Model.fit"``), with all that they call; a
            kernel; ``"copies"``; or ``"waits"``, which can only be removed: API calls no longer
            wait for a device. An op named ``copies`` or ``waits`` comes before these, and all
            others before a function. Functions of one name are changed together. Names may be
            patterns: ``*`` stands for any text, ``?`` for any character, and ``[ab]`` for one of
            these. Where names apply to the same work, their factors multiply.
        on
            ``"host"`` or ``"device"`` to change only the code, or only the kernels and copies.
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

            ``saving_ns`` is the saving of the replay, in which other work keeps its durations.
            What recording itself took of the program's threads is no saving: both replays, of the
            program as it is and of the changed one, leave it out, as far as it is known
            (``info["recording_costs"]``). The low and high saving contain its error, of a third,
            and on a host that other processes use, whether they delayed the recording or the code.
            ``wall_ns`` and its bounds leave it out, too: where recording took most of the time, as
            in recursive functions, the bounds are far apart.
            Kernels of several streams share the device: at the same time, or in turns, if each
            fills it. Removing one can make others faster, or start earlier: the high saving counts
            all time in which they overlapped with it, or waited although they were launched and
            their stream was free. With the factor 0, the calls of an op or line do not wait either.
            Idle time of a thread, by samples, may have a fixed length, as a sleep of one second, or
            end when another thread has done its work, as a loop that asks for it, or end at a time
            of the clock, as in code that keeps a rate: ``saving_ns`` is that with a fixed length,
            and the low and high saving are those of the other two.
            A worker thread may begin its next op when the thread of the cell hands it out, or have
            it in a queue before: the high saving is the greater one of both.
            If not all runs of ONNX Runtime were recorded node by node, a node has the same part of
            the others as of recorded ones with inputs of the same shapes. What recording adds may
            be of the node or not: the low and high saving are those of both.
            There are no rows if records are missing: the critical path is then unknown.

        Raises
        ------
        TypeError, ValueError
            If nothing has a name, only samples of the host have it, a factor is not a number from 0
            to 1,000,000, or the factors of some work multiply to more, or to over 36 years.

        See Also
        --------
        critical_path : Its ``saving_ns`` is the saving with the factor 0, with the profiler.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> prof = synthetic_profile(activities=100)
        >>> prof.what_if({"waits": 0, "line 1": 0.5})["changed"].tolist()
        ['waits', 'line 1', 'all of them']
        """
        from epprof_nb.analysis.critical_path.what_if import checked_changes, what_if_table

        checked = checked_changes(changes, on)
        return table_frame(self, "what_if", what_if_table, checked, on, attribution)
