# SPDX-License-Identifier: Apache-2.0
"""Rows of the classes REDUCE, ARG_REDUCE and SCAN."""

import numpy as np

from book import EQUAL, EXACT, FLOATS, NUMBERS, REALS, Tensor, Tolerance, epsilon
from book import expanded, permuted, sliced
from samples import edges, randoms, smooth

CUBE = (3, 4, 5)
LARGER = (2, 301)  # more than one pass of a buffer, and an odd rest
AXES = {
    "full": None,
    "first": (0,),
    "middle": (1,),
    "last": (2,),
    "outer": (0, 2),
    "trailing": (1, 2),
    "every": (0, 1, 2),
}
VIEWS = {
    "permuted": permuted(2, 0, 1),
    "reversed": sliced("::-1, 3:0:-2, 1::3"),
    "stretched": expanded(2, 3, 4, 5),
}


def any_of(a, **named):
    return np.any(a != 0, **named)


def all_of(a, **named):
    return np.all(a != 0, **named)


def max_abs(a, **named):
    return np.max(np.abs(a), **named)


def wrapping(function):
    """NumPy widens small integers unless told otherwise."""
    return lambda a, **named: function(a, dtype=a.dtype, **named)


# Function, types, whether it has a result for nothing.
REDUCTIONS = {
    "sum": (wrapping(np.sum), NUMBERS, True),
    "prod": (wrapping(np.prod), NUMBERS, True),
    "mean": (np.mean, FLOATS, True),
    "var": (np.var, FLOATS, True),
    "any": (any_of, REALS, True),
    "all": (all_of, REALS, True),
    "max": (np.max, REALS, False),
    "min": (np.min, REALS, False),
    "max_abs": (max_abs, NUMBERS, False),
}
FLAGS = ("any", "all")
PICKS = ("max", "min", "max_abs", "cummax", "cummin")
PRODUCTS = ("prod", "cumprod")


def work(row):
    """Sums are computed wider than f64; products would lose f64's overflow by that."""
    return np.float64 if row in PRODUCTS else np.longdouble


def tolerances(row, dtype):
    if dtype not in FLOATS or row in FLAGS:
        return EXACT, None
    if row in PICKS:
        return EQUAL, None
    if row in ("mean", "var"):
        apart = Tolerance(2, (64 if dtype == "f64" else 8) * epsilon(dtype))
    else:  # gathered in f32 by most drivers; sums of 301 cancel out to a twentieth
        units = 128 if row in ("sum", "cumsum") else 8
        apart = Tolerance(2, units * epsilon(dtype)) if dtype == "f32" else None
    return Tolerance(1, 256 * epsilon("f64") if dtype == "f64" else 0), apart


def operand(row, dtype, shape, rng):
    """Factors near 1, flags with rows all 0 and all not 0, else random numbers."""
    if row in PRODUCTS:
        return smooth(dtype, shape, rng, 0.7, 1.3)
    tensor = smooth(dtype, shape, rng)
    if row not in FLAGS:
        return tensor
    kind = rng.integers(0, 3, shape[:-1] + (1,) if shape else ())
    keep = np.where(kind == 2, rng.integers(0, 2, shape), kind)
    return tensor.moved(
        lambda a: np.where(keep == 0, a.dtype.type(0), np.where(a == 0, a.dtype.type(1), a))
    )


def corner_rows(row, dtype):
    """Rows of 4 in which corners meet: NaN and others, both infinities, both zeros, MIN and MAX.
    Products of floats that overflow on the way depend on the order, which no row says."""
    corners = edges(dtype)
    rows = [np.resize(np.roll(corners, -turn), 4) for turn in range(corners.size)]
    if dtype in FLOATS and row in PRODUCTS:
        rows = []
    if dtype in FLOATS:
        inf, nan = np.inf, np.nan
        rows += [[inf, -inf, 1, 2], [-0.0, 0.0, -0.0, 0.0], [-0.0] * 4, [-inf] * 4]
        rows += [[nan] * 4, [1, nan, inf, nan], [1, 2, 3, nan]]
    return Tensor(dtype, np.stack(rows))


