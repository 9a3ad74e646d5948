"""Tables of the analyses as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, ParamSpec

from epprof_nb.data.empty_tables import explained

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.data.profile_data import ProfileData

_P = ParamSpec("_P")


def table_frame(
    profile: ProfileData,
    name: str,
    table: Callable[Concatenate[ProfileIndex, _P], ResultTable],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> pd.DataFrame:
    """Return the DataFrame of a table function, with the reason if it is empty.

    Parameters
    ----------
    profile
        The profile.
    name
        Name of the table in `epprof_nb.data.result_columns.TABLES`.
    table
        The function, which takes the index of the profile.
    args, kwargs
        Further arguments of the function.
    """
    from epprof_nb.analysis.base.index import index_of

    return explained(profile, name, table(index_of(profile), *args, **kwargs).to_frame())
