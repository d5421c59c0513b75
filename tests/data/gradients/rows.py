# SPDX-License-Identifier: Apache-2.0
"""Gradients of each row that PyTorch has: a few shapes, and the places where a convention decides (ties, borders, zeros)."""

import torch
import torch.nn.functional as F

from book import integer, real, truth

WITHIN = dict(low=-0.9, high=0.9)
POSITIVE = dict(low=0.3, high=2.5)
FOURTHS = dict(parts=4)  # with zeros, and ties between operands


def unary(add):
    plain = {"abs": torch.abs, "neg": torch.neg, "exp": torch.exp, "expm1": torch.expm1, "erf": torch.erf,
             "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "square": torch.square, "atan": torch.atan,
             "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "sign": torch.sign, "floor": torch.floor,
             "round": torch.round, "ceil": torch.ceil, "trunc": torch.trunc, "relu": F.relu, "gelu": F.gelu,
             "silu": F.silu, "sigmoid": torch.sigmoid, "log_sigmoid": F.logsigmoid, "copy": torch.clone,
             "softplus": lambda x: F.softplus(x, threshold=1000)}
    within = {"tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atanh": torch.atanh, "log1p": torch.log1p}
    positive = {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "recip": torch.reciprocal}
    for name, run in plain.items():
        line = ["u = %s x" % name, "output y = add u, x"]
        add(name, dict(x=real(3, 4)), line, lambda x, run=run: run(x) + x)
        add(name, dict(x=real(9, **FOURTHS)), line, lambda x, run=run: run(x) + x)
    for domain, table in ((WITHIN, within), (POSITIVE, positive), (dict(low=1.1, high=3), {"acosh": torch.acosh})):
        for name, run in table.items():
            add(name, dict(x=real(3, 4, **domain)), ["output y = %s x" % name], run)
    add("sqrt", dict(x=real(4, low=0, high=0)), ["output y = sqrt x"], torch.sqrt)
    add("cast", dict(x=real(2, 3)), ["u = cast x, dtype=f32", "output y = mul u, 0.5"],
        lambda x: (x.float() * 0.5).to(torch.float32))


def binary(add):
    table = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}
    nonzero = {"div": torch.div, "rem": torch.remainder, "pow": torch.pow, "atan2": torch.atan2, "hypot": torch.hypot}
    for domain, rows in (({}, table), (POSITIVE, nonzero)):
        for name, run in rows.items():
            line = ["output y = %s a, b" % name]
            add(name, dict(a=real(3, 4, **domain), b=real(3, 4, **domain)), line, run)
            add(name, dict(a=real(2, 1, 3, **domain), b=real(4, 1, **domain)), line, run)
            add(name, dict(a=real(2, 3, **domain)), ["output y = %s a, 1.5" % name],
                lambda a, run=run: run(a, torch.tensor(1.5, dtype=a.dtype)))
    for name in ("maximum", "minimum"):  # ties share
        add(name, dict(a=real(12, **FOURTHS), b=real(12, **FOURTHS)), ["output y = %s a, b" % name], table[name])
    for exponent in (0.0, 1.0, 2.0, 3.0, -1.0, 0.5):
        base = real(9, **FOURTHS) if exponent >= 1 else real(9, **POSITIVE)
        add("pow", dict(a=base), ["output y = pow a, %r" % exponent], lambda a, e=exponent: a**e)
    add("pow", dict(a=real(6, low=0, high=0), b=real(6, low=-1, high=3, parts=1)), ["output y = pow a, b"], torch.pow)
    add("pow", dict(b=real(6, low=-1, high=2)), ["output y = pow 0.0, b"],
        lambda b: torch.pow(torch.tensor(0.0, dtype=b.dtype), b))
    add("pow", dict(b=real(6)), ["output y = pow 2.5, b"], lambda b: torch.pow(torch.tensor(2.5, dtype=b.dtype), b))
    add("where", dict(m=truth(3, 4), a=real(3, 1), b=real(4)), ["output y = where m, a, b"], torch.where)
    add("mask_fill", dict(x=real(3, 4), m=truth(4), v=real()), ["output y = mask_fill x, m, v"],
        lambda x, m, v: x.masked_fill(m, v))
    # The border belongs to x; where the lower border is above the upper one, the upper one wins.
    add("clamp", dict(x=real(16, **FOURTHS)), ["output y = clamp x, -0.5, 0.75"], lambda x: x.clamp(-0.5, 0.75))
    add("clamp", dict(x=real(24, **FOURTHS), low=real(24, low=-1, high=1, parts=4), high=real(24, low=-0.5, high=1.5, parts=4)),
        ["output y = clamp x, low, high"], lambda x, low, high: torch.clamp(x, low, high))
    add("leaky_relu", dict(x=real(9, **FOURTHS)), ["output y = leaky_relu x, 0.1"], lambda x: F.leaky_relu(x, 0.1))
    add("leaky_relu", dict(x=real(2, 3, 2), s=real(3)), ["t = reshape s, dims=[3, 1]", "output y = leaky_relu x, t"], F.prelu)
    add("hard_sigmoid", dict(x=real(12, low=-6, high=6)), ["output y = hard_sigmoid x, 0.16666666666666666, 0.5"],
        lambda x: torch.clamp(x * 0.16666666666666666 + 0.5, 0, 1))


