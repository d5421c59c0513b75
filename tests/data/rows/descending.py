# SPDX-License-Identifier: Apache-2.0
"""Gradients of pools, of elementwise rows, of linear and embedding."""

import numpy as np
import torch

from book import FLOATS, Tensor, Tolerance, epsilon
from book import flipped, permuted, sliced
from contracting import AVERAGES, MAXIMA, double, in_double, nn, window_attrs
from samples import randoms, smooth
from transposing import apart, gradients, leaf

AVERAGE = {3: nn.avg_pool1d, 4: nn.avg_pool2d, 5: nn.avg_pool3d}
MAXIMUM = {3: nn.max_pool1d, 4: nn.max_pool2d, 5: nn.max_pool3d}
ADAPTIVE = {3: nn.adaptive_avg_pool1d, 4: nn.adaptive_avg_pool2d, 5: nn.adaptive_avg_pool3d}


def avg_pool_row(book, dtype):
    rng = randoms("avg_pool_backward", dtype)
    case = book.case("gradient", "avg_pool_backward", dtype, in_double(dtype), apart(dtype))
    for dims, kernel, stride, padding, ceil, exclude in AVERAGES:
        x = smooth(dtype, dims, rng)
        inputs = [leaf(x)]
        result = AVERAGE[len(dims)](*inputs, kernel, stride, padding, ceil, not exclude)
        grad = smooth(dtype, tuple(result.shape), rng)
        attrs = window_attrs(kernel, stride, ceil, padding=padding)
        attrs |= {"exclude_pad": 1} if exclude else {}
        case.give(None, [x, grad], gradients(result, inputs, double(grad))[0], **attrs)
    x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3))
    grad = case.input(smooth(dtype, (3, 2, 2, 3), rng), permuted(1, 3, 0, 2), flipped(2))
    inputs = [leaf(x.tensor)]
    result = gradients(nn.avg_pool2d(*inputs, (2, 3)), inputs, double(grad.tensor))[0]
    case.give("strided", [x, grad], result, kernel=(2, 3))


def max_pool_row(book, dtype):
    rng = randoms("max_pool_backward", dtype)
    case = book.case("gradient", "max_pool_backward", dtype, in_double(dtype), apart(dtype))
    for turn, (dims, kernel, stride, padding, dilation, ceil) in enumerate(MAXIMA):
        x = smooth(dtype, dims, rng)
        inputs = [leaf(x)]
        result, index = MAXIMUM[len(dims)](
            *inputs, kernel, stride, padding, dilation, ceil, return_indices=True
        )
        grad = smooth(dtype, tuple(result.shape), rng)
        attrs = window_attrs(kernel, stride, ceil, padding=padding, dilation=dilation)
        index = Tensor(("i64", "i32")[turn % 2], index.numpy())
        operands = [x, grad, index]
        case.give(None, operands, gradients(result, inputs, double(grad))[0], **attrs)
    x, grad = smooth(dtype, (1, 2, 5), rng), smooth(dtype, (1, 2, 4), rng)
    index = np.array([[[0, -1, 4, 4], [5, 2, -(2**31), 2]]])
    result = np.zeros((1, 2, 5))
    for c, i in np.argwhere((index[0] >= 0) & (index[0] < 5)):
        result[0, c, index[0, c, i]] += grad.wide()[0, c, i]
    case.give("outside", [x, grad, Tensor("i64", index)], result, kernel=(2,), stride=(1,))
    grad = case.input(smooth(dtype, (4, 1, 2), rng), permuted(1, 2, 0), flipped(2))
    index = case.input(Tensor("i64", rng.integers(0, 5, (1, 4, 2))), permuted(0, 2, 1))
    result = np.zeros((1, 2, 5))
    for c, i in np.ndindex(2, 4):
        result[0, c, index.tensor.data[0, c, i]] += grad.tensor.wide()[0, c, i]
    case.give("strided", [x, grad, index], result, kernel=(2,), stride=(1,))


# Dims, size.
ADAPTIVES = [
    ((2, 3, 7), (3,)),
    ((1, 2, 3), (5,)),
    ((2, 2, 5, 7), (2, 3)),
    ((1, 3, 4, 4), (1, 1)),
    ((1, 2, 3, 5), (3, 9)),
    ((1, 2, 4, 5, 3), (3, 2, 2)),
    ((0, 2, 4, 4), (2, 2)),
]


def adaptive_rows(book, dtype):
    rng = randoms("adaptive_avg_pool", dtype)
    case = book.case("pool_more", "adaptive_avg_pool", dtype, in_double(dtype), apart(dtype))
    back = book.case(
        "gradient", "adaptive_avg_pool_backward", dtype, in_double(dtype), apart(dtype)
    )

    def give(name, x, size):
        inputs = [leaf(x.tensor)]
        rank = len(x.tensor.shape)
        if inputs[0].numel():
            result = ADAPTIVE[rank](*inputs, size)
        else:
            result = torch.zeros(*x.tensor.shape[:2], *size)
        case.give(name, [x], result.detach().numpy(), size=size)
        x = back.input(smooth(dtype, x.tensor.shape, rng))
        shape = tuple(result.shape)
        grad = back.input(smooth(dtype, shape[1:] + shape[:1], rng), permuted(rank - 1, *range(rank - 1)))
        back.give(name, [x, grad], gradients(result, inputs, double(grad.tensor))[0])

    for dims, size in ADAPTIVES:
        give(None, case.input(smooth(dtype, dims, rng)), size)
    x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3), flipped(3))
    give("strided", x, (4, 3))


