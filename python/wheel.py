#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the package with the library and the plugins of a build: wheel.py BUILD FOLDER.

A wheel is a zip of the package and a folder of metadata, whose RECORD has a digest of each file; so
no tool but Python is needed.  The libraries that those of the build are linked with and that
manylinux does not promise go into the wheel, with their licences, where Debian's package manager
knows these; the wheel is then tagged with the C library that it wants.
"""
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))

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


def binaries(build):
    return [path for path, name in files(build) if name.startswith("frit/lib/") and not name.endswith("trusted-plugins")]


# What manylinux promises of all that Frit may be linked with, by the names of PEP 600's policies.
PROMISED = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|z|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")


def foreign(build):
    """(path, soname, licence) of each library to be put in; None: not all of them can be."""
    found = {}
    for path in binaries(build):
        linked = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        for soname, library in re.findall(r"^\s*(\S+) => (/\S+)", linked, re.MULTILINE):
            if not PROMISED.fullmatch(soname):
                found[soname] = library
    if not found:
        return []
    try:
        owners = subprocess.run(["dpkg-query", "-S", *map(os.path.realpath, found.values())],
                                capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    packages = {path: package.split(":")[0] for package, path in re.findall(r"^(\S+): (\S+)$", owners, re.MULTILINE)}
    result = []
    for soname, library in sorted(found.items()):
        licence = f"/usr/share/doc/{packages.get(os.path.realpath(library))}/copyright"
        if not os.path.exists(licence):
            return None
        result.append((library, soname, licence))
    return result


def platform(paths):
    """The tag of a wheel that has all it needs but the C library: manylinux with its version."""
    wanted = (2, 17)  # the oldest that the tag is known for
    for path in paths:
        with open(path, "rb") as file:
            versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=\.\d+\0|\0)", file.read())
        wanted = max([wanted] + [(int(major), int(minor)) for major, minor in versions])
    return f"manylinux_{wanted[0]}_{wanted[1]}_{os.uname().machine}"


def make(build, folder):
    with open(os.path.join(build, "python", "METADATA")) as file:
        metadata = file.read()
    version = re.search("^Version: (.*)$", metadata, re.MULTILINE)[1]
    others = foreign(build)
    tag = "py3-none-" + (sysconfig.get_platform().replace("-", "_").replace(".", "_") if others is None else
                         platform(binaries(build) + [library for library, _, _ in others]))
    info = f"frit-{version}.dist-info"
    path = os.path.join(folder, f"frit-{version}-{tag}.whl")
    record = []

    def put(wheel, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name)  # always of 1980, so that the same build gives the same wheel
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")

    def put_file(wheel, name, source, mode=0o644):
        with open(source, "rb") as file:
            put(wheel, name, file.read(), mode)

    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(path + ".new", "w") as wheel:
        for source, name in files(build):
            put_file(wheel, name, source, 0o755 if name.endswith("frit-probe") else 0o644)
        for library, soname, licence in others or []:
            put_file(wheel, f"frit/lib/{soname}", library)
            put_file(wheel, f"{info}/licenses/{soname}", licence)
        put(wheel, f"{info}/METADATA", metadata.encode())
        for name in ("LICENSE", "LICENSE-MIT"):
            put_file(wheel, f"{info}/licenses/{name}", os.path.join(HERE, "..", name))
        put(wheel, f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
        record.append(f"{info}/RECORD,,\n")
        wheel.writestr(f"{info}/RECORD", "".join(record))
    os.replace(path + ".new", path)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: wheel.py BUILD FOLDER")
    print(make(*sys.argv[1:]))
