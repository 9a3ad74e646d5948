"""The nodes and runs of ONNX Runtime sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame

if TYPE_CHECKING:
    import pandas as pd


class NodeTables(ProfileData):
    """Tables of the nodes and runs of ONNX Runtime sessions."""

    @with_columns("by_node")
    def by_node(self, *, attribution: Literal["launch", "capture"] = "capture") -> pd.DataFrame:
        """Host time, device time and copies of each node of the ONNX Runtime sessions.

        Parameters
        ----------
        attribution
            ``"capture"`` counts the activities of a graph at the nodes that captured them;
            ``"launch"`` counts them at the op that replayed the graph, outside of the nodes.

        Returns
        -------
        frame
            {columns}

            `self_device_ns` always adds up to the device time of the profile.

        Raises
        ------
        ValueError
            If `attribution` is unknown.
        """
        from epprof_nb.analysis.onnx.by_node import node_table

        return table_frame(self, "by_node", node_table, attribution=attribution)

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

        Raises
        ------
        ValueError
            If `attribution` is unknown.
        """
        from epprof_nb.analysis.onnx.by_node import op_type_table

        return table_frame(self, "by_op_type", op_type_table, attribution=attribution)

    @with_columns("by_run")
    def by_run(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Host and device time of each run of the ONNX Runtime sessions.

        Parameters
        ----------
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Raises
        ------
        ValueError
            If `attribution` is unknown.
        """
        from epprof_nb.analysis.onnx.by_run import run_table

        return table_frame(self, "by_run", run_table, attribution=attribution)

    @with_columns("roofline")
    def roofline(self, *, measure: bool = True) -> pd.DataFrame:
        """FLOPs, minimum bytes and minimum time of the ONNX nodes with known shapes.

        Parameters
        ----------
        measure
            Whether to measure the peaks of the profile's devices, if it lacks them, with a matrix
            product and a copy. This takes a second or two. A CUDA device needs CuPy or PyTorch to
            be imported. Devices of other machines are not measured. ``info["peaks"]`` has the
            peaks, also in a saved profile.

        Returns
        -------
        frame
            {columns}

            The activities of a CUDA graph count for the nodes that captured them. `device_ns` adds
            up to the device time of the profile: the last row has the remaining work. A matrix
            product in cache, or of another type, can exceed the peaks.

        Examples
        --------
        >>> prof.roofline().query("roof_share < 0.3")  # doctest: +SKIP
        """
        from epprof_nb.analysis.onnx.roofline import roofline_table

        if measure and "peaks" not in self.info:
            from epprof_nb.analysis.peaks.measure_peaks import measure_devices
            from epprof_nb.host.device import device_name

            found = measure_devices(self.info, device_name())
            if found:
                self.info["peaks"] = {str(device): p.to_info() for device, p in found.items()}
        return table_frame(self, "roofline", roofline_table)
