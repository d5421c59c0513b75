#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes losses.h: the losses of tools/examples/train's networks in PyTorch, from the same weights and batches.

    python3 tests/examples/train/losses_torch.py > tests/examples/train/losses.h && clang-format -i tests/examples/train/losses.h

In f32 on one thread: Adam with rate 1e-3, 100 batches of 64 images in the order of the file, seed 1.
"""
import pathlib

import numpy as np
import torch

F = torch.nn.functional
DIGITS = pathlib.Path(__file__).parents[2] / "data" / "digits"
STEPS, BATCH, SEED, RATE = 100, 64, 1, 1e-3
WEIGHTS = 1  # RANDOM_WEIGHTS
MASK = (1 << 64) - 1


# ---- random.h ----

def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def random_at(seed, use, a, b):
    key = mix((mix((mix(seed) + use) & MASK) + a) & MASK)
    return (mix((key + b) & MASK) >> 11) * 2.0**-53


# ---- network.c: dims, fan in, value ----

CNN = [([16, 1, 3, 3], 9, 0), ([16], 9, 0), ([32, 16, 3, 3], 144, 0), ([32], 144, 0), ([128], 0, 1), ([128], 0, 0),
       ([128, 10], 128, 0), ([10], 128, 0)]
MLP = [([64, 128], 64, 0), ([128], 64, 0), ([128, 64], 128, 0), ([64], 128, 0), ([64, 10], 64, 0), ([10], 64, 0)]


def init(rows):
    params = []
    for i, (dims, fan_in, value) in enumerate(rows):
        bound = 1 / fan_in**0.5 if fan_in else 0.0
        values = [value + (random_at(SEED, WEIGHTS, i, k) * 2 - 1) * bound for k in range(int(np.prod(dims)))]
        params.append(torch.nn.Parameter(torch.tensor(np.float32(values).reshape(dims))))
    return params


def cnn(p, x):
    x = F.max_pool2d(F.relu(F.conv2d(x.unsqueeze(1), p[0], p[1], padding=1)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p[2], p[3], padding=1)), 2)
    return F.layer_norm(x.flatten(1), (128,), p[4], p[5]) @ p[6] + p[7]


def mlp(p, x):
    x = F.gelu(x.flatten(1) @ p[0] + p[1])
    x = F.gelu(x @ p[2] + p[3])
    return x @ p[4] + p[5]


def losses(rows, logits, images, labels):
    params = init(rows)
    optimizer = torch.optim.Adam(params, lr=RATE)
    for step in range(STEPS):
        batch = torch.arange(step * BATCH, (step + 1) * BATCH) % len(images)
        loss = F.cross_entropy(logits(params, images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    torch.set_num_threads(1)
    images = torch.tensor(np.load(DIGITS / "train_images.npy").astype(np.float32) / 16)
    labels = torch.tensor(np.load(DIGITS / "train_labels.npy").astype(np.int64))
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print(f"/* Written by losses_torch.py with PyTorch {torch.__version__.split('+')[0]}. */")
    print("#ifndef TESTS_LOSSES_H\n#define TESTS_LOSSES_H\n")
    for name, rows, logits in ("cnn", CNN, cnn), ("mlp", MLP, mlp):
        text = ", ".join(f"{loss:.9g}" for loss in losses(rows, logits, images, labels))
        print(f"static const double {name}_losses[] = {{{text}}};\n")
    print("#endif")


main()
