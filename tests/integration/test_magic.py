"""``%%gpuprofile`` in a shell: the cell runs as without it, and the profile is there after it."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import time

import pytest

from epprof_nb import magic_cell, session
from epprof_nb.magic import load_ipython_extension, unload_ipython_extension


def lines(profile):
    """The statements of a profile: (line, name), in order."""
    ops = profile.ops[profile.ops["line"].notna()].sort_values("start_ns", kind="stable")
    return list(zip(ops["line"].astype(int), ops["name"].astype(str), strict=True))


def test_variables_last_expression_and_profile(run, shell, shown):
    result = run("%%gpuprofile prof\nx = 1\ny = x + 1\ny")
    assert result.success
    assert result.result == 2
    assert (shell.user_ns["x"], shell.user_ns["_"]) == (1, 2)
    prof = shell.user_ns["prof"]
    assert lines(prof) == [(2, "x = 1"), (3, "y = x + 1"), (4, "y")]
    assert shown == [prof]
    assert prof.sources == {"In[1]": "%%gpuprofile prof\nx = 1\ny = x + 1\ny"}
    assert set(prof.ops["status"].dropna()) <= {"complete"}


def test_without_a_name_the_profile_is_only_shown(run, shell, shown):
    before = set(shell.user_ns)
    run("%%gpuprofile\nx = 1")
    assert len(shown) == 1
    assert {n for n in set(shell.user_ns) - before if not n.startswith("_")} == {"x"}


def test_output_stays_as_it_is(run, capsys):
    run("%%gpuprofile -q prof\nprint('out')\n'value'")
    assert capsys.readouterr().out == "out\nOut[1]: 'value'\n"
    run("%%gpuprofile -q prof\n'value';")
    run("%%gpuprofile -q prof\n'value'\nx = 1")
    assert capsys.readouterr().out == ""


def test_quiet_shows_nothing(run, shell, shown):
    run("%%gpuprofile prof --quiet\nx = 1")
    run("%config GpuProfile.quiet = True\n")
    run("%%gpuprofile prof\nx = 2")
    assert shown == []
    assert shell.user_ns["prof"] is not None


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
    """What IPython does to show a traceback is no part of the profile."""
    showtraceback = shell.showtraceback
    monkeypatch.setattr(shell, "showtraceback", lambda *a, **k: time.sleep(1) or showtraceback())
    for body in ("1 / 0", "x = 1 / 0"):
        run(f"%%gpuprofile -q prof\n{body}")
        assert shell.user_ns["prof"].info["wall_ns"] < 900_000_000
        assert shell.user_ns["prof"].info["error"] == "ZeroDivisionError"


def test_showing_the_value_is_no_part_of_the_profile(run, shell):
    run(
        "import time\nclass Slow:\n    def __repr__(self):\n        time.sleep(1)\n"
        "        return 'slow'\n"
    )
    run("%%gpuprofile -q prof\nSlow()")
    assert shell.user_ns["prof"].info["wall_ns"] < 900_000_000


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
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\ny = 1"
    )
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert "KeyboardInterrupt" in capsys.readouterr().out
    assert (shell.user_ns["x"], "y" in shell.user_ns) == (1, False)
    assert shell.user_ns["prof"].info["error"] == "KeyboardInterrupt"
    assert len(shown) == 1


def test_top_level_await(run, shell):
    result = run(
        "%%gpuprofile -q prof\nimport asyncio\nasync def double(x):\n"
        "    await asyncio.sleep(0.001)\n    return 2 * x\n"
        "async with asyncio.Lock():\n    a = await double(1)\n"
        "await asyncio.gather(double(a), double(3))"
    )
    assert result.result == [4, 6]
    assert (6, "async with asyncio.Lock():") in lines(shell.user_ns["prof"])
    assert (7, "a = await double(1)") in lines(shell.user_ns["prof"])


def test_inside_a_running_event_loop(shell, shown):
    source = "%%gpuprofile prof\nimport asyncio\nawait asyncio.sleep(0, 'slept')"

    async def main():
        # As a kernel does it: it ends the cell itself.
        transformed = shell.transform_cell(source)
        result = await shell.run_cell_async(
            source, store_history=True, transformed_cell=transformed
        )
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
        return result

    assert asyncio.run(main()).result == "slept"
    assert shown == [shell.user_ns["prof"]]


def test_warm_up_and_repeat(run, shell, capsys):
    run("n = []")
    result = run("%%gpuprofile -q prof --warmup 2 --repeat 3\nn.append(1)\nx = len(n)\nx")
    assert result.result == 5
    assert capsys.readouterr().out == "Out[2]: 5\n"
    prof = shell.user_ns["prof"]
    assert lines(prof) == [(2, "n.append(1)"), (3, "x = len(n)"), (4, "x")] * 3
    rows = prof.ops[prof.ops["line"].notna()]
    assert rows.groupby("run_id").size().to_list() == [3, 3, 3]


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


def test_no_lines(run, shell):
    run("%%gpuprofile -q prof --no-lines\nx = 1\nx")
    assert lines(shell.user_ns["prof"]) == []


def test_options_reach_the_session(run, shell, monkeypatch):
    given = []
    start = session.start

    def spy(options, **kwargs):
        given.append(options)
        return start(options, **kwargs)

    monkeypatch.setattr(session, "start", spy)
    shell.user_ns["limit"] = 7.5
    run("%%gpuprofile -q --detail api,memory --time-limit {limit} --max-records 10\nx = 1")
    assert given[-1].detail == "api,memory"
    assert (given[-1].time_limit_s, given[-1].max_records) == (7.5, 10)
    run("%config GpuProfile.detail = 'all'\n%config GpuProfile.time_limit = 3.0")
    run("%%gpuprofile -q\nx = 1")
    assert (given[-1].detail, given[-1].time_limit_s) == ("all", 3.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("3p", "'3p' cannot be the name"),
        ("class", "'class' cannot be the name"),
        ("prof --what", "--what"),
        ("prof --repeat 0", "--repeat 1 or more"),
        ("prof --repeat x", "invalid int value"),
        ("prof --detail everything", "unknown detail 'everything'"),
        ("prof --max-records 0", "max_records must be"),
        ("prof --time-limit -1", "time_limit_s must be"),
        ("prof --save 'x", "cannot read its options"),
    ],
)
def test_wrong_options_run_nothing(run, shell, shown, capsys, options, said):
    result = run(f"%%gpuprofile {options}\nx = 1")
    assert not result.success
    captured = capsys.readouterr()
    message = captured.err + captured.out
    assert "UsageError" in message
    assert said in message
    assert "Traceback" not in message
    assert "x" not in shell.user_ns
    assert shown == []
    assert run("%%gpuprofile prof\nx = 1").success


def test_an_empty_cell_says_what_to_do(run, capsys):
    assert not run("%%gpuprofile prof\n\n").success
    assert "nothing to profile" in capsys.readouterr().err


def test_save(run, shell, tmp_path, capsys):
    run(f"%%gpuprofile -q prof --save '{tmp_path / 'a b.epprof'}'\nx = 1")
    assert (tmp_path / "a b.epprof").stat().st_size > 0
    run(f"%%gpuprofile -q prof --save {tmp_path}/missing/x.epprof\nx = 2")
    assert shell.user_ns["x"] == 2
    assert "could not be written" in capsys.readouterr().err


def test_other_magics_inside(run, shell, capsys):
    result = run("%%gpuprofile -q prof\nfiles = !echo shell\n%time t = 1\nfiles[0], t")
    assert result.result == ("shell", 1)
    assert [line for line, _ in lines(shell.user_ns["prof"])] == [2, 3, 4]
    run("%%gpuprofile -q prof\n%%capture out\nprint('captured')\nz = 3")
    assert shell.user_ns["out"].stdout == "captured\n"
    assert shell.user_ns["z"] == 3
    assert (2, "%%capture out") in lines(shell.user_ns["prof"])
    capsys.readouterr()
    run("%%capture out\n%%gpuprofile -q prof\nprint('captured')\nz = 4")
    assert capsys.readouterr().out == ""
    assert shell.user_ns["out"].stdout == "captured\n"
    run("%%time\n%%gpuprofile -q prof\nz = 5")
    assert lines(shell.user_ns["prof"]) == [(3, "z = 5")]
    assert list(shell.user_ns["prof"].sources) == [f"In[{shell.execution_count - 1}]"]


def test_a_cell_run_inside_does_not_end_the_profile(run, shell, shown):
    run(
        "%%gpuprofile prof\nget_ipython().run_cell('a = 1')\nget_ipython().run_cell('')\n"
        "get_ipython().run_cell('1 / 0', silent=True)\nb = 2\nb"
    )
    assert (shell.user_ns["a"], shell.user_ns["b"]) == (1, 2)
    prof = shell.user_ns["prof"]
    assert lines(prof)[-2:] == [(5, "b = 2"), (6, "b")]
    assert prof.info["error"] is None
    assert shown == [prof]


def test_a_profiled_cell_inside_a_profiled_cell(run, shell, shown):
    run(
        "%%gpuprofile outer\n"
        "get_ipython().run_cell('%%gpuprofile inner\\na = 1\\na')\n"
        "get_ipython().run_cell_magic('gpuprofile', 'direct', 'c = 3')\n"
        "b = 2"
    )
    names = shell.user_ns
    assert (2, "a = 1") in lines(names["inner"])
    assert (2, "c = 3") in lines(names["direct"])
    assert (4, "b = 2") in lines(names["outer"])
    assert shown == [names["inner"], names["direct"], names["outer"]]


def test_silent_cells_end_too(run, shell, shown):
    run("%%gpuprofile prof\nx = 1\nx", silent=True, store_history=False)
    assert shown == [shell.user_ns["prof"]]


def test_run_cell_magic(run, shell, shown, capsys):
    result = run("get_ipython().run_cell_magic('gpuprofile', 'prof', 'x = 1\\nx + 1')")
    assert result.result == 2
    prof = shell.user_ns["prof"]
    assert lines(prof) == [(2, "x = 1"), (3, "x + 1")]
    result = run("get_ipython().run_cell_magic('gpuprofile', 'prof', '\\nx = 1\\n1 / 0')")
    assert "line 4" in capsys.readouterr().out
    assert shell.user_ns["prof"].info["error"] == "ZeroDivisionError"
    assert len(shown) == 2
    result = run("get_ipython().run_cell_magic('gpuprofile', 'prof', 'await x')")
    assert not result.success
    assert "cannot await" in capsys.readouterr().err
    assert not run("get_ipython().run_cell_magic('gpuprofile', 'prof', '')").success


def test_line_magic(run, shell, shown, capsys):
    result = run("%gpuprofile -o prof -r 2 sum([1, -2,  3])")
    assert result.result == 2
    assert lines(shell.user_ns["prof"]) == [(1, "sum([1, -2,  3])")] * 2
    assert len(shown) == 1
    run("%gpuprofile --detail=api -q x = -1")
    run("y = %gpuprofile -q 'a  b'")
    assert (shell.user_ns["x"], shell.user_ns["y"]) == (-1, "a  b")
    capsys.readouterr()
    assert not run("%gpuprofile -q").success
    assert "no statement to profile" in capsys.readouterr().err
    assert isinstance(run("%gpuprofile -q 1 / 0").error_in_exec, ZeroDivisionError)


def test_help_and_listing(run, shell, capsys):
    run("%%gpuprofile?")
    shown = capsys.readouterr().out
    assert "--warmup" in shown
    assert "which line launched what" in shown
    assert "gpuprofile" in shell.magics_manager.lsmagic()["cell"]
    assert "gpuprofile" in shell.magics_manager.lsmagic()["line"]
    run("%config GpuProfile")
    assert "GpuProfile.max_records" in capsys.readouterr().out


def test_names_stay_out_of_sight(run, shell, capsys):
    run("%%gpuprofile -q\nx = 1")
    capsys.readouterr()
    run("%who")
    assert capsys.readouterr().out.split() == ["x"]


def test_reset_inside_a_cell(run, shell):
    result = run("%%gpuprofile -q prof\n%reset -f\nx = 1\nx")
    assert result.success
    assert result.result == 1


def test_future_imports_act(run, shell):
    result = run("%%gpuprofile -q\nfrom __future__ import annotations\ndef f(x: y): return x\nf(1)")
    assert result.result == 1
    assert shell.user_ns["f"].__annotations__ == {"x": "y"}


@pytest.mark.parametrize("setting", ["all", "last", "none", "last_expr_or_assign"])
def test_every_kind_of_interactivity(run, shell, capsys, setting):
    shell.ast_node_interactivity = setting
    for body in ("1\nx = 2", "3\nfor i in range(2): i", "x = 1\nx"):
        plain = run(body, store_history=False)
        expected = capsys.readouterr().out
        profiled = run(f"%%gpuprofile -q prof\n{body}", store_history=False)
        assert capsys.readouterr().out == expected
        assert profiled.result == plain.result
    assert lines(shell.user_ns["prof"]) == [(2, "x = 1"), (3, "x")]


def test_too_many_blocks_run_unmarked(run, shell, capsys):
    depth = 20
    body = "".join(f"{' ' * i}for i{i} in [{i}]:\n" for i in range(depth))
    source = f"def f():\n{''.join(f' {line}' for line in body.splitlines(keepends=True))}"
    source += f"{' ' * (depth + 1)}return i0\nf()"
    if not run(source).success:
        pytest.skip("this Python does not allow the plain code either")
    result = run(f"%%gpuprofile -q prof\n{source}")
    assert result.result == 0


def test_a_terminal_waits_for_the_rest_of_the_cell(shell):
    check = shell.input_transformer_manager.check_complete
    assert check("%%gpuprofile prof")[0] == "incomplete"
    assert check("%%gpuprofile prof\nx = 1\n\n")[0] == "complete"


def test_failure_to_mark_loses_nothing(run, shell, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("bug")

    monkeypatch.setattr(magic_cell, "instrument", fail)
    result = run("%%gpuprofile -q prof\nx = 1\nx")
    assert result.result == 1
    assert "could not be marked as ops (RuntimeError: bug)" in capsys.readouterr().err
    assert lines(shell.user_ns["prof"]) == []


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
    assert "could not be finished (RuntimeError: broken)" in capsys.readouterr().err
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
        "%%gpuprofile prof\nfrom epprof_nb.magic import unload_ipython_extension as unload\n"
        "unload(get_ipython())\nx = 1"
    )
    assert shell.user_ns["x"] == 1
    assert result.success
    assert len(shown) == 1
