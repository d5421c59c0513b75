# SPDX-License-Identifier: Apache-2.0
"""Rows that move or convert elements: VIEW, COPY, CAST, JOIN."""
import numpy as np

from book import EXACT, FLOATS, INTS, NUMPY, REALS, Tensor
from samples import edges, mixed, randoms, spread

CUBE = (3, 5, 7)


def windows(a, axis, size, step):
    view = np.lib.stride_tricks.sliding_window_view(a, size, axis)
    return view[tuple(slice(None, None, step) if i == axis else slice(None) for i in range(view.ndim))]


# row: shape of the operand, text, the same by NumPy.
VIEWS = [
    ("reshape", CUBE, "reshape {}, dims=[5, 21]", lambda a: a.reshape(5, 21)),
    ("reshape", CUBE, "reshape {}, dims=[3, -1]", lambda a: a.reshape(3, 35)),
    ("reshape", CUBE, "reshape {}, dims=[105]", lambda a: a.reshape(105)),
    ("reshape", (1, 1), "reshape {}, dims=[]", lambda a: a.reshape(())),
    ("reshape", (), "reshape {}, dims=[1, 1]", lambda a: a.reshape(1, 1)),
    ("reshape", (0, 3), "reshape {}, dims=[2, 0]", lambda a: a.reshape(2, 0)),
    ("permute", CUBE, "permute {}, order=[2, 0, 1]", lambda a: a.transpose(2, 0, 1)),
    ("permute", CUBE, "permute {}, order=[-1, -2, -3]", lambda a: a.transpose(2, 1, 0)),
    ("permute", (0, 3), "permute {}, order=[1, 0]", lambda a: a.transpose(1, 0)),
    ("expand", (3, 1, 7), "expand {}, dims=[3, 4, -1]", lambda a: np.broadcast_to(a, (3, 4, 7))),
    ("expand", (5,), "expand {}, dims=[2, 3, 5]", lambda a: np.broadcast_to(a, (2, 3, 5))),
    ("expand", (), "expand {}, dims=[2, 3]", lambda a: np.broadcast_to(a, (2, 3))),
    ("expand", (1,), "expand {}, dims=[0]", lambda a: np.broadcast_to(a, (0,))),
    ("slice", CUBE, "slice {}, slices=[1:3, ::2, -3:]", lambda a: a[1:3, ::2, -3:]),
    ("slice", CUBE, "slice {}, slices=[::-1, 4:0:-2, -2:-7:-2]", lambda a: a[::-1, 4:0:-2, -2:-7:-2]),
    ("slice", CUBE, "slice {}, slices=[-9:9, 3:3, 2:100:3]", lambda a: a[-9:9, 3:3, 2:100:3]),
    ("slice", CUBE, "slice {}, slices=[:, 9:0:-1]", lambda a: a[:, 9:0:-1]),
    ("flip", CUBE, "flip {}, axes=[0, -1]", lambda a: a[::-1, :, ::-1]),
    ("flip", CUBE, "flip {}", lambda a: a[::-1, ::-1, ::-1]),
    ("unfold", CUBE, "unfold {}, axis=2, size=3, step=2", lambda a: windows(a, 2, 3, 2)),
    ("unfold", CUBE, "unfold {}, axis=0, size=3, step=1", lambda a: windows(a, 0, 3, 1)),
    ("transpose", CUBE, "transpose {}, axis=0, with=-1", lambda a: a.swapaxes(0, -1)),
    ("squeeze", (1, 5, 1, 7), "squeeze {}", lambda a: a.squeeze()),
    ("squeeze", (1, 5, 1, 7), "squeeze {}, axes=[2]", lambda a: a.squeeze(2)),
    ("unsqueeze", CUBE, "unsqueeze {}, axis=1", lambda a: np.expand_dims(a, 1)),
    ("unsqueeze", CUBE, "unsqueeze {}, axis=-1", lambda a: np.expand_dims(a, -1)),
]

# Views of views; after the first reshape no strides can express the rest.
CHAINS = {
    "turned_reshape": [("permute {}, order=[1, 0, 2]", lambda a: a.transpose(1, 0, 2)),
                       ("reshape {}, dims=[7, 15]", lambda a: a.reshape(7, 15)),
                       ("slice {}, slices=[::-2, 1:]", lambda a: a[::-2, 1:])],
    "flat_of_stretched": [("slice {}, slices=[:, 2:3]", lambda a: a[:, 2:3]),
                          ("expand {}, dims=[3, 2, 7]", lambda a: np.broadcast_to(a, (3, 2, 7))),
                          ("reshape {}, dims=[42]", lambda a: a.reshape(42))],
    "window_of_flipped": [("flip {}, axes=[1]", lambda a: a[:, ::-1]),
                          ("unfold {}, axis=1, size=2, step=3", lambda a: windows(a, 1, 2, 3)),
                          ("transpose {}, axis=0, with=3", lambda a: a.swapaxes(0, 3))],
}


