"""Calls of jitted functions, waits and transfers of JAX as ops, on the CPU."""

from __future__ import annotations

import gc
import threading
from functools import partial

import numpy as np
import pytest

import epprof_nb

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - jax may be missing

from tests.frameworks.jax_ops import names_of  # noqa: E402


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
    code = double.__wrapped__.__code__
    place = {"file": code.co_filename, "line": code.co_firstlineno}
    assert all(args == place for args in calls["args"])
    assert (calls["duration_ns"] > 0).all()


def test_the_source_has_the_functions_of_the_code_and_none_of_jax(double):
    with epprof_nb.profile() as prof:
        double(jnp.sin(jnp.ones(4)))
    code = double.__wrapped__.__code__
    file, line = code.co_filename, code.co_firstlineno
    assert prof.info["op_places"] == {"double": {"file": file, "line": line}}
    assert prof.sources[file].splitlines()[line].strip() == "def double(values):"


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
    # Forward and backward: JAX makes a program for the latter.
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
