# SPDX-License-Identifier: Apache-2.0
"""The rows of `frit bench DEVICE` in PyTorch, eager and compiled: one JSON object a line, GB/s, or GFLOP/s of
products.

  device_torch.py DEVICE ROWS COLUMNS [ROUNDS] [ROW ...]     DEVICE: cpu or cuda; ROW: these alone

Fair: the same ops and types (no TF32), sizes and bytes counted, tensors made before the clock starts, inference mode, many
in a queue and one wait, the median over rounds, compiled code warmed up.
"""
import io
import json
import math
import statistics
import sys
import time

import torch

import transformer_torch


def norm(x, w, b):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), w, b, 1e-5)


def chain(x):
    t = x + x
    t = (t * 0.5 - 1.0) * x + 3.0
    return 0.125 - (t.abs() * 0.25 + x)


# name: (matrices moved, function of the data)
ROWS = {
    "copy": (2, lambda d: d.x.clone()),
    "add": (3, lambda d: d.x + d.y),
    "chain": (2, lambda d: chain(d.x)),
    "broadcast": (2, lambda d: d.x * d.row + d.column),
    "transposed": (3, lambda d: d.x + d.yt.t()),
    "gelu": (2, lambda d: torch.nn.functional.gelu(d.x)),
    "silu": (2, lambda d: torch.nn.functional.silu(d.x)),
    "softmax": (2, lambda d: torch.softmax(d.x, 1)),
    "softmax-0": (2, lambda d: torch.softmax(d.x, 0)),
    "softmax-1": (2, lambda d: torch.softmax(d.blocks, 1)),
    "layernorm": (2, lambda d: norm(d.x, d.row[0], d.row[0])),
    "rmsnorm": (2, lambda d: d.x / (d.x.square().mean(1, True) + 1e-5).sqrt() * d.row),
    "sum": (1, lambda d: d.x.sum()),
    "sum-rows": (1, lambda d: d.x.sum(1)),
    "sum-columns": (1, lambda d: d.x.sum(0)),
    "max": (1, lambda d: d.x.amax(1)),
    "argmax": (1, lambda d: d.x.argmax(1)),
}


def mlp(x, w, b, w_2, b_2):
    return torch.relu(x @ w + b) @ w_2 + b_2


def conv(x, w, b):
    return torch.relu(torch.nn.functional.conv2d(x, w, b, padding=1))


def attention(dims, causal, *dtype):
    batch, heads, tokens, width = dims
    return (4.0 * batch * heads * tokens**2 * width / (2 if causal else 1), [dims] * 3,
            lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), *dtype)


# name: layers, dim, heads, batch, tokens, dtype
TRANSFORMERS = {
    "transformer-256": (4, 256, 4, 1, 128, "f32"),
    "transformer-256-1": (4, 256, 4, 1, 1, "f32"),
    "transformer-768": (12, 768, 12, 1, 128, "f32"),
    "transformer-768-1": (12, 768, 12, 1, 1, "f32"),
    "transformer-bf16": (4, 768, 12, 8, 1024, "bf16"),
}


def cube(n):
    return 2.0 * n**3, [(n, n), (n, n)], torch.matmul


def q4(rows):
    """Weights of 4 bits in groups of 32 by the packed product that PyTorch has for the CPU, times bf16: times f32 it is a
    plain loop, forty times slower.  On a GPU f32 weights that were unpacked before."""
    n = k = 4096

    def operands(device):
        x = torch.rand(rows, k, device=device) * 2 - 1
        if device != "cpu":
            return x, torch.rand(n, k, device=device)
        codes = torch.randint(0, 16, (n, k), dtype=torch.int32)
        scales = torch.rand(k // 32, n, 2, dtype=torch.bfloat16)
        return x.bfloat16(), torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1), scales

    def run(x, w, scales=None):
        return x @ w.t() if scales is None else torch.ops.aten._weight_int4pack_mm_for_cpu(x, w, 32, scales)

    return 2.0 * rows * n * k, operands, run