def view_rows(book):
    for row in dict.fromkeys(view[0] for view in VIEWS):
        for dtype in REALS:
            case = book.case("view", row, dtype, EXACT)
            for name, shape, call, move in VIEWS:
                if name == row:
                    tensor = mixed(dtype, shape, randoms(row, dtype))
                    case.output(case.fresh("view"), call.format(case.input(tensor)), tensor.moved(move))


def copy_row(book):
    for dtype in REALS:
        case = book.case("view", "copy", dtype, EXACT)
        tensor = mixed(dtype, CUBE, randoms("copy", dtype))
        operand = case.input(tensor)
        case.output("plain", "copy %s" % operand, tensor)
        for name, chain in CHAINS.items():
            value = operand
            for step in chain:
                value = case.step(value, step)
            case.output(name, "copy %s" % value, value.tensor)
            case.output(name + "_read", "flip %s" % value, value.tensor.moved(np.flip))
        for name, shape in (("rank0", ()), ("ones", (1, 1)), ("empty", (2, 0)), ("larger", (37, 29))):
            part = mixed(dtype, shape, randoms("copy", dtype, name))
            case.output(name, "copy %s" % case.input(part), part)


def convert(tensor, to):
    """Floats to integers truncate, saturate and take NaN as 0; the rest is NumPy's own conversion."""
    if to == "bool":
        return Tensor(to, tensor.data != 0)
    if to in INTS and tensor.dtype in FLOATS:
        info, wide = np.iinfo(NUMPY[to]), np.trunc(tensor.wide(np.longdouble))
        return Tensor(to, np.clip(np.where(np.isnan(wide), 0, wide), info.min, info.max))
    return Tensor(to, tensor.data)


def halves(to):
    """What lies between two neighbours of a narrow float, and beyond its largest."""
    if to not in ("f16", "bf16", "f32"):
        return np.zeros(0)
    around = [1.0, 3.0, 1000.0, 2.0 ** -14, 2.0 ** -126, 65504.0]
    steps = [2.0 ** -11, 3 * 2.0 ** -11, 2.0 ** -11 + 2.0 ** -40, 2.0 ** -8, 3 * 2.0 ** -8, 2.0 ** -24, 3 * 2.0 ** -24]
    return np.array([x * (1 + s) for x in around for s in steps] + [65519.99, 65520.0, 3.3961e38, 3.4028235677973366e38])


def cast_row(book):
    for dtype in REALS:
        case = book.case("cast", "cast", dtype, EXACT)
        rng = randoms("cast", dtype)
        ranges = spread(dtype, 30, rng, -300, 300)
        whole = Tensor(dtype, np.concatenate([edges(dtype), ranges]))
        operand = case.input(whole)
        for to in REALS:
            case.output("to_" + to, "cast %s, dtype=%s" % (operand, to), convert(whole, to))
        if dtype in FLOATS:
            near = Tensor(dtype, np.array([2.0 ** 31, -2.0 ** 31, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64, 127.9, 128.0,
                                           -128.9, -129.0, 255.5, 256.0, -0.9, 65535.5, 4294967295.5, 0.99]))
            operand = case.input(near)
            for to in INTS:
                case.output("near_" + to, "cast %s, dtype=%s" % (operand, to), convert(near, to))
            ties = Tensor(dtype, np.concatenate([halves("f16")]))
            operand = case.input(ties)
            for to in FLOATS:
                case.output("ties_" + to, "cast %s, dtype=%s" % (operand, to), convert(ties, to))
        elif np.iinfo(np.uint8 if dtype == "bool" else NUMPY[dtype]).bits >= 32:
            big = Tensor(dtype, (2 ** np.arange(24, 31 if "32" in dtype else 63, dtype=np.int64))[:, None]
                         + np.array([1, 3, -1]) * 2 ** 0)
            operand = case.input(big)
            for to in FLOATS:
                case.output("ties_" + to, "cast %s, dtype=%s" % (operand, to), convert(big, to))
        turned = case.step(case.input(Tensor(dtype, np.resize(whole.data, (4, 6)))),
                           ("permute {}, order=[1, 0]", np.transpose))
        back = case.step(turned, ("slice {}, slices=[::-2]", lambda a: a[::-2]))
        for to in ("f64", "i32"):
            case.output("turned_" + to, "cast %s, dtype=%s" % (back, to), convert(back.tensor, to))
        for name, shape in (("rank0", ()), ("empty", (0, 2))):
            part = mixed(dtype, shape, rng)
            case.output(name, "cast %s, dtype=f32" % case.input(part), convert(part, "f32"))


