# SPDX-License-Identifier: Apache-2.0
"""Rows of the classes INIT and RANDOM."""
import numpy as np

from book import EXACT, FLOATS, INTS, NUMBERS, NUMPY, REALS, Tensor, Tolerance, epsilon
from samples import edges, mixed, randoms

SHAPES = {"rank0": (), "ones": (1, 1), "plain": (7,), "cube": (3, 5, 7), "empty": (0, 3)}


def dims_text(shape):
    return "dims=[%s]" % ", ".join(map(str, shape))


def number(value, dtype):
    return {0: "false", 1: "true"}[int(value)] if dtype == "bool" else repr(value.item())


def init_rows(book):
    for dtype in REALS:
        case = book.case("create", "full", dtype, EXACT)
        for value in Tensor(dtype, edges(dtype)).data:
            case.output(case.fresh("value"), "full %s, dtype=%s, dims=[3]" % (number(value, dtype), dtype),
                        Tensor(dtype, np.full(3, value)))
        for name, shape in SHAPES.items():
            case.output(name, "full 1, dtype=%s, %s" % (dtype, dims_text(shape)), Tensor(dtype, np.full(shape, 1)))
        for row, make in (("zeros", np.zeros), ("ones", np.ones)):
            case = book.case("create", row, dtype, EXACT)
            for name, shape in SHAPES.items():
                case.output(name, "%s dtype=%s, %s" % (row, dtype, dims_text(shape)), Tensor(dtype, make(shape)))
        case = book.case("create", "eye", dtype, EXACT)
        for shape in ((4, 4), (3, 5), (5, 3), (2, 3, 3), (1, 1), (0, 3)):
            result = np.broadcast_to(np.eye(*shape[-2:]), shape)
            case.output(case.fresh("eye"), "eye dtype=%s, %s" % (dtype, dims_text(shape)), Tensor(dtype, result))
        empty_row(book, dtype)
    arange_row(book)


def empty_row(book, dtype):
    """Has any contents, so the case overwrites them."""
    case = book.case("create", "empty", dtype, EXACT)
    for name, shape in (("plain", (7,)), ("cube", (3, 5, 7)), ("ones", (1, 1))):
        values = mixed(dtype, shape, randoms("empty", dtype))
        operand, room = case.input(values), case.fresh("room")
        case.program.append("  %s = empty dtype=%s, %s" % (room, dtype, dims_text(shape)))
        case.output(name, "slice_assign %s, %s, slices=[::1]" % (room, operand), values)


def arange_row(book):
    starts = {"f": ((0, 1, 9), (-1.5, 0.25, 33), (1e-3, 1e-4, 5), (1.0, -3.0, 0)),
              "i": ((0, 1, 9), (-100, 7, 40), (5, -3, 12), (1, 1, 0)),
              "u": ((0, 1, 9), (200, 7, 40), (5, 3, 12), (1, 1, 0))}
    for dtype in NUMBERS:
        case = book.case("create", "arange", dtype, EXACT)
        kind = "f" if dtype in FLOATS else dtype[0]
        for start, step, count in starts[kind]:
            first, by = (float(start), float(step)) if kind == "f" else (start, step)
            wide = first + np.arange(count) * by
            if kind != "f":
                wide = wide.astype(np.int64)
            case.output(case.fresh("range"), "arange %r, %r, dtype=%s, dims=[%d]" % (first, by, dtype, count), Tensor(dtype, wide))


# ---- Philox4x32-10, from the paper: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" ----

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)


def philox(counter, key):
    """Blocks of 4 words for an array [.., 4] of counters."""
    c = [counter[..., i].astype(np.uint64) for i in range(4)]
    low, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    for turn in range(10):
        keys = [np.uint64((key[i] + turn * WEYL[i]) & 0xFFFFFFFF) for i in range(2)]
        first, second = c[0] * np.uint64(MULTIPLIERS[0]), c[2] * np.uint64(MULTIPLIERS[1])
        c = [(second >> low) ^ c[1] ^ keys[0], second & mask, (first >> low) ^ c[3] ^ keys[1], first & mask]
    return np.stack(c, -1).astype(np.uint32)


