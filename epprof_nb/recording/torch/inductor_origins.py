"""The modules behind the kernels that TorchInductor generates, noted while torch compiles.

TorchInductor knows the graph nodes of a kernel, and a node knows the modules whose forward pass
created it. The generated code contains neither, so both are noted while torch compiles, also for
later sessions. TorchInductor keeps compiled graphs on disk and compiles them once, so the modules
are stored beside the generated code.

Noting only reads torch's data. It changes neither the compiled code nor the keys of torch's caches.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from epprof_nb.util.after_import import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from epprof_nb.recording.torch.modules_of_inductor_lines import CompiledCode, Kernel, Paths

_INDUCTOR = "torch._inductor"
_MAX_GRAPHS = 10_000
_GENERATORS = (
    ("ir", "ExternKernel"),
    ("codegen.triton", "TritonScheduling"),
    ("codegen.cpp", "CppScheduling"),
)
"""Classes that write a comment above the call of each kernel, and their modules."""


known: dict[str, CompiledCode] = {}
"""By path of the file. Unknown files are missing."""
listeners: list[Callable[[ModuleType], None]] = []
"""Functions to call with each module of generated code that torch loads."""
failures: list[str] = []
"""The first error of noting, for a note in profiles."""

_nodes: dict[Any, dict[str, tuple[str, ...]]] = {}
"""Modules around the nodes of traced graphs, by TorchDynamo's number of the compilation."""
_kernels: WeakKeyDictionary[Any, list[Kernel]] = WeakKeyDictionary()
"""The kernels of graphs that are being compiled."""


def watch() -> None:
    """Note what torch compiles from now on; called once, when the package is imported."""
    after_import(f"{_INDUCTOR}.compile_fx", _watch_compilations)


def _watch_compilations() -> None:
    compile_fx: Any = sys.modules[f"{_INDUCTOR}.compile_fx"]
    codecache: Any = sys.modules[f"{_INDUCTOR}.codecache"]
    load = getattr(codecache.PyCodeCache, "load_by_key_path", None)
    if load is None or not hasattr(compile_fx, "compile_fx"):
        return  # another release: kernels belong to the compiled module
    compile_fx.compile_fx = _noting(compile_fx.compile_fx, before=_note_graph)
    codecache.PyCodeCache.load_by_key_path = _noting(load, after=_note_code)
    for module, name in _GENERATORS:
        after_import(f"{_INDUCTOR}.{module}", partial(_watch_generator, module, name))


