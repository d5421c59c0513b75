# SPDX-License-Identifier: Apache-2.0
"""The three networks of PP-OCR: where text is, which way up it is, what it says."""
import time

import numpy as np
from PIL import Image

import frit

import boxes

HEIGHT = 48  # of the lines that the last two networks take
WIDTHS = 160  # widths of lines are multiples of it, so that a program is compiled for a few of them only


class Network:
    """A model with one input.  Keeps what it was given, so that it can be timed again."""

    def __init__(self, path, device):
        self.path, self.device, self.graph = path, device, frit.load(path)
        self.input = next(port.name for port in self.graph.inputs if not port.is_const)
        self.given, self.seconds = [], []

    def __call__(self, x):
        start = time.perf_counter()
        y = next(iter(self.graph.run({self.input: x}, self.device).values())).numpy()
        self.given.append(x)
        self.seconds.append(time.perf_counter() - start)
        return y


def to_planes(picture):
    """[3, height, width] in -1..1, blue first, as the networks were trained."""
    return (np.asarray(picture, np.float32)[:, :, ::-1] / 127.5 - 1).transpose(2, 0, 1)


def detect(network, picture, least=736, most=2000):
    """The boxes of text in a picture.  Its shorter side is brought to `least` pixels if it has less, sides to multiples of 32."""
    scale = min(max(1, least / min(picture.size)), most / max(picture.size))
    size = [max(32, round(side * scale / 32) * 32) for side in picture.size]
    probability = network(to_planes(picture.resize(size))[None])[0, 0]
    return [box * [picture.size[0] / size[0], picture.size[1] / size[1]] for box in boxes.in_lines(boxes.find(probability))]


def cut_out(picture, box):
    """The line of text in a box, turned so that it is horizontal."""
    width, height = (max(1, round(side)) for side in boxes.lengths(box))
    corners = box[[0, 3, 2, 1]].ravel().tolist()  # Pillow goes the other way round
    line = picture.transform((width, height), Image.Transform.QUAD, corners, Image.Resampling.BILINEAR)
    return line if height < 1.5 * width else line.rotate(90, expand=True)


def to_line(line, width):
    """A line as the networks take it: of the right height, and zeros up to the width."""
    x = np.zeros((1, 3, HEIGHT, width), np.float32)
    planes = to_planes(line.resize((min(width, max(1, round(line.size[0] * HEIGHT / line.size[1]))), HEIGHT)))
    x[0, :, :, :planes.shape[2]] = planes
    return x


def upright(network, line, sure=0.9):
    """The line, turned by half a turn if it stands on its head."""
    return line.rotate(180) if network(to_line(line, 4 * HEIGHT))[0, 1] > sure else line


def read(network, line, characters):
    """The text of a line, and how sure the network is."""
    width = max(2, -(-round(line.size[0] * HEIGHT / line.size[1]) // WIDTHS)) * WIDTHS
    probability = network(to_line(line, width))[0]
    best, sure = probability.argmax(axis=1), probability.max(axis=1)
    # Of a character that stands in several columns the first one counts; 0 is the space between two.
    kept = (best > 0) & (best != np.concatenate([[0], best[:-1]]))
    return "".join(characters[i - 1] for i in best[kept]), float(sure[kept].mean()) if kept.any() else 0.0


def characters_of(path):
    """What the numbers of the last network mean: its model has them as metadata, a line each; a space comes last."""
    with open(path, "rb") as file:
        model = file.read()
    for number, value in fields(model):
        if number == 14:  # metadata_props
            entry = dict(fields(value))
            if entry.get(1) == b"character":
                return entry[2].decode().split("\n") + [" "]
    raise ValueError(f"{path} does not say which characters it knows")


def fields(message):
    """(number, bytes) of those fields of a protobuf message that have a length; numbers are passed over."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 2:
            length = varint()
            yield tag >> 3, message[at:at + length]
            at += length
        elif tag & 7 == 0:
            varint()
        else:
            at += 4 if tag & 7 == 5 else 8
