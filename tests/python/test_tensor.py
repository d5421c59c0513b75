# SPDX-License-Identifier: Apache-2.0
"""Values into tensors and back, indexing, operators, lifetimes and errors."""
import contextlib
import gc
import threading
import unittest
import weakref

import numpy as np

import frit


class Values(unittest.TestCase):
    def test_numpy_types_go_there_and_back(self):
        for dtype in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"):
            with self.subTest(dtype):
                array = np.array([[0, 1, 2], [3, 100, 1]]).astype(dtype)
                x = frit.tensor(array)
                self.assertEqual(x.shape, (2, 3))
                self.assertEqual(x.numpy().dtype, array.dtype)
                np.testing.assert_array_equal(x.numpy(), array)
                self.assertEqual(x.tolist(), array.tolist())

    def test_strided_and_big_endian_arrays_are_copied(self):
        array = np.arange(24, dtype=">i4").reshape(4, 6)[::-2, 1::2]
        np.testing.assert_array_equal(frit.tensor(array).numpy(), array)

    def test_lists_and_numbers(self):
        self.assertEqual(frit.tensor([[1, 2], [3, 4]]).dtype, "i64")
        self.assertEqual(frit.tensor([1, 2.5]).dtype, "f32")
        self.assertEqual(frit.tensor([True, False]).tolist(), [True, False])
        self.assertEqual(frit.tensor(2.5).tolist(), 2.5)
        self.assertEqual(frit.tensor([[], []]).tolist(), [[], []])
        self.assertEqual(frit.tensor([2.5, -1], dtype="bf16").tolist(), [2.5, -1])
        self.assertEqual(frit.tensor(np.float32(3)).shape, ())
        with self.assertRaises(ValueError):
            frit.tensor([[1, 2], [3]])
        with self.assertRaises(TypeError):
            frit.tensor(np.array(["text"]))

    def test_empty(self):
        x = frit.tensor(np.zeros((3, 0, 2), "f4"))
        self.assertEqual(x.numpy().shape, (3, 0, 2))
        self.assertEqual(x.tolist(), [[], [], []])

    def test_bf16_and_packed(self):
        self.assertEqual(frit.tensor(np.float32([1, 2]), dtype="bf16").numpy().dtype, np.float32)
        packed = frit.tensor(np.uint8([0x38, 0xb8])).packed("f8e4m3", (2,))
        self.assertEqual(packed.dtype, "f8e4m3")
        self.assertEqual(packed.dequantize(frit.tensor(2.0)).tolist(), [2.0, -2.0])
        self.assertEqual(bytes(packed.numpy()), b"\x38\xb8")

    def test_a_number_of_python(self):
        x = frit.tensor([[7]])
        self.assertEqual((int(x), float(x), bool(x), [10, 11, 12, 13, 14, 15, 16, 17][x]),
                         (7, 7.0, True, 17))
        with self.assertRaises(ValueError):
            bool(frit.tensor([1, 2]))

    def test_write(self):
        x = frit.tensor(np.float32([1, 2]))
        y = x + 1
        x.write(np.float32([5, 6]))
        self.assertEqual((x.tolist(), y.tolist()), ([5, 6], [2, 3]))
        with self.assertRaises(ValueError):
            x.write(np.float32([1, 2, 3]))


class Indexing(unittest.TestCase):
    def test_as_numpy(self):
        array = np.arange(120, dtype="f4").reshape(4, 5, 6)
        x = frit.tensor(array)
        for index in (np.s_[1], np.s_[-1, 2], np.s_[1:3], np.s_[..., 0], np.s_[::-1, 1::2], np.s_[::-2],
                      np.s_[None, 2, ..., None], np.s_[:, -3:-1, 4:1:-1], np.s_[3:1], np.s_[1, 2, 3],
                      np.s_[...]):
            with self.subTest(index):
                np.testing.assert_array_equal(x[index].numpy(), array[index])

    def test_errors_and_iteration(self):
        x = frit.tensor([[1, 2], [3, 4], [5, 6]])
        self.assertEqual([row.tolist() for row in x], [[1, 2], [3, 4], [5, 6]])
        with self.assertRaises(IndexError):
            x[3]
        with self.assertRaises(IndexError):
            x[0, 0, 0]
        with self.assertRaises(TypeError):
            len(frit.tensor(1))


