# SPDX-License-Identifier: Apache-2.0
"""Rows of the class MAP: every type at its corners, every shape class."""
import numpy as np
import torch

from book import EQUAL, EXACT, FLOATS, INTS, NUMBERS, REALS, Tensor, Tolerance, epsilon
from samples import edges, mixed, randoms, spread

LONG = np.longdouble

# One result per kind of operand that a driver may meet: where it lies, how a view makes it, what shape it has.
BASE = (3, 5, 4)
MOVES = {
    "permuted": ("permute {}, order=[2, 0, 1]", lambda a: a.transpose(2, 0, 1)),
    "reversed": ("slice {}, slices=[::-1, 4:0:-2, 1::2]", lambda a: a[::-1, 4:0:-2, 1::2]),
}
STRETCH = ("expand {}, dims=[-1, 4, -1]", lambda a: np.broadcast_to(a, (a.shape[0], 4, a.shape[2])))
MIDDLE = ("slice {}, slices=[:, 1:2, :]", lambda a: a[:, 1:2, :])
HEAD = ("slice {}, slices=[:, 0:4, :]", lambda a: a[:, :4, :])
COLUMN = ("slice {}, slices=[0:1, :, 2:3]", lambda a: a[:1, :, 2:3])


def torch_f64(function):
    """A torch function as one on NumPy arrays."""
    return lambda *xs: function(*(torch.from_numpy(np.array(x, dtype=np.float64)) for x in xs)).numpy()


# row: function, random numbers from, to; long double inside, so that the result is rounded once.
LIBRARY = {
    "exp": (np.exp, -8, 8), "expm1": (np.expm1, -2, 2), "log": (np.log, 0, 8), "log1p": (np.log1p, -1, 2),
    "sin": (np.sin, -9, 9), "cos": (np.cos, -9, 9), "tan": (np.tan, -9, 9), "tanh": (np.tanh, -4, 4),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -8, 8),
    "sinh": (np.sinh, -5, 5), "cosh": (np.cosh, -5, 5), "asinh": (np.arcsinh, -8, 8),
    "acosh": (np.arccosh, 1, 9), "atanh": (np.arctanh, -1, 1), "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 9),
}
ACTIVATION = {
    "erf": torch_f64(torch.erf),
    "gelu": torch_f64(torch.nn.functional.gelu), "silu": torch_f64(torch.nn.functional.silu),
    "sigmoid": torch_f64(torch.sigmoid), "log_sigmoid": torch_f64(torch.nn.functional.logsigmoid),
    "softplus": lambda x: np.logaddexp(LONG(0), x.astype(LONG)),  # torch's is linear from 20 on
}
PLAIN = {"sqrt": np.sqrt, "recip": np.reciprocal, "floor": np.floor, "round": np.rint, "ceil": np.ceil,
         "trunc": np.trunc}
NUMERIC = {"abs": np.abs, "neg": np.negative, "sign": np.sign, "square": np.square,
           "relu": lambda x: np.maximum(x, x.dtype.type(0))}
CLASSES = {"is_nan": np.isnan, "is_inf": np.isinf}


def library_tolerance(dtype, ulp=1):
    """Frit computes in double too: only f64 sees the library's own last bit."""
    return Tolerance(2 * ulp if dtype == "f64" else ulp, 0)


def loose_tolerance(dtype, scale=1.0):
    """Of a handful of core ops, each rounded, whose largest intermediate is `scale`."""
    return Tolerance(8, 8 * epsilon(dtype) * scale)


def shape_classes(case, row, operands, apply):
    """The row on every shape class; `apply` takes the tensors and gives the result."""
    def give(name, values):
        texts = ", ".join(map(str, values))
        case.output(name, "%s %s" % (row, texts), apply([v.tensor for v in values]))

    bases = [case.input(operand) for operand in operands]
    give("odd", bases)
    for name, move in MOVES.items():
        give(name, [case.step(base, move) for base in bases])
    stretched = case.step(case.step(bases[0], MIDDLE), STRETCH)
    give("stretched", [stretched] + [case.step(base, HEAD) for base in bases[1:]])
    if len(bases) > 1:
        give("broadcast", bases[:-1] + [case.step(bases[-1], COLUMN)])
        give("broadcast_first", [case.step(bases[0], COLUMN)] + bases[1:])
    for name, shape in (("rank0", ()), ("ones", (1, 1, 1)), ("empty", (0, 3))):
        give(name, [case.input(sub_tensor(operand, shape)) for operand in operands])


def sub_tensor(tensor, shape):
    """Some random elements of a tensor (the corners come first) in another shape."""
    count = int(np.prod(shape))
    return tensor.moved(lambda a: a.reshape(-1)[a.size - count:].reshape(shape))


