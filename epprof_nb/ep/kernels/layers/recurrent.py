"""Recurrent layers: RNN, GRU, LSTM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.math.activation import sigmoid
from epprof_nb.ep.kernels.shared.checks import choice, expect_shape
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet
from epprof_nb.ep.products.products import matmul

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.ep.kernel_limits import Limits

    Function = Callable[[Array], Array]
    Step = Callable[..., "tuple[Array, ...]"]


_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _functions(
    ctx: Context, direction: int, count: int, default: tuple[str, ...]
) -> list[Function]:
    """Return the activation functions of a direction."""
    xp, attrs = ctx.xp, ctx.attrs
    names = attrs.get("activations") or default * 2
    directions = _DIRECTIONS[attrs["direction"]]
    if len(names) < count * directions:
        raise ValueError(f"activations names {len(names)} functions, not {count * directions}")
    chosen = [name.lower() for name in names[direction * count : (direction + 1) * count]]
    # Parameters are listed for the functions that take them, in the order of all directions.
    before = names[: direction * count]
    alpha = iter(_rest(attrs.get("activation_alpha") or (), before, _ALPHA))
    beta = iter(_rest(attrs.get("activation_beta") or (), before, _BETA))
    limit = attrs.get("clip", 0.0)
    made = []
    for name in chosen:
        a = next(alpha, _ALPHA[name]) if name in _ALPHA else 0.0
        b = next(beta, _BETA[name]) if name in _BETA else 0.0
        made.append(_bounded(xp, _activation(xp, name, a, b), limit))
    return made


_ALPHA = {"affine": 1.0, "elu": 1.0, "hardsigmoid": 0.2, "leakyrelu": 0.01, "scaledtanh": 1.0,
          "thresholdedrelu": 1.0}  # fmt: skip
_BETA = {"affine": 0.0, "hardsigmoid": 0.5, "scaledtanh": 1.0}


def _rest(given: tuple[float, ...], before: Any, takes: dict[str, float]) -> tuple[float, ...]:  # noqa: ANN401
    return given[sum(name.lower() in takes for name in before) :]


def _activation(xp: ArrayModule, name: str, a: float, b: float) -> Function:
    functions: dict[str, Function] = {
        "affine": lambda x: a * x + b,
        "elu": lambda x: xp.where(x > 0, x, a * xp.expm1(xp.minimum(x, 0))),
        "hardsigmoid": lambda x: xp.clip(a * x + b, 0, 1),
        "leakyrelu": lambda x: xp.where(x < 0, a * x, x),
        "relu": lambda x: xp.maximum(x, 0),
        "scaledtanh": lambda x: a * xp.tanh(b * x),
        "sigmoid": lambda x: sigmoid(xp, x),
        "softplus": lambda x: xp.logaddexp(x, x.dtype.type(0)),
        "softsign": lambda x: x / (1 + xp.abs(x)),
        "tanh": xp.tanh,
        "thresholdedrelu": lambda x: xp.where(x > a, x, 0),
    }
    if name not in functions:
        raise ValueError(f"{name!r} is not an activation function of recurrent layers")
    return functions[name]


def _bounded(xp: ArrayModule, function: Function, limit: float) -> Function:
    return (lambda x: function(xp.clip(x, -limit, limit))) if limit else function


def _order(steps: int, *, backward: bool) -> Iterator[int]:
    return iter(range(steps - 1, -1, -1) if backward else range(steps))


def _run(
    ctx: Context, x: Array, lengths: Array | None, initial: list[Array | None],
    make_step: Callable[[int], Step],
) -> None:  # fmt: skip
    """Run a layer in its directions and write its outputs.

    Parameters
    ----------
    ctx
        Context of the node.
    x
        Input, in the layout of the node.
    lengths
        Length of each sequence of the batch.
    initial
        Initial states, each (directions, batch, hidden) in the layout of the node.
    make_step
        Takes the number of a direction. Returns a function of an input and the states, which
        returns the next states; the first of them is the output.
    """
    xp, attrs = ctx.xp, ctx.attrs
    batch_first = bool(attrs.get("layout", 0))
    wide = at_least_float32(x)
    steps_first = wide.transpose(1, 0, 2) if batch_first else wide
    steps, batch = steps_first.shape[:2]
    kind, hidden = attrs["direction"], attrs["hidden_size"]
    directions = _DIRECTIONS[kind]
    for number, given in enumerate(initial):
        shape = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
        expect_shape(("initial_h", "initial_c")[number], given, shape)
    expect_shape("sequence_lens", lengths, (batch,))
    if xp is np:
        _expect_lengths(lengths, steps)
    y = xp.zeros((steps, directions, batch, hidden), wide.dtype)
    last = [xp.zeros((directions, batch, hidden), wide.dtype) for _ in initial]
    for d in range(directions):
        states = []
        for given in initial:
            if given is None:
                states.append(xp.zeros((batch, hidden), wide.dtype))
            else:
                states.append(at_least_float32(given[:, d] if batch_first else given[d]))
        step = make_step(d)
        for t in _order(steps, backward=kind == "reverse" or d == 1):
            new = step(steps_first[t], *states)
            if lengths is None:
                y[t, d], states = new[0], list(new)
            else:
                active = (lengths > t)[:, None]
                y[t, d] = xp.where(active, new[0], 0)
                states = [xp.where(active, n, s) for n, s in zip(new, states, strict=True)]
        for number, state in enumerate(states):
            last[number][d] = state
    write_optional(ctx, 0, y.transpose(2, 0, 1, 3) if batch_first else y)
    for number, state in enumerate(last):
        write_optional(ctx, number + 1, state.transpose(1, 0, 2) if batch_first else state)


def _expect_lengths(lengths: Array | None, steps: int) -> None:
    """Check the lengths of sequences, except on a CUDA device: the check would wait for it.

    On a CUDA device, a length beyond the sequence means the whole sequence, and a negative one
    means 0.
    """
    if lengths is not None and lengths.size and (lengths.min() < 0 or lengths.max() > steps):
        raise ValueError(f"sequence_lens has an entry that is not between 0 and {steps}")


def _expect_weights(  # noqa: PLR0917 - the inputs of the operators
    ctx: Context, x: Array, w: Array, r: Array, bias: Array | None, gates: int
) -> None:
    directions = _DIRECTIONS[choice(ctx.attrs, "direction", _DIRECTIONS)]
    hidden = ctx.attrs["hidden_size"]
    expect_shape("W", w, (directions, gates * hidden, x.shape[2]))
    expect_shape("R", r, (directions, gates * hidden, hidden))
    expect_shape("B", bias, (directions, 2 * gates * hidden))


def _biases(bias: Array | None, d: int) -> tuple[Any, Any]:
    """Return the biases of the input and of the state."""
    if bias is None:
        return np.float32(0), np.float32(0)
    size = bias.shape[1] // 2
    return bias[d, :size], bias[d, size:]


_CLIP: Limits = {"clip is not positive": lambda node: node.attrs.get("clip", 1.0) <= 0}


@builtin("RNN", since=7, limits=_CLIP)
@quiet
def rnn(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, w: Array, r: Array,
    bias: Array | None = None, lengths: Array | None = None, h: Array | None = None,
) -> None:  # fmt: skip
    """Recurrent layer with one activation."""
    _expect_weights(ctx, x, w, r, bias, 1)

    def make_step(d: int) -> Step:
        (f,) = _functions(ctx, d, 1, ("Tanh",))
        wb, rb = _biases(bias, d)
        return lambda x_t, h_t: (f(matmul(x_t, w[d].T) + matmul(h_t, r[d].T) + wb + rb),)

    _run(ctx, x, lengths, [h], make_step)


@builtin("GRU", since=7, limits=_CLIP)
@quiet
def gru(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, w: Array, r: Array,
    bias: Array | None = None, lengths: Array | None = None, h: Array | None = None,
) -> None:  # fmt: skip
    """Recurrent layer with update and reset gates."""
    _expect_weights(ctx, x, w, r, bias, 3)
    xp, n = ctx.xp, ctx.attrs["hidden_size"]

    def make_step(d: int) -> Step:
        f, g = _functions(ctx, d, 2, ("Sigmoid", "Tanh"))
        wb, rb = _biases(bias, d)
        if bias is None:
            wb = rb = xp.zeros(3 * n, r.dtype)

        def step(x_t: Array, h_t: Array) -> tuple[Array, ...]:
            from_input = matmul(x_t, w[d].T) + wb
            from_state = matmul(h_t, r[d, : 2 * n].T) + rb[: 2 * n]
            z = f(from_input[:, :n] + from_state[:, :n])
            reset = f(from_input[:, n : 2 * n] + from_state[:, n:])
            if ctx.attrs["linear_before_reset"]:
                state = reset * (matmul(h_t, r[d, 2 * n :].T) + rb[2 * n :])
            else:
                state = matmul(reset * h_t, r[d, 2 * n :].T) + rb[2 * n :]
            candidate = g(from_input[:, 2 * n :] + state)
            return ((1 - z) * candidate + z * h_t,)

        return step

    _run(ctx, x, lengths, [h], make_step)


@builtin("LSTM", since=7, limits=_CLIP)
@quiet
def lstm(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, w: Array, r: Array,
    bias: Array | None = None, lengths: Array | None = None, h: Array | None = None,
    c: Array | None = None, peepholes: Array | None = None,
) -> None:  # fmt: skip
    """Recurrent layer with a cell, and input, output and forget gates."""
    _expect_weights(ctx, x, w, r, bias, 4)
    xp, n = ctx.xp, ctx.attrs["hidden_size"]
    expect_shape("P", peepholes, (len(w), 3 * n))

    def make_step(d: int) -> Step:
        f, g, k = _functions(ctx, d, 3, ("Sigmoid", "Tanh", "Tanh"))
        wb, rb = _biases(bias, d)
        p = xp.zeros((3, n), r.dtype) if peepholes is None else peepholes[d].reshape(3, n)

        def step(x_t: Array, h_t: Array, c_t: Array) -> tuple[Array, ...]:
            gates = matmul(x_t, w[d].T) + matmul(h_t, r[d].T) + wb + rb
            i, o, forget, cell = (gates[:, j * n : (j + 1) * n] for j in range(4))
            i = f(i + p[0] * c_t)
            forget = 1 - i if ctx.attrs["input_forget"] else f(forget + p[2] * c_t)
            new = forget * c_t + i * g(cell)
            return f(o + p[1] * new) * k(new), new

        return step

    _run(ctx, x, lengths, [h, c], make_step)