def _watch_generator(module: str, name: str) -> None:
    owner = getattr(sys.modules[f"{_INDUCTOR}.{module}"], name, None)
    original = vars(owner).get("codegen_comment") if owner is not None else None
    if owner is None or original is None:
        return

    def codegen_comment(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        lines = getattr(getattr(_graph(), "wrapper_code", None), "lines", [])
        before = len(lines)
        result = original(self, *args, **kwargs)
        _safely(_note_kernel, self, args, kwargs, lines[before:])
        return result

    owner.codegen_comment = codegen_comment


def _noting(
    original: Callable[..., Any],
    *,
    before: Callable[..., None] | None = None,
    after: Callable[..., None] | None = None,
) -> Callable[..., Any]:
    """Wrap a function to note its first argument before the call, or its result after."""

    def noting(*args: Any, **kwargs: Any) -> object:
        if before is not None and args:
            _safely(before, args[0])
        result = original(*args, **kwargs)
        if after is not None:
            _safely(after, result)
        return result

    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(noting, attribute, getattr(original, attribute, None))
    return noting


def _safely(function: Callable[..., None], *args: Any) -> None:
    """Call a function without passing its errors to the compilation."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 - internals of torch, of any release
        if not failures:
            failures.append(f"{type(error).__name__}: {error}")


def _graph() -> Any:  # noqa: ANN401 - GraphLowering
    """Return the graph for which code is generated now."""
    return sys.modules[f"{_INDUCTOR}.virtualized"].V.graph


def _compile_id() -> object:
    return sys.modules["torch._guards"].CompileContext.current_compile_id()


def _note_graph(graph_module: Any) -> None:  # noqa: ANN401 - torch.fx.GraphModule
    """Note the modules of a graph that TorchDynamo has traced."""
    compile_id = _compile_id()
    if compile_id is None:
        return
    if len(_nodes) >= _MAX_GRAPHS:
        _nodes.clear()
    # Inputs that are parameters have the names of their modules.
    calls = (node for node in graph_module.graph.nodes if node.op.startswith("call_"))
    _nodes[compile_id] = {node.name: _stack(node) for node in calls}


def _stack(node: Any) -> tuple[str, ...]:  # noqa: ANN401 - torch.fx.Node
    """Return the paths of the modules that created a node, outermost first."""
    found = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    # The path has a suffix if the module is called again.
    return tuple(str(path).partition("@")[0] for path, *_ in found.values())


def _note_kernel(
    owner: Any,  # noqa: ANN401 - an object of one of the classes that generate code
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    written: Sequence[Any],
) -> None:
    """Note the modules of the kernel whose call is generated next."""
    from epprof_nb.recording.torch.modules_of_inductor_lines import Kernel, is_comment

    texts = [line if isinstance(line, str) else getattr(line, "line", None) for line in written]
    comments = [text for text in texts if isinstance(text, str) and is_comment(text)]
    name = kwargs.get("kernel_name") or (args[1] if len(args) > 1 else None)
    key = comments[0].strip() if comments else name
    if key is None:
        return
    if isinstance(args[0], list | tuple):
        nodes = sys.modules[f"{_INDUCTOR}.utils"].aggregate_origins(list(args[0]))
    else:  # A library kernel describes itself. It runs only one node, not the nodes before it.
        node = getattr(owner, "origin_node", None)
        nodes = owner.origins if node is None else [node]
    _kernels.setdefault(_graph(), []).append(Kernel(key, _modules_of(nodes)))


def _modules_of(nodes: Iterable[Any]) -> Paths:
    """Return the modules that created the nodes of a kernel."""
    working: set[tuple[str, ...]] = set()
    passive: set[tuple[str, ...]] = set()
    for node in nodes:
        meta = node.meta
        steps = _stack(node)
        # A node without a module comes from the user or the compiler (such as a sum of gradients).
        is_of_user = steps or meta.get("source_fn_stack") or meta.get("fwd_source_fn_stack")
        if node.op != "call_function" or not is_of_user:
            continue
        # A view or a constant causes no work in the kernel that reads it, and modules share
        # constants.
        is_passive = getattr(node.target, "is_view", False) or not node.all_input_nodes
        (passive if is_passive else working).add(steps)
    return frozenset(working or passive)


def _note_code(module: ModuleType) -> None:
    """Note the modules behind the lines of generated code that was loaded."""
    path = module.__file__
    if path is None or not hasattr(module, "call"):
        return  # the code of one kernel
    try:
        _note_lines(path)
    finally:
        for listener in tuple(listeners):
            listener(module)


def _note_lines(path: str) -> None:
    from pathlib import Path

    from epprof_nb.recording.torch import modules_of_inductor_lines as generated

    graph = _graph()
    kernels, nodes = _kernels.get(graph), _nodes.get(_compile_id())
    if kernels is None:
        code = generated.read(path, nodes) if nodes is not None else None
        if code is None:
            known.pop(path, None)
        else:
            known[path] = code
        return
    kind = "backward" if graph.is_backward else "inference" if graph.is_inference else "forward"
    source = Path(path).read_text(encoding="utf-8")
    code = generated.CompiledCode(kind, generated.modules_of_lines(source, kernels))
    known[path] = code
    if nodes is not None:
        generated.write(path, code, nodes)
