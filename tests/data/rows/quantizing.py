# SPDX-License-Identifier: Apache-2.0
"""quantize and dequantize, one after the other: packed tensors stay on their device."""

import numpy as np
import torch

from book import FLOATS, Tensor, round_float
from book import flipped, permuted, sliced
from samples import edges, randoms, smooth

INTEGERS = {"q8": 8, "q4": 4, "q2": 2}


def finite_values(kind):
    """Of one sign, by their bits; PyTorch knows the types of 8 bits."""
    if kind == "f4e2m1":
        return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    torch_type = {
        "f8e4m3": torch.float8_e4m3fn,
        "f8e5m2": torch.float8_e5m2,
        "f8e4m3fnuz": torch.float8_e4m3fnuz,
        "f8e5m2fnuz": torch.float8_e5m2fnuz,
        "f8e8m0": torch.float8_e8m0fnu,
    }[kind]
    count = 256 if kind == "f8e8m0" else 128
    values = torch.arange(count, dtype=torch.uint8).view(torch_type).double().numpy()
    return values[np.isfinite(values)]


def nearest(values, x):
    """The nearest of rising values, of two the one with even bits; the last from there on."""
    bits = np.clip(np.searchsorted(values, x), 1, values.size - 1)
    below, above = x - values[bits - 1], values[bits] - x
    down = (below < above) | ((below == above) & (bits % 2 == 1))
    return values[np.where(down, bits - 1, bits)]


def stored(kind, symmetric, x):
    """The value that comes back for each x."""
    if kind in INTEGERS:
        high = 2 ** (INTEGERS[kind] - 1) - 1
        values = np.clip(np.rint(x), -high - (not symmetric), high)
        return np.where(np.isnan(x), 0, values + 0.0)  # an integer 0 has no sign
    finite = np.where(np.isnan(x), 0, np.minimum(np.abs(x), 1e300))
    none = 0 if kind == "f4e2m1" else np.nan
    if kind == "f8e8m0":  # without a sign
        return np.where(np.isnan(x), none, nearest(finite_values(kind), np.where(x > 0, finite, 0)))
    values = np.copysign(nearest(finite_values(kind), finite), x)
    return np.where(np.isnan(x), none, values + 0.0 if kind.endswith("fnuz") else values)


def scale_in(kind, scale):
    scale = np.asarray(scale, np.float64)
    if kind in ("f32", "f16", "bf16"):
        return round_float(kind, scale).astype(np.float64)
    if kind == "ue8m0":
        return 2.0 ** np.clip(np.ceil(np.log2(scale)), -127, 127)
    if kind == "ue4m3":
        return nearest(finite_values("f8e4m3"), np.maximum(scale, 0))
    return scale


def spread_out(scale, block, dims):
    """One scale per element."""
    for axis, extent in enumerate(block):
        scale = scale.repeat(extent, axis).take(range(dims[axis]), axis)
    return scale


def give(case, name, x, scales, factor, kind, symmetric=0, block=(), scale=None, factor_in=None):
    """`x`, `scales` and `factor`, the scale over all blocks, are operands."""
    shared = {"block": block} if block else {}
    shared |= {"scale": scale} if scale else {}
    shared |= {"global": factor_in} if factor_in else {}
    first = {"dtype": kind} | shared | ({"symmetric": 1} if symmetric else {})
    operands = [scales, factor] if factor else [scales]
    width = scale_in(scale, scales.tensor.wide())
    width = spread_out(width, block, x.tensor.shape)
    if factor:
        width = scale_in(factor_in, factor.tensor.wide()) * width
    packed = case.step("quantize", [x, *operands], **first)
    result = stored(kind, symmetric, x.tensor.wide() / width) * width
    case.give(name, [packed, *operands], result, row="dequantize", **shared)


KINDS = [*INTEGERS, "f8e4m3", "f8e5m2", "f4e2m1", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0"]


def quantize_row(book, dtype):
    """Rounding and clipping."""
    rng = randoms("quantize", dtype)
    case = book.case("quantize", "quantize", dtype)
    corners = case.input(Tensor(dtype, edges(dtype)))
    halves = np.concatenate([np.arange(-18, 19) / 2, np.arange(-68, 69, 17) * 8.0, [464, 5e4, 7e4]])
    halves = case.input(Tensor(dtype, halves))
    one = case.input(Tensor(dtype, np.ones(())))
    for kind in KINDS:
        for symmetric in (0, 1) if kind in INTEGERS else (0,):
            for x in (corners, halves):
                give(case, None, x, one, None, kind, symmetric)
        small = smooth(dtype, (5, 7), rng, -0.4, 0.4)
        scale = case.input(Tensor(dtype, np.array(0.037)))
        give(case, None, case.input(small), scale, None, kind)
        give(case, None, case.input(smooth(dtype, (0, 3), rng)), scale, None, kind)


# Dims, block, type of the scales, type of the scale over all.
SCHEMES = [
    ((4, 6), (1, 3), "f32", None),
    ((5, 7), (2, 4), "f16", None),
    ((3, 4, 5), (1, 2, 5), "bf16", "f32"),
    ((2, 33), (1, 32), "ue8m0", None),
    ((3, 16), (3, 16), "ue4m3", "f32"),
    ((9,), (4,), None, "f16"),
    ((2, 3), (), "ue4m3", "bf16"),
    ((0, 4), (1, 2), "f32", None),
    ((), (), "ue8m0", "ue8m0"),
]


def dequantize_row(book, dtype):
    """Scales."""
    rng = randoms("dequantize", dtype)
    case = book.case("quantize", "dequantize", dtype)

    def blocks(dims, block):
        return tuple(-(-n // extent) for n, extent in zip(dims, block))

    for turn, (dims, block, scale, factor_in) in enumerate(SCHEMES):
        for kind in (KINDS[turn % 6], KINDS[(turn + 3) % 6]):
            x = case.input(smooth(dtype, dims, rng))
            scales = case.input(smooth(dtype, blocks(dims, block), rng, 0.01, 2))
            factor = case.input(smooth(dtype, (), rng, 0.3, 3)) if factor_in else None
            give(case, None, x, scales, factor, kind, turn % 2, block, scale, factor_in)
    x = case.input(smooth(dtype, (5, 3, 4), rng), permuted(2, 0, 1), flipped(1))
    scales = case.input(smooth(dtype, (4, 3, 5), rng, 0.1, 1), sliced("::2, ::-1, ::2"))
    give(case, "strided", x, scales, None, "q8", 0, (2, 2, 1), "f32")


def write(book):
    for dtype in FLOATS:
        quantize_row(book, dtype)
        dequantize_row(book, dtype)
