"""The decorators that make a Python function the kernel of an operator: `kernel` and `builtin`.

Users define kernels with the first, the package with the second, which also decides their newest
version and smallest types.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import kernel_arguments, known_operators, operator_schemas, small_floats, types
from epprof_nb.ep.declaration import Declaration, declare
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from epprof_nb.ep.declaration import Types
    from epprof_nb.ep.kernel_limits import Limits

# The device's array module determines the types of arrays and contexts.
Array: TypeAlias = Any
ArrayModule: TypeAlias = Any
Attributes: TypeAlias = "Mapping[str, Any]"
Context: TypeAlias = Any

Function = TypeVar("Function", bound="Callable[..., None]")


@dataclass(eq=False)
class Kernel:
    """A kernel: its declaration, and its function, which may be replaced at any time."""

    declaration: Declaration
    cell: list[Callable[..., None]]
    limits: Limits = field(default_factory=dict)
    """Nodes that the kernel leaves to other providers."""
    checks_shapes: bool = True
    """Whether outputs must have the shapes that ONNX infers. False if these may be wrong."""
    nodes: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    """Nodes of open sessions that run it."""

    @property
    def function(self) -> Callable[..., None]:
        """The function that the next run calls."""
        return self.cell[0]

    @property
    def name(self) -> str:
        """Name of the function."""
        return getattr(self.function, "__name__", self.declaration.op_type)

    def overlaps(self, other: Kernel) -> bool:
        """Whether both kernels could run the same node."""
        a, b = self.declaration, other.declaration
        return (
            (a.op_type, a.domain) == (b.op_type, b.domain)
            and a.first_version <= b.last_version
            and b.first_version <= a.last_version
        )


class Registry:
    """Kernels of the user and of the package."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self.version = 0
        """Incremented when the function of a kernel is replaced."""
        self._defined: list[Kernel] = []
        self._builtin: list[Kernel] = []
        self._replaced: weakref.WeakSet[Kernel] = weakref.WeakSet()
        """Kernels whose operator now has another declaration. Open sessions may use them."""
        self._current: tuple[list[Kernel], list[Kernel], tuple[Kernel, ...]] = ([], [], ())

    def define(self, kernel: Kernel, *, builtin: bool = False) -> Kernel:
        """Add a kernel; replace the function of one with the same declaration.

        If open sessions still use an earlier kernel with the same declaration, it comes into use
        again, and they get the new function.

        Returns
        -------
        kernel
            The kernel that is now in use: `kernel`, or the one whose function was replaced.
        """
        kernels = self._builtin if builtin else self._defined
        with self._lock:
            for known in (*kernels, *self._replaced):
                if known.declaration == kernel.declaration:
                    known.cell[0] = kernel.function
                    self.version += 1
                    kernel = known
                    break
            if kernel not in kernels:
                overlapped = [known for known in kernels if known.overlaps(kernel)]
                # Keep the place of the previous kernel, because sessions also share the order.
                place = kernels.index(overlapped[0]) if overlapped else len(kernels)
                kernels[place:place] = [kernel]
                kernels[:] = [known for known in kernels if known not in overlapped]
                self._replaced.update(overlapped)
                self._replaced.discard(kernel)
            left_behind = [k for k in self._replaced if k.nodes and k.overlaps(kernel)]
        if left_behind:
            changed = kernel.declaration.differences(left_behind[0].declaration)
            warnings.warn(
                f"The {changed} of {kernel.declaration.op_type} have changed, and these belong to "
                "a session. Sessions created before keep the previous kernel: create them again to "
                "use this one, or define it as before.",
                stacklevel=3,
            )
        return kernel

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the kernels for a new session: the user's, then the package's others."""
        with self._lock:
            defined, builtin, current = self._current
            if (defined, builtin) != (self._defined, self._builtin):
                redefined = {k.declaration.op_type for k in self._defined}
                rest = (
                    b
                    for b in self._builtin
                    if b.declaration.op_type not in redefined
                    or not any(b.overlaps(d) for d in self._defined)
                )
                current = (*self._defined, *rest)
                self._current = (self._defined.copy(), self._builtin.copy(), current)
            return current

    def defined(self, op_type: str, domain: str) -> Kernel | None:
        """Return the user's kernel of an operator; None if there is none."""
        with self._lock:
            known = ((k, k.declaration) for k in self._defined)
            return next((k for k, d in known if (d.op_type, d.domain) == (op_type, domain)), None)

    def of_domains_without_schema(self) -> list[Kernel]:
        """Return the user's kernels of operators without a schema in ONNX Runtime."""
        with self._lock:
            return [k for k in self._defined if k.declaration.operator is not None]

    def of_package(self, op_types: Iterable[str]) -> list[Kernel]:
        """Return the package's kernels of these ONNX operators."""
        wanted = set(op_types)
        with self._lock:
            known = [(k, k.declaration) for k in self._builtin]
        return [k for k, d in known if d.op_type in wanted and not d.domain]


REGISTRY = Registry()

_ONNX_DOMAIN = "ai.onnx"
"""The long name of ONNX's own domain, which is an empty text in ONNX Runtime."""

NEWEST_OPSET = {"": 28, "ai.onnx.ml": 5}
"""Newest opset that the package's kernels implement, by domain; other domains have no versions."""


