# SPDX-License-Identifier: Apache-2.0
"""Tensors from and to other libraries of the process by DLPack: capsules of Python around what
frit/dlpack.h gives and takes.  Frit waits itself, so streams need no care on the way out; on the way
in the exporter lets the default stream wait, for which Frit waits."""
import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_uint32, c_uint64,
                    c_void_p)

from . import _device, _library as library
from ._tensor import Tensor, new_tensor

_CPU = (1, 0)  # kDLCPU
_DEFAULT_STREAM = {2: 1, 10: 0, 13: 1}  # of CUDA and ROCm, as the protocol numbers it
_VERSION = (1, 1)
_COPY = {None: 0, True: 1, False: 2}  # FRIT_DL_COPY_*


class _Options(Structure):
    _fields_ = [("struct_size", c_uint64), ("copy", c_uint64), ("on_device", c_uint64)]


class _Place(Structure):
    _fields_ = [("type", c_int), ("number", c_int)]


class _Managed(Structure):  # up to the deleter
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("owner", c_void_p),
                ("deleter", CFUNCTYPE(None, c_void_p))]


class _ManagedOld(Structure):
    _fields_ = [("tensor", c_uint64 * 6), ("owner", c_void_p),
                ("deleter", CFUNCTYPE(None, c_void_p))]


class _Kind:
    """One of the two structs: the capsule's name before and after it was taken, and functions."""

    def __init__(self, name, struct, suffix):
        self.name, self.used, self.struct = name, b"used_" + name, struct
        self.take = library.declare("frit_from_dlpack" + suffix, c_void_p, c_void_p, c_void_p)
        self.give = library.declare("frit_to_dlpack" + suffix, ctypes.c_int32, c_void_p,
                                    POINTER(_Options), POINTER(c_void_p), POINTER(library.Err))


_versioned = _Kind(b"dltensor_versioned", _Managed, "")
_old = _Kind(b"dltensor", _ManagedOld, "_old")


_place = library.declare("frit_dlpack_place", ctypes.c_int32, c_void_p, POINTER(_Place),
                         POINTER(library.Err))


def _python(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


# The capsule is a plain address in its destructor, where it has no reference any more.
_address_is_valid = _python("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_address_pointer = _python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_is_valid = _python("PyCapsule_IsValid", c_int, ctypes.py_object, c_char_p)
_pointer = _python("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
_set_name = _python("PyCapsule_SetName", c_int, ctypes.py_object, c_char_p)
_Destructor = CFUNCTYPE(None, c_void_p)
_new = _python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, _Destructor)


@_Destructor
def _end(capsule):
    """Ends what nobody has taken."""
    for kind in (_versioned, _old):
        if _address_is_valid(capsule, kind.name):
            address = _address_pointer(capsule, kind.name)
            kind.struct.from_address(address).deleter(address)


# Other modules' capsules may end after this module at the end of the process.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_end))


def place(self):
    """Tensor.__dlpack_device__: (type, number) of the memory of its device; (1, 0), the host's, where
    other libraries do not know it."""
    found = _Place()
    library.check(_place, self.handle, byref(found))
    return found.type, found.number


def export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """Tensor.__dlpack__: waits for the elements, and gives them where __dlpack_device__ says or in
    the host's memory: read-only and in place where the device computes there, else as a copy, and
    so where the importer knows the old struct alone."""
    wanted = place(self) if dl_device is None else tuple(map(int, dl_device))
    if wanted not in (_CPU, place(self)):
        raise BufferError(f"a tensor of {self.device.name} is not exported to {wanted}")
    if stream is not None and wanted == _CPU:
        raise BufferError("memory of the host has no streams")
    kind = _versioned if max_version is not None and max_version[0] >= 1 else _old
    options = _Options(ctypes.sizeof(_Options), _COPY[copy], wanted != _CPU)
    out = c_void_p()
    try:
        library.check(kind.give, self.handle, byref(options), byref(out))
    except library.Error as error:
        if error.status == "unsupported":
            raise BufferError(str(error)) from error
        raise
    return _new(out.value, kind.name, _end)


def _capsule_of(value):
    kind = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else 1
    stream = {"stream": _DEFAULT_STREAM[int(kind)]} if kind in _DEFAULT_STREAM else {}
    try:
        return value.__dlpack__(max_version=_VERSION, **stream)
    except TypeError:  # older than the parameter
        return value.__dlpack__(**stream)


def from_dlpack(value, device=None):
    """A tensor of what another library exports (its array, or a capsule): in its memory where that
    is the host's and the device computes there, or where it is the device's; else with a copy.  In
    its memory, nobody may change it as long as the tensor, or what is computed from it, is needed;
    tensor() copies."""
    device = _device.device(device)
    capsule = _capsule_of(value) if hasattr(value, "__dlpack__") else value
    for kind in (_versioned, _old):
        if type(capsule).__name__ == "PyCapsule" and _is_valid(capsule, kind.name):
            address = _pointer(capsule, kind.name)
            _set_name(capsule, kind.used)
            return new_tensor(library.check_tensor(kind.take(device.handle, address)), device)
    raise TypeError(f"{type(value).__name__}: neither an exporter of DLPack nor an unused capsule")


def install():
    Tensor.__dlpack__ = export
    Tensor.__dlpack_device__ = place
