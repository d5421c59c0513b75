# SPDX-License-Identifier: Apache-2.0
"""Tensors: from values of Python and NumPy, and back."""
import array
import math
import numbers
import os
import sys
from ctypes import c_char

from . import _device, _library as library
from .dtypes import DTYPES

_names = {row[0]: name for name, row in DTYPES.items()}
# NumPy's bf16 would be raw bytes ("V2"), which it cannot compute with.
_of_numpy = {row[3]: name for name, row in DTYPES.items() if row[3] and row[3] != "V2"}
# What `array` and `memoryview` call the types that a number or a list becomes.
_codes = {"f64": "d", "f32": "f", "i64": "q", "i32": "i", "i16": "h", "i8": "b", "u64": "Q",
          "u32": "I", "u16": "H", "u8": "B", "bool": "?"}


def is_array(value):
    """Whether it is an array or a number of NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def dtype_name(dtype):
    """Frit's name of an element type given by that name, or by what NumPy takes for a dtype."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    if isinstance(dtype, type) and dtype in (float, int, bool):
        return {float: "f32", int: "i64", bool: "bool"}[dtype]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        try:
            name = _of_numpy.get(numpy.dtype(dtype).str[1:])
        except TypeError:
            name = None
        if name:
            return name
    raise TypeError(f"{dtype!r} is not an element type of Frit; there are: {', '.join(DTYPES)}")


def dtype_number(dtype):
    return DTYPES[dtype_name(dtype)][0]


def new_tensor(handle, device):
    """A Tensor that owns a handle."""
    result = Tensor.__new__(Tensor)
    result.handle = handle
    result.device = device
    return result


class Tensor:
    """A tensor on a device.  Ops on it are recorded, and run when a value is read.  Every op row
    whose first operand is a tensor is a method, too: x.gelu(), x.sum(axes=1)."""

    __slots__ = ("handle", "device", "__weakref__")
    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self):
        raise TypeError("frit.tensor(value) makes a tensor")

    def __del__(self):
        handle = getattr(self, "handle", None)  # none after __init__
        self.handle = None
        if handle and _device.is_open():
            library.release(handle)

    def check(self):
        """Raises the failure of the tensor if one is known; does not wait."""
        status = library.tensor_status(self.handle)
        if status:
            raise library.Error(library.text(library.status_name(status)),
                                library.text(library.tensor_error(self.handle)))

    # -- properties --

    @property
    def dtype(self):
        """The name of the element type, such as "f32"."""
        return _names.get(library.tensor_dtype(self.handle))

    @property
    def shape(self):
        dims = library.tensor_dims(self.handle)
        return tuple(dims.dim[:dims.rank])

    @property
    def ndim(self):
        return library.tensor_dims(self.handle).rank

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        return library.tensor_bytes(self.handle)

    # -- values --

    def read(self):
        """The elements, dense and in row-major order, as a bytearray.  Waits."""
        data = bytearray(self.nbytes)
        memory = (c_char * len(data)).from_buffer(data) if data else None
        library.check(library.read, self.handle, memory, len(data))
        return data

    def numpy(self):
        """A NumPy array with a copy of the elements; bf16 as float32, packed values as their
        bytes.  Waits."""
        import numpy
        dtype = self.dtype
        if dtype == "bf16":
            return self.cast("f32").numpy()
        packed = DTYPES[dtype][2] == "packed"
        result = numpy.empty(self.nbytes if packed else self.shape,
                             "u1" if packed else DTYPES[dtype][3])
        library.check(library.read, self.handle, result.ctypes.data, result.nbytes)
        return result

    def __array__(self, dtype=None, copy=None):
        result = self.numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    def tolist(self):
        """The elements as nested lists, of rank 0 as a number.  Waits."""
        if self.dtype in ("f16", "bf16"):
            return self.cast("f32").tolist()
        shape = self.shape
        items = memoryview(self.read()).cast(_codes.get(self.dtype, "B")).tolist()
        if self.dtype not in _codes:
            return items
        for axis in range(len(shape) - 1, 0, -1):
            n = math.prod(shape[:axis])
            items = [items[i * shape[axis]:(i + 1) * shape[axis]] for i in range(n)]
        return items if shape else items[0]

    def item(self):
        """The only element as a number.  Waits."""
        if self.size != 1:
            raise ValueError(f"a tensor of {self.size} elements is not one number")
        return self.reshape(()).tolist()

    def write(self, value):
        """Replaces the elements; results and views recorded before keep the old ones."""
        data, dtype, shape = _bytes_of(value, self.dtype)
        if (dtype, shape) != (self.dtype, self.shape):
            raise ValueError(f"{dtype}{list(shape)} cannot replace {self.dtype}{list(self.shape)}")
        library.check(library.write, self.handle, *_memory(data))

    def to(self, device):
        """A copy on a device, which may be its own."""
        device = _device.device(device)
        return new_tensor(library.check_tensor(library.to_device(self.handle, device.handle)),
                          device)

    def save(self, path):
        """Writes a .npy file; packed values as bytes."""
        library.check(library.save_npy, self.handle, os.fsencode(path))

    def packed(self, dtype, shape):
        """The bytes of this tensor, of elements of 8 bits, as packed values."""
        return new_tensor(library.check_tensor(library.as_packed(
            self.handle, dtype_number(dtype), library.dims_of(shape))), self.device)

    def __repr__(self):
        return f"<frit.Tensor {self.dtype}{list(self.shape)} on {self.device.name}>"

    # -- as a number, a sequence --

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        if DTYPES[self.dtype][2] not in ("int", "uint"):
            raise TypeError(f"{self.dtype} is no integer")
        return int(self.item())

    def __len__(self):
        if not self.ndim:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        """Integers, slices, ... and None, as in NumPy."""
        return _index(self, index if isinstance(index, tuple) else (index,))

    __hash__ = object.__hash__


