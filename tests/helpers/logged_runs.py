"""Runs of an ONNX Runtime session as a recording logs them, for tests of learned runs."""

from __future__ import annotations

import numpy as np

from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.recording.onnxruntime import run_log
from epprof_nb.recording.onnxruntime.choice_of_runs import RunHistory
from epprof_nb.recording.onnxruntime.learned_nodes import identify_nodes
from epprof_nb.recording.onnxruntime.run_log import LoggedRun
from tests.helpers.tiny import activity, op, table

NODES = ("Relu", "MatMul", "Reshape", "Sigmoid")
WORK = (("relu", 0), ("gemm", 1), ("reduce", 1), ("sigmoid", 3))
"""Names of a run's kernels, and the node of each; Reshape launches nothing."""
SPACING = 1_000


class Recording:
    """Runs of one session: their ops, launches and the times of the calls."""

    def __init__(self):
        self.ops, self.work, self.calls = [], [], []

    def run(
        self, history, *, recorded, work=WORK, failed=False, nodes=NODES, thread=1, rows=2, **more
    ):
        number = len(run_log.logged_runs())
        start, first = number * SPACING, 10_000 + 100 * number
        end = start + 900
        ort = {"source": "onnxruntime", "run_id": number, "session": 7, "thread_id": thread}
        self.ops.append(
            op(first, "model_run", start, end, category="session", op_type="run", **ort)
        )
        if recorded:
            self.ops.append(
                op(first + 1, "Execute", start, end, first, category="session", op_type="event",
                   **ort)
            )  # fmt: skip
            for i, kind in enumerate(nodes):
                self.ops.append(
                    op(first + 2 + i, kind.lower(), start + 100 * i, start + 100 * i + 90,
                       first + 1, category="node", op_type=kind, node_index=i, provider="CUDA",
                       output_shapes=f"float[{rows},4]", **ort)
                )  # fmt: skip
        for i, (name, node) in enumerate(work):
            at = start + 100 * i + 10
            launched = {"grid_x": 4, "grid_y": 1, "grid_z": 1} if name != "copy" else {"bytes": 64}
            self.work.append(
                activity("kernel" if name != "copy" else "memcpy", at + 40, at + 50,
                         first + 2 + node if recorded and node is not None else first,
                         correlation_id=first + i, thread_id=thread,
                         **{"name": name, "block_x": 32, "block_y": 1, "block_z": 1}
                         | launched | more)
            )  # fmt: skip
            self.calls.append((at, at + 20))
        # As the launch callbacks would have computed it.
        launch_hash = hash((work, *more.items())) & (1 << 63) - 1
        run_log._log.append(LoggedRun(first, history, recorded, failed, launch_hash))
        return first

    def open_range(self, run, launches, *, start, end, parent=None, number=50):
        """Make these launches of a run inside an op that a library opened."""
        rows = [next(w for w in self.work if w["correlation_id"] == run + i) for i in launches]
        above = rows[0]["op_id"] if parent is None else parent
        of_run = next(row for row in self.ops if row["op_id"] == run)
        self.ops.append(
            op(run + number, "cub::scan", of_run["start_ns"] + start, of_run["start_ns"] + end,
               above, category="range", op_type="user", source="nvtx", run_id=of_run["run_id"],
               thread_id=of_run["thread_id"])
        )  # fmt: skip
        for row in rows:
            row["op_id"] = run + number
        return run + number

    def identified(self, stopped_ns=1_000_000):
        calls = np.array(self.calls, np.int64).reshape(-1, 2)
        # The device may execute in another order than the calls.
        order = np.arange(len(self.work))[::-1]
        activities = table(ACTIVITIES, [self.work[i] for i in order])
        ops = table(OPS, sorted(self.ops, key=lambda row: row["start_ns"]))
        return identify_nodes(ops, activities, calls[order, 0], calls[order, 1], stopped_ns), order


def nodes_of(recording, run):
    """The op names of a run's launches, in order of the calls."""
    found, order = recording.identified()
    name = dict(zip(found.ops["op_id"].tolist(), found.ops.names("name").to_list(), strict=True))
    of_call = np.empty(len(order), np.int64)
    of_call[order] = found.op_id
    rows = [i for i, w in enumerate(recording.work) if run <= w["correlation_id"] < run + 100]
    return [name[of_call[i]] for i in rows]


def states(recording):
    found, _ = recording.identified()
    frame = found.ops.to_frame()
    return [a["nodes"] for a in frame[frame["op_type"] == "run"]["args"]]


def taught():
    history, recording = RunHistory(), Recording()
    recording.run(history, recorded=True)
    return history, recording
