"""Einstein sums. CUDA devices compute sums of two arrays as products of stacks of matrices.

CuPy's einsum calls cuBLAS, which CuPy refuses in a stream capture.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.products import products

_EQUATION = re.compile(r"([A-Za-z]+),([A-Za-z]+)(?:->([A-Za-z]*))?")


class Contraction(NamedTuple):
    """An equation of two terms, with its indices by role."""

    left: str
    right: str
    result: str
    stack: str
    """Indices of all three terms."""
    rows: str
    columns: str
    summed: str
    """Indices of both inputs that are not in the result."""


def parse(equation: str) -> Contraction | None:
    """Return a contraction of two arrays; None if the equation is not a product of matrices.

    Such equations have an ellipsis, other than two terms, an index twice in a term, or an index
    that is summed in a single term.
    """
    found = _EQUATION.fullmatch(equation)
    if not found:
        return None
    left, right, result = found.groups()
    if result is None:  # the indices that occur once
        both = left + right
        result = "".join(sorted(i for i in set(both) if both.count(i) == 1))
    stack = "".join(i for i in left if i in right and i in result)
    rows = "".join(i for i in left if i not in right)
    columns = "".join(i for i in right if i not in left)
    summed = "".join(i for i in left if i in right and i not in result)
    repeats = any(len(set(term)) < len(term) for term in (left, right, result))
    if repeats or sorted(result) != sorted(stack + rows + columns):
        return None
    return Contraction(left, right, result, stack, rows, columns, summed)


def fits(how: Contraction, a: Array, b: Array) -> bool:
    """Whether the shapes of two arrays fit, without broadcasting."""
    if (a.ndim, b.ndim) != (len(how.left), len(how.right)):
        return False
    sizes = dict(zip(how.left, a.shape, strict=True))
    return all(sizes.get(i, n) == n for i, n in zip(how.right, b.shape, strict=True))


def contract(how: Contraction, a: Array, b: Array) -> Array:
    """Return the sum of products of arrays that fit."""
    sizes = dict(zip(how.left + how.right, a.shape + b.shape, strict=True))
    left = _arranged(a, how.left, (how.stack, how.rows, how.summed), sizes)
    right = _arranged(b, how.right, (how.stack, how.summed, how.columns), sizes)
    made = how.stack + how.rows + how.columns
    result = products.matmul(left, right).reshape([sizes[index] for index in made])
    return result.transpose([made.index(index) for index in how.result])


def _arranged(x: Array, term: str, groups: tuple[str, str, str], sizes: dict[str, int]) -> Array:
    """Return an array with one axis for each group of indices."""
    order = [term.index(index) for group in groups for index in group]
    shape = [math.prod(sizes[index] for index in group) for group in groups]
    return x.transpose(order).reshape(shape)


@builtin("Einsum", since=12)
def einsum(ctx: Context, *inputs: Array) -> None:
    """Products summed over the indices that the equation drops."""
    equation = ctx.attrs["equation"].replace(" ", "")
    wide = [at_least_float32(x) for x in inputs]
    how = None if ctx.xp is np else parse(equation)
    if how is not None and len(wide) == 2 and fits(how, *wide):
        result = contract(how, *wide)
    else:
        result = ctx.xp.einsum(equation, *wide)
    ctx.out(result.shape)[...] = result