# The published answers: kat_vectors of the authors' Random123, philox4x32 with 10 rounds.
KNOWN = [((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
         ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
         ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
          (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))]


def check_known_answers():
    for counter, key, answer in KNOWN:
        assert tuple(philox(np.array(counter), key)) == answer, "philox differs from its known answers"


def words32(seed, op, count):
    """Word i % 4 of block i / 4; the op's number in its stream is counter word 2, the stream's own is 0."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = np.stack([blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32), np.full_like(blocks, op), np.zeros_like(blocks)], -1)
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:count]


def words64(seed, op, count):
    pairs = words32(seed, op, 2 * count).reshape(-1, 2).astype(np.uint64)
    return pairs[:, 0] | pairs[:, 1] << np.uint64(32)


def uniforms(dtype, seed, op, count):
    if dtype == "f64":
        return (words64(seed, op, count) >> np.uint64(11)) * 2.0 ** -53
    return (words32(seed, op, count) >> np.uint32(8)) * 2.0 ** -24


def bound(value, dtype):
    """A scalar of the op: one of its type, used as the type it computes in."""
    return Tensor(dtype, np.float64(value)).data[()]


def normals(dtype, seed, op, count):
    """Pairs; the last of an odd count is the first of a whole pair."""
    pairs = uniforms(dtype, seed, op, count + count % 2).reshape(-1, 2).astype(np.longdouble)
    radius, angle = np.sqrt(-2 * np.log1p(-pairs[:, 0])), 2 * np.longdouble(np.pi) * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)[:count]


SEEDS = [0, 1, 0x299F31D0A4093822, 2 ** 64 - 1]
DRAWS = {"plain": (13,), "second": (3, 5, 7), "one": (), "none": (0, 2), "later": (4, 2)}


def random_case(book, row, dtype, seed, tight, loose, call, values):
    """The ops of one stream after a seed: each has the next number."""
    case = book.case("random", row, dtype, tight, loose, seed)
    for op, (name, shape) in enumerate(DRAWS.items()):
        count = int(np.prod(shape))
        case.output(name, "%s %sdtype=%s, %s" % (row, call, dtype, dims_text(shape)),
                    Tensor(dtype, values(seed, op, count).reshape(shape)))


def random_rows(book):
    check_known_answers()
    for seed in SEEDS:
        random_case(book, "random_raw", "u32", seed, EXACT, None, "", words32)
        random_case(book, "random_raw", "u64", seed, EXACT, None, "", words64)
    for dtype in FLOATS:
        random_case(book, "random_uniform", dtype, 7, EXACT, None, "0.0, 1.0, ",
                    lambda *draw: uniforms(dtype, *draw))
        work = np.float64 if dtype == "f64" else np.float32
        random_case(book, "random_uniform", dtype, 8, EXACT, None, "-2.0, 3.1, ",
                    lambda *draw: uniforms(dtype, *draw).astype(work) * (bound(3.1, dtype) - work(-2)) + work(-2))
        tight = Tolerance(2, 16 * epsilon("f64" if dtype == "f64" else "f32"))
        loose = Tolerance(4, 16 * epsilon(dtype))
        random_case(book, "random_normal", dtype, 9, tight, loose, "0.0, 1.0, ", lambda *draw: normals(dtype, *draw))
        random_case(book, "random_normal", dtype, 10, tight, loose, "-1.0, 0.5, ", lambda *draw: normals(dtype, *draw) / 2 - 1)
    for dtype in REALS:
        for p in (0.25, 0.0, 1.0):
            random_case(book, "random_bernoulli", dtype, 11, EXACT, None, "%r, " % p,
                        lambda *draw: uniforms("f32", *draw) < p)
    for dtype in INTS:
        info = np.iinfo(NUMPY[dtype])
        for low, high in ((0, 10), (int(info.min) // 2, int(info.max) // 2)):
            random_case(book, "random_int", dtype, 12, EXACT, None, "%d, %d, " % (low, high),
                        lambda *draw: (words64(*draw) % np.uint64(high - low)).astype(NUMPY[dtype]) + NUMPY[dtype](low))


def write(book):
    init_rows(book)
    random_rows(book)
