"""Declarations of kernels, which a session copies when it is created."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import operator_schemas, types
from epprof_nb.util.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Types: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]] | None"

_MAX_COMBINATIONS = 64
_DEFAULT_TYPES = "float32"


@dataclass(frozen=True)
class Operator:
    """An operator of a domain for which ONNX Runtime has no schema."""

    inputs: tuple[tuple[str, bool], ...]
    """A dtype or the name of a type, and whether the input is optional."""
    outputs: tuple[str, ...]
    named: tuple[tuple[str, tuple[str, ...]], ...]
    """Dtypes by the name of a type."""

    def combinations(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield ONNX's element types of the inputs and outputs, for each choice of dtypes."""
        names = [name for name, _ in self.named]
        for chosen in itertools.product(*(allowed for _, allowed in self.named)):
            dtype = dict(zip(names, chosen, strict=True))
            yield (
                tuple(types.ALL[dtype.get(t, t)] for t, _ in self.inputs),
                tuple(types.ALL[dtype.get(t, t)] for t in self.outputs),
            )


@dataclass(frozen=True)
class Declaration:
    """An operator, in the versions and with the types that a kernel supports."""

    op_type: str
    domain: str
    ranges: tuple[operator_schemas.Range, ...]
    """Opset versions, with the dtypes allowed by each type constraint."""
    host_inputs: tuple[int, ...]
    host_outputs: tuple[int, ...]
    operator: Operator | None
    """The operator itself, if ONNX Runtime has no schema for it."""
    is_view: bool = False
    """Whether the output has the elements of the first input and may share its memory."""

    @property
    def first_version(self) -> int:
        """First opset version."""
        return self.ranges[0].first_version

    @cached_property
    def numbered_ranges(self) -> list[tuple[int, int, dict[str, tuple[int, ...]]]]:
        """The ranges with ONNX's numbers of the dtypes; computed once for all sessions."""
        return [
            (first, last, {name: tuple(types.ALL[t] for t in ts) for name, ts in constraints})
            for first, last, constraints in self.ranges
        ]

    @property
    def last_version(self) -> int:
        """Last opset version."""
        return self.ranges[-1].last_version

    def differences(self, other: Declaration) -> str:
        """Return the differences from another declaration of the operator, as words of a sentence.

        Examples
        --------
        >>> relu = declare("Relu", lambda ctx, x: None)
        >>> relu.differences(declare("Relu", lambda ctx, x: None, types="float32", until=13))
        'types and opset versions'
        """
        pairs: dict[str, list[object]] = {
            "inputs": [d.operator and d.operator.inputs for d in (self, other)],
            "outputs": [d.operator and d.operator.outputs for d in (self, other)],
            "types": [_types_of(d) for d in (self, other)],
            "opset versions": [(d.first_version, d.last_version) for d in (self, other)],
            "places in host memory": [(d.host_inputs, d.host_outputs) for d in (self, other)],
        }
        return " and ".join(name for name, values in pairs.items() if values[0] != values[1])


def _types_of(declaration: Declaration) -> tuple[object, ...]:
    named = declaration.operator.named if declaration.operator else ()
    return named, {constraint for r in declaration.ranges for constraint in r.constraints}


def declare(
    op_type: str,
    function: Callable[..., None],
    *,
    domain: str = "",
    types: Types = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    since: int | None = None,
    until: int | None = None,
    host_inputs: Iterable[int] = (),
    host_outputs: Iterable[int] = (),
    is_view: bool = False,
    small_floats: Iterable[str] = (),
) -> Declaration:
    """Return the declaration of a kernel; see `epprof_nb.ep.kernel` for the parameters.

    With `is_view`, ONNX Runtime may place the output in the memory of the first input.
    `small_floats` are dtypes of ml_dtypes to support in addition, wherever the schema allows them
    with float16 or float32.
    """
    in_host_memory = tuple(sorted(set(host_inputs))), tuple(sorted(set(host_outputs)))
    found = operator_schemas.find(op_type, domain, since, until)
    if found:
        if inputs is not None or outputs is not None:
            raise KernelError(
                f"inputs= and outputs= declare an operator without a schema. ONNX Runtime has one "
                f"of {op_type}; leave them out."
            )
        ranges = tuple(_restricted(op_type, found, types, tuple(small_floats)))
        return Declaration(op_type, domain, ranges, *in_host_memory, None, is_view)
    if not domain:
        question = did_you_mean(op_type, operator_schemas.operator_types(domain))
        meant = f"; {question} Otherwise" if question else ". Check the spelling, or"
        raise KernelError(
            f"This ONNX Runtime has no operator {op_type!r} in ONNX's own domain{meant} give the "
            "domain of the model's operator, domain=..."
        )
    operator = _operator(op_type, function, types, inputs, outputs)
    first = 1 if since is None else since
    last = operator_schemas.LAST_VERSION if until is None else until
    ranges = (operator_schemas.Range(first, last, ()),)
    return Declaration(op_type, domain, ranges, *in_host_memory, operator)