# name: (operations, dims of the operands or a function that makes them, function of them, their dtype if it is not f32)
PRODUCTS = {
    "matmul-256": cube(256),
    "matmul-512": cube(512),
    "matmul-1024": cube(1024),
    "matmul-2048": cube(2048),
    "matmul-bf16": (*cube(1024), torch.bfloat16),
    "matmul-bf16-8192": (*cube(8192), torch.bfloat16),
    "matmul-bias-gelu-bf16": (2.0 * 8192 * 768 * 3072, [(8192, 768), (768, 3072), (3072,)],
                              lambda a, b, c: torch.nn.functional.gelu(a @ b + c), torch.bfloat16),
    "matmul-tall": (2.0 * 4096 * 256**2, [(4096, 256), (256, 256)], torch.matmul),
    "attention": attention((1, 12, 512, 64), False),
    "attention-causal": attention((1, 12, 512, 64), True),
    "attention-bf16": attention((8, 16, 2048, 64), True, torch.bfloat16),
    "matmul-turned": (2.0 * 1024**3, [(1024, 1024)] * 2, lambda a, b: a @ b.t()),
    "gemv": (2.0 * 4096**2, [(4096, 4096), (4096, 1)], torch.matmul),
    "skinny-8": (16.0 * 4096**2, [(8, 4096), (4096, 4096)], torch.matmul),
    "skinny-8-turned": (16.0 * 4096**2, [(8, 4096), (4096, 4096)], lambda a, b: a @ b.t()),
    "skinny-8-bf16": (16.0 * 4096**2, [(8, 4096), (4096, 4096)], torch.matmul, torch.bfloat16),
    "skinny-1": (2.0 * 4096**2, [(1, 4096), (4096, 4096)], torch.matmul),
    "skinny-1-turned": (2.0 * 4096**2, [(1, 4096), (4096, 4096)], lambda a, b: a @ b.t()),
    "skinny-32": (64.0 * 4096**2, [(32, 4096), (4096, 4096)], torch.matmul),
    "q4-1": q4(1),
    "q4-1-turned": q4(1),
    "q4-32": q4(32),
    "q4-32-turned": q4(32),
    "batched": (128.0 * 128 * 128 * 64, [(64, 128, 64), (64, 64, 128)], torch.matmul),
    "matmul-bias-gelu": (2.0 * 256**3, [(256, 256), (256, 256), (256,)],
                         lambda a, b, c: torch.nn.functional.gelu(a @ b + c)),
    "conv3x3": (16.0 * 64 * 56 * 56 * 64 * 9, [(8, 64, 56, 56), (64, 64, 3, 3), (64,)], conv),
    "conv3x3-14": (16.0 * 256 * 14 * 14 * 256 * 9, [(8, 256, 14, 14), (256, 256, 3, 3), (256,)], conv),
    "conv1x1": (16.0 * 64 * 56 * 56 * 256, [(8, 256, 56, 56), (64, 256, 1, 1), (64,)], torch.nn.functional.conv2d),
    "conv7x7": (16.0 * 64 * 112 * 112 * 3 * 49, [(8, 3, 224, 224), (64, 3, 7, 7), (64,)],
                lambda x, w, b: torch.relu(torch.nn.functional.conv2d(x, w, b, stride=2, padding=3))),
    "depthwise": (16.0 * 128 * 56 * 56 * 9, [(8, 128, 56, 56), (128, 1, 3, 3), (128,)],
                  lambda x, w, b: torch.nn.functional.conv2d(x, w, b, padding=1, groups=128)),
    "mlp": (256.0 * 512 * (784 + 10), [(128, 784), (784, 512), (512,), (512, 10), (10,)], mlp),
}


class Block(torch.nn.Module):
    def __init__(self, channels, inside, stride):
        super().__init__()
        self.a = torch.nn.Conv2d(channels, inside, 1)
        self.b = torch.nn.Conv2d(inside, inside, 3, stride, 1)
        self.c = torch.nn.Conv2d(inside, 4 * inside, 1)
        self.kept = torch.nn.Conv2d(channels, 4 * inside, 1, stride) if channels != 4 * inside else torch.nn.Identity()

    def forward(self, x):
        y = torch.relu(self.b(torch.relu(self.a(x))))
        return torch.relu(self.c(y) + self.kept(x))


