# SPDX-License-Identifier: Apache-2.0
"""Rows of the classes CONTRACT and POOL."""

import numpy as np
import torch

from book import EQUAL, EXACT, FLOATS, NUMBERS, Tensor, Tolerance, epsilon
from book import expanded, flipped, permuted, sliced
from samples import randoms, smooth

nn = torch.nn.functional


def double(tensor):
    """For torch; None stays None."""
    return tensor and torch.from_numpy(np.array(tensor.wide(), dtype=np.float64))


def given(*tensors):
    """The operands without the absent ones at the end."""
    return [tensor for tensor in tensors if tensor]


def as_lists(**attrs):
    """Attributes per spatial dim, as the text form has them, without those at their default."""
    default = {"padding": 0, "groups": 1, "stride": 1, "dilation": 1}
    many = {
        name: value if isinstance(value, tuple) or name == "groups" else (value,)
        for name, value in attrs.items()
    }
    return {
        name: value for name, value in many.items() if np.any(np.array(value) != default.get(name))
    }


def in_double(dtype):
    """Of a sum of hundreds of products, rounded once."""
    return Tolerance(1, 4096 * epsilon("f64"))


def gathered(dtype):
    """In f32, as most drivers do; f64 in f64."""
    return None if dtype == "f64" else Tolerance(2, 512 * epsilon("f32"))


MATMULS = [
    ((4, 5), (5, 3)),
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((3, 4), (2, 4, 3)),
    ((0, 4), (4, 2)),
    ((3, 0), (0, 2)),
    ((2, 0, 3), (3, 4)),
    ((2, 301), (301, 3)),
    ((2, 3), (3, 301)),
]
INF, NAN = np.inf, np.nan
CORNERS = [[NAN, 1, 2], [INF, 0, 1], [INF, -INF, 1], [0, -0.0, 0]], [[1.0, 0], [1, -1], [2, 3]]


def matmul_row(book):
    for dtype in NUMBERS:
        rng = randoms("matmul", dtype)
        case = book.case(
            "contract",
            "matmul",
            dtype,
            *((in_double(dtype), gathered(dtype)) if dtype in FLOATS else (EXACT,)),
        )

        def give(name, a, b):
            case.give(name, [a, b], np.matmul(a.tensor.wide(), b.tensor.wide()))

        for shapes in MATMULS:
            give(None, *(case.input(smooth(dtype, shape, rng)) for shape in shapes))
        a, b = case.input(smooth(dtype, (6, 5), rng)), case.input(
            smooth(dtype, (4, 6), rng), permuted(1, 0)
        )
        give("turned", case.view(a, permuted(1, 0)), b)
        give("reversed", case.view(a, sliced("::-1, ::2")), case.view(b, sliced("::2")))
        give("stretched", case.input(smooth(dtype, (1, 6), rng), expanded(3, 6)), b)
        if dtype in FLOATS:
            give("corners", *(case.input(Tensor(dtype, np.array(values))) for values in CORNERS))


# Dims of x and w, whether there is a bias, stride, padding, dilation, groups.
CONVS = [
    ((2, 3, 9), (4, 3, 3), True, 1, 0, 1, 1),
    ((1, 4, 10), (6, 2, 3), False, 2, 1, 2, 2),
    ((2, 3, 6, 7), (4, 3, 3, 2), True, (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 7, 6), (4, 1, 3, 3), True, (2, 1), (1, 2), (1, 2), 4),
    ((2, 1, 8, 8), (3, 1, 3, 3), True, (1, 1), (1, 1), (1, 1), 1),
    ((1, 2, 5, 5), (2, 2, 1, 1), False, (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), True, (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
    ((2, 4, 3, 3, 4), (2, 2, 2, 2, 2), False, (1, 1, 1), (0, 0, 0), (1, 1, 1), 2),
    ((1, 1, 301), (1, 1, 3), True, 1, 0, 1, 1),
    ((0, 3, 9), (4, 3, 3), True, 1, 0, 1, 1),
]


def conv_row(book):
    functions = {3: nn.conv1d, 4: nn.conv2d, 5: nn.conv3d}
    for dtype in FLOATS:
        rng = randoms("conv", dtype)
        case = book.case("contract", "conv", dtype, in_double(dtype), gathered(dtype))
        for x_dims, w_dims, has_bias, *window in CONVS:
            x, w = smooth(dtype, x_dims, rng), smooth(dtype, w_dims, rng, -1, 1)
            bias = smooth(dtype, w_dims[:1], rng) if has_bias else None
            result = functions[len(x_dims)](double(x), double(w), double(bias), *window)
            attrs = as_lists(**dict(zip(("stride", "padding", "dilation", "groups"), window)))
            case.give(None, given(x, w, bias), result.numpy(), **attrs)
        x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3))
        w = case.input(smooth(dtype, (4, 3, 3, 3), rng), flipped(2, 3))
        result = nn.conv2d(double(x.tensor), double(w.tensor), padding=(1, 0))
        case.give("strided", [x, w], result.numpy(), padding=(1, 0))


LINEARS = [
    ((5, 6), True),
    ((2, 3, 6), True),
    ((6,), True),
    ((4, 6), False),
    ((0, 6), True),
    ((1, 1, 6), False),
]


