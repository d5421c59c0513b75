# SPDX-License-Identifier: Apache-2.0
"""Optimisers and loss scaling (frit/train.h); meanings and defaults are PyTorch's.

    optimizer = frit.optim.Adam(params, 1e-3)
    for x, labels in batches:
        with frit.gradients(*params) as gradients:
            gradients.backward(frit.loss.cross_entropy(network(params, x), labels, 1))
            optimizer.step()

A step gives each of the tensors `params` its new value; what was computed from the old one stays.
"""
import ctypes
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int32, c_uint32, c_uint64,
                    c_void_p)

from . import _library as library
from ._device import Owned, device as find_device
from ._tensor import new_tensor

_SGD, _ADAM, _ADAMW = 1, 2, 3
_NESTEROV, _AMSGRAD, _IN_PLACE = 1, 2, 4


class _Config(Structure):
    _fields_ = [("struct_size", c_uint64), ("kind", c_uint32), ("flags", c_uint32),
                ("rate", c_double), ("weight_decay", c_double), ("momentum", c_double),
                ("dampening", c_double), ("beta1", c_double), ("beta2", c_double),
                ("eps", c_double), ("clip_value", c_double), ("clip_norm", c_double),
                ("scaler", c_void_p)]


class _ScalerConfig(Structure):
    _fields_ = [("struct_size", c_uint64), ("scale", c_double), ("growth", c_double),
                ("backoff", c_double), ("interval", c_uint64)]


class _State(Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("param", c_uint64),
                ("tensor", c_void_p)]


_status = library.declare
_errp, _tensors = POINTER(library.Err), POINTER(c_void_p)
_create = _status("frit_optimizer_create", c_int32, POINTER(_Config), _tensors, c_uint64, _tensors,
                  _errp)
_destroy = _status("frit_optimizer_destroy", None, c_void_p)
_step = _status("frit_optimizer_step", c_int32, c_void_p, _tensors, _tensors, _errp)
_sync = _status("frit_optimizer_sync", c_int32, c_void_p, _tensors, _errp)
_rate = _status("frit_optimizer_rate", c_double, c_void_p)
_set_rate = _status("frit_optimizer_set_rate", None, c_void_p, c_double)
_steps = _status("frit_optimizer_steps", c_uint64, c_void_p)
_set_steps = _status("frit_optimizer_set_steps", None, c_void_p, c_uint64)
_norm = _status("frit_optimizer_norm", c_void_p, c_void_p)
_state_at = _status("frit_optimizer_state_at", c_int32, c_void_p, c_uint64, POINTER(_State))
_set_state = _status("frit_optimizer_set_state", c_int32, c_void_p, c_uint64, c_void_p, _errp)
_scaler_create = _status("frit_scaler_create", c_int32, c_void_p, POINTER(_ScalerConfig), _tensors,
                         _errp)
_scaler_destroy = _status("frit_scaler_destroy", None, c_void_p)
_scaler_scale = _status("frit_scaler_scale", c_void_p, c_void_p, c_void_p)
_scaler_update = _status("frit_scaler_update", c_int32, c_void_p, _errp)
_scaler_state_at = _status("frit_scaler_state_at", c_int32, c_void_p, c_uint64, POINTER(_State))
_scaler_set_state = _status("frit_scaler_set_state", c_int32, c_void_p, c_uint64, c_void_p, _errp)


class _Stateful(Owned):
    """What has states for checkpoints: a dict of tensors by name."""

    def _names(self):
        state = _State(struct_size=ctypes.sizeof(_State))
        names = []
        while self._state_at(self.handle, len(names), byref(state)) == 0:
            names.append((library.text(state.name), state.tensor))
        return names

    def state(self):
        """What changes from step to step beside parameters, as tensors by name."""
        return {name: new_tensor(library.ref(handle), self.device)
                for name, handle in self._names()}

    def load_state(self, state):
        """Takes over what state() gave."""
        names = [name for name, _ in self._names()]
        if sorted(names) != sorted(state):
            raise ValueError(f"these are other states than: {', '.join(names)}")
        for index, name in enumerate(names):
            library.check(self._set_state, self.handle, index, state[name].handle)


