"""Folders of jobs, with parts of synthetic profiles."""

from epprof_nb.files.dataset.manifest import Manifest
from epprof_nb.files.dataset.part import write_part
from epprof_nb.testing import synthetic_profile

CLOCK = {"boot_id": "b1", "time_namespace": "time:[1]", "error_ns": 0}


def manifest(rank=None, pid=None, **fields):
    """A manifest of a process of the job ``j1`` that began after a millisecond per rank."""
    number = rank or 0
    return Manifest(
        **{
            "job_id": "j1",
            "pid": 1000 + number if pid is None else pid,
            "parent_pid": 1,
            "rank": rank,
            "hostname": "node1",
            "command": ["python", "train.py"],
            "begin_ns": 10**9 + number * 10**6,
            "end_ns": 10**12,
            "clock": CLOCK,
            **fields,
        }
    )


def add_part(folder, rank=None, *, activities=200, profile=None, name=None, **fields):
    """Write a part to the folder of a job; returns its folder."""
    stated = manifest(rank, **fields)
    if profile is None:
        profile = synthetic_profile(activities, seed=rank or 0)
    path = folder / (name or stated.folder_name)
    write_part(profile, path, stated)
    return path
