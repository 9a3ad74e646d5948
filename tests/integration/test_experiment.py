"""``%%gpuprofile --experiment``: repeats with delays, which the cell's results do not show."""

import pytest
from click.testing import CliRunner
from IPython.core.error import UsageError
from scripts import RUN, execute

import epprof_nb
from epprof_nb.analysis.experiments.design import BASE_REPEATS
from epprof_nb.cli import main
from epprof_nb.recording.delays import experiment

SETUP = (
    "import time, epprof_nb\nfrom epprof_nb import _native, host\n"
    "x, runs = host.to_device([1.0]), []\n"
    "from epprof_nb.recording.session.service import service\n"
    "recording = lambda: service.open_subscriptions"
)
CELL = (
    "%%gpuprofile prof --experiment {}\nruns.append(recording())\n"
    "with epprof_nb.op('layer'):\n    host.launch(lambda a: time.sleep(0.001), x, name='slow')\n"
    "host.synchronize()\n{}len(runs)"
)
BASE = BASE_REPEATS + 1


@pytest.fixture
def alike(monkeypatch):
    """Let the first repeats take the same time, however busy the machine is."""
    from epprof_nb.analysis.experiments import reasons_not_to_start, sensitivity

    # Imported while they are patched, it would keep the patches.
    assert sensitivity.scatter_of is reasons_not_to_start.scatter_of
    monkeypatch.setattr(reasons_not_to_start, "scatter_of", lambda _: 0.01)
    monkeypatch.setattr(reasons_not_to_start, "_drift_of", lambda _: 0.0)
    monkeypatch.setattr(experiment, "unusual", lambda *_: "")


@pytest.fixture
def prepared(run, alike):
    assert run(SETUP).success


@pytest.mark.usefixtures("prepared")
def test_repeats_are_not_recorded_and_the_last_is_not_delayed(run, shell, shown, capsys):
    result = run(CELL.format(40, ""))
    prof = shell.user_ns["prof"]
    # A warm-up, the recorded repeat, those without and with delays, and the last one.
    assert shell.user_ns["runs"] == [1, 1, *[0] * (BASE + 40 + 1)]
    assert result.result == BASE + 43
    assert prof.activities["name"].tolist().count("slow") == 1
    assert "repeat" not in prof.info
    (part,) = prof.info["experiment"]["rounds"]
    assert len(part["wall_ns"]) == 40
    for levels, delays in zip(part["levels"], part["delay_ns"], strict=True):
        for level, ns in zip(levels, delays, strict=True):
            assert level < 0 or ns >= 10_000
    row = prof.sensitivity().iloc[0]
    assert row["name"] == "layer"
    assert row["device_sensitivity_low"] <= row["device_sensitivity"]
    assert capsys.readouterr().err == ""
    assert shown[0] is prof
    assert "40 repeats measure" in shown[1].headline
    assert f" The code ran {BASE + 43} times in all. " in shown[1].headline


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("unusual", [1, 3])
def test_an_unusual_recorded_repeat_is_recorded_again(run, shell, shown, monkeypatch, unusual):
    found = [*["it took 235 ms, a usual one 31 ms"] * unusual, ""]
    monkeypatch.setattr(experiment, "unusual", lambda *_: found.pop(0))
    result = run(CELL.format(40, ""))
    recordings = min(unusual + 1, 3)
    with_delays = 0 if unusual == 3 else 40
    assert shell.user_ns["runs"] == [
        1, 1, *[0] * BASE, *[1] * (recordings - 1), *[0] * (with_delays + 1)
    ]  # fmt: skip
    assert result.result == len(shell.user_ns["runs"])
    assert f" The code ran {result.result} times in all." in shown[1].headline
    prof = shell.user_ns["prof"]
    assert prof.activities["name"].tolist().count("slow") == 1
    assert [type(view).__name__ for view in shown] == ["Profile", "SensitivityView"]
    assert ("took 235 ms" in prof.info["experiment"]["refused"]) == (unusual == 3)
    assert prof.sensitivity()["device_sensitivity"].notna().all() == (unusual < 3)


@pytest.mark.usefixtures("prepared")
def test_an_interrupt_keeps_what_was_measured(run, shell):
    at = BASE + 2 + 25
    result = run(CELL.format(40, f"if len(runs) == {at}: raise KeyboardInterrupt\n"))
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    prof = shell.user_ns["prof"]
    (part,) = prof.info["experiment"]["rounds"]
    assert len(part["wall_ns"]) == 24
    assert prof.sensitivity()["device_sensitivity"].notna().all()
    with epprof_nb.op("layer"):
        pass  # no delay is left


@pytest.mark.usefixtures("prepared")
def test_only_the_last_run_shows_its_output(run, capsys):
    prints = "print('run', len(runs)); display(len(runs)); print('to stderr', file=sys.stderr)\n"
    result = run(CELL.format(40, f"import sys; {prints}"))
    out, err = capsys.readouterr()
    last = BASE + 43
    assert out == f"run {last}\n{last}\nOut[2]: {last}\n"
    assert err == "to stderr\n"
    assert result.result == last


