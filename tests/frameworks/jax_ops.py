"""Ops of JAX in a profile, and programs in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def names_of(prof, *types):
    ops = prof.ops[prof.ops["source"] == "jax"]
    return ops.loc[ops["op_type"].isin(types), "name"].tolist() if types else ops["name"].tolist()


def functions_of(prof, op_type):
    ops = prof.ops[prof.ops["op_type"] == op_type]
    return [args["function"] for args in ops["args"]]


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
