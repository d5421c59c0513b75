#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the text in a picture: prints it, and draws boxes around it.

  tools/examples/ocr/ocr.py PICTURE [--device D] [--models DIR] [--out PICTURE.png] [--repeat N]

--models: the folder that tools/examples/ocr/fetch has filled, build/ocr without it.  --repeat runs each network N times more with what it was
given and prints the median of its times, and ONNX Runtime's where Python has the package onnxruntime.
"""
import argparse
import glob
import os
import statistics
import sys
import time

from PIL import Image, ImageDraw

import frit

import networks


def open_networks(folder, device):
    found = {}
    for name in ("det", "cls", "rec"):
        paths = glob.glob(os.path.join(folder, f"*_{name}_infer.onnx"))
        if len(paths) != 1:
            sys.exit(f"{folder} has no network *_{name}_infer.onnx; tools/examples/ocr/fetch gets it")
        found[name] = networks.Network(paths[0], device)
    return found


def read_picture(picture, found):
    """(box, text, how sure) of each line."""
    characters = networks.characters_of(found["rec"].path)
    for box in networks.detect(found["det"], picture):
        line = networks.upright(found["cls"], networks.cut_out(picture, box))
        text, sure = networks.read(found["rec"], line, characters)
        if sure > 0.5:
            yield box, text, sure


def median_ms(run, given, repeat):
    """Of all that a network was given for this picture, together."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        for x in given:
            run(x)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def print_times(found, repeat):
    try:
        import onnxruntime
    except ImportError:
        onnxruntime = None
    device = found["det"].device.name
    print(f"{'network':8} {'runs':>4} {'first ms':>9} {device + ' ms':>12}" + (f" {'ONNX Runtime ms':>16}" if onnxruntime else ""))
    for name, network in found.items():
        given, first = network.given[:], 1e3 * sum(network.seconds)
        for _ in range(3):  # kernels are compiled by now
            median_ms(network, given, 1)
        line = f"{name:8} {len(given):4} {first:9.1f} {median_ms(network, given, repeat):12.1f}"
        if onnxruntime and given:
            session = onnxruntime.InferenceSession(network.path, providers=["CPUExecutionProvider"])
            run = lambda x: session.run(None, {network.input: x})
            median_ms(run, given, 1)
            line += f" {median_ms(run, given, repeat):16.1f}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("--device", help="vulkan:0 for example; a list is tried in turn")
    parser.add_argument("--models", default="build/ocr")
    parser.add_argument("--out", help="the picture with boxes")
    parser.add_argument("--repeat", type=int, default=0)
    args = parser.parse_args()
    picture = Image.open(args.picture).convert("RGB")
    found = open_networks(args.models, frit.device(args.device))
    drawn = picture.copy()
    for box, text, sure in read_picture(picture, found):
        print(f"{sure:.2f}  {text}")
        ImageDraw.Draw(drawn).polygon([tuple(corner) for corner in box], outline=(220, 0, 0))
    if args.out:
        drawn.save(args.out)
    if args.repeat:
        print_times(found, args.repeat)


main()
