# SPDX-License-Identifier: Apache-2.0
"""Rows of the class MAP: every type at its corners, every shape class."""

import numpy as np
import torch

from book import EQUAL, EXACT, FLOATS, INTS, NUMBERS, REALS, Tensor, Tolerance, epsilon
from book import expanded, permuted, sliced
from samples import edges, mixed, number, randoms, smooth

LONG = np.longdouble
BASE = (3, 5, 4)
VIEWS = {"permuted": [permuted(2, 0, 1)], "reversed": [sliced("::-1, 4:0:-2, 1::2")]}
STRETCHED = [sliced(":, 1:2, :"), expanded(3, 4, 4)]
AS_STRETCHED = [sliced(":, 0:4, :")]
LINE = [sliced("0:1, :, 2:3")]


def exact(dtype):
    return EXACT


def equal(dtype):
    return EQUAL


def library(dtype):
    """Frit computes in double too, so only f64 sees the library's own last bit."""
    return Tolerance(2 if dtype == "f64" else 1)


def loose(dtype):
    """Of a handful of core ops, each rounded."""
    return Tolerance(4)


def cancelling(dtype):
    """The same where they take almost equal numbers from each other."""
    return Tolerance(4, 4 * epsilon(dtype))


def activation(dtype):
    """gelu and log_sigmoid cancel near 0, so that double's own last bit shows there."""
    return Tolerance(2 if dtype == "f64" else 1, 2 * epsilon("f64"))


class Row:
    """A row as a function on arrays: floats come as `work`, other types as they are."""

    def __init__(self, name, function, work=np.float64, out=None):
        self.name = name
        self.function = function
        self.work = work
        self.out = out

    def __call__(self, operands):
        """The result for tensors; the last one has the type that a result without its own has."""
        result = self.function(*(operand.wide(self.work) for operand in operands))
        return Tensor(self.out or operands[-1].dtype, result)


def part(tensor, shape):
    """The last elements of a tensor, which are no corners, in another shape."""
    count = int(np.prod(shape))
    return tensor.moved(lambda a: a.reshape(-1)[a.size - count :].reshape(shape))


def shape_classes(case, row, operands):
    """The row on dense, permuted, reversed, stretched, broadcast, single and no elements."""

    def give(name, values):
        case.give(name, values, row([value.tensor for value in values]))

    bases = [case.input(operand) for operand in operands]
    give("odd", bases)
    for name, views in VIEWS.items():
        give(name, [case.view(base, *views) for base in bases])
    others = [case.view(base, *AS_STRETCHED) for base in bases[1:]]
    give("stretched", [case.view(bases[0], *STRETCHED)] + others)
    if len(bases) > 1:
        give("broadcast", bases[:-1] + [case.view(bases[-1], *LINE)])
        give("broadcast_first", [case.view(bases[0], *LINE)] + bases[1:])
    for name, shape in (("rank0", ()), ("ones", (1, 1, 1)), ("empty", (0, 3))):
        give(name, [case.input(part(operand, shape)) for operand in operands])


def with_scalars(case, row, operands, places):
    """A number in place of each operand that may be one."""
    for place in places:
        for turn, index in enumerate((-1, 7)):
            scalar = operands[place].moved(lambda a: a.reshape(-1)[index].reshape(()))
            tensors = operands[:place] + [scalar] + operands[place + 1 :]
            given = operands[:place] + [number(scalar)] + operands[place + 1 :]
            case.give("scalar_%d_%d" % (place, turn), given, row(tensors))


# ---- one operand ----


def torch_f64(function):
    """A torch function as one on NumPy arrays."""
    return lambda x: function(torch.from_numpy(np.array(x, dtype=np.float64))).numpy()


