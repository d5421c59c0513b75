#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small models of tests/data/onnx with inputs and outputs; the outputs are ONNX Runtime's.

  tests/onnx/make.py [FOLDER]

NAME.onnx, NAME.inK.npy for each input without a value of its own, NAME.outK.npy for each output.
"""
import os, sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper as nh

folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data/onnx"
random = np.random.default_rng(7)


def floats(*dims):
    return (random.standard_normal(dims) * 0.5).astype(np.float32)


def bytes_of(*dims, low=0, high=256, dtype=np.uint8):
    return random.integers(low, high, dims).astype(dtype)


def model(name, nodes, inputs, outputs, constants, opset=17, functions=(), external=False, declared=None, tensors=()):
    """inputs: name to array; declared: name to dims with names, for those whose dims are open."""
    declared = declared or {}
    kinds = {np.dtype(np.float32): T.FLOAT, np.dtype(np.int64): T.INT64, np.dtype(np.uint8): T.UINT8, np.dtype(np.bool_): T.BOOL}
    graph = h.make_graph(
        nodes, name,
        [h.make_tensor_value_info(k, kinds[v.dtype], declared.get(k, v.shape)) for k, v in inputs.items()],
        [h.make_tensor_value_info(k, kind, None) for k, kind in outputs.items()],
        [nh.from_array(v, k) for k, v in constants.items()] + list(tensors))
    imports = [h.make_opsetid("", opset)] + ([h.make_opsetid("local", 1)] if functions else [])
    made = h.make_model(graph, opset_imports=imports, functions=list(functions), producer_name="frit")
    made.ir_version = 10 if tensors else 8
    path = os.path.join(folder, name + ".onnx")
    if external:
        onnx.save(made, path, save_as_external_data=True, location=name + ".bin", size_threshold=0)
    else:
        onnx.save(made, path)
    options = onnxruntime.SessionOptions()
    if tensors:  # else it multiplies by weights of few bits with less precision
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    for i, value in enumerate(inputs.values()):
        np.save(f"{folder}/{name}.in{i}.npy", value)
    for i, value in enumerate(results):
        np.save(f"{folder}/{name}.out{i}.npy", value)


def node(kind, ins, outs, **attributes):
    return h.make_node(kind, ins.split(), outs.split(), **attributes)


def mlp():
    """Dims that are open, and a reshape whose shape is computed from them."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "rows"), node("Concat", "rows rest", "shape", axis=0),
             node("Reshape", "x shape", "flat"), node("Gemm", "flat w1 b1", "h", transB=1), node("Relu", "h", "a"),
             node("MatMul", "a w2", "l"), node("Softmax", "l", "y", axis=-1)]
    model("mlp", nodes, {"x": floats(3, 2, 4)}, {"y": T.FLOAT},
          {"w1": floats(6, 8), "b1": floats(6), "w2": floats(6, 5), "zero": np.array([0]), "rest": np.array([-1])}, declared={"x": ["n", 2, 4]})


def cnn():
    """Pads that differ, a rounded-up pool, normalisation, weights in a file of their own."""
    nodes = [node("Conv", "x w b", "c", pads=[0, 1, 1, 1], strides=[1, 2]), node("BatchNormalization", "c g o m v", "n"),
             node("LeakyRelu", "n", "r", alpha=0.2), node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
             node("AveragePool", "p", "q", kernel_shape=[2, 2], auto_pad="SAME_UPPER"), node("GlobalAveragePool", "q", "k"), node("Flatten", "k", "y")]
    model("cnn", nodes, {"x": floats(2, 3, 6, 7)}, {"y": T.FLOAT},
          {"w": floats(4, 3, 3, 3), "b": floats(4), "g": floats(4), "o": floats(4), "m": floats(4), "v": abs(floats(4)) + 1}, external=True)