# ---- elementwise ----


def sigmoid_gradient(y, grad):
    return grad * y * (1 - y)


def torch_gradient(function):
    def gradient(x, grad):
        x = torch.from_numpy(np.array(x, dtype=np.float64)).requires_grad_()
        return gradients(function(x), [x], torch.from_numpy(np.array(grad)))[0]

    return gradient


# Gradient, random numbers from, to; what relu_backward and sigmoid_backward take is y.
CHAINS = {
    "relu_backward": (lambda y, grad: np.where(y > 0, grad, 0), -2, 2),
    "gelu_backward": (torch_gradient(nn.gelu), -4, 4),
    "sigmoid_backward": (sigmoid_gradient, 0, 1),
    "log_sigmoid_backward": (torch_gradient(nn.logsigmoid), -6, 6),
}


def chain_row(book, row, dtype):
    gradient, low, high = CHAINS[row]
    rng = randoms(row, dtype)
    tight = Tolerance(4 if dtype == "f64" else 1, 4 * epsilon("f64"))
    case = book.case("gradient", row, dtype, tight, Tolerance(4, 4 * epsilon(dtype)))

    def give(name, x, grad):
        case.give(name, [x, grad], gradient(x.tensor.wide(), grad.tensor.wide()))

    x = case.input(smooth(dtype, (3, 5, 4), rng, low, high))
    grad = case.input(smooth(dtype, (3, 5, 4), rng))
    give("odd", x, grad)
    view = sliced("::-1, 4:0:-2, 1::2")
    give("reversed", case.view(x, view), case.view(grad, view))
    give("permuted", case.view(x, permuted(2, 0, 1)), case.view(grad, permuted(2, 0, 1)))
    for name, dims in (("rank0", ()), ("ones", (1, 1)), ("empty", (0, 3)), ("larger", (2, 301))):
        operands = smooth(dtype, dims, rng, low, high), smooth(dtype, dims, rng)
        give(name, *(case.input(tensor) for tensor in operands))
    corners = np.array([0.0, -0.0, np.nan, 1.0, 1.0, -1.0])
    grads = np.array([1.0, 2.0, 3.0, np.nan, np.inf, -np.inf])
    give("corners", *(case.input(Tensor(dtype, values)) for values in (corners, grads)))


# ---- linear, embedding ----

LINEARS = [(5, 6), (2, 3, 6), (6,), (1, 1, 6), (0, 6), (2, 51, 6)]


def linear_row(book, row, which, dtype):
    """By x or w: both have the same operands."""
    rng = randoms("linear_backward", dtype)
    case = book.case("gradient", row, dtype, in_double(dtype), apart(dtype))

    def give(name, x, w, grad):
        inputs = [leaf(x.tensor), leaf(w.tensor)]
        result = torch.matmul(*inputs)
        case.give(name, [x, w, grad], gradients(result, inputs, double(grad.tensor))[which])

    for dims in LINEARS:
        x, w = smooth(dtype, dims, rng), smooth(dtype, (6, 4), rng, -1, 1)
        give(None, *(case.input(t) for t in (x, w, smooth(dtype, dims[:-1] + (4,), rng))))
    x = case.input(smooth(dtype, (6, 3, 2), rng), permuted(1, 2, 0), flipped(1))
    w = case.input(smooth(dtype, (4, 6), rng, -1, 1), permuted(1, 0))
    grad = case.input(smooth(dtype, (3, 4, 2), rng), permuted(0, 2, 1), flipped(2))
    give("strided", x, w, grad)


def embedding_row(book, dtype):
    rng = randoms("embedding_backward", dtype)
    case = book.case("gradient", "embedding_backward", dtype, in_double(dtype), apart(dtype))

    def give(name, grad, index, dims):
        result = np.zeros(dims)
        there = (index.tensor.data >= 0) & (index.tensor.data < dims[0])
        np.add.at(result, index.tensor.data[there], grad.tensor.wide()[there])
        case.give(name, [smooth(dtype, dims, rng), grad, index], result)

    for turn, shape in enumerate(((6,), (2, 3, 4), (), (0,), (200,))):
        kind = ("i64", "i32")[turn % 2]
        index = rng.integers(0, 9, shape)
        if index.size > 4:
            index.reshape(-1)[[0, 1, 3, -1]] = -1, 9, 2**31 - 1, -(2**31)
        grad = smooth(dtype, shape + (5,), rng)
        give(None, case.input(grad), case.input(Tensor(kind, index)), (9, 5))
    grad = case.input(smooth(dtype, (5, 2, 6), rng), permuted(2, 1, 0), flipped(2))
    index = case.input(Tensor("i64", rng.integers(0, 4, (2, 12))), permuted(1, 0), sliced("::-2"))
    give("strided", grad, index, (4, 5))


def write(book):
    for dtype in FLOATS:
        avg_pool_row(book, dtype)
        max_pool_row(book, dtype)
        adaptive_rows(book, dtype)
        for row in CHAINS:
            chain_row(book, row, dtype)
        linear_row(book, "linear_backward_x", 0, dtype)
        linear_row(book, "linear_backward_w", 1, dtype)
        embedding_row(book, dtype)
