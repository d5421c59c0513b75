# SPDX-License-Identifier: Apache-2.0
"""conv_transpose, deform_conv and unfold4d, with the gradients of all convolutions."""

import numpy as np
import torch

from book import FLOATS, Tensor, Tolerance, epsilon
from book import flipped, permuted, sliced
from contracting import CONVS, as_lists, double, given, in_double, nn
from samples import randoms, smooth

CONV = {3: nn.conv1d, 4: nn.conv2d, 5: nn.conv3d}
TRANSPOSE = {3: nn.conv_transpose1d, 4: nn.conv_transpose2d, 5: nn.conv_transpose3d}

# Dims of x and w, whether there is a bias, stride, padding, padding at the end, groups, dilation.
TRANSPOSED = [
    ((2, 3, 5), (3, 4, 3), True, 1, 0, 0, 1, 1),
    ((1, 4, 6), (4, 3, 2), False, 3, 1, 2, 2, 2),
    ((2, 3, 4, 5), (3, 2, 3, 2), True, (1, 1), (0, 0), (0, 0), 1, (1, 1)),
    ((1, 4, 3, 4), (4, 1, 3, 3), True, (2, 3), (1, 0), (1, 2), 4, (1, 2)),
    ((1, 2, 5, 3), (2, 2, 1, 1), False, (1, 1), (0, 0), (0, 0), 1, (1, 1)),
    ((1, 2, 2, 3, 2), (2, 3, 2, 3, 2), True, (1, 2, 1), (1, 0, 1), (0, 1, 1), 1, (1, 1, 2)),
    ((2, 4, 2, 2, 1), (4, 1, 2, 2, 2), False, (1, 1, 1), (0, 0, 0), (0, 0, 0), 2, (1, 1, 1)),
    ((0, 3, 5), (3, 4, 3), True, 1, 0, 0, 1, 1),
]


def apart(dtype):
    """Summed up by other drivers in f32, in another order."""
    if dtype == "f64":
        return Tolerance(2, 4096 * epsilon(dtype))
    return Tolerance(2, 1024 * epsilon("f32"))


def transpose_attrs(window):
    names = ("stride", "padding", "padding_out", "groups", "dilation")
    attrs = as_lists(**dict(zip(names, window)))
    if not np.any(attrs["padding_out"]):
        del attrs["padding_out"]
    return attrs


def gradients(result, inputs, grad):
    """Of a torch result by its inputs."""
    if result.numel() == 0:
        return [np.zeros(tuple(x.shape)) for x in inputs]
    return [g.numpy() for g in torch.autograd.grad(result, inputs, grad)]


def leaf(tensor):
    return double(tensor).requires_grad_() if tensor else None


def transpose_row(book, dtype):
    rng = randoms("conv_transpose", dtype)
    case = book.case("contract_more", "conv_transpose", dtype, in_double(dtype), apart(dtype))
    for x_dims, w_dims, has_bias, *window in TRANSPOSED:
        x, w = smooth(dtype, x_dims, rng), smooth(dtype, w_dims, rng, -1, 1)
        bias = smooth(dtype, (w_dims[1] * window[3],), rng) if has_bias else None
        result = TRANSPOSE[len(x_dims)](double(x), double(w), double(bias), *window)
        case.give(None, given(x, w, bias), result.numpy(), **transpose_attrs(window))
    x = case.input(smooth(dtype, (6, 2, 3, 5), rng), permuted(1, 2, 0, 3), sliced(":, :, ::-2"))
    w = case.input(smooth(dtype, (3, 4, 2, 3), rng), flipped(2, 3))
    result = nn.conv_transpose2d(double(x.tensor), double(w.tensor), padding=(0, 1))
    case.give("strided", [x, w], result.numpy(), padding=(0, 1))


def backward_row(book, row, which, dtype):
    """conv by x or w: both have the same operands."""
    rng = randoms("conv_backward", dtype)
    case = book.case("gradient", row, dtype, in_double(dtype), apart(dtype))
    for x_dims, w_dims, _, *window in CONVS:
        x, w = smooth(dtype, x_dims, rng), smooth(dtype, w_dims, rng, -1, 1)
        inputs = [leaf(x), leaf(w)]
        result = CONV[len(x_dims)](*inputs, None, *window)
        grad = smooth(dtype, tuple(result.shape), rng, -1, 1)
        attrs = as_lists(**dict(zip(("stride", "padding", "dilation", "groups"), window)))
        case.give(
            None, [x, w, grad], gradients(result, inputs, double(grad))[which], **attrs
        )
    x = case.input(smooth(dtype, (6, 2, 3, 7), rng), permuted(1, 2, 0, 3))
    w = case.input(smooth(dtype, (4, 3, 3, 3), rng), flipped(2, 3))
    grad = case.input(smooth(dtype, (2, 5, 6, 4), rng), permuted(0, 3, 2, 1))
    inputs = [leaf(x.tensor), leaf(w.tensor)]
    result = nn.conv2d(*inputs, padding=(1, 0))
    result = gradients(result, inputs, double(grad.tensor))[which]
    case.give("strided", [x, w, grad], result, padding=(1, 0))


