# SPDX-License-Identifier: Apache-2.0
"""Rows of the classes REDUCE, ARG_REDUCE and SCAN."""
import numpy as np

from book import EQUAL, EXACT, FLOATS, NUMBERS, REALS, Tensor, Tolerance, epsilon
from samples import edges, mixed, randoms, smooth

CUBE = (3, 5, 7)
LONG = np.longdouble
AXES = {"full": None, "first": (0,), "middle": (1,), "last": (2,), "outer": (0, 2), "trailing": (1, 2),
        "every": (0, 1, 2)}

VIEWS = {
    "permuted": ("permute {}, order=[2, 0, 1]", lambda a: a.transpose(2, 0, 1)),
    "reversed": ("slice {}, slices=[::-1, 4:0:-2, 1::3]", lambda a: a[::-1, 4:0:-2, 1::3]),
    "stretched": ("expand {}, dims=[2, 3, 5, 7]", lambda a: np.broadcast_to(a, (2, *a.shape))),
}


def axes_text(axes):
    return "" if axes is None else ", axes=%s" % list(axes)


def any_of(a, axis, keepdims):
    return np.any(a != 0, axis=axis, keepdims=keepdims)


def all_of(a, axis, keepdims):
    return np.all(a != 0, axis=axis, keepdims=keepdims)


def wrapping(function):
    """NumPy widens small integers unless told otherwise."""
    return lambda a, axis, keepdims: function(a, axis=axis, keepdims=keepdims, dtype=a.dtype)


def max_abs(a, axis, keepdims):
    return np.max(np.abs(a), axis=axis, keepdims=keepdims)


def rounded_once(dtype, scale):
    """Frit sums in double: only f64 sees the order."""
    return Tolerance(1, scale * epsilon("f64")) if dtype == "f64" else Tolerance(1)


# row: function, types, result type, whether nothing may be reduced.
REDUCE = {
    "sum": (wrapping(np.sum), NUMBERS, None, True), "prod": (wrapping(np.prod), NUMBERS, None, True),
    "mean": (np.mean, FLOATS, None, True), "var": (np.var, FLOATS, None, True),
    "max": (np.max, REALS, None, False), "min": (np.min, REALS, None, False),
    "max_abs": (max_abs, NUMBERS, None, False),
    "any": (any_of, REALS, "bool", True), "all": (all_of, REALS, "bool", True),
}


def tolerances(row, dtype):
    if dtype not in FLOATS or row in ("any", "all"):
        return EXACT, None
    if row in ("max", "min", "max_abs"):
        return EQUAL, None
    loose = Tolerance(4, 16 * epsilon(dtype)) if row in ("mean", "var") else None
    return rounded_once(dtype, 256), loose


def operand_for(row, dtype, shape, rng):
    """Factors near 1, flags with rows of one kind, else random numbers."""
    if row in ("any", "all"):
        tensor = smooth(dtype, shape, rng)
        keep = rng.integers(0, 4, shape[:-1] + (1,)) if len(shape) > 1 else np.array(1)
        noise = rng.integers(0, 2, shape)
        return Tensor(dtype, tensor.data * np.where(keep == 0, 0, np.where(keep == 1, 1, noise)).astype(tensor.data.dtype))
    if row == "prod" and dtype in FLOATS:
        return smooth(dtype, shape, rng, 0.7, 1.3)
    return smooth(dtype, shape, rng)


def corner_rows(dtype):
    """Rows of 4 in which corners meet: NaN with all else, both infinities, both zeros, MIN and MAX."""
    corners = edges(dtype)
    lines = [np.roll(corners, -turn)[:4] for turn in range(corners.size)] if corners.size >= 4 else [np.resize(corners, 4)]
    if dtype in FLOATS:
        lines += [np.array(line) for line in ([np.inf, -np.inf, 1, 2], [-0.0, 0.0, -0.0, 0.0], [-0.0] * 4, [np.nan] * 4,
                                              [1, np.nan, np.inf, np.nan], [-np.inf] * 4)]
    return Tensor(dtype, np.stack([np.resize(line, 4) for line in lines]))


def give_reduction(case, name, row, operand, axes, keep, function, out):
    data = operand.tensor.wide(LONG)
    with_axes = tuple(range(data.ndim)) if axes is None else axes
    text = "%s %s%s%s" % (row, operand, axes_text(axes), ", keep=1" if keep else "")
    result = function(data, axis=with_axes, keepdims=bool(keep)) if data.ndim else function(data, axis=None, keepdims=False)
    case.output(name, text, Tensor(out or operand.tensor.dtype, result))