def linear_row(book):
    for dtype in FLOATS:
        rng = randoms("linear", dtype)
        case = book.case(
            "contract", "linear", dtype, in_double(dtype), Tolerance(2, 8 * epsilon(dtype))
        )
        for dims, has_bias in LINEARS:
            x, w = smooth(dtype, dims, rng), smooth(dtype, (6, 4), rng, -1, 1)
            bias = smooth(dtype, (4,), rng) if has_bias else None
            case.give(
                None, given(x, w, bias), nn.linear(double(x), double(w).T, double(bias)).numpy()
            )
        x = case.input(smooth(dtype, (3, 6), rng), flipped(1))
        w = case.input(smooth(dtype, (4, 6), rng, -1, 1), permuted(1, 0))
        case.give("strided", [x, w], nn.linear(double(x.tensor), double(w.tensor).T).numpy())


# Dims, kernel, stride, padding, whether a partial window counts, whether padding does not.
AVERAGES = [
    ((2, 3, 9), 3, 3, 0, False, False),
    ((2, 3, 10), 3, 2, 1, True, True),
    ((1, 2, 7, 8), (2, 3), (2, 3), (0, 0), False, False),
    ((1, 2, 7, 8), (3, 2), (2, 1), (1, 1), False, False),
    ((1, 2, 7, 8), (3, 3), (2, 2), (1, 1), True, False),
    ((1, 2, 7, 8), (3, 3), (2, 3), (1, 1), True, True),
    ((2, 1, 4, 5, 6), (2, 2, 3), (1, 2, 2), (1, 0, 1), False, True),
    ((1, 1, 1), 1, 1, 0, False, False),
    ((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), False, False),
]
# Dims, kernel, stride, padding, dilation, whether a partial window counts.
MAXIMA = [
    ((2, 3, 9), 3, 3, 0, 1, False),
    ((2, 3, 10), 3, 2, 1, 1, True),
    ((1, 2, 7, 8), (2, 3), (2, 3), (0, 0), (1, 1), False),
    ((1, 2, 7, 8), (3, 2), (2, 1), (1, 1), (1, 2), False),
    ((1, 2, 7, 8), (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((1, 2, 9, 8), (2, 2), (1, 3), (1, 0), (2, 3), False),
    ((2, 1, 4, 5, 6), (2, 2, 3), (1, 2, 2), (1, 0, 1), (1, 1, 1), False),
    ((1, 1, 1), 1, 1, 0, 1, False),
    ((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), (1, 1), False),
]


def window_attrs(kernel, stride, ceil, **rest):
    """The stride's default is the kernel, that of `ceil` 0."""
    attrs = as_lists(kernel=kernel, **rest)
    if stride != kernel:
        attrs["stride"] = stride if isinstance(stride, tuple) else (stride,)
    return attrs | ({"ceil": 1} if ceil else {})


def avg_pool_row(book):
    functions = {3: nn.avg_pool1d, 4: nn.avg_pool2d, 5: nn.avg_pool3d}
    for dtype in FLOATS:
        rng = randoms("avg_pool", dtype)
        case = book.case("pool", "avg_pool", dtype, in_double(dtype), gathered(dtype))
        for dims, kernel, stride, padding, ceil, exclude in AVERAGES:
            x = smooth(dtype, dims, rng)
            result = functions[len(dims)](double(x), kernel, stride, padding, ceil, not exclude)
            attrs = window_attrs(kernel, stride, ceil, padding=padding) | (
                {"exclude_pad": 1} if exclude else {}
            )
            case.give(None, [x], result.numpy(), **attrs)
        x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3))
        case.give("strided", [x], nn.avg_pool2d(double(x.tensor), (2, 3)).numpy(), kernel=(2, 3))


def max_pool_row(book):
    functions = {3: nn.max_pool1d, 4: nn.max_pool2d, 5: nn.max_pool3d}
    for dtype in FLOATS:
        rng = randoms("max_pool", dtype)
        case = book.case("pool", "max_pool", dtype, EQUAL)
        for dims, kernel, stride, padding, dilation, ceil in MAXIMA:
            x = Tensor(dtype, rng.integers(-3, 4, dims))  # full of ties
            result, index = functions[len(dims)](
                double(x), kernel, stride, padding, dilation, ceil, True
            )
            attrs = window_attrs(kernel, stride, ceil, padding=padding, dilation=dilation)
            case.give_two([x], result.numpy(), Tensor("i64", index.numpy()), **attrs)
        x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3))
        case.give("strided", [x], nn.max_pool2d(double(x.tensor), (2, 3)).numpy(), kernel=(2, 3))
        corners = Tensor(dtype, np.array([[[1, NAN, 2, INF, -INF, -INF, NAN, INF]]]))
        result, index = nn.max_pool1d(double(corners), 2, return_indices=True)
        case.give_two([corners], result.numpy(), Tensor("i64", index.numpy()), kernel=(2,))


def write(book):
    matmul_row(book)
    conv_row(book)
    linear_row(book)
    avg_pool_row(book)
    max_pool_row(book)
