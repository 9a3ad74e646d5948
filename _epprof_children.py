"""Startup hook of Python processes, which `epprof_nb.pth` and `epprof_nb.start` call.

It lets the children of a profiled process record themselves: `recording/children/propagation.py`
gives the order. In every other process it looks at one environment variable and imports nothing.
"""

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


def follow() -> None:
    """Obey the order to record that the parent process left in the environment, if any."""
    order = os.environ.get("EPPROF_CHILDREN")
    if order:
        _follow(order, "subprocess", None if sys.flags.safe_path else _folder(sys.orig_argv[1:]))


def _follow(
    order: str, followed: "Literal['subprocess', 'forkserver']", folder: "str | None"
) -> None:
    path = [*sys.path]
    try:
        if not _is_order(order):
            return
        # The program may have modules with the names of standard ones.
        standard = os.path.dirname(os.__file__)  # noqa: PTH120
        sys.path.sort(key=lambda entry: os.path.normpath(entry) != standard)
        from epprof_nb.jobs.child_start import follow as follow_order

        follow_order(order, followed, folder)
    except Exception:  # noqa: BLE001, S110 - the process must run; its parent lists it
        pass
    finally:
        sys.path[:] = path


def _folder(arguments: "list[str]") -> str:
    """Return the folder from which the program will import its modules.

    Python sets `sys.path[0]` only later.
    """
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            break
        if word[:2] == "--":
            continue
        at, letter = next(((i, c) for i, c in enumerate(word) if c in "cmWX"), (0, ""))
        if letter in ("c", "m"):
            break
        if letter and at == len(word) - 1:
            next(words, None)
    else:
        word = "-"
    if word.startswith("-"):
        return os.getcwd()  # noqa: PTH109
    script = os.path.realpath(word)
    return script if os.path.isdir(script) else os.path.dirname(script)  # noqa: PTH112, PTH120


def _is_order(path: str) -> bool:
    """Whether a path leads to an order of this user; other paths must not cost an import."""
    if not (path.startswith("/") and path.endswith("/order.json")):
        return False
    found = os.lstat(path)  # opening a pipe would wait for ever
    return stat.S_ISREG(found.st_mode) and found.st_uid in (0, os.geteuid())


class Stowaway:
    """An order in what `multiprocessing` sends to a new process: unpickling it obeys the order.

    The server of the start method ``forkserver`` has the environment of its own start, so the
    environment of its children may lack the order.
    """

    def __init__(self, order: str, folder: "str | None" = None) -> None:
        self.order, self.folder = order, folder

    def __setstate__(self, state: "dict[str, str]") -> None:
        self.order, self.folder = state["order"], state.get("folder")
        _follow(self.order, "forkserver", self.folder)
