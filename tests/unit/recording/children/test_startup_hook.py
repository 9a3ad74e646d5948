"""The startup hook of Python processes: what it does with texts that are no orders."""

import os
import subprocess
import sys

import pytest

from epprof_nb.core.options import Options
from epprof_nb.recording.children.order_to_children import ORDER_FILE, VARIABLE, Order

IS_IMPORTED = "import sys; print('epprof_nb' in sys.modules)"


def is_imported(variable, *options):
    """Whether a Python that starts with the variable imports the package."""
    done = subprocess.run(
        [sys.executable, *options, "-c", IS_IMPORTED],
        env={**os.environ, VARIABLE: os.fspath(variable)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout == "True\n"


@pytest.fixture
def order(tmp_path):
    path = tmp_path / ORDER_FILE
    Order(job_id="a1", folder=os.fspath(tmp_path), options=Options()).write(path)
    return path


@pytest.mark.parametrize("option", ["-I", "-E", "-P", "-s"])
def test_an_order_is_followed_under_all_options(order, option):
    assert is_imported(order, option)


@pytest.mark.parametrize(
    "text", ["1", " ", "\n", "x" * 5000, "/", "/dev/zero", "/nonexistent", ORDER_FILE, "\udcff"]
)
def test_other_texts_do_not_import_the_package(text):
    assert not is_imported(text)


def test_special_files_do_not_keep_python_from_starting(order, tmp_path):
    for name in ("pipe", "link", "folder"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / ORDER_FILE)
    (tmp_path / "link" / ORDER_FILE).symlink_to(order)
    (tmp_path / "folder" / ORDER_FILE).mkdir()
    for name in ("pipe", "link", "folder"):
        assert not is_imported(tmp_path / name / ORDER_FILE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_orders_of_other_users_are_not_followed(order):
    os.chown(order, 65534, 65534)
    assert not is_imported(order)
