# SPDX-License-Identifier: Apache-2.0
"""The host of the process and its devices, both open until the process ends."""
import atexit
import ctypes
import threading
import weakref
from ctypes import byref, c_void_p

from . import _library as library

_lock = threading.RLock()
_host = None
_devices = {}  # by handle
_names = {}  # name -> Device
_owned = weakref.WeakSet()


class Owned:
    """A handle that is freed with the last reference to the object, by the class's _free, and in any
    case before the devices are closed."""

    _is_last = False  # freed after those that are not

    def __init__(self, handle):
        self.handle = handle
        _owned.add(self)

    def free(self):
        handle = getattr(self, "handle", None)
        self.handle = None
        if handle:
            type(self)._free(handle)

    __del__ = free


class Device:
    """A device of a driver, such as cpu:0.  device() opens it."""

    __slots__ = ("handle", "name")

    def __init__(self, handle):
        self.handle = handle
        self.name = library.text(library.device_name(handle))

    def sync(self):
        """Runs what this thread has recorded and waits.  Raises its first failure since the last
        sync, also if an op has raised it before."""
        library.check(library.sync, self.handle)

    def seed(self, number):
        """Seeds the device's random ops."""
        library.device_seed(self.handle, number)

    def __repr__(self):
        return f"frit.device({self.name!r})"


def host():
    """The handle of the host, opened at the first use."""
    global _host
    with _lock:
        if not _host:
            out = c_void_p()
            library.check(library.host_open, None, byref(out))
            _host = out.value
            atexit.register(_close)
        return _host


def _close():
    """Saves what the library learnt.  Tensors that still exist are not released any more."""
    global _host
    for owned in sorted(_owned, key=lambda owned: owned._is_last):
        owned.free()
    with _lock:
        closing, _host = _host, None
        _devices.clear()
        _names.clear()
        library.host_close(closing)


def is_open():
    return _host is not None


def device(name=None):
    """The first usable device of a list such as "vulkan:0, cpu"; without a name that of the
    configuration.  A Device is returned as it is."""
    if isinstance(name, Device):
        return name
    with _lock:
        if name not in _names:
            out = c_void_p()
            library.check(library.device_open, host(), name and name.encode(), byref(out))
            if out.value in _devices:
                library.device_close(out.value)  # one open of each is enough
            else:
                _devices[out.value] = Device(out.value)
            _names[name] = _devices[out.value]
        return _names[name]


def devices():
    """The names of the usable devices, the preferred one first."""
    names, desc = [], library.DeviceDesc(struct_size=ctypes.sizeof(library.DeviceDesc))
    while library.device_info_at(host(), len(names), byref(desc)) == 0:
        names.append(None if desc.reason else library.text(desc.name))
    return [name for name in names if name]


def seed(number):
    """Seeds the random ops of all devices."""
    library.seed(host(), number)