def resnet():
    """ResNet-50 as in `frit bench`: norms are folded into weights."""
    layers = [torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Block(channels, 64 << stage, 2 if stage and not block else 1))
            channels = 256 << stage
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 1000))


RESNET_OPERATIONS = 8.178368512e9  # of an image of 224 x 224


def onnx_resnet(model, x, rounds):
    """Seconds of ONNX Runtime, of the same network and threads; None where it is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return None
    file = io.BytesIO()
    torch.onnx.export(model, (x,), file, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x.numpy()}
    return seconds("cpu", lambda: session.run(None, feed), rounds)


def report_resnet(device, rounds):
    model, x = resnet().eval().to(device), torch.rand(1, 3, 224, 224, device=device)
    with torch.inference_mode():
        if device == "cpu":
            onnx = onnx_resnet(model, x, rounds)
            if onnx:
                row = {"row": "resnet50", "onnxruntime": round(RESNET_OPERATIONS / onnx * 1e-9, 3)}
                print(json.dumps(row), flush=True)
        report(device, "resnet50", RESNET_OPERATIONS, lambda run: lambda: run(x), model, rounds)


class Data:
    def __init__(self, device, rows, columns):
        def uniform(*dims):
            return torch.rand(*dims, device=device) + 0.5

        self.x, self.y, self.yt = uniform(rows, columns), uniform(rows, columns), uniform(columns, rows)
        self.row, self.column = uniform(1, columns), uniform(rows, 1)
        block = max(n for n in range(1, 257) if rows % n == 0)
        self.blocks = self.x.view(rows // block, block, columns)


def wait(device):
    if device != "cpu":
        torch.cuda.synchronize()


def seconds(device, run, rounds):
    for _ in range(3):
        run()
    wait(device)
    begun = time.perf_counter()
    run()
    wait(device)
    n = max(1, min(64, math.floor(0.1 / max(time.perf_counter() - begun, 1e-6))))
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(n):
            run()
        wait(device)
        taken.append((time.perf_counter() - begun) / n)
    return statistics.median(taken)


def report(device, name, work, call, run, rounds):
    """One line.  `call` makes of a function one without arguments; work is bytes or operations."""
    row = {"row": name, "torch": torch.__version__}
    with torch.inference_mode():
        for mode, code in ("eager", run), ("compiled", torch.compile(run, dynamic=False)):
            row[mode] = round(work / seconds(device, call(code), rounds) * 1e-9, 3)
    print(json.dumps(row), flush=True)


def main():
    device, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 9
    huge = {"attention-bf16", "transformer-bf16"} if device == "cpu" else set()
    wanted = sys.argv[5:] or [name for name in (*ROWS, "resnet50", *TRANSFORMERS, *PRODUCTS) if name not in huge]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    data = Data(device, rows, columns)
    for name in wanted:
        if name == "resnet50":
            report_resnet(device, rounds)
        elif name in ROWS:
            matrices, run = ROWS[name]
            report(device, name, matrices * rows * columns * 4, lambda run, data=data: lambda: run(data), run, rounds)
        elif name in TRANSFORMERS:
            layers, dim, heads, batch, tokens, dtype = TRANSFORMERS[name]
            flops = layers * batch * tokens * (24.0 * dim**2 + 2.0 * dim * tokens)
            model = transformer_torch.Model(device, layers, dim, heads, batch, tokens, dtype)
            report(device, name, flops, lambda run: run, model.step, rounds)
        elif name in PRODUCTS:
            operations, dims, run, *dtype = PRODUCTS[name]
            if callable(dims):
                operands = dims(device)
            else:
                operands = [(torch.rand(*d, device=device) * 2 - 1).to(*(dtype or [torch.float32])) for d in dims]
            report(device, name, operations, lambda run, operands=operands: lambda: run(*operands), run, rounds)


main()
