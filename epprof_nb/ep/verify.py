"""Kernels in Python compared with ONNX Runtime's CPU provider, node by node."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import unclaimed, unknown_operators
from epprof_nb.ep.provider import provider
from epprof_nb.ep.session_patches import with_domains

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt
    import pandas as pd

_CPU = "CPUExecutionProvider"
_GRAPHS = (5, 10)
"""``AttributeProto.type`` of subgraphs: GRAPH and GRAPHS."""

_COLUMNS = {
    "name": "object", "op_type": "object", "domain": "object", "provider": "object",
    "outputs": "object", "max_abs_error": "float64", "max_rel_error": "float64",
    "matches": "boolean", "kernel_ns": "Int64", "cpu_ns": "Int64", "note": "object",
}  # fmt: skip


def verify(
    model: str | Path | bytes,
    feeds: Mapping[str, npt.NDArray[Any]],
    *,
    device: str = "host",
    only: Iterable[str] | None = None,
    nodes: Iterable[str] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    repeats: int = 5,
) -> pd.DataFrame:
    """Compare each node's kernel in Python with ONNX Runtime's CPU provider.

    Each node gets the inputs that it has in a run of the model on the CPU provider, so an error
    appears only at the node that causes it, not at later nodes.

    Parameters
    ----------
    model
        Path of the model, or the model as bytes or an ``onnx.ModelProto``.
    feeds
        Inputs of the model by name.
    device, only, nodes
        Which nodes to compare; see `epprof_nb.ep.provider`.
    rtol, atol
        Tolerances of ``matches``, as in ``numpy.allclose``.
    repeats
        Runs per node and provider; the times are their medians.

    Returns
    -------
    pandas.DataFrame
        One row per node that `only` and `nodes` select, in the order of execution: ``name``,
        ``op_type``, ``domain``, ``provider`` (that runs the node), ``outputs`` (dtype and shape of
        each), ``max_abs_error`` and ``max_rel_error`` (float64, over all outputs), ``matches``
        (boolean), ``kernel_ns`` and ``cpu_ns`` (Int64, durations of a run of a model of this node
        alone, copies included) and ``note``, which says why a node was not compared: it stays on
        the CPU, holds subgraphs, or only the kernel implements it. A later run has the elements of
        the inputs in reverse order; if only that run is wrong, the node does not match, and
        ``note`` says so.

    Raises
    ------
    KernelError
        If the package onnx is missing, or the device, a type or the model is wrong.

    Notes
    -----
    The table lists the nodes that ONNX Runtime passes to execution providers, after its basic graph
    optimizations. The package ``onnx`` is needed (``pip install onnx``).

    Examples
    --------
    >>> from epprof_nb import ep
    >>> table = ep.verify("model.onnx", {"x": x})  # doctest: +SKIP
    >>> table[~table["matches"]]  # doctest: +SKIP
    """
    try:
        import onnx
    except ImportError as error:
        raise KernelError(
            f"verify() needs the package onnx, which cannot be imported ({error}). Run "
            "`pip install onnx`."
        ) from error
    import pandas as pd

    if repeats < 1:
        raise KernelError(f"repeats={repeats}: a time needs at least one run.")
    entry = provider(device, only=only, nodes=nodes)
    # Select here, because models of one node have few of the selected types and names.
    types, names = (set(json.loads(entry[1].pop(option, "[]"))) for option in ("only", "nodes"))
    try:
        optimized = _optimized(model)
    except Exception as error:
        note = unknown_operators.note(str(error))
        why = f"{error}\n{note}" if note else str(error)
        raise KernelError(f"The model cannot be loaded: {why}") from error
    loaded = onnx.load_model_from_string(optimized)
    if message := unclaimed.misspelt(names, [node.name for node in loaded.graph.node]):
        raise KernelError(message)
    values = _intermediate_values(loaded, feeds)
    rows = [
        _verify_node(node, loaded, values, entry, repeats)
        for node in loaded.graph.node
        if (not types or node.op_type in types) and (not names or node.name in names)
    ]
    table = pd.DataFrame([row.to_dict(rtol, atol) for row in rows], columns=list(_COLUMNS))
    return table.astype(_COLUMNS)


@dataclass
class _Row:
    """A node, with its known outputs and times on both providers."""

    node: Any
    provider: str = _CPU
    note: str = ""
    outputs: list[npt.NDArray[Any]] | None = None
    expected: list[npt.NDArray[Any]] | None = None
    later: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=list)
    """Outputs of a later run with other values, on this provider and on the CPU provider."""
    kernel_ns: int | None = None
    cpu_ns: int | None = None

    def to_dict(self, rtol: float, atol: float) -> dict[str, Any]:
        """Return the row of the table."""
        row: dict[str, Any] = {
            "name": self.node.name,
            "op_type": self.node.op_type,
            "domain": self.node.domain,
            "provider": self.provider,
            "outputs": ", ".join(
                f"{o.dtype}[{','.join(map(str, o.shape))}]" for o in self.outputs or ()
            ),
            "kernel_ns": self.kernel_ns,
            "cpu_ns": self.cpu_ns,
            "note": self.note,
            "max_abs_error": np.nan,
            "max_rel_error": np.nan,
            "matches": None,
        }
        if self.outputs is not None and self.expected is not None:
            pairs = list(zip(self.outputs, self.expected, strict=True))
            if any(a.shape != b.shape for a, b in pairs):
                shapes = ", ".join(f"{a.shape} and {b.shape} on the CPU" for a, b in pairs)
                row |= {"matches": False, "note": f"the shapes differ: {shapes}"}
                return row
            errors = [_errors(a, b) for a, b in pairs]
            row["max_abs_error"] = max(absolute for absolute, _ in errors)
            row["max_rel_error"] = max(relative for _, relative in errors)
            row["matches"] = _all_close(pairs, rtol, atol)
            if row["matches"] and not _all_close(self.later, rtol, atol):
                row |= {"matches": False, "note": _WRONG_LATER}
        return row


_WRONG_LATER = (
    "right in its first run, wrong in a later one with other values. A kernel that calls "
    "ctx.repeat_launches() launches with ctx.launch only, and what it launches depends on shapes, "
    "not on values"
)


def _all_close(
    pairs: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]], rtol: float, atol: float
) -> bool:
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        for a, b in pairs
    )


def _errors(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[float, float]:
    """Return the largest absolute and relative difference; equal infinities and NaN differ by 0."""
    if not a.size:
        return 0.0, 0.0
    left, right = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        difference = np.where(same, 0, np.abs(left - right))
        relative = np.where(same, 0, difference / np.abs(right))
    return float(np.max(difference)), float(np.max(relative))


def _session(model: bytes, providers: list[Any]) -> Any:  # noqa: ANN401
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.log_severity_level = 4  # errors are raised as well
    return onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)


def _optimized(model: str | Path | bytes) -> bytes:
    """Return the model after the optimizations that precede the choice of providers."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "optimized.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(file)
        options.log_severity_level = 4
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        given = model if isinstance(model, bytes) else str(model)
        onnxruntime.InferenceSession(given, with_domains(options), providers=[_CPU])
        return file.read_bytes()


