#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the package with the library and the plugins of a build: wheel.py BUILD FOLDER.

A wheel is a zip of the package and a folder of metadata, whose RECORD has a digest of each file; so
no tool but Python is needed.
"""
import base64
import ctypes
import glob
import hashlib
import os
import sys
import sysconfig
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))

METADATA = """Metadata-Version: 2.1
Name: frit
Version: {version}
Summary: Tensors on any device that a plugin offers, recorded op by op, run as if fused by hand
License: Apache-2.0
License-File: LICENSE
License-File: LICENSE-MIT
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
"""

WHEEL = """Wheel-Version: 1.0
Generator: frit
Root-Is-Purelib: false
Tag: {tag}
"""


def files(build):
    """(path, name in the wheel) of everything but the metadata."""
    for path in sorted(glob.glob(os.path.join(HERE, "frit", "*.py"))):
        yield path, "frit/" + os.path.basename(path)
    lib = os.path.join(build, "lib")
    yield os.path.join(lib, "libfrit.so.0"), "frit/lib/libfrit.so.0"
    for name in ("frit-probe", "trusted-plugins"):
        yield os.path.join(lib, "frit", name), "frit/lib/frit/" + name
    for path in sorted(glob.glob(os.path.join(lib, "frit", "plugins", "libfrit-*.so"))):
        yield path, "frit/lib/frit/plugins/" + os.path.basename(path)


def version_of(build):
    library = ctypes.CDLL(os.path.join(os.path.abspath(build), "lib", "libfrit.so.0"))
    library.frit_version.restype = ctypes.c_char_p
    return library.frit_version().decode()


def make(build, folder):
    version = version_of(build)
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"frit-{version}.dist-info"
    path = os.path.join(folder, f"frit-{version}-{tag}.whl")
    record = []

    def put(wheel, name, data, mode):
        entry = zipfile.ZipInfo(name)  # always of 1980, so that the same build gives the same wheel
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")

    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path + ".new", "w") as wheel:
        for source, name in files(build):
            with open(source, "rb") as file:
                put(wheel, name, file.read(), 0o755 if name.endswith("frit-probe") else 0o644)
        put(wheel, f"{info}/METADATA", METADATA.format(version=version).encode(), 0o644)
        for name in ("LICENSE", "LICENSE-MIT"):
            with open(os.path.join(HERE, "..", name), "rb") as file:
                put(wheel, f"{info}/licenses/{name}", file.read(), 0o644)
        put(wheel, f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), 0o644)
        record.append(f"{info}/RECORD,,\n")
        wheel.writestr(f"{info}/RECORD", "".join(record))
    os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: wheel.py BUILD FOLDER")
    print(make(*sys.argv[1:]))
