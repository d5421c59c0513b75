#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The step of tests/bench/transformer.c in PyTorch: eager, compiled, and as a CUDA graph; one JSON object a line.

  transformer_torch.py DEVICE LAYERS DIM HEADS BATCH TOKENS DTYPE [STEPS] [MODE ...]     DEVICE: cpu or cuda

Fair: the same ops, types (no TF32) and values, tensors made before the clock starts, inference mode, each step reads its
sum, the median over the steps after as many to warm up.
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

    def step(self):
        x = self.x
        for n1, s1, qkv_w, qkv_b, out_w, out_b, n2, s2, up_w, up_b, down_w, down_b in self.layers:
            qkv = linear(layer_norm(x, (self.dim,), n1, s1), qkv_w, qkv_b)
            h = scaled_dot_product_attention(*(self.split(qkv, i) for i in range(3)), is_causal=True)
            x = x + linear(h.permute(0, 2, 1, 3).reshape(x.shape), out_w, out_b)
            h = gelu(linear(layer_norm(x, (self.dim,), n2, s2), up_w, up_b))
            x = x + linear(h, down_w, down_b)
        return x.float().sum()


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


def measure(mode, step, steps):
    begun = time.perf_counter()
    step = {"eager": lambda: step, "compiled": lambda: torch.compile(step, dynamic=False),
            "graph": lambda: graphed(step)}[mode]()
    total = step().item()
    first = time.perf_counter() - begun
    taken = []
    for _ in range(2 * steps):
        begun = time.perf_counter()
        total = step().item()
        taken.append(time.perf_counter() - begun)
    print(json.dumps({"mode": mode, "first_s": round(first, 4), "warm_ms": round(statistics.median(taken[steps:]) * 1e3, 4),
                      "least_ms": round(min(taken) * 1e3, 4), "sum": total, "torch": torch.__version__}), flush=True)


def main():
    device, dtype = sys.argv[1], sys.argv[7]
    shape = [int(text) for text in sys.argv[2:7]]
    steps = int(sys.argv[8]) if len(sys.argv) > 8 else 30
    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.inference_mode():
        model = Model(device, *shape, dtype)
        for mode in sys.argv[9:] or MODES:
            if mode != "graph" or device == "cuda":
                measure(mode, model.step, steps)


if __name__ == "__main__":
    main()