class Scaler(_Stateful):
    """Keeps gradients of 16-bit floats from vanishing: scale(loss) in the place of the loss,
    Adam(..., scaler=scaler), and update() after each step."""

    _state_at, _set_state, _free = _scaler_state_at, _scaler_set_state, _scaler_destroy
    _is_last = True  # after the optimisers that use it

    def __init__(self, device=None, scale=0.0, growth=0.0, backoff=0.0, interval=0):
        self.device, out = find_device(device), c_void_p()
        config = _ScalerConfig(ctypes.sizeof(_ScalerConfig), scale, growth, backoff, interval)
        library.check(_scaler_create, self.device.handle, byref(config), byref(out))
        super().__init__(out.value)

    def scale(self, loss):
        return new_tensor(library.check_tensor(_scaler_scale(self.handle, loss.handle)),
                          self.device)

    def update(self):
        library.check(_scaler_update, self.handle)


class Optimizer(_Stateful):
    """SGD, Adam and AdamW.  The rate may be changed; `steps` are counted."""

    _state_at, _set_state, _free = _state_at, _set_state, _destroy

    def __init__(self, params, kind, rate, flags=0, clip_value=0.0, clip_norm=0.0, scaler=None,
                 in_place=False, **config):
        self.params = list(params)
        if not self.params:
            raise TypeError("an optimiser of no parameter")
        self.device, self._scaler, out = self.params[0].device, scaler, c_void_p()
        given = _Config(ctypes.sizeof(_Config), kind, flags | (_IN_PLACE if in_place else 0), rate,
                        clip_value=clip_value, clip_norm=clip_norm,
                        scaler=scaler.handle if scaler else None, **config)
        library.check(_create, byref(given), self._handles(), len(self.params), byref(out))
        super().__init__(out.value)

    def _handles(self):
        return (c_void_p * len(self.params))(*[param.handle for param in self.params])

    def _with_params(self, function, *arguments):
        handles = self._handles()
        try:
            library.check(function, self.handle, handles, *arguments)
        finally:
            for param, handle in zip(self.params, handles):
                param.handle = handle

    def step(self, grads=None):
        """Changes the parameters by their gradients (default: those of the open `gradients`)."""
        handles = None
        if grads is not None:
            handles = (c_void_p * len(self.params))(*[grad.handle for grad in grads])
        self._with_params(_step, handles)

    def sync(self):
        """Waits; undoes the last step and raises if it failed."""
        self._with_params(_sync)

    @property
    def rate(self):
        return _rate(self.handle)

    @rate.setter
    def rate(self, value):
        _set_rate(self.handle, value)

    @property
    def steps(self):
        return _steps(self.handle)

    @steps.setter
    def steps(self, value):
        _set_steps(self.handle, value)

    @property
    def norm(self):
        """The norm of all gradients that clip_norm limited in the last step; None: there is none."""
        handle = _norm(self.handle)
        return new_tensor(library.ref(handle), self.device) if handle else None


class SGD(Optimizer):
    def __init__(self, params, rate, *, momentum=0.0, dampening=0.0, weight_decay=0.0,
                 nesterov=False, **more):
        super().__init__(params, _SGD, rate, _NESTEROV if nesterov else 0, momentum=momentum,
                         dampening=dampening, weight_decay=weight_decay, beta1=0.9, beta2=0.999,
                         eps=1e-8, **more)


class Adam(Optimizer):
    def __init__(self, params, rate=1e-3, *, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
                 amsgrad=False, **more):
        super().__init__(params, _ADAM, rate, _AMSGRAD if amsgrad else 0, beta1=betas[0],
                         beta2=betas[1], eps=eps, weight_decay=weight_decay, **more)


class AdamW(Optimizer):
    def __init__(self, params, rate=1e-3, *, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
                 amsgrad=False, **more):
        super().__init__(params, _ADAMW, rate, _AMSGRAD if amsgrad else 0, beta1=betas[0],
                         beta2=betas[1], eps=eps, weight_decay=weight_decay, **more)
