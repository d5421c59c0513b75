# SPDX-License-Identifier: Apache-2.0
# Writes the archives beside it: python3 make.py (NumPy 1.24).
import numpy as np

arrays = {
    "floats": np.arange(6, dtype="f4").reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6, dtype="i4").reshape(2, 3)),
    "none": np.zeros((0, 2), "f8"),
    "zeros": np.zeros(40000, "u1"),
    "flags": np.array([True, False]),
}
np.savez("stored.npz", **{name: array for name, array in arrays.items() if name != "zeros"})
np.savez_compressed("deflated.npz", **arrays)
