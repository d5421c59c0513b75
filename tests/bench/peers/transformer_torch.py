#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The step of tests/bench/transformer.c in PyTorch: eager, compiled, and as a CUDA graph; one JSON object a line.

  transformer_torch.py [--train sgd|adam|adamw] DEVICE LAYERS DIM HEADS BATCH TOKENS DTYPE [STEPS] [MODE ...]
                                                                                       DEVICE: cpu or cuda

Fair: the same ops, types (no TF32) and values, tensors made before the clock starts, inference mode, each step reads its
sum, the median over the steps after as many to warm up.  With --train a step is forward, backward and the optimiser's in its
fused form, and the sum the loss; there is no graph then.
"""
import json
import statistics
import sys
import time

import torch
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

MODES = "eager", "compiled", "graph"


class Model:
    def __init__(self, device, layers, dim, heads, batch, tokens, dtype):
        self.device, self.dim, self.heads, self.batch, self.tokens = device, dim, heads, batch, tokens
        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
        self.optimizer = None
        self.seeds = 0
        self.x = self.values((batch, tokens, dim), 0, 2)
        wide, narrow = (12 / dim) ** 0.5, (3 / dim) ** 0.5
        self.layers = [
            [self.values(dims, middle, width) for dims, middle, width in (
                ((dim,), 1, .2), ((dim,), 0, .2), ((dim, 3 * dim), 0, wide), ((3 * dim,), 0, .2),
                ((dim, dim), 0, wide), ((dim,), 0, .2), ((dim,), 1, .2), ((dim,), 0, .2),
                ((dim, 4 * dim), 0, wide), ((4 * dim,), 0, .2), ((4 * dim, dim), 0, narrow), ((dim,), 0, .2))]
            for _ in range(layers)]
        for layer in self.layers:  # as torch.nn.Linear keeps them
            for at in 2, 4, 8, 10:
                layer[at] = layer[at].t().contiguous()

    def values(self, dims, middle, width):
        seed, count = self.seeds, torch.Size(dims).numel()
        self.seeds += 1
        bits = (torch.arange(count, dtype=torch.int64) + seed * 7919) * 2654435761 & 0xffffffff
        values = middle + width * ((bits >> 8).double() / 16777216 - .5)
        return values.float().to(self.dtype).reshape(dims).to(self.device)

    def split(self, qkv, which):
        part = qkv[..., which * self.dim:(which + 1) * self.dim]
        return part.reshape(self.batch, self.tokens, self.heads, -1).permute(0, 2, 1, 3)

    def train_by(self, name):
        """As transformer.c: bf16 weights are copies of f32 ones, which the optimiser changes."""
        self.weights = [w for layer in self.layers for w in layer]
        masters = [w.float() for w in self.weights] if self.dtype != torch.float32 else self.weights
        self.masters = [w.requires_grad_(True) for w in masters]
        for w in self.weights:
            w.requires_grad_(True)
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
        self.optimizer = kind(self.masters, lr=1e-4, fused=True)

    def trained(self, loss_of):
        """A step of training, where loss_of() is the mean square."""
        loss = loss_of()
        loss.backward()
        if self.dtype != torch.float32:
            for master, weight in zip(self.masters, self.weights):
                master.grad = weight.grad.float()
        self.optimizer.step()
        if self.dtype != torch.float32:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.masters)
        for w in self.weights:
            w.grad = None
        return loss.detach()

    def step(self):
        x = self.forward()
        return x.square().mean() if self.optimizer else x.sum()

    def forward(self):
        x = self.x
        for n1, s1, qkv_w, qkv_b, out_w, out_b, n2, s2, up_w, up_b, down_w, down_b in self.layers:
            qkv = linear(layer_norm(x, (self.dim,), n1, s1), qkv_w, qkv_b)
            h = scaled_dot_product_attention(*(self.split(qkv, i) for i in range(3)), is_causal=True)
            x = x + linear(h.permute(0, 2, 1, 3).reshape(x.shape), out_w, out_b)
            h = gelu(linear(layer_norm(x, (self.dim,), n2, s2), up_w, up_b))
            x = x + linear(h, down_w, down_b)
        return x.float()


def graphed(step):
    """The step recorded once; its input and its sum lie where they lay then."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = step()

    def replay():
        graph.replay()
        return total

    return replay


def measure(mode, model, steps):
    begun = time.perf_counter()
    step = {"eager": lambda: model.step, "compiled": lambda: torch.compile(model.step, dynamic=False),
            "graph": lambda: graphed(model.step)}[mode]()
    if model.optimizer:
        loss_of = step

        def step():
            return model.trained(loss_of)
    total = first_sum = step().item()
    first = time.perf_counter() - begun
    taken = []
    for _ in range(2 * steps):
        begun = time.perf_counter()
        total = step().item()
        taken.append(time.perf_counter() - begun)
    print(json.dumps({"mode": mode, "first_s": round(first, 4), "warm_ms": round(statistics.median(taken[steps:]) * 1e3, 4),
                      "least_ms": round(min(taken) * 1e3, 4), "first_sum": first_sum, "sum": total, "torch": torch.__version__}), flush=True)


def main():
    args = sys.argv[1:]
    optimizer = None
    if args[0] == "--train":
        optimizer, args = args[1], args[2:]
    device, dtype = args[0], args[6]
    shape = [int(text) for text in args[1:6]]
    steps = int(args[7]) if len(args) > 7 else 30
    torch.backends.cuda.matmul.allow_tf32 = False
    for mode in args[8:] or MODES:
        if mode == "graph" and (device != "cuda" or optimizer):
            continue
        with torch.inference_mode(optimizer is None):
            model = Model(device, *shape, dtype)
            if optimizer:
                model.train_by(optimizer)
            measure(mode, model, steps)


if __name__ == "__main__":
    main()
