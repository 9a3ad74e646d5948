"""``%%gpuprofile`` with failures: in the cell, its markers, the session, and on unloading."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect

import pytest
from marked_lines import lines

import epprof_nb
from epprof_nb.notebook import cell_transform
from epprof_nb.notebook.extension import load_ipython_extension, unload_ipython_extension
from epprof_nb.recording.session import session


def test_an_error_keeps_its_traceback_and_the_profile(run, shell, shown, capsys):
    result = run("%%gpuprofile prof\nx = 1\ndef f(a):\n    b = a\n    return b / 0\n\nf(x)\nz = 1")
    out = capsys.readouterr().out
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert "Cell In[1], line 7" in out
    assert "Cell In[1], line 5, in f(a)" in out
    assert "epprof_nb/" not in out
    frames = inspect.getinnerframes(result.error_in_exec.__traceback__)
    assert [f.lineno for f in frames][-2:] == [7, 5]
    prof = shell.user_ns["prof"]
    assert prof.info["error"] == "ZeroDivisionError"
    assert lines(prof)[-2:] == [(4, "b = a"), (5, "return b / 0")]
    assert shown == [prof]
    assert "z" not in shell.user_ns


def test_the_profile_ends_with_the_error(run, shell, monkeypatch):
    """The rendering of a traceback by IPython is not part of the profile."""
    showtraceback = shell.showtraceback
    rendered = []

    def render(*args, **options):
        with epprof_nb.op("rendering"):
            rendered.append(showtraceback(*args, **options))

    monkeypatch.setattr(shell, "showtraceback", render)
    for body in ("1 / 0", "x = 1 / 0"):
        run(f"%%gpuprofile -q prof\n{body}")
        assert "rendering" not in shell.user_ns["prof"].ops["name"].tolist()
        assert shell.user_ns["prof"].info["error"] == "ZeroDivisionError"
    assert len(rendered) == 2


def test_the_traceback_shows_the_magic_as_it_was_written(run, capsys):
    run("%%gpuprofile -q prof\n1 / 0")
    out = capsys.readouterr().out
    assert "1 # %%gpuprofile -q prof" in out
    assert "__epprof" not in out


def test_lines_above_the_magic_count(run, shell, capsys):
    run("\n\n%%gpuprofile prof\nx = 1\nx / 0")
    assert "Cell In[1], line 5" in capsys.readouterr().out
    assert lines(shell.user_ns["prof"]) == [(4, "x = 1"), (5, "x / 0")]


def test_a_syntax_error_is_shown_as_ever(run, shell, shown, capsys):
    result = run("%%gpuprofile prof\nx = 1\ny = = 2")
    assert isinstance(result.error_before_exec, SyntaxError)
    assert result.error_before_exec.lineno == 3
    assert "Cell In[1], line 3" in capsys.readouterr().out
    assert "x" not in shell.user_ns
    assert shown == []


@pytest.mark.parametrize(
    "code", ["return 1", "break", "for i in x:\n    yield i", "x = 1\nreturn x"]
)
@pytest.mark.parametrize("options", ["", " --repeat 2", " --warmup 1"])
def test_what_does_not_compile_says_so(run, code, options):
    plain = run(code)
    profiled = run(f"%%gpuprofile -q{options}\n{code}")
    for name in ("error_before_exec", "error_in_exec"):
        errors = getattr(plain, name), getattr(profiled, name)
        assert repr(errors[0]) == repr(errors[1]) or errors[0].msg == errors[1].msg
    assert not profiled.success


def test_keyboard_interrupt(run, shell, shown, capsys):
    result = run(
        "%%gpuprofile prof\nimport os, signal, time\nx = 1\n"
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\ny = 1"
    )
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert "KeyboardInterrupt" in capsys.readouterr().out
    assert (shell.user_ns["x"], "y" in shell.user_ns) == (1, False)
    assert shell.user_ns["prof"].info["error"] == "KeyboardInterrupt"
    assert len(shown) == 1


def test_an_error_in_a_repeat_is_the_cells_error(run, shell):
    result = run("n = 0\n")
    result = run("%%gpuprofile -q prof -r 5\nn += 1\nif n == 3:\n    raise KeyError(n)")
    assert isinstance(result.error_in_exec, KeyError)
    assert shell.user_ns["n"] == 3
    assert shell.user_ns["prof"].info["error"] == "KeyError"


def test_an_error_in_a_warm_up_ends_the_cell(run, shell, shown):
    result = run("%%gpuprofile prof -w 1\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert shown == []
    assert "prof" not in shell.user_ns


def test_too_many_blocks_run_unmarked(run, shell, capsys):
    depth = 20
    body = "".join(f"{' ' * i}for i{i} in [{i}]:\n" for i in range(depth))
    source = f"def f():\n{''.join(f' {line}' for line in body.splitlines(keepends=True))}"
    source += f"{' ' * (depth + 1)}return i0\nf()"
    if not run(source).success:
        pytest.skip("this Python does not allow the plain code either")
    result = run(f"%%gpuprofile -q prof\n{source}")
    assert result.result == 0
    assert "SyntaxError: too many statically nested blocks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ('"""Doc."""\nfrom __future__ import annotations\nx = 3\nx', ["x = 3", "x"]),
        ("from __future__ import annotations\nx = 3\nx", ["x = 3", "x"]),
        ("x = 1\nglobal x\nx = 3\nx", ["x = 1", "x = 3", "x"]),
        ("x = 1\nif True:\n    global x\n    x = 3\nx", ["x = 1", "if True:", "x = 3", "x"]),
        ("def f():\n    global x\n    x = 3\nf()\nx", ["def f():", "f()", "x = 3", "x"]),
        ('"""Doc."""\nx = 3\nx', ["x = 3", "x"]),
        ("'text'", ["'text'"]),
    ],
)
def test_the_statements_of_any_valid_cell_are_marked(run, shell, body, marked, capsys):
    shell.user_ns["__doc__"] = None
    plain = run(body)
    state = {name: shell.user_ns.get(name) for name in ("x", "__doc__")}
    shell.user_ns.update(x=None, __doc__=None)
    profiled = run(f"%%gpuprofile -q prof\n{body}")
    assert profiled.result == plain.result
    assert {name: shell.user_ns.get(name) for name in state} == state
    assert [name for _, name in lines(shell.user_ns["prof"])] == marked
    assert capsys.readouterr().err == ""


def test_a_misplaced_global_is_refused_as_in_a_plain_cell(run, capsys):
    body = "x = 1\nif x:\n    global x\n"
    plain, profiled = run(body), run(f"%%gpuprofile -q prof\n{body}")
    assert str(profiled.error_in_exec or profiled.error_before_exec).startswith("name 'x' is used")
    assert type(plain.error_in_exec) is type(profiled.error_in_exec)


def test_a_late_future_import_is_named_as_the_reason(run, shell, capsys):
    result = run("%%gpuprofile -q prof\nx = 1\nfrom __future__ import annotations\nx")
    assert result.result == 1
    said = capsys.readouterr().err
    assert "an import from __future__ follows other statements" in said
    assert "Move the import to the top of the cell" in said
    assert lines(shell.user_ns["prof"]) == []


def test_a_terminal_waits_for_the_rest_of_the_cell(shell):
    check = shell.input_transformer_manager.check_complete
    assert check("%%gpuprofile prof")[0] == "incomplete"
    assert check("%%gpuprofile prof\nx = 1\n\n")[0] == "complete"


def test_failure_to_mark_loses_nothing(run, shell, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("bug")

    monkeypatch.setattr(cell_transform, "instrument", fail)
    result = run("%%gpuprofile -q prof\nx = 1\nx")
    assert result.result == 1
    assert "cannot be recorded as ops (RuntimeError: bug)" in capsys.readouterr().err
    assert lines(shell.user_ns["prof"]) == []


SUM = "1" + " + 1" * 299
ELIF = "v = -1\nif v == 0:\n    y = 0\n" + "".join(
    f"elif v == {i}:\n    y = {i}\n" for i in range(1, 299)
)


@pytest.mark.parametrize("options", ["", " -r 3", " -w 2", " --no-lines"])
@pytest.mark.parametrize(
    ("body", "value"),
    [
        (f"x = {SUM}\nx", 300),
        (f"def f():\n    return {SUM}\nf()", 300),
        ("str(0)" + ".strip()" * 299, "0"),
        (f"{ELIF}v", -1),
    ],
)
def test_deeply_nested_code_runs_without_marks(run, shell, body, value, options, capsys):
    result = run(f"%%gpuprofile -q prof{options}\n{body}")
    assert result.result == value
    said = capsys.readouterr().err
    assert "nested too deeply" in said
    assert "unregistered" not in said
    prof = shell.user_ns["prof"]
    assert lines(prof) == []
    assert any("nested too deeply" in note for note in prof.info["notes"])
    # The magic continues.
    assert run("%%gpuprofile -q prof\nx = 2\nx").result == 2
    assert lines(shell.user_ns["prof"]) == [(2, "x = 2"), (3, "x")]
    assert capsys.readouterr().err == ""


def test_deeply_nested_code_of_the_line_magic_and_of_other_magics(run, shell, capsys):
    assert run(f"%gpuprofile -q -o prof {SUM}").result == 300
    assert lines(shell.user_ns["prof"]) == []
    run(f"%%time\n%%gpuprofile -q prof\ny = {SUM}")
    assert shell.user_ns["y"] == 300
    assert "nested too deeply" in capsys.readouterr().err


def test_deeply_nested_code_is_not_interleaved(run, shell, capsys):
    run("%%gpuprofile -q old -r 10\nx = 1")
    run(f"%%gpuprofile -q new -r 10 -b old --interleave\nx = {SUM}")
    assert shell.user_ns["x"] == 300
    assert "runs once" in capsys.readouterr().err
    # Its code was not kept.
    run("%%gpuprofile -q newer -r 10 -b new --interleave\nx = 3")
    assert "--interleave runs the code of new again" in capsys.readouterr().err
    assert shell.user_ns["x"] == 300


def test_trees_of_other_transformers(run, shell, capsys):
    class Adds:
        """Adds a statement without a position, as IPython allows."""

        def visit(self, module):
            module.body.append(ast.Expr(ast.Constant(7)))
            return module

    shell.ast_transformers.insert(0, Adds())
    result = run("%%gpuprofile -q prof\nx = 1")
    assert result.result == 7
    assert (2, "x = 1") in lines(shell.user_ns["prof"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("extra", [None, ast.Expr(None), ast.Expr(ast.Name(3, ast.Load()))])
def test_the_transformer_never_raises(run, shell, extra, capsys):
    class Breaks:
        def visit(self, module):
            module.body.append(extra)
            return module

    breaks = Breaks()
    shell.ast_transformers.insert(0, breaks)
    with contextlib.suppress(Exception):  # of IPython, whose compiler gets this tree
        run("%%gpuprofile -q prof\nx = 1")
    assert len(shell.ast_transformers) == 2
    shell.ast_transformers.remove(breaks)
    run("%%gpuprofile -q prof\nx = 2")
    assert lines(shell.user_ns["prof"]) == [(2, "x = 2")]


def test_failure_to_start_loses_nothing(run, shell, shown, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("no driver")

    monkeypatch.setattr(session, "start", fail)
    result = run("%%gpuprofile prof -w 1 -r 2\nx = 1\nx")
    assert result.success
    assert result.result == 1
    said = capsys.readouterr().err
    assert "could not be started (RuntimeError: no driver)" in said
    assert "prof" not in shell.user_ns
    assert shown == []


def test_failure_to_stop_loses_nothing(run, shell, shown, monkeypatch, capsys):
    started = []
    start = session.start

    class Broken:
        def __init__(self, inner):
            self.inner = inner
            self.abort = inner.abort

        def stop(self, **_):
            raise RuntimeError("broken")

    def spy(*args, **kwargs):
        started.append(start(*args, **kwargs))
        return Broken(started[-1])

    monkeypatch.setattr(session, "start", spy)
    result = run("%%gpuprofile prof\nx = 1\nx")
    assert result.result == 1
    assert "could not be completed (RuntimeError: broken)" in capsys.readouterr().err
    monkeypatch.setattr(session, "start", start)
    run("%%gpuprofile prof\nx = 2")
    assert lines(shell.user_ns["prof"]) == [(2, "x = 2")]


def test_functions_of_a_profiled_cell_work_after_unloading(run, shell, shown):
    run("%%gpuprofile -q\ndef f(x):\n    y = x\n    return y\ndef g():\n    yield 1")
    unload_ipython_extension(shell)
    assert run("f(3), list(g())").result == (3, [1])
    assert not hasattr(builtins, "__epprof_begin__")
    result = run("%%gpuprofile prof\nx = 1")
    assert not result.success
    assert shown == []
    assert "GpuProfile" not in [type(c).__name__ for c in shell.configurables]
    load_ipython_extension(shell)
    assert run("%%gpuprofile prof\nf(4)").result == 4
    assert (3, "y = x") not in lines(shell.user_ns["prof"])[:1]


def test_loading_twice_is_harmless(run, shell, shown):
    load_ipython_extension(shell)
    run("%%gpuprofile prof\nx = 1")
    assert len(shown) == 1
    unload_ipython_extension(shell)
    unload_ipython_extension(shell)
    assert not run("%%gpuprofile prof\nx = 1").success


def test_unloading_inside_a_profiled_cell_ends_the_profile(run, shell, shown):
    result = run(
        "%%gpuprofile prof\n"
        "from epprof_nb.notebook.extension import unload_ipython_extension as unload\n"
        "unload(get_ipython())\nx = 1"
    )
    assert shell.user_ns["x"] == 1
    assert result.success
    assert len(shown) == 1
    prof = shell.user_ns["prof"]
    assert lines(prof)[-1] == (3, "unload(get_ipython())")
    assert "unloaded inside the cell" in prof.info["notes"][0]
