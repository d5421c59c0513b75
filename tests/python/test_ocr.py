# SPDX-License-Identifier: Apache-2.0
"""The boxes of tools/examples/ocr; its networks are not at hand here."""
import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "examples", "ocr"))
import boxes  # noqa: E402


def turned(centre, size, degrees, extent=(120, 160)):
    """A map with a turned rectangle, as the network gives it."""
    y, x = np.mgrid[:extent[0], :extent[1]] + 0.5
    a = np.radians(degrees)
    along = (x - centre[0]) * np.cos(a) + (y - centre[1]) * np.sin(a)
    down = (y - centre[1]) * np.cos(a) - (x - centre[0]) * np.sin(a)
    return np.where((abs(along) <= size[0] / 2) & (abs(down) <= size[1] / 2), 0.9, 0.1)


class Boxes(unittest.TestCase):
    def test_upright(self):
        found, = boxes.find(turned((60, 40), (80, 10), 0), grow=0)
        np.testing.assert_allclose(found, [[20, 35], [100, 35], [100, 45], [20, 45]], atol=1e-4)

    def test_grown_by_area_and_perimeter(self):
        found, = boxes.find(turned((60, 40), (80, 10), 0), grow=1.8)  # by 1.8 * 800 / 180
        np.testing.assert_allclose(found, [[12, 27], [108, 27], [108, 53], [12, 53]], atol=1e-4)

    def test_turned(self):
        for degrees in (-30, 20):
            found, = boxes.find(turned((70, 60), (80, 20), degrees), grow=0)
            np.testing.assert_allclose(boxes.lengths(found), (80, 20), atol=3)
            np.testing.assert_allclose(found.mean(axis=0), (70, 60), atol=1)
            slope = found[1] - found[0]
            self.assertAlmostEqual(np.degrees(np.arctan2(slope[1], slope[0])), degrees, delta=2)

    def test_what_touches_is_one(self):
        values = np.zeros((20, 20))
        values[2:12, 2:5] = values[2:12, 9:12] = values[11, 2:12] = 1  # an U: joined at its last row
        values[12:18, 12:18] = 1  # at a corner
        self.assertEqual(len(boxes.find(values)), 1)
        values[12, 12] = values[11, 11] = 0
        self.assertEqual(len(boxes.find(values)), 2)

    def test_small_and_doubtful_ones_are_left_out(self):
        self.assertEqual(boxes.find(turned((60, 40), (80, 2), 0)), [])
        self.assertEqual(boxes.find(turned((60, 40), (80, 10), 0) * 0.5), [])
        self.assertEqual(boxes.find(np.zeros((4, 4))), [])

    def test_order_of_reading(self):
        def at(x, y):
            return np.array([[x, y], [x + 30, y], [x + 30, y + 10], [x, y + 10]], float)

        ordered = boxes.in_lines([at(50, 3), at(0, 40), at(0, 0), at(50, 38)])
        self.assertEqual([tuple(box[0]) for box in ordered], [(0, 0), (50, 3), (0, 40), (50, 38)])


if __name__ == "__main__":
    unittest.main()
