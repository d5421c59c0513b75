#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the node tests and the whole networks of the Python package `onnx` by the command `frit`.

  tests/onnx/backend.py [--build DIR] [--device D]... [--filter REGEX] [--jobs N] [--work DIR] [--light] [--list FILE]

Each test is a model with inputs and outputs (data set 0).  A test passes if every output has the element type, the dims and, within the
test's own tolerances, the values of the package's.  Random numbers are compared by their distribution.  Tests of strings, sequences, optionals, images and trees, and of results whose dims
depend on elements, are counted apart ("outside").  --list compares what does not pass with a list of names and reasons.
"""
import argparse, collections, concurrent.futures, os, re, subprocess, sys, tempfile, warnings

import numpy as np
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")

OUTSIDE_OPS = {
    "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "ImageDecoder", "LabelEncoder",
    "TreeEnsemble", "SequenceMap", "SequenceInsert", "SequenceLength", "SequenceEmpty", "SplitToSequence", "OptionalHasElement",
    "OptionalGetElement", "ArrayFeatureExtractor", "Binarizer", "NonZero", "NonMaxSuppression", "Unique", "Compress",
}


def is_outside(model, arrays):
    """Why Frit, whose values are tensors of numbers with known dims, cannot have this model; None: it can."""
    nodes = list(model.graph.node)
    while nodes:
        node = nodes.pop()
        if node.op_type in OUTSIDE_OPS:
            return node.op_type
        for attribute in node.attribute:
            nodes += attribute.g.node
    for info in list(model.graph.input) + list(model.graph.output):
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            return kind or "no type"
        if info.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return "string"
    if any(a is None or isinstance(a, list) for a in arrays):
        return "sequence"
    return None


def to_array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


# Types that NumPy's files do not have: stored by their bits, or in a wider type.
def to_file(array, path):
    name = array.dtype.name
    if name.startswith("float8"):
        array = array.view(np.uint8).reshape(-1)
    elif name == "float4_e2m1fn":
        flat = array.view(np.uint8).reshape(-1)
        flat = np.append(flat, np.zeros(len(flat) % 2, np.uint8))
        array = flat[0::2] | flat[1::2] << 4
    elif name in ("int4", "int2"):
        array = array.astype(np.int8)
    elif name in ("uint4", "uint2"):
        array = array.astype(np.uint8)
    np.save(path, np.ascontiguousarray(array).reshape(array.shape))


def same_type(got, want):
    """The result's array in the type that is wanted; None: it has another one."""
    name = want.dtype.name
    if name == "bfloat16" and got.dtype.kind == "V":
        return got.view(want.dtype)
    if name.startswith("float8") and got.dtype == np.uint8:
        return got.view(want.dtype).reshape(want.shape)
    if name == "float4_e2m1fn" and got.dtype == np.uint8:
        flat = np.stack([got & 15, got >> 4], 1).reshape(-1)[: want.size]
        return flat.view(want.dtype).reshape(want.shape)
    if name in ("int4", "int2") and got.dtype == np.int8 or name in ("uint4", "uint2") and got.dtype == np.uint8:
        return got.astype(want.dtype)
    return got if got.dtype == want.dtype else None


# Operators whose results are sums of terms that cancel each other.  The package's own numbers are computed in f32, too, and differ by up to
# 1.5e-6 from those that are computed in f64: what is 0 is not 0 within 1e-7.  Here they agree within 1e-7 of the largest result.
SUMS_OF_TERMS = {"DFT"}


def compare(got, want, rtol, atol, op=""):
    """None, or what differs."""
    array = same_type(got, want)
    if array is None:
        return f"has type {got.dtype}, {want.dtype} is wanted"
    if array.shape != want.shape:
        return f"has dims {array.shape}, {want.shape} is wanted"
    if array.dtype.kind in "biu":
        wrong = np.count_nonzero(array != want)
        return f"{wrong} of {want.size} elements differ" if wrong else None
    got64, want64 = array.astype(np.float64), want.astype(np.float64)
    if want.dtype.itemsize < 4:
        rtol = max(rtol, 2e-3 if name_is(want, "float16") else 1e-2)
        atol = max(atol, 1e-3 if name_is(want, "float16") else 1e-2)
    if op in SUMS_OF_TERMS:
        atol = max(atol, 1e-7 * np.max(abs(want64), initial=0))
    if np.allclose(got64, want64, rtol=rtol, atol=atol, equal_nan=True):
        return None
    with np.errstate(all="ignore"):
        return f"differs by up to {np.nanmax(abs(got64 - want64)):g}"


# Random numbers are compared by what they are drawn from: each has a probability, known from the inputs, to be kept or 1.


def draws(model, inputs):
    """The operator that draws, and the probability of each element; None: nothing is drawn."""
    ops = {node.op_type for node in model.graph.node}
    if "Bernoulli" in ops or "RandomUniformLike" in ops:
        return "Bernoulli", inputs[0].astype(np.float64)
    if "Dropout" in ops and len(inputs) > 2 and inputs[2] and inputs[1] != 0:
        return "Dropout", np.full(inputs[0].shape, 1 - float(inputs[1]))
    return None


