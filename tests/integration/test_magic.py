"""``%%gpuprofile`` in a shell: the cell runs unchanged and leaves a profile."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import time

import pytest
from marked_lines import lines

from epprof_nb import _native, load
from epprof_nb.analysis.added_time import measured_time as measured
from epprof_nb.analysis.added_time.measured_time import measured_time
from epprof_nb.notebook.extension import load_ipython_extension, unload_ipython_extension
from epprof_nb.recording.session import session
from epprof_nb.recording.session.service import service
from tests.helpers.longer_kernels import with_longer_kernels


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


def test_the_time_that_drawing_took_is_in_info(run, shell):
    run("%%gpuprofile prof\nx = 1")
    prof = shell.user_ns["prof"]
    assert prof.info["profiling_cost"]["draw_ns"] > 0
    assert prof.info["profiling_cost"]["ns"] > 0
    run("%%gpuprofile prof --quiet\nx = 1")
    assert "draw_ns" not in shell.user_ns["prof"].info["profiling_cost"]


def test_quiet_shows_nothing(run, shell, shown):
    run("%%gpuprofile prof --quiet\nx = 1")
    run("%config GpuProfile.quiet = True\n")
    run("%%gpuprofile prof\nx = 2")
    assert shown == []
    assert shell.user_ns["prof"] is not None


def test_showing_the_value_is_no_part_of_the_profile(run, shell, capsys):
    run(
        "from epprof_nb import op\nclass Shown:\n    def __repr__(self):\n"
        "        with op('showing'):\n            return 'shown'\n"
    )
    run("%%gpuprofile -q prof\nrepr(Shown())\nShown()")
    names = shell.user_ns["prof"].ops["name"].tolist()
    assert names.count("showing") == 1
    assert capsys.readouterr().out.endswith(": shown\n")


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
        # Like a kernel, which ends the cell itself.
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
    assert rows.groupby("repeat").size().to_list() == [3, 3, 3]
    assert prof.ops["run_id"].isna().all()
    assert prof.ops.loc[prof.ops["op_type"] == "cell", "repeat"].isna().all()


@pytest.mark.parametrize(
    ("options", "more", "told"),
    [
        ("--warmup 5 --repeat 4", "", "total"),
        ("--repeat 4", "", None),
        ("--warmup 5", "", None),
        ("--warmup 5 --repeat 4 --time-limit 60", "", "a time limit was given"),
        ("--warmup 5 --repeat 4", "if service.open_subscriptions: raise ValueError", None),
        (
            "--warmup 5 --repeat 4",
            "host.launch(lambda *_: time.sleep(0.3), x)",
            "the cell ended before its work on the device",
        ),
    ],
    ids=["both", "no warm-ups", "one repeat", "limit", "error", "not waited for"],
)
def test_warm_ups_tell_what_profiling_added(run, shell, tmp_path, monkeypatch, options, more, told):
    runs = []

    def of_planted_times(unprofiled, profiled, wall_ns):
        # Real ones vary with what else runs on this machine.
        runs.append((len(unprofiled), len(profiled)))
        assert min([*unprofiled, *profiled]) > 0
        assert sum(profiled) <= wall_ns
        return measured_time([10] * len(unprofiled), [100] * len(profiled), wall_ns)

    monkeypatch.setattr(measured, "measured_time", of_planted_times)
    run("import time, numpy as np\nfrom epprof_nb import host\nx = host.to_device(np.zeros(1))")
    shell.user_ns["service"] = service
    run(f"%%gpuprofile -q {options} prof\ny = 1\n{more}")
    prof = shell.user_ns["prof"]
    if told is None:
        added = prof.info["added_ns"]
        assert added["estimated"]
        assert 0 < added["total"] < prof.wall_ns
        assert added["parts"].keys() == {"statements"} | ({"launches"} if "host" in more else set())
    elif told != "total":
        added = prof.info["added_ns"]
        assert (added["reason"], added["estimated"]) == (told, True)
        assert abs(sum(added["parts"].values()) - added["total"]) <= len(added["parts"])
    else:
        assert runs == [(5, 4)]
        assert prof.info["added_ns"]["total"] == round(0.9 * prof.wall_ns)
        assert prof.info["added_ns"]["parts"].keys() == {"statements"}
        prof.save(tmp_path / "cell.epprof")
        assert load(tmp_path / "cell.epprof").info["added_ns"] == prof.info["added_ns"]


def test_the_last_statement_of_a_repeat_ends_before_the_next_repeat(run, shell):
    run("%%gpuprofile -q prof --repeat 5\nx = 1\ny = 2")
    prof = shell.user_ns["prof"]
    last = prof.ops[prof.ops["name"] == "y = 2"].sort_values("start_ns")
    starts = [start for start, _ in prof.info["repeats"]]
    assert (last["end_ns"].to_numpy()[:-1] < starts[1:]).all()


def test_a_kernel_belongs_to_the_repeat_that_launched_it(run, shell):
    run(
        "import time\nimport numpy as np\nfrom epprof_nb import host\n"
        "x = host.to_device(np.ones(4))"
    )

    def record(busy_ms):
        run(
            "%%gpuprofile -q prof --repeat 3\n"
            f"host.launch(lambda a: time.sleep({busy_ms / 1000}), x, name='slow')\n"
        )
        prof = shell.user_ns["prof"]
        last = prof.activities.query("kind == 'kernel'")["start_ns"].iloc[2]
        # The host does not wait: kernels run after the repeat that launched them has ended.
        return prof if last > prof.info["repeats"][2][1] else None

    prof = with_longer_kernels(record)
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["repeat"].to_list() == [0, 1, 2]
    assert prof.ops["repeat"].reindex(kernels["op_id"]).to_list() == [0, 1, 2]
    # Work of the magic after the code is not part of the last repeat.
    cell = prof.ops.loc[prof.ops["op_type"] == "cell", "end_ns"].iloc[0]
    assert prof.info["repeats"][2][1] <= cell


def test_no_lines(run, shell):
    run("%%gpuprofile -q prof --no-lines\nx = 1\nx")
    assert lines(shell.user_ns["prof"]) == []


def test_no_lines_leaves_out_statements_of_functions_of_earlier_cells(run, shell):
    run("%%gpuprofile -q first\ndef f():\n    x = 1\n    return x\nf()")
    run("%%gpuprofile -q prof --no-lines\nf()")
    assert lines(shell.user_ns["prof"]) == []
    run("%%gpuprofile -q again\nf()")
    assert len(lines(shell.user_ns["again"])) == 3


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
    assert given[-1].ort_nodes is None
    run("%config GpuProfile.detail = 'all'\n%config GpuProfile.time_limit = 3.0")
    run("%config GpuProfile.ort_nodes = 'off'")
    run("%%gpuprofile -q\nx = 1")
    assert (given[-1].detail, given[-1].time_limit_s) == ("all", 3.0)
    assert given[-1].ort_nodes == "off"
    run("%%gpuprofile -q --ort-nodes every\nx = 1")
    assert given[-1].ort_nodes == "every"


def reload(shell):
    unload_ipython_extension(shell)
    load_ipython_extension(shell)


def test_a_refused_value_of_a_setting_does_not_outlive_a_reload(run, shell, capsys):
    run("%config GpuProfile.explain_out_of_memory = 'x'\n%config GpuProfile.max_records = 7")
    reload(shell)
    assert "GpuProfile.explain_out_of_memory has its default" in capsys.readouterr().err
    settings = next(c for c in shell.configurables if type(c).__name__ == "GpuProfile")
    assert settings.explain_out_of_memory is True
    assert settings.max_records == 7
    reload(shell)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("3p", "'3p' is not a valid variable name"),
        ("class", "'class' is not a valid variable name"),
        ("prof --what", "--what"),
        ("prof --repeat 0", "--repeat at least 1"),
        ("prof --repeat x", "invalid int value"),
        ("prof --detail everything", "unknown detail 'everything'"),
        ("prof --max-records 0", "max_records must be"),
        ("prof --ort-nodes all", "unknown mode 'all' of ONNX Runtime nodes"),
        ("prof --time-limit -1", "time_limit_s must be"),
        ("prof --save 'x", "Cannot parse the options"),
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
    assert "could not be saved" in capsys.readouterr().err


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
    assert "does not support top-level await" in capsys.readouterr().err
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
    text = inspect.getdoc(shell.find_cell_magic("gpuprofile"))
    assert text.startswith("usage: %%gpuprofile [")
    assert "::" not in text
    assert "``" not in text
    shown = capsys.readouterr().out
    assert "--warmup" in shown
    assert "Profile the GPU work of a cell" in shown
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


FIRST_CELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from epprof_nb.recording.session.session import Session

def stop(session, **options):
    print("epprof_nb.profiles" in sys.modules)
    return original(session, **options)

original, Session.stop = Session.stop, stop
shell = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))
shell.run_line_magic("load_ext", "epprof_nb")
shell.run_cell("%%gpuprofile -q prof\\nx = 1")
print(shell.user_ns["prof"].ops["name"].tolist())
"""