@kernel_arguments.naming_arguments
def kernel(
    op_type: str,
    *,
    domain: str = "",
    types: Types = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    since: int | None = None,
    until: int | None = None,
    host_inputs: Iterable[int] = (),
    host_outputs: Iterable[int] = (),
) -> Callable[[Function], Function]:
    """Define the kernel of an operator.

    The decorated function is called as ``kernel(ctx, *inputs)``. Inputs are read-only arrays;
    optional inputs that a node leaves out are None. Outputs are made with ``ctx.out(shape,
    dtype)`` and written in place; the function returns nothing. An array must not be kept after
    the call: copy it.

    Parameters
    ----------
    op_type
        Type of the operator, e.g. ``"Softplus"``.
    domain
        Its domain; ONNX's own by default.
    types
        Dtypes to support, ``"float32 float64"`` or ``[np.float32]``. A mapping gives them by type
        constraint of the operator's schema; otherwise they apply to its first constraint. By
        default, all dtypes that the schema allows and NumPy has. An operator without a schema has
        one type, ``T``, which is float32 by default; a mapping gives more.
    inputs, outputs
        Types of an operator without a schema: each a dtype, or the name of a type. By default, all
        inputs that the function names (optional ones with the default None) and the only output
        are ``T``.
    since, until
        First and last opset version. By default, all versions in which the operator has its current
        inputs, outputs, attributes and defaults.
    host_inputs, host_outputs
        Numbers of inputs and outputs that stay in host memory, such as shapes.

    Returns
    -------
    decorator
        Returns the function unchanged.

    Raises
    ------
    KernelError
        If ONNX Runtime does not know the operator, a type or version does not exist, or the
        function takes more or fewer inputs than the operator has.
    TypeError
        If an argument is unknown.

    Notes
    -----
    `ctx` has ``attrs`` (the node's attributes, with the schema's defaults), ``name``, ``op_type``,
    ``domain``, ``device``, ``stream`` and ``xp``, the array module (NumPy on the host device). With
    several outputs, each call of ``ctx.out`` makes the next one, or the one given by ``index=``. It
    returns None for an optional output that the node leaves out.

    On CUDA devices, ``ctx.launch(kernel, grid, block, args, shared_mem=0)`` launches a
    ``cupy.RawKernel`` on the stream of the node. A kernel that does nothing else may call
    ``ctx.repeat_launches()``: runs with inputs of the same shapes then repeat its launches without
    calling it, with the addresses of their own tensors. On the host device, that does nothing.

    Defining a kernel again replaces its body: the next run of every session uses it. Types,
    versions and memory belong to a session; if they change, create a new session.

    Examples
    --------
    >>> import numpy as np
    >>> from epprof_nb import ep
    >>> @ep.kernel("Softplus", types="float32")
    ... def softplus(ctx, x):
    ...     np.logaddexp(x, 0, out=ctx.out(x.shape, x.dtype))
    """
    op_type = kernel_arguments.operator_type(op_type)
    domain = "" if domain == _ONNX_DOMAIN else domain
    with _saying_what_stays(op_type, domain):
        options: dict[str, Any] = {
            "domain": domain,
            "types": types,
            "inputs": inputs,
            "outputs": outputs,
            "since": kernel_arguments.opset("since", since),
            "until": kernel_arguments.opset("until", until),
            "host_inputs": kernel_arguments.numbers("host_inputs", host_inputs),
            "host_outputs": kernel_arguments.numbers("host_outputs", host_outputs),
        }

    def decorate(function: Function) -> Function:
        checks_shapes = (domain, op_type) not in operator_schemas.INFERRED_WRONGLY
        with _saying_what_stays(op_type, domain):
            kernel_arguments.check_function(function, op_type)
            declared = declare(op_type, function, **options)
            kernel_arguments.check_inputs(function, declared)
        REGISTRY.define(Kernel(declared, [function], checks_shapes=checks_shapes))
        return function

    return decorate


@contextmanager
def _saying_what_stays(op_type: str, domain: str) -> Iterator[None]:
    """Add to the error of a refused definition that the previous one stays in use."""
    try:
        yield
    except KernelError as error:
        previous = REGISTRY.defined(op_type, domain)
        if previous is not None:
            raise KernelError(
                f"{error} The kernel that was defined before, `{previous.name}`, stays in use."
            ) from error.__cause__
        raise


def builtin(
    op_type: str,
    *,
    since: int,
    limits: Limits | None = None,
    moves: bool = False,
    in_bfloat16: bool = False,
    **options: Any,
) -> Callable[[Function], Function]:
    """Define a kernel of the package; see `kernel` for the options.

    Kernels also take bfloat16. They get it as float32, or unchanged if they compute `in_bfloat16`.
    A kernel that only `moves` elements takes bfloat16 and the 8-bit types unchanged.

    A release of ONNX Runtime that lacks the operator, or its version `since`, does not get the
    kernel. Other providers get versions of the operator later than `NEWEST_OPSET`, whose meaning
    may differ. They also get nodes for which one of `limits` holds, and nodes with inputs or
    attributes that a later release of ONNX Runtime has added to its own operator.
    """

    def decorate(function: Function) -> Function:
        domain = options.get("domain", "")
        if not operator_schemas.exists(op_type, domain, since):
            return function
        options.setdefault(
            "until", operator_schemas.before(op_type, domain, NEWEST_OPSET.get(domain))
        )
        options["small_floats"] = tuple(types.SMALL_FLOATS) if moves else small_floats.COMPUTED
        known = known_operators.known(op_type, domain)
        beyond = known_operators.limits_beyond(op_type, domain, known)
        kernel = Kernel(
            declare(op_type, function, since=since, **options),
            [function if moves or in_bfloat16 else small_floats.through_float32(function)],
            {**(limits or {}), **beyond, **known_operators.limits_of_values(op_type, domain)},
            checks_shapes=False,  # tests cover these shapes, and a model's shapes may be wrong
        )
        REGISTRY.define(kernel, builtin=True)
        return function

    return decorate