def old():
    """Opset 7: bounds, axes and sizes as attributes."""
    nodes = [node("Slice", "x", "s", axes=[1], starts=[1], ends=[100]), node("Clip", "s", "c", min=-0.3, max=0.4), node("Unsqueeze", "c", "u", axes=[0]),
             node("Softmax", "u", "y", axis=1), node("Dropout", "y", "z", ratio=0.3), node("Upsample", "image", "i", scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")]
    model("old", nodes, {"x": floats(3, 4), "image": floats(1, 1, 2, 3)}, {"z": T.FLOAT, "i": T.FLOAT}, {}, opset=7)


def lstm():
    nodes = [node("LSTM", "x w r b", "y h c", hidden_size=3, direction="bidirectional")]
    model("lstm", nodes, {"x": floats(4, 2, 3)}, {"y": T.FLOAT, "h": T.FLOAT, "c": T.FLOAT}, {"w": floats(2, 12, 3), "r": floats(2, 12, 3), "b": floats(2, 24)})


def quantised():
    """Integers with scales, as nodes of their own and inside of convolution and product."""
    scale, zero = np.array(0.05, np.float32), np.array(128, np.uint8)
    nodes = [node("QuantizeLinear", "x scale zero", "q"),
             node("QLinearConv", "q scale zero w ws wz scale zero", "c", pads=[1, 1, 1, 1]), node("DequantizeLinear", "c scale zero", "d"),
             node("DynamicQuantizeLinear", "d", "dq ds dz"), node("MatMulInteger", "dq m dz", "i"), node("Cast", "i", "f", to=T.FLOAT), node("Mul", "f ds", "y")]
    model("quantised", nodes, {"x": floats(1, 2, 4, 4)}, {"y": T.FLOAT},
          {"scale": scale, "zero": zero, "w": bytes_of(3, 2, 3, 3, low=-9, high=9, dtype=np.int8), "ws": np.array([0.1, 0.2, 0.05], np.float32),
           "wz": np.zeros(3, np.int8), "m": bytes_of(4, 2)})


def control():
    """A loop whose count, and a choice whose condition, are constants; a scan."""
    body = h.make_graph([node("Identity", "go", "on"), node("Cast", "i", "k", to=T.FLOAT), node("Add", "a k", "sum"), node("Mul", "sum half", "part")], "body",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("go", T.BOOL, []), h.make_tensor_value_info("a", T.FLOAT, [2])],
                        [h.make_tensor_value_info("on", T.BOOL, []), h.make_tensor_value_info("sum", T.FLOAT, [2]), h.make_tensor_value_info("part", T.FLOAT, [2])])
    yes = h.make_graph([node("Neg", "last", "r")], "yes", [], [h.make_tensor_value_info("r", T.FLOAT, [2])])
    no = h.make_graph([node("Abs", "last", "r")], "no", [], [h.make_tensor_value_info("r", T.FLOAT, [2])])
    step = h.make_graph([node("Add", "s e", "t"), node("Identity", "t", "o")], "step",
                        [h.make_tensor_value_info("s", T.FLOAT, [2]), h.make_tensor_value_info("e", T.FLOAT, [2])],
                        [h.make_tensor_value_info("t", T.FLOAT, [2]), h.make_tensor_value_info("o", T.FLOAT, [2])])
    nodes = [node("Loop", "three true x", "last parts", body=body), node("Size", "parts", "n"), node("Greater", "n three", "many"),
             node("If", "many", "r", then_branch=yes, else_branch=no), node("Scan", "r parts", "end all", body=step, num_scan_inputs=1)]
    model("control", nodes, {"x": floats(2)}, {"r": T.FLOAT, "end": T.FLOAT, "all": T.FLOAT},
          {"three": np.array(3), "true": np.array(True), "half": np.array(0.5, np.float32)})


def function():
    """A function of the model's own, with an attribute of its call."""
    scaled = onnx.FunctionProto()
    leaky = node("LeakyRelu", "a", "b")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    scaled = h.make_function("local", "Scaled", ["a", "w"], ["c"], [leaky, node("Mul", "b w", "c")], [h.make_opsetid("", 17)], ["slope"])
    nodes = [h.make_node("Scaled", ["x", "w"], ["y"], domain="local", slope=0.25), h.make_node("Scaled", ["y", "w"], ["z"], domain="local", slope=0.5)]
    model("function", nodes, {"x": floats(2, 3)}, {"y": T.FLOAT, "z": T.FLOAT}, {"w": floats(3)}, functions=[scaled])


def shapes():
    """Indices, resizing, sorting; a shape that is given as an input."""
    nodes = [node("Reshape", "x shape", "a"), node("Transpose", "a", "b", perm=[1, 0, 2]), node("Gather", "b minus", "g", axis=2), node("TopK", "a two", "v i", axis=1),
             node("Resize", "image  scales", "r", mode="linear", coordinate_transformation_mode="asymmetric"), node("Pad", "a pads", "p", mode="reflect"),
             node("CumSum", "a two0", "s", reverse=1), node("Einsum", "a a", "e", equation="bij,bkj->bik")]
    nodes[4] = h.make_node("Resize", ["image", "", "scales"], ["r"], mode="linear", coordinate_transformation_mode="asymmetric")
    model("shapes", nodes, {"x": floats(24), "shape": np.array([2, 3, -1]), "image": floats(1, 1, 3, 4)},
          {k: T.FLOAT if k != "i" else T.INT64 for k in ("g", "v", "i", "r", "p", "s", "e")},
          {"minus": np.array([-1, 0]), "two": np.array([2]), "two0": np.array(2), "scales": np.array([1, 1, 1.5, 2], np.float32), "pads": np.array([0, 1, 2, 0, 1, 1])})


def statistics():
    """Normalisation by what are inputs."""
    model("statistics", [node("BatchNormalization", "x g o m v", "y", epsilon=0.01)],
          {"x": floats(2, 3, 2, 2), "g": floats(3), "o": floats(3), "m": floats(3), "v": abs(floats(3))}, {"y": T.FLOAT}, {})


def tiles():
    """Transposed convolution whose windows do not overlap, and one whose windows do."""
    model("tiles", [node("ConvTranspose", "x w b", "t", strides=[2, 3]), node("ConvTranspose", "t v", "y", strides=[2, 2], pads=[1, 0, 0, 1])],
          {"x": floats(2, 3, 2, 4)}, {"t": T.FLOAT, "y": T.FLOAT}, {"w": floats(3, 4, 2, 3), "b": floats(4), "v": floats(4, 2, 3, 3)})


def traces():
    """What exporters leave behind: a slice of all, reshapes to and fro, one index, a power of 2, a mean of one; weights put together from parts."""
    nodes = [node("Slice", "x zero width one", "a"), node("Reshape", "a line", "b"), node("Reshape", "b back", "c"), node("Gather", "c one", "d", axis=0),
             node("Pow", "d two", "e"), node("ReduceMean", "e", "f", axes=[0], keepdims=0), node("Slice", "w zero half zero", "w0"),
             node("Slice", "w half end zero", "w1"), node("Concat", "w1 w0", "parts", axis=0), node("Cast", "parts", "v", to=T.FLOAT), node("MatMul", "f v", "y")]
    numbers = {"zero": 0, "one": 1, "width": 160, "half": 80, "end": 160}
    model("traces", nodes, {"x": floats(3, 160)}, {"y": T.FLOAT},
          {"w": bytes_of(160, 128, high=2), "line": np.array([480]), "back": np.array([3, 160]), "two": np.array(2, np.float32)} | {k: np.array([v]) for k, v in numbers.items()})


def places():
    """Elements read between others: grids of three dims, and regions whose largest sample counts."""
    grid = (random.random((1, 2, 3, 2, 3)) * 2.6 - 1.3).astype(np.float32)
    regions = np.array([[0, 0, 4, 3], [1.5, -1, 6, 5]], np.float32)
    nodes = [node("GridSample", "x grid", "l", mode="linear", padding_mode="reflection"), node("GridSample", "x grid", "n", mode="nearest", align_corners=1),
             node("RoiAlign", "image regions which", "r", mode="max", output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.8)]
    model("places", nodes, {"x": floats(1, 2, 3, 4, 2), "grid": grid, "image": floats(2, 2, 5, 6), "regions": regions},
          {"l": T.FLOAT, "n": T.FLOAT, "r": T.FLOAT}, {"which": np.array([1, 0])}, opset=20)


def types():
    """Floats of 8 bits, with and without saturation; whole numbers beyond 2^63 that are computed while the model is read."""
    nodes, outputs = [], {}
    for i, kind in enumerate((T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ)):
        for saturate in (0, 1):
            nodes += [node("Cast", "x", f"c{i}{saturate}", to=kind, saturate=saturate), node("Cast", f"c{i}{saturate}", f"y{i}{saturate}", to=T.FLOAT)]
            outputs[f"y{i}{saturate}"] = T.FLOAT
    nodes += [node("Concat", " ".join(outputs), "all", axis=0), node("IsNaN", "all", "none"), node("Clip", "all low high", "clipped"),
              node("Where", "none zero clipped", "numbers"), node("Max", "big small", "most"), node("Mod", "most seven", "rest"), node("Cast", "rest", "r", to=T.INT64)]
    x = np.array([0, -0.0, 1, -1.0625, 239, 248, 250, -463, 464.5, 1e-4, -2e-6, 57344, 61439, 1e9, np.inf, -np.inf, np.nan], np.float32)
    model("types", nodes, {"x": x}, {"none": T.BOOL, "numbers": T.FLOAT, "r": T.INT64},
          {"low": np.array(-1e5, np.float32), "high": np.array(1e5, np.float32), "zero": np.zeros(1, np.float32), "big": np.array([2**63 + 5], np.uint64), "small": np.array([9], np.uint64), "seven": np.array([7], np.uint64)}, opset=19)


def weights():
    """Products with weights of 4 and 8 bits: blocks along either axis, a scale per column, zero points in the middle, others, none."""
    def whole(name, kind, dims, low, high):
        values = random.integers(low, high, dims)
        return h.make_tensor(name, kind, dims, values.reshape(-1))

    made = [whole("a", T.INT4, (64, 260), -8, 8), whole("b", T.UINT4, (260, 64), 0, 16), h.make_tensor("mid", T.UINT4, (260, 2), [8] * 520),
            nh.from_array(bytes_of(64, 260, low=-128, high=128, dtype=np.int8), "c"), nh.from_array(bytes_of(260, 9), "d"), nh.from_array(bytes_of(9), "odd")]
    scales = {"sa": (4, 260), "sb": (260, 2), "sc": (260,), "sd": (9,)}
    made += [nh.from_array((abs(floats(*dims)) + 0.1) / (8 if name < "sc" else 300), name) for name, dims in scales.items()]
    nodes = [node("DequantizeLinear", "a sa", "fa", axis=0, block_size=16), node("MatMul", "x fa", "p"), node("DequantizeLinear", "b sb mid", "fb", axis=1, block_size=32),
             node("MatMul", "p fb", "q"), node("DequantizeLinear", "c sc", "fc", axis=1), node("MatMul", "q fc", "r"),
             node("DequantizeLinear", "d sd odd", "fd", axis=1), node("MatMul", "r fd", "s"), node("Tanh", "s", "y")]
    model("weights", nodes, {"x": floats(3, 64) / 20}, {"y": T.FLOAT}, {}, opset=21, tensors=made)


os.makedirs(folder, exist_ok=True)
for make in (mlp, cnn, old, lstm, quantised, control, function, shapes, statistics, tiles, places, types, weights, traces):
    make()
