# SPDX-License-Identifier: Apache-2.0
"""Rows of the class INIT."""

import numpy as np

from book import FLOATS, NUMBERS, REALS, Tensor
from samples import edges, mixed, number, randoms

SHAPES = {"rank0": (), "ones": (1, 1), "plain": (7,), "cube": (3, 5, 7), "empty": (0, 3)}
EYES = [(4, 4), (3, 5), (5, 3), (2, 3, 3), (1, 1), (0, 3)]


def full_rows(book, dtype):
    case = book.case("create", "full", dtype)
    corners = Tensor(dtype, edges(dtype))
    for i, value in enumerate(corners.data):
        text = number(corners.moved(lambda a: a[i]))
        case.give(None, [text], np.full(3, value), dtype=dtype, dims=(3,))
    for name, shape in SHAPES.items():
        case.give(name, ["1"], np.full(shape, 1), dtype=dtype, dims=shape)
    for row, make in (("zeros", np.zeros), ("ones", np.ones)):
        case = book.case("create", row, dtype)
        for name, shape in SHAPES.items():
            case.give(name, [], make(shape), dtype=dtype, dims=shape)


def eye_row(book, dtype):
    case = book.case("create", "eye", dtype)
    for shape in EYES:
        case.give(None, [], np.broadcast_to(np.eye(*shape[-2:]), shape), dtype=dtype, dims=shape)


def empty_row(book, dtype):
    """Has any contents, so the case overwrites them."""
    case = book.case("create", "empty", dtype)
    for name, shape in (("plain", (7,)), ("cube", (3, 5, 7)), ("ones", (1, 1))):
        values = mixed(dtype, shape, randoms("empty", dtype))
        room, operand = case.fresh("v"), case.input(values)
        case.program.append("  %s = %s" % (room, case.call(case.row, [], {"dtype": dtype, "dims": shape})))
        case.program.append(
            "  output %s = slice_assign %s, %s, slices=[:]" % (name, room, operand.name)
        )
        case.result(name, values)


# Start, step, count.
FLOAT_RANGES = [(0.0, 1.0, 9), (-1.5, 0.25, 33), (1e-3, 1e-4, 5), (1.0, -3.0, 0)]
RANGES = {
    "i": [(0, 1, 9), (-100, 7, 40), (5, -3, 12), (1, 1, 0)],
    "u": [(0, 1, 9), (200, 7, 40), (5, 3, 12), (1, 1, 0)],
}


def arange_row(book, dtype):
    """The numbers given are not rounded to the type first."""
    ranges = FLOAT_RANGES if dtype in FLOATS else RANGES[dtype[0]]
    case = book.case("create", "arange", dtype)
    for start, step, count in ranges:
        result = start + np.arange(count) * step
        case.give(None, [repr(start), repr(step)], result, dtype=dtype, dims=(count,))


def write(book):
    for dtype in REALS:
        full_rows(book, dtype)
        eye_row(book, dtype)
        empty_row(book, dtype)
    for dtype in NUMBERS:
        arange_row(book, dtype)
