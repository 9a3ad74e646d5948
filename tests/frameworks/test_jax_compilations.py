"""Compilations of JAX as ops, with their reasons, on the CPU."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.jax.hlo_lines import HloLines, instructions, live_executables

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - jax may be missing

from tests.frameworks.jax_ops import functions_of, names_of, run  # noqa: E402


def test_a_first_call_contains_its_compilation():
    @jax.jit
    def inner(values):
        return jnp.tanh(values)

    @jax.jit
    def outer(values):
        return inner(values) + 1

    values = jnp.ones(3)
    with epprof_nb.profile() as prof:
        outer(values)
        outer(values)
    ops = prof.ops
    assert names_of(prof) == ["outer", "jax.trace", "jax.lower", "jax.compile", "outer"]
    # Functions that a traced function calls are part of it.
    assert [functions_of(prof, stage) for stage in ("trace", "lower", "compile")] == [["outer"]] * 3
    stages = ops[ops["op_type"].isin(["trace", "lower", "compile"])]
    assert set(stages["parent_op_id"]) == {ops.index[ops["name"] == "outer"][0]}


def test_each_new_shape_is_a_compilation(double):
    with epprof_nb.profile() as prof:
        for size in (4, 5, 6, 5):
            double(jnp.asarray(np.ones(size)))
    assert functions_of(prof, "compile").count("double") == 2
    assert names_of(prof, "jit").count("double") == 4


def test_compilations_have_the_arguments_of_their_call():
    @partial(jax.jit, static_argnames="mode")
    def scaled(params, batch, mode, *, factor=1.0):
        return batch @ params["w"] * factor if mode == "dot" else batch

    params = {"w": jnp.ones((4, 2)), "b": [jnp.ones(2)] * 9}
    with epprof_nb.profile() as prof:
        scaled({"w": params["w"]}, jnp.ones((3, 4)), "dot", factor=2.0)
        scaled(params, np.ones((3, 4), np.int32), mode="none")
        scaled.lower(params, jnp.ones((5, 4)), "dot").compile()
    ops = prof.ops[prof.ops["op_type"] == "compile"]
    args = [args.get("arguments") for args in ops["args"] if args["function"] == "scaled"]
    w = {"params['w']": "float32[4,2]"}
    assert args == [
        w | {"batch": "float32[3,4]", "mode": "dot", "factor": "float"},
        {"params": "10 arrays of 26 elements", "batch": "int32[3,4]", "mode": "none"},
        None,
    ]


def test_a_finding_says_what_jax_compiles_again_for(double):
    values = [jnp.ones(n) for n in (6, 7, 8, 9)]
    with epprof_nb.profile() as prof:
        for value in values:
            double(value)
    (found,) = prof.insights().query("kind == 'compilation'")["text"]
    shapes = "float32[6], float32[7], float32[8] and 1 more"
    assert found.endswith(f"The arguments differ: `values` is {shapes}.")
    with epprof_nb.profile() as prof:
        for _ in range(4):
            jax.jit(lambda x: x + 1)(values[0])
    (row,) = prof.insights().query("kind == 'compilation'").to_dict("records")
    assert row["text"].endswith("Each time, the arguments have the same shapes and dtypes.")
    assert row["remedy"].startswith("Call jax.jit once")


def test_the_compiler_is_known_to_work_while_it_does(monkeypatch):
    values, seen = jnp.ones(3), []
    monkeypatch.setattr(_native, "xla_compiling", seen.append)
    with epprof_nb.profile():
        jax.jit(lambda values: values - 1)(values)
        with pytest.raises(TypeError):
            jax.jit(lambda values: values + "text")(values)
    assert seen == [True, False, None]


def test_compilations_in_a_loop_are_a_finding(double):
    with epprof_nb.profile() as prof, epprof_nb.op("loop"):
        for size in range(10, 14):
            double(np.ones(size))
    found = prof.insights().set_index("kind")
    assert "makes JAX compile `double` 4 times" in found.loc["compilation", "text"]


def test_hits_of_the_persistent_cache_are_told_apart(tmp_path):
    out = run(
        f"""
        import jax, jax.numpy as jnp, epprof_nb
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        def double(values):
            return values * 2
        values = jnp.ones(4)
        for _ in range(2):
            with epprof_nb.profile() as prof:
                jax.jit(double)(values)
            ops = prof.ops
            print(ops.loc[ops["op_type"] == "compile", "args"].tolist()[-1]["persistent_cache"])
            jax.clear_caches()
        """
    )
    assert out.split() == ["miss", "hit"]


def test_a_thread_that_compiles_when_a_profile_ends_is_recorded_afterwards(double):
    values = jnp.ones(4)
    compiling, ended = threading.Event(), threading.Event()

    @jax.jit
    def slow(values):
        compiling.set()
        assert ended.wait(60)
        return values

    with ThreadPoolExecutor(1) as thread:
        with epprof_nb.profile():
            running = thread.submit(slow, values)
            assert compiling.wait(60)
        ended.set()
        running.result()
        for _ in range(2):
            with epprof_nb.profile() as prof:
                thread.submit(double, values).result()
            assert names_of(prof, "jit") == ["double"]


def test_instructions_of_programs_that_jax_holds_have_their_lines():
    @jax.jit
    def scoped(values):
        with jax.named_scope("layer"):
            return jnp.sort(jnp.tanh(values @ values))

    scoped(jnp.ones((8, 8)))
    (program,) = [
        instructions(module.to_string())
        for executable in live_executables()
        for module in executable.hlo_modules()
        if module.name == "jit_scoped"
    ]
    scopes = {name: of.op_name for name, of in program.items() if "layer/" in (of.op_name or "")}
    assert scopes
    found = HloLines().of_instructions("jit_scoped", scopes)
    line = scoped.__wrapped__.__code__.co_firstlineno + 3
    assert found == dict.fromkeys(scopes, (__file__, line))
    assert HloLines().of_instructions("jit_none", scopes) == {}
