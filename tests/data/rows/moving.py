# SPDX-License-Identifier: Apache-2.0
"""Rows that move or convert elements: VIEW, COPY, CAST, JOIN."""

import numpy as np

from book import FLOATS, INTS, NUMPY, REALS, Tensor
from book import expanded, flipped, permuted, sliced
from samples import edges, mixed, number, randoms, spread

CUBE = (3, 5, 7)


def windows(a, axis, size, step):
    view = np.moveaxis(np.lib.stride_tricks.sliding_window_view(a, size, axis), axis, 0)
    return np.moveaxis(view[::step], 0, axis)


def reshaped(*dims):
    return "reshape {}, dims=%s" % list(dims), lambda a: a.reshape(dims)


def unfolded(axis, size, step):
    text = "unfold {}, axis=%d, size=%d, step=%d" % (axis, size, step)
    return text, lambda a: windows(a, axis, size, step)


# By row: shape of the operand, and a view of it.
VIEWS = {
    "reshape": [
        (CUBE, reshaped(5, 21)),
        (CUBE, reshaped(3, -1)),
        (CUBE, reshaped(105)),
        ((1, 1), reshaped()),
        ((), reshaped(1, 1)),
        ((0, 3), reshaped(2, 0)),
    ],
    "permute": [(CUBE, permuted(2, 0, 1)), (CUBE, permuted(-1, -2, -3)), ((0, 3), permuted(1, 0))],
    "expand": [
        ((3, 1, 7), ("expand {}, dims=[3, 4, -1]", lambda a: np.broadcast_to(a, (3, 4, 7)))),
        ((5,), expanded(2, 3, 5)),
        ((), expanded(2, 3)),
        ((1,), expanded(0)),
    ],
    "slice": [
        (CUBE, sliced("1:3, ::2, -3:")),
        (CUBE, sliced("::-1, 4:0:-2, -2:-7:-2")),
        (CUBE, sliced("-9:9, 3:3, 2:100:3")),
        (CUBE, sliced(":, 9:0:-1")),
    ],
    "flip": [(CUBE, flipped(0, -1)), (CUBE, ("flip {}", np.flip))],
    "unfold": [(CUBE, unfolded(2, 3, 2)), (CUBE, unfolded(0, 3, 1))],
    "transpose": [(CUBE, ("transpose {}, axis=0, with=-1", lambda a: a.swapaxes(0, -1)))],
    "squeeze": [
        ((1, 5, 1, 7), ("squeeze {}", np.squeeze)),
        ((1, 5, 1, 7), ("squeeze {}, axes=[2]", lambda a: a.squeeze(2))),
    ],
    "unsqueeze": [
        (CUBE, ("unsqueeze {}, axis=1", lambda a: np.expand_dims(a, 1))),
        (CUBE, ("unsqueeze {}, axis=-1", lambda a: np.expand_dims(a, -1))),
    ],
}

# Views of views, some of which no strides can express.
CHAINS = {
    "reshaped_turned": [permuted(1, 0, 2), reshaped(7, 15), sliced("::-2, 1:")],
    "reshaped_stretched": [sliced(":, 2:3"), expanded(3, 2, 7), reshaped(42)],
    "window_of_flipped": [flipped(1), unfolded(1, 2, 3), permuted(3, 1, 2, 0)],
}


def view_rows(book):
    for row, views in VIEWS.items():
        for dtype in REALS:
            case = book.case("view", row, dtype)
            for shape, (text, move) in views:
                operand = case.input(mixed(dtype, shape, randoms(row, dtype)))
                name = case.fresh("y")
                case.program.append("  output %s = %s" % (name, text.format(operand.name)))
                case.result(name, operand.tensor.moved(move))


def copy_row(book):
    for dtype in REALS:
        case = book.case("view", "copy", dtype)
        tensor = mixed(dtype, CUBE, randoms("copy", dtype))
        case.give("dense", [tensor], tensor)
        for name, views in CHAINS.items():
            value = case.input(tensor, *views)
            case.give(name, [value], value.tensor)
        for name, shape in (
            ("rank0", ()),
            ("ones", (1, 1)),
            ("empty", (2, 0)),
            ("larger", (37, 29)),
        ):
            tensor = mixed(dtype, shape, randoms("copy", dtype, name))
            case.give(name, [tensor], tensor)


# ---- casts ----


def convert(tensor, to):
    """Floats to integers truncate, saturate, take NaN as 0; the rest is NumPy's own conversion."""
    if to == "bool":
        return Tensor(to, tensor.data != 0)
    if to in INTS and tensor.dtype in FLOATS:
        info, wide = np.iinfo(NUMPY[to]), np.trunc(tensor.wide(np.longdouble))
        return Tensor(to, np.clip(np.where(np.isnan(wide), 0, wide), info.min, info.max))
    return Tensor(to, tensor.data)


def borders():
    """Around the ranges of the integer types."""
    powers = 2.0 ** np.array([7, 8, 15, 16, 31, 32, 63, 64])
    return np.concatenate(
        [powers, -powers, powers - 0.5, -powers - 0.5, powers * (1 + 2.0**-7), [-0.9, 0.99]]
    )


def ties():
    """Halfway between neighbours of a narrower float, a little off, and around the largest."""
    around = np.array([1.0, 3.0, 1000.0, 2.0**-14, 2.0**-126, 65504.0])
    steps = np.array(
        [2.0**-11, 3 * 2.0**-11, 2.0**-11 + 2.0**-40, 2.0**-8, 3 * 2.0**-8, 2.0**-24, 3 * 2.0**-24]
    )
    return np.append(
        np.multiply.outer(around, 1 + steps), [65519.99, 65520.0, 3.3961e38, 3.40282356779733e38]
    )


