"""Chromium, pages with a known profile, and a JupyterLab to open notebooks in."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from epprof_nb.profiles import Profile
from epprof_nb.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.table import Names, Table

MS = 1_000_000
HOSTILE = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"

SOURCE = "x = load()\ny = step(x)\nz = y.get()"


def known_profile() -> Profile:
    """100 ms: three statements, a hostile range, two streams, a gap from 50 to 80 ms."""
    ops = Table(
        OPS,
        {
            "op_id": np.array([1, 2, 3, 4, 5]),
            "parent_op_id": np.array([-1, 1, 1, 3, 1]),
            "name": Names.of(["In[3]", "x = load()", "y = step(x)", HOSTILE, "z = y.get()"]),
            "op_type": Names.of(["cell", "line", "line", "range", "line"]),
            "category": Names.of(["cell", "user", "user", "user", "user"]),
            "thread_id": np.full(5, 77),
            "start_ns": np.array([0, 1, 12, 13, 52]) * MS,
            "end_ns": np.array([100, 10, 50, 40, 99]) * MS,
            "duration_ns": np.array([100, 9, 38, 27, 47]) * MS,
            "count": np.ones(5, np.int64),
            "cell": Names.of([None, "In[3]", "In[3]", None, "In[3]"]),
            "line": np.array([-1, 1, 2, -1, 3]),
            "status": Names.constant("complete", 5),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": Names.of(["memcpy", "kernel", "kernel", "memset", "memcpy", "synchronization"]),
            "name": Names.of(
                ["HtoD", HOSTILE, "void at::gemm<float>(int)", "memset", "DtoH", "wait"]
            ),
            "device_id": np.zeros(6, np.int64),
            "stream_id": np.array([13, 7, 7, 7, 13, 7]),
            "start_ns": np.array([5, 20, 30, 45, 80, 60]) * MS,
            "end_ns": np.array([10, 30, 45, 50, 90, 80]) * MS,
            "duration_ns": np.array([5, 10, 15, 5, 10, 20]) * MS,
            "correlation_id": np.array([11, 12, 13, 14, 15, 16]),
            "op_id": np.array([2, 4, 4, 3, 5, 5]),
            "bytes": np.array([4_000_000, -1, -1, 256, 1000, -1]),
            "attribution": Names.constant("stack", 6),
            "thread_id": np.full(6, 77),
        },
    )
    calls = Table(
        API_CALLS,
        {
            "name": Names.of(["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuLaunchKernel"]),
            "thread_id": np.full(3, 77),
            "start_ns": np.array([4, 14, 16]) * MS,
            "end_ns": np.array([5, 15, 18]) * MS,
            "duration_ns": np.array([1, 1, 2]) * MS,
            "correlation_id": np.array([11, 12, 13]),
            "op_id": np.array([2, 4, 4]),
        },
    )
    info = {
        "wall_ns": 100 * MS,
        "cell": "In[3]",
        "devices": [{"device_id": 0, "name": "Test <b>GPU</b>", "kind": "cuda"}],
        "recorded": {"launched": {"kernel": 2}, "shown": {"kernel": 2}, "lost": {}},
        "attribution": {"stack": 6, "cell": 0, "none": 0},
        "profiling_cost": {"ns": MS, "share": 0.01},
    }
    return Profile(
        {"ops": ops, "activities": activities, "api_calls": calls}, info, {"In[3]": SOURCE}
    )


@pytest.fixture(scope="session")
def profile() -> Profile:
    return known_profile()


def _chromium() -> str:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no chromium on the PATH")
        pytest.skip("needs chromium on the PATH")
    return path


@pytest.fixture(scope="package")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    # Without a GPU, WebGL is to be had only in software and only where it is asked for.
    arguments = ["--no-sandbox", "--force-color-profile=srgb", "--enable-unsafe-swiftshader"]
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser):
    """A function that opens an address in a fresh page, and checks for errors at the end."""
    contexts, errors = [], []

    def go(address: str, *, theme: str = "light", width: int = 1100, height: int = 760):
        context = browser.new_context(
            color_scheme=theme, viewport={"width": width, "height": height}
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: _of_the_front_end(error) or errors.append(str(error)))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def shown(opened, tmp_path):
    """A function that opens a profile's page, drawn by the renderer that is named."""

    from epprof_nb.views.page import write_html
    from tests.browser.pixels import drawn_by, ready, with_renderer

    def show(profile: Profile, renderer: str, **options):
        plain = tmp_path / "plain.html"
        write_html(profile, plain)
        path = tmp_path / f"{renderer}.html"
        path.write_text(with_renderer(plain.read_text(), renderer))
        page = ready(opened(path.as_uri(), **options))
        assert drawn_by(page) == renderer
        return page

    return show


def _of_the_front_end(error) -> bool:
    """Whether an error comes from Notebook's own code."""
    return "/static/notebook/" in (error.stack or "")


@pytest.fixture(scope="session")
def page_file(profile, tmp_path_factory) -> Path:
    from epprof_nb.views.page import write_html

    path = tmp_path_factory.mktemp("page") / "profile.html"
    write_html(profile, path)
    return path


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab on this machine alone: (address, folder of notebooks)."""
    pytest.importorskip("jupyterlab")
    with _server("jupyterlab", tmp_path_factory.mktemp("lab")) as served:
        yield served


@pytest.fixture(scope="session")
def notebook7(tmp_path_factory):
    """A Notebook 7, likewise."""
    pytest.importorskip("notebook")
    with _server("notebook", tmp_path_factory.mktemp("notebook")) as served:
        yield served


@contextlib.contextmanager
def _server(module: str, folder: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parents[1]), str(here), os.environ.get("PYTHONPATH", "")])
    settings = {
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / ".lab"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / ".spaces"),
    }
    command = [
        sys.executable, "-m", module, "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", "--allow-root",
        "--LabApp.news_url=", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(
        command, stdout=log, stderr=log, env={**os.environ, **settings, "PYTHONPATH": path}
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api", timeout=1)
                break
            except OSError:
                time.sleep(0.25)
        else:
            pytest.fail((folder / "server.log").read_text()[-3000:])
        yield address, folder
    finally:
        server.terminate()
        server.wait(20)
        log.close()
