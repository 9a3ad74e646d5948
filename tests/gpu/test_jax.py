"""JAX on a GPU: jitted functions, HLO instructions, command buffers and transfers."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

PRELUDE = """
import os
import epprof_nb
import jax, jax.numpy as jnp, numpy as np, pandas as pd

def kernels_of(prof):
    rows = prof.activities
    ids = rows.loc[rows["kind"] == "kernel", "op_id"]
    return [None if pd.isna(op) else prof.ops.loc[op] for op in ids]

def ancestors(prof, op_id):
    found = []
    while not pd.isna(op_id):
        found.append(prof.ops.loc[op_id, "name"])
        op_id = prof.ops.loc[op_id, "parent_op_id"]
    return found

def model(x, w):
    with jax.named_scope("first"):
        h = jnp.cumsum(x * 1.5, axis=0) @ w
    with jax.named_scope("second"):
        return jnp.sort(jnp.tanh(h) + 1, axis=-1)
x = w = jnp.ones((256, 256))
x.block_until_ready()
"""


def run(code, flags=""):
    prelude = f"import os\nos.environ['XLA_FLAGS'] = {flags!r}\n" if flags else ""
    done = subprocess.run(
        [sys.executable, "-c", prelude + PRELUDE + textwrap.dedent(code)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout)
    return done.stdout


def test_kernels_belong_to_their_instruction_scope_and_function():
    out = run(
        """
        step = jax.jit(model)
        step(x, w).block_until_ready()
        with epprof_nb.profile() as prof, epprof_nb.op("outer"):
            step(x, w).block_until_ready()
        print(prof.ops[["parent_op_id", "name", "op_type", "args"]].to_string())
        print(prof.activities[["kind", "name", "op_id", "attribution"]].to_string())
        print(prof.info["notes"], prof.info["attribution"])
        found = kernels_of(prof)
        assert found and all(op is not None and op["op_type"] == "hlo" for op in found)
        for op in found:
            path = ancestors(prof, op.name)
            assert path[1:] == ["jit_model", "model", "outer"], path
        scoped = {op["name"].split("/")[0] for op in found if "op_name" in op["args"]}
        assert {"first", "second"} & scoped, scoped
        placed = [op["args"]["line"] for op in found if "line" in op["args"]]
        first = model.__code__.co_firstlineno
        assert placed and all(first < line <= first + 4 for line in placed), placed
        assert prof.info["recorded"]["lost"] == {}, prof.info["recorded"]
        print("DONE")
        """,
        "--xla_gpu_enable_command_buffer=",
    )
    assert "DONE" in out


def test_kernels_of_a_command_buffer_have_the_instruction_that_created_them():
    out = run(
        """
        step = jax.jit(model)
        with epprof_nb.profile() as prof:
            for _ in range(6):
                step(x, w).block_until_ready()
        with epprof_nb.profile() as later:
            step(x, w).block_until_ready()
        for one in (prof, later):
            rows = one.activities
            columns = ["name", "op_id", "capture_op_id", "graph_id"]
            print(rows.loc[rows["kind"] == "kernel", columns].to_string())
        rows = later.activities
        replayed = rows[(rows["kind"] == "kernel") & rows["graph_id"].notna()]
        print("REPLAYED", len(replayed), "of", (rows["kind"] == "kernel").sum())
        assert len(replayed)
        ops = later.ops
        print(ops[["parent_op_id", "name", "op_type", "status", "args"]].to_string())
        assert set(ops.loc[replayed["op_id"], "op_type"]) == {"hlo"}
        assert all("command_buffer" in name for name in ops.loc[replayed["op_id"], "name"])
        created = ops.loc[replayed["capture_op_id"].dropna()]
        print("CREATED", len(created), created["name"].tolist())
        assert len(created) == len(replayed)
        assert set(created["op_type"]) == {"hlo"}
        assert not any("command_buffer" in name for name in created["name"])
        print("DONE")
        """
    )
    assert "DONE" in out


def test_a_first_call_has_its_compilation_and_no_passes():
    out = run(
        """
        with epprof_nb.profile() as prof:
            jax.jit(model)(x, w).block_until_ready()
        ops = prof.ops
        print(ops["name"].value_counts().head(30).to_string(), prof.info["attribution"])
        print(prof.by_op().head(20).to_string())
        assert not any(name.startswith("Xla") for name in ops["name"])
        assert {"jax.trace", "jax.lower", "jax.compile", "model"} <= set(ops["name"])
        print(prof.info["notes"], prof.info["recorded"])
        print("DONE")
        """
    )
    assert "DONE" in out


def test_transfers_and_waits_are_ops():
    out = run(
        """
        double = jax.jit(lambda values: values * 2)
        host = np.ones((512, 512), np.float32)
        double(jax.device_put(host)).block_until_ready()
        with epprof_nb.profile() as prof:
            values = jax.device_put(host)
            result = double(values)
            result.block_until_ready()
            back = np.asarray(result)
            again = double(host)
            float(again[0, 0])
        ops, rows = prof.ops, prof.activities
        print(ops[["parent_op_id", "name", "op_type", "duration_ns"]].to_string())
        print(rows[["kind", "name", "bytes", "op_id", "attribution", "duration_ns"]].to_string())
        print(prof.api_calls[["name", "thread_id", "op_id"]].to_string())
        assert (back == 2).all()
        assert {"device_put", "np.asarray(jax.Array)", "block_until_ready"} <= set(ops["name"])
        print(prof.info["notes"], prof.info["attribution"])
        print("DONE")
        """
    )
    assert "DONE" in out


def test_results_and_dispatch_are_the_same_after_a_profile():
    out = run(
        """
        step = jax.jit(model)
        before = np.asarray(step(x, w))
        kind = type(step)
        flags, call = kind.__flags__, kind.__call__
        with epprof_nb.profile():
            within = np.asarray(step(x, w))
        assert (kind.__flags__ & (1 << 11), kind.__call__) == (flags & (1 << 11), call)
        assert flags & (1 << 11)
        assert (before == within).all() and (np.asarray(step(x, w)) == before).all()
        assert step._cache_size() == 1
        print("DONE")
        """
    )
    assert "DONE" in out