@pytest.mark.usefixtures("prepared")
def test_a_cell_that_cannot_be_repeated_shows_its_output(run, capsys):
    run(
        "%%gpuprofile prof --experiment 40\nx = 1\nfrom __future__ import annotations\n"
        "print('once')"
    )
    assert capsys.readouterr().out == "once\n"


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("at", [1, 2, 5])
def test_the_output_of_a_run_that_fails_is_shown(run, capsys, at):
    run(
        CELL.format(40, f"print('run', len(runs))\nif len(runs) == {at}: raise ZeroDivisionError\n")
    )
    out = capsys.readouterr().out
    assert out.startswith(f"run {at}\n")
    assert out.count("run ") == 1


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("at", [1, 2, 5])
def test_errors_of_the_code_remain_its_own(run, shell, capsys, at):
    result = run(CELL.format(40, f"if len(runs) == {at}: raise ZeroDivisionError\n"))
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    prof = shell.user_ns["prof"]
    assert prof.activities["name"].tolist().count("slow") == 1
    assert (prof.info.get("error") == "ZeroDivisionError") == (at < 5)
    first = "no experiment: ZeroDivisionError ended the code in its first run, a warm-up"
    assert (first in capsys.readouterr().err) == (at == 1)
    assert prof.sensitivity().empty == (at < 5)


@pytest.mark.usefixtures("prepared")
def test_an_error_in_a_later_warm_up_leaves_nothing(run, shell, capsys):
    run(CELL.format("40 --warmup 2", "if len(runs) == 2: raise ZeroDivisionError\n"))
    assert "prof" not in shell.user_ns
    said = "ZeroDivisionError in a run before the recorded one, so nothing was recorded and prof"
    assert said in capsys.readouterr().err
    assert shell.user_ns["runs"] == [1, 0]


@pytest.mark.usefixtures("prepared")
def test_a_cell_whose_repeats_differ_is_refused_and_its_result_remains(run, shell, shown, capsys):
    result = run(
        "%%gpuprofile prof --experiment 40\nruns.append(1)\n"
        "for _ in range(2 if len(runs) < 4 else 0):\n"
        "    with epprof_nb.op('layer'):\n"
        "        host.launch(lambda a: time.sleep(0.001), x)\nhost.synchronize()\nlen(runs)"
    )
    assert result.result == 5  # a warm-up, a recorded repeat, two others and the last one
    reason = "'layer' ran 2 times in the recorded repeat and 0 times in a later one"
    assert capsys.readouterr().err == ""
    assert reason in shown[1].headline
    prof = shell.user_ns["prof"]
    assert reason in prof.info["experiment"]["refused"]
    assert reason in prof.sensitivity()["note"].iloc[0]


@pytest.mark.usefixtures("prepared")
def test_a_cell_without_named_ops_is_refused(run, shell, capsys):
    assert run("%%gpuprofile prof -q --experiment 40\nhost.synchronize()\n7").result == 7
    assert "no named op to delay" in capsys.readouterr().err
    assert shell.user_ns["prof"].sensitivity().empty


@pytest.mark.usefixtures("prepared")
def test_recorded_repeats_and_a_line(run, shell):
    run(CELL.format("40 --repeat 3", ""))
    prof = shell.user_ns["prof"]
    assert shell.user_ns["runs"] == [1, 1, 1, 1, *[0] * (BASE + 40 + 1)]
    assert len(prof.info["repeats"]) == 3
    assert prof.sensitivity()["executions"].tolist() == [1]
    result = run(
        "%gpuprofile -o line --experiment 16 [host.launch(lambda a: time.sleep(0.001), x), "
        "host.synchronize()][1]"
    )
    assert result.success
    assert "no named op" in shell.user_ns["line"].info["experiment"]["refused"]


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(("outer", "inner"), [("--experiment 40", ""), ("", "--experiment 40")])
@pytest.mark.parametrize(
    "code", ["%gpuprofile {} 1", "get_ipython().run_cell('%%gpuprofile {}\\n1').raise_error()"]
)
def test_an_experiment_in_another_cell_is_refused_at_once(run, shell, outer, inner, code):
    result = run(f"%%gpuprofile {outer}\nruns.append(1)\n{code.format(inner)}")
    assert isinstance(result.error_in_exec, UsageError)
    assert "cannot be used inside another" in str(result.error_in_exec)
    assert shell.user_ns["runs"] == [1]
    assert run("%%gpuprofile prof\n1").success


