"""The examples of ``docs/host.md`` run, one after the other, and print what the page says."""

import gc
import re

import pytest

from epprof_nb import host
from tests.paths import ROOT

PAGE = ROOT / "docs" / "host.md"


@pytest.fixture(scope="module")
def names():
    """The names that the examples define, and what they print as ``printed``."""
    printed = []
    found = {"print": lambda *values: printed.append(values), "printed": printed}
    gc.disable()  # as in tests: its pauses are ops of a profile
    try:
        for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(code, PAGE.name, "exec"), found)
    finally:
        gc.enable()
    return found


def test_the_first_example_has_a_kernel_and_two_copies(names):
    assert names["prof"].by_kernel()["name"].tolist() == ["sqrt"]
    by_op = names["prof"].by_op().set_index("name")
    assert by_op["memcpys"].to_dict() == {"upload": 1, "roots": 0, "download": 1}
    assert by_op["kernels"].to_dict() == {"upload": 0, "roots": 1, "download": 0}
    assert names["result"].tolist() == [1.0] * 1_000_000


def test_the_examples_print_what_their_comments_say(names):
    printed = [values for values in names["printed"] if not isinstance(values[0], host.DeviceError)]
    assert (3.0,) in printed
    assert printed[-1] == (True, True)


def test_the_error_names_the_kernel_and_its_line(names):
    (error,) = (v for v, *_ in names["printed"] if isinstance(v, host.DeviceError))
    assert re.match(r"kernel 'add', launched at .*host\.md:\d+,", str(error))


def test_every_public_name_that_the_page_mentions_exists():
    mentioned = set(re.findall(r"host\.([A-Za-z_]+)", PAGE.read_text(encoding="utf-8")))
    assert mentioned - {"md"} <= set(host.__all__)
    assert mentioned >= {"launch", "Stream", "Event", "memcpy", "memset", "synchronize"}