def halfway(dtype):
    """Integers between two floats: halfway, or so near that float64 does not see the side."""
    powers = 2 ** np.arange(24, 31 if dtype.endswith("32") else 63, dtype=np.int64)
    return np.concatenate(
        [np.add.outer(powers + powers // 2**bits, [0, 1, -1]) for bits in (8, 24, 53)]
    )


def cast_row(book):
    for dtype in REALS:
        rng = randoms("cast", dtype)
        case = book.case("cast", "cast", dtype)

        def give(name, operand, targets):
            for to in targets:
                tensor = operand if isinstance(operand, Tensor) else operand.tensor
                case.give("%s_%s" % (name, to), [operand], convert(tensor, to), dtype=to)

        tensor = Tensor(dtype, np.concatenate([edges(dtype), spread(dtype, 30, rng, -300, 300)]))
        give("to", tensor, REALS)
        if dtype in FLOATS:
            give("border", Tensor(dtype, borders()), INTS)
            give("tie", Tensor(dtype, ties()), FLOATS)
        elif dtype in ("i64", "u64", "i32", "u32"):
            give("tie", Tensor(dtype, halfway(dtype)), FLOATS)
        give(
            "turned",
            case.input(mixed(dtype, (4, 6), rng), permuted(1, 0), sliced("::-2")),
            ("f64", "i32"),
        )
        give("rank0", mixed(dtype, (), rng), ("f32", "u8"))
        give("empty", mixed(dtype, (0, 2), rng), ("f32", "u8"))


# ---- joins ----

CATS = [
    (0, [(2, 3), (1, 3), (4, 3)]),
    (1, [(3, 2), (3, 0), (3, 5)]),
    (-1, [(2, 3, 1), (2, 3, 1)]),
    (0, [(5,)]),
    (0, [(1, 2)] * 7),
]
STACKS = [(0, (2, 3), 3), (1, (2, 3), 2), (-1, (2, 3), 2), (0, (), 4), (0, (0,), 2)]
REPEATS = [(0, (2, 3), 3), (1, (2, 3), 2), (-1, (2, 1, 3), 1), (0, (2, 3), 0), (0, (0, 3), 2)]
# Shape, low, high, inner.
PADS = [
    ((3, 5), (1, 0), (0, 2), (0, 0)),
    ((3, 5), (-1, 2), (1, -3), (0, 0)),
    ((3, 5), (0, 1), (1, 0), (2, 1)),
    ((3, 5), (-2, 0), (-1, -2), (1, 1)),
    ((4,), (2,), (3,), (0,)),
    ((0, 2), (1, 1), (2, 0), (0, 0)),
    ((2, 1, 3), (0, 1, 0), (0, 1, 0), (0, 0, 0)),
]


def pad(a, value, low, high, inner):
    """Room between the elements first, then before and after; less than 0 crops."""
    spaced = np.full([max(n + (n - 1) * gap, 0) for n, gap in zip(a.shape, inner)], value, a.dtype)
    spaced[tuple(slice(None, None, gap + 1) for gap in inner)] = a
    room = [(max(before, 0), max(after, 0)) for before, after in zip(low, high)]
    grown = np.pad(spaced, room, constant_values=value)
    kept = [
        slice(max(-before, 0), n - max(-after, 0))
        for before, after, n in zip(low, high, grown.shape)
    ]
    return grown[tuple(kept)]


def join_rows(book):
    for dtype in REALS:
        rng = randoms("join", dtype)

        def operand(shape):
            return mixed(dtype, shape, rng, turn=int(rng.integers(0, 20)))

        case = book.case("join", "cat", dtype)
        for axis, shapes in CATS:
            parts = [operand(shape) for shape in shapes]
            case.give(None, parts, np.concatenate([one.data for one in parts], axis), axis=axis)
        turned, back = case.input(operand((3, 5)), permuted(1, 0)), case.input(
            operand((4, 3)), sliced("::-1")
        )
        for name, parts, axis in (("strided", [turned, back], 0), ("twice", [turned, turned], 1)):
            case.give(
                name, parts, np.concatenate([one.tensor.data for one in parts], axis), axis=axis
            )

        case = book.case("join", "stack", dtype)
        for axis, shape, count in STACKS:
            parts = [operand(shape) for _ in range(count)]
            case.give(None, parts, np.stack([one.data for one in parts], axis), axis=axis)

        case = book.case("join", "repeat", dtype)
        for axis, shape, times in REPEATS:
            one = operand(shape)
            counts = [times if i == axis % len(shape) else 1 for i in range(len(shape))]
            case.give(None, [one], np.tile(one.data, counts), axis=axis, times=times)

        case = book.case("join", "pad", dtype)
        for i, (shape, low, high, inner) in enumerate(PADS):
            one, value = operand(shape), mixed(dtype, (30,), rng).moved(lambda a: a[i])
            between = {"inner": inner} if any(inner) else {}
            result = pad(one.data, value.data, low, high, inner)
            case.give(None, [one, number(value)], result, low=low, high=high, **between)
        back = case.input(operand((4, 6)), sliced("::-1, ::2"))
        result = pad(back.tensor.data, 1, (1, 1), (0, 1), (0, 0))
        case.give("strided", [back, "1"], result, low=(1, 1), high=(0, 1))


def write(book):
    view_rows(book)
    copy_row(book)
    cast_row(book)
    join_rows(book)