def _restricted(
    op_type: str, found: list[operator_schemas.Range], given: Types, small_floats: tuple[str, ...]
) -> Iterator[operator_schemas.Range]:
    """Yield the versions of an operator with the chosen types, and the types in `small_floats`."""
    known = {name for versions in found for name, _ in versions.constraints}
    for name in given if isinstance(given, Mapping) else ():
        if name not in known:
            raise KernelError(
                f"{op_type} has no type constraint {name!r}. It has "
                f"{', '.join(sorted(known)) or 'none'}."
            )
    for versions in found:
        constraints = dict(versions.constraints)
        chosen_types = {
            name: tuple(t for t in allowed if t not in types.SMALL_FLOATS)
            for name, allowed in constraints.items()
        }
        for name, chosen in _by_name(given, next(iter(constraints), "T")).items():
            names = types.parse(chosen)
            refused = [n for n in names if n not in constraints.get(name, names)]
            if refused:
                raise KernelError(
                    f"{op_type} never has {', '.join(refused)} for {name}. Its schema allows "
                    f"{', '.join(constraints[name])}."
                )
            if name in constraints:
                chosen_types[name] = names
        for name, names in chosen_types.items():
            added = tuple(t for t in small_floats if t in constraints[name] and t not in names)
            if "float16" in names or "float32" in names or given is None:
                chosen_types[name] = names + added
        yield versions._replace(constraints=tuple(chosen_types.items()))


def _by_name(given: Types, default: str) -> Mapping[str, str | Sequence[str]]:
    if given is None:
        return {}
    return given if isinstance(given, Mapping) else {default: given}


def _operator(
    op_type: str,
    function: Callable[..., None],
    given: Types,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> Operator:
    """Return an operator declared by its kernel's signature and the user's arguments."""
    named = {
        name: types.parse(chosen)
        for name, chosen in _by_name(given if given is not None else _DEFAULT_TYPES, "T").items()
    }
    inputs = inputs.split() if isinstance(inputs, str) else inputs
    outputs = outputs.split() if isinstance(outputs, str) else outputs
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise KernelError(
            f"The kernel of {op_type} must name its inputs, as in kernel(ctx, x, y), because "
            "they declare the operator's inputs."
        )
    optional = [p.default is None for p in parameters[1:]]
    if inputs is None:
        inputs = ["T"] * len(optional)
    if len(inputs) != len(optional):
        raise KernelError(
            f"inputs= names {len(inputs)} types, but the kernel of {op_type} takes "
            f"{len(optional)} inputs after ctx."
        )
    outputs = ["T"] if outputs is None else outputs
    used = [*inputs, *outputs]
    unknown = [name for name in used if name not in named and name not in types.ALL]
    if unknown or not outputs:
        raise KernelError(
            f"inputs= and outputs= of {op_type} take a dtype ({', '.join(types.ALL)}) or the "
            f"name of a type given by types= ({', '.join(named)}), not "
            f"{', '.join(map(repr, unknown)) or 'nothing'}."
        )
    named = {name: allowed for name, allowed in named.items() if name in used}
    combinations = 1
    for allowed in named.values():
        combinations *= len(allowed)
    if combinations > _MAX_COMBINATIONS:
        raise KernelError(f"{op_type} has {combinations} combinations of types; 64 are supported.")
    return Operator(tuple(zip(inputs, optional, strict=True)), tuple(outputs), tuple(named.items()))