@pytest.mark.usefixtures("prepared")
def test_the_time_limit_of_the_settings_does_not_cut_the_replayed_repeat(run, shell):
    assert run("%config GpuProfile.time_limit = 0.0001").success
    run(CELL.format(40, ""))
    assert "The time limit" not in str(shell.user_ns["prof"].info["notes"])
    assert shell.user_ns["prof"].activities["name"].tolist().count("slow") == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--experiment 8", "takes from 16 to 10,000 repeats, not 8"),
        ("--experiment 99999999999999999999", "takes from 16 to 10,000 repeats, not 9999"),
        ("--experiment 40 --time-limit 0.005", "--time-limit may record a part of it"),
        ("--experiment 40 --children", "--experiment and --children cannot be combined"),
        (
            "--experiment 40 -r 20 --baseline b --interleave",
            "--interleave cannot be combined",
        ),
    ],
)
def test_options_that_cannot_be_used(run, options, reason):
    error = run(f"%%gpuprofile prof {options}\n1").error_in_exec
    assert isinstance(error, UsageError)
    assert reason in str(error)


ALIKE = (
    "from epprof_nb.analysis.experiments import reasons_not_to_start as reasons\n"
    "reasons.scatter_of = lambda walls: 0.01\nreasons._drift_of = lambda walls: 0.0\n"
    "from epprof_nb.recording.delays import experiment\nexperiment.unusual = lambda *_: ''\n"
)
SCRIPT = (
    "import time, epprof_nb\nfrom epprof_nb import host\nx = host.to_device([1.0])\n" + ALIKE +
    "for i in range({}):\n    epprof_nb.step()\n    with epprof_nb.op('layer'):\n"
    "        host.launch(lambda a: time.sleep(0.002), x, name='slow')\n    host.synchronize()\n"
)  # fmt: skip


def test_steps_of_a_script_are_delayed_after_the_recorded_one(tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT.format(100), encoding="utf-8")
    loud = [part for part in RUN if part != "--quiet"]
    ended = execute([*loud, "--experiment", "40", "-o", "job.epprof", "job.py"], tmp_path)
    assert "40 repeats measure" in ended.stderr
    assert "Experiment: 40 repeats with delays." in ended.stderr
    prof = epprof_nb.load(tmp_path / "job.epprof")
    assert prof.activities["name"].tolist().count("slow") == 1
    assert prof.ops["repeat"].dropna().unique().tolist() == [0]
    assert len(prof.info["experiment"]["rounds"][0]["wall_ns"]) == 40
    assert prof.sensitivity()["name"].tolist() == ["layer"]


def test_a_script_that_ends_early_keeps_what_was_measured(profiled, tmp_path):
    profiled(
        SCRIPT.format(60), options=("--experiment", "40", "--steps", "3:5", "-o", "job.epprof")
    )
    prof = epprof_nb.load(tmp_path / "job.epprof")
    assert len(prof.info["repeats"]) == 2
    # Repeats of two steps from step 5 on, of which the last one does not end and eleven have no
    # delays.
    assert len(prof.info["experiment"]["rounds"][0]["wall_ns"]) == (60 - 5) // 2 - BASE
    assert "the code ended after" in prof.info["experiment"]["refused"]
    ended = profiled(SCRIPT.format(2), options=("--experiment", "40", "-o", "job.epprof"))
    assert "no experiment: the script ended in step 2" in ended.stderr


def test_steps_whose_device_work_goes_on_are_measured_in_a_row(profiled, tmp_path):
    code = SCRIPT.format(600).replace("    host.synchronize()\n", "    time.sleep(0.001)\n")
    code = code.replace("0.002", "0.004")
    ended = profiled(code, options=("--experiment", "16", "-o", "job.epprof"))
    prof = epprof_nb.load(tmp_path / "job.epprof")
    experiment = prof.info["experiment"]
    assert not experiment["refused"], ended.stderr
    # More than half of the time of a step alone is device work after its code.
    assert experiment["steps"] == len(prof.info["repeats"]) >= 10
    assert len(experiment["rounds"][0]["wall_ns"]) == 16
    assert f"A repeat has {experiment['steps']} steps" in experiment["plan"]
    (layer,) = prof.sensitivity().itertuples()
    assert layer.executions == experiment["steps"]
    # The device is the limit: without its work, the time of the host remains.
    assert 0.4 * prof.wall_ns < layer.saving_if_free_ns < 0.9 * prof.wall_ns


def test_a_script_that_ends_while_more_steps_are_recorded_keeps_the_first_profile(
    profiled, tmp_path
):
    code = SCRIPT.format(3 + BASE + 4).replace("    host.synchronize()\n", "")
    profiled(code, options=("--experiment", "40", "-o", "job.epprof"))
    prof = epprof_nb.load(tmp_path / "job.epprof")
    assert len(prof.info["repeats"]) == 1
    assert "the code ended before the repeats with delays" in prof.info["experiment"]["refused"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--experiment", "8"), "must be from 16 to 10,000"),
        (("--experiment", "1000000"), "must be from 16 to 10,000"),
        (("--experiment", "40", "--time-limit", "1"), "--time-limit may record a part of one"),
        (("--experiment", "40", "--children"), "cannot be used for a job"),
        (("--experiment", "40", "--steps", "3:"), "--steps needs an end"),
    ],
)
def test_options_of_a_script_that_cannot_be_used(options, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("")
    result = CliRunner().invoke(main, ["run", *options, "job.py"])
    assert result.exit_code == 2
    assert reason in " ".join(result.output.split())
