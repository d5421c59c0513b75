# SPDX-License-Identifier: Apache-2.0
"""Rows of the class INDEX.  Beyond the extent a read takes the nearest, a write does nothing."""

import numpy as np

from book import EQUAL, EXACT, FLOATS, REALS, Tensor
from book import flipped, permuted, sliced
from samples import mixed, randoms, smooth

UPDATES = {"assign": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def index_types(dtype):
    """Both once, then by turns."""
    return ["i64", "i32"] if dtype == "f32" else [["i64", "i32"][REALS.index(dtype) % 2]]


def places(kind, rng, shape, extent):
    """Random, some of them twice, some below 0 and some too large."""
    index = rng.integers(0, extent, shape)
    if index.size >= 4:
        index.reshape(-1)[[0, 1, 2, -1]] = -1, extent + 1000, -(2**31), extent
    return Tensor(kind, index)


def coordinates(kind, rng, shape, extents):
    """The last dim holds one coordinate per extent; they leave theirs at different points."""
    columns = [places(kind, rng, shape, extent).data for extent in extents]
    return Tensor(kind, np.stack([np.roll(column, 4 * i) for i, column in enumerate(columns)], -1))


def clipped(index, extent):
    return np.clip(index, 0, extent - 1)


# ---- reading ----


def select_row(book, dtype, kind, rng):
    case = book.case("index", "select", dtype)
    x = mixed(dtype, (4, 5, 6), rng)
    for axis, count in ((0, 7), (1, 4), (-1, 9), (0, 1), (1, 0)):
        index = places(kind, rng, (count,), x.shape[axis])
        case.give(None, [x, index], np.take(x.data, index.data, axis, mode="clip"), axis=axis)
    turned = case.input(x, permuted(2, 0, 1))
    back = case.input(places(kind, rng, (8,), 6), sliced("::-1"))
    case.give(
        "strided",
        [turned, back],
        np.take(turned.tensor.data, back.tensor.data, 0, mode="clip"),
        axis=0,
    )


def gathered(x, index, axis):
    """NumPy wants the other extents to be equal; here index may be smaller."""
    part = x[
        tuple(slice(None) if i == axis % x.ndim else slice(0, n) for i, n in enumerate(index.shape))
    ]
    return np.take_along_axis(part, clipped(index, x.shape[axis]), axis)


def gather_row(book, dtype, kind, rng):
    case = book.case("index", "gather", dtype)
    x = mixed(dtype, (4, 5, 6), rng)
    for axis, shape in (
        (0, (7, 5, 6)),
        (1, (4, 2, 6)),
        (-1, (4, 5, 9)),
        (1, (2, 3, 4)),
        (2, (4, 0, 2)),
    ):
        index = places(kind, rng, shape, x.shape[axis])
        case.give(None, [x, index], gathered(x.data, index.data, axis), axis=axis)
    back = case.input(x, sliced("::-1, ::2"))
    turned = case.input(places(kind, rng, (2, 4, 3), 3), permuted(1, 2, 0))
    case.give("strided", [back, turned], gathered(back.tensor.data, turned.tensor.data, 1), axis=1)


def gather_nd_row(book, dtype, kind, rng):
    case = book.case("index", "gather_nd", dtype)
    x = mixed(dtype, (4, 5, 6), rng)
    for shape, depth in (((3,), 1), ((2, 4), 2), ((13,), 3), ((), 2), ((0,), 2)):
        index = coordinates(kind, rng, shape, x.shape[:depth])
        place = tuple(clipped(index.data[..., i], x.shape[i]) for i in range(depth))
        case.give(None, [x, index], x.data[place])
    turned = case.input(x, permuted(2, 0, 1), flipped(1))
    index = case.input(coordinates(kind, rng, (4, 3), (6, 4)), permuted(1, 0, 2), sliced("::-1"))
    place = tuple(clipped(index.tensor.data[..., i], turned.tensor.shape[i]) for i in range(2))
    case.give("strided", [turned, index], turned.tensor.data[place])


def embedding_row(book, dtype, kind, rng):
    case = book.case("index", "embedding", dtype)
    table = mixed(dtype, (9, 5), rng)
    for shape in ((6,), (2, 3, 4), (), (0,)):
        index = places(kind, rng, shape, 9)
        case.give(None, [table, index], table.data[clipped(index.data, 9)])
    turned, index = case.input(table, permuted(1, 0)), places(kind, rng, (4, 2), 5)
    case.give("strided", [turned, index], table.data.T[clipped(index.data, 5)])


# ---- writing: one after another, in row-major order of values ----


def update(mode, target, place, value):
    target[place] = value if mode == "assign" else UPDATES[mode](target[place], value)


def inside(place, shape):
    return all(0 <= c < n for c, n in zip(place, shape))


def scatter(x, index, values, axis, mode):
    result = x.copy()
    for source in np.ndindex(*values.shape):
        place = list(source)
        place[axis] = int(index[source])
        if inside(place, x.shape):
            update(mode, result, tuple(place), values[source])
    return result


def scatter_nd(x, index, values, mode):
    result = x.copy()
    for source in np.ndindex(*index.shape[:-1]):
        place = tuple(int(c) for c in index[source])
        if inside(place, x.shape):
            update(mode, result, place, values[source])
    return result


def select_assign(x, index, values, axis, mode):
    result, parts = np.moveaxis(x.copy(), axis, 0), np.moveaxis(values, axis, 0)
    for place, value in zip(index, parts):
        if inside((place,), result.shape):
            update(mode, result, int(place), value)
    return np.moveaxis(result, 0, axis)


def modes(dtype):
    """Truth values have nothing to add."""
    return ["assign"] if dtype == "bool" else list(UPDATES)


def tolerance(dtype):
    return EQUAL if dtype in FLOATS else EXACT


def scatter_row(book, dtype, kind, rng):
    case = book.case("index", "scatter", dtype, tolerance(dtype))
    x = smooth(dtype, (4, 5, 3), rng)
    for mode in modes(dtype):
        for axis, shape in ((0, (6, 5, 3)), (1, (4, 3, 2)), (-1, (4, 5, 7)), (1, (4, 0, 3))):
            index, values = places(kind, rng, shape, x.shape[axis]), smooth(dtype, shape, rng)
            result = scatter(x.wide(), index.data, values.wide(), axis, mode)
            case.give(None, [x, index, values], result, axis=axis, update=mode)
    turned = case.input(smooth(dtype, (5, 4), rng), permuted(1, 0))
    index = case.input(places(kind, rng, (3, 9), 4), sliced("::-1, ::2"))
    values = case.input(smooth(dtype, (5, 3), rng), permuted(1, 0))
    result = scatter(turned.tensor.wide(), index.tensor.data, values.tensor.wide(), 0, "assign")
    case.give("strided", [turned, index, values], result, axis=0)


def scatter_nd_row(book, dtype, kind, rng):
    case = book.case("index", "scatter_nd", dtype, tolerance(dtype))
    x = smooth(dtype, (4, 5, 3), rng)
    for mode in modes(dtype):
        for shape, depth in (((6,), 1), ((3, 4), 2), ((13,), 3)):
            index = coordinates(kind, rng, shape, x.shape[:depth])
            values = smooth(dtype, shape + x.shape[depth:], rng)
            result = scatter_nd(x.wide(), index.data, values.wide(), mode)
            case.give(None, [x, index, values], result, update=mode)
    turned = case.input(x, permuted(2, 0, 1), flipped(1))
    index = case.input(coordinates(kind, rng, (5, 2), (3, 4)), permuted(1, 0, 2), sliced("::-1"))
    values = case.input(smooth(dtype, (5, 5, 2), rng), permuted(2, 1, 0), flipped(2))
    operands = [turned.tensor.wide(), index.tensor.data, values.tensor.wide()]
    case.give("strided", [turned, index, values], scatter_nd(*operands, "assign"))


def select_assign_row(book, dtype, kind, rng):
    case = book.case("index", "select_assign", dtype, tolerance(dtype))
    x = smooth(dtype, (4, 5, 3), rng)
    for mode in modes(dtype):
        for axis, count in ((0, 6), (1, 4), (-1, 5), (0, 0)):
            index = places(kind, rng, (count,), x.shape[axis])
            shape = [count if i == axis % 3 else n for i, n in enumerate(x.shape)]
            values = smooth(dtype, shape, rng)
            result = select_assign(x.wide(), index.data, values.wide(), axis, mode)
            case.give(None, [x, index, values], result, axis=axis, update=mode)
    turned = case.input(x, permuted(2, 0, 1), flipped(1))
    index = case.input(places(kind, rng, (9,), 4), sliced("::-2"))
    values = case.input(smooth(dtype, (5, 3, 5), rng), permuted(1, 0, 2), flipped(0))
    operands = [turned.tensor.wide(), index.tensor.data, values.tensor.wide()]
    case.give("strided", [turned, index, values], select_assign(*operands, 1, "assign"), axis=1)


SLICES = [
    ((4, 5, 3), "1:3, ::2"),
    ((4, 5, 3), "::-1, 4:0:-2, -2:"),
    ((7,), "5:1:-1"),
    ((4, 5), ":, 2:2"),
    ((4, 5), "-9:9, 1:99:3"),
]


def slice_assign_row(book, dtype):
    rng = randoms("slice_assign", dtype)
    case = book.case("index", "slice_assign", dtype)

    def give(name, x, values, text):
        result = x.tensor.data.copy()
        sliced(text)[1](result)[...] = values.tensor.data
        case.give(name, [x, values], result, slices="[%s]" % text)

    for shape, text in SLICES:
        x = case.input(mixed(dtype, shape, rng))
        values = smooth(dtype, sliced(text)[1](x.tensor.data).shape, rng)
        give(None, x, case.input(values), text)
    turned = case.input(mixed(dtype, (5, 4), rng), permuted(1, 0))
    give("strided", turned, case.input(smooth(dtype, (2, 5), rng), flipped(1)), "1:3")


def write(book):
    rows = [select_row, gather_row, gather_nd_row, embedding_row]
    rows += [scatter_row, scatter_nd_row, select_assign_row]
    for dtype in REALS:
        for kind in index_types(dtype):
            for row in rows:
                row(book, dtype, kind, randoms(row.__name__, dtype, kind))
        slice_assign_row(book, dtype)
