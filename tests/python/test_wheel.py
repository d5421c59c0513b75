# SPDX-License-Identifier: Apache-2.0
"""The wheel works by itself: with its own library and plugins, and without NumPy."""
import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import sys
import frit
assert frit.__file__.startswith({folder!r}), frit.__file__
assert "cpu:0" in frit.devices() and "reference:0" in frit.devices(), frit.devices()
print((frit.tensor([1.0, 2.0], device="cpu:0") + 1).tolist())
assert "numpy" not in sys.modules
import importlib.metadata
assert importlib.metadata.version("frit") == frit.__version__
with open("/proc/self/maps") as maps:  # libraries that manylinux does not promise
    foreign = [line.split()[-1] for line in maps if "libinih" in line or "libsqlite3" in line]
assert foreign and all(path.startswith({folder!r}) for path in foreign) == {bundled}, foreign
"""


class Wheel(unittest.TestCase):
    def test_unpacked_elsewhere(self):
        build = os.environ["FRIT_TEST_BUILD"]
        maker = os.path.join(HERE, "..", "..", "python", "wheel.py")
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, maker, build, folder], check=True,
                                  capture_output=True, text=True).stdout.strip()
            self.check_record(made)
            with zipfile.ZipFile(made) as wheel:
                wheel.extractall(folder)
            environment = {"PYTHONPATH": folder, "FRIT_CONFIG": "/dev/null",
                           "PYTHONDONTWRITEBYTECODE": "1"}
            program = PROGRAM.format(folder=folder, bundled="manylinux_2_" in made)
            ran = subprocess.run([sys.executable, "-c", program], text=True,
                                 env=environment, capture_output=True)
            self.assertEqual((ran.stdout, ran.stderr), ("[2.0, 3.0]\n", ""))

    def check_record(self, path):
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            record = next(name for name in names if name.endswith("/RECORD"))
            lines = [line.split(",") for line in wheel.read(record).decode().splitlines()]
            self.assertEqual(sorted(line[0] for line in lines), sorted(names))
            for name, digest, size in lines[:3]:
                data = wheel.read(name)
                self.assertEqual(int(size), len(data))
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
                self.assertEqual(digest, "sha256=" + expected.rstrip("="))


if __name__ == "__main__":
    unittest.main()