# Function, random numbers from, to; long double inside, so that the result is rounded once.
LIBRARY = {
    "exp": (np.exp, -8, 8),
    "expm1": (np.expm1, -2, 2),
    "log": (np.log, 0, 8),
    "log1p": (np.log1p, -1, 2),
    "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9),
    "tan": (np.tan, -9, 9),
    "tanh": (np.tanh, -4, 4),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -8, 8),
    "sinh": (np.sinh, -5, 5),
    "cosh": (np.cosh, -5, 5),
    "asinh": (np.arcsinh, -8, 8),
    "acosh": (np.arccosh, 1, 9),
    "atanh": (np.arctanh, -1, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 9),
}
ACTIVATIONS = {
    "erf": torch_f64(torch.erf),
    "gelu": torch_f64(torch.nn.functional.gelu),
    "silu": torch_f64(torch.nn.functional.silu),
    "sigmoid": torch_f64(torch.sigmoid),
    "log_sigmoid": torch_f64(torch.nn.functional.logsigmoid),
    "softplus": lambda x: np.logaddexp(LONG(0), x.astype(LONG)),  # torch's is linear from 20 on
}
ROUNDINGS = {
    "sqrt": np.sqrt,
    "recip": np.reciprocal,
    "floor": np.floor,
    "round": np.rint,
    "ceil": np.ceil,
    "trunc": np.trunc,
}
NUMERIC = {
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "square": np.square,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
}


def unary(book, family, row, dtypes, tight=exact, apart=None, low=-4, high=4):
    for dtype in dtypes:
        rng = randoms(row.name, dtype)
        case = book.case(family, row.name, dtype, tight(dtype), apart and apart(dtype))
        shape_classes(case, row, [mixed(dtype, BASE, rng, low, high)])
        if dtype in ("f32", "i32"):
            larger = mixed(dtype, (13, 41), rng, low, high)
            case.give("larger", [larger], row([larger]))


def unary_rows(book):
    for name, (function, low, high) in LIBRARY.items():
        unary(book, "unary", Row(name, function, LONG), FLOATS, library, loose, low, high)
    for name, function in ROUNDINGS.items():
        unary(book, "unary", Row(name, function), FLOATS)
    for name, function in NUMERIC.items():
        unary(book, "unary", Row(name, function), NUMBERS, equal)
    for name, function in (("is_nan", np.isnan), ("is_inf", np.isinf)):
        unary(book, "unary", Row(name, function, out="bool"), FLOATS)
    unary(book, "unary", Row("not", np.invert), INTS + ["bool"])
    for name, function in ACTIVATIONS.items():
        apart = cancelling if name == "gelu" else loose
        unary(book, "activation", Row(name, function), FLOATS, activation, apart, -8, 8)


# ---- two operands ----


