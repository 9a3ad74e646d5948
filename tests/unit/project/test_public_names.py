"""The public names of the package, fresh and after use."""

import subprocess
import sys

import epprof_nb

PUBLIC = [
    "Job",
    "Profile",
    "cluster",
    "compare",
    "ep",
    "host",
    "load",
    "load_ipython_extension",
    "mcp",
    "onnxruntime",
    "op",
    "phase",
    "profile",
    "read_trace",
    "step",
    "testing",
    "unload_ipython_extension",
]


def test_dir_lists_the_public_names_fresh_and_after_a_profile():
    code = (
        "import epprof_nb; print(dir(epprof_nb))\n"
        "with epprof_nb.profile() as prof, epprof_nb.op('x'): pass\n"
        "prof.by_op(), prof.timeline()._repr_mimebundle_()\n"
        "print(dir(epprof_nb))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [str(PUBLIC)] * 2


def test_every_public_name_resolves():
    for name in PUBLIC:
        assert getattr(epprof_nb, name) is not None
    modules = (
        epprof_nb.ep, epprof_nb.host, epprof_nb.mcp, epprof_nb.onnxruntime, epprof_nb.testing,
    )  # fmt: skip
    for module in modules:
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert epprof_nb.__version__ == version("epprof-nb")
