# SPDX-License-Identifier: Apache-2.0
"""DLPack with NumPy and, where it is installed, PyTorch."""
import gc
import sys
import unittest
import weakref

import numpy as np

import frit

try:
    import torch
except ImportError:
    torch = None

VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class WithNumpy(unittest.TestCase):
    def setUp(self):
        self.cpu = frit.device("cpu:0")
        self.array = np.arange(24, dtype="f4").reshape(4, 6)

    def test_in(self):
        for array in (self.array, self.array.T, self.array[::2, 1::2], self.array[::-1, ::-1],
                      np.zeros((0, 3), "i8"), np.array(3.5)):
            with self.subTest(array.strides):
                x = frit.from_dlpack(array, "cpu:0")
                np.testing.assert_array_equal(x.numpy(), array)
                np.testing.assert_array_equal((x + x).numpy(), array + array)

    def test_in_place(self):
        x = frit.from_dlpack(self.array, "cpu:0")
        self.array[0, 0] = 77  # which no program may do, and shows whose memory it is
        self.assertEqual(x[0, 0].item(), 77)
        y = frit.tensor(self.array, device="cpu:0")
        self.array[0, 0] = 78
        self.assertEqual(y[0, 0].item(), 77)

    def test_the_array_lives_as_long_as_it_is_needed(self):
        class Array(np.ndarray):
            pass

        array = self.array.view(Array)
        gone = weakref.ref(array)
        x = frit.from_dlpack(array, "cpu:0")
        del array
        gc.collect()
        self.assertIsNotNone(gone())
        del x
        (frit.tensor([1.0], device="cpu:0") + 1).tolist()
        self.cpu.sync()
        gc.collect()
        self.assertIsNone(gone())

    def test_out(self):
        x = frit.tensor(self.array, device="cpu:0")
        for y in (x + 1, x.transpose(0, 1), x[::-1, 1:3], x.sum()):
            np.testing.assert_array_equal(np.from_dlpack(y), y.numpy())
        out = np.from_dlpack(x * 2)
        del x
        gc.collect()
        for _ in range(4):
            frit.random_uniform(0, 1, (4, 6), device="cpu:0").numpy()
        np.testing.assert_array_equal(out, self.array * 2)

    @unittest.skipUnless(VERSIONED, "this NumPy knows the old struct alone")
    def test_out_in_place(self):
        x = frit.tensor(self.array, device="cpu:0")
        a, b = np.from_dlpack(x), np.from_dlpack(x)
        self.assertEqual(a.ctypes.data, b.ctypes.data)
        self.assertFalse(a.flags.writeable)
        c = np.from_dlpack(x, copy=True)
        self.assertTrue(c.flags.writeable)
        c[0, 0] = 5
        self.assertEqual((a[0, 0], x[0, 0].item()), (0, 0))

    def test_there_and_back(self):
        x = frit.tensor(self.array, device="cpu:0")
        for _ in range(5):
            x = frit.from_dlpack(np.from_dlpack(x) if VERSIONED else x, "cpu:0")
        np.testing.assert_array_equal(x.numpy(), self.array)

    def test_from_another_device(self):
        x = frit.tensor(self.array, device="reference:0")
        np.testing.assert_array_equal(frit.from_dlpack(x, "cpu:0").numpy(), self.array)

    def test_what_is_refused(self):
        x = frit.tensor(self.array, device="cpu:0")
        with self.assertRaisesRegex(BufferError, "no type q4"):
            np.from_dlpack(frit.tensor(np.uint8([1])).packed("q4", (2,)))
        with self.assertRaises(BufferError):
            x.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            x.__dlpack__(stream=1)
        with self.assertRaisesRegex(frit.Error, "complex numbers"):
            frit.from_dlpack(np.zeros(2, "c8"), "cpu:0")
        with self.assertRaisesRegex(TypeError, "neither"):
            frit.from_dlpack([1, 2])

    @unittest.skipUnless("vulkan:0" in frit.devices(), "no device of vulkan")
    def test_device_without_addresses(self):
        x = frit.tensor(self.array, device="vulkan:0")
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        np.testing.assert_array_equal(np.from_dlpack(x), self.array)
        with self.assertRaisesRegex(BufferError, "vulkan:0 has no address.*allow a copy"):
            x.__dlpack__(max_version=(1, 1), copy=False)

    def test_capsules(self):
        x = frit.tensor(self.array, device="cpu:0")
        for version in (None, (1, 0)):
            capsule = x.__dlpack__(max_version=version)
            np.testing.assert_array_equal(frit.from_dlpack(capsule).numpy(), self.array)
            with self.assertRaisesRegex(TypeError, "unused capsule"):
                frit.from_dlpack(capsule)
            before = sys.getrefcount(None)
            for _ in range(1000):
                x.__dlpack__(max_version=version)  # nobody takes it
            self.assertLess(abs(sys.getrefcount(None) - before), 100)


@unittest.skipUnless(torch, "without PyTorch")
class WithTorch(unittest.TestCase):
    def test_types_in_and_out(self):
        for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                     "uint8", "bool"):
            with self.subTest(name):
                given = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(torch, name))
                x = frit.from_dlpack(given, "cpu:0")
                self.assertEqual(x.shape, (2, 3))
                back = torch.from_dlpack(x)
                self.assertEqual(back.dtype, given.dtype)
                self.assertTrue(torch.equal(back, given))
                self.assertTrue(torch.equal(torch.from_dlpack(frit.tensor(given)), given))

    def test_float8(self):
        given = torch.tensor([1.0, -2.0, 0.5]).to(torch.float8_e4m3fn)
        x = frit.from_dlpack(given, "cpu:0")
        self.assertEqual(x.dtype, "f8e4m3")
        self.assertEqual(x.dequantize(frit.tensor(1.0, device="cpu:0")).tolist(), [1.0, -2.0, 0.5])
        back = torch.from_dlpack(x)
        self.assertEqual(back.dtype, torch.float8_e4m3fn)
        self.assertTrue(torch.equal(back.view(torch.uint8), given.view(torch.uint8)))

    def test_strided(self):
        given = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)[1:]
        self.assertEqual(frit.from_dlpack(given, "cpu:0").tolist(), given.tolist())
        x = frit.tensor(np.arange(6, dtype="f4").reshape(2, 3), device="cpu:0").transpose(0, 1)
        self.assertEqual(torch.from_dlpack(x).tolist(), x.tolist())


if __name__ == "__main__":
    unittest.main()