def transpose_backward_row(book, dtype):
    rng = randoms("conv_transpose_backward_w", dtype)
    case = book.case(
        "gradient", "conv_transpose_backward_w", dtype, in_double(dtype), apart(dtype)
    )
    for x_dims, w_dims, _, *window in TRANSPOSED:
        x, w = smooth(dtype, x_dims, rng), smooth(dtype, w_dims, rng, -1, 1)
        inputs = [leaf(x), leaf(w)]
        result = TRANSPOSE[len(x_dims)](*inputs, None, *window)
        grad = smooth(dtype, tuple(result.shape), rng, -1, 1)
        case.give(
            None,
            [x, w, grad],
            gradients(result, inputs, double(grad))[1],
            **transpose_attrs(window),
        )


def bias_row(book, row, axis, dtype):
    """Sums over all dims but one."""
    rng = randoms(row, dtype)
    case = book.case("gradient", row, dtype, in_double(dtype), apart(dtype))
    shapes = [(2, 3, 5), (4, 2), (2, 3, 4, 5), (0, 3, 2), (1, 1, 301)]
    shapes += [(7,), ()][: row == "linear_backward_bias"]
    for shape in shapes:
        grad = smooth(dtype, shape, rng)
        rest = tuple(i for i in range(len(shape)) if i != axis % len(shape))
        case.give(None, [grad], grad.wide().sum(axis=rest))
    grad = case.input(smooth(dtype, (4, 3, 5), rng), permuted(2, 0, 1), flipped(1))
    rest = tuple(i for i in range(3) if i != axis % 3)
    case.give("strided", [grad], grad.tensor.wide().sum(axis=rest))


# ---- deform_conv: written out, since torch has none ----

# Dims of x and w, whether there is a mask and a bias, stride, padding, dilation, groups, offset groups.
DEFORMED = [
    ((1, 2, 5, 6), (3, 2, 3, 2), False, False, (1, 1), (0, 0), (1, 1), 1, 1),
    ((2, 4, 5, 4), (4, 2, 2, 3), True, True, (2, 1), (1, 2), (1, 1), 2, 2),
    ((1, 2, 6, 5), (2, 1, 2, 2), True, False, (1, 2), (0, 1), (2, 1), 2, 1),
    ((1, 1, 3, 3), (1, 1, 1, 1), False, True, (1, 1), (0, 0), (1, 1), 1, 1),
    ((0, 2, 5, 6), (3, 2, 3, 2), True, True, (1, 1), (0, 0), (1, 1), 1, 1),
]


def bilinear(plane, rows, columns):
    """plane [h, w] at points; beyond it are zeros."""
    height, width = plane.shape
    row, column = torch.floor(rows.detach()), torch.floor(columns.detach())
    down, right = rows - row, columns - column
    result = 0
    for i, share_down in ((0, 1 - down), (1, down)):
        for j, share_right in ((0, 1 - right), (1, right)):
            r, c = (row + i).long(), (column + j).long()
            there = (r >= 0) & (r < height) & (c >= 0) & (c < width)
            value = plane[r.clamp(0, height - 1), c.clamp(0, width - 1)]
            result = result + torch.where(there, value, 0.0) * share_down * share_right
    return result