def larger(case, row, operands, apply):
    """Many elements, more than one pass of any buffer."""
    values = [case.input(operand) for operand in operands]
    case.output("larger", "%s %s" % (row, ", ".join(map(str, values))), apply(operands))


def unary(book, family, row, function, dtypes, low=-4, high=4, work=np.float64, tight=None, loose=None, out=None):
    """One operand; `function` works on `work` or on integers as they are."""
    def apply(tensors):
        return Tensor(out or tensors[0].dtype, function(tensors[0].wide(work)))

    for dtype in dtypes:
        case = book.case(family, row, dtype, tight(dtype) if tight else EXACT, loose and loose(dtype))
        rng = randoms(row, dtype)
        shape_classes(case, row, [mixed(dtype, BASE, rng, low, high)], apply)
        if dtype in ("f32", "i32"):
            larger(case, row, [mixed(dtype, (13, 41), rng, low, high)], apply)


def unary_rows(book):
    for row, (function, low, high) in LIBRARY.items():
        unary(book, "unary", row, function, FLOATS, low, high, LONG, library_tolerance, loose_tolerance)
    for row, function in PLAIN.items():
        unary(book, "unary", row, function, FLOATS, tight=lambda dtype: EXACT)
    for row, function in NUMERIC.items():
        unary(book, "unary", row, function, NUMBERS, tight=lambda dtype: EQUAL)
    for row, function in CLASSES.items():
        unary(book, "unary", row, function, FLOATS, out="bool")
    unary(book, "unary", "not", np.invert, INTS + ["bool"])
    for row, function in ACTIVATION.items():
        unary(book, "activation", row, function, FLOATS, -8, 8, np.float64, activation_tolerance, loose_tolerance)


def activation_tolerance(dtype):
    """gelu and log_sigmoid cancel where they are near 0, so that double's own last bit shows there."""
    return Tolerance(4 if dtype == "f64" else 1, 4 * epsilon("f64"))


# ---- two and three operands -----------------------------------------------------------------------------

