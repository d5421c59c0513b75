# SPDX-License-Identifier: Apache-2.0
"""Rows of the class RANDOM, from a Philox4x32-10 written after its paper: Salmon, Moraes, Dror,
Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011."""

import numpy as np

from book import EXACT, FLOATS, INTS, NUMPY, REALS, Tolerance, epsilon

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
WORD = 0xFFFFFFFF


def philox(counter, key):
    """A block of 4 words for every counter of an array [.., 4]."""
    c = [counter[..., i].astype(np.uint64) for i in range(4)]
    for turn in range(10):
        keys = [np.uint64((key[i] + turn * WEYL[i]) & WORD) for i in range(2)]
        products = [c[2 * i] * np.uint64(MULTIPLIERS[i]) for i in range(2)]
        high, low = [p >> np.uint64(32) for p in products], [p & np.uint64(WORD) for p in products]
        c = [high[1] ^ c[1] ^ keys[0], low[1], high[0] ^ c[3] ^ keys[1], low[0]]
    return np.stack(c, -1).astype(np.uint32)


# The published answers, kat_vectors of the authors' Random123: counter, key, block.
KNOWN = [
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD,) * 4, (WORD,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def check_known_answers():
    for counter, key, block in KNOWN:
        assert tuple(philox(np.array(counter), key)) == block, "philox misses a known answer"


def words32(seed, op, count):
    """Counter: the block's number in two words, the op's in its stream, the stream's (0)."""
    counter = np.zeros(((count + 3) // 4, 4), np.uint64)
    counter[:, 0] = np.arange(len(counter))
    counter[:, 2] = op
    return philox(counter, (seed & WORD, seed >> 32)).reshape(-1)[:count]


def words64(seed, op, count):
    pairs = words32(seed, op, 2 * count).reshape(-1, 2).astype(np.uint64)
    return pairs[:, 0] | pairs[:, 1] << np.uint64(32)


def units(dtype, seed, op, count):
    """From 0 to 1, as float64."""
    if dtype == "f64":
        return (words64(seed, op, count) >> np.uint64(11)) * 2.0**-53
    return (words32(seed, op, count) >> np.uint32(8)) * 2.0**-24


def uniforms(dtype, low, high):
    """Every step rounded to f32, for f64 to f64."""
    work = np.float64 if dtype == "f64" else np.float32
    low, width = work(low), work(high) - work(low)
    return lambda *draw: low + units(dtype, *draw).astype(work) * width


def normals(dtype, mean, deviation):
    """Box-Muller on pairs; the last of an odd count comes from a whole pair."""

    def draw(seed, op, count):
        pairs = units(dtype, seed, op, count + count % 2).reshape(-1, 2).astype(np.longdouble)
        radius, angle = (
            np.sqrt(-2 * np.log1p(-pairs[:, 0])),
            2 * np.arccos(np.longdouble(-1)) * pairs[:, 1],
        )
        both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)
        return mean + deviation * both.reshape(-1)[:count]

    return draw


def below(p):
    return lambda *draw: units("f32", *draw) < np.float32(p)


def integers(dtype, low, high):
    return lambda *draw: (words64(*draw) % np.uint64(high - low)).astype(NUMPY[dtype]) + NUMPY[
        dtype
    ](low)


SEEDS = [0, 1, 0x299F31D0A4093822, 2**64 - 1]
DRAWS = {"plain": (13,), "second": (3, 5, 7), "one": (), "nothing": (0, 2), "later": (4, 2)}


def random_case(book, row, dtype, seed, function, numbers=(), tight=EXACT, loose=None):
    """The ops of one stream after a seed: each has the next number."""
    case = book.case("random", row, dtype, tight, loose, seed)
    for op, (name, shape) in enumerate(DRAWS.items()):
        result = function(seed, op, int(np.prod(shape))).reshape(shape)
        case.give(name, [repr(value) for value in numbers], result, dtype=dtype, dims=shape)


def float_rows(book, dtype):
    for bounds in ((0.0, 1.0), (-2.0, 3.1)):
        random_case(book, "random_uniform", dtype, 7, uniforms(dtype, *bounds), bounds)
    tight = Tolerance(2, 16 * epsilon("f64" if dtype == "f64" else "f32"))
    loose = Tolerance(2, 16 * epsilon(dtype))
    for shape in ((0.0, 1.0), (-1.0, 0.5)):
        random_case(book, "random_normal", dtype, 9, normals(dtype, *shape), shape, tight, loose)


def write(book):
    check_known_answers()
    for seed in SEEDS:
        random_case(book, "random_raw", "u32", seed, words32)
        random_case(book, "random_raw", "u64", seed, words64)
    for dtype in FLOATS:
        float_rows(book, dtype)
    for dtype in REALS:
        for p in (0.25, 0.0, 1.0):
            random_case(book, "random_bernoulli", dtype, 11, below(p), (p,))
    for dtype in INTS:
        info = np.iinfo(NUMPY[dtype])
        for bounds in ((0, 10), (int(info.min) // 2, int(info.max) // 2)):
            random_case(book, "random_int", dtype, 12, integers(dtype, *bounds), bounds)