def int_div(a, b):
    """Truncated; by zero 0; MIN / -1 wraps: the quotient after taking the remainder off."""
    return np.where(b == 0, a.dtype.type(0), (a - np.fmod(a, b)) // b)


def int_pow(a, b):
    """NumPy's wrapping power; a negative exponent leaves only 1 and -1 different from 0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    below = np.where(a == one, one, zero)
    if np.iinfo(a.dtype).min:
        below = np.where(a == -one, np.where(b & one, -one, one), below)
    return np.where(b < zero, below, np.power(a, np.maximum(b, zero)))


def in_width(shift):
    """A shift by less than 0 or by the width and more gives 0."""

    def apply(a, b):
        fits = (b >= 0) & (b < np.iinfo(a.dtype).bits)
        return np.where(fits, shift(a, np.where(fits, b, b.dtype.type(0))), a.dtype.type(0))

    return apply


ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
QUOTIENTS = {"div": np.divide, "rem": np.remainder}
PLANE = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}
INTEGER = {
    "div": int_div,
    "rem": np.remainder,
    "pow": int_pow,
    "shl": in_width(np.left_shift),
    "shr": in_width(np.right_shift),
}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
ORDER = {"maximum": np.maximum, "minimum": np.minimum}
COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def binary(book, family, row, dtypes, tight=exact):
    for dtype in dtypes:
        rng = randoms(row.name, dtype)
        case = book.case(family, row.name, dtype, tight(dtype))
        operands = [mixed(dtype, BASE, rng), mixed(dtype, BASE, rng, turn=9)]
        shape_classes(case, row, operands)
        with_scalars(case, row, operands, (0, 1))
        corners = [Tensor(dtype, edges(dtype).reshape(-1, 1)), Tensor(dtype, edges(dtype))]
        case.give("corners", corners, row(corners))


def binary_rows(book):
    for name, function in ARITHMETIC.items():
        binary(book, "binary", Row(name, function), NUMBERS)
    for name, function in QUOTIENTS.items():
        binary(book, "binary", Row(name, function), FLOATS, equal)
    for name, function in PLANE.items():
        binary(book, "binary", Row(name, function, LONG), FLOATS, library)
    for name, function in INTEGER.items():
        binary(book, "binary", Row(name, function), INTS)
    for name, function in BITS.items():
        binary(book, "binary", Row(name, function), INTS + ["bool"])
    for name, function in ORDER.items():
        binary(book, "binary", Row(name, function), REALS, equal)
    for name, function in COMPARE.items():
        binary(book, "binary", Row(name, function, out="bool"), REALS)
    leaky = Row("leaky_relu", lambda x, slope: np.where(x > 0, x, slope * x))
    binary(book, "activation", leaky, FLOATS, equal)


# ---- three operands ----


def where_rows(book):
    for dtype in REALS:
        rng = randoms("where", dtype)
        mask = Tensor("bool", rng.integers(0, 2, BASE))
        a, b = mixed(dtype, BASE, rng), mixed(dtype, BASE, rng, turn=9)
        case = book.case("binary", "where", dtype)
        row = Row("where", np.where)
        shape_classes(case, row, [mask, a, b])
        with_scalars(case, row, [mask, a, b], (1, 2))
        case = book.case("binary", "mask_fill", dtype)
        row = Row("mask_fill", lambda x, hidden, value: np.where(hidden, value, x))
        shape_classes(case, row, [a, mask, b])
        with_scalars(case, row, [a, mask, b], (2,))


def clamp_row(book):
    row = Row("clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high))
    for dtype in NUMBERS:
        rng = randoms("clamp", dtype)
        case = book.case("binary", "clamp", dtype, EQUAL)
        operands = [mixed(dtype, BASE, rng, turn=turn) for turn in (0, 9, 40)]
        shape_classes(case, row, operands)
        with_scalars(case, row, operands, (0, 1, 2))


def hard_sigmoid_row(book):
    row = Row("hard_sigmoid", lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1))
    for dtype in FLOATS:
        rng = randoms("hard_sigmoid", dtype)
        case = book.case(
            "activation", "hard_sigmoid", dtype, Tolerance(1, epsilon("f64")), cancelling(dtype)
        )
        operands = [
            mixed(dtype, BASE, rng),
            smooth(dtype, BASE, rng, -1, 1),
            smooth(dtype, BASE, rng, 0, 1),
        ]
        shape_classes(case, row, operands)
        with_scalars(case, row, operands, (0, 1, 2))


CROSSES = [((5, 3), -1), ((3, 7), 0), ((2, 3, 5), 1), ((0, 3), 1), ((3,), 0)]


def cross_row(book):
    for dtype in NUMBERS:
        rng = randoms("cross", dtype)
        tight = Tolerance(1, 8 * epsilon("f64")) if dtype in FLOATS else EXACT
        apart = Tolerance(1, 8 * epsilon(dtype)) if dtype in FLOATS else None
        case = book.case("binary", "cross", dtype, tight, apart)
        for shape, axis in CROSSES:
            a, b = smooth(dtype, shape, rng), smooth(dtype, shape, rng)
            case.give(None, [a, b], np.cross(a.wide(), b.wide(), axis=axis), axis=axis)
        a = case.input(smooth(dtype, (3, 5), rng), permuted(1, 0))
        b = smooth(dtype, (1, 3), rng)
        case.give("broadcast", [a, b], np.cross(a.tensor.wide(), b.wide(), axis=1), axis=1)


def write(book):
    unary_rows(book)
    binary_rows(book)
    where_rows(book)
    clamp_row(book)
    hard_sigmoid_row(book)
    cross_row(book)
