"""Completion of the magic's options, and the examples of its help."""

from __future__ import annotations

import re

import pytest
from IPython.core.completer import provisionalcompleter

from epprof_nb.core.options import DETAILS
from epprof_nb.notebook.arguments import parse, parse_line
from epprof_nb.notebook.extension import unload_ipython_extension
from tests.helpers.jupyter_kernels import running_kernel


@pytest.fixture(scope="module")
def client():
    """A client of a kernel in which the extension is loaded."""
    with running_kernel() as client:
        client.execute("%load_ext epprof_nb", reply=True, timeout=60)
        client.execute("warmed_model = 1", reply=True, timeout=60)
        yield client


@pytest.fixture
def completed(client):
    """Complete code; return the completions, and the code with the only one, if there is one."""

    def completed(code: str) -> tuple[list[str], str | None]:
        reply = client.complete(code, reply=True, timeout=60)["content"]
        matches = reply["matches"]
        start, end = reply["cursor_start"], reply["cursor_end"]
        return matches, code[:start] + matches[0] + code[end:] if len(matches) == 1 else None

    return completed


@pytest.mark.parametrize("code", ["%%gpuprofile --", "%%gpuprofile ", "%gpuprofile --"])
def test_the_options_are_offered(completed, code):
    options, _ = completed(code)
    assert {"--warmup", "--repeat", "--detail", "--live", "--save"} <= set(options)
    assert all(option.startswith("--") for option in options)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("%%gpuprofile prof --w", "%%gpuprofile prof --warmup"),
        ("%gpuprofile -q --liv", "%gpuprofile -q --live"),
        ("y = %gpuprofile --liv", "y = %gpuprofile --live"),
        ("%%gpuprofile --detail ov", "%%gpuprofile --detail overhead"),
        ("%%gpuprofile --detail=ov", "%%gpuprofile --detail=overhead"),
        ("%%gpuprofile -d api,mem", "%%gpuprofile -d api,memory"),
        ("%%gpuprofile prof\nwarmed", "%%gpuprofile prof\nwarmed_model"),
    ],
)
def test_a_word_is_completed(completed, code, result):
    assert completed(code)[1] == result


def test_what_is_given_is_not_offered_again(completed):
    options, _ = completed("%%gpuprofile -w 2 --live --")
    assert "--repeat" in options
    assert not {"--warmup", "--live"} & set(options)
    assert completed("%%gpuprofile --detail ")[0] == list(DETAILS)
    assert completed("%%gpuprofile --detail api,")[0] == [d for d in DETAILS if d != "api"]


@pytest.mark.parametrize(
    "code", ["%gpuprofile x --", "%%gpuprofile --warmup ", "%%gpuprofilex --", "x = 1 --"]
)
def test_options_are_not_offered_elsewhere(completed, code):
    assert "--repeat" not in completed(code)[0]


def test_paths_are_completed_after_save(completed, tmp_path):
    (tmp_path / "only-one.epprof").touch()
    code = f"%%gpuprofile --save {tmp_path}/on"
    assert completed(code)[1] == f"{code}ly-one.epprof"


def test_the_matcher_is_removed_with_the_extension(shell):
    def options() -> list[str]:
        code = "%%gpuprofile --"
        with provisionalcompleter():
            found = [completion.text for completion in shell.Completer.completions(code, len(code))]
        return [text for text in found if text.startswith("--")]

    assert "--warmup" in options()
    unload_ipython_extension(shell)
    assert options() == []


def test_the_examples_of_the_help_are_valid(shell):
    magic = shell.magics_manager.magics["cell"]["gpuprofile"]
    settings = magic.__self__.settings
    text = magic.__doc__.split("Examples")[1]
    cells = re.findall(r"^ +%%gpuprofile (.*)$", text, re.MULTILINE)
    statements = re.findall(r"^ +%gpuprofile (.*)$", text, re.MULTILINE)
    assert len(cells) >= 3
    assert {parse(magic, line, settings).name for line in cells} == {"job", "prof"}
    assert [parse_line(magic, line, settings)[1] for line in statements] == ["y = model(x)"]
