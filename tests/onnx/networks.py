#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks beside ONNX Runtime, also on machines that do not have it.

  tests/onnx/networks.py store FOLDER MODEL.onnx [--as NAME] [--in INPUT=VALUE]...
  tests/onnx/networks.py compare FOLDER [--build DIR] [--device D]... [--filter REGEX] [--repeat N] [--within X]

store copies a model into the folder with inputs and ONNX Runtime's outputs for them as .npz.  VALUE is FILE.npy, a number, or dims (1,3,224,224),
which makes random elements: of floats in -1..1, of integers in 0..99.  Dims that nobody says are 1.
compare wants NumPy and the command `frit`: runs each model of the folder on each device in two processes and prints the largest difference
by the largest element of an output, and milliseconds: the first run of the first process, which compiles; the first run of the second
one, which finds what was compiled; the median of the others.  It ends 1 if a difference is larger than X, 1e-4.
"""
import argparse, glob, json, os, re, shutil, subprocess, sys, tempfile

import numpy as np


def value_of(info, text, random):
    kind = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}[info.type]
    if text and text.endswith(".npy"):
        return np.load(text).astype(kind)
    if text and "," not in text and not info.shape:
        return np.array(float(text), kind)
    dims = [int(d) for d in text.split(",")] if text else [d if isinstance(d, int) else 1 for d in info.shape]
    return random.integers(0, 100, dims).astype(kind) if kind in (np.int64, np.int32) else np.asarray(random.random(dims) * 2 - 1, kind)


def store(args):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    given = dict(text.split("=", 1) for text in args.input)
    random = np.random.default_rng(0)
    inputs = {info.name: value_of(info, given.pop(info.name, None), random) for info in session.get_inputs()}
    if given:
        sys.exit(f"{args.model}: no input {', '.join(given)}; there are {', '.join(inputs)}")
    path = os.path.join(args.folder, args.name or os.path.basename(args.model)[:-5])
    os.makedirs(args.folder, exist_ok=True)
    shutil.copy(args.model, path + ".onnx")
    outputs = dict(zip((info.name for info in session.get_outputs()), session.run(None, inputs)))
    np.savez_compressed(path + ".in.npz", **inputs)
    np.savez_compressed(path + ".want.npz", **{name: np.asarray(value) for name, value in outputs.items()})


def difference(got, want):
    """The largest over the outputs; infinite where an output is missing or has other dims."""
    most = 0.0
    for name in want.files:
        if name not in got.files or got[name].shape != want[name].shape:
            return np.inf
        a, b = got[name].astype(np.float64), want[name].astype(np.float64)
        if a.size:
            most = max(most, float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b)), 1e-30)))
    return most if np.isfinite(most) else np.inf


def run(frit, path, device, folder, repeat):
    """The outputs, and the times of the first run, the first one of a second process, and the others."""
    got = os.path.join(folder, "got.npz")
    command = [frit, "run", path + ".onnx", "--device", device, "--in", path + ".in.npz", "--out", got, "--json", "--repeat"]
    reports = []
    for times in (1, repeat):
        done = subprocess.run(command + [str(times)], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip() or f"exit {done.returncode}"
        reports.append(json.loads(done.stdout))
    return np.load(got), [1e3 * s for s in (reports[0]["first_seconds"], reports[1]["first_seconds"], reports[1]["seconds"])]


def compare(args):
    frit = os.path.join(args.build, "bin", "frit")
    bad = 0
    for device in args.device or ["cpu"]:
        print(f"{device:24} {'difference':>10} {'first':>9} {'again':>9} {'warm':>9}  ms")
        for want in sorted(glob.glob(os.path.join(args.folder, "*.want.npz"))):
            path = want[: -len(".want.npz")]
            if not re.search(args.filter, os.path.basename(path)):
                continue
            with tempfile.TemporaryDirectory() as folder:
                os.environ["FRIT_ARTEFACTS"] = os.path.join(folder, "artefacts")
                got, times = run(frit, path, device, folder, args.repeat)
                if got is None:
                    bad += 1
                    print(f"{os.path.basename(path):24} {times}", flush=True)
                    continue
                most = difference(got, np.load(want))
            bad += most > args.within
            print(f"{os.path.basename(path):24} {most:10.2g} " + " ".join(f"{t:9.2f}" for t in times) + ("  TOO FAR" if most > args.within else ""), flush=True)
    return bad > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    storing = commands.add_parser("store")
    storing.add_argument("folder")
    storing.add_argument("model")
    storing.add_argument("--as", dest="name")
    storing.add_argument("--in", dest="input", action="append", default=[])
    comparing = commands.add_parser("compare")
    comparing.add_argument("folder")
    comparing.add_argument("--build", default="build")
    comparing.add_argument("--device", action="append")
    comparing.add_argument("--filter", default="")
    comparing.add_argument("--repeat", type=int, default=20)
    comparing.add_argument("--within", type=float, default=1e-4)
    args = parser.parse_args()
    sys.exit(store(args) if args.command == "store" else compare(args))


main()
