# SPDX-License-Identifier: Apache-2.0
"""attention."""

import numpy as np
import torch

from book import FLOATS, Tensor, Tolerance, epsilon
from book import flipped, permuted
from contracting import double
from samples import randoms, smooth
from transposing import apart

# Dims of q, of k, the last of v, dims of the mask, of the bias, then scale, softcap, causal.
ATTENTIONS = [
    ((2, 4, 3), (2, 5, 3), 3, None, None, {}),
    ((1, 2, 3, 4), (1, 2, 5, 4), 6, None, None, {"scale": 0.3}),
    ((2, 4, 3, 2), (2, 2, 4, 2), 3, (3, 4), None, {}),
    ((1, 6, 3, 2), (1, 2, 3, 2), 2, None, (1, 6, 3, 3), {"causal": 1}),
    ((2, 3, 4, 5), (2, 1, 7, 5), 1, (2, 1, 1, 7), (7,), {"softcap": 1.5, "causal": 1}),
    ((1, 1, 5, 2), (1, 1, 3, 2), 2, None, None, {"causal": 1}),
    ((2, 2, 2, 3, 4), (2, 2, 1, 4, 4), 2, (2, 1, 1, 3, 1), (3, 4), {"scale": 2.0, "softcap": 5.0}),
    ((1, 2, 3), (1, 4, 3), 301, None, None, {}),
    ((1, 2, 3), (1, 0, 3), 2, None, None, {}),
    ((1, 0, 3), (1, 4, 3), 2, None, None, {}),
    ((1, 2, 1), (1, 1, 1), 1, None, None, {}),
]


def attention(q, k, v, mask, bias, scale=0.0, softcap=0.0, causal=0):
    """Of torch tensors; q's heads of one group share a head of k and v."""
    repeats = q.shape[-3] // k.shape[-3]
    k, v = (x.repeat_interleave(repeats, -3) for x in (k, v))
    scores = torch.matmul(q, k.transpose(-1, -2)) * (scale or q.shape[-1] ** -0.5)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    hidden = torch.zeros(scores.shape, dtype=torch.bool)
    if mask is not None:
        hidden |= mask
    if causal:
        queries, keys = scores.shape[-2:]
        ones = torch.ones(queries, keys, dtype=torch.bool)
        hidden |= ones.triu(keys - queries + 1)
    if bias is not None:
        scores = scores + bias
    weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
    nothing = (hidden | (scores == -torch.inf)).all(-1, keepdim=True)
    weights = weights.masked_fill(nothing, 0.0)
    return torch.matmul(weights, v)


def attention_row(book, dtype):
    rng = randoms("attention", dtype)
    tight = Tolerance(2, 256 * epsilon("f64"))
    narrow = Tolerance(2, 2 * epsilon(dtype))  # as core ops the weights are rounded to the type
    loose = narrow if dtype in ("f16", "bf16") else apart(dtype)
    case = book.case("attention", "attention", dtype, tight, loose)

    def give(name, q, k, v, mask, bias, attrs):
        operands = [q, k, v, mask, bias]
        values = [double(x.tensor) for x in (q, k, v)]
        values.append(torch.from_numpy(mask.tensor.data.copy()) if mask else None)
        values.append(double(bias.tensor) if bias else None)
        while operands[-1] is None:
            operands.pop()
        case.give(name, operands, attention(*values, **attrs).numpy(), **attrs)

    for q_dims, k_dims, v_last, mask_dims, bias_dims, attrs in ATTENTIONS:
        dims = q_dims, k_dims, k_dims[:-1] + (v_last,)
        operands = [case.input(smooth(dtype, each, rng, -2, 2)) for each in dims]
        mask = Tensor("bool", rng.integers(0, 3, mask_dims) == 0) if mask_dims else None
        bias = smooth(dtype, bias_dims, rng) if bias_dims else None
        operands += [case.input(x) if x else None for x in (mask, bias)]
        give(None, *operands, attrs)
    q = case.input(smooth(dtype, (3, 1, 4, 2), rng, -2, 2), permuted(1, 2, 0, 3))
    k = case.input(smooth(dtype, (1, 2, 2, 5), rng, -2, 2), permuted(0, 2, 3, 1), flipped(2))
    v = case.input(smooth(dtype, (1, 5, 2, 3), rng, -2, 2), permuted(0, 2, 1, 3))
    mask = case.input(Tensor("bool", rng.integers(0, 2, (5, 3))), permuted(1, 0))
    bias = case.input(smooth(dtype, (1, 4, 3, 5), rng), flipped(1, 3))
    give("strided", q, k, v, mask, bias, {})
    hidden = case.input(Tensor("bool", [[True, True], [True, False]]))
    q, k = (case.input(smooth(dtype, (1, 2, 3), rng)) for _ in range(2))
    give("hidden", q, k, k, hidden, None, {})
    inf = np.inf
    bias = case.input(Tensor(dtype, np.array([[-inf, -inf], [-inf, 1.0]])))
    give("hidden_by_bias", q, k, k, None, bias, {})


def write(book):
    for dtype in FLOATS:
        attention_row(book, dtype)
