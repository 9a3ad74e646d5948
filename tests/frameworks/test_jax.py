"""Jitted functions, compilations, waits and transfers of JAX as ops, on the CPU."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.frameworks import jax_framework
from epprof_nb.frameworks.hlo_places import HloPlaces, instructions, live_executables

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - jax may be missing

from tests.frameworks.notes import notes_of  # noqa: E402

PjitFunction = type(jax.jit(lambda: None))
VECTORCALL = 1 << 11
RECORDED = ("jit", "trace", "lower", "compile", "wait", "transfer")
"""Types of the ops that are recorded without NVTX, by which XLA names its own on a GPU."""


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


@pytest.fixture
def double():
    """A jitted function that is compiled for four numbers."""

    @jax.jit
    def double(values):
        return values * 2

    double(jnp.ones(4)).block_until_ready()
    return double


def test_the_info_has_the_version():
    with epprof_nb.profile() as prof:
        pass
    assert prof.info["versions"]["jax"] == jax.__version__


def test_calls_are_ops_with_the_name_and_place_of_the_function(double):
    values = jnp.ones(4)
    with epprof_nb.profile() as prof:
        with epprof_nb.op("outer"):
            double(values)
        double(values)
    ops = prof.ops
    calls = ops[ops["op_type"] == "jit"]
    assert calls["name"].tolist() == ["double", "double"]
    assert calls["category"].unique().tolist() == ["framework"]
    outer = ops.index[ops["name"] == "outer"][0]
    assert calls["parent_op_id"].fillna(0).tolist() == [outer, 0]
    line = double.__wrapped__.__code__.co_firstlineno
    assert all(args == {"file": __file__, "line": line} for args in calls["args"])
    assert (calls["duration_ns"] > 0).all()


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
    # What a traced function calls is part of it.
    assert [functions_of(prof, stage) for stage in ("trace", "lower", "compile")] == [["outer"]] * 3
    stages = ops[ops["op_type"].isin(["trace", "lower", "compile"])]
    assert set(stages["parent_op_id"]) == {ops.index[ops["name"] == "outer"][0]}


def test_the_source_has_the_functions_of_the_code_and_none_of_jax(double):
    with epprof_nb.profile() as prof:
        double(jnp.sin(jnp.ones(4)))
    line = double.__wrapped__.__code__.co_firstlineno
    assert prof.info["op_places"] == {"double": {"file": __file__, "line": line}}
    assert prof.sources[__file__].splitlines()[line].strip() == "def double(values):"


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
    assert row["remedy"].startswith("Make the function with jax.jit once")


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
    assert "has JAX compile `double` 4 times" in found.loc["compilation", "text"]


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


def test_jax_is_what_it_was_after_a_profile(double):
    before = dict(vars(PjitFunction)), PjitFunction.__flags__ & VECTORCALL
    array = dict(vars(type(jnp.ones(1))))
    compiled = double._cache_size()

    def interrupted():
        with epprof_nb.profile():
            double(jnp.ones(4))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (dict(vars(PjitFunction)), PjitFunction.__flags__ & VECTORCALL) == before
    assert before[1]
    assert dict(vars(type(jnp.ones(1)))) == array
    assert double._cache_size() == compiled
    assert double(jnp.ones(4)).tolist() == [2] * 4


def test_exceptions_pass_and_end_the_ops(double):
    @jax.jit
    def broken(values):
        raise ValueError("the user's")

    with epprof_nb.profile() as prof:
        with pytest.raises(ValueError, match="the user's"):
            broken(jnp.ones(4))
        double(jnp.ones(4))
        with pytest.raises(TypeError):
            double()
    ops = prof.ops
    calls = ops[ops["op_type"] == "jit"]
    assert calls["name"].isin(["broken", "double"]).sum() == 3
    assert calls["parent_op_id"].isna().all()
    assert (ops["status"] == "complete").all()


def test_keywords_methods_and_partial_functions_work(double):
    class Model:
        @partial(jax.jit, static_argnums=0)
        def apply(self, values, *, scale):
            return values * scale

    model, values = Model(), jnp.ones(4)
    with epprof_nb.profile() as prof:
        assert model.apply(values, scale=3).tolist() == [3] * 4
        assert double(values=values).tolist() == [2] * 4
        assert list(map(double, [2, 3])) == [4, 6]
        assert double.__call__(values).tolist() == [2] * 4
    found = names_of(prof, "jit")
    assert (found.count("apply"), found.count("double")) == (1, 4)


def test_gradients_have_the_name_of_their_function(double):
    values = jnp.ones(4)

    def loss(values):
        return double(values).sum()

    expected = jax.grad(loss)(values)
    with epprof_nb.profile() as prof:
        found = jax.grad(loss)(values)
    assert found.tolist() == expected.tolist()
    # Forward and backward: the latter is a program that JAX makes for it.
    assert names_of(prof, "jit").count("double") == 2
    assert "jitted function" not in names_of(prof)


def test_functions_compiled_ahead_of_time_have_their_name(double):
    values = jnp.ones(4)
    compiled = double.lower(values).compile()
    with epprof_nb.profile() as prof:
        assert compiled(values).tolist() == [2] * 4
    assert names_of(prof, "jit") == ["double"]


def test_eager_operations_have_their_names_and_no_place():
    values = jnp.ones(4)
    jnp.sin(values) + values
    with epprof_nb.profile() as prof:
        jnp.sin(values) + values
    assert names_of(prof, "jit") == ["sin", "add"]
    assert prof.ops["args"][prof.ops["op_type"] == "jit"].isna().all()


def test_a_function_at_the_address_of_another_has_its_own_name():
    def make(number):
        def function(values):
            return values

        function.__name__ = f"function_{number}"
        return jax.jit(function)

    values = jnp.ones(4)
    with epprof_nb.profile() as prof:
        for number in range(20):
            make(number)(values)
            gc.collect()
    assert names_of(prof, "jit") == [f"function_{number}" for number in range(20)]


def test_waits_and_transfers_are_ops(double):
    with epprof_nb.profile() as prof:
        values = jax.device_put(np.ones(4))
        result = double(values)
        result.block_until_ready()
        jax.block_until_ready((values, result))
        float(result[0])  # where NumPy can read the memory, JAX does not see np.asarray(result)
    assert names_of(prof, "wait") == ["block_until_ready"] * 2
    found = names_of(prof, "transfer")
    assert found[0] == "device_put"
    assert "np.asarray(jax.Array)" in found


def test_each_thread_has_its_own_calls(double):
    values = jnp.ones(4)
    with epprof_nb.profile() as prof, epprof_nb.op("main"):
        thread = threading.Thread(target=double, args=(values,))
        thread.start()
        thread.join()
        double(values)
    calls = prof.ops[prof.ops["op_type"] == "jit"]
    assert calls["thread_id"].nunique() == 2
    assert calls["parent_op_id"].isna().sum() == 1


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


def test_two_profiles_one_inside_the_other(double):
    values = jnp.ones(4)
    with epprof_nb.profile() as outer:
        double(values)
        with epprof_nb.profile(frameworks=()) as inner:
            double(values)
        double(values)
    assert names_of(outer, "jit") == ["double"] * 3
    assert names_of(inner, "jit") == ["double"]  # it is recorded anyway


def test_without_jax_in_the_option_nothing_is_recorded(double):
    with epprof_nb.profile(frameworks=("torch", "nvtx")) as prof:
        double(jnp.ones(4)).block_until_ready()
    assert names_of(prof, *RECORDED) == []


def test_listeners_that_the_code_clears_are_no_error(double):
    with epprof_nb.profile() as prof:
        jax.monitoring.clear_event_listeners()
        double(jnp.ones(7))
    assert "double" in names_of(prof, "jit")
    with epprof_nb.profile() as prof:
        double(jnp.ones(8))
    assert "double" in functions_of(prof, "compile")


def test_listeners_that_a_traced_function_clears_leave_the_next_calls(double):
    @jax.jit
    def clear(values):
        jax.monitoring.clear_event_listeners()
        return values

    values = jnp.ones(4)
    with epprof_nb.profile() as prof:
        clear(values)
        double(values)
    assert names_of(prof, "jit") == ["clear", "double"]


def test_a_call_that_other_code_replaces_stays_replaced():
    out = run(
        """
        import epprof_nb, jax, jax.numpy as jnp
        double, values, calls = jax.jit(lambda values: values * 2), jnp.ones(4), []
        kind = type(double)
        double(values)
        with epprof_nb.profile() as prof:
            ours = kind.__call__
            kind.__call__ = lambda self, *args: calls.append(1) or ours(self, *args)
            double(values)
        print((prof.ops["op_type"] == "jit").sum(), prof.info["notes"])
        double(values)
        with epprof_nb.profile() as prof:
            double(values)
        print(len(calls), (prof.ops["op_type"] == "jit").sum(), *prof.info["notes"])
        """
    )
    first, second = out.splitlines()
    assert first == "1 []"
    assert second == (
        "3 0 Calls of jitted functions are not recorded, because other code has replaced the "
        "type's __call__."
    )


def test_a_release_without_the_events_is_named_in_a_note(double, monkeypatch):
    monkeypatch.delattr(jax.monitoring, "register_scalar_listener")
    with epprof_nb.profile() as prof:
        assert double(jnp.ones(4)).tolist() == [2] * 4
    [note] = notes_of(prof)
    assert note == (
        f"Functions of jax {jax.__version__} are not recorded, because it has no "
        "jax.monitoring.register_scalar_listener. Versions from 0.8.2 on are supported."
    )
    assert names_of(prof, *RECORDED) == []


def test_a_release_that_differs_is_named_in_a_note(double, monkeypatch):
    def differs(patches, switch):
        raise ImportError("cannot import name 'dispatch'")

    before = jax._src.monitoring.get_scalar_listeners()
    monkeypatch.setattr(jax_framework, "record_transfers", differs)
    with epprof_nb.profile() as prof:
        assert double(jnp.ones(4)).tolist() == [2] * 4
    assert jax._src.monitoring.get_scalar_listeners() == before
    [note] = notes_of(prof)
    assert note == (
        f"Functions of jax {jax.__version__} are not recorded, because cannot import name "
        "'dispatch'. Versions from 0.8.2 on are supported."
    )


def test_an_unattached_library_is_named_in_a_note(double, monkeypatch):
    monkeypatch.setattr(jax_framework, "is_xla_attached", lambda: False)
    with epprof_nb.profile() as prof:
        double(jnp.ones(4))
    with epprof_nb.profile(frameworks=("jax",)) as without_nvtx:
        double(jnp.ones(4))
    [note] = notes_of(prof)
    assert note == (
        "HLO instructions of JAX are not recorded, because the NVTX of its library is not attached."
        " Restart Python, and import epprof_nb before JAX uses the GPU."
    )
    assert notes_of(without_nvtx) == []


def test_jax_is_not_imported_and_may_be_imported_in_the_profile():
    out = run(
        """
        import sys, epprof_nb
        with epprof_nb.profile() as before:
            pass
        assert "jax" not in sys.modules
        with epprof_nb.profile() as prof:
            import jax
            jax.jit(abs, inline=True)(-3.0)
        print(prof.ops.loc[prof.ops["op_type"] == "jit", "name"].tolist())
        print(before.info["notes"] + prof.info["notes"])
        """
    )
    assert out.splitlines() == ["['abs']", "[]"]


def test_a_forked_child_calls_what_jax_had(double):
    out = run(
        """
        import os, warnings, epprof_nb, jax
        warnings.simplefilter("ignore")
        call = type(jax.jit(abs)).__call__
        with epprof_nb.profile():
            child = os.fork()
            if not child:
                os._exit(0 if type(jax.jit(abs)).__call__ is call else 1)
            print(os.waitpid(child, 0)[1])
            print(type(jax.jit(abs)).__call__ is call)
        """
    )
    assert out.split() == ["0", "False"]


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
    found = HloPlaces().of_instructions("jit_scoped", scopes)
    line = scoped.__wrapped__.__code__.co_firstlineno + 3
    assert found == dict.fromkeys(scopes, (__file__, line))
    assert HloPlaces().of_instructions("jit_none", scopes) == {}
