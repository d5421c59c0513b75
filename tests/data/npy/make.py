#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .npy files beside it with NumPy: good ones for every element type, order and format version,
and kinds that Frit refuses.  tests/host/file/npy_test.c holds what it expects of each."""
import numpy as np
from numpy.lib import format as npy

for name in "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1".split():
    np.save(f"good-{name}.npy", np.arange(6).reshape(2, 3).astype(name))

cube = np.arange(24, dtype="f4").reshape(2, 3, 4)
np.save("good-fortran.npy", np.asfortranarray(cube))
np.save("good-fortran-bytes.npy", np.asfortranarray(np.arange(6, dtype="u1").reshape(2, 3)))
for version in (2, 3):
    with open(f"good-version-{version}.npy", "wb") as file:
        npy.write_array(file, cube, version=(version, 0))
np.save("good-rank-0.npy", np.float64(2.5))
np.save("good-empty.npy", np.zeros((0, 3), "i4"))
np.save("good-rank-8.npy", np.arange(2, dtype="i2").reshape(1, 1, 1, 2, 1, 1, 1, 1))
# bf16 as ml_dtypes saves it: two raw bytes; here 1.0, -2.0, 0.5.
np.save("good-bf16.npy", np.array([0x3F80, 0xC000, 0x3F00], "u2").view("V2"))

np.save("bad-big-endian.npy", np.arange(3).astype(">f4"))
np.save("bad-object.npy", np.array([1, "a"], object), allow_pickle=True)
np.save("bad-text.npy", np.array(["abc"]))
np.save("bad-bytes.npy", np.array([b"abc"]))
np.save("bad-complex.npy", np.array([1j], "c8"))
np.save("bad-date.npy", np.array(["2024-01-01"], "M8[D]"))
np.save("bad-struct.npy", np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")]))
np.save("bad-raw.npy", np.array([b"abcd"], "V4"))
np.save("bad-long-double.npy", np.array([1.0], np.longdouble))
np.save("bad-rank-9.npy", np.zeros((1,) * 9, "u1"))
