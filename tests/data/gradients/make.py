#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases and packs of this folder: python3 tests/data/gradients/make.py (numpy, torch).

  --programs N FOLDER   writes N random programs there instead, for host_grad_torch --programs FOLDER
"""

import pathlib
import sys
import warnings

import programs
import rows
from book import Book

STORED = 40


def write_programs(folder, count):
    book = Book()
    programs.write(book, count)
    book.write(folder, "programs")


def main():
    warnings.simplefilter("ignore")
    if len(sys.argv) == 4 and sys.argv[1] == "--programs":
        write_programs(pathlib.Path(sys.argv[3]), int(sys.argv[2]))
        return
    here = pathlib.Path(__file__).parent
    book = Book()
    rows.write(book)
    book.write(here, "rows")
    write_programs(here, STORED)


if __name__ == "__main__":
    main()