def reductions(add):
    kinds = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin,
             "var": lambda x, **k: torch.var(x, unbiased=False, **k), "max_abs": lambda x, **k: torch.amax(x.abs(), **k)}
    for name, run in kinds.items():
        add(name, dict(x=real(3, 4, parts=3)), ["output y = %s x, axes=[1]" % name], lambda x, run=run: run(x, dim=1))
        add(name, dict(x=real(2, 3, 4)), ["output y = %s x, axes=[0, 2], keep=true" % name],
            lambda x, run=run: run(x, dim=(0, 2), keepdim=True))
        add(name, dict(x=real(2, 3)), ["output y = %s x" % name], lambda x, run=run: run(x, dim=(0, 1)))
    add("prod", dict(x=real(4, 5, parts=1)), ["output y = prod x, axes=[1]"], lambda x: x.prod(dim=1))
    add("prod", dict(x=real(2, 3)), ["output y = prod x"], torch.prod)
    add("cumsum", dict(x=real(3, 4)), ["output y = cumsum x, axis=1"], lambda x: x.cumsum(1))
    add("cumprod", dict(x=real(4, 5, parts=1)), ["output y = cumprod x, axis=1"], lambda x: x.cumprod(1))
    add("cummax", dict(x=real(5, 4, parts=1)), ["output y = cummax x, axis=0"], lambda x: x.cummax(0)[0])
    add("cummin", dict(x=real(5, 4, parts=1)), ["output y = cummin x, axis=0"], lambda x: x.cummin(0)[0])
    for name, run in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax), ("softmin", F.softmin)):
        add(name, dict(x=real(3, 5)), ["output y = %s x, axis=1" % name], lambda x, run=run: run(x, dim=1))
        add(name, dict(x=real(2, 3, 2)), ["output y = %s x, axis=0" % name], lambda x, run=run: run(x, dim=0))
    add("sort", dict(x=real(3, 5, parts=2)), ["output y = sort x, axis=1"], lambda x: x.sort(dim=1, stable=True)[0])
    add("sort", dict(x=real(5, 2)), ["output y = sort x, axis=0, descending=true"], lambda x: x.sort(0, descending=True)[0])
    add("topk", dict(x=real(3, 5)), ["output y = topk x, axis=1, k=2"], lambda x: x.topk(2, dim=1)[0])