def _index(x, items):
    shape = x.shape
    dims = sum(item is not None and item is not Ellipsis for item in items)
    if dims > len(shape) or sum(item is Ellipsis for item in items) > 1:
        raise IndexError(f"{len(items)} indices for a tensor of rank {len(shape)}")
    if Ellipsis not in [item if item is Ellipsis else 0 for item in items]:
        items += (Ellipsis,)
    ranges, result, axis = [], [], 0
    for item in items:
        if item is None:
            result.append(1)
            continue
        n = len(shape) - dims if item is Ellipsis else 1
        for extent in shape[axis:axis + n]:
            if item is Ellipsis:
                ranges.append(None)
                result.append(extent)
            elif isinstance(item, slice):
                ranges.append(item)
                result.append(len(range(*item.indices(extent))))
            else:
                number = item.__index__()
                if not -extent <= number < extent:
                    raise IndexError(f"index {number} for an extent of {extent}")
                ranges.append(slice(number % extent, number % extent + 1))
        axis += n
    if any(item is not None for item in ranges):
        x = x.slice(ranges)
    return x.reshape(result) if x.shape != tuple(result) else x


# ---- from values ----


def _flatten(value, shape, out):
    if not isinstance(value, (list, tuple)):
        if shape:
            raise ValueError("lists of different lengths")
        out.append(value)
        return
    if not shape or len(value) != shape[0]:
        raise ValueError("lists of different lengths")
    for item in value:
        _flatten(item, shape[1:], out)


def _bytes_of_list(value, dtype):
    shape, first, items = [], value, []
    while isinstance(first, (list, tuple)):
        shape.append(len(first))
        first = first[0] if first else 0.0
    _flatten(value, shape, items)
    if dtype is None:
        dtype = ("bool" if all(isinstance(item, bool) for item in items) and items else
                 "i64" if all(isinstance(item, numbers.Integral) for item in items) and items else
                 "f32")
    dtype = dtype_name(dtype)
    if dtype == "bool":
        return bytes(map(bool, items)), dtype, tuple(shape)
    if dtype not in _codes:
        raise TypeError(f"numbers become {dtype} by frit.tensor(value).cast({dtype!r})")
    return array.array(_codes[dtype], items), dtype, tuple(shape)


def _bytes_of(value, dtype=None):
    """Dense elements, their type and shape."""
    if not is_array(value):
        return _bytes_of_list(value, dtype)
    import numpy
    name = dtype_name(value.dtype if dtype is None else dtype)
    shape = value.shape
    return numpy.ascontiguousarray(value, "<" + DTYPES[name][3]), name, shape


def _memory(data):
    """Address and size."""
    if is_array(data):
        return data.ctypes.data, data.nbytes
    if isinstance(data, bytes):
        return data, len(data)
    return data.buffer_info()[0], len(data) * data.itemsize


def _copy_of_exported(value, device):
    from ._dlpack import from_dlpack
    shared = from_dlpack(value, device)
    data = shared.read()
    memory = (c_char * len(data)).from_buffer(data) if data else None
    return new_tensor(library.check_tensor(library.from_host(
        shared.device.handle, dtype_number(shared.dtype), library.dims_of(shared.shape), memory,
        len(data))), shared.device)


def tensor(value, dtype=None, device=None):
    """A tensor with a copy of a NumPy array, an array of another library (DLPack), a number or
    nested lists (floats become f32, integers i64), on a device (default: frit.device()); of a
    Tensor: itself, cast or copied as needed."""
    if isinstance(value, Tensor):
        if device is not None and _device.device(device) is not value.device:
            value = value.to(device)
        return value if dtype in (None, value.dtype) else value.cast(dtype)
    if hasattr(value, "__dlpack__") and not is_array(value):
        return tensor(_copy_of_exported(value, device), dtype)
    if dtype is not None and dtype_name(dtype) not in _codes:
        wide = tensor(value, None if is_array(value) else "f32", device)
        return wide if wide.dtype == dtype_name(dtype) else wide.cast(dtype)
    device = _device.device(device)
    data, name, shape = _bytes_of(value, dtype)
    return new_tensor(library.check_tensor(library.from_host(
        device.handle, DTYPES[name][0], library.dims_of(shape), *_memory(data))), device)
