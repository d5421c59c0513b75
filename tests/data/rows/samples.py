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
        tiny, largest = np.ldexp(1.0, low), np.ldexp(2.0 - 2.0 ** (1 - precision), high)
        least, below = np.ldexp(1.0, low - precision + 1), tiny - np.ldexp(1.0, low - precision + 1)
        corners = [np.inf, largest, tiny, below, least, 0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 1.0 + 2.0 ** (1 - precision)]
        return np.array([np.nan] + [sign * x for x in corners for sign in (1, -1)])
    info, bits = np.iinfo(NUMPY[dtype]), np.iinfo(NUMPY[dtype]).bits
    corners = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, bits - 1, bits]
    return np.array(corners + ([-1, -2, -7] if info.min else []), dtype=NUMPY[dtype])


def spread(dtype, count, rng, low=-4.0, high=4.0):
    """`count` numbers: floats from low..high, integers from half of the range and near 0 by turns."""
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
