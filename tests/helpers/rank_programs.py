"""Programs that run as several ranks, each with its own profile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import epprof_nb
from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
from tests.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

GLOO = """
    import gc, os, sys, time
    import torch
    from torch import distributed as dist
    import epprof_nb

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=os.environ["STORE"], rank=rank, world_size=world)
    save = lambda prof: prof.save(os.path.join(os.environ["OUT"], f"rank{rank}.epprof"))
"""
"""Begin of a program of PyTorch on CPUs, which calls ``save(prof)``."""


def run_ranks(folder: Path, program: str, ranks: int, begin: str = GLOO, **more: str) -> Ranks:
    """Run a program as `start_ranks` does, and return the profiles of its ranks."""
    start_ranks(folder, program, ranks, begin, **more)
    return Ranks({rank: epprof_nb.load(folder / f"rank{rank}.epprof") for rank in range(ranks)})


def start_ranks(folder: Path, program: str, ranks: int, begin: str, **more: str) -> None:
    """Run a program as several processes, and wait for their ends.

    The program is the file ``train.py`` of `folder`. It finds its rank in ``RANK``, the folder for
    profiles in ``OUT``, and what else is in `more` in the environment.
    """
    script = folder / "train.py"
    script.write_text(textwrap.dedent(begin) + textwrap.dedent(program), encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OUT": str(folder),
        "STORE": f"file://{folder}/store", "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    } | more  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, str(script)], cwd=folder, env=environment | {"RANK": str(rank)},
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    errors = [process.communicate(timeout=300)[1] for process in running]
    assert [process.returncode for process in running] == [0] * ranks, errors