def reduce_row(book, row, dtype):
    function, _, nothing = REDUCTIONS[row]
    rng = randoms(row, dtype)
    case = book.case("reduce", row, dtype, *tolerances(row, dtype))

    def give(name, value, axes=None, keep=0):
        value = value if not isinstance(value, Tensor) else case.input(value)
        result = function(value.tensor.wide(work(row)), axis=axes, keepdims=bool(keep))
        attrs = ({"axes": axes} if axes else {}) | ({"keep": 1} if keep else {})
        case.give(name, [value], Tensor("bool" if row in FLAGS else dtype, result), **attrs)

    cube = case.input(operand(row, dtype, CUBE, rng))
    for name, axes in AXES.items():
        give(name, cube, axes)
    give("kept", cube, (1,), 1)
    give("all_kept", cube, None, 1)
    give("from_end", cube, (-1, -3), 1)
    for name, view in VIEWS.items():
        give(name, case.view(cube, view), (0, 1))
        give(name + "_last", case.view(cube, view), (2,))
    give("corners", corner_rows(row, dtype), (1,))
    give("rank0", operand(row, dtype, (), rng))
    give("ones", operand(row, dtype, (1, 1, 1), rng), (0, 2))
    give("no_rows", smooth(dtype, (0, 3), rng), (1,))
    give("larger", operand(row, dtype, LARGER, randoms("larger", dtype)), (1,))
    if nothing:
        give("of_nothing", smooth(dtype, (0, 3), rng), (0,))
        give("of_nothing_at_all", smooth(dtype, (2, 0), rng))


def arg_row(book, row, function, dtype):
    """NumPy's rules are Frit's: NaN wins, ties take the first."""
    rng = randoms(row, dtype)
    case = book.case("reduce", row, dtype)

    def give(name, value, axis=None, keep=0):
        value = value if not isinstance(value, Tensor) else case.input(value)
        result = function(value.tensor.data, axis=axis, keepdims=bool(keep))
        attrs = ({} if axis is None else {"axis": axis}) | ({"keep": 1} if keep else {})
        case.give(name, [value], Tensor("i64", result), **attrs)

    cube = case.input(Tensor(dtype, rng.integers(0, 4, CUBE)))  # full of ties
    for axis in (None, 0, 1, 2, -1):
        give(None, cube, axis)
    give("kept", cube, 1, 1)
    give("all_kept", cube, None, 1)
    for name, view in VIEWS.items():
        give(name, case.view(cube, view), 1)
        give(name + "_full", case.view(cube, view))
    give("corners", corner_rows(row, dtype), 1)
    give("rank0", smooth(dtype, (), rng))
    give("ones", smooth(dtype, (1, 1), rng), 0)
    give("no_rows", smooth(dtype, (0, 3), rng), 1)
    give("larger", operand(row, dtype, LARGER, randoms("larger", dtype)))


def typed(function):
    return lambda a, axis: function(a, axis=axis, dtype=a.dtype)


SCANS = {
    "cumsum": (typed(np.cumsum), NUMBERS),
    "cumprod": (typed(np.cumprod), NUMBERS),
    "cummax": (np.maximum.accumulate, REALS),
    "cummin": (np.minimum.accumulate, REALS),
}


def scan_row(book, row, function, dtype):
    rng = randoms(row, dtype)
    case = book.case("reduce", row, dtype, *tolerances(row, dtype))

    def give(name, value, axis):
        value = value if not isinstance(value, Tensor) else case.input(value)
        case.give(name, [value], function(value.tensor.wide(work(row)), axis), axis=axis)

    cube = case.input(operand(row, dtype, CUBE, rng))
    for axis in (0, 1, 2, -2):
        give(None, cube, axis)
    for name, view in VIEWS.items():
        give(name, case.view(cube, view), 1)
    give("corners", corner_rows(row, dtype), 1)
    give("larger", operand(row, dtype, LARGER, randoms("larger", dtype)), 1)
    give("ones", smooth(dtype, (1, 1), rng), 0)
    give("empty", smooth(dtype, (0, 3), rng), 1)
    give("of_nothing", smooth(dtype, (3, 0), rng), 1)


def write(book):
    for row, (_, dtypes, _) in REDUCTIONS.items():
        for dtype in dtypes:
            reduce_row(book, row, dtype)
    for row, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        for dtype in REALS:
            arg_row(book, row, function, dtype)
    for row, (function, dtypes) in SCANS.items():
        for dtype in dtypes:
            scan_row(book, row, function, dtype)
