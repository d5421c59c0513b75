#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases and packs of this folder: python3 tests/data/rows/make.py (numpy, scipy, torch)."""

import pathlib
import warnings

import numpy as np

import attending
import contracting
import creating
import descending
import drawing
import elementwise
import indexing
import moving
import normalizing
import quantizing
import reading
import reducing
import resampling
import sorting
import transforming
import transposing
from book import Book

FAMILIES = [moving, creating, drawing, elementwise, reducing, indexing, contracting, normalizing]
FAMILIES += [sorting, transposing, descending, resampling, attending, transforming, quantizing]
FAMILIES += [reading]


def main():
    book = Book()
    warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is one of the cases
    with np.errstate(all="ignore"):
        for family in FAMILIES:
            family.write(book)
    book.write(pathlib.Path(__file__).parent)


if __name__ == "__main__":
    main()
