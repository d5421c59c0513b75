# SPDX-License-Identifier: Apache-2.0
"""Gradients (frit/grad.h) and losses (frit/train.h).

    with frit.gradients(w, b) as gradients:
        loss = frit.loss.mse(x @ w + b, y)
        gradients.backward(loss)
        dw, db = gradients.of(w), gradients.of(b)

Forward pass, backward pass and what is done with the gradients run together at the end of the
`with`, or when a value is read.
"""
import contextlib
from ctypes import POINTER, c_int32, c_uint32, c_uint64, c_void_p

from . import _library as library
from ._tensor import new_tensor

_begin = library.declare("frit_grad_begin", c_int32, c_void_p, POINTER(library.Err))
_end = library.declare("frit_grad_end", None, c_void_p)
_watch = library.declare("frit_grad_watch", c_int32, c_void_p, POINTER(library.Err))
_backward = library.declare("frit_grad_backward_many", c_int32, POINTER(c_void_p),
                            POINTER(c_void_p), c_uint64, c_uint32, POINTER(library.Err))
_of = library.declare("frit_grad_of", c_void_p, c_void_p)
_no_begin = library.declare("frit_no_grad_begin", None)
_no_end = library.declare("frit_no_grad_end", None)
_flush = library.declare("frit_flush", c_int32, c_void_p, POINTER(library.Err))


class gradients:
    """Follows the thread's ops from some tensors on, in a `with`, on the device of the first."""

    def __init__(self, *tensors):
        if not tensors:
            raise TypeError("gradients of no tensor")
        self._watched = tensors
        self._device = tensors[0].device

    def __enter__(self):
        library.check(_begin, self._device.handle)
        try:
            for tensor in self._watched:
                self.watch(tensor)
        except BaseException:
            _end(self._device.handle)
            raise
        return self

    def __exit__(self, kind, error, trace):
        _end(self._device.handle)
        if kind is None:
            library.check(_flush, self._device.handle)

    def watch(self, tensor):
        """Ops on this tensor are followed, too, from now on."""
        library.check(_watch, tensor.handle)

    def backward(self, loss, grad=None, keep=False):
        """Adds the gradients of `loss`, of one element, or of the sum of loss * grad, to those of
        the watched tensors.  `keep`: a further pass over the same ops is possible."""
        tensors = (c_void_p * 1)(loss.handle)
        grads = (c_void_p * 1)(grad.handle if grad is not None else None)
        library.check(_backward, tensors, grads, 1, int(keep))

    def of(self, tensor):
        """The gradient of a watched tensor; zeros if nothing depended on it."""
        return new_tensor(library.check_tensor(library.ref(_of(tensor.handle))), tensor.device)


@contextlib.contextmanager
def no_grad():
    """Ops of the thread in a `with` are not followed."""
    _no_begin()
    try:
        yield
    finally:
        _no_end()
