# SPDX-License-Identifier: Apache-2.0
"""Functions of the op table: parameters, attributes, several results, documentation."""
import inspect
import unittest

import numpy as np

import frit
from frit import ops


class Table(unittest.TestCase):
    def test_every_row_has_a_function_with_documentation(self):
        self.assertGreater(len(ops.__all__), 150)
        for name in ops.__all__:
            self.assertTrue(getattr(frit, name).__doc__, name)
        for name in ops.METHODS:
            self.assertIs(getattr(frit.Tensor, name), getattr(ops, name))

    def test_the_order_of_parameters(self):
        def parameters(function):
            return str(inspect.signature(function))

        self.assertEqual(parameters(frit.sum), "(x, *, axes=None, keep=False)")
        self.assertEqual(parameters(frit.full), "(value, dims, dtype='f32', *, device=None)")
        self.assertEqual(parameters(frit.and_), "(a, b)")
        self.assertEqual(parameters(frit.quantize),
                         "(x, scales, dtype, global_=None, *, block=None, scale=None, "
                         "global_type=None, symmetric=False)")


class Calls(unittest.TestCase):
    def setUp(self):
        self.array = np.random.default_rng(1).random((1, 2, 6, 6), "f4")
        self.x = frit.tensor(self.array)

    def test_lists_flags_and_numbers_as_attributes(self):
        for axes in ((2, 3), (3,), 1, None):
            np.testing.assert_allclose(self.x.sum(axes=axes, keep=True).numpy(),
                                       self.array.sum(axis=axes, keepdims=True), rtol=1e-5)
        np.testing.assert_array_equal(self.x.permute((0, 2, 3, 1)).numpy(),
                                      self.array.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(frit.pad(self.x, 7, low=(0, 0, 1, 0), high=(0, 0, 0, 2)).numpy(),
                                      np.pad(self.array, ((0, 0), (0, 0), (1, 0), (0, 2)),
                                             constant_values=7))
        y = frit.layer_norm(self.x, eps=1.0).numpy()
        mean, var = self.array.mean(-1, keepdims=True), self.array.var(-1, keepdims=True)
        np.testing.assert_allclose(y, (self.array - mean) / np.sqrt(var + 1), atol=1e-5)

    def test_a_window_for_every_spatial_dim(self):
        y = frit.avg_pool(self.x, kernel=2)
        np.testing.assert_allclose(y.numpy(), self.array.reshape(1, 2, 3, 2, 3, 2).mean((3, 5)),
                                   rtol=1e-5)
        self.assertEqual(frit.avg_pool(self.x, kernel=(2, 3)).shape, (1, 2, 3, 2))

    def test_words(self):
        small = frit.interpolate(self.x, size=(3, 3), mode="bilinear", align_corners=True)
        self.assertEqual(small.shape, (1, 2, 3, 3))
        with self.assertRaisesRegex(ValueError, "nearest, nearest_exact, bilinear"):
            frit.interpolate(self.x, size=3, mode="cubic")

    def test_several_results(self):
        values, index = frit.topk(frit.tensor([3.0, 9.0, 5.0]), 0, 2, index=True)
        self.assertEqual((values.tolist(), index.tolist()), ([9.0, 5.0], [1, 2]))
        self.assertEqual(frit.topk(frit.tensor([3.0, 9.0, 5.0]), 0, 2).tolist(), [9.0, 5.0])
        re, im = frit.rfft(frit.tensor([1.0, 0.0, 0.0, 0.0]), 0)
        self.assertEqual((re.tolist(), im.tolist()), ([1.0] * 3, [0.0] * 3))

    def test_many_operands_and_absent_ones(self):
        a, b = frit.tensor([[1.0]]), frit.tensor([[2.0]])
        self.assertEqual(frit.cat([a, b, a], 0).tolist(), [[1.0], [2.0], [1.0]])
        self.assertEqual(frit.stack((a, b), 0).shape, (2, 1, 1))
        self.assertEqual(frit.linear(a, b).tolist(), [[2.0]])
        self.assertEqual(frit.linear(a, b, frit.tensor([3.0])).tolist(), [[5.0]])

    def test_from_nothing(self):
        self.assertEqual(frit.arange(1, 2, 3, "i32").tolist(), [1, 3, 5])
        self.assertEqual(frit.full(2.5, (2,)).tolist(), [2.5, 2.5])
        frit.seed(1)
        first = frit.random_normal(0, 1, (100,)).numpy()
        frit.seed(1)
        np.testing.assert_array_equal(frit.random_normal(0, 1, (100,)).numpy(), first)

    def test_dtypes(self):
        for dtype in ("f16", np.float16, np.dtype("f2")):
            self.assertEqual(self.x.cast(dtype).dtype, "f16")
        with self.assertRaisesRegex(TypeError, "there are: f64, f32"):
            self.x.cast("complex64")

    def test_slices(self):
        np.testing.assert_array_equal(self.x.slice([None, (0, 1, 1), slice(None, None, -1)]).numpy(),
                                      self.array[:, 0:1, ::-1])

    def test_by_name(self):
        self.assertEqual(frit.op("sum", frit.tensor([1.0, 2.0]), axes=[0]).tolist(), 3.0)
        with self.assertRaisesRegex(frit.Error, "did you mean 'gelu'"):
            frit.op("gellu", self.x)
        with self.assertRaisesRegex(frit.Error, "no attribute 'axe'"):
            frit.op("sum", self.x, axe=1)

    def test_what_is_no_operand(self):
        with self.assertRaisesRegex(TypeError, "operand 1 is a str"):
            frit.add(self.x, "text")
        with self.assertRaises(OverflowError):
            frit.add(frit.tensor([1]), 2**70)


if __name__ == "__main__":
    unittest.main()