def deform(x, offset, w, mask, bias, stride, padding, dilation, groups, offset_groups):
    items, channels, _, _ = x.shape
    outputs, _, high, wide = w.shape
    rows, columns = offset.shape[2:]
    at_row = torch.arange(rows)[:, None] * stride[0] - padding[0]
    at_column = torch.arange(columns)[None, :] * stride[1] - padding[1]
    items_out = []
    for n in range(items):
        samples = []
        for c in range(channels):
            group = c // (channels // offset_groups)
            for i in range(high):
                for j in range(wide):
                    k = (group * high + i) * wide + j
                    sample = bilinear(
                        x[n, c],
                        at_row + i * dilation[0] + offset[n, 2 * k],
                        at_column + j * dilation[1] + offset[n, 2 * k + 1],
                    )
                    samples.append(sample * mask[n, k] if mask is not None else sample)
        samples = torch.stack(samples).reshape(groups, -1, rows * columns)
        weights = w.reshape(groups, outputs // groups, -1)
        result = torch.bmm(weights, samples).reshape(outputs, rows, columns)
        items_out.append(result + bias[:, None, None] if bias is not None else result)
    return torch.stack(items_out) if items else torch.zeros(0, outputs, rows, columns)


def deform_inputs(dtype, x_dims, w_dims, has_mask, has_bias, window, rng):
    (high, wide), offset_groups = w_dims[2:], window[4]
    stride, padding, dilation = window[:3]
    places = [
        (x_dims[2 + d] + 2 * padding[d] - dilation[d] * (w_dims[2 + d] - 1) - 1) // stride[d] + 1
        for d in range(2)
    ]
    taps = offset_groups * high * wide
    offset = smooth(dtype, (x_dims[0], 2 * taps, *places), rng, -2.5, 2.5)
    mask = smooth(dtype, (x_dims[0], taps, *places), rng, 0, 1) if has_mask else None
    bias = smooth(dtype, w_dims[:1], rng) if has_bias else None
    return [smooth(dtype, x_dims, rng), offset, smooth(dtype, w_dims, rng, -1, 1), mask, bias]


def deform_attrs(window):
    names = ("stride", "padding", "dilation", "groups", "offset_groups")
    attrs = as_lists(**dict(zip(names, window)))
    groups = attrs.pop("offset_groups")[0]
    return attrs | ({"offset_groups": groups} if groups > 1 else {})


def deform_rows(book, dtype):
    rng = randoms("deform_conv", dtype)
    case = book.case("contract_more", "deform_conv", dtype, in_double(dtype), apart(dtype))
    back = book.case("gradient", "deform_conv_backward", dtype, in_double(dtype), apart(dtype))
    for x_dims, w_dims, has_mask, has_bias, *window in DEFORMED:
        inputs = deform_inputs(dtype, x_dims, w_dims, has_mask, has_bias, window, rng)
        leaves = [leaf(tensor) for tensor in inputs]
        result = deform(*leaves, *window)
        operands = inputs[: 5 if has_bias else 4 if has_mask else 3]
        attrs = deform_attrs(window)
        case.give(None, operands, result.detach().numpy(), **attrs)
        grad = smooth(dtype, tuple(result.shape), rng, -1, 1)
        there = [x for x in leaves if x is not None]
        found = iter(gradients(result, there, double(grad)))
        results = [next(found) if x is not None else None for x in leaves]
        if has_bias and not has_mask:  # a result that is not wanted cannot stand before one that is
            results = results[:3]
        back.give_many(
            [*inputs, grad], [x for x in results if x is not None], **attrs
        )
    inputs = [smooth(dtype, (1, 1, 3, 4), rng), Tensor(dtype, rng.integers(-4, 5, (1, 8, 2, 3)))]
    inputs.append(smooth(dtype, (1, 1, 2, 2), rng))
    leaves = [leaf(tensor) for tensor in inputs]  # points on the elements, and on the border
    result = deform(*leaves, None, None, (1, 1), (0, 0), (1, 1), 1, 1)
    case.give("whole", inputs, result.detach().numpy())
    grad = smooth(dtype, tuple(result.shape), rng, -1, 1)
    results = gradients(result, leaves, double(grad))
    back.give_many([*inputs, None, None, grad], results)
    x = case.input(smooth(dtype, (5, 2, 4, 1), rng), permuted(3, 1, 2, 0))
    offset = case.input(smooth(dtype, (1, 8, 3, 4), rng), flipped(2, 3))
    w = case.input(smooth(dtype, (2, 2, 2, 3), rng), permuted(3, 0, 1, 2))
    operands = [double(t.tensor) for t in (x, offset, w)]
    result = deform(*operands, None, None, (1, 1), (0, 0), (1, 1), 1, 1)
    case.give("strided", [x, offset, w], result.numpy())


# Dims, kernel, stride, padding, dilation.
UNFOLDED = [
    ((2, 3, 5, 6), (2, 3), (1, 1), (0, 0), (1, 1)),
    ((1, 2, 7, 4), (3, 2), (2, 1), (1, 2), (1, 1)),
    ((1, 1, 6, 7), (2, 2), (1, 3), (0, 1), (2, 3)),
    ((1, 2, 1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    ((0, 2, 5, 6), (2, 3), (1, 1), (0, 0), (1, 1)),
]


def unfold_row(book, dtype):
    rng = randoms("unfold4d", dtype)
    case = book.case("contract_more", "unfold4d", dtype)

    def give(x, kernel, stride, padding, dilation):
        value = double(x.tensor)
        if value.numel():
            result = nn.unfold(value, kernel, dilation, padding, stride).numpy()
        else:
            like = torch.zeros(1, *value.shape[1:])
            result = nn.unfold(like, kernel, dilation, padding, stride).numpy()[:0]
        attrs = as_lists(kernel=kernel, stride=stride, padding=padding, dilation=dilation)
        case.give(None, [x], result, **attrs)

    for dims, *window in UNFOLDED:
        give(case.input(smooth(dtype, dims, rng)), *window)
    turned = case.input(smooth(dtype, (6, 2, 3, 5), rng), permuted(1, 2, 0, 3), flipped(3))
    give(turned, *UNFOLDED[1][1:])


def write(book):
    for dtype in FLOATS:
        transpose_row(book, dtype)
        unfold_row(book, dtype)
        backward_row(book, "conv_backward_x", 0, dtype)
        backward_row(book, "conv_backward_w", 1, dtype)
        transpose_backward_row(book, dtype)
        bias_row(book, "conv_backward_bias", 1, dtype)
        bias_row(book, "linear_backward_bias", -1, dtype)
        deform_rows(book, dtype)
