"""Options of the line magic."""

from pathlib import Path

import pytest
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import TransformerManager

from epprof_nb.core.options import FRAMEWORKS, Options
from epprof_nb.notebook.arguments import parse, parse_line
from epprof_nb.notebook.magic import ProfileMagics
from epprof_nb.notebook.settings import GpuProfile


def parsed(line: str):
    transform = TransformerManager().transform_cell
    return parse_line(ProfileMagics.gpuprofile, line, GpuProfile(), transform=transform)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("p y = model(x)", "-o p y = model(x)"),
        ("prof model(x)", "-o prof model(x)"),
        ("--repeat 3 prof model(x)", "-o prof model(x)"),
        ("prof --repeat 3 y = model(x)", "-o prof --repeat 3 y = model(x)"),
        ("prof await model(x)", "-o prof await model(x)"),
        ("prof %run script.py", "-o prof %run script.py"),
        ("größe f()", "-o größe f()"),
    ],
)
def test_a_name_before_the_statement_is_told_to_be_an_option(line, advice):
    with pytest.raises(UsageError) as raised:
        parsed(line)
    assert f"%gpuprofile {advice}" in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "line", "lines"),
    [(True, "", True), (True, "--no-lines", False), (False, "", False)],
)
def test_statements_are_ops_unless_the_option_or_the_setting_says_no(setting, line, lines):
    assert parse(ProfileMagics.gpuprofile, line, GpuProfile(lines=setting)).lines == lines


@pytest.mark.parametrize(
    "line", ["prof", "prof --repeat 3", "prof --live", "-q prof", "prof -r 20 -b old"]
)
def test_the_line_of_a_cell_magic_needs_two_percent_signs(line):
    with pytest.raises(UsageError) as raised:
        parsed(line)
    assert f"begin it with two %: %%gpuprofile {line.removeprefix('-q ')}." in str(raised.value)


@pytest.mark.parametrize(
    ("path", "instead"),
    [("out.txt", "out.epprof"), ("run", "run.epprof"), ("a/b.html", "a/b.epprof")],
)
def test_save_takes_one_ending(path, instead):
    with pytest.raises(UsageError) as raised:
        parse(ProfileMagics.gpuprofile, f"prof --save {path}", GpuProfile())
    assert f"--save {instead}" in str(raised.value)
    assert "prof.to_html" in str(raised.value)


def test_a_job_is_not_saved_as_one_profile():
    assert parse(ProfileMagics.gpuprofile, "job --children", GpuProfile()).children
    with pytest.raises(UsageError, match=r"job\.save\('run'\)"):
        parse(ProfileMagics.gpuprofile, "job --children --save run.epprof", GpuProfile())


@pytest.mark.parametrize(
    "line",
    [
        "y = model(x)", "p (x)", "p -x", "p [0]", "p if x else y", "del x", "return x",
        "await f()", "await p", "!ls -l", "%time f()", "p.x = 1", "x = (", "p 3 4 +", "print x",
        "for i in x: f(i)", "import math", "lambda: 0", "x; y", "p?",
    ],
)  # fmt: skip
def test_other_statements_are_left_alone(line):
    request, statement = parsed(line)
    assert statement == line
    assert request.name is None


@pytest.mark.parametrize(
    "name",
    [
        "In", "Out", "print", "__builtins__", "_", "___", "_1", "_i", "_iii", "_i1", "_ih", "_oh",
        "_dh", "exit", "quit", "get_ipython", "__name__", "_exit_code",
    ],
)  # fmt: skip
def test_names_of_python_and_ipython_are_refused(name):
    for line in (name, f"-o {name}"):
        with pytest.raises(UsageError, match="Choose another name"):
            parse(ProfileMagics.gpuprofile, line, GpuProfile())


@pytest.mark.parametrize("name", ["prof", "_prof", "p1", "_x1", "in_", "Input"])
def test_other_names_are_accepted(name):
    assert parse(ProfileMagics.gpuprofile, name, GpuProfile()).name == name


@pytest.mark.parametrize("name", ["stacks", "samples"])
@pytest.mark.parametrize("by_setting", [False, True])
def test_stacks_and_samples_are_left_out_by_themselves(name, by_setting):
    settings = GpuProfile(**{name: False}) if by_setting else GpuProfile()
    line = "prof" if by_setting else f"prof --no-{name}"
    options = parse(ProfileMagics.gpuprofile, line, settings).options
    assert (options.stacks, options.samples) == (name != "stacks", name != "samples")


def test_frameworks_are_those_of_the_settings():
    settings = GpuProfile()
    assert parse(ProfileMagics.gpuprofile, "prof", settings).options.frameworks == FRAMEWORKS
    settings.frameworks = ["torch", "flax"]
    with pytest.raises(
        UsageError,
        match="unknown framework 'flax'; choose from torch, jax, triton, numba, cupy, nvtx, dask; "
        r"\[\] records none",
    ):
        parse(ProfileMagics.gpuprofile, "prof", settings)
    settings.frameworks = []
    assert parse(ProfileMagics.gpuprofile, "prof", settings).options.frameworks == ()
    settings.frameworks = ["torch", "nvtx"]  # offers the injection again
    one, other = Options(frameworks=("torch",)), Options(frameworks=("nvtx",))
    assert one.union(other).frameworks == ("torch", "nvtx")


def test_own_code_and_libraries_of_the_line_come_after_those_of_the_settings():
    settings = GpuProfile(own=["models"])
    line = "prof --own 'utils, /src/a b.py' --library vendor"
    options = parse(ProfileMagics.gpuprofile, line, settings).options
    assert options.own == ("models", "utils", "/src/a b.py")
    assert options.library == ("vendor",)
    assert parse(ProfileMagics.gpuprofile, "prof", GpuProfile()).options.own == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("prof  # the profile", {"name": "prof"}),
        ("# nothing else", {}),
        ("prof --repeat 3 # isn't \"quoted", {"name": "prof", "repeat": 3}),
        ("--save 'run #1.epprof' # a file", {"save": Path("run #1.epprof")}),
        ("--save run#1.epprof", {"save": Path("run#1.epprof")}),
    ],
)
def test_a_comment_behind_the_options_is_left_out(line, expected):
    request = parse(ProfileMagics.gpuprofile, line, GpuProfile())
    given = {"name": request.name, "repeat": request.repeat, "save": request.save}
    assert given == {"name": None, "repeat": 1, "save": None} | expected