def norms(add):
    add("layer_norm", dict(x=real(3, 6), g=real(6), b=real(6)), ["output y = layer_norm x, g, b"],
        lambda x, g, b: F.layer_norm(x, [6], g, b))
    add("layer_norm", dict(x=real(2, 3, 4)), ["output y = layer_norm x, axes=[1, 2], eps=0.1"],
        lambda x: F.layer_norm(x, [3, 4], eps=0.1))
    add("rms_norm", dict(x=real(3, 6), g=real(6)), ["output y = rms_norm x, g, eps=0.01"],
        lambda x, g: F.rms_norm(x, [6], g, eps=0.01))
    add("batch_norm", dict(x=real(2, 3, 4), g=real(3), b=real(3), m=real(3), v=real(3, **POSITIVE)),
        ["output y = batch_norm x, g, b, m, v"],
        lambda x, g, b, m, v: (x - m[:, None]) / torch.sqrt(v[:, None] + 1e-5) * g[:, None] + b[:, None])
    add("group_norm", dict(x=real(2, 4, 3), g=real(4), b=real(4)), ["output y = group_norm x, g, b, groups=2"],
        lambda x, g, b: F.group_norm(x, 2, g, b))


def indexing(add):
    add("select", dict(x=real(4, 3), i=integer(5, high=3)), ["output y = select x, i, axis=0"],
        lambda x, i: x.index_select(0, i))
    add("gather", dict(x=real(4, 3), i=integer(5, 2, high=3)), ["output y = gather x, i, axis=0"],
        lambda x, i: x.gather(0, i))
    add("embedding", dict(x=real(5, 3), i=integer(2, 3, high=4)), ["output y = embedding x, i"],
        lambda x, i: F.embedding(i, x))
    add("gather_nd", dict(x=real(3, 4, 2), i=integer(5, 2, high=2)), ["output y = gather_nd x, i"],
        lambda x, i: x[i[:, 0], i[:, 1]])
    scatters = {"add": lambda x, i, v: x.scatter_add(0, i, v),
                "mul": lambda x, i, v: x.scatter_reduce(0, i, v, "prod"),
                "min": lambda x, i, v: x.scatter_reduce(0, i, v, "amin"),
                "max": lambda x, i, v: x.scatter_reduce(0, i, v, "amax")}
    for update, run in scatters.items():
        add("scatter", dict(x=real(4, 3, parts=2), i=integer(5, 3, high=3), v=real(5, 3, parts=2)),
            ["output y = scatter x, i, v, axis=0, update=%s" % update], run)
    apart = ["u = arange 3, -1, dtype=i64, dims=[4]"]
    add("scatter", dict(x=real(4, 3), v=real(4, 3)),
        apart + ["w = reshape u, dims=[4, 1]", "i = expand w, dims=[4, 3]", "output y = scatter x, i, v, axis=0"],
        lambda x, v: x.scatter(0, torch.arange(3, -1, -1)[:, None].expand(4, 3), v))
    add("select_assign", dict(x=real(4, 3), v=real(4, 3)), apart + ["output y = select_assign x, u, v, axis=0"],
        lambda x, v: x.index_copy(0, torch.arange(3, -1, -1), v))
    add("select_assign", dict(x=real(4, 3), i=integer(6, high=3), v=real(6, 3)),
        ["output y = select_assign x, i, v, axis=0, update=add"], lambda x, i, v: x.index_add(0, i, v))
    add("scatter_nd", dict(x=real(3, 4), i=integer(6, 2, high=2), v=real(6)), ["output y = scatter_nd x, i, v, update=add"],
        lambda x, i, v: x.index_put((i[:, 0], i[:, 1]), v, accumulate=True))
    add("slice_assign", dict(x=real(4, 5), v=real(2, 3)), ["output y = slice_assign x, v, slices=[1:4:2, 0:5:2]"],
        lambda x, v: torch.slice_scatter(x, torch.slice_scatter(x[1:4:2], v, 1, 0, 5, 2), 0, 1, 4, 2))


