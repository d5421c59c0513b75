# SPDX-License-Identifier: Apache-2.0
"""Frit: tensors on any device that a plugin offers, recorded op by op, run as if fused by hand.

    import frit, numpy as np
    x = frit.tensor(np.random.rand(500, 64).astype("f4"), device="cpu:0")
    print((x + 1).gelu().mean(axes=1).numpy())

Every op row is a function here and, where its first operand is a tensor, a method of Tensor; the
names that hide those of Python's built-ins (sum, max, ...) are reached as frit.sum.
"""
from . import loss, ops, optim
from ._device import Device, device, devices, seed
from ._library import Error, text as _text, version as _version
from ._tensor import Tensor, tensor
from ._call import op
from ._dlpack import from_dlpack, install as _install_dlpack
from ._files import load_npy, load_npz, save_npz
from ._graph import Graph, load, parse, run
from ._operators import install as _install
from .grad import gradients, no_grad
from .ops import *  # noqa: F401,F403

_install()
_install_dlpack()
__version__ = _text(_version())
__all__ = ["Device", "Error", "Graph", "Tensor", "device", "devices", "from_dlpack", "gradients",
           "load", "load_npy", "load_npz", "loss", "no_grad", "op", "optim", "parse", "run",
           "save_npz", "seed", "tensor", *ops.__all__]