class Operators(unittest.TestCase):
    def test_of_two_tensors(self):
        a, b = np.float32([[1, 2], [3, -4]]), np.float32([[2, 0.5], [-3, 3]])
        x, y = frit.tensor(a), frit.tensor(b)
        for name, function in (("+", lambda p, q: p + q), ("-", lambda p, q: p - q),
                               ("*", lambda p, q: p * q), ("/", lambda p, q: p / q),
                               ("%", lambda p, q: p % q), ("@", lambda p, q: p @ q),
                               ("<", lambda p, q: p < q), (">=", lambda p, q: p >= q),
                               ("==", lambda p, q: p == q), ("!=", lambda p, q: p != q)):
            with self.subTest(name):
                np.testing.assert_allclose(function(x, y).numpy(), function(a, b), rtol=1e-6)
                np.testing.assert_allclose(function(x, b).numpy(), function(a, b), rtol=1e-6)
                np.testing.assert_allclose((function(a, y)).numpy(), function(a, b), rtol=1e-6)

    def test_with_numbers(self):
        x = frit.tensor(np.float32([1, 2]))
        self.assertEqual((2 - x).tolist(), [1, 0])
        self.assertEqual((x ** 2 / 4).tolist(), [0.25, 1])
        self.assertEqual((2 / x).tolist(), [2, 1])
        self.assertEqual((-x).tolist(), [-1, -2])
        self.assertEqual((x + np.float32(1)).tolist(), [2, 3])

    def test_of_integers_and_bools(self):
        x = frit.tensor([5, 6])
        self.assertEqual(((x & 3) | 8).tolist(), [9, 10])
        self.assertEqual(((x << 1) ^ (x >> 1)).tolist(), [8, 15])
        self.assertEqual((~frit.tensor([True, False])).tolist(), [False, True])
        self.assertEqual((x / 4).tolist(), [1, 1])  # the rule of row div

    def test_what_is_no_operand(self):
        with self.assertRaises(TypeError):
            frit.tensor(1) + "text"


class Lifetimes(unittest.TestCase):
    def test_a_tensor_ends_with_its_last_reference(self):
        x = frit.tensor([1.0])
        gone = weakref.ref(x)
        x = x + 1
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(x.tolist(), [2.0])

    def test_errors_have_the_text_of_the_library(self):
        with contextlib.suppress(frit.Error):
            frit.device().sync()  # what other tests have left
        with self.assertRaises(frit.Error) as caught:
            frit.tensor([1.0, 2.0]) + frit.tensor([1.0, 2.0, 3.0])
        self.assertEqual(caught.exception.status, "invalid")
        self.assertIn("do not broadcast", str(caught.exception))
        with self.assertRaisesRegex(frit.Error, "do not broadcast"):
            frit.device().sync()
        frit.device().sync()
        with self.assertRaises(frit.Error):
            frit.device("no-such-driver:0")

    def test_threads(self):
        x = frit.tensor(np.ones(1000, "f4"))
        results = []

        def work(n):
            y = x
            for _ in range(100):
                y = y + n
            results.append((n, y.numpy()))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted((n, float(y[0])) for n, y in results),
                         [(n, 1.0 + 100 * n) for n in range(4)])
        self.assertTrue(all((y == y[0]).all() for _, y in results))

    def test_devices(self):
        self.assertIs(frit.device("cpu:0"), frit.device("cpu:0"))
        x = frit.tensor([1.0, 2.0], device="cpu:0").to("reference:0")
        self.assertEqual((x.device.name, (x + 1).tolist()), ("reference:0", [2.0, 3.0]))
        with self.assertRaises(frit.Error):
            x + frit.tensor([1.0, 2.0], device="cpu:0")


if __name__ == "__main__":
    unittest.main()
