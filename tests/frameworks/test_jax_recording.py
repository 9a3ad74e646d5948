"""JAX while it is recorded and afterwards: options, releases, other code, forks."""

from __future__ import annotations

import pytest

import epprof_nb
from epprof_nb.recording.jax import replaced_functions

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - jax may be missing

from tests.frameworks.jax_ops import functions_of, names_of, run  # noqa: E402
from tests.frameworks.notes import notes_of  # noqa: E402

PjitFunction = type(jax.jit(lambda: None))
VECTORCALL = 1 << 11
RECORDED = ("jit", "trace", "lower", "compile", "wait", "transfer")
"""Types of the ops that are recorded without NVTX, by which XLA names its own on a GPU."""


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
    monkeypatch.setattr(replaced_functions, "record_transfers", differs)
    with epprof_nb.profile() as prof:
        assert double(jnp.ones(4)).tolist() == [2] * 4
    assert jax._src.monitoring.get_scalar_listeners() == before
    [note] = notes_of(prof)
    assert note == (
        f"Functions of jax {jax.__version__} are not recorded, because cannot import name "
        "'dispatch'. Versions from 0.8.2 on are supported."
    )


def test_an_unattached_library_is_named_in_a_note(double, monkeypatch):
    monkeypatch.setattr(replaced_functions, "is_xla_attached", lambda: False)
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
