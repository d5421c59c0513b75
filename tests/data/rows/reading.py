# SPDX-License-Identifier: Apache-2.0
"""The bits of elements read as another type."""

import numpy as np

from book import NUMPY, REALS, Tensor
from book import permuted, sliced
from samples import mixed, randoms

# What has a given number of bytes; bf16 has no NumPy type whose bits could be read.
BY_WIDTH = {1: ("i8", "u8"), 2: ("f16", "i16", "u16"), 4: ("f32", "i32", "u32"), 8: ("f64", "i64", "u64")}


def write(book):
    """bitcast of every type to those of its width; not to bool, and NaN only as patterns of integers."""
    for dtype in REALS:
        if dtype == "bf16":
            continue
        case = book.case("bits", "bitcast", dtype)
        tensor = mixed(dtype, (3, 5, 7), randoms("bitcast", dtype))
        data = np.asarray(tensor.data).astype(NUMPY[dtype])
        turned = case.input(tensor, permuted(2, 0, 1), sliced("::-2"))
        for to in BY_WIDTH[data.itemsize]:
            bits = Tensor(to, data.view(NUMPY[to]))
            case.give("dense_%s" % to, [tensor], bits, dtype=to)
            moved = bits.moved(lambda a: a.transpose(2, 0, 1)[::-2])
            case.give("turned_%s" % to, [turned], moved, dtype=to)
        single = Tensor(dtype, data.reshape(-1)[0])
        case.give("rank0", [single], Tensor(to, single.data.view(NUMPY[to])), dtype=to)
