# SPDX-License-Identifier: Apache-2.0
"""Gradients, losses and optimisers, beside NumPy's own arithmetic."""
import gc
import os
import unittest

import numpy as np

import frit

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "digits")


class Gradients(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(3)
        self.x, self.w = random.random((4, 3), "f4"), random.random((3, 2), "f4")

    def test_of_a_product(self):
        x, w = frit.tensor(self.x), frit.tensor(self.w)
        with frit.gradients(w) as gradients:
            gradients.backward(frit.square(x @ w).sum())
            dw = gradients.of(w)
        np.testing.assert_allclose(dw.numpy(), 2 * self.x.T @ (self.x @ self.w), rtol=1e-5)

    def test_with_a_gradient_and_twice(self):
        w = frit.tensor([1.0, 2.0])
        with frit.gradients(w) as gradients:
            y = w * w
            gradients.backward(y, frit.tensor([1.0, 10.0]), keep=True)
            gradients.backward(y, frit.tensor([1.0, 10.0]))
            self.assertEqual(gradients.of(w).tolist(), [4.0, 80.0])

    def test_what_is_not_followed(self):
        w, v = frit.tensor([3.0]), frit.tensor([1.0])
        with frit.gradients(w, v) as gradients:
            with frit.no_grad():
                constant = w * 2.0
            gradients.backward((w * constant).sum())
            self.assertEqual(gradients.of(w).tolist(), [6.0])
            self.assertEqual(gradients.of(v).tolist(), [0.0])

    def test_errors_end_them(self):
        w = frit.tensor([1.0, 2.0])
        with self.assertRaises(frit.Error):
            with frit.gradients(w) as gradients:
                gradients.backward(w * 2.0)  # of two elements
        with self.assertRaises(frit.Error):
            with frit.gradients(frit.tensor([1])):  # no float
                pass
        with frit.gradients(w) as gradients:  # none is left open
            gradients.backward((w * 2.0).sum())
            with self.assertRaises(frit.Error):
                gradients.of(frit.tensor([1.0]))


class Losses(unittest.TestCase):
    def test_values(self):
        x, y = np.float32([[0.5, -1], [2, 0]]), np.float32([[1, 0], [0, 1]])
        a, b = frit.tensor(x), frit.tensor(y)
        self.assertAlmostEqual(frit.loss.mse(a, b).item(), ((x - y) ** 2).mean(), places=5)
        bce = np.log1p(np.exp(x)) - x * y
        self.assertAlmostEqual(frit.loss.bce(a, b, reduction="sum").item(), bce.sum(), places=5)
        log = x - np.log(np.exp(x).sum(1, keepdims=True))
        got = frit.loss.cross_entropy(a, frit.tensor([0, 1]), 1, reduction="none").numpy()
        np.testing.assert_allclose(got, [-log[0, 0], -log[1, 1]], rtol=1e-5)
        got = frit.loss.cross_entropy(a, frit.tensor([0, 7]), 1, ignore_index=7).item()
        self.assertAlmostEqual(got, -log[0, 0], places=5)
        with self.assertRaisesRegex(ValueError, "mean, sum, none"):
            frit.loss.mse(a, b, reduction="average")


class Optimizers(unittest.TestCase):
    def run_steps(self, optimizer, w, n=5):
        for i in range(n):
            with frit.gradients(w) as gradients:
                gradients.backward((w * w * (i + 1.0)).sum())
                optimizer.step()
        return w.numpy()

    def test_sgd(self):
        w, expected, speed = frit.tensor([1.0, -2.0]), np.array([1.0, -2.0]), 0
        got = self.run_steps(frit.optim.SGD([w], 0.01, momentum=0.9), w)
        for i in range(5):
            speed = 0.9 * speed + 2 * (i + 1) * expected
            expected = expected - 0.01 * speed
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    def test_adamw(self):
        w, expected = frit.tensor([1.0, -2.0]), np.array([1.0, -2.0])
        optimizer = frit.optim.AdamW([w], 0.1)
        got = self.run_steps(optimizer, w)
        m = v = 0
        for i in range(5):
            g = 2 * (i + 1) * expected
            expected = expected * (1 - 0.1 * 0.01)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            step = m / (1 - 0.9 ** (i + 1)) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
            expected = expected - 0.1 * step
        np.testing.assert_allclose(got, expected, rtol=1e-5)
        self.assertEqual((optimizer.steps, optimizer.rate), (5, 0.1))

    def test_states_go_on(self):
        first = frit.tensor([1.0, -2.0])
        optimizer = frit.optim.Adam([first], 0.1)
        self.run_steps(optimizer, first, 3)
        second = frit.tensor(first.numpy())
        other = frit.optim.Adam([second], 0.1)
        self.assertEqual(sorted(optimizer.state()), ["0.exp_avg", "0.exp_avg_sq"])
        other.load_state(optimizer.state())
        other.steps = optimizer.steps
        np.testing.assert_array_equal(self.run_steps(optimizer, first, 2),
                                      self.run_steps(other, second, 2))
        with self.assertRaises(ValueError):
            other.load_state({})

    def test_own_gradients_limits_and_rates(self):
        w = frit.tensor([3.0, 4.0])
        optimizer = frit.optim.SGD([w], 1.0, clip_norm=1.0)
        optimizer.step([w * 1.0])
        self.assertAlmostEqual(optimizer.norm.item(), 5.0, places=5)
        np.testing.assert_allclose(w.numpy(), [2.4, 3.2], rtol=1e-5)
        optimizer.rate = 0.0
        optimizer.step([w * 1.0])
        optimizer.sync()
        np.testing.assert_allclose(w.numpy(), [2.4, 3.2], rtol=1e-5)

    def test_a_scaler_skips_what_overflows(self):
        w = frit.tensor([1.0])
        scaler = frit.optim.Scaler(scale=4.0)
        optimizer = frit.optim.SGD([w], 0.5, scaler=scaler)
        for grad in (4.0, float("inf"), 4.0):
            optimizer.step([frit.tensor([grad])])
            scaler.update()
        self.assertEqual(w.tolist(), [1.0 - 0.5 - 0.5 * 2])
        self.assertEqual(scaler.state()["scale"].item(), 2.0)
        del scaler, optimizer
        gc.collect()

    def test_a_network_learns_digits(self):
        images = np.load(os.path.join(DATA, "train_images.npy")).reshape(-1, 64).astype("f4")
        labels = np.load(os.path.join(DATA, "train_labels.npy")).astype("i8")
        images /= images.max()
        frit.seed(1)
        params = [frit.random_normal(0, 0.2, (64, 32)), frit.zeros((32,)),
                  frit.random_normal(0, 0.2, (32, 10)), frit.zeros((10,))]

        def network(x):
            w1, b1, w2, b2 = params
            return frit.linear(frit.relu(frit.linear(x, w1, b1)), w2, b2)

        optimizer = frit.optim.Adam(params, 1e-2)
        x, y = frit.tensor(images), frit.tensor(labels)
        before = frit.loss.cross_entropy(network(x), y, 1).item()
        for _ in range(30):
            with frit.gradients(*params) as gradients:
                gradients.backward(frit.loss.cross_entropy(network(x), y, 1))
                optimizer.step()
        right = (network(x).argmax(axes=1) == y).cast("f32").mean().item()
        self.assertGreater(right, 0.9)
        self.assertLess(frit.loss.cross_entropy(network(x), y, 1).item(), before / 4)


if __name__ == "__main__":
    unittest.main()
