# SPDX-License-Identifier: Apache-2.0
"""Rows of the class INDEX.  Beyond the extent a read takes the nearest element and a write does nothing."""
import numpy as np

from book import EQUAL, EXACT, FLOATS, REALS, Tensor
from samples import mixed, randoms, spread

UPDATES = {"assign": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def kinds(dtype):
    """Both index types once, then by turns."""
    return ["i64", "i32"] if dtype == "f32" else [["i64", "i32"][REALS.index(dtype) % 2]]


def indices(rng, shape, extent, beyond=True):
    """Random, some of them twice, some below 0 and some too large."""
    index = rng.integers(0, extent, shape)
    if beyond and index.size >= 4:
        flat = index.reshape(-1)
        flat[0], flat[-1], flat[1], flat[2] = -1, extent, extent + 1000, -(2 ** 31)
    return index


def update(function, target, place, value):
    """One element or slice of `target`; None: replaced."""
    target[place] = value if function is None else function(target[place], value)


def inside(coordinates, shape):
    return all(0 <= c < n for c, n in zip(coordinates, shape))


def updates_of(dtype):
    """Truth values have nothing to add."""
    return ["assign"] if dtype == "bool" else list(UPDATES)


def values_for(dtype, shape, rng):
    return Tensor(dtype, spread(dtype, int(np.prod(shape)), rng, -2, 2).reshape(shape))


def clipped(index, extent):
    return np.clip(index, 0, extent - 1)


def read_rows(book):
    for dtype in REALS:
        for kind in kinds(dtype):
            rng = randoms("read", dtype, kind)
            x = mixed(dtype, (4, 5, 6), rng)
            turned_view = ("permute {}, order=[2, 0, 1]", lambda a: a.transpose(2, 0, 1))
            back_view = ("slice {}, slices=[::-1, ::2]", lambda a: a[::-1, ::2])

            case = book.case("index", "select", dtype, EXACT)
            operand = case.input(x)
            for axis, count in ((0, 7), (1, 4), (-1, 9), (0, 1), (1, 0)):
                index = indices(rng, (count,), x.shape[axis])
                taken = np.take(x.data, index, axis=axis, mode="clip")
                case.output(case.fresh("select"), "select %s, %s, axis=%d" % (operand, case.input(Tensor(kind, index)), axis),
                            Tensor(dtype, taken))
            turned, index = case.step(operand, turned_view), Tensor(kind, indices(rng, (8,), 6))
            backwards = case.step(case.input(index), ("slice {}, slices=[::-1]", lambda a: a[::-1]))
            case.output("turned", "select %s, %s, axis=0" % (turned, backwards),
                        Tensor(dtype, np.take(turned.tensor.data, index.data[::-1], axis=0, mode="clip")))

            case = book.case("index", "gather", dtype, EXACT)
            operand = case.input(x)
            for axis, shape in ((0, (7, 5, 6)), (1, (4, 2, 6)), (-1, (4, 5, 9)), (1, (2, 3, 4)), (2, (4, 0, 2))):
                index = indices(rng, shape, x.shape[axis])
                part = x.data[tuple(slice(None) if i == axis % 3 else slice(0, n) for i, n in enumerate(shape))]
                taken = np.take_along_axis(part, clipped(index, x.shape[axis]), axis)
                case.output(case.fresh("gather"), "gather %s, %s, axis=%d" % (operand, case.input(Tensor(kind, index)), axis),
                            Tensor(dtype, taken))
            back = case.step(operand, back_view)
            index = Tensor(kind, indices(rng, (2, 4, 3), 3))
            turned = case.step(case.input(index), ("permute {}, order=[1, 2, 0]", lambda a: a.transpose(1, 2, 0)))
            taken = np.take_along_axis(back.tensor.data[:, :, :2], clipped(turned.tensor.data, 3), 1)
            case.output("turned", "gather %s, %s, axis=1" % (back, turned), Tensor(dtype, taken))

            case = book.case("index", "gather_nd", dtype, EXACT)
            operand = case.input(x)
            for shape in ((3, 1), (2, 4, 2), (5, 3), (2,), (0, 2)):
                depth = shape[-1]
                index = np.stack([indices(rng, shape[:-1], x.shape[i]) for i in range(depth)], -1)
                place = tuple(clipped(index[..., i], x.shape[i]) for i in range(depth))
                case.output(case.fresh("gather"), "gather_nd %s, %s" % (operand, case.input(Tensor(kind, index))),
                            Tensor(dtype, x.data[place]))

            case = book.case("index", "embedding", dtype, EXACT)
            table = mixed(dtype, (9, 5), rng)
            operand = case.input(table)
            for shape in ((6,), (2, 3, 4), (), (0,)):
                index = indices(rng, shape, 9)
                case.output(case.fresh("rows"), "embedding %s, %s" % (operand, case.input(Tensor(kind, index))),
                            Tensor(dtype, table.data[clipped(index, 9)]))
            turned = case.step(operand, ("permute {}, order=[1, 0]", np.transpose))
            index = indices(rng, (4, 2), 5)
            case.output("turned", "embedding %s, %s" % (turned, case.input(Tensor(kind, index))),
                        Tensor(dtype, table.data.T[clipped(index, 5)]))


def scatter(x, axis, index, values, function):
    """In row-major order of values."""
    result = x.copy()
    for place in np.ndindex(*values.shape):
        target = list(place)
        target[axis] = int(index[place])
        if inside(target, x.shape):
            update(function, result, tuple(target), values[place])
    return result


def scatter_nd(x, index, values, function):
    result, depth = x.copy(), index.shape[-1]
    for place in np.ndindex(*index.shape[:-1]):
        target = tuple(int(c) for c in index[place])
        if inside(target, x.shape[:depth]):
            update(function, result, target, values[place])
    return result


def select_assign(x, axis, index, values, function):
    result = np.moveaxis(x.copy(), axis, 0)
    slices = np.moveaxis(values, axis, 0)
    for i, target in enumerate(index):
        if 0 <= target < result.shape[0]:
            update(function, result, int(target), slices[i])
    return np.moveaxis(result, 0, axis)


def write_rows(book):
    for dtype in REALS:
        for kind in kinds(dtype):
            rng = randoms("write", dtype, kind)
            x = values_for(dtype, (4, 5, 3), rng)
            tight = EQUAL if dtype in FLOATS else EXACT
            scatters = book.case("index", "scatter", dtype, tight)
            nd = book.case("index", "scatter_nd", dtype, tight)
            selects = book.case("index", "select_assign", dtype, tight)
            for mode in updates_of(dtype):
                function = UPDATES[mode]
                for axis, shape in ((0, (6, 5, 3)), (1, (4, 3, 2)), (-1, (4, 5, 7)), (1, (4, 0, 3))):
                    index, values = indices(rng, shape, x.shape[axis]), values_for(dtype, shape, rng)
                    names = scatters.input(x), scatters.input(Tensor(kind, index)), scatters.input(values)
                    scatters.output(scatters.fresh(mode), "scatter %s, %s, %s, axis=%d, update=%s" % (*names, axis, mode),
                                    Tensor(dtype, scatter(x.wide(), axis, index, values.wide(), function)))
                for shape in ((6, 1), (3, 4, 2), (9, 3)):
                    depth = shape[-1]
                    index = np.stack([indices(rng, shape[:-1], x.shape[i]) for i in range(depth)], -1)
                    values = values_for(dtype, shape[:-1] + x.shape[depth:], rng)
                    names = nd.input(x), nd.input(Tensor(kind, index)), nd.input(values)
                    nd.output(nd.fresh(mode), "scatter_nd %s, %s, %s, update=%s" % (*names, mode),
                              Tensor(dtype, scatter_nd(x.wide(), index, values.wide(), function)))
                for axis, count in ((0, 6), (1, 4), (-1, 5), (0, 0)):
                    index = indices(rng, (count,), x.shape[axis])
                    shape = tuple(count if i == axis % 3 else n for i, n in enumerate(x.shape))
                    values = values_for(dtype, shape, rng)
                    names = selects.input(x), selects.input(Tensor(kind, index)), selects.input(values)
                    selects.output(selects.fresh(mode), "select_assign %s, %s, %s, axis=%d, update=%s" % (*names, axis, mode),
                                   Tensor(dtype, select_assign(x.wide(), axis, index, values.wide(), function)))
            strided_scatter(scatters, dtype, kind, rng)


def strided_scatter(case, dtype, kind, rng):
    """All three operands through views."""
    turn = ("permute {}, order=[1, 0]", np.transpose)
    back = ("slice {}, slices=[::-1, ::2]", lambda a: a[::-1, ::2])
    x = case.step(case.input(values_for(dtype, (5, 4), rng)), turn)
    index = case.step(case.input(Tensor(kind, indices(rng, (3, 9), 4))), back)
    values = case.step(case.input(values_for(dtype, (5, 3), rng)), turn)
    result = scatter(x.tensor.wide(), 0, index.tensor.data, values.tensor.wide(), None)
    case.output("strided", "scatter %s, %s, %s, axis=0" % (x, index, values), Tensor(dtype, result))


SLICES = [((4, 5, 3), "[1:3, ::2]", np.s_[1:3, ::2]), ((4, 5, 3), "[::-1, 4:0:-2, -2:]", np.s_[::-1, 4:0:-2, -2:]),
          ((7,), "[5:1:-1]", np.s_[5:1:-1]), ((4, 5), "[:, 2:2]", np.s_[:, 2:2]), ((4, 5), "[-9:9, 1:99:3]", np.s_[-9:9, 1:99:3])]


def slice_rows(book):
    for dtype in REALS:
        rng = randoms("slice_assign", dtype)
        case = book.case("index", "slice_assign", dtype, EXACT)
        for shape, text, place in SLICES:
            x = mixed(dtype, shape, rng)
            result = x.data.copy()
            values = values_for(dtype, result[place].shape, rng)
            result[place] = values.data
            case.output(case.fresh("slice"), "slice_assign %s, %s, slices=%s" % (case.input(x), case.input(values), text),
                        Tensor(dtype, result))
        x = case.step(case.input(mixed(dtype, (5, 4), rng)), ("permute {}, order=[1, 0]", np.transpose))
        values = case.step(case.input(values_for(dtype, (2, 5), rng)), ("flip {}, axes=[1]", lambda a: a[:, ::-1]))
        result = x.tensor.data.copy()
        result[1:3] = values.tensor.data
        case.output("strided", "slice_assign %s, %s, slices=[1:3]" % (x, values), Tensor(dtype, result))


def write(book):
    read_rows(book)
    write_rows(book)
    slice_rows(book)
