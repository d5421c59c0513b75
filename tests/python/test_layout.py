# SPDX-License-Identifier: Apache-2.0
"""The structs of the package are those of the headers: a C program prints where their fields are."""
import ctypes
import os
import subprocess
import tempfile
import unittest

from frit import _dlpack, _files, _library, loss, optim

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
STRUCTS = {
    "frit_err": _library.Err, "frit_dims": _library.Dims, "frit_scalar": _library.Scalar,
    "frit_input": _library.Input, "frit_attr": _library.Attr, "frit_port": _library.Port,
    "frit_named_call": _library.NamedCall, "frit_device_desc": _library.DeviceDesc,
    "frit_npz_desc": _files._Desc, "frit_named_tensor": _files._Named,
    "frit_dl_options": _dlpack._Options, "frit_dl_device": _dlpack._Place,
    "frit_dl_managed": _dlpack._Managed, "frit_dl_managed_old": _dlpack._ManagedOld,
    "frit_loss_attrs": loss._Attrs, "frit_loss_cross_entropy_attrs": loss._CrossEntropyAttrs,
    "frit_loss_ctc_attrs": loss._CtcAttrs, "frit_optimizer_config": optim._Config,
    "frit_scaler_config": optim._ScalerConfig, "frit_state_desc": optim._State,
}
RENAMED = {"inputs": "in"}
BEGINNINGS = ("frit_device_desc", "frit_dl_managed", "frit_dl_managed_old")  # the rest is not used


class Layout(unittest.TestCase):
    def test_fields_are_where_the_headers_say(self):
        lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <frit/dlpack.h>",
                 "#include <frit/train.h>", "int main(void) {"]
        expected = []
        for name, struct in STRUCTS.items():
            for field, *_ in struct._fields_:
                at, c_field = getattr(struct, field), RENAMED.get(field, field)
                lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {c_field}), '
                             f"sizeof((({name} *)0)->{c_field}));")
                expected.append(f"{name}.{field} {at.offset} {at.size}")
            if name not in BEGINNINGS:
                lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
                expected.append(f"{name} {ctypes.sizeof(struct)}")
        lines.append("}")
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
            with open(source, "w") as file:
                file.write("\n".join(lines))
            subprocess.run(["cc", "-I", os.path.join(ROOT, "host", "include"),
                            "-I", os.path.join(ROOT, "abi"), source, "-o", program], check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed.splitlines(), expected)


if __name__ == "__main__":
    unittest.main()
