# SPDX-License-Identifier: Apache-2.0
"""Rows of the class SORT.  NaN stands last in either direction, equal elements keep their order."""

import numpy as np

from book import REALS, Tensor
from book import expanded, permuted, sliced
from samples import edges, mixed, randoms, smooth

VIEWS = {
    "permuted": permuted(2, 0, 1),
    "reversed": sliced("::-1, 3:0:-2, 1::3"),
    "stretched": expanded(2, 3, 4, 5),
}


def order_of(line, descending):
    """NumPy sorts upwards and puts NaN last."""
    if not descending:
        return np.argsort(line, kind="stable")
    order = line.size - 1 - np.argsort(line[::-1], kind="stable")[::-1]
    nan = np.isnan(line[order]) if line.dtype.kind == "f" else np.zeros(line.size, bool)
    return np.concatenate([order[~nan], order[nan]])


def places(x, axis, descending):
    if x.size == 0:
        return np.zeros(x.shape, np.int64)
    return np.apply_along_axis(order_of, axis, x, descending)


def ties(dtype, shape, rng):
    """Few different numbers, corners among them."""
    corners = edges(dtype)
    return Tensor(dtype, rng.choice(corners, shape))


def operands(case, dtype, rng):
    """Name, operand, axis."""
    cube = case.input(ties(dtype, (3, 4, 5), rng))
    for axis in (0, 1, 2, -1):
        yield None, cube, axis
    for name, view in VIEWS.items():
        yield name, case.view(cube, view), 1
    yield "stretched_along", case.view(cube, sliced(":, 0:1, :"), expanded(3, 3, 5)), 1
    yield "corners", case.input(mixed(dtype, (2, 37), rng)), 1
    yield "larger", case.input(smooth(dtype, (301,), rng)), 0
    yield "ones", case.input(smooth(dtype, (1, 1), rng)), 0
    yield "no_rows", case.input(smooth(dtype, (0, 3), rng)), 1
    yield "of_nothing", case.input(smooth(dtype, (3, 0), rng)), 1


def sort_row(book, dtype):
    rng = randoms("sort", dtype)
    case = book.case("sort", "sort", dtype)
    for turn, (_, x, axis) in enumerate(operands(case, dtype, rng)):
        order = places(x.tensor.data, axis, turn % 2)
        result = x.tensor.moved(lambda a: np.take_along_axis(a, order, axis))
        attrs = {"axis": axis} | ({"descending": 1} if turn % 2 else {})
        if turn % 3:
            case.give_two([x], result, Tensor("i64", order), **attrs)
        else:
            case.give(None, [x], result, **attrs)


def argsort_row(book, dtype):
    rng = randoms("argsort", dtype)
    case = book.case("sort", "argsort", dtype)
    for turn, (name, x, axis) in enumerate(operands(case, dtype, rng)):
        attrs = {"axis": axis} | ({} if turn % 2 else {"descending": 1})
        order = places(x.tensor.data, axis, turn % 2 == 0)
        case.give(name, [x], Tensor("i64", order), **attrs)


def topk_row(book, dtype):
    rng = randoms("topk", dtype)
    case = book.case("sort", "topk", dtype)
    for turn, (_, x, axis) in enumerate(operands(case, dtype, rng)):
        extent = x.tensor.shape[axis]
        count = (extent, extent // 2, min(extent, 1), 0)[turn % 4]
        order = np.take(places(x.tensor.data, axis, True), range(count), axis)
        result = x.tensor.moved(lambda a: np.take_along_axis(a, order, axis))
        case.give_two([x], result, Tensor("i64", order), axis=axis, k=count)


def write(book):
    for dtype in REALS:
        sort_row(book, dtype)
        argsort_row(book, dtype)
        topk_row(book, dtype)
