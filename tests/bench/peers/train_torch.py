# SPDX-License-Identifier: Apache-2.0
"""The step of tests/bench/train.c in PyTorch, eager and compiled: one JSON object a line.

  train_torch.py DEVICE cnn|mlp [STEPS] [MODE ...]     DEVICE: cpu or cuda; MODE: these alone

Fair: the same networks, types (no TF32), optimiser and batch, made before the clock starts, each step reads its loss, Adam
in its fastest form (fused), the median over the steps after as many to warm up.
"""
import json
import pathlib
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits"
BATCH = 64


def network(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 10))
    return nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(128),
                         nn.Linear(128, 10))


def batch(device):
    images = np.load(DIGITS / "train_images.npy")[:BATCH].astype(np.float32) / 16
    labels = np.load(DIGITS / "train_labels.npy")[:BATCH].astype(np.int64)
    return torch.tensor(images, device=device), torch.tensor(labels, device=device)


def measure(mode, device, name, steps):
    torch.manual_seed(1)
    model = network(name).to(device)
    images, labels = batch(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def loss_of(images, labels):
        return nn.functional.cross_entropy(model(images), labels)

    forward = torch.compile(loss_of, dynamic=False) if mode == "compiled" else loss_of

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(images, labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    begun = time.perf_counter()
    loss = step()
    first = time.perf_counter() - begun
    taken = []
    for _ in range(2 * steps):
        begun = time.perf_counter()
        loss = step()
        taken.append(time.perf_counter() - begun)
    warm = taken[steps:]
    print(json.dumps({"network": name, "mode": mode, "first_s": round(first, 4),
                      "warm_us": round(statistics.median(warm) * 1e6, 1), "least_us": round(min(warm) * 1e6, 1),
                      "loss": round(loss, 6), "threads": torch.get_num_threads(), "torch": torch.__version__}), flush=True)


def main():
    device, name = sys.argv[1], sys.argv[2]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for mode in sys.argv[4:] or ("eager", "compiled"):
        measure(mode, device, name, steps)


main()
