"""Cells and scripts that run out of memory: what is shown, and what stays as it is without us."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import weakref

import pytest
from scripts import execute

from epprof_nb import host
from epprof_nb.notebook import failed_cell
from epprof_nb.recording.out_of_memory import torch_failures, variables

LIMIT = 100_000_000
SETUP = "from epprof_nb import host\nimport numpy as np\n"


@pytest.fixture(autouse=True)
def limit(no_modules_of_tests, monkeypatch):
    """At most 100 MB more than other tests have left on the host device, and a whole search."""
    monkeypatch.setattr(variables, "_LIMIT_S", 120)
    gc.collect()
    before = host.memory_info()
    host.set_memory_limit(before.used + LIMIT)
    yield
    gc.collect()
    host.set_memory_limit(before.limit)


@pytest.fixture
def explained(run, monkeypatch):
    """Run cells; the text of the explanation of the last one, "" without one."""
    outputs = []
    monkeypatch.setattr(failed_cell, "display", outputs.append)

    def run_all(*cells):
        outputs.clear()
        for cell in (SETUP, *cells):
            run(cell)
        bundles = [output._repr_mimebundle_() for output in outputs]
        assert len(bundles) <= 1
        assert all(set(bundle) == {"text/plain", "text/html"} for bundle in bundles)
        return bundles[0]["text/plain"] if bundles else ""

    return run_all


def watched():
    """Whether anything watches for failures of torch."""
    watch = torch_failures.Watch()
    watch.begin()
    is_watched = not watch.is_open
    watch.end()
    return is_watched


def test_a_cell_is_explained(explained):
    text = explained(
        "cache = [host.empty(5_000_000) for _ in range(4)]", "x = 1\nhost.empty(10**7)"
    )
    first, code, *_ = text.split("\n")
    assert first == "Out of memory on host device: line 2 of In[3] requested 40.0 MB."
    assert code == "    host.empty(10**7)"
    assert "Too little was free: 20.0 MB." in text
    assert "4 arrays, the largest float32[5,000,000]" in text


def test_a_request_above_the_limit_gets_advice(explained, run):
    text = explained("host.empty(10**9)")
    assert "more than all that the host device may use" in text
    assert "Request less, or raise the limit with `epprof_nb.host.set_memory_limit`." in text
    assert "Too little was free" not in text
    assert "No array of Python" not in text
    host.set_memory_limit(host.memory_info().used + 5 * 10**9)
    assert run("host.empty(10**9)").success


def test_the_lines_that_called_a_helper_are_told(explained):
    helpers = "def mem(n):\n    return host.empty(n)\ndef step(n):\n    return mem(n)"
    text = explained(helpers, "for _ in range(2):\n    step(10**9)")
    assert text.split("\n")[0] == (
        "Out of memory on host device: line 2 of In[2] in `mem` requested 4.00 GB, called from "
        "line 4 of In[2] in `step`, from line 2 of In[3]."
    )
    deep = "def deep(n):\n    return deep(n - 1) if n else host.empty(10**9)"
    assert "in `deep` requested 4.00 GB, called from line 1 of In[6]." in explained(deep, "deep(9)")


def test_other_errors_and_caught_ones_are_not(explained):
    assert explained("1 / 0") == ""
    assert explained("bytearray(10**15)") == ""
    caught = "try:\n    host.empty(10**9)\nexcept MemoryError:\n    pass\n"
    assert explained(caught) == ""
    assert explained(f"{caught}1 / 0") == ""


def test_the_setting_switches_it_off_and_on(explained):
    assert (
        explained("%config GpuProfile.explain_out_of_memory = False\n", "host.empty(10**9)") == ""
    )
    assert not watched()
    assert explained("%config GpuProfile.explain_out_of_memory = True\n", "host.empty(10**9)")
    assert watched()


def test_an_error_that_run_shows_is_explained_once(explained, tmp_path, monkeypatch):
    """The script is in another folder than the notebook, with a module that it imports."""
    monkeypatch.delitem(sys.modules, "of_script", raising=False)
    (tmp_path / "of_script.py").write_text(f"{SETUP}HELD = [host.empty(10**7)]\n")
    script = tmp_path / "script.py"
    script.write_text(f"{SETUP}import of_script\n\nhost.empty(10**9)\n")
    text = explained(f"%run {script}")
    sys.modules.pop("of_script")
    assert re.search(r"line 5 of \S*script\.py requested 4\.00 GB", text)
    assert re.search(r"`HELD\[0\]` in `\S*of_script\.py` +40\.0 MB", text)
    assert explained("1 + 1") == ""
    assert explained("1 / 0") == ""
    # A cell that a cell runs has its own explanation; `explained` has at most one.
    assert explained("get_ipython().run_cell('host.empty(10**9)')\n1")
    assert explained(f"try:\n    get_ipython().run_line_magic('run', '{script}')\nfinally:\n    1")


@pytest.mark.parametrize("magic", ["", "%%gpuprofile -q prof\n"])
def test_the_error_stays_as_it_is(explained, run, shell, magic):
    text = explained(f"{magic}def f():\n    return host.empty(10**9)\nf()")
    assert f"line {3 if magic else 2} of In[2] in `f` requested 4.00 GB" in text
    error = shell.last_execution_result.error_in_exec
    assert type(error) is MemoryError
    assert len(error.args) == 1
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize(
    "handler", ["raise ValueError('a') from e", "{}['a']", "raise ExceptionGroup('g', [e])"]
)
def test_wrapped_errors(explained, handler):
    text = explained(f"try:\n    host.empty(10**9)\nexcept MemoryError as e:\n    {handler}")
    assert "line 2 of In[2] requested 4.00 GB" in text
    assert "The cell ended in" in text


DEEP = "def deep():\n    mine = host.empty(5_000_000)\n    return deep()\n"


def code_after(text, sentence):
    """The code that an explanation gives below a sentence."""
    below = text.split(f"{sentence}\n")[1].split("\n")
    return "\n".join(line[6:] for line in below if line.startswith("      "))


def test_the_advice_releases_the_memory(explained, run, shell):
    text = explained(DEEP, "host.empty(10**6)", "deep()")
    assert "The traceback of this error keeps 80.0 MB alive" in text
    before = host.memory_info().used
    run(code_after(text.split("\n  The outputs")[0], "This releases it:"))
    assert host.memory_info().used == before - 80_000_000
    run(code_after(text, "This releases them:"))
    gc.collect()
    assert host.memory_info().used == before - 84_000_000


@pytest.mark.parametrize("error", ["ValueError('a') from e", "ExceptionGroup('g', [e])"])
def test_the_advice_for_chained_errors(explained, run, error):
    text = explained(DEEP, f"try:\n    deep()\nexcept MemoryError as e:\n    raise {error}")
    before = host.memory_info().used
    run(code_after(text, "This releases it:"))
    assert host.memory_info().used == before - 100_000_000


def test_an_earlier_error_is_found(explained, run):
    explained(DEEP, "deep()")
    text = explained("host.empty(10**6 * 20)")
    assert "`mine` in `deep` (In[2]:3), which an earlier error keeps" in text
    assert "No variable leads to" not in text
    assert "  Only an earlier error" in text


def test_a_limit_below_the_use_is_told(explained):
    text = explained("cache = host.empty(10**7)",
                     "host.set_memory_limit(10**6)", "host.empty(10**5)")  # fmt: skip
    assert re.search(r"\S+ [MG]B were taken before the limit was lowered to 1\.00 MB\.", text)


def test_nothing_is_kept(explained, run, shell):
    explained(
        "class Thing: pass\nthing = Thing()\nthing.data = host.empty(10**6)", "host.empty(10**9)"
    )
    gone = weakref.ref(shell.user_ns["thing"])
    run("del thing")
    gc.collect()
    assert gone() is None


def test_an_explanation_that_fails_is_reported(explained, capsys, monkeypatch):
    from epprof_nb.recording.out_of_memory import explain_error

    def fail(*_, **__):
        raise ValueError("planted")

    monkeypatch.setattr(explain_error, "explain", fail)
    assert explained("host.empty(10**9)") == ""
    assert "could not be explained (ValueError: planted)" in capsys.readouterr().err


SCRIPT = """
import sys
import epprof_nb
from epprof_nb import host

