"""Experiments: the results of delays in repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.data.empty_tables import explained
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns

if TYPE_CHECKING:
    import pandas as pd


class Experiments(ProfileData):
    """Results of an experiment."""

    @with_columns("sensitivity")
    def sensitivity(self) -> pd.DataFrame:
        """Sensitivity of the wall time to the time of each op, and the most that the op could save.

        ``%%gpuprofile --experiment 40`` and ``epprof run --experiment 40`` measure it: they repeat
        the code with short delays at the ends of its named ops.

        Returns
        -------
        frame
            {columns}

            A sensitivity of 1 means that each nanosecond of the op adds one to the wall time, 0
            that the limit is elsewhere. It holds for small changes: an op that takes no time saves
            at most sensitivity x time, and less if other work becomes the limit. The replay of the
            profile, as in `what_if`, shows how much less. The intervals are 95 % intervals. The
            frame is displayed in short; a selection of its columns or rows is a plain DataFrame.

        Notes
        -----
        Kernels that run at the same time share the device, so an op of sensitivity 0 can save time
        nevertheless: ``saving_high_ns`` counts all time in which others overlapped with it, or
        waited for it.

        See Also
        --------
        what_if : The replay, for other changes.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> synthetic_profile(activities=100).sensitivity().empty
        True
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.experiments.sensitivity import sensitivity_table
        from epprof_nb.analysis.experiments.sensitivity_frame import SensitivityFrame

        frame = SensitivityFrame(sensitivity_table(index_of(self)).to_frame())
        return explained(self, "sensitivity", frame)
