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
from typing import TYPE_CHECKING

import pytest

from tests.browser.helpers.known import PROFILES, known_profile
from tests.browser.helpers.notebooks import in_lab, in_notebook7, notebook
from tests.browser.helpers.open_notebook import OpenNotebook
from tests.browser.helpers.pixels import ready
from tests.browser.helpers.settling import COUNT_FRAMES
from tests.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from epprof_nb.profiles import Profile


@pytest.fixture(scope="session")
def profile() -> Profile:
    return known_profile()


def _chromium() -> str:
    # The headless shell has no windows with tabs: a page takes a quarter of the processor time.
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("there is no chromium on the PATH")
        pytest.skip("needs chromium on the PATH")
    return path


@pytest.fixture(scope="package")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    api.expect.set_options(timeout=60_000)  # a busy machine may take long
    arguments = ["--no-sandbox", "--force-color-profile=srgb"]
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        new_context = chromium.new_context

        def with_frames_counted(**options):
            context = new_context(**options)
            context.set_default_timeout(60_000)
            context.add_init_script(COUNT_FRAMES)
            return context

        chromium.new_context = with_frames_counted
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser):
    """A function that opens an address in a fresh page, and checks for errors at the end."""
    contexts, errors = [], []

    def go(
        address: str,
        *,
        theme: str = "light",
        width: int = 1100,
        height: int = 760,
        ratio: float = 1,
    ):
        context = browser.new_context(
            color_scheme=theme,
            viewport={"width": width, "height": height},
            device_scale_factor=ratio,
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
    """A function that opens a profile's page, with its timeline drawn."""

    from epprof_nb.views.view import write_html
    from tests.browser.helpers.pixels import ready

    def show(profile: Profile, **options):
        path = tmp_path / "page.html"
        write_html(profile, path)
        return ready(opened(path.as_uri(), **options))

    return show


def _of_the_front_end(error) -> bool:
    """Whether an error comes from Notebook's own code."""
    return "/static/notebook/" in (error.stack or "")


@pytest.fixture(scope="session")
def page_files(tmp_path_factory) -> Callable[[str], Path]:
    """A function that gives the exported page of one of the known profiles."""
    from epprof_nb.views.view import write_html

    folder = tmp_path_factory.mktemp("pages")

    def file(profile: str) -> Path:
        path = folder / f"{profile}.html"
        if not path.exists():
            write_html(PROFILES[profile](), path)
        return path

    return file


@pytest.fixture(scope="session")
def page_file(page_files) -> Path:
    """The exported page of the profile whose every time is known."""
    return page_files("known")


@pytest.fixture(scope="session")
def loop_file(page_files) -> Path:
    """The exported page of a training loop."""
    return page_files("loop")


@pytest.fixture(scope="package")
def open_notebook(browser, lab):
    """A notebook in JupyterLab that stays open, so that the slow steps are done once."""
    _, folder = lab
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    path = notebook(folder, "gestures.ipynb", *[""] * 8)
    page = in_lab(lambda address: page.goto(address) and page, lab, path)
    yield OpenNotebook(page, path, errors)
    context.close()


@pytest.fixture
def in_jupyterlab(open_notebook):
    """The open notebook; a test that leaves an error there fails."""
    open_notebook.errors.clear()
    yield open_notebook
    assert open_notebook.errors == []


@pytest.fixture(scope="package")
def untrusted(browser, lab):
    """The outputs of a notebook that JupyterLab does not trust: of a comparison, and of a job."""
    from tests.browser.helpers.compared import comparison
    from tests.helpers.ranks import job_view

    job = job_view(4, absent=[(4, "started before")])
    shown = comparison()._repr_mimebundle_(), job.mimebundle()
    context = browser.new_context(viewport={"width": 1100, "height": 1800})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    path = notebook(lab[1], "untrusted.ipynb", "compare(old, new)", "job", shown=shown)
    page = in_lab(lambda address: page.goto(address) and page, lab, path)
    yield page.locator(".jp-OutputArea-output")
    context.close()
    assert errors == []


@pytest.fixture
def exported(opened, page_files):
    """A function that opens the exported page of one of the known profiles."""

    def show(profile: str = "known"):
        page = opened(page_files(profile).as_uri())
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        return ready(page)

    return show


@pytest.fixture(params=["exported page", "JupyterLab"])
def shows(request):
    """A function that shows a known profile on an exported page, and in JupyterLab.

    For tests of their differences: the focus, the clipboard, styles, and Python's answers.
    Other tests use `exported`, which is much faster.
    """
    if request.param == "JupyterLab":
        return request.getfixturevalue("in_jupyterlab").show
    return request.getfixturevalue("exported")


@pytest.fixture
def page(exported):
    """The exported page of the known profile of 100 ms, its timeline focused."""
    page = exported()
    page.locator(".ep-timeline").focus()
    return page


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab that only this machine reaches: (address, folder of notebooks)."""
    pytest.importorskip("jupyterlab")
    with _server("jupyterlab", tmp_path_factory.mktemp("lab")) as served:
        yield served


@pytest.fixture(scope="session")
def notebook7(tmp_path_factory):
    """A Notebook 7, likewise."""
    pytest.importorskip("notebook")
    with _server("notebook", tmp_path_factory.mktemp("notebook")) as served:
        yield served


@pytest.fixture(params=["JupyterLab", "Notebook 7"])
def front_end(request, opened):
    """The folder of a front end's notebooks, and a function that opens one of them.

    The page is so high that the front end draws all cells.
    """
    name, open_in = {"JupyterLab": ("lab", in_lab), "Notebook 7": ("notebook7", in_notebook7)}[
        request.param
    ]
    served = request.getfixturevalue(name)
    return served[1], lambda path: open_in(opened, served, path, height=1800)


@contextlib.contextmanager
def _server(module: str, folder: Path):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    settings = {
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / ".lab"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / ".spaces"),
    }
    command = [
        sys.executable, "-m", module, "--no-browser", "--ip=127.0.0.1",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=",
        "--ServerApp.disable_check_xsrf=True", "--allow-root", "--LabApp.news_url=",
        f"--ServerApp.root_dir={folder}", "--KernelManager.transport=ipc",
    ]  # fmt: skip
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    with (folder / "server.log").open("w") as log:
        for _ in range(5):  # another process may take the port first
            port = _free_port()
            server = subprocess.Popen(
                [*command, f"--port={port}"], stdout=log, stderr=log, env=environment
            )
            address = f"http://127.0.0.1:{port}"
            if _answers(server, address):
                break
            _end(server)
        else:
            pytest.fail((folder / "server.log").read_text()[-3000:])
        try:
            yield address, folder
        finally:
            _end(server)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(server: subprocess.Popen, address: str) -> bool:
    """Wait until a server answers; False if it ended or took more than four minutes."""
    end = time.monotonic() + 240
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=10)
        except OSError:
            time.sleep(0.1)
        else:
            return True
    return False


def _end(server: subprocess.Popen) -> None:
    server.terminate()
    try:
        server.wait(60)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