host.set_memory_limit(100_000_000)

def load(kept):
    kept.append(host.empty(5_000_000))

def main():
    kept = []
    if "caught" in sys.argv:
        try:
            host.empty(10**9)
        except MemoryError:
            pass
        return
    if "profile" in sys.argv:
        with epprof_nb.profile():
            while True:
                load(kept)
    while True:
        load(kept)

main()
"""


def test_epprof_run_explains_once(profiled):
    done = profiled(SCRIPT)
    assert done.returncode == 1
    text = done.stderr
    assert text.count("Out of memory on host device") == 1
    assert "line 9 of job.py in `load` requested 20.0 MB" in text
    assert "`kept` in `main` (job.py:" in text
    assert text.index("MemoryError: the host") < text.index("Out of memory on host device")
    assert profiled(SCRIPT, "profile").stderr.count("Out of memory on host device") == 1
    assert "Out of memory on host" not in profiled(SCRIPT, "caught").stderr


def test_profile_explains_once(tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    done = execute([sys.executable, "job.py", "profile"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("Out of memory on host device") == 1
    assert "line 9 of job.py in `load` requested 20.0 MB" in done.stderr
    assert "Traceback" in done.stderr


def test_loading_the_extension_imports_neither_torch_nor_the_search(tmp_path):
    code = (
        "from IPython.core.interactiveshell import InteractiveShell as S\n"
        "import sys; S.instance().run_line_magic('load_ext', 'epprof_nb')\n"
        "names = ('torch', 'epprof_nb.recording.out_of_memory.explain_error')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


KERNEL = """\
import numpy as np
from epprof_nb import ep, host
from tests.ep.sessions import model_of
@ep.kernel("Scratch", domain="of.memory", types="float32")
def scratch(ctx, x):
    ctx.out(x.shape, x.dtype)[...] = x
    work = host.empty(2 * 10**7)
feeds = {"x": np.ones(4, np.float32)}
session = ep.session(model_of("Scratch", feeds, domain="of.memory"), device="host")
"""


def test_a_kernel_that_runs_out_of_memory_is_explained_by_its_line(explained):
    pytest.importorskip("onnxruntime")
    text = explained(KERNEL, "cache = host.empty(10**7)", "session.run(None, feeds)")
    first, code, *_ = text.split("\n")
    assert first == (
        "Out of memory on host device: line 7 of In[2] in `scratch` requested 80.0 MB, "
        "called from line 1 of In[4]."
    )
    assert code == "    work = host.empty(2 * 10**7)"
    assert "Too little was free: 60.0 MB." in text
    assert re.search("`cache` +40.0 MB", text)