def test_the_wall_time_of_the_first_cell_is_without_imports_of_the_profiler():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CELL], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False", "['In[1]', 'x = 1']"]


@pytest.mark.parametrize("body", ["pass", "await asyncio.sleep(0)", "x = 1\nx"])
def test_the_wall_time_is_that_of_the_cell(run, shell, monkeypatch, body):
    """It excludes the work of the profiler before and after, however long that takes."""
    run("import asyncio")
    began, ended = [], []
    begin_code, stop = session.Session.begin_code, session.Session.stop

    def begin(self):
        time.sleep(0.2)  # of ours, before the code
        began.append(_native.now_ns())
        begin_code(self)

    def end(self, **options):
        ended.append(_native.now_ns())
        time.sleep(0.2)  # of ours, after the code
        return stop(self, **options)

    monkeypatch.setattr(session.Session, "begin_code", begin)
    monkeypatch.setattr(session.Session, "stop", end)
    run(f"%%gpuprofile -q prof\n{body}")
    prof = shell.user_ns["prof"]
    assert prof.wall_ns <= ended[0] - began[0]
    cell = prof.ops.iloc[0]
    assert cell["name"].startswith("In[")
    assert cell["start_ns"] >= 0
    assert cell["end_ns"] <= prof.wall_ns
    assert prof.thread_waits.empty
    assert prof.info["profiling_cost"]["ns"] >= 400_000_000


def test_the_wall_time_includes_device_work_that_the_code_left(run, shell):
    run(
        "%%gpuprofile -q prof\nimport time\nimport numpy as np\nfrom epprof_nb import host\n"
        "a = host.to_device(np.ones(4, 'f4'))\n"
        "host.launch(lambda x: time.sleep(0.2), a, name='slow')"
    )
    prof = shell.user_ns["prof"]
    [kernel] = prof.activities[prof.activities["name"] == "slow"].to_dict("records")
    assert kernel["end_ns"] <= prof.wall_ns
    assert prof.info["code_ns"] < kernel["end_ns"]