# ---- joins ------------------------------------------------------------------------------------------------

def pad(a, value, low, high, inner):
    """Room between the elements first, then before and after; less than 0 crops."""
    spaced = np.full([max(n + (n - 1) * gap, 0) for n, gap in zip(a.shape, inner)], value, dtype=a.dtype)
    spaced[tuple(slice(None, None, gap + 1) for gap in inner)] = a
    grown = np.pad(spaced, [(max(l, 0), max(h, 0)) for l, h in zip(low, high)], constant_values=value)
    return grown[tuple(slice(max(-l, 0), n - max(-h, 0)) for l, h, n in zip(low, high, grown.shape))]


PADS = [((3, 5), (1, 0), (0, 2), (0, 0)), ((3, 5), (-1, 2), (1, -3), (0, 0)), ((3, 5), (0, 1), (1, 0), (2, 1)),
        ((4,), (2,), (3,), (0,)), ((0, 2), (1, 1), (2, 0), (0, 0)), ((3, 5), (-2, 0), (-1, -2), (1, 1)),
        ((2, 1, 3), (0, 1, 0), (0, 1, 0), (0, 0, 0))]


def join_rows(book):
    for dtype in REALS:
        rng = randoms("join", dtype)

        def operand(shape):
            return mixed(dtype, shape, rng, turn=int(rng.integers(0, 20)))

        case = book.case("join", "cat", dtype, EXACT)
        for axis, shapes in ((0, [(2, 3), (1, 3), (4, 3)]), (1, [(3, 2), (3, 0), (3, 5)]), (-1, [(2, 3, 1)] * 2),
                             (0, [(5,)]), (0, [(1, 2)] * 7)):
            parts = [operand(shape) for shape in shapes]
            names = ", ".join(str(case.input(part)) for part in parts)
            case.output(case.fresh("cat"), "cat %s, axis=%d" % (names, axis),
                        Tensor(dtype, np.concatenate([part.data for part in parts], axis)))
        first, second = operand((3, 5)), operand((4, 3))
        turned = case.step(case.input(first), ("permute {}, order=[1, 0]", np.transpose))
        back = case.step(case.input(second), ("slice {}, slices=[::-1]", lambda a: a[::-1]))
        case.output("turned", "cat %s, %s, axis=0" % (turned, back),
                    Tensor(dtype, np.concatenate([first.data.T, second.data[::-1]])))
        case.output("twice", "cat %s, %s, axis=1" % (turned, turned),
                    Tensor(dtype, np.concatenate([first.data.T, first.data.T], 1)))

        case = book.case("join", "stack", dtype, EXACT)
        for axis, shape, count in ((0, (2, 3), 3), (1, (2, 3), 2), (-1, (2, 3), 2), (0, (), 4), (0, (0,), 2)):
            parts = [operand(shape) for _part in range(count)]
            names = ", ".join(str(case.input(part)) for part in parts)
            case.output(case.fresh("stack"), "stack %s, axis=%d" % (names, axis),
                        Tensor(dtype, np.stack([part.data for part in parts], axis)))

        case = book.case("join", "repeat", dtype, EXACT)
        for axis, shape, times in ((0, (2, 3), 3), (1, (2, 3), 2), (-1, (2, 1, 3), 1), (0, (2, 3), 0), (0, (0, 3), 2)):
            part = operand(shape)
            case.output(case.fresh("repeat"), "repeat %s, axis=%d, times=%d" % (case.input(part), axis, times),
                        Tensor(dtype, np.concatenate([part.data] * times, axis) if times
                               else np.zeros((0, *shape[1:]))))

        case = book.case("join", "pad", dtype, EXACT)
        for shape, low, high, inner in PADS:
            part = operand(shape)
            value = mixed(dtype, (30,), rng).data[len(case.program)]
            text = {True: "true", False: "false"}[value.item()] if dtype == "bool" else repr(value.item())
            attrs = "low=%s, high=%s" % (list(low), list(high)) + (", inner=%s" % list(inner) if any(inner) else "")
            case.output(case.fresh("pad"), "pad %s, %s, %s" % (case.input(part), text, attrs),
                        Tensor(dtype, pad(part.data, value, low, high, inner)))
        back = case.step(case.input(operand((4, 6))), ("slice {}, slices=[::-1, ::2]", lambda a: a[::-1, ::2]))
        case.output("turned", "pad %s, 1, low=[1, 1], high=[0, 1]" % back,
                    Tensor(dtype, pad(back.tensor.data, 1, (1, 1), (0, 1), (0, 0))))


def write(book):
    view_rows(book)
    copy_row(book)
    cast_row(book)
    join_rows(book)
