# SPDX-License-Identifier: Apache-2.0
"""Losses (frit/train.h), differentiable.  `reduction`: "mean", "sum" or "none"."""
import ctypes
from ctypes import POINTER, Structure, byref, c_double, c_int64, c_uint64, c_void_p

from . import _library as library
from ._tensor import new_tensor

_REDUCTION = {"mean": 0, "sum": 1, "none": 2}


class _Attrs(Structure):
    _fields_ = [("struct_size", c_uint64), ("reduction", c_int64)]


class _CrossEntropyAttrs(Structure):
    _fields_ = [("struct_size", c_uint64), ("reduction", c_int64), ("has_ignore", c_int64),
                ("ignore_index", c_int64), ("label_smoothing", c_double)]


class _CtcAttrs(Structure):
    _fields_ = [("struct_size", c_uint64), ("reduction", c_int64), ("zero_infinity", c_int64)]


def _declare(name, tensors, attrs, *positional):
    return library.declare(f"frit_loss_{name}_with", c_void_p, *[c_void_p] * tensors, *positional,
                           POINTER(attrs))


_mse = _declare("mse", 2, _Attrs)
_bce = _declare("bce", 2, _Attrs)
_cross_entropy = _declare("cross_entropy", 2, _CrossEntropyAttrs, c_int64)
_ctc = _declare("ctc", 4, _CtcAttrs, c_int64)


def _loss(function, tensors, positional, attrs, reduction, **more):
    if reduction not in _REDUCTION:
        raise ValueError(f"reduction is {reduction!r}; there are: {', '.join(_REDUCTION)}")
    given = attrs(ctypes.sizeof(attrs), _REDUCTION[reduction], **more)
    handles = [tensor.handle for tensor in tensors]
    return new_tensor(library.check_tensor(function(*handles, *positional, byref(given))),
                      tensors[0].device)


def mse(x, target, *, reduction="mean"):
    """(x - target)^2."""
    return _loss(_mse, (x, target), (), _Attrs, reduction)


def bce(x, target, *, reduction="mean"):
    """Binary cross-entropy of logits x and targets from 0 to 1."""
    return _loss(_bce, (x, target), (), _Attrs, reduction)


def cross_entropy(x, target, axis, *, reduction="mean", ignore_index=None, label_smoothing=0.0):
    """-log(softmax(x) along axis) at the target, classes as i32 or i64 with x's dims but axis."""
    return _loss(_cross_entropy, (x, target), (axis,), _CrossEntropyAttrs, reduction,
                 has_ignore=ignore_index is not None, ignore_index=ignore_index or 0,
                 label_smoothing=label_smoothing)


def ctc(log_probs, targets, input_lengths, target_lengths, blank, *, reduction="mean",
        zero_infinity=False):
    """Connectionist temporal classification; operands as of frit.ctc_loss."""
    return _loss(_ctc, (log_probs, targets, input_lengths, target_lengths), (blank,), _CtcAttrs,
                 reduction, zero_infinity=zero_infinity)
