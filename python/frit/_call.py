# SPDX-License-Identifier: Apache-2.0
"""Recording an op: operands and attributes of Python as those of frit_op_named."""
import ctypes
import numbers
import struct
from ctypes import byref, c_int64, c_void_p

from . import _library as library
from ._device import device as find_device
from ._tensor import Tensor, dtype_number, is_array, new_tensor, tensor

# What an attribute is; a dict: one of its words.
INT, LIST, VEC, SLICES, REAL, DTYPE = range(6)

_END = 2**63 - 1  # FRIT_SLICE_END
_I64, _U64, _F64 = 2, 3, 1  # FRIT_SCALAR_*
_double, _bits = struct.Struct("<d"), struct.Struct("<Q")


class Row:
    """A row of the op table."""

    __slots__ = ("name", "n_out", "attrs")

    def __init__(self, name, n_out, attrs):
        self.name = name.encode()
        self.n_out = n_out
        self.attrs = tuple((attr.encode(), kind) for attr, kind in attrs)


# ---- operands ----


def _scalar(value):
    if type(value) is not float and isinstance(value, numbers.Integral):  # bool too
        value = int(value)
        if not -(2**63) <= value < 2**64:
            raise OverflowError(f"{value} has more than 64 bits")
        return library.Scalar(_I64 if value < 2**63 else _U64, 0, value & (2**64 - 1))
    return library.Scalar(_F64, 0, _bits.unpack(_double.pack(value))[0])


def _is_number(value):
    return type(value) in (float, int) or isinstance(value, numbers.Real) or (is_array(value) and value.ndim == 0)


def _operands(row, values, device):
    """The inputs of a call, the tensors among them, and the device."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    device = tensors[0].device if tensors else find_device(device)
    inputs = (library.Input * len(values))()
    for i, value in enumerate(values):
        if value is None:
            continue
        if not isinstance(value, Tensor) and _is_number(value):
            inputs[i].scalar = _scalar(value.item() if is_array(value) else value)
            continue
        if not isinstance(value, Tensor):
            if not is_array(value):
                raise TypeError(f"{row.name.decode()}: operand {i} is a {type(value).__name__}: "
                                "neither a tensor nor a number")
            value = tensor(value, device=device)
            tensors.append(value)
        inputs[i].tensor = value.handle
    return inputs, tensors, device


# ---- attributes ----


def _range(item, extent):
    """start, stop, step of Frit for a slice, a (start, stop, step) or None."""
    if item is None:
        return 0, 0, 0
    if not isinstance(item, slice):
        item = slice(*item)
    start, stop, step = item.indices(extent)
    return start, (_END if stop < 0 else stop), step


def _numbers(kind, value, values):
    rank = next((len(x.shape) for x in values if isinstance(x, Tensor)), 0)
    if kind is SLICES:
        shape = next(x.shape for x in values if isinstance(x, Tensor))
        return [n for item, extent in zip(value, shape) for n in _range(item, extent)]
    if isinstance(value, numbers.Integral):
        return [value] * (max(1, rank - 2) if kind is VEC else 1)
    return list(value)


def _fill(attr, row, name, kind, value, values):
    """Fills an attribute; returns what must live until the call."""
    attr.name = name
    if kind in (LIST, VEC, SLICES):
        items = _numbers(kind, value, values)
        array = (c_int64 * max(1, len(items)))(*items)
        attr.list, attr.n_list = array, len(items)
        return array
    if isinstance(kind, dict):
        if value not in kind:
            raise ValueError(f"{row.name.decode()}: {name.decode()} is {value!r}; there are: "
                             f"{', '.join(kind)}")
        value = kind[value]
    elif kind is DTYPE:
        value = dtype_number(value)
    elif kind is REAL:
        value = float(value)
    attr.value = _scalar(value)
    return None


# ---- the call ----


def call(row, values, attrs, more=(), device=None):
    """Records an op.  `more`: which of the results that may be absent are wanted.  Returns the
    result, a tuple if there are several, None if there is none."""
    inputs, tensors, device = _operands(row, values, device)
    given = [(item, value) for item, value in zip(row.attrs, attrs) if value is not None]
    array = (library.Attr * len(given))()
    alive = [_fill(array[i], row, item[0], item[1], value, values)
             for i, (item, value) in enumerate(given)]
    n_out = row.n_out
    if any(more):
        n_out += max(i + 1 for i, wanted in enumerate(more) if wanted)
    out = (c_void_p * n_out)()
    named = library.NamedCall(ctypes.sizeof(library.NamedCall), row.name, inputs, len(inputs),
                              array, len(array))
    library.op_named(device.handle, byref(named), out, n_out)
    del alive, tensors
    if n_out == 0:
        return None
    results = [new_tensor(handle, device) for handle in out]
    for result in results:
        result.check()
    if n_out > row.n_out:
        results[row.n_out:] = [x for x, wanted in zip(results[row.n_out:], more) if wanted]
    return results[0] if len(results) == 1 else tuple(results)


def op(name, *operands, outputs=1, device=None, **attrs):
    """An op by its name, custom ops of plugins ("org.example.op/1") too.  Attributes are numbers,
    floats for real ones, or lists of numbers."""
    kinds = {True: LIST, False: INT}
    row = Row(name, outputs, [(attr, REAL if isinstance(value, float) else
                               kinds[not isinstance(value, numbers.Number)])
                              for attr, value in attrs.items()])
    return call(row, operands, tuple(attrs.values()), device=device)