def _intermediate_values(model: Any, feeds: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:  # noqa: ANN401
    """Return every tensor of the main graph, by name, from a run on the CPU provider."""
    import onnx
    from onnx import numpy_helper

    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    values |= {name: np.asarray(value) for name, value in feeds.items()}
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    known = {o.name for o in exposed.graph.output}
    produced = [name for node in exposed.graph.node for name in node.output if name]
    for name in produced:
        if name not in known:
            exposed.graph.output.append(onnx.ValueInfoProto(name=name))
    # Our provider claims nothing, but learns the attributes of operators without a schema.
    claims_nothing = provider(nodes=[unclaimed.NO_NODE])
    session = _session(exposed.SerializeToString(), [claims_nothing, _CPU])
    wanted = [o.name for o in session.get_outputs()]
    results = session.run(wanted, dict(feeds))
    return values | dict(zip(wanted, results, strict=True))


def _verify_node(
    node: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    values: dict[str, npt.NDArray[Any]],
    entry: tuple[str, dict[str, str]],
    repeats: int,
) -> _Row:
    row = _Row(node)
    if any(a.type in _GRAPHS for a in node.attribute):
        row.note = "holds subgraphs, whose nodes are not compared"
        return row
    outputs = [name for name in node.output if name]
    used = [values.get(name) for name in (*filter(None, node.input), *outputs)]
    if not all(isinstance(v, np.ndarray) and v.dtype.kind in "biuf" for v in used):
        row.note = "has inputs or outputs that are not tensors of numbers"
        return row
    inputs = {name: values[name] for name in node.input if name}
    single = _single_node_model(node, model, inputs, {name: values[name] for name in outputs})
    session = _session(single, [entry, _CPU])
    assigned = session.get_provider_graph_assignment_info()
    row.provider = assigned[0].ep_name if assigned else _CPU
    if row.provider != PROVIDER:
        row.note = "stays on the CPU"
        return row
    try:
        row.outputs, row.kernel_ns = _timed(session, inputs, repeats)
    except Exception as error:  # noqa: BLE001 - a row of the table
        row.note = _reason(error)
        return row
    reference = _session(single, [provider(nodes=[unclaimed.NO_NODE]), _CPU])
    expected, cpu_ns = _timed(reference, inputs, repeats)
    if _has_only_our_kernel(node):
        row.note = "has no implementation but the kernel"
    else:
        row.expected, row.cpu_ns = expected, cpu_ns
        row.later = _later_outputs(session, reference, inputs)
    return row


def _later_outputs(
    session: Any,  # noqa: ANN401
    reference: Any,  # noqa: ANN401
    inputs: dict[str, npt.NDArray[Any]],
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Return the outputs on both providers for inputs of the same shapes with other values.

    Integers keep their values, because they may be shapes or indices.
    """
    other = {
        name: x.ravel()[::-1].reshape(x.shape).copy() if x.dtype.kind == "f" else x
        for name, x in inputs.items()
    }
    try:
        results = session.run(None, other), reference.run(None, other)
    except Exception:  # noqa: BLE001 - the node may not allow such values
        return []
    return list(zip(*results, strict=True))


def _reason(error: Exception) -> str:
    """Return the message of a failed run without the code and the node, which are in the row.

    Examples
    --------
    >>> _reason(RuntimeError("[E] : 1 : FAIL : ... Name:'a' Status Message: The kernel failed"))
    'The kernel failed'
    """
    text = str(error)
    return text.rpartition("Status Message: ")[2] or text


def _has_only_our_kernel(node: Any) -> bool:  # noqa: ANN401
    from epprof_nb.ep.kernel import REGISTRY

    key = (node.op_type, node.domain)
    return any(
        k.declaration.operator is not None and (k.declaration.op_type, k.declaration.domain) == key
        for k in REGISTRY.kernels()
    )


def _single_node_model(
    node: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    inputs: dict[str, npt.NDArray[Any]],
    outputs: dict[str, npt.NDArray[Any]],
) -> bytes:
    from onnx import helper

    def value(name: str, array: npt.NDArray[Any]) -> Any:  # noqa: ANN401
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, kind, [None] * array.ndim)

    graph = helper.make_graph(
        [node],
        "node",
        [value(name, array) for name, array in inputs.items()],
        [value(name, array) for name, array in outputs.items()],
    )
    single = helper.make_model(graph, opset_imports=list(model.opset_import))
    single.ir_version = model.ir_version
    return bytes(single.SerializeToString())


def _timed(
    session: Any,  # noqa: ANN401
    feeds: dict[str, npt.NDArray[Any]],
    repeats: int,
) -> tuple[list[npt.NDArray[Any]], int]:
    results = session.run(None, feeds)
    durations = []
    for _ in range(max(repeats, 1)):
        start = time.perf_counter_ns()
        session.run(None, feeds)
        durations.append(time.perf_counter_ns() - start)
    return results, int(statistics.median(durations))
