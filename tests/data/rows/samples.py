# SPDX-License-Identifier: Apache-2.0
"""Inputs: the numbers at which things break, and random ones in between."""

import zlib

import numpy as np

from book import FLOATS, FORMATS, NUMPY, Tensor


def randoms(*name):
    """The same numbers in every run, others for every name."""
    return np.random.default_rng(zlib.crc32(" ".join(map(str, name)).encode()))


def edges(dtype):
    """Where a type's arithmetic has corners."""
    if dtype == "bool":
        return np.array([0, 1])
    if dtype in FLOATS:
        precision, low, high = FORMATS[dtype]
        unit = 2.0 ** (1 - precision)
        tiny, least = np.ldexp(1.0, low), np.ldexp(unit, low)
        sizes = [
            np.inf,
            largest(dtype),
            tiny,
            tiny - least,
            least,
            0.0,
            0.5,
            1.0,
            1.5,
            2.5,
            3.0,
            1.0 + unit,
        ]
        return np.array([np.nan] + [sign * size for size in sizes for sign in (1, -1)])
    info = np.iinfo(NUMPY[dtype])
    corners = [
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        0,
        1,
        2,
        3,
        7,
        info.bits - 1,
        info.bits,
    ]
    return np.array(corners + ([-1, -2, -7] if info.min else []), dtype=NUMPY[dtype])


def largest(dtype):
    precision, low, high = FORMATS[dtype]
    return np.ldexp(2.0 - 2.0 ** (1 - precision), high)


def spread(dtype, count, rng, low=-4.0, high=4.0):
    """`count` numbers: floats from low..high, integers by turns from half the range and near 0."""
    if dtype == "bool":
        return rng.integers(0, 2, count)
    if dtype in FLOATS:
        return rng.uniform(low, high, count)
    info = np.iinfo(NUMPY[dtype])
    far = rng.integers(info.min // 2, info.max // 2, count, dtype=NUMPY[dtype])
    near = rng.integers(max(info.min, -9), 10, count, dtype=NUMPY[dtype])
    return np.where(np.arange(count) % 2 == 0, far, near)


def mixed(dtype, shape, rng, low=-4.0, high=4.0, turn=0):
    """Corners first, then random numbers, in `shape`; `turn` moves the corners to other places."""
    corners = edges(dtype)
    count = int(np.prod(shape))
    rest = spread(dtype, max(count - corners.size, 1), rng, low, high)
    return Tensor(dtype, np.roll(np.concatenate([corners, rest])[:count], turn).reshape(shape))


def smooth(dtype, shape, rng, low=-4.0, high=4.0):
    """Random numbers without corners."""
    return Tensor(dtype, spread(dtype, int(np.prod(shape)), rng, low, high).reshape(shape))


def number(tensor):
    """A single element as the text form has it; repr gives back every float64."""
    value = tensor.data.item()
    return {True: "true", False: "false"}[value] if tensor.dtype == "bool" else repr(value)
