#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes expected.h: what PyTorch computes for the cases of losses and optimisers in this folder.

    python3 tests/host/train/expected.py > tests/host/train/expected.h && clang-format -i tests/host/train/expected.h
"""
import torch

F = torch.nn.functional
STEPS = 20


def numbers(count, seed, scale=8.0):
    """The tests compute the same numbers; exact in f16."""
    return torch.tensor([((i * 7 + seed * 13) % 17 - 8) / scale for i in range(count)])


def show(name, tensor):
    flat = torch.as_tensor(tensor, dtype=torch.float64).flatten().tolist()
    text = ", ".join("INFINITY" if v == float("inf") else "NAN" if v != v else f"{v:.9g}" for v in flat)
    print(f"static const double {name}[] = {{{text}}};")


# ---- optimisers: a parameter of 6 elements and one of 2, gradients that no loss made ----

def gradients(step):
    return numbers(6, step), numbers(2, step + 5)


def optimise(name, make, clip=None, scaler=None, spoiled=()):
    params = [torch.nn.Parameter(numbers(6, 1)), torch.nn.Parameter(numbers(2, 2))]
    optimizer = make(params)
    values, scales = [], []
    for step in range(1, STEPS + 1):
        if step == 11:
            optimizer.param_groups[0]["lr"] *= 0.5
        for p, g in zip(params, gradients(step)):
            p.grad = g.clone()
        if scaler:
            scaler.scale(torch.zeros(1))  # makes the scale
            for p in params:
                p.grad *= scaler._scale
            if step in spoiled:
                params[1].grad[1] = float("inf") if step % 2 else float("nan")
            scaler.unscale_(optimizer)
        if clip:
            clip(params)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        else:
            optimizer.step()
        values.append(torch.cat([p.detach() for p in params]))
    show(f"expected_{name}", torch.stack(values))
    if scaler:
        show(f"expected_{name}_scale", scales)


def scaler():
    return torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=4)


def clip_value(params):
    torch.nn.utils.clip_grad_value_(params, 0.25)


def clip_norm(params):
    torch.nn.utils.clip_grad_norm_(params, 0.5)


SPOILED = (1, 6, 7, 15)
O = torch.optim
print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Written by expected.py with PyTorch {torch.__version__.split('+')[0]}. */")
print("#ifndef TESTS_TRAIN_EXPECTED_H\n#define TESTS_TRAIN_EXPECTED_H\n\n#include <math.h>\n")
optimise("sgd", lambda p: O.SGD(p, lr=0.1))
optimise("sgd_decay", lambda p: O.SGD(p, lr=0.1, weight_decay=0.05))
optimise("momentum", lambda p: O.SGD(p, lr=0.1, momentum=0.9, dampening=0.25))
optimise("nesterov", lambda p: O.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05))
optimise("adam", lambda p: O.Adam(p, lr=0.02))
optimise("adam_decay", lambda p: O.Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1))
optimise("adamw", lambda p: O.AdamW(p, lr=0.02, weight_decay=0.1))
optimise("amsgrad", lambda p: O.AdamW(p, lr=0.02, betas=(0.5, 0.6), amsgrad=True))
optimise("clip_value", lambda p: O.SGD(p, lr=0.1, momentum=0.9), clip_value)
optimise("clip_norm", lambda p: O.SGD(p, lr=0.1, momentum=0.9), clip_norm)
optimise("scaled_sgd", lambda p: O.SGD(p, lr=0.1, momentum=0.9, dampening=0.25), None, scaler(), SPOILED)
optimise("scaled_adam", lambda p: O.AdamW(p, lr=0.02, eps=1e-3), clip_norm, scaler(), SPOILED)


# ---- losses: the value, and the gradient of 3 times its sum ----

def loss(name, x, fn):
    x = x.clone().requires_grad_()
    y = fn(x)
    (3 * y.sum()).backward()
    show(f"expected_{name}", y.detach())
    show(f"expected_{name}_grad", x.grad)


x, t = numbers(12, 3, 2).reshape(3, 4), numbers(12, 4, 2).reshape(3, 4)
labels = torch.tensor([2, 0, 3])
p = (numbers(12, 4, 16) + 0.5).reshape(3, 4)
for reduction in ("mean", "sum", "none"):
    loss(f"mse_{reduction}", x, lambda x: F.mse_loss(x, t, reduction=reduction))
    loss(f"bce_{reduction}", 10 * x, lambda x: F.binary_cross_entropy_with_logits(x, p, reduction=reduction))
    loss(f"ce_{reduction}", 10 * x, lambda x: F.cross_entropy(x, labels, reduction=reduction))
    loss(f"ce_spread_{reduction}", x, lambda x: F.cross_entropy(
        x, labels, reduction=reduction, ignore_index=0, label_smoothing=0.2))
big = numbers(2 * 3 * 4, 6, 4).reshape(2, 3, 4)
many = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])
loss("ce_axis", big, lambda x: F.cross_entropy(x, many))
loss("ce_ignored", x, lambda x: F.cross_entropy(x, torch.tensor([5, 5, 5]), ignore_index=5))
speech = numbers(5 * 3 * 4, 7, 4).reshape(5, 3, 4)
said, heard, long = torch.tensor([[1, 2, 3], [3, 3, 1], [2, 1, 1]]), torch.tensor([5, 3, 4]), torch.tensor([3, 2, 1])
for reduction in ("mean", "sum", "none"):
    loss(f"ctc_{reduction}", speech, lambda x: F.ctc_loss(
        F.log_softmax(x, 2), said, heard, long, blank=0, reduction=reduction))
tight = torch.tensor([5, 2, 4])  # the second target does not fit
loss("ctc_tight", speech, lambda x: F.ctc_loss(
    F.log_softmax(x, 2), said, tight, long, blank=0, reduction="mean", zero_infinity=True))

# ---- a network of two layers ----

w1, b1 = (numbers(4 * 8, 1, 16).reshape(4, 8), torch.zeros(8))
w2, b2 = (numbers(8 * 3, 2, 16).reshape(8, 3), torch.zeros(3))
params = [torch.nn.Parameter(v) for v in (w1, b1, w2, b2)]
data, classes = numbers(6 * 4, 5).reshape(6, 4), torch.tensor([0, 2, 1, 1, 0, 2])
optimizer = O.Adam(params, lr=0.02)
losses = []
for _ in range(STEPS):
    optimizer.zero_grad()
    hidden = torch.tanh(data @ params[0] + params[1])
    value = F.cross_entropy(hidden @ params[2] + params[3], classes)
    value.backward()
    optimizer.step()
    losses.append(value.item())
show("expected_network", losses)
print("\n#endif")