def int_div(a, b):
    """Truncated; by zero 0; MIN / -1 wraps: NumPy's exact quotient after taking the remainder off."""
    return np.where(b == 0, a.dtype.type(0), (a - np.fmod(a, b)) // b)


def int_pow(a, b):
    """NumPy's wrapping power; a negative exponent leaves only 1 and -1 different from 0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    power = np.power(a, np.maximum(b, zero))
    below = np.where(a == one, one, zero)
    if np.iinfo(a.dtype).min:
        below = np.where(a == -one, np.where(b & one, -one, one), below)
    return np.where(b < zero, below, power)


def in_width(shift):
    """A shift by less than 0 or by the width and more gives 0."""
    def apply(a, b):
        width = np.iinfo(a.dtype).bits
        fits = (b >= 0) & (b < width)
        return np.where(fits, shift(a, np.where(fits, b, b.dtype.type(0))), a.dtype.type(0))
    return apply


BOTH = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
BINARY_FLOAT = {"div": np.divide, "rem": np.remainder}
BINARY_LIBRARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}
BINARY_INT = {"div": int_div, "rem": np.remainder, "pow": int_pow, "shl": in_width(np.left_shift),
              "shr": in_width(np.right_shift)}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
ORDER = {"maximum": np.maximum, "minimum": np.minimum}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}


def number(tensor):
    """An element as a scalar of the text form; repr gives back every float64."""
    value = tensor.data.item()
    return {True: "true", False: "false"}[value] if tensor.dtype == "bool" else repr(value)


def one(tensor, index):
    return tensor.moved(lambda a: a.reshape(-1)[index].reshape(()))


def with_scalars(case, row, operands, apply, places):
    """A number in place of each operand that may be one."""
    for place in places:
        for turn, index in enumerate((-1, 7)):
            scalar = one(operands[place], index)
            tensors = operands[:place] + [scalar] + operands[place + 1:]
            names = [str(case.input(t)) for t in tensors[:place]] + [number(scalar)]
            names += [str(case.input(t)) for t in tensors[place + 1:]]
            case.output("scalar_%d_%d" % (place, turn), "%s %s" % (row, ", ".join(names)), apply(tensors))


def every_pair(case, row, dtype, apply):
    """Each corner with each corner."""
    corners = edges(dtype)
    column, line = Tensor(dtype, corners.reshape(-1, 1)), Tensor(dtype, corners)
    names = case.input(column), case.input(line)
    case.output("corners", "%s %s, %s" % (row, *names), apply([column, line]))


def binary(book, row, function, dtypes, work=np.float64, tight=None, loose=None, out=None, low=-4, high=4,
           family="binary"):
    def apply(tensors):
        return Tensor(out or tensors[0].dtype, function(*(t.wide(work) for t in tensors)))

    for dtype in dtypes:
        case = book.case(family, row, dtype, tight(dtype) if tight else EXACT, loose and loose(dtype))
        rng = randoms(row, dtype)
        operands = [mixed(dtype, BASE, rng, low, high), mixed(dtype, BASE, rng, low, high, turn=9)]
        shape_classes(case, row, operands, apply)
        with_scalars(case, row, operands, apply, (0, 1))
        every_pair(case, row, dtype, apply)


def binary_rows(book):
    for row, function in BOTH.items():
        binary(book, row, function, NUMBERS)
    for row, function in BINARY_FLOAT.items():
        binary(book, row, function, FLOATS, tight=lambda dtype: EQUAL)
    for row, function in BINARY_LIBRARY.items():
        binary(book, row, function, FLOATS, LONG, library_tolerance)
    for row, function in BINARY_INT.items():
        binary(book, row, function, INTS)
    for row, function in BITS.items():
        binary(book, row, function, INTS + ["bool"])
    for row, function in ORDER.items():
        binary(book, row, function, REALS, tight=lambda dtype: EQUAL)
    for row, function in COMPARE.items():
        binary(book, row, function, REALS, out="bool")
    binary(book, "leaky_relu", lambda x, slope: np.where(x > 0, x, slope * x), FLOATS,
           tight=lambda dtype: EQUAL, loose=lambda dtype: EQUAL, family="activation")


def ternary(book, family, row, function, dtypes, places, make, tight, loose=None):
    def apply(tensors):
        return Tensor(tensors[places[0]].dtype, function(*(t.wide() for t in tensors)))

    for dtype in dtypes:
        case = book.case(family, row, dtype, tight(dtype), loose and loose(dtype))
        operands = make(dtype, randoms(row, dtype))
        shape_classes(case, row, operands, apply)
        with_scalars(case, row, operands, apply, places)


def ternary_rows(book):
    def masked(order):
        def make(dtype, rng):
            parts = {"m": Tensor("bool", rng.integers(0, 2, BASE)), "a": mixed(dtype, BASE, rng),
                     "b": mixed(dtype, BASE, rng, turn=9)}
            return [parts[letter] for letter in order]
        return make

    def bounds(dtype, rng):
        return [mixed(dtype, BASE, rng), mixed(dtype, BASE, rng, turn=9), mixed(dtype, BASE, rng, turn=40)]

    def line(dtype, rng):
        x = mixed(dtype, BASE, rng)
        return [x, Tensor(dtype, spread(dtype, x.data.size, rng, -1, 1).reshape(BASE)),
                Tensor(dtype, spread(dtype, x.data.size, rng, 0, 1).reshape(BASE))]

    exact = lambda dtype: EXACT
    ternary(book, "binary", "where", np.where, REALS, (1, 2), masked("mab"), exact)
    ternary(book, "binary", "mask_fill", lambda x, mask, value: np.where(mask, value, x), REALS, (2,),
            masked("amb"), exact)
    ternary(book, "binary", "clamp", lambda x, low, high: np.minimum(np.maximum(x, low), high), NUMBERS,
            (0, 1, 2), bounds, lambda dtype: EQUAL)
    ternary(book, "activation", "hard_sigmoid", lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), FLOATS,
            (0, 1, 2), line, lambda dtype: Tolerance(1, epsilon("f64")), loose_tolerance)


def cross_row(book):
    for dtype in NUMBERS:
        rng = randoms("cross", dtype)
        tight = Tolerance(1, 64 * epsilon("f64")) if dtype in FLOATS else EXACT
        loose = Tolerance(1, 64 * epsilon(dtype)) if dtype in FLOATS else EXACT
        case = book.case("binary", "cross", dtype, tight, loose)
        for name, shape, axis in (("last", (5, 3), -1), ("first", (3, 7), 0), ("middle", (2, 3, 5), 1),
                                  ("empty", (0, 3), 1), ("plain", (3,), 0)):
            a, b = (Tensor(dtype, spread(dtype, int(np.prod(shape)), rng).reshape(shape)) for _i in range(2))
            result = Tensor(dtype, np.cross(a.wide(), b.wide(), axis=axis))
            case.output(name, "cross %s, %s, axis=%d" % (case.input(a), case.input(b), axis), result)
        a, b = (Tensor(dtype, spread(dtype, 15, rng).reshape(3, 5)) for _i in range(2))
        turned = case.step(case.input(a), ("permute {}, order=[1, 0]", np.transpose))
        line = Tensor(dtype, b.data[:, 0].reshape(1, 3))
        case.output("broadcast", "cross %s, %s, axis=1" % (turned, case.input(line)),
                    Tensor(dtype, np.cross(a.wide().T, line.wide(), axis=1)))


def write(book):
    unary_rows(book)
    binary_rows(book)
    ternary_rows(book)
    cross_row(book)