def shapes(add):
    add("reshape", dict(x=real(2, 6)), ["output y = reshape x, dims=[3, 4]"], lambda x: x.reshape(3, 4))
    add("permute", dict(x=real(2, 3, 4)), ["output y = permute x, order=[2, 0, 1]"], lambda x: x.permute(2, 0, 1))
    add("transpose", dict(x=real(2, 3, 4)), ["output y = transpose x, axis=0, with=2"], lambda x: x.transpose(0, 2))
    add("expand", dict(x=real(3, 1)), ["output y = expand x, dims=[2, 3, 4]"], lambda x: x.expand(2, 3, 4))
    add("slice", dict(x=real(5, 6)), ["output y = slice x, slices=[1:5:2, 2:5]"], lambda x: x[1:5:2, 2:5])
    add("flip", dict(x=real(3, 4)), ["output y = flip x, axes=[1]"], lambda x: x.flip(1))
    add("unfold", dict(x=real(2, 7)), ["output y = unfold x, axis=1, size=3, step=2"], lambda x: x.unfold(1, 3, 2))
    add("squeeze", dict(x=real(2, 1, 3)), ["output y = squeeze x, axes=[1]"], lambda x: x.squeeze(1))
    add("unsqueeze", dict(x=real(2, 3)), ["output y = unsqueeze x, axis=1"], lambda x: x.unsqueeze(1))
    add("cat", dict(a=real(2, 3), b=real(2, 2)), ["output y = cat a, b, a, axis=1"], lambda a, b: torch.cat([a, b, a], 1))
    add("stack", dict(a=real(2, 3), b=real(2, 3)), ["output y = stack a, b, axis=1"], lambda a, b: torch.stack([a, b], 1))
    add("repeat", dict(x=real(2, 3)), ["output y = repeat x, axis=1, times=3"], lambda x: x.repeat(1, 3))
    add("pad", dict(x=real(3, 4)), ["output y = pad x, 0.5, low=[1, -1], high=[2, 0]"],
        lambda x: F.pad(x, (-1, 0, 1, 2), value=0.5))


