# SPDX-License-Identifier: Apache-2.0
"""Programs from files and texts."""
import os
import tempfile
import unittest
from unittest import mock

import numpy as np

import frit
from frit import _library as library

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Programs(unittest.TestCase):
    def test_a_network_with_its_files(self):
        path = os.path.join(ROOT, "tools", "models", "digits-mlp.frit")
        labels = np.load(os.path.join(ROOT, "tests", "data", "digits", "labels.npy"))
        answer = frit.run(path, device="cpu:0")["answer"].numpy()
        self.assertEqual((answer == labels).sum(), 485)

    def test_inputs(self):
        graph = frit.parse("input x : f32[n, 2]\ninput w : f32[2, k]\noutput y = matmul x, w\n")
        self.assertEqual([(port.name, port.dtype, port.shape) for port in graph.inputs],
                         [("x", "f32", (None, 2)), ("w", "f32", (2, None))])
        x, w = np.ones((3, 2), "f4"), np.arange(4, dtype="f4").reshape(2, 2)
        np.testing.assert_array_equal(graph(x=x, w=w)["y"].numpy(), x @ w)
        self.assertEqual(graph(x=[[1, 2]], w=frit.tensor(w))["y"].tolist(), [[4.0, 7.0]])
        np.testing.assert_array_equal(graph(x=x, w=w, device="reference:0")["y"].numpy(), x @ w)

    def test_constants_in_the_text(self):
        graph = frit.parse("const k : f32[2] = [1, 0.5]\ninput x : f32[2]\noutput y = mul x, k\n")
        self.assertEqual(graph(x=[2.0, 2.0])["y"].tolist(), [2.0, 1.0])

    def test_what_is_wrong_with_inputs(self):
        graph = frit.parse("input x : f32[2]\noutput y = neg x\n")
        with self.assertRaisesRegex(TypeError, "the input 'x' has no value"):
            graph()
        with self.assertRaisesRegex(TypeError, "no input 'z'; there are: x"):
            graph(x=[1.0, 2.0], z=1)
        with self.assertRaisesRegex(frit.Error, "x"):
            graph(x=[1.0, 2.0, 3.0])

    def test_what_is_wrong_with_programs(self):
        with self.assertRaisesRegex(frit.Error, "name.frit:1:"):
            frit.parse("output y = nonsense x\n", "name.frit")
        with self.assertRaises(frit.Error):
            frit.load("no-such-file.frit")


class Models(unittest.TestCase):
    """Models of ONNX give what ONNX Runtime gave; tests/onnx says more."""

    def test_with_their_inputs(self):
        folder = os.path.join(ROOT, "tests", "data", "onnx")
        models = sorted(name for name in os.listdir(folder) if name.endswith(".onnx"))
        self.assertGreater(len(models), 5)
        for name in models:
            with self.subTest(name):
                try:
                    graph = frit.load(os.path.join(folder, name))
                except frit.Error as error:
                    if "has no ONNX" in str(error):
                        self.skipTest(str(error))
                    raise
                base = os.path.join(folder, name[:-5])
                inputs = {port.name: np.load(f"{base}.in{i}.npy")
                          for i, port in enumerate(graph.inputs)}
                for i, got in enumerate(graph(**inputs).values()):
                    expected = np.load(f"{base}.out{i}.npy")
                    self.assertEqual(got.shape, expected.shape)
                    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)

    def test_all_that_is_wrong_is_listed(self):
        graph = frit.load(os.path.join(ROOT, "tests", "data", "onnx", "mlp.onnx"))
        with self.assertRaisesRegex(frit.Error, "mlp.onnx"):
            graph(x=np.zeros((3, 3, 3), "f4"))


    def test_a_model_is_bound_once(self):
        folder, n_binds, bind = os.path.join(ROOT, "tests", "data", "onnx"), 0, library.graph_bind

        def count(*arguments):
            nonlocal n_binds
            n_binds += 1
            return bind(*arguments)

        def call(graph, **inputs):
            nonlocal n_binds
            n_binds = 0
            outputs = graph(**inputs)
            return n_binds, outputs

        with mock.patch.object(library, "graph_bind", count):
            mlp = frit.load(os.path.join(folder, "mlp.onnx"))
            self.assertEqual([call(mlp, x=np.full((n, 2, 4), n, "f4"))[0] for n in (3, 3, 5, 5)], [1, 0, 1, 0])
            shapes = frit.load(os.path.join(folder, "shapes.onnx"))
            x, image = np.zeros(24, "f4"), np.zeros((1, 1, 3, 4), "f4")
            first, again, other = [call(shapes, x=x, image=image, shape=shape)
                                   for shape in ([2, 3, -1], [2, 3, -1], [3, 2, -1])]
            self.assertEqual((again[0], other[0]), (0, 1))
            self.assertEqual([called[1]["g"].shape for called in (first, again, other)],
                             [(3, 2, 2), (3, 2, 2), (2, 3, 2)])


class Files(unittest.TestCase):
    def test_npy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy")
            frit.tensor([[1.0, 2.0]]).save(path)
            np.testing.assert_array_equal(np.load(path), [[1.0, 2.0]])
            np.save(path, np.arange(3))
            self.assertEqual(frit.load_npy(path).tolist(), [0, 1, 2])
            with self.assertRaisesRegex(frit.Error, "nothing.npy"):
                frit.load_npy(os.path.join(folder, "nothing.npy"))

    def test_npz(self):
        arrays = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b c": np.array([True, False]),
                  "n": np.zeros((0, 2)), "f": np.asfortranarray(np.ones((2, 3), "i2"))}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npz")
            for save in (np.savez, np.savez_compressed, frit.save_npz):
                save(path, **arrays)
                for loaded in (frit.load_npz(path), np.load(path)):
                    self.assertEqual(sorted(loaded), sorted(arrays))
                    for name, array in arrays.items():
                        np.testing.assert_array_equal(loaded[name], array)
            with open(path, "r+b") as file:
                file.truncate(200)
            with self.assertRaisesRegex(frit.Error, "truncated"):
                frit.load_npz(path)
            with self.assertRaisesRegex(frit.Error, "1 to 507 bytes"):
                frit.save_npz(path, **{"": 1})


if __name__ == "__main__":
    unittest.main()
