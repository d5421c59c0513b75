# SPDX-License-Identifier: Apache-2.0
"""Programs from files: what `frit run` takes."""
import ctypes
import os
from ctypes import byref, c_void_p
from types import SimpleNamespace

from . import _device, _library as library
from ._tensor import DTYPES, Tensor, _names, new_tensor, tensor


def _ports(function, graph):
    ports, port = [], library.Port(struct_size=ctypes.sizeof(library.Port))
    while function(graph, len(ports), byref(port)) == 0:
        dims = tuple(None if n < 0 else n for n in port.dims.dim[:port.dims.rank])
        ports.append(SimpleNamespace(name=library.text(port.name), file=port.file,
                                     dtype=_names.get(port.dtype), shape=dims,
                                     is_const=bool(port.is_const)))
    return ports


_SHORT = 1024  # bytes of an input that a model's shapes may depend on


def _elements(tensors):
    return [bytes(value.read()) if 0 < value.nbytes <= _SHORT else None for value in tensors]


class Graph(_device.Owned):
    """A loaded program.  Calling it runs it: graph(x=array) gives a dict of its outputs."""

    _free = library.graph_free

    def __init__(self, handle):
        super().__init__(handle)
        self.inputs = _ports(library.graph_input_at, handle)  # of constants too
        self._names = {port.name for port in self.inputs}
        self._bound = None  # types of the inputs, and elements where they matter
        self._outputs = []

    def _value(self, port, values, device):
        if port.name not in values:
            if not port.file and not port.is_const:
                names = [p.name for p in self.inputs if not p.is_const and not p.file]
                raise TypeError(f"the input {port.name!r} has no value; to be given: "
                                f"{', '.join(names)}")
            value = new_tensor(library.graph_default(self.handle, self.inputs.index(port),
                                                     device.handle), device)
            value.check()
            return value
        else:
            value = tensor(values[port.name], None if isinstance(values[port.name], Tensor)
                           else port.dtype, device)
        if port.dtype and DTYPES[port.dtype][2] == "packed" and value.dtype != port.dtype:
            return value.packed(port.dtype, port.shape)
        return value

    def _try_bind(self, tensors, elements):
        """`elements`: bytes of short inputs, None for others; None: of none."""
        ports = (library.Port * len(tensors))()
        for i, (port, value) in enumerate(zip(ports, tensors)):
            port.struct_size = ctypes.sizeof(library.Port)
            port.dtype = library.tensor_dtype(value.handle)
            port.dims = library.tensor_dims(value.handle)
            if elements and elements[i] is not None:
                port.data = ctypes.cast(elements[i], ctypes.c_void_p)
        library.check(library.graph_bind, self.handle, ports, len(tensors))

    def _bind(self, tensors):
        """Binds the program where it is not bound to such inputs: that makes its ops, and a model's
        weights on the device, anew.  Elements are only given where it cannot be bound without."""
        types, elements = [(value.dtype, value.shape) for value in tensors], None
        if self._bound and self._bound[0] == types:
            if self._bound[1] is None:
                return
            elements = _elements(tensors)
            if elements == self._bound[1]:
                return
        self._bound = None
        try:
            try:
                self._try_bind(tensors, elements)
            except library.Error:
                if elements:
                    raise
                elements = _elements(tensors)
                self._try_bind(tensors, elements)
        except library.Error as error:
            problems = library.graph_problems(self.handle)
            if not problems:
                raise
            raise library.Error(error.status, library.owned_text(problems).rstrip()) from None
        self._bound = types, elements
        self._outputs = [port.name for port in _ports(library.graph_output_at, self.handle)]

    def run(self, values, device=None):
        """Runs with a dict of inputs; an input without one takes its file.  Returns the outputs by
        name; they are computed when they are read."""
        device = _device.device(device)
        unknown = [name for name in values if name not in self._names]
        if unknown:
            raise TypeError(f"there is no input {unknown[0]!r}; there are: "
                            f"{', '.join(port.name for port in self.inputs)}")
        tensors = [self._value(port, values, device) for port in self.inputs]
        self._bind(tensors)
        names = self._outputs
        handles = (c_void_p * len(tensors))(*[value.handle for value in tensors])
        out = (c_void_p * len(names))()
        library.check(library.graph_run, self.handle, device.handle, handles, len(tensors), out,
                      len(names))
        outputs = {name: new_tensor(handle, device) for name, handle in zip(names, out)}
        for value in outputs.values():
            value.check()
        return outputs

    def __call__(self, **values):
        return self.run(values, values.pop("device", None))


def load(path):
    """A program from a file: a text program or an ONNX model."""
    out = c_void_p()
    _device.host()  # knows the ops of plugins
    library.check(library.graph_load, os.fsencode(path), byref(out))
    return Graph(out.value)


def parse(program, name="<text>"):
    """A text program from a str."""
    out, data = c_void_p(), program.encode()
    _device.host()
    library.check(library.graph_parse, name.encode(), data, len(data), byref(out))
    return Graph(out.value)


def run(path, *, device=None, **values):
    """Runs a program from a file on a device: run("model.onnx", x=array)["y"].  Inputs are Tensors,
    NumPy arrays, numbers or lists.  load() keeps a program that runs often."""
    return load(path).run(values, device)
