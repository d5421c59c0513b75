# SPDX-License-Identifier: Apache-2.0
"""Cases and packs: what the other files of this folder fill and make.py writes.

A case is a text program with its inputs and the results it must give.  All elements lie in one pack
per element type, the same bytes only once; a case names them by their place.  Values are computed
wide (float64, long double where a library function is at work) from inputs that the element type
can hold, and rounded once.
"""

import pathlib

import numpy as np

FLOATS = ["f64", "f32", "f16", "bf16"]
SIGNED = ["i64", "i32", "i16", "i8"]
UNSIGNED = ["u64", "u32", "u16", "u8"]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
REALS = NUMBERS + ["bool"]

NUMPY = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u64": np.uint64,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
    "bool": np.bool_,
}

# Bits of precision, exponents of the smallest and the largest normal number.
FORMATS = {
    "f64": (53, -1022, 1023),
    "f32": (24, -126, 127),
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
}


def epsilon(dtype):
    return 2.0 ** (1 - FORMATS[dtype][0])


def round_float(dtype, wide):
    """To nearest, ties to even, in one step from float64 or long double."""
    wide = np.asarray(wide)
    wide = wide.astype(np.promote_types(wide.dtype, np.float64))
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
    """Bit for bit (any NaN for a NaN), or units in the last place or an absolute distance."""

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


# Views that stand before a row: their text and the same on a NumPy array.


def permuted(*order):
    return "permute {}, order=%s" % list(order), lambda a: a.transpose(order)


def sliced(text):
    place = eval("numpy.s_[%s]" % text, {"numpy": np})
    return "slice {}, slices=[%s]" % text, lambda a: a[place]


def flipped(*axes):
    return "flip {}, axes=%s" % list(axes), lambda a: np.flip(a, axes)


def expanded(*dims):
    return "expand {}, dims=%s" % list(dims), lambda a: np.broadcast_to(a, dims)


def attribute(name, value):
    """As the text form has it; a string stands as it is."""
    return ", %s=%s" % (name, list(value) if isinstance(value, tuple) else value)


class Case:
    """One program for one row and element type.  `loose` holds where the row runs as core ops."""

    def __init__(self, book, row, dtype, tight=EXACT, loose=None, seed=None):
        self.book = book
        self.row = row
        self.dtype = dtype
        self.head = ["case %s %s" % (row, dtype), "tight " + tight.text()]
        if loose:
            self.head.append("loose " + loose.text())
        if seed is not None:
            self.head.append("seed %d" % seed)
        self.inputs = {}
        self.places = []
        self.program = []
        self.names = 0

    def fresh(self, letter):
        self.names += 1
        return "%s%d" % (letter, self.names)

    def place(self, tensor):
        """Type, dims and place of the elements, as text."""
        return "%s @%d" % (tensor.text(), self.book.pack(tensor).place(tensor))

    def input(self, tensor, *views):
        """An operand, seen through views; the same elements in the same dims are the same input."""
        place = self.place(tensor)
        if place not in self.inputs:
            self.inputs[place] = Operand(self.fresh("x"), tensor)
            self.places.append("in %s %s" % (self.inputs[place].name, place))
        return self.view(self.inputs[place], *views)

    def view(self, operand, *views):
        for text, move in views:
            name = self.fresh("v")
            self.program.append("  %s = %s" % (name, text.format(operand.name)))
            operand = Operand(name, operand.tensor.moved(move))
        return operand

    def call(self, row, operands, attrs):
        """A row of operands, which are tensors, operands, numbers as text, or None: absent."""
        names = []
        for operand in operands:
            if isinstance(operand, Tensor):
                operand = self.input(operand)
            names.append(operand.name if isinstance(operand, Operand) else operand or "none")
        text = ", ".join(names) + "".join(attribute(*item) for item in attrs.items())
        return "%s %s" % (row, text.removeprefix(", "))

    def step(self, row, operands, **attrs):
        """A value on the way, with no result of its own."""
        name = self.fresh("v")
        self.program.append("  %s = %s" % (name, self.call(row, operands, attrs)))
        return Operand(name, None)

    def result(self, name, result):
        tensor = result if isinstance(result, Tensor) else Tensor(self.dtype, result)
        self.places.append("out %s %s" % (name, self.place(tensor)))

    def give(self, name, operands, result, row=None, **attrs):
        """One call and its result: a tensor, or an array for the case's element type."""
        name = name or self.fresh("y")
        call = self.call(row or self.row, operands, attrs)
        self.program.append("  output %s = %s" % (name, call))
        self.result(name, result)

    def give_many(self, operands, results, **attrs):
        """The same of a row with several results."""
        names = [self.fresh("y") for _ in results]
        call = self.call(self.row, operands, attrs)
        self.program.append("  %s = %s" % (", ".join(names), call))
        for name, result in zip(names, results):
            self.program.append("  output %s" % name)
            self.result(name, result)

    def give_two(self, operands, first, second, **attrs):
        self.give_many(operands, (first, second), **attrs)

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
