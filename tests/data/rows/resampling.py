# SPDX-License-Identifier: Apache-2.0
"""Rows of the class RESAMPLE, with the gradient of interpolate."""

import numpy as np
import torch

from book import FLOATS, Tensor
from book import flipped, permuted, sliced
from contracting import double, in_double, nn
from samples import randoms, smooth
from transposing import apart, gradients, leaf

MODES = {
    "nearest": "nearest",
    "nearest_exact": "nearest-exact",
    "bilinear": "bilinear",
    "bicubic": "bicubic",
    "lanczos3": None,
}
# Dims, size.
SIZES = [
    ((1, 2, 5, 7), (3, 9)),
    ((2, 1, 4, 3), (4, 3)),
    ((1, 1, 3, 2), (7, 1)),
    ((1, 2, 1, 6), (3, 4)),
    ((0, 2, 4, 4), (2, 6)),
]


def lanczos_weights(extent, size, align_corners):
    """A row of weights per place.  PyTorch has no lanczos3 without a filter against aliasing."""
    at = np.arange(size, dtype=np.longdouble)
    if align_corners:
        at = at * (extent - 1) / max(size - 1, 1)
    else:
        at = (at + 0.5) * extent / size - 0.5
    near = np.floor(at)[:, None] + np.arange(-2, 4)
    away = at[:, None] - near
    weight = np.where(np.abs(away) < 3, np.sinc(away) * np.sinc(away / 3), 0)
    weight /= weight.sum(axis=1, keepdims=True)
    matrix = np.zeros((size, extent))
    place = np.clip(near, 0, extent - 1).astype(int)
    np.add.at(matrix, (np.arange(size)[:, None], place), weight)
    return torch.from_numpy(matrix)


def resize(x, size, mode, align_corners):
    if x.numel() == 0:
        return torch.zeros(*x.shape[:2], *size)
    if mode == "lanczos3":
        down, right = (lanczos_weights(n, to, align_corners) for n, to in zip(x.shape[2:], size))
        return torch.einsum("yh,nchw,xw->ncyx", down, x, right)
    corners = align_corners if mode in ("bilinear", "bicubic") else None
    return nn.interpolate(x, size=size, mode=MODES[mode], align_corners=corners)


def interpolate_rows(book, dtype):
    for mode in MODES:
        rng = randoms("interpolate", dtype)  # every mode has the same operands
        case = book.case("resample", "interpolate", dtype, in_double(dtype), apart(dtype))
        back = book.case("gradient", "interpolate_backward", dtype, in_double(dtype), apart(dtype))

        def give(name, x, size, align_corners):
            attrs = {"size": size} | ({} if mode == "nearest" else {"mode": mode})
            attrs |= {"align_corners": 1} if align_corners else {}
            inputs = [leaf(x.tensor)]
            result = resize(*inputs, size, mode, align_corners)
            case.give(name, [x], result.detach().numpy(), **attrs)
            grad = back.input(smooth(dtype, tuple(result.shape), rng), flipped(3))
            x = back.input(x.tensor)
            back.give(name, [x, grad], gradients(result, inputs, double(grad.tensor))[0], **attrs)

        for dims, size in SIZES:
            for align_corners in (False, True):
                if align_corners and mode.startswith("nearest"):
                    continue
                give(None, case.input(smooth(dtype, dims, rng)), size, align_corners)
        x = case.input(smooth(dtype, (6, 1, 2, 5), rng), permuted(1, 2, 0, 3), sliced(":, :, ::-2"))
        give("strided", x, (5, 4), False)


BORDERS = {"zeros": "zeros", "edge": "border", "reflection": "reflection"}


def grid_row(book, dtype):
    for mode in ("nearest", "bilinear", "bicubic"):
        rng = randoms("grid_sample", dtype)
        case = book.case("resample", "grid_sample", dtype, in_double(dtype), apart(dtype))

        def give(name, x, grid, border, align_corners):
            attrs = {} if mode == "nearest" else {"mode": mode}
            attrs |= {} if border == "zeros" else {"border": border}
            attrs |= {"align_corners": 1} if align_corners else {}
            items, places = x.tensor.shape[:2], grid.tensor.shape[1:3]
            result = np.zeros((*items, *places))
            if result.size:
                result = nn.grid_sample(
                    double(x.tensor), double(grid.tensor), mode, BORDERS[border], align_corners
                ).numpy()
            case.give(name, [x, grid], result, **attrs)

        x = case.input(smooth(dtype, (2, 2, 4, 5), rng))
        for border in BORDERS:
            for align_corners in (False, True):
                points = rng.uniform(-1.7, 1.7, (2, 3, 4, 2))
                points[0, 0, 3, 1] *= 9
                give(None, x, case.input(Tensor(dtype, points)), border, align_corners)
        grid = case.input(Tensor(dtype, rng.uniform(-1, 1, (2, 2, 3, 1))), permuted(3, 2, 1, 0))
        turned = case.input(smooth(dtype, (4, 1, 3, 2), rng), permuted(1, 3, 0, 2), flipped(2))
        give("strided", turned, grid, "zeros", False)
        single = case.input(smooth(dtype, (1, 1, 1, 1), rng))
        grid = case.input(Tensor(dtype, rng.uniform(-2, 2, (1, 2, 3, 2))))
        for border in BORDERS:
            give(None, single, grid, border, True)
        empty = case.input(smooth(dtype, (0, 2, 4, 5), rng))
        give("empty", empty, case.input(smooth(dtype, (0, 3, 4, 2), rng)), "zeros", False)


def write(book):
    for dtype in FLOATS:
        interpolate_rows(book, dtype)
        grid_row(book, dtype)
