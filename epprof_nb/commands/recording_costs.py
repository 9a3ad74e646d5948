"""Costs of recording events on this machine, learned from short programs in profiles.

Each program does the work of a short operator before each event, because code and data of the
profiler are not in the caches when real code comes to an event. Events are timed one by one, and
the median counts: other processes interrupt few of them. On a busy machine the rounds differ too
much, and nothing is learned.
"""

from __future__ import annotations

import ast
import gc
import math
import statistics
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.commands.driver_kernel import DriverKernel
from epprof_nb.core.errors import EpprofError
from epprof_nb.data.recording_costs import (
    GRAPH_NODE,
    HOST_LAUNCH,
    LAUNCH,
    MODULE,
    OP,
    OPERATOR,
    STACK_FRAME,
    STATEMENT,
)
from epprof_nb.recording.statements.cell import instrument
from epprof_nb.recording.statements.markers import install_markers
from epprof_nb.recording.statements.statement_registry import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Program = Callable[[int], list[int]]
    """Runs a number of events and returns their times, ns."""

_ROUNDS, _EVENTS = 12, 200
_MAX_ERROR, _MAX_ERROR_NS = 0.15, 20
"""Maximum standard error of a cost: as a share of it, or ns."""
_DEPTH, _NODES, _STATEMENTS = 40, 200, 8
_now = time.perf_counter_ns
_matrix = np.ones((48, 48), np.float32)


def learned_costs(*, modules: bool, gpu: bool) -> dict[str, float]:
    """Return the costs by kind of event (`epprof_nb.data.recording_costs.KINDS`), ns.

    Parameters
    ----------
    modules
        Whether to import PyTorch.
    gpu
        Whether to use the first GPU.

    Returns
    -------
    costs
        The costs that could be measured.
    """
    costs = {
        OP: _cost(_timed(_op)),
        STATEMENT: _statement_cost(),
        HOST_LAUNCH: _cost(_timed(_host_launch())),
    }
    if modules:
        with suppress(ImportError):
            costs |= _torch_costs()
    if gpu:
        with suppress(OSError, RuntimeError, EpprofError):
            costs |= _gpu_costs()
    return {kind: max(cost, 0.0) for kind, cost in costs.items() if not math.isnan(cost)}


def _work(number: int) -> str:
    """Work like a short operator that is called from Python."""
    product = _matrix @ _matrix
    return f"{number:>8}".strip() + str(product.shape) + repr(sorted((number, 3, 1)))


def _cost(recorded: Program, plain: Program | None = None, **options: Any) -> float:
    """Return what an event of a program takes longer in a profile, ns; NaN on a busy machine."""
    added = []
    for number in range(-1, _ROUNDS):
        medians = []
        for is_profiled, program in enumerate((plain or recorded, recorded)):
            gc.collect()
            gc.disable()
            with epprof_nb.profile(**options) if is_profiled else nullcontext():
                times = program(_EVENTS)
            gc.enable()
            medians.append(statistics.median(times))
        if number >= 0:
            added.append(medians[1] - medians[0])
    return steady_value(added)


def steady_value(values: Sequence[float]) -> float:
    """Return the median of measured costs, ns; NaN if its error is too large.

    Examples
    --------
    >>> steady_value([500, 510, 490, 505])
    502.5
    >>> steady_value([500, 1510, 90, 505])
    nan
    """
    cost = statistics.median(values)
    deviation = 1.4826 * statistics.median(abs(value - cost) for value in values)
    error = 1.2533 * deviation / math.sqrt(len(values))
    return float(cost) if error <= max(_MAX_ERROR * cost, _MAX_ERROR_NS) else math.nan


def _timed(event: Callable[[], object]) -> Program:
    """Return the program that calls a function as its event."""

    def run(count: int) -> list[int]:
        times = []
        for number in range(count):
            _work(number)
            begin = _now()
            event()
            times.append(_now() - begin)
        return times

    return run


def _op() -> None:
    with epprof_nb.op("op"):
        pass


def _statement_cost() -> float:
    """Return the cost of a statement of a cell."""
    assigned = [f"    a{i} = number" for i in range(_STATEMENTS - 1)]
    lines = [
        "for number in range(count):", "    work(number)", "    begin = now()", *assigned,
        "    took = now() - begin", "    times.append(took)",
    ]  # fmt: skip
    source = "\n".join([*lines, ""])
    marked = ast.parse(source)
    marked.body = instrument(marked.body, Cell("costs", source))
    namespace: dict[str, Any] = {"work": _work, "now": _now}
    install_markers(namespace)

    def program(code: ast.Module) -> Program:
        compiled = compile(code, "costs", "exec")

        def run(count: int) -> list[int]:
            namespace.update(count=count, times=[])
            exec(compiled, namespace)  # noqa: S102 - the source above
            times: list[int] = namespace["times"]
            return times

        return run

    return _cost(program(marked), program(ast.parse(source))) / _STATEMENTS


def _host_launch() -> Callable[[], object]:
    array = host.to_device(np.ones(4, np.float32))
    return lambda: host.launch(_nothing, array)


def _nothing(*_: object) -> None:
    """Do nothing."""


def _torch_costs() -> dict[str, float]:
    import torch

    class Outer(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Identity()

        def forward(self, count: int) -> list[int]:
            return _timed(lambda: self.inner(given))(count)

    model, given = Outer(), torch.ones(4)
    with torch.no_grad():
        return {
            MODULE: _cost(model),
            OPERATOR: _cost(_timed(lambda: given.add(1)), detail="operators"),
        }


def _gpu_costs() -> dict[str, float]:
    kernel = DriverKernel()
    launches = _timed(kernel.launch)

    def deep(count: int, depth: int = _DEPTH) -> list[int]:
        return deep(count, depth - 1) if depth else launches(count)

    costs = {LAUNCH: _cost(launches)}
    costs[STACK_FRAME] = (_cost(deep) - costs[LAUNCH]) / _DEPTH
    replay = kernel.graph(_NODES)

    def replays(_: int) -> list[int]:
        times = _timed(replay)(_EVENTS // 10)
        kernel.synchronize()
        return times

    costs[GRAPH_NODE] = (_cost(replays) - costs[LAUNCH]) / _NODES
    return costs
