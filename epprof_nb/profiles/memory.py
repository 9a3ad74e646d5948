"""Memory of GPUs: its holders, its pools and its blocks."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from epprof_nb.data.empty_tables import explained
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    import pandas as pd


class Memory(ProfileData):
    """Tables of the holders of GPU memory, with `--detail memory`."""

    @with_columns("memory_at")
    def memory_at(self, at: str | int = "peak") -> pd.DataFrame:
        """Holders of memory at some time: pools, modules, lines and ops.

        Parameters
        ----------
        at
            ``"peak"`` for the time at which the blocks hold the most memory, ``"end"`` for the end
            of the profile, or nanoseconds since its start.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        TypeError
            If `at` is neither text nor a whole number.
        ValueError
            If `at` is any other text, or a time outside of the profile.

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb import host
        >>> with epprof_nb.profile(detail="memory") as prof:
        ...     with epprof_nb.op("load"):
        ...         weights = host.empty(1000)
        >>> prof.memory_at().query("name == 'load'")[["pool", "name", "bytes"]].to_dict("records")
        [{'pool': 'host device', 'name': 'load', 'bytes': 4000}]
        """
        from epprof_nb.analysis.memory.memory_at import holder_table

        at = self._checked_time(at)
        return table_frame(self, "memory_at", holder_table, at)

    @with_columns("memory_pools")
    def memory_pools(self, at: str | int = "end") -> pd.DataFrame:
        """Pools of memory, and the part of each in use.

        Parameters
        ----------
        at
            See `memory_at`.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        TypeError, ValueError
            See `memory_at`.

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb import host
        >>> with epprof_nb.profile(detail="memory") as prof:
        ...     weights = host.empty(1000)
        >>> pool = prof.memory_pools().set_index("pool").loc["host device"]
        >>> bool(pool["in_use_bytes"] >= weights.nbytes)  # arrays from before the profile, too
        True
        """
        from epprof_nb.analysis.memory.memory_pools import pool_table

        at = self._checked_time(at)
        return table_frame(self, "memory_pools", pool_table, at)

    def _checked_time(self, at: str | int) -> str | int:
        """Return a time as text or int; raise an error for one outside of the profile."""
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.memory.memory_peak import last_ns

        if isinstance(at, str):
            return at
        if isinstance(at, float) and float(at).is_integer():  # such as 1e6
            at = int(at)
        if isinstance(at, bool) or not isinstance(at, SupportsIndex):
            raise TypeError(
                f"a time cannot be {shorten(repr(at), 80)}; choose whole nanoseconds since the "
                "profile's start, 'peak' or 'end'"
            )
        time, end = index(at), last_ns(index_of(self))
        if not 0 <= time <= end:
            raise ValueError(
                f"{at} ns is outside of the profile, which is from 0 to {end} ns; choose a time of "
                "this range, 'peak' or 'end'"
            )
        return time

    @property
    @with_columns("memory_blocks")
    def memory_blocks(self) -> pd.DataFrame:
        """One row per block of memory in use at some time of the profile.

        {columns}

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb import host
        >>> with epprof_nb.profile(detail="memory") as prof:
        ...     weights = host.empty(1000)
        >>> new = prof.memory_blocks.query("allocated_ns > 0")  # NA: before the profile
        >>> new[["pool", "requested_bytes"]].to_dict("records")
        [{'pool': 'host device', 'requested_bytes': 4000}]
        """
        return explained(self, "memory_blocks", self.tables["memory_blocks"].to_frame())

    @property
    @with_columns("memory_segments")
    def memory_segments(self) -> pd.DataFrame:
        """One row per piece of memory that a pool held at some time of the profile.

        {columns}

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb import host
        >>> with epprof_nb.profile(detail="memory") as prof:
        ...     weights = host.empty(1000)
        >>> new = prof.memory_segments.query("allocated_ns > 0")  # NA: before the profile
        >>> new[["pool", "bytes"]].to_dict("records")
        [{'pool': 'host device', 'bytes': 4000}]
        """
        return explained(self, "memory_segments", self.tables["memory_segments"].to_frame())