def compare_drawn(kind, p, x, outputs):
    """None, or what the numbers, of which the first output has one per probability, cannot be."""
    got = outputs[0].astype(np.float64)
    if got.shape != p.shape:
        return f"has dims {got.shape}, {p.shape} is wanted"
    ones = np.where(x != 0, got != 0, outputs[-1] != 0) if kind == "Dropout" else got == 1
    values = np.where(ones, x / p, 0) if kind == "Dropout" else ones
    if not np.allclose(got, values, rtol=1e-5):
        return "has elements that are neither dropped nor kept"
    if len(outputs) > 1 and not np.array_equal(outputs[1], ones):
        return "differs from its mask"
    off, spread = abs(np.sum(ones) - np.sum(p)), np.sqrt(np.sum(p * (1 - p)))
    return f"{np.sum(ones)} of {p.size} are drawn where {np.sum(p):.1f} are expected" if off > 4 * spread else None


def name_is(array, name):
    return array.dtype.name == name


class Case:
    def __init__(self, name, model, inputs, outputs, rtol, atol):
        self.name, self.model, self.rtol, self.atol = name, model, rtol, atol
        self.inputs, self.outputs = inputs, outputs
        self.outside = is_outside(model, list(inputs) + list(outputs))


def node_cases():
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        inputs, outputs = case.data_sets[0]
        yield Case(case.name, case.model, inputs, outputs, case.rtol, case.atol)


# Networks whose weights are made by the model itself; their inputs are counted up from 0, as the package's own runner does it.
def light_cases():
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".onnx"):
            continue
        model = onnx.load(os.path.join(folder, file))
        weights = {w.name for w in model.graph.initializer}
        inputs = []
        for info in model.graph.input:
            if info.name not in weights:
                dims = [d.dim_value for d in info.type.tensor_type.shape.dim]
                count = int(np.prod(dims))
                inputs.append((np.arange(count).reshape(dims) / count).astype(np.float32))
        with open(os.path.join(folder, file[:-5] + "_output_0.pb"), "rb") as stored:
            tensor = onnx.TensorProto()
            tensor.ParseFromString(stored.read())
        case = Case(file[:-5], model, inputs, [tensor], 1e-3, 1e-5)
        case.model.graph.ClearField("value_info")
        yield case


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line]
    return lines[-1][:300] if lines else "no message"


def run(frit, device, case, folder, limit):
    path = os.path.join(folder, re.sub(r"\W", "_", case.name))
    os.makedirs(path, exist_ok=True)
    file = os.path.join(path, "model.onnx")
    weights = {w.name for w in case.model.graph.initializer}
    onnx.save(case.model, file)
    command = [frit, "run", file, "--device", device]
    names = [i.name for i in case.model.graph.input if i.name not in weights]
    for i, (name, value) in enumerate(zip(names, case.inputs)):
        to_file(to_array(value), f"{path}/in{i}.npy")
        command += ["--in", f"{name}={path}/in{i}.npy"]
    wanted = [o for o in case.model.graph.output]
    for i, output in enumerate(wanted):
        command += ["--out", f"{output.name}={path}/out{i}.npy"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "no end after %d s" % limit
    if done.returncode:
        return f"exit {done.returncode}: {last_line(done.stderr).replace(file, 'model')}"
    drawn = draws(case.model, [to_array(i) for i in case.inputs])
    if drawn:
        got = [np.load(f"{path}/out{i}.npy") for i in range(len(wanted))]
        wrong = [o.name for o, g, w in zip(wanted, got, case.outputs) if g.dtype != to_array(w).dtype]
        return f"{wrong} have other types" if wrong else compare_drawn(*drawn, to_array(case.inputs[0]), got)
    for i, (output, value) in enumerate(zip(wanted, case.outputs)):
        problem = compare(np.load(f"{path}/out{i}.npy"), to_array(value), case.rtol, case.atol, case.model.graph.node[-1].op_type)
        if problem:
            return f"output {output.name} {problem}"
    return None


def read_list(path):
    names = {}
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.strip().partition(" ")
            names[name] = reason.strip()
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", action="append")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work")
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--list")
    args = parser.parse_args()
    frit = os.path.join(args.build, "bin", "frit")
    os.environ.setdefault("FRIT_PLUGIN_PATH", os.path.join(os.path.abspath(args.build), "lib", "frit", "plugins"))
    for name, value in (("CONFIG", "/dev/null"), ("FUSION_STORE", "none"), ("TUNE_STORE", "none"), ("ARTEFACTS", "none"), ("SEARCH_PROBE", "never")):
        os.environ.setdefault("FRIT_" + name, value)
    known = read_list(args.list) if args.list else {}
    cases = [c for c in (light_cases() if args.light else node_cases()) if re.search(args.filter, c.name)]
    inside = [c for c in cases if not c.outside]
    bad = 0
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for device in args.device or ["reference", "cpu"]:
            folder = os.path.join(args.work or temporary, re.sub(r"\W", "_", device))
            results = list(pool.map(lambda c: run(frit, device, c, folder, 600 if args.light else 60), inside))
            failed = [(c.name, r) for c, r in zip(inside, results) if r]
            for name, reason in failed:
                if name not in known:
                    bad += 1
                    print(f"{device}: {name}: {reason}")
            for name in sorted(set(known) & {c.name for c, r in zip(inside, results) if not r}):
                bad += 1
                print(f"{device}: {name}: passes, but is on the list")
            print(f"{device}: {len(inside) - len(failed)} of {len(inside)} pass, {len(failed)} do not; {len(cases) - len(inside)} outside")
    counted = collections.Counter(c.outside for c in cases if c.outside)
    print("outside:", ", ".join(f"{n} {why}" for why, n in sorted(counted.items())))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
