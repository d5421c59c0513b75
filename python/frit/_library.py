# SPDX-License-Identifier: Apache-2.0
"""libfrit: where it is, its structs and functions (host/include/frit/*.h), and its errors.

ctypes gives other Python threads a turn while a function of the library runs.
"""
import ctypes
import os
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_int32, c_int64, c_uint32,
                    c_uint64, c_void_p)

MAX_RANK = 8


def _load():
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libfrit.so.0")
    try:
        return ctypes.CDLL(bundled if os.path.exists(bundled) else "libfrit.so.0")
    except OSError as error:
        raise ImportError(f"libfrit cannot be loaded ({error}): install Frit, or name the folder of "
                          "libfrit.so.0 in LD_LIBRARY_PATH") from None


lib = _load()


class Error(RuntimeError):
    """A failure that Frit reports; `status` is its kind, such as "invalid" or "unsupported"."""

    def __init__(self, status, text):
        super().__init__(text or status)
        self.status = status


# ---- structs ----


class Err(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("native_code", c_int64),
                ("text", c_char * 496)]


class Dims(Structure):
    _fields_ = [("rank", c_int64), ("dim", c_int64 * MAX_RANK)]


class Scalar(Structure):
    _fields_ = [("kind", c_uint32), ("reserved", c_uint32), ("bits", c_uint64)]


class Input(Structure):
    _fields_ = [("tensor", c_void_p), ("scalar", Scalar)]


class Attr(Structure):
    _fields_ = [("name", c_char_p), ("value", Scalar), ("list", POINTER(c_int64)),
                ("n_list", c_uint64)]


class NamedCall(Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("inputs", POINTER(Input)),
                ("n_in", c_uint64), ("attrs", POINTER(Attr)), ("n_attrs", c_uint64)]


class DeviceDesc(Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("label", c_char_p),
                ("plugin", c_char_p), ("type", c_char_p), ("stable_id", c_char_p),
                ("driver_version", c_char_p), ("runtime_path", c_char_p), ("pci", c_char_p),
                ("memory_bytes", c_uint64), ("caps", c_uint64), ("reason", c_uint32),
                ("is_default", c_uint32)]


class Port(Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("file", c_char_p),
                ("dtype", c_uint32), ("is_const", c_uint32), ("dims", Dims), ("data", c_void_p)]


# ---- functions ----

_errp = POINTER(Err)
_out = POINTER(c_void_p)
_TENSOR, _STATUS, _NONE = c_void_p, c_int32, None


def declare(name, result, *arguments):
    """Gives a function of the library its types; returns it."""
    function = getattr(lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


version = declare("frit_version", c_char_p)
status_name = declare("frit_status_name", c_char_p, c_int32)
free = declare("frit_free", _NONE, c_void_p)
host_open = declare("frit_host_open", _STATUS, c_void_p, _out, _errp)
host_close = declare("frit_host_close", _NONE, c_void_p)
device_open = declare("frit_device_open", _STATUS, c_void_p, c_char_p, _out, _errp)
device_close = declare("frit_device_close", _NONE, c_void_p)
device_name = declare("frit_device_name", c_char_p, c_void_p)
device_info_at = declare("frit_device_info_at", _STATUS, c_void_p, c_uint64, POINTER(DeviceDesc))
device_seed = declare("frit_device_seed", _NONE, c_void_p, c_uint64)
seed = declare("frit_seed", _NONE, c_void_p, c_uint64)
sync = declare("frit_sync", _STATUS, c_void_p, _errp)
from_host = declare("frit_from_host", _TENSOR, c_void_p, c_uint32, Dims, c_void_p, c_uint64)
as_packed = declare("frit_as_packed", _TENSOR, c_void_p, c_uint32, Dims)
load_npy = declare("frit_load_npy", _TENSOR, c_void_p, c_char_p)
save_npy = declare("frit_save_npy", _STATUS, c_void_p, c_char_p, _errp)
read = declare("frit_read", _STATUS, c_void_p, c_void_p, c_uint64, _errp)
write = declare("frit_write", _STATUS, c_void_p, c_void_p, c_uint64, _errp)
to_device = declare("frit_to_device", _TENSOR, c_void_p, c_void_p)
release = declare("frit_release", _NONE, c_void_p)
ref = declare("frit_ref", _TENSOR, c_void_p)
tensor_status = declare("frit_tensor_status", _STATUS, c_void_p)
tensor_error = declare("frit_tensor_error", c_char_p, c_void_p)
tensor_dtype = declare("frit_tensor_dtype", c_uint32, c_void_p)
tensor_dims = declare("frit_tensor_dims", Dims, c_void_p)
tensor_bytes = declare("frit_tensor_bytes", c_uint64, c_void_p)
op_named = declare("frit_op_named", _NONE, c_void_p, POINTER(NamedCall), _out, c_uint64)
graph_load = declare("frit_graph_load", _STATUS, c_char_p, _out, _errp)
graph_parse = declare("frit_graph_parse", _STATUS, c_char_p, c_char_p, c_uint64, _out, _errp)
graph_free = declare("frit_graph_free", _NONE, c_void_p)
graph_input_at = declare("frit_graph_input_at", _STATUS, c_void_p, c_uint64, POINTER(Port))
graph_default = declare("frit_graph_default", c_void_p, c_void_p, c_uint64, c_void_p)
graph_output_at = declare("frit_graph_output_at", _STATUS, c_void_p, c_uint64, POINTER(Port))
graph_bind = declare("frit_graph_bind", _STATUS, c_void_p, POINTER(Port), c_uint64, _errp)
graph_problems = declare("frit_graph_problems", c_void_p, c_void_p)
graph_run = declare("frit_graph_run", _STATUS, c_void_p, c_void_p, _out, c_uint64, _out, c_uint64,
                    _errp)


# ---- calling ----


def text(value):
    return (value or b"").decode("utf-8", "replace")


def owned_text(address):
    """A text that is the caller's."""
    value = text(ctypes.cast(address, c_char_p).value)
    free(address)
    return value


def check(function, *arguments):
    """Calls a function whose last argument is a frit_err; raises its failure."""
    err = Err(struct_size=ctypes.sizeof(Err))
    status = function(*arguments, byref(err))
    if status:
        raise Error(text(status_name(status)), text(err.text))


def check_tensor(handle):
    """The handle of a new tensor; raises the failure that the tensor carries."""
    status = tensor_status(handle)
    if not status:
        return handle
    error = Error(text(status_name(status)), text(tensor_error(handle)))
    release(handle)
    raise error


def dims_of(shape):
    shape = tuple(shape)
    if len(shape) > MAX_RANK:
        raise ValueError(f"{len(shape)} dims; Frit has at most {MAX_RANK}")
    return Dims(len(shape), (c_int64 * MAX_RANK)(*shape))
