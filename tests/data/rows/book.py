# SPDX-License-Identifier: Apache-2.0
"""Cases and packs: what the other files of this folder fill and make.py writes.

A case is a text program with its inputs and the results it must give.  All elements lie in one pack per
element type, the same bytes only once; a case names them by their place.  Values are computed wide (float64,
long double where a library function is at work) from inputs that the element type can hold, and rounded once.
"""
import pathlib

import numpy as np

FLOATS = ["f64", "f32", "f16", "bf16"]
SIGNED = ["i64", "i32", "i16", "i8"]
UNSIGNED = ["u64", "u32", "u16", "u8"]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
REALS = NUMBERS + ["bool"]

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.float32,
         "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
         "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_}

# Bits of precision, exponents of the smallest and the largest normal number.
FORMATS = {"f64": (53, -1022, 1023), "f32": (24, -126, 127), "f16": (11, -14, 15), "bf16": (8, -126, 127)}


def epsilon(dtype):
    return 2.0 ** (1 - FORMATS[dtype][0])


def round_float(dtype, wide):
    """To nearest, ties to even, in one step from float64 or long double."""
    wide = np.asarray(wide)
    if dtype == "f64":
        return wide.astype(np.float64)
    precision, low, high = FORMATS[dtype]
    exponent = np.maximum(np.frexp(wide)[1] - 1, low) - (precision - 1)
    near = np.ldexp(np.rint(np.ldexp(wide, -exponent)), exponent)
    near = np.where(np.abs(near) >= 2.0 ** (high + 1), np.copysign(np.inf, wide), near)
    return near.astype(NUMPY[dtype])


class Tensor:
    """Elements of one type; bf16 ones are held as the float32 numbers they stand for."""

    def __init__(self, dtype, values):
        values = np.asarray(values)
        self.dtype = dtype
        if dtype in FLOATS:
            values = values if values.dtype.kind == "f" else values.astype(np.longdouble)
            self.data = round_float(dtype, values)
        else:
            self.data = values.astype(NUMPY[dtype])

    @property
    def shape(self):
        return self.data.shape

    def moved(self, move):
        """Some of the elements at other places, as `move` takes them from an array."""
        tensor = Tensor(self.dtype, [])
        tensor.data = move(self.data)
        return tensor

    def wide(self, work=np.float64):
        """As a type to compute in: floats as `work`, others as they are."""
        return self.data.astype(work) if self.dtype in FLOATS else self.data

    def stored(self):
        flat = np.ascontiguousarray(self.data).reshape(-1)
        if self.dtype == "bf16":
            return (flat.view(np.uint32) >> 16).astype("<u2")
        return flat

    def text(self):
        return "%s[%s]" % (self.dtype, ", ".join(map(str, self.shape)))


class Pack:
    """All elements of one type, one after another."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.parts = []
        self.count = 0
        self.known = {}

    def place(self, tensor):
        data = tensor.stored()
        key = data.tobytes()
        if key not in self.known:
            self.known[key] = self.count
            self.parts.append(data)
            self.count += data.size
        return self.known[key]

    def write(self, folder):
        data = np.concatenate(self.parts)
        if self.dtype == "bf16":
            data = data.view("V2")
        np.save(folder / (self.dtype + ".npy"), data)


class Tolerance:
    """Bit for bit (any NaN for a NaN), or units in the last place, or if that fails an absolute distance."""

    def __init__(self, ulp=None, absolute=0.0):
        self.ulp = ulp
        self.absolute = absolute

    def text(self):
        if self.ulp is None:
            return "exact"
        return "ulp %d" % self.ulp + (" abs %.3g" % self.absolute if self.absolute else "")


EXACT = Tolerance()
EQUAL = Tolerance(ulp=0)


class Operand:
    """A name in a program and the tensor it stands for."""

    def __init__(self, name, tensor):
        self.name = name
        self.tensor = tensor

    def __str__(self):
        return self.name


class Case:
    """One program.  `loose` is the tolerance where the row runs as several core rows."""

    def __init__(self, book, row, dtype, tight, loose=None, seed=None):
        self.book = book
        self.head = ["case %s %s" % (row, dtype), "tight " + tight.text()]
        if loose:
            self.head.append("loose " + loose.text())
        if seed is not None:
            self.head.append("seed %d" % seed)
        self.row = row
        self.places = []
        self.program = []
        self.names = 0

    def fresh(self, letter):
        self.names += 1
        return "%s%d" % (letter, self.names)

    def place(self, word, name, tensor):
        self.places.append("%s %s %s @%d" % (word, name, tensor.text(), self.book.pack(tensor).place(tensor)))

    def input(self, tensor):
        operand = Operand(self.fresh("x"), tensor)
        self.place("in", operand.name, tensor)
        return operand

    def step(self, operand, view):
        """A view op before the row under test: its text and the same on a NumPy array."""
        name = self.fresh("v")
        self.program.append("  %s = %s" % (name, view[0].format(operand)))
        return Operand(name, operand.tensor.moved(view[1]))

    def output(self, name, call, tensor):
        self.program.append("  output %s = %s" % (name, call))
        self.place("out", name, tensor)

    def outputs(self, call, **tensors):
        """Several results of one op."""
        self.program.append("  %s = %s" % (", ".join(tensors), call))
        for name, tensor in tensors.items():
            self.program.append("  output %s" % name)
            self.place("out", name, tensor)

    def text(self):
        return "\n".join(self.head + self.places + self.program) + "\n"


class Book:
    """All cases, by family."""

    def __init__(self):
        self.packs = {}
        self.families = {}

    def pack(self, tensor):
        return self.packs.setdefault(tensor.dtype, Pack(tensor.dtype))

    def case(self, family, *args, **named):
        case = Case(self, *args, **named)
        self.families.setdefault(family, []).append(case)
        return case

    def write(self, folder):
        folder = pathlib.Path(folder)
        for old in [*folder.glob("*.cases"), *folder.glob("*.npy")]:
            old.unlink()
        for family, cases in self.families.items():
            text = "\n".join(case.text() for case in cases)
            (folder / (family + ".cases")).write_text("# Written by make.py.\n\n" + text)
        for pack in self.packs.values():
            pack.write(folder)
