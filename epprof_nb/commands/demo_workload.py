"""Workload of ``epprof demo``, on the GPU, or on the host device without one."""

from __future__ import annotations

import ast
from importlib.resources import files
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.profiles import Profile
from epprof_nb.recording.session import session
from epprof_nb.recording.session.ops_table import CELL
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.markers import install_markers
from epprof_nb.recording.statements.statement_registry import Cell

if TYPE_CHECKING:
    from types import CodeType


def run() -> tuple[Profile, str]:
    """Profile a script that trains a two-layer network.

    Returns
    -------
    tuple of Profile and str
        The profile, and a sentence that names the device and the reason for its choice.
    """
    name, where = _script()
    source = files("epprof_nb.commands").joinpath("demo_scripts", name).read_text("utf-8")
    cell = Cell(name, source)
    code = _instrumented(cell)
    _execute(code)  # warm up: compilation and first allocations
    recording = session.start(cell=name, source=source, script=name)
    try:
        op = _native.push(_native.intern(name), CELL)
        _execute(code)
        _native.pop(op)
        return Profile.from_data(recording.stop()), where
    except BaseException:
        recording.abort()
        raise


def _script() -> tuple[str, str]:
    """Return the script for this machine, and a sentence that names the device."""
    on_host = "train_on_host.py"
    try:
        import cupy

        cupy.arange(4).sum().item()
    except ImportError:
        return on_host, (
            "Ran on the host device (this machine's CPU), because CuPy is not installed. To use "
            'an NVIDIA GPU, run: pip install -e ".[cuda13]" (or cuda12).'
        )
    except Exception as error:  # noqa: BLE001 - after any CUDA error the demo uses the host device
        return on_host, (
            "Ran on the host device (this machine's CPU), because CuPy found no usable GPU "
            f"({type(error).__name__}). Run `epprof doctor` to find out what is missing."
        )
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return "train_on_gpu.py", f"Ran on {name} through CuPy."


def _instrumented(cell: Cell) -> CodeType:
    """Compile a script so that its statements are recorded as ops."""
    tree = ast.parse(cell.source, cell.name)
    tree.body = instrument(tree.body, cell)
    return compile(tree, cell.name, "exec")


def _execute(code: CodeType) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    install_markers(namespace)
    exec(code, namespace)  # noqa: S102 - a script of this package
