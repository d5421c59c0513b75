# SPDX-License-Identifier: Apache-2.0
"""Boxes around text, from a map of how probable text is in each pixel."""
import numpy as np


def find(probability, above=0.3, score=0.5, grow=1.6, least=3):
    """The boxes of a map [height, width]: an array [4, 2] of corners (x, y) each, in the order left top, right top, right bottom, left bottom.

    A box is the smallest rectangle around connected pixels that are `above`, if they have a mean of at least `score`.  The network gives
    the core of a text only: the rectangle grows by `grow` times its area by its perimeter on each side.
    """
    boxes = []
    for points, mean in components(probability, above):
        corners = smallest_rectangle(points)
        sides = lengths(corners)
        if mean < score or min(sides) < least:
            continue
        boxes.append(expand(corners, grow * sides[0] * sides[1] / (2 * (sides[0] + sides[1]))))
    return boxes


def components(values, above):
    """For each set of pixels above a limit that touch, also at corners: the corners of its runs [n, 2] and its mean."""
    parent, runs, before = [], [], []

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for y, row in enumerate(values > above):
        changes = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
        now = []
        for start, end in changes.tolist():
            i = len(parent)
            parent.append(i)
            runs.append((y, start, end))
            now.append((start, end, i))
            for first, last, j in before:
                if first <= end and start <= last:
                    parent[root(i)] = root(j)
        before = now
    sets = {}
    for i, run in enumerate(runs):
        sets.setdefault(root(i), []).append(run)
    for members in sets.values():
        points = [(x, z) for y, start, end in members for x in (start, end) for z in (y, y + 1)]
        total = sum(values[y, start:end].sum() for y, start, end in members)
        yield np.array(points, float), total / sum(end - start for _, start, end in members)


def hull(points):
    """The convex hull of points, counter-clockwise in the picture's coordinates (Andrew's monotone chain)."""
    points = sorted(set(map(tuple, points.tolist())))

    def chain(points):
        kept = []
        for x, y in points:
            while len(kept) > 1 and (kept[-1][0] - kept[-2][0]) * (y - kept[-2][1]) <= (kept[-1][1] - kept[-2][1]) * (x - kept[-2][0]):
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    return np.array(chain(points) + chain(points[::-1]))


def smallest_rectangle(points):
    """The corners of the smallest rectangle around points: one of its sides lies on a side of the hull."""
    outline = hull(points)
    sides = np.roll(outline, -1, axis=0) - outline
    best = None
    for direction in np.unique(np.round(np.arctan2(sides[:, 1], sides[:, 0]) % (np.pi / 2), 6)):
        axes = np.array([[np.cos(direction), np.sin(direction)], [-np.sin(direction), np.cos(direction)]])
        turned = outline @ axes.T
        low, high = turned.min(axis=0), turned.max(axis=0)
        area = np.prod(high - low)
        if best is None or area < best[0]:
            corners = np.array([low, (high[0], low[1]), high, (low[0], high[1])])
            best = area, corners @ axes
    return from_left_top(best[1])


def from_left_top(corners):
    """The same rectangle, beginning with the corner that is the left top one of its upright picture, clockwise."""
    return np.roll(corners, -int(np.argmin(corners.sum(axis=1))), axis=0)


def lengths(corners):
    """Width and height of a rectangle."""
    return np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])


def expand(corners, distance):
    """The rectangle with all sides moved outwards."""
    along = (corners[1] - corners[0]) / max(np.linalg.norm(corners[1] - corners[0]), 1e-9) * distance
    down = (corners[3] - corners[0]) / max(np.linalg.norm(corners[3] - corners[0]), 1e-9) * distance
    return corners + np.array([-along - down, along - down, along + down, -along + down])


def in_lines(boxes):
    """Boxes in the order in which one reads: from the top, and from the left where their middles are on one line."""
    rest, ordered = sorted(boxes, key=lambda box: box[:, 1].mean()), []
    while rest:
        first = rest[0]
        line = [box for box in rest if abs(box[:, 1].mean() - first[:, 1].mean()) < lengths(first)[1] / 2]
        ordered += sorted(line, key=lambda box: box[:, 0].min())
        rest = [box for box in rest if not any(box is other for other in line)]
    return ordered
