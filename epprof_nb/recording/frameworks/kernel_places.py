"""Places of kernels that are written in Python: files and lines of Triton, Numba and CuPy."""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import dataclass
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.patches import Patches, Switch
from epprof_nb.recording.ranges.range_sources import shown_file
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.core.options import Options


@dataclass(frozen=True, slots=True)
class KernelRuntime:
    """A library that compiles Python functions to kernels.

    Attributes
    ----------
    name
        The name of its framework.
    module, owner, method
        The method that launches a kernel, and its class and module.
    launched
        Returns the object that represents the kernel, given the method's object and result.
    describe
        Returns the name of the kernel and its function, given both objects.
    """

    name: str
    module: str
    owner: str
    method: str
    launched: Callable[[Any, Any], Any]
    describe: Callable[[Any, Any], tuple[str, Any]]


RUNTIMES = (
    KernelRuntime(
        "triton", "triton.runtime.jit", "JITFunction", "run",
        lambda function, kernel: kernel,  # noqa: ARG005
        lambda function, kernel: (kernel.name, function.fn),
    ),
    KernelRuntime(
        "numba", "numba.cuda.dispatcher", "_Kernel", "launch",
        lambda kernel, result: kernel,  # noqa: ARG005
        lambda kernel, result: (kernel.entry_name, kernel.py_func),  # noqa: ARG005
    ),
    KernelRuntime(
        "cupy", "cupyx.jit._interface", "_JitRawKernel", "__call__",
        lambda kernel, result: kernel,  # noqa: ARG005
        lambda kernel, result: (kernel._func.__name__, kernel._func),  # noqa: ARG005, SLF001
    ),
)  # fmt: skip


class KernelFramework:
    """Records where kernels are defined.

    See `epprof_nb.recording.frameworks.framework.Framework`.
    """

    def __init__(self, runtime: KernelRuntime) -> None:
        self.name = runtime.name
        self._runtime = runtime
        self._wanted = False
        self._patches, self._switch = Patches(), Switch()
        # By id of the kernel. Keeps the kernel alive.
        self._launched: dict[int, tuple[Any, Any]] = {}
        self._notes: list[str] = []
        os.register_at_fork(after_in_child=self.stop)

    def start(self, options: Options) -> None:  # noqa: ARG002 - it has no options
        """Start recording now, or when other code has imported the library."""
        self._wanted = True
        self._switch, self._launched, self._notes = Switch(), {}, []
        after_import(self._runtime.module, self._begin)

    def extend(self, options: Options) -> None:
        """Do nothing: everything is recorded."""

    def _begin(self) -> None:
        runtime = self._runtime
        owner = getattr(sys.modules[runtime.module], runtime.owner, None)
        if not self._wanted:
            return
        if hasattr(owner, runtime.method):
            self._patches.replace(owner, runtime.method, self._recorded)
        else:
            self._notes.append(
                f"Places of kernels of {self.name} are not recorded, because this release has no "
                f"{runtime.module}.{runtime.owner}.{runtime.method}."
            )

    def _recorded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the method that launches a kernel."""
        launched_of, launched, switch = self._runtime.launched, self._launched, self._switch

        def launch(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            result = original(self, *args, **kwargs)
            if switch.on:
                kernel = launched_of(self, result)
                launched[id(kernel)] = (self, kernel)
            return result

        return launch

    def complete(self) -> None:
        """Do nothing: `kernel_places` describes the kernels."""

    def kernel_places(self) -> list[tuple[str, str, int]]:
        """Return the name, file and line of each kernel that was launched."""
        return self._described()[0]

    def notes(self) -> list[str]:
        """Return notes on what is not recorded."""
        errors = self._described()[1]
        if not errors:
            return list(self._notes)
        # The library's message may contain any characters, and its __str__ may fail.
        reason = " ".join(format_exception_only(errors[0])[-1].split())
        note = (
            f"Places of some kernels of {self.name} are not recorded, because describing "
            f"{plural(len(errors), 'kernel')} failed with "
            f"{reason.encode('utf-8', 'backslashreplace').decode()}"
        )
        return [*self._notes, note]

    def _described(self) -> tuple[list[tuple[str, str, int]], list[Exception]]:
        """Return the places of the kernels, and the errors of kernels without a place."""
        places, errors = [], []
        for owner, kernel in list(self._launched.values()):
            try:
                name, function = self._runtime.describe(owner, kernel)
                code = inspect.unwrap(function).__code__
                file = shown_file(code.co_filename)
                places.append((_native.demangle(name), file, code.co_firstlineno))
            except AttributeError:  # launched without compiling
                continue
            except Exception as error:  # noqa: BLE001 - the library's code, and any release of it
                errors.append(error)
        return places, errors

    def stop(self) -> None:
        """Restore the method, also in a forked child."""
        self._wanted = False
        self._switch.on = False
        cancel(self._runtime.module, self._begin)
        self._patches.restore()
        self._launched = {}


def unambiguous(places: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, Any]]:
    """Return the places of the names that have exactly one.

    Parameters
    ----------
    places
        Name, file and line of kernels.

    Returns
    -------
    places
        Dicts with ``file`` and ``line``, by name.

    Examples
    --------
    >>> unambiguous([("add", "a.py", 3), ("mul", "a.py", 9), ("mul", "b.py", 2)])
    {'add': {'file': 'a.py', 'line': 3}}
    """
    found: dict[str, set[tuple[str, int]]] = {}
    for name, file, line in places:
        found.setdefault(name, set()).add((file, line))
    return {
        name: {"file": file, "line": line}
        for name, distinct in found.items()
        if len(distinct) == 1
        for file, line in distinct
    }