def products(add):
    add("matmul", dict(a=real(3, 4), b=real(4, 2)), ["output y = matmul a, b"], torch.matmul)
    add("matmul", dict(a=real(2, 1, 3, 4), b=real(3, 4, 2)), ["output y = matmul a, b"], torch.matmul)
    add("linear", dict(x=real(2, 3, 4), w=real(4, 2), b=real(2)), ["output y = linear x, w, b"],
        lambda x, w, b: F.linear(x, w.t(), b))
    add("cross", dict(a=real(2, 3), b=real(2, 3)), ["output y = cross a, b, axis=1"],
        lambda a, b: torch.linalg.cross(a, b, dim=1))
    add("conv", dict(x=real(2, 2, 7), w=real(4, 1, 3), b=real(4)),
        ["output y = conv x, w, b, stride=[2], padding=[1], dilation=[2], groups=2"],
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2))
    add("conv", dict(x=real(1, 2, 5, 4), w=real(2, 2, 3, 2)), ["output y = conv x, w, stride=[1, 2], padding=[1, 0]"],
        lambda x, w: F.conv2d(x, w, stride=(1, 2), padding=(1, 0)))
    add("conv", dict(x=real(1, 1, 3, 3, 2), w=real(2, 1, 2, 2, 2), b=real(2)), ["output y = conv x, w, b"], F.conv3d)
    add("conv_transpose", dict(x=real(1, 2, 3, 2), w=real(2, 1, 3, 2), b=real(2)),
        ["output y = conv_transpose x, w, b, stride=[2, 1], padding=[1, 0], padding_out=[1, 0], groups=2"],
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 1), padding=(1, 0), output_padding=(1, 0), groups=2))
    add("conv_transpose", dict(x=real(1, 1, 4), w=real(1, 2, 3)), ["output y = conv_transpose x, w, padding_out=[1], dilation=[2]"],
        lambda x, w: F.conv_transpose1d(x, w, output_padding=1, dilation=2))
    heads = dict(q=real(1, 2, 3, 4), k=real(1, 2, 5, 4), v=real(1, 2, 5, 3))
    add("attention", heads, ["output y = attention q, k, v"], F.scaled_dot_product_attention)
    add("attention", dict(heads, b=real(2, 3, 5)), ["output y = attention q, k, v, none, b, scale=0.7"],
        lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, attn_mask=b, scale=0.7))
    add("attention", dict(q=real(1, 4, 3, 2), k=real(1, 2, 3, 2), v=real(1, 2, 3, 2)),
        ["output y = attention q, k, v, causal=true"],
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


def pools(add):
    add("avg_pool", dict(x=real(1, 2, 6, 5)), ["output y = avg_pool x, kernel=[3, 2], stride=[2, 2], padding=[1, 1]"],
        lambda x: F.avg_pool2d(x, (3, 2), (2, 2), (1, 1)))
    add("avg_pool", dict(x=real(1, 2, 6)), ["output y = avg_pool x, kernel=[3], stride=[2], padding=[1], ceil=true, exclude_pad=true"],
        lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False))
    add("max_pool", dict(x=real(1, 2, 6, 5, parts=2)), ["output y = max_pool x, kernel=[3, 2], stride=[2, 1], padding=[1, 0]"],
        lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)))
    add("max_pool", dict(x=real(2, 1, 9)), ["output y = max_pool x, kernel=[3], stride=[2], dilation=[2], ceil=true"],
        lambda x: F.max_pool1d(x, 3, 2, 0, 2, ceil_mode=True))
    add("adaptive_avg_pool", dict(x=real(1, 2, 5, 4)), ["output y = adaptive_avg_pool x, size=[3, 2]"],
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)))
    for mode, theirs in (("nearest", "nearest"), ("nearest_exact", "nearest-exact"), ("bilinear", "bilinear"), ("bicubic", "bicubic")):
        add("interpolate", dict(x=real(1, 1, 3, 4)), ["output y = interpolate x, size=[5, 3], mode=%s" % mode],
            lambda x, theirs=theirs: F.interpolate(x, size=(5, 3), mode=theirs))
    add("interpolate", dict(x=real(1, 1, 3, 4)), ["output y = interpolate x, size=[5, 6], mode=bilinear, align_corners=true"],
        lambda x: F.interpolate(x, size=(5, 6), mode="bilinear", align_corners=True))
    for mode in ("bilinear", "bicubic", "nearest"):
        for border, theirs in (("zeros", "zeros"), ("edge", "border"), ("reflection", "reflection")):
            add("grid_sample", dict(x=real(1, 2, 3, 4), g=real(1, 2, 3, 2, low=-1.3, high=1.3)),
                ["output y = grid_sample x, g, mode=%s, border=%s" % (mode, border)],
                lambda x, g, mode=mode, theirs=theirs: F.grid_sample(x, g, mode, theirs, align_corners=False))
    add("unfold4d", dict(x=real(1, 2, 4, 5)), ["output y = unfold4d x, kernel=[2, 3], stride=[1, 2], padding=[1, 0], dilation=[2, 1]"],
        lambda x: F.unfold(x, (2, 3), (2, 1), (1, 0), (1, 2)))


def spectra(add):
    for n in (0, 6, 9):
        add("rfft", dict(x=real(2, 7)), ["output re, im = rfft x, axis=1, n=%d" % n],
            lambda x, n=n: (lambda z: (z.real, z.imag))(torch.fft.rfft(x, n=n or None, dim=1)))
    for n in (0, 5, 9):
        add("irfft", dict(re=real(2, 4), im=real(2, 4)), ["output y = irfft re, im, axis=1, n=%d" % n],
            lambda re, im, n=n: torch.fft.irfft(torch.complex(re, im), n=n or None, dim=1))
    lengths = ["i = full 6, dtype=i64, dims=[2]", "j = full 2, dtype=i64, dims=[2]"]
    add("ctc_loss", dict(x=real(6, 2, 4), t=integer(2, 2, low=1, high=3)),
        lengths + ["u = log_softmax x, axis=2", "output y = ctc_loss u, t, i, j, blank=0"],
        lambda x, t: F.ctc_loss(x.log_softmax(2), t, torch.tensor([6, 6]), torch.tensor([2, 2]), reduction="none"))


def write(book):
    def add(row, inputs, lines, run):
        for dtype in ("f64", "f32"):
            book.case(row, dtype, inputs, lines, lambda tensors: run(*tensors.values()))

    for family in (unary, binary, reductions, norms, indexing, shapes, products, pools, spectra):
        family(add)
