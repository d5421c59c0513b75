# SPDX-License-Identifier: Apache-2.0
"""NumPy's files: one tensor (.npy), or several with names (.npz)."""
import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

from . import _device, _library as library
from ._tensor import new_tensor, tensor


class _Desc(Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("bytes", c_uint64),
                ("dtype", c_uint32), ("reserved", c_uint32), ("dims", library.Dims)]


class _Named(Structure):
    _fields_ = [("tensor", c_void_p), ("name", c_char_p)]


_open = library.declare("frit_load_npz", c_int32, c_char_p, POINTER(c_void_p), POINTER(library.Err))
_close = library.declare("frit_npz_free", None, c_void_p)
_at = library.declare("frit_npz_at", c_int32, c_void_p, c_uint64, POINTER(_Desc))
_tensor = library.declare("frit_npz_tensor", c_void_p, c_void_p, c_void_p, c_char_p)
_save = library.declare("frit_save_npz", c_int32, POINTER(_Named), c_uint64, c_char_p,
                        POINTER(library.Err))


def load_npy(path, device=None):
    """The tensor of a .npy file."""
    device = _device.device(device)
    return new_tensor(library.check_tensor(library.load_npy(device.handle, os.fsencode(path))),
                      device)


def load_npz(path, device=None):
    """The tensors of a .npz file, by name."""
    device, npz, names = _device.device(device), c_void_p(), []
    library.check(_open, os.fsencode(path), byref(npz))
    try:
        desc = _Desc(struct_size=ctypes.sizeof(_Desc))
        while _at(npz, len(names), byref(desc)) == 0:
            names.append(desc.name)
        return {library.text(name): new_tensor(
            library.check_tensor(_tensor(npz, device.handle, name)), device) for name in names}
    finally:
        _close(npz)


def save_npz(path, **tensors):
    """Writes tensors, or what tensor() takes, as a .npz file."""
    values = {name: tensor(value) for name, value in tensors.items()}
    items = (_Named * len(values))(*[(value.handle, name.encode())
                                     for name, value in values.items()])
    library.check(_save, items, len(items), os.fsencode(path))
