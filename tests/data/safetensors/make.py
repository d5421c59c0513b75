#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .safetensors files beside it with the packages safetensors 0.8.0, numpy and ml_dtypes of PyPI: every element type and
rank that Frit has, metadata, and two types that it refuses.  tests/host/api/safetensors_test.c holds what it expects of each."""
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

types = {
    "f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1",
    "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1", "bool": "?", "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e8m0": ml_dtypes.float8_e8m0fnu,
}
save_file({name: np.arange(6).reshape(2, 3).astype(dtype) for name, dtype in types.items()}, "types.safetensors")
ranks = {f"rank {n}": np.arange(2, dtype="f4").reshape((1,) * (n - 1) + (2,)) for n in range(1, 9)}
ranks |= {"rank 0": np.array(7, "f4"), "empty": np.zeros((0, 3), "i4"), 'naïve "名\n\\': np.ones(1, "u1")}
save_file(ranks, "ranks.safetensors", {"format": "np", "step": "17", "note": 'a "text"\twith é, 😀 and \x01'})
save_file({"good": np.zeros(2, "f4"), "wave": np.zeros(2, "c8")}, "complex.safetensors")
save_file({"deep": np.zeros((1,) * 9, "u1")}, "rank-9.safetensors")
