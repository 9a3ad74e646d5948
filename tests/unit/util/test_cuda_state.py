"""The state of CUDA in a process and in its forked children, with a stand-in for the driver."""

import subprocess
import sys

import pytest

from tests.helpers import cuda_stand_in

PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
from epprof_nb.util.cuda_state import broken_by_fork, cuda_started

def states(depth=0):
    print(cuda_started(), broken_by_fork(), flush=True)
    if depth < 2:
        child = os.fork()
        if child == 0:
            states(depth + 1)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return cuda_stand_in.build(tmp_path_factory.mktemp("driver"))


def run(driver, code):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + code, driver], capture_output=True, text=True, check=True
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_children_of_a_process_without_cuda_may_start_it(driver):
    assert run(driver, "states()") == [["False", "False"]] * 3


def test_children_of_a_process_that_has_started_cuda_cannot_use_it(driver):
    found = run(driver, "driver.start()\nstates()")
    assert [broken for _, broken in found] == ["False", "True", "True"]


def test_a_process_that_starts_cuda_after_a_fork_can_use_it(driver):
    found = run(driver, "states(1)\ndriver.start()\nstates(1)\nprint(broken_by_fork(), 0)")
    assert [broken for _, broken in found[:4]] == ["False", "False", "False", "True"]
    assert found[4][0] == "False"


def test_a_machine_without_the_driver_has_not_started_cuda():
    code = (
        "from epprof_nb.util.cuda_state import cuda_started\n"
        "print(cuda_started(), 'libcuda' in open('/proc/self/maps').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
