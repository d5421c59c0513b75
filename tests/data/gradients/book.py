# SPDX-License-Identifier: Apache-2.0
"""Cases with their inputs, and packs of the gradients that PyTorch gives: what rows.py and programs.py fill.

Inputs are drawn by splitmix64 (Steele et al. 2014) from a seed that the case names, so that only results are stored.
"""

import numpy as np
import torch

MASK = (1 << 64) - 1
NUMPY = {"f64": np.float64, "f32": np.float32}
TORCH = {"f64": torch.float64, "f32": torch.float32}
FACTORS = 900000  # seed of the first output's factors


def draws(seed, count):
    """`count` numbers of 0 .. 1."""
    numbers, state = np.empty(count), seed
    for i in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        numbers[i] = ((z ^ (z >> 31)) >> 11) * 2.0**-53
    return numbers


class Input:
    """Reals of low .. high, rounded down to multiples of 1 / parts unless that is 0; integers; or bools."""

    def __init__(self, kind, dims, low, high, parts=0):
        self.kind, self.dims, self.low, self.high, self.parts = kind, list(dims), low, high, parts

    def is_real(self):
        return self.kind == "real"

    def dtype(self, real):
        return real if self.is_real() else self.kind

    def values(self, seed):
        numbers = draws(seed, int(np.prod(self.dims)))
        if not self.is_real():
            return np.floor(self.low + (self.high + 1 - self.low) * numbers).astype(np.int64).reshape(self.dims)
        numbers = self.low + (self.high - self.low) * numbers
        return (np.floor(numbers * self.parts) / self.parts if self.parts else numbers).reshape(self.dims)


def real(*dims, low=-2.0, high=2.0, parts=0):
    return Input("real", dims, low, high, parts)


def integer(*dims, low=0, high):
    return Input("i64", dims, low, high)


def truth(*dims):
    return Input("bool", dims, 0, 1)


class Book:
    def __init__(self):
        self.text = ["# Written by make.py.", ""]
        self.packs = {"f64": [], "f32": []}
        self.counts = {"f64": 0, "f32": 0}
        self.seed = 0

    def place(self, dtype, tensor):
        data = tensor.detach().numpy().reshape(-1).astype(NUMPY[dtype])
        place = self.counts[dtype]
        self.packs[dtype].append(data)
        self.counts[dtype] += data.size
        return place

    def draw(self, inputs, dtype):
        tensors = {}
        for k, (name, one) in enumerate(inputs.items()):
            values = torch.from_numpy(one.values(self.seed + k))
            if one.is_real():
                tensors[name] = values.to(TORCH[dtype]).requires_grad_()
            else:
                tensors[name] = values.bool() if one.kind == "bool" else values
        return tensors

    def case(self, row, dtype, inputs, lines, run, losses=False):
        """`run` returns the program's float outputs from the inputs by name.  Losses are stored and added; other outputs are multiplied by
        factors and summed."""
        tensors = self.draw(inputs, dtype)
        results = run(tensors)
        results = results if isinstance(results, (tuple, list)) else [results]
        total = 0
        for k, result in enumerate(results):
            factors = torch.from_numpy(2 * draws(FACTORS + k, result.numel()) - 1).reshape(result.shape)
            total = total + (result if losses else (result * factors.to(TORCH[dtype])).sum())
        total.backward()
        self.text.append("case %s %s" % (row, dtype))
        for k, (name, one) in enumerate(inputs.items()):
            self.text.append("in %s %s%s %d %r %r %d" % (name, one.dtype(dtype), one.dims, self.seed + k, one.low, one.high,
                                                       one.parts))
        for result in results:
            if losses:
                self.text.append("loss @%d" % self.place(dtype, result))
        for name, one in inputs.items():
            if one.is_real():
                grad = tensors[name].grad
                grad = torch.zeros_like(tensors[name]) if grad is None else grad
                self.text.append("grad %s @%d" % (name, self.place(dtype, grad)))
        self.text += ["  " + line for line in lines] + [""]
        self.seed += len(inputs)

    def write(self, folder, name):
        with open(folder / (name + ".cases"), "w") as file:
            file.write("\n".join(self.text) + "\n")
        for dtype, parts in self.packs.items():
            if parts:
                np.save(folder / ("%s.%s.npy" % (name, dtype)), np.concatenate(parts))
