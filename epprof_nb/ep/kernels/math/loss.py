"""Losses."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.math.softmax import log_softmax
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.precision import at_least_float32


def _write_loss(
    ctx: Context, log_probabilities: Array, labels: Array, weights: Array | None
) -> None:
    xp, attrs = ctx.xp, ctx.attrs
    ignored_label = attrs.get("ignore_index")
    counts = xp.ones(labels.shape, bool) if ignored_label is None else labels != ignored_label
    valid = xp.where(counts, labels, 0)
    classes = log_probabilities.shape[1]
    outside = (valid < -classes) | (valid >= classes)
    if xp is np and outside.any():
        raise IndexError(f"a label is not one of the {classes} classes")
    picked = xp.take_along_axis(log_probabilities, xp.expand_dims(valid, 1), axis=1)
    factor = counts.astype(log_probabilities.dtype)
    if weights is not None:
        factor = factor * at_least_float32(weights)[valid]
    loss = -picked[:, 0] * factor
    if xp is not np:  # the check would wait for the device
        loss = xp.where(outside, loss.dtype.type(np.nan), loss)
    if attrs["reduction"] == "none":
        ctx.out(loss.shape, index=0)[...] = loss
    elif attrs["reduction"] == "sum":
        ctx.out((), index=0)[...] = loss.sum()
    else:
        ctx.out((), index=0)[...] = loss.sum() / factor.sum()


@builtin("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    ctx: Context, x: Array, labels: Array, weights: Array | None = None
) -> None:
    """Negative log-probability of each label, weighted by class and reduced."""
    _write_loss(ctx, at_least_float32(x), labels, weights)


@builtin("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    ctx: Context, scores: Array, labels: Array, weights: Array | None = None
) -> None:
    """Negative log-likelihood of the softmax of scores."""
    log_probabilities = log_softmax(ctx.xp, at_least_float32(scores), 1)
    _write_loss(ctx, log_probabilities, labels, weights)
    write_optional(ctx, 1, log_probabilities)
