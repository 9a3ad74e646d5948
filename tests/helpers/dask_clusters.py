"""Clusters whose workers are processes of this machine, and what tests ask of them."""

from __future__ import annotations

import os
import time

from tests.helpers.dask_tasks import sessions

PARAMETERS = {"processes": True, "threads_per_worker": 2, "dashboard_address": ":0"}
TIMEOUT_S = 200


def pids(client):
    return set(client.run(os.getpid, on_error="ignore").values())


def ranks_of(job):
    return job.ranks.set_index("pid")


def open_sessions(client):
    return sum(client.run(sessions).values())


def wait_until(condition):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def plugins(scheduler):
    """Return the plugins of jobs that workers get when they join."""
    return [name for name in scheduler.worker_plugins if name.startswith("epprof")]


def errors(client):
    logs = [*client.get_worker_logs().values(), client.get_scheduler_logs()]
    return [message for log in logs for level, message in log if level == "ERROR"]
