# SPDX-License-Identifier: Apache-2.0
"""Rows of the class NORM."""

import numpy as np
import torch

from book import FLOATS, Tensor, Tolerance, epsilon
from book import flipped, permuted, sliced
from contracting import INF, NAN, double, nn
from samples import largest, randoms, smooth

EPS = 1e-5


def in_double(dtype):
    """Several steps in double, rounded once."""
    return Tolerance(2, 16 * epsilon("f64"))


def in_steps(dtype):
    return Tolerance(4, 8 * epsilon(dtype))


SOFTMAX = {
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "softmin": lambda x, axis: torch.softmax(-x, axis),
}


def softmax_row(book, row, dtype):
    rng = randoms(row, dtype)
    case = book.case("norm", row, dtype, in_double(dtype), in_steps(dtype))

    def give(name, value, axis):
        value = value if not isinstance(value, Tensor) else case.input(value)
        case.give(name, [value], SOFTMAX[row](double(value.tensor), axis).numpy(), axis=axis)

    cube = case.input(smooth(dtype, (3, 5, 7), rng))
    for axis in (0, 1, 2, -1):
        give(None, cube, axis)
    give("permuted", case.view(cube, permuted(2, 0, 1)), 1)
    give("reversed", case.view(cube, sliced("::-1, ::2, ::-3")), 2)
    give("larger", smooth(dtype, (2, 301), rng, -30, 30), 1)
    give("ones", smooth(dtype, (1, 1), rng), 0)
    give("empty", smooth(dtype, (0, 3), rng), 1)
    give("of_nothing", smooth(dtype, (3, 0), rng), 1)
    top = largest(dtype)
    corners = [[1, 2, NAN], [INF, 1, 2], [-INF, 1, 2], [-INF] * 3, [top, top, 0], [-top, top, 1]]
    give("corners", Tensor(dtype, np.array(corners)), 1)


# Dims, axes (None: the default, the last), eps (0: the default), how many of gamma and beta.
NORMS = [
    ((4, 6), None, 0, 2),
    ((2, 3, 5), None, 1e-3, 1),
    ((2, 3, 5), (1, 2), 0, 0),
    ((3, 4, 5), (0,), 0, 2),
    ((3, 4, 5), (0, 2), 0.5, 1),
    ((7,), (0,), 0, 0),
    ((1, 1), (1,), 0, 2),
    ((0, 4), (1,), 0, 1),
    ((2, 301), None, 0, 2),
]


def over(tensor, axes, function):
    """A torch normalisation, which only knows trailing dims, over any axes."""
    order = [axis for axis in range(tensor.data.ndim) if axis not in axes] + list(axes)
    moved = double(tensor).permute(order)
    result = function(moved, moved.shape[moved.ndim - len(axes) :])
    return result.permute(*np.argsort(order).tolist()).numpy()


def trailing_row(book, row, function, most, dtype):
    """layer_norm and rms_norm; `most` of gamma and beta."""
    rng = randoms(row, dtype)
    case = book.case("norm", row, dtype, in_double(dtype), in_steps(dtype))
    for dims, axes, eps, count in NORMS:
        x = smooth(dtype, dims, rng)
        attrs = ({"axes": axes} if axes else {}) | ({"eps": eps} if eps else {})
        axes = axes or (len(dims) - 1,)
        factors = [
            smooth(dtype, [dims[axis] for axis in axes], rng) for _ in range(min(count, most))
        ]
        values = [double(factor) for factor in factors]
        result = over(x, axes, lambda a, size: function(a, size, *values, eps=eps or EPS))
        case.give(None, [x, *factors], result, **attrs)
    x = case.input(smooth(dtype, (6, 4), rng), permuted(1, 0), flipped(1))
    case.give("strided", [x], over(x.tensor, (1,), lambda a, size: function(a, size, eps=EPS)))


BATCHES = [((4, 3), 0), ((2, 3, 5), 1e-2), ((2, 3, 4, 5), 0), ((1, 2, 2, 3, 2), 0), ((1, 1), 0)]


def batch_row(book, dtype):
    rng = randoms("batch_norm", dtype)
    case = book.case("norm", "batch_norm", dtype, in_double(dtype), in_steps(dtype))

    def give(name, x, eps):
        x = x if not isinstance(x, Tensor) else case.input(x)
        size = x.tensor.shape[1:2]
        gamma, beta, mean = (smooth(dtype, size, rng) for _ in range(3))
        var = smooth(dtype, size, rng, 0.1, 4)
        values = [double(tensor) for tensor in (x.tensor, mean, var, gamma, beta)]
        result = nn.batch_norm(*values, eps=eps or EPS) if x.tensor.data.size else values[0]
        case.give(
            name, [x, gamma, beta, mean, var], result.numpy(), **({"eps": eps} if eps else {})
        )

    for dims, eps in BATCHES:
        give(None, smooth(dtype, dims, rng), eps)
    give("empty", smooth(dtype, (0, 3, 2), rng), 0)
    give("strided", case.input(smooth(dtype, (3, 4), rng), permuted(1, 0)), 0)


# Dims, groups, eps, how many of gamma and beta.
GROUPS = [
    ((2, 4, 5), 2, 0, 2),
    ((2, 6, 3, 4), 3, 1e-2, 2),
    ((3, 4), 1, 0, 1),
    ((2, 4, 3), 4, 0, 0),
    ((1, 2, 2, 3, 2), 2, 0, 2),
]


def group_row(book, dtype):
    rng = randoms("group_norm", dtype)
    case = book.case("norm", "group_norm", dtype, in_double(dtype), in_steps(dtype))

    def give(name, x, groups, eps, count):
        x = x if not isinstance(x, Tensor) else case.input(x)
        factors = [smooth(dtype, x.tensor.shape[1:2], rng) for _ in range(count)]
        values = [double(factor) for factor in factors]
        result = double(x.tensor)
        if x.tensor.data.size:
            result = nn.group_norm(result, groups, *values, eps=eps or EPS)
        attrs = ({"groups": groups} if groups > 1 else {}) | ({"eps": eps} if eps else {})
        case.give(name, [x, *factors], result.numpy(), **attrs)

    for dims, groups, eps, count in GROUPS:
        give(None, smooth(dtype, dims, rng), groups, eps, count)
    give("empty", smooth(dtype, (0, 4, 3), rng), 2, 0, 2)
    give("strided", case.input(smooth(dtype, (4, 3, 2), rng), permuted(2, 0, 1)), 2, 0, 2)


def write(book):
    for dtype in FLOATS:
        for row in SOFTMAX:
            softmax_row(book, row, dtype)
        trailing_row(book, "layer_norm", nn.layer_norm, 2, dtype)
        trailing_row(book, "rms_norm", nn.rms_norm, 1, dtype)
        batch_row(book, dtype)
        group_row(book, dtype)
