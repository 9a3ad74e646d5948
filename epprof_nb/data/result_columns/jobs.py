"""Columns of the tables of a job, `epprof_nb.jobs.job.Job`."""

from __future__ import annotations

from epprof_nb.data.result_columns.description import TableDoc, column, columns, measured

_RANK = column("rank", "int64", "rank, or number of a process without one; the index")
_OF_RANK = column("rank", "int64", "rank, or number of a process without one")
_DEVICES = column("devices", "category", "devices with work, as `GPU 0, GPU 1`")
_WORK = {
    "count": "activities",
    "device_ns": "time of all device work; overlapping time counts for each",
    "kernels": "kernels",
    "memcpys": "copies",
    "memsets": "memsets",
    "bytes": "bytes copied and set",
}
_BUSY = column("busy_ns", "int64", "time during which a device worked, summed over the devices")
_IDLE = column(
    "idle_ns", "Int64", "time during which it did not, likewise; missing without a device"
)
_UNKNOWN = column("unknown_ns", "Int64", "time in which work without a record may have run")
_PEERS = (
    column("sent_bytes", "int64", "bytes that went from its devices to other devices"),
    column("received_bytes", "int64", "bytes that came to its devices from other devices"),
)

JOBS: dict[str, TableDoc] = {
    "job_ranks": TableDoc(
        "job.ranks",
        "One row per process of the job, even without a profile, by rank.",
        (
            _RANK,
            column("launched", "bool", "the launcher gave the rank (torchrun, MPI, Slurm)"),
            column("hostname", "category", "name of the host"),
            column("address", "category", "address of the worker in a Dask cluster"),
            column("pid", "Int64", "process id"),
            column("parent", "Int64", "process id of its parent"),
            column("command", "category", "command line"),
            column(
                "followed", "category",
                "how recording reached it: run, subprocess, fork, forkserver, running (it ran "
                "before), cell, dask",
            ),
            column(
                "state", "category",
                "complete; killed; not recorded; unfinished: it still runs or was killed; damaged; "
                "missing: no part, although the launcher stated the rank",
            ),
            column("reason", "category", "why it is not complete"),
            _DEVICES,
            column(
                "clock_error_ns", "Int64",
                "how far its times can be off against the other processes; missing if unknown, as "
                "on another host: then no order with them can be stated",
            ),
            column("busy_ns", "Int64", "as in `job.by_rank()`"),
            column("idle_ns", "Int64", "as in `job.by_rank()`"),
            column("recorded", "Int64", "records"),
            column("dropped", "Int64", "records that are missing"),
        ),
    ),
    "job_by_rank": TableDoc(
        "job.by_rank()",
        "One row per process with a profile, by rank.",
        columns(
            _RANK,
            _DEVICES,
            column("wall_ns", "int64", "length of its profile"),
            "device_ns", _BUSY, _IDLE, _UNKNOWN, "kernels", "memcpys", "memsets", "bytes", *_PEERS,
            column(
                "communication_ns", "Int64",
                "time in which its devices communicated, and from calls of gloo to their ends; "
                "missing if an end was not recorded, as of gradients that PyTorch reduces on the "
                "host: `job.collectives()` has the waiting",
            ),
            column(
                "overlapped_ns", "Int64",
                "time of that beside computation, or in which the host did not wait; likewise",
            ),
            column(
                "vs_median", "float64",
                "`device_ns` / its median over the processes with device work; NaN for the others "
                "and if that is 0",
                "fraction",
            ),
            **_WORK,
        ),
    ),
    "job_by_op": TableDoc(
        "job.by_op()",
        "One row per name, op type and, for statements, cell and line, by descending device time. "
        "A row `(no op)` holds activities without an op.",
        columns(
            "name", "op_type", "cell", "line",
            column("ranks", "int64", "processes that have the op"),
            "count", "device_ns", "self_device_ns", "kernels",
            column("min_device_ns", "int64", "least `device_ns` of a process that has the op"),
            column("max_device_ns", "int64", "greatest `device_ns` of a process"),
            column("max_device_rank", "Int64", "process that has it; missing if it is 0"),
            *measured("host_ns"),
            column("min_host_ns", "Int64", "least `host_ns` of a process that has the op"),
            column("max_host_ns", "Int64", "greatest `host_ns` of a process"),
            column("max_host_rank", "Int64", "process that has it; missing if it is 0"),
            device_ns="inclusive: device time of the op and all ops below it, over all processes",
            host_ns="inclusive: host time of the op and all ops below it, over all processes; "
            "missing if none was measured",
        ),
    ),
    "job_by_task": TableDoc(
        "job.by_task()",
        "One row per prefix of the keys of Dask's tasks, by descending device time. A last row "
        "`(no task)` holds device work outside of tasks.",
        columns(
            column("task", "category", "prefix of the keys; for actors the class and the method"),
            column("ranks", "int64", "processes that ran it"),
            column("count", "int64", "tasks"),
            "device_ns", "kernels", "memcpys", "memsets", "bytes",
            column("host_ns", "int64", "time that the tasks ran, without time that they waited"),
            column(
                "idle_ns", "int64",
                "time of that in which no device of the process worked; tasks that run at the same "
                "time count each; of coroutines that wait, the least that it can be",
            ),
            column("min_device_ns", "int64", "least `device_ns` of a process that ran it"),
            column("max_device_ns", "int64", "greatest `device_ns` of a process"),
            column("max_device_rank", "Int64", "process that has it; missing if it is 0"),
            column("min_host_ns", "int64", "least `host_ns` of a process that ran it"),
            column("max_host_ns", "int64", "greatest `host_ns` of a process"),
            column("max_host_rank", "Int64", "process that has it; missing if it is 0"),
            device_ns="device time of the work that the tasks launched, over all processes",
            kernels="kernels", memcpys="copies", memsets="memsets", bytes="bytes copied and set",
        ),
    ),
    "job_insights": TableDoc(
        "job.insights()",
        "One row per finding: causes by descending gain, then hot lines and operators. The same "
        "finding of several processes is one row.",
        columns(
            column("rank", "int64", "process that it can save most: the sentence is about it"),
            column("ranks", "int64", "processes that have it"),
            column("kind", "category", "cause, such as `idle` or `wait`"),
            column("task", "category", "prefix of the keys of Dask's tasks that it is about"),
            column("text", "object", "the finding; source text is between backticks"),
            column("remedy", "object", "change that removes the cause"),
            column("gain_ns", "int64", "estimate of the time that this saves in the process"),
            column("gain_low_ns", "int64", "lower bound of the gain"),
            column("gain_high_ns", "int64", "upper bound of the gain"),
            column(
                "finding", "int64",
                "its number there: `job[rank].evidence(finding)` has the rows behind it",
            ),
            column("cell", "category", "cell or file of the line"),
            column("line", "Int64", "line of your code, or of the statement that contains the op"),
            column("start_ns", "int64", "start of a time that shows it, on the clock of the job"),
            column("end_ns", "int64", "end of this time"),
        ),
    ),
    "job_by_device": TableDoc(
        "job.by_device()",
        "One row per process and device with work.",
        columns(
            _OF_RANK,
            column("device", "category", "`GPU 0`, as the process numbers its devices"),
            "device_id",
            column("name", "category", "model of the device"),
            column("streams", "int64", "streams with work"),
            "count", "device_ns",
            column("busy_ns", "int64", "time during which at least one of them ran"),
            column("idle_ns", "Int64", "time of the profile during which none ran"),
            _UNKNOWN, "kernels", "memcpys", "memsets", "bytes", *_PEERS,
            **_WORK,
        ),
    ),
    "job_collectives": TableDoc(
        "job.collectives()",
        "One row per collective and rank, by time.",
        columns(
            column("collective", "int64", "number of the collective; ranks of one share it"),
            _OF_RANK,
            column(
                "kind", "category",
                "all_reduce, all_gather, reduce_scatter, all_to_all, barrier, broadcast, reduce, "
                "gather, scatter, send, receive, send_receive; unknown",
            ),
            column("communicator", "category", "id of the communicator; missing if unknown"),
            column("ranks", "int64", "ranks that were matched"),
            column("bytes", "Int64", "bytes of the message of a rank, as its library states them"),
            column(
                "arrive_ns", "int64",
                "start of the kernel, or of the call on the host, on the clock of the job, which "
                "is 0 at the start of its first profile",
            ),
            column("end_ns", "Int64", "end there; missing for calls that nobody waited for"),
            column("duration_ns", "Int64", "`end_ns` - `arrive_ns`"),
            column("waited_ns", "Int64", "time from its arrival to the arrival of the last rank"),
            column("transfer_ns", "Int64", "time from the arrival of the last rank to the end"),
            column(
                "late_ns", "Int64",
                "time by which it arrived after the median of the other ranks; 0 if before",
            ),
            column(
                "matched_by", "category",
                "communicator (and number or order in it), or order on the stream; missing if it "
                "is not matched",
            ),
            column("op_id", "Int64", "op of the rank that launched it, or of the call"),
        ),
    ),
    "job_stragglers": TableDoc(
        "job.stragglers()",
        "One row per late rank and reason, by descending waiting for the rank, then for the "
        "reason.",
        columns(
            _OF_RANK,
            column("reason", "category", "name and line of what took longer, or unexplained"),
            column(
                "kind", "category",
                "op, line, device work, garbage collection, data loading, synchronization, "
                "compilation, communication, unexplained",
            ),
            column("side", "category", "host or device"),
            column("op", "category", "innermost op; missing outside of all ops"),
            column("function", "category", "function of your code, from samples"),
            column("file", "category", "cell or file of the line"),
            column("line", "Int64", "line of your code"),
            column(
                "waited_ns", "int64",
                "time that other ranks waited for this reason, summed over them",
            ),
            column("share", "float64", "share of all waiting for the rank", "fraction"),
            column("late", "int64", "collectives at which the others waited for the rank"),
            column("collectives", "int64", "collectives of the rank that wait for all"),
        ),
    ),
}  # fmt: skip
