# SPDX-License-Identifier: Apache-2.0
"""Rows of the classes CONTRACT, POOL and NORM."""
import numpy as np
import torch

from book import EQUAL, EXACT, FLOATS, NUMBERS, Tensor, Tolerance, epsilon
from samples import edges, randoms, smooth

nn = torch.nn.functional


def double(tensor):
    return torch.from_numpy(np.array(tensor.wide(), dtype=np.float64))


def near(dtype, scale):
    """Rounded once from sums of size `scale` in double; or, loosely, from several ops of that size."""
    return Tolerance(1, scale * epsilon("f64")), Tolerance(4, 8 * scale * epsilon(dtype))


MATMULS = [((4, 5), (5, 3)), ((1, 1), (1, 1)), ((1, 7), (7, 1)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
           ((3, 4), (2, 4, 3)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((2, 0, 3), (3, 4)), ((17, 31), (31, 9))]


def matmul_row(book):
    for dtype in NUMBERS:
        rng = randoms("matmul", dtype)
        tight = near(dtype, 256)[0] if dtype in FLOATS else EXACT
        case = book.case("contract", "matmul", dtype, tight)

        def give(name, a, b):
            case.output(name, "matmul %s, %s" % (a, b), Tensor(dtype, np.matmul(a.tensor.wide(), b.tensor.wide())))

        for shapes in MATMULS:
            a, b = (smooth(dtype, shape, rng) for shape in shapes)
            give(case.fresh("product"), case.input(a), case.input(b))
        turn, back = ("permute {}, order=[1, 0]", np.transpose), ("slice {}, slices=[::-1, ::2]", lambda a: a[::-1, ::2])
        a, b = case.input(smooth(dtype, (6, 5), rng)), case.input(smooth(dtype, (4, 6), rng))
        give("turned", case.step(a, turn), case.step(b, turn))
        give("reversed", case.step(a, back), case.step(case.step(b, turn), ("slice {}, slices=[::2]", lambda a: a[::2])))
        stretched = case.step(case.input(smooth(dtype, (1, 6), rng)), ("expand {}, dims=[3, 6]", lambda a: np.broadcast_to(a, (3, 6))))
        give("stretched", stretched, case.step(b, turn))
        if dtype in FLOATS:
            special = Tensor(dtype, np.array([[np.nan, 1, 2], [np.inf, 0, 1], [np.inf, -np.inf, 1], [0, -0.0, 0]]))
            give("corners", case.input(special), case.input(Tensor(dtype, np.array([[1.0, 0], [1, -1], [2, 3]]))))


# dims of x, dims of w, bias, stride, padding, dilation, groups
CONVS = [((2, 3, 9), (4, 3, 3), True, 1, 0, 1, 1), ((1, 4, 10), (6, 2, 3), False, 2, 1, 2, 2),
         ((2, 3, 6, 7), (4, 3, 3, 2), True, (1, 1), (0, 0), (1, 1), 1),
         ((1, 4, 7, 6), (4, 1, 3, 3), True, (2, 1), (1, 2), (1, 2), 4),
         ((2, 1, 8, 8), (3, 1, 3, 3), True, (1, 1), (1, 1), (1, 1), 1),
         ((1, 2, 5, 5), (2, 2, 1, 1), False, (1, 1), (0, 0), (1, 1), 1),
         ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), True, (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
         ((2, 4, 3, 3, 4), (2, 2, 2, 2, 2), False, (1, 1, 1), (0, 0, 0), (1, 1, 1), 2),
         ((0, 3, 9), (4, 3, 3), True, 1, 0, 1, 1)]


def lists(**named):
    """Attributes that are not their default, as text."""
    plain = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    text = ""
    for name, value in named.items():
        many = value if isinstance(value, tuple) else (value,)
        if any(v != plain.get(name) for v in many):
            text += ", %s=%s" % (name, value if name == "groups" else list(many))
    return text


def conv_row(book):
    function = {3: nn.conv1d, 4: nn.conv2d, 5: nn.conv3d}
    for dtype in FLOATS:
        rng = randoms("conv", dtype)
        case = book.case("contract", "conv", dtype, near(dtype, 256)[0])
        for x_dims, w_dims, has_bias, stride, padding, dilation, groups in CONVS:
            x, w = smooth(dtype, x_dims, rng), smooth(dtype, w_dims, rng, -1, 1)
            bias = smooth(dtype, w_dims[:1], rng) if has_bias else None
            result = function[len(x_dims)](double(x), double(w), double(bias) if has_bias else None, stride, padding,
                                           dilation, groups)
            names = ", ".join(str(case.input(t)) for t in (x, w, bias) if t)
            attrs = lists(stride=stride, padding=padding, dilation=dilation, groups=groups)
            case.output(case.fresh("conv"), "conv %s%s" % (names, attrs), Tensor(dtype, result.numpy()))
        x = case.step(case.input(smooth(dtype, (6, 2, 3, 7), rng)), ("permute {}, order=[1, 2, 0, 3]", lambda a: a.transpose(1, 2, 0, 3)))
        w = case.step(case.input(smooth(dtype, (4, 3, 3, 3), rng)), ("flip {}, axes=[2, 3]", lambda a: a[:, :, ::-1, ::-1]))
        case.output("strided", "conv %s, %s, padding=[1, 0]" % (x, w),
                    Tensor(dtype, nn.conv2d(double(x.tensor), double(w.tensor), padding=(1, 0)).numpy()))


def linear_row(book):
    for dtype in FLOATS:
        rng = randoms("linear", dtype)
        case = book.case("contract", "linear", dtype, *near(dtype, 64))
        for dims, has_bias in (((5, 6), True), ((2, 3, 6), True), ((6,), True), ((4, 6), False), ((0, 6), True), ((1, 1, 6), False)):
            x, w = smooth(dtype, dims, rng), smooth(dtype, (6, 4), rng, -1, 1)
            bias = smooth(dtype, (4,), rng) if has_bias else None
            names = ", ".join(str(case.input(t)) for t in (x, w, bias) if t)
            result = nn.linear(double(x), double(w).T, double(bias) if has_bias else None)
            case.output(case.fresh("linear"), "linear %s" % names, Tensor(dtype, result.numpy()))
        x, w = case.input(smooth(dtype, (3, 6), rng)), case.input(smooth(dtype, (4, 6), rng))
        turned, back = case.step(w, ("permute {}, order=[1, 0]", np.transpose)), case.step(x, ("flip {}, axes=[1]", lambda a: a[:, ::-1]))
        case.output("strided", "linear %s, %s" % (back, turned),
                    Tensor(dtype, nn.linear(double(back.tensor), double(w.tensor)).numpy()))


# dims, kernel, stride, padding, ceil, exclude_pad or dilation
AVERAGES = [((2, 3, 9), 3, 3, 0, 0, 0), ((2, 3, 10), 3, 2, 1, 1, 1), ((1, 2, 7, 8), (2, 3), (2, 3), (0, 0), 0, 0),
            ((1, 2, 7, 8), (3, 2), (2, 1), (1, 1), 0, 0), ((1, 2, 7, 8), (3, 3), (2, 2), (1, 1), 1, 0),
            ((1, 2, 7, 8), (3, 3), (2, 3), (1, 1), 1, 1), ((2, 1, 4, 5, 6), (2, 2, 3), (1, 2, 2), (1, 0, 1), 0, 1),
            ((1, 1, 1), 1, 1, 0, 0, 0), ((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), 0, 0)]
MAXIMA = [((2, 3, 9), 3, 3, 0, 0, 1), ((2, 3, 10), 3, 2, 1, 1, 1), ((1, 2, 7, 8), (2, 3), (2, 3), (0, 0), 0, (1, 1)),
          ((1, 2, 7, 8), (3, 2), (2, 1), (1, 1), 0, (1, 2)), ((1, 2, 7, 8), (3, 3), (2, 2), (1, 1), 1, (1, 1)),
          ((1, 2, 9, 8), (2, 2), (1, 3), (1, 0), 0, (2, 3)), ((2, 1, 4, 5, 6), (2, 2, 3), (1, 2, 2), (1, 0, 1), 0, (1, 1, 1)),
          ((1, 1, 1), 1, 1, 0, 0, 1), ((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), 0, (1, 1))]


def pool_text(kernel, stride, padding, ceil):
    window = list(kernel) if isinstance(kernel, tuple) else [kernel]
    step = "" if stride == kernel else ", stride=%s" % (list(stride) if isinstance(stride, tuple) else [stride])
    return "kernel=%s%s%s%s" % (window, step, lists(padding=padding), ", ceil=1" if ceil else "")


def pool_rows(book):
    average = {3: nn.avg_pool1d, 4: nn.avg_pool2d, 5: nn.avg_pool3d}
    largest = {3: nn.max_pool1d, 4: nn.max_pool2d, 5: nn.max_pool3d}
    turn = ("permute {}, order=[1, 2, 0, 3]", lambda a: a.transpose(1, 2, 0, 3))
    for dtype in FLOATS:
        rng = randoms("pool", dtype)
        case = book.case("pool", "avg_pool", dtype, near(dtype, 32)[0])
        for dims, kernel, stride, padding, ceil, exclude in AVERAGES:
            x = smooth(dtype, dims, rng)
            result = average[len(dims)](double(x), kernel, stride, padding, bool(ceil), not exclude)
            text = pool_text(kernel, stride, padding, ceil) + (", exclude_pad=1" if exclude else "")
            case.output(case.fresh("pool"), "avg_pool %s, %s" % (case.input(x), text), Tensor(dtype, result.numpy()))
        x = case.step(case.input(smooth(dtype, (6, 2, 3, 7), rng)), turn)
        case.output("strided", "avg_pool %s, kernel=[2, 3]" % x, Tensor(dtype, nn.avg_pool2d(double(x.tensor), (2, 3)).numpy()))

        case = book.case("pool", "max_pool", dtype, EQUAL)
        for dims, kernel, stride, padding, ceil, dilation in MAXIMA:
            x = Tensor(dtype, rng.integers(-3, 4, dims))  # ties: the first is the one
            result, index = largest[len(dims)](double(x), kernel, stride, padding, dilation, bool(ceil), True)
            text = pool_text(kernel, stride, padding, ceil) + lists(dilation=dilation)
            names = {case.fresh("pool"): Tensor(dtype, result.numpy()), case.fresh("index"): Tensor("i64", index.numpy())}
            case.outputs("max_pool %s, %s" % (case.input(x), text), **names)
        x = case.step(case.input(smooth(dtype, (6, 2, 3, 7), rng)), turn)
        case.output("strided", "max_pool %s, kernel=[2, 3]" % x, Tensor(dtype, nn.max_pool2d(double(x.tensor), (2, 3)).numpy()))
        corners = Tensor(dtype, np.array([[[1, np.nan, 2, np.inf, -np.inf, -np.inf, np.nan, np.inf]]]))
        result, index = nn.max_pool1d(double(corners), 2, return_indices=True)
        case.outputs("max_pool %s, kernel=[2]" % case.input(corners), corner=Tensor(dtype, result.numpy()),
                     corner_index=Tensor("i64", index.numpy()))


# ---- normalisation ------------------------------------------------------------------------------------------

SOFTMAX = {"softmax": torch.softmax, "log_softmax": torch.log_softmax, "softmin": lambda x, axis: torch.softmax(-x, axis)}


def softmax_rows(book):
    for row, function in SOFTMAX.items():
        for dtype in FLOATS:
            rng = randoms(row, dtype)
            case = book.case("norm", row, dtype, Tolerance(2, 64 * epsilon("f64")), Tolerance(16, 32 * epsilon(dtype)))

            def give(name, value, axis):
                case.output(name, "%s %s, axis=%d" % (row, value, axis), Tensor(dtype, function(double(value.tensor), axis).numpy()))

            operand = case.input(smooth(dtype, (3, 5, 7), rng))
            for axis in (0, 1, 2, -1):
                give(case.fresh("axis"), operand, axis)
            give("turned", case.step(operand, ("permute {}, order=[2, 0, 1]", lambda a: a.transpose(2, 0, 1))), 1)
            give("reversed", case.step(operand, ("slice {}, slices=[::-1, ::2, ::-3]", lambda a: a[::-1, ::2, ::-3])), 2)
            give("larger", case.input(smooth(dtype, (4, 67), rng, -30, 30)), 1)
            give("ones", case.input(smooth(dtype, (1, 1), rng)), 0)
            give("empty", case.input(smooth(dtype, (0, 3), rng)), 1)
            give("of_nothing", case.input(smooth(dtype, (3, 0), rng)), 1)
            largest = float(edges(dtype)[3])
            corners = [[1, 2, np.nan], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3, [largest, largest, 0], [-largest, largest, 1]]
            give("corners", case.input(Tensor(dtype, np.array(corners))), 1)


def over(tensor, axes, function):
    """A torch normalisation, which only knows trailing dims, over any axes."""
    count = tensor.data.ndim
    axes = sorted(axis % count for axis in axes)
    order = [axis for axis in range(count) if axis not in axes] + axes
    moved = double(tensor).permute(order)
    return function(moved, list(moved.shape[count - len(axes):])).permute(list(np.argsort(order))).numpy()


NORM_AXES = [((4, 6), (-1,), 0), ((2, 3, 5), (-1,), 1e-3), ((2, 3, 5), (1, 2), 0), ((3, 4, 5), (0,), 0), ((3, 4, 5), (0, 2), 0.5),
             ((7,), (0,), 0), ((1, 1), (1,), 0), ((0, 4), (1,), 0), ((3, 65), (-1,), 0)]


def norm_text(axes, eps):
    return ("" if axes == (-1,) else ", axes=%s" % list(axes)) + (", eps=%r" % eps if eps else "")


def norm_tolerance(dtype):
    return Tolerance(2, 64 * epsilon("f64")), Tolerance(16, 64 * epsilon(dtype))


def layer_rows(book):
    for dtype in FLOATS:
        rng = randoms("layer", dtype)
        layers, squares = (book.case("norm", row, dtype, *norm_tolerance(dtype)) for row in ("layer_norm", "rms_norm"))
        for turn, (dims, axes, eps) in enumerate(NORM_AXES):
            x, size = smooth(dtype, dims, rng), tuple(dims[a] for a in sorted(a % len(dims) for a in axes))
            gamma, beta = smooth(dtype, size, rng), smooth(dtype, size, rng)
            given = [gamma, beta][:2 - turn % 3]
            factors = [double(t) for t in given]
            result = over(x, axes, lambda a, shape: nn.layer_norm(a, shape, *factors, eps=eps or 1e-5))
            names = ", ".join(str(layers.input(t)) for t in [x, *given])
            layers.output(layers.fresh("norm"), "layer_norm %s%s" % (names, norm_text(axes, eps)), Tensor(dtype, result))
            result = over(x, axes, lambda a, shape: nn.rms_norm(a, shape, *factors[:1], eps=eps or 1e-5))
            names = ", ".join(str(squares.input(t)) for t in [x, *given[:1]])
            squares.output(squares.fresh("norm"), "rms_norm %s%s" % (names, norm_text(axes, eps)), Tensor(dtype, result))
        turned_norm(layers, "layer_norm", nn.layer_norm, dtype, rng)
        turned_norm(squares, "rms_norm", nn.rms_norm, dtype, rng)


def turned_norm(case, row, function, dtype, rng):
    x = case.step(case.input(smooth(dtype, (6, 4), rng)), ("permute {}, order=[1, 0]", np.transpose))
    x = case.step(x, ("slice {}, slices=[:, ::-1]", lambda a: a[:, ::-1]))
    case.output("strided", "%s %s" % (row, x), Tensor(dtype, over(x.tensor, (1,), lambda a, size: function(a, size, eps=1e-5))))


def batch_rows(book):
    for dtype in FLOATS:
        rng = randoms("batch", dtype)
        case = book.case("norm", "batch_norm", dtype, *norm_tolerance(dtype))
        for dims, eps in (((4, 3), 0), ((2, 3, 5), 1e-2), ((2, 3, 4, 5), 0), ((1, 2, 2, 3, 2), 0), ((0, 3, 2), 0), ((1, 1), 0)):
            x = smooth(dtype, dims, rng)
            gamma, beta, mean = (smooth(dtype, dims[1:2], rng) for _part in range(3))
            var = smooth(dtype, dims[1:2], rng, 0.1, 4)
            names = ", ".join(str(case.input(t)) for t in (x, gamma, beta, mean, var))
            shape = [-1 if i == 1 else 1 for i in range(len(dims))]
            result = (double(x) - double(mean).view(shape)) / torch.sqrt(double(var).view(shape) + (eps or 1e-5))
            if x.data.size:
                result = nn.batch_norm(double(x), double(mean), double(var), double(gamma), double(beta), eps=eps or 1e-5)
            case.output(case.fresh("norm"), "batch_norm %s%s" % (names, ", eps=%r" % eps if eps else ""), Tensor(dtype, result.numpy()))
        case = book.case("norm", "group_norm", dtype, *norm_tolerance(dtype))
        for dims, groups, eps, count in (((2, 4, 5), 2, 0, 2), ((2, 6, 3, 4), 3, 1e-2, 2), ((3, 4), 1, 0, 1), ((2, 4, 3), 4, 0, 0),
                                         ((1, 2, 2, 3, 2), 2, 0, 2), ((0, 4, 3), 2, 0, 2)):
            x = smooth(dtype, dims, rng)
            given = [smooth(dtype, dims[1:2], rng) for _part in range(count)]
            names = ", ".join(str(case.input(t)) for t in [x, *given])
            result = nn.group_norm(double(x), groups, *(double(t) for t in given), eps=eps or 1e-5) if x.data.size else double(x)
            attrs = lists(groups=groups) + (", eps=%r" % eps if eps else "")
            case.output(case.fresh("norm"), "group_norm %s%s" % (names, attrs), Tensor(dtype, result.numpy()))


def write(book):
    matmul_row(book)
    conv_row(book)
    linear_row(book)
    pool_rows(book)
    softmax_rows(book)
    layer_rows(book)
    batch_rows(book)
