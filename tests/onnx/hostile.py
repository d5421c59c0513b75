#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models of tests/data/onnx/hostile: what their files say is well formed, and no model.

  tests/onnx/hostile.py [FOLDER]
"""
import os, sys

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh

folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data/onnx/hostile"


def node(kind, ins, outs="y", **attributes):
    return h.make_node(kind, ins.split(" "), outs.split(), **attributes)


def model(name, nodes, inputs=None, opset=17, kind=T.FLOAT, **constants):
    """inputs: name to dims, of f32; constants: name to a list of whole or of other numbers."""
    arrays = {k: np.array(v, np.float32 if isinstance(np.ravel(v)[0], float) else np.int64) for k, v in constants.items()}
    graph = h.make_graph(
        nodes, name, [h.make_tensor_value_info(k, kind, v) for k, v in (inputs or {"x": [2]}).items()],
        [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(v, k) for k, v in arrays.items()])
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], producer_name="frit")
    made.ir_version = 8
    with open(os.path.join(folder, name + ".onnx"), "wb") as file:
        file.write(made.SerializeToString())


def reshape():
    model("reshape", [node("Reshape", "x s")], s=[1 << 32, 1 << 32, -1])


def fractions():
    """Dims and places that are floats."""
    model("fractions", [node("Reshape", "x s", "r"), node("Gather", "r i")], s=[2.0], i=[0.5])


def split():
    model("split", [node("Split", "x s", "y z", axis=0)], {"x": [4]}, s=[5, -1])


def blocks():
    model("blocks", [node("DepthToSpace", "x", blocksize=1 << 32)], {"x": [1, 4, 2, 2]})


def output_shape():
    model("output-shape", [node("ConvTranspose", "x w", output_shape=[4])], {"x": [1, 1, 2, 2], "w": [1, 1, 2, 2]})


def lstm():
    """The recurrent weights are of another size than the others."""
    model("lstm", [node("LSTM", "x w r", hidden_size=3)], {"x": [2, 1, 2], "w": [1, 12, 2], "r": [1, 8, 3]})


def rotary():
    model("rotary", [node("RotaryEmbedding", "x c s", interleaved=1)],
          {"x": [1, 2, 3, 4], "c": [1, 3, 5], "s": [1, 3, 5]}, opset=23)


def target():
    model("target", [node("NegativeLogLikelihoodLoss", "x t")], {"x": [2, 3]}, t=1)


def top():
    model("top", [node("TopK", "x k", "y z", largest=0)], k=[5])


def resize():
    model("resize", [node("Resize", "x   s", mode="linear")], {"x": [1 << 34]}, s=[1 << 30])


def mel():
    model("mel", [node("MelWeightMatrix", "b l r f g")], b=1 << 31, l=(1 << 34) - 2, r=16000, f=0.0, g=8000.0)


def mel_below():
    model("mel-below", [node("MelWeightMatrix", "b l r f g")], b=4, l=1 << 22, r=1, f=-699.99, g=8000.0)


def einsum():
    model("einsum", [node("Einsum", "a b", equation="01234567,89")], {"a": [1] * 8, "b": [1, 1]})


def block_scale():
    model("block-scale", [node("DequantizeLinear", "x s", axis=7, block_size=2)],
          {"x": [1] * 7 + [4], "s": [1] * 7 + [2]}, opset=21)


def loops():
    """Loops in loops, which do nothing, 2^14 times each."""
    body = None
    for level in range(4):
        nodes = [node("Identity", f"s{level}", f"t{level}")] if body is None else [
            h.make_node("Loop", ["n", "", f"s{level}"], [f"t{level}"], body=body)]
        body = h.make_graph(
            nodes + [node("Identity", f"c{level}", f"d{level}")], "body",
            [h.make_tensor_value_info(f"i{level}", T.INT64, []), h.make_tensor_value_info(f"c{level}", T.BOOL, []),
             h.make_tensor_value_info(f"s{level}", T.FLOAT, [2])],
            [h.make_tensor_value_info(f"d{level}", T.BOOL, []), h.make_tensor_value_info(f"t{level}", T.FLOAT, [2])])
    model("loops", [h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], n=1 << 14)


os.makedirs(folder, exist_ok=True)
for make in (reshape, fractions, split, blocks, output_shape, lstm, rotary, target, top, resize, mel, mel_below, einsum, block_scale, loops):
    make()
