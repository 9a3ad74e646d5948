"""Registry of the rules: the functions that return findings, by the profiles they apply to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.findings.rules.compilation.jax_compilations import repeated_compilations
from epprof_nb.analysis.findings.rules.compilation.torch_compilations import torch_compilations
from epprof_nb.analysis.findings.rules.copies.exposed_communication import exposed_communication
from epprof_nb.analysis.findings.rules.copies.repeated_copies import repeated_copies
from epprof_nb.analysis.findings.rules.copies.small_copies import small_copies
from epprof_nb.analysis.findings.rules.copies.transfers import copies_to_overlap, pageable_copies
from epprof_nb.analysis.findings.rules.device_work.far_from_peak import far_from_roof
from epprof_nb.analysis.findings.rules.device_work.growing_arrays import growing_arrays
from epprof_nb.analysis.findings.rules.device_work.hidden_work import critical_work
from epprof_nb.analysis.findings.rules.device_work.hot_places import hot_line, hot_op
from epprof_nb.analysis.findings.rules.device_work.layout_changes import layout_changes
from epprof_nb.analysis.findings.rules.device_work.precision import precise_kernels
from epprof_nb.analysis.findings.rules.device_work.shared_device import shared_device
from epprof_nb.analysis.findings.rules.host_work.host_lines import hot_host_line
from epprof_nb.analysis.findings.rules.host_work.hot_function import hot_function
from epprof_nb.analysis.findings.rules.host_work.imports import imports
from epprof_nb.analysis.findings.rules.host_work.torch_modules import slowest_module
from epprof_nb.analysis.findings.rules.host_work.torch_operators import slowest_torch_operator
from epprof_nb.analysis.findings.rules.idle_device.data_loaders import waiting_for_data
from epprof_nb.analysis.findings.rules.idle_device.idle_gaps import held_work, idle_gaps
from epprof_nb.analysis.findings.rules.idle_device.jax_reads import jax_reads
from epprof_nb.analysis.findings.rules.idle_device.waits_for_device import waiting_lines
from epprof_nb.analysis.findings.rules.iterations.slow_first_step import slow_first_step
from epprof_nb.analysis.findings.rules.iterations.unsteady_iterations import (
    drifting,
    outliers,
    warm_up,
)
from epprof_nb.analysis.findings.rules.launches.launch_bound import launch_bound
from epprof_nb.analysis.findings.rules.launches.repeated_captures import wasted_captures
from epprof_nb.analysis.findings.rules.launches.torch_optimizers import per_tensor_optimizers
from epprof_nb.analysis.findings.rules.memory.driver_allocations import driver_allocations
from epprof_nb.analysis.findings.rules.memory.garbage_collection import collector_pauses
from epprof_nb.analysis.findings.rules.memory.growing_memory import growing_memory
from epprof_nb.analysis.findings.rules.memory.unused_memory import fragmented_pools, unused_caches
from epprof_nb.analysis.findings.rules.onnx.cpu_fallback import fallbacks
from epprof_nb.analysis.findings.rules.onnx.missing_graph import graph_opportunity
from epprof_nb.analysis.findings.rules.onnx.onnx_node_time import node_memory, slowest_operator
from epprof_nb.analysis.findings.rules.onnx.onnx_nodes import (
    inserted_casts,
    quantization,
    slowest_node,
    thread_pool,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.findings.asked_savings import Asking
    from epprof_nb.analysis.findings.finding import Finding


def many_launches(index: ProfileIndex) -> Iterable[Finding] | Asking:
    """Return the finding on a graph of ONNX Runtime's nodes, else on launches in general."""
    return graph_opportunity(index) or launch_bound(index)


ALWAYS: tuple[Callable[[ProfileIndex], Iterable[Finding]], ...] = (
    fallbacks, warm_up, outliers, drifting, repeated_compilations, torch_compilations,
    wasted_captures, collector_pauses, slow_first_step, imports,
)  # fmt: skip
"""Functions that return findings of any profile."""
OF_DEVICE_WORK: tuple[Callable[[ProfileIndex], Iterable[Finding] | Asking], ...] = (
    critical_work, hot_line, hot_op, waiting_for_data, idle_gaps, held_work, waiting_lines,
    many_launches, pageable_copies, repeated_copies, copies_to_overlap, small_copies,
    exposed_communication, far_from_roof, driver_allocations, per_tensor_optimizers, shared_device,
    jax_reads, precise_kernels, layout_changes, growing_arrays,
)  # fmt: skip
"""Functions that return findings of a profile with device work.

The first one may need the steps of the critical path, which give the others its length.
"""
OF_HOST_WORK: tuple[Callable[[ProfileIndex], Iterable[Finding]], ...] = (
    slowest_operator, slowest_node, slowest_module, slowest_torch_operator, quantization,
    inserted_casts, thread_pool, waiting_for_data, hot_function, hot_host_line,
)  # fmt: skip
"""Functions that return findings of a profile without device work."""
OF_MEMORY: tuple[Callable[[ProfileIndex], Iterable[Finding]], ...] = (
    growing_memory, fragmented_pools, unused_caches, node_memory,
)  # fmt: skip
"""Functions that return findings that save memory, not time.

These come last, or first if the memory of a device is nearly full.
"""
