# SPDX-License-Identifier: Apache-2.0
"""rfft and irfft, ctc_loss with its gradient."""

import numpy as np
import scipy.fft
import torch

from book import FLOATS, Tensor, Tolerance, epsilon
from book import flipped, permuted, sliced
from contracting import double, in_double, nn
from samples import randoms, smooth

# Dims, axis, length of the signal (None: the default).
SIGNALS = [
    ((8,), 0, None),
    ((2, 7), 1, None),
    ((3, 5, 4), 0, None),
    ((3, 5, 4), 1, 8),
    ((3, 5, 4), -2, 3),
    ((2, 6), 1, 9),
    ((2, 6), -1, 1),
    ((1,), 0, None),
    ((301,), 0, None),
    ((0, 4), 1, None),
]


def rfft_row(book, dtype):
    rng = randoms("rfft", dtype)
    case = book.case("spectrum", "rfft", dtype, in_double(dtype), in_double(dtype))

    def give(x, axis, n):
        attrs = {"axis": axis} | ({"n": n} if n else {})
        if x.tensor.data.size:
            result = scipy.fft.rfft(x.tensor.wide(np.longdouble), n, axis)
        else:
            result = np.fft.rfft(np.zeros((1, 4)), n, axis)[:0]
        case.give_two([x], result.real, result.imag, **attrs)

    for dims, axis, n in SIGNALS:
        give(case.input(smooth(dtype, dims, rng)), axis, n)
    turned = case.input(smooth(dtype, (5, 3, 4), rng), permuted(2, 0, 1), sliced("::-1, :, ::2"))
    give(turned, 1, None)
    give(turned, 1, 4)


def irfft_row(book, dtype):
    rng = randoms("irfft", dtype)
    case = book.case("spectrum", "irfft", dtype, in_double(dtype), in_double(dtype))

    def give(name, re, im, axis, n):
        attrs = {"axis": axis} | ({"n": n} if n else {})
        spectrum = re.tensor.wide(np.longdouble) + 1j * im.tensor.wide(np.longdouble)
        if spectrum.size:
            result = scipy.fft.irfft(spectrum, n, axis)
        else:
            result = np.zeros((0, 6))
        case.give(name, [re, im], result, **attrs)

    for dims, axis, n in SIGNALS:
        if dims == (1,):
            n = 1
        re, im = (case.input(smooth(dtype, dims, rng)) for _ in range(2))
        give(None, re, im, axis, n)
    re = case.input(smooth(dtype, (5, 3, 4), rng), permuted(2, 0, 1), sliced("::-1, :, ::2"))
    im = case.input(smooth(dtype, (4, 2, 5), rng), permuted(0, 2, 1), flipped(1))
    give("strided", re, im, 1, None)


# Steps, classes, blank, targets, their lengths, lengths of the inputs, index type.
SEQUENCES = [
    (5, 4, 0, [[1, 2, 3], [2, 2, 0]], [3, 2], [5, 5], "i64"),
    (7, 3, 2, [[0, 1, 0], [1, 1, 1], [0, 0, 0]], [3, 3, 0], [7, 6, 4], "i32"),
    (2, 3, 0, [[1, 1], [1, 2], [2, 1]], [2, 2, 1], [2, 2, 1], "i64"),  # no path for the first
    (4, 2, 0, [[], []], [0, 0], [4, 2], "i32"),
    (1, 1, 0, [[0]], [0], [1], "i64"),
    (23, 9, 4, [[1, 2, 3, 3, 5, 8, 8, 0, 7, 6]], [10], [23], "i64"),
    (3, 4, 2, [[1, 0], [9, -3]], [7, 2], [99, 3], "i64"),  # clipped to what there is
    (3, 4, 0, [[1, 2], [1, 2]], [0, 1], [0, 0], "i32"),
    (5, 4, 0, np.zeros((0, 3)), [], [], "i64"),
    (0, 3, 0, [[1], [1]], [1, 0], [0, 0], "i64"),  # without steps only the empty target is certain
]


def ctc_rows(book, dtype):
    rng = randoms("ctc_loss", dtype)
    tight = Tolerance(4, 1024 * epsilon("f64"))
    case = book.case("spectrum", "ctc_loss", dtype, tight)
    back = book.case("gradient", "ctc_loss_backward", dtype, tight)

    def give(name, log_probs, targets, lengths, target_lengths, blank):
        steps, items, classes = log_probs.tensor.shape
        longest = targets.tensor.shape[1]
        leaf = double(log_probs.tensor).requires_grad_()
        grad = smooth(dtype, (items,), rng)
        loss, gradient = torch.zeros(items), np.zeros(log_probs.tensor.shape)
        if not steps:
            loss = torch.where(torch.from_numpy(target_lengths.tensor.data > 0), torch.inf, 0.0)
        elif items:
            loss = nn.ctc_loss(
                leaf,
                torch.from_numpy(np.clip(targets.tensor.data, 0, classes - 1).astype(np.int64)),
                torch.from_numpy(np.clip(lengths.tensor.data, 0, steps).astype(np.int64)),
                torch.from_numpy(np.clip(target_lengths.tensor.data, 0, longest).astype(np.int64)),
                blank,
                "none",
            )
            gradient = torch.autograd.grad(loss, leaf, double(grad))[0].numpy()
        operands = [log_probs, targets, lengths, target_lengths]
        case.give(name, operands, loss.detach().numpy(), blank=blank)
        operands = [back.input(operand.tensor) for operand in operands]
        back.give(name, [*operands, grad], gradient, blank=blank)

    for steps, classes, blank, targets, target_lengths, lengths, kind in SEQUENCES:
        logits = torch.from_numpy(rng.normal(size=(steps, len(targets), classes)))
        log_probs = case.input(Tensor(dtype, torch.log_softmax(logits, -1).numpy()))
        shape = len(targets), -1 if len(targets) and len(targets[0]) else 3 * (not len(targets))
        tables = [np.array(targets, np.int64).reshape(shape), lengths, target_lengths]
        tables = [case.input(Tensor(kind, np.array(table, np.int64))) for table in tables]
        give(None, log_probs, *tables, blank)
    logits = torch.from_numpy(rng.normal(size=(4, 6, 2)))
    log_probs = Tensor(dtype, torch.log_softmax(logits, 0).numpy())
    log_probs = case.input(log_probs, permuted(1, 2, 0), flipped(0))
    targets = case.input(Tensor("i64", rng.integers(1, 4, (3, 2))), permuted(1, 0))
    lengths = case.input(Tensor("i64", np.array([6, 0, 5])), sliced("::2"))
    target_lengths = case.input(Tensor("i64", np.array([1, 3])), flipped(0))
    give("strided", log_probs, targets, lengths, target_lengths, 0)


def write(book):
    for dtype in FLOATS:
        rfft_row(book, dtype)
        irfft_row(book, dtype)
        ctc_rows(book, dtype)