def reduce_rows(book):
    for row, (function, dtypes, out, nothing) in REDUCE.items():
        for dtype in dtypes:
            rng = randoms(row, dtype)
            case = book.case("reduce", row, dtype, *tolerances(row, dtype))
            operand = case.input(operand_for(row, dtype, CUBE, rng))

            def give(name, value, axes, keep=0):
                give_reduction(case, name, row, value, axes, keep, function, out)

            for name, axes in AXES.items():
                give(name, operand, axes)
            give("kept", operand, (1,), 1)
            give("all_kept", operand, None, 1)
            give("from_end", operand, (-1, -3), 1)
            for name, view in VIEWS.items():
                give(name, case.step(operand, view), (0, 1))
                give(name + "_last", case.step(operand, view), (2,))
            give("corners", case.input(corner_rows(dtype)), (1,))
            give("rank0", case.input(operand_for(row, dtype, (), rng)), None)
            give("ones", case.input(operand_for(row, dtype, (1, 1, 1), rng)), (0, 2))
            give("no_rows", case.input(smooth(dtype, (0, 3), rng)), (1,))
            give("larger", case.input(operand_for(row, dtype, (9, 67), rng)), (1,))
            if nothing:
                give("of_nothing", case.input(smooth(dtype, (0, 3), rng)), (0,))
                give("of_nothing_at_all", case.input(smooth(dtype, (2, 0), rng)), None)


def arg_rows(book):
    """NumPy's rules are Frit's: NaN wins, ties take the first."""
    for row, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        for dtype in REALS:
            rng = randoms(row, dtype)
            case = book.case("reduce", row, dtype, EXACT)
            operand = case.input(Tensor(dtype, rng.integers(0, 4, CUBE)))  # full of ties

            def give(name, value, axis, keep=0):
                text = "%s %s%s%s" % (row, value, "" if axis is None else ", axis=%d" % axis, ", keep=1" if keep else "")
                case.output(name, text, Tensor("i64", function(value.tensor.data, axis=axis, keepdims=bool(keep))))

            for axis in (None, 0, 1, 2, -1):
                give(case.fresh("ties"), operand, axis)
            give("kept", operand, 1, 1)
            give("all_kept", operand, None, 1)
            for name, view in VIEWS.items():
                give(name, case.step(operand, view), 1)
                give(name + "_full", case.step(operand, view), None)
            give("corners", case.input(corner_rows(dtype)), 1)
            give("rank0", case.input(smooth(dtype, (), rng)), None)
            give("ones", case.input(smooth(dtype, (1, 1), rng)), 0)
            give("no_rows", case.input(smooth(dtype, (0, 3), rng)), 1)
            give("larger", case.input(smooth(dtype, (9, 67), rng)), None)


SCANS = {"cumsum": (np.cumsum, NUMBERS), "cumprod": (np.cumprod, NUMBERS),
         "cummax": (np.maximum.accumulate, REALS), "cummin": (np.minimum.accumulate, REALS)}


def scan_rows(book):
    for row, (function, dtypes) in SCANS.items():
        for dtype in dtypes:
            rng = randoms(row, dtype)
            tight = EXACT
            if dtype in FLOATS:
                tight = rounded_once(dtype, 256) if row.startswith(("cums", "cump")) else EQUAL
            case = book.case("reduce", row, dtype, tight)
            typed = {} if row in ("cummax", "cummin") else {"dtype": True}

            def give(name, value, axis):
                data = value.tensor.wide(LONG)
                named = {"dtype": data.dtype} if typed else {}
                case.output(name, "%s %s, axis=%d" % (row, value, axis),
                            Tensor(dtype, function(data, axis=axis, **named)))

            operand = case.input(operand_for("prod" if row == "cumprod" else "", dtype, CUBE, rng))
            for axis in (0, 1, 2, -2):
                give(case.fresh("axis"), operand, axis)
            for name, view in VIEWS.items():
                give(name, case.step(operand, view), 1)
            give("corners", case.input(corner_rows(dtype)), 1)
            give("plain", case.input(operand_for("prod" if row == "cumprod" else "", dtype, (67,), rng)), 0)
            give("ones", case.input(smooth(dtype, (1, 1), rng)), 0)
            give("empty", case.input(smooth(dtype, (0, 3), rng)), 1)
            give("of_nothing", case.input(smooth(dtype, (3, 0), rng)), 1)


def write(book):
    reduce_rows(book)
    arg_rows(book)
    scan_rows(book)
