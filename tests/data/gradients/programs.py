# SPDX-License-Identifier: Apache-2.0
"""Random differentiable programs: 10 to 30 ops with residuals, shared values, broadcasts, views, reads and writes at
numbers, products, norms, and two losses.  Values stay small, so that both sides' roundings do."""

import random

import torch
import torch.nn.functional as F

from book import integer, real

INPUTS = (3, 5)
OPS = (10, 30)
MOST = 64  # elements of a value


class Program:
    """The text and, as functions of the values before, the same in PyTorch."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.inputs, self.lines, self.steps, self.shapes, self.count = {}, [], [], {}, 0
        for _ in range(self.random.randint(*INPUTS)):
            self.add_input([self.random.randint(1, 4) for _ in range(self.random.randint(1, 3))])

    def add_input(self, dims):
        name = "x%d" % len(self.inputs)
        self.inputs[name] = real(*dims, low=-1.2, high=1.2)
        self.shapes[name] = list(dims)
        return name

    def add_index(self, count, extent):
        name = "i%d" % len(self.inputs)
        self.inputs[name] = integer(count, high=extent - 1)
        return name

    def emit(self, op, operands, run, dims, attrs=""):
        """A line, and the step that computes it from the operands' values."""
        name = "v%d" % self.count
        self.count += 1
        self.lines.append("%s = %s %s%s" % (name, op, ", ".join(operands), attrs and ", " + attrs))
        names = [o for o in operands if not o[0].isdigit() and o[0] != "-"]
        self.steps.append((name, names, run))
        self.shapes[name] = list(dims)
        return name

    def pick(self, least_rank=0):
        """A value, later ones more often."""
        names = [n for n in self.shapes if len(self.shapes[n]) >= least_rank]
        if not names:
            return self.emit("reshape", *self.as_rank(self.pick(), least_rank))
        return names[max(self.random.randrange(len(names)), self.random.randrange(len(names)))]

    def as_rank(self, x, rank):
        dims = [1] * (rank - len(self.shapes[x])) + self.shapes[x]
        return [x], lambda a: a.reshape(dims), dims, "dims=%s" % dims

    def size(self, dims):
        return int(torch.Size(dims).numel())

    def execute(self, values):
        values = dict(values)
        for name, operands, run in self.steps:
            values[name] = run(*[values[o] for o in operands])
        return values


UNARY = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "sin": torch.sin, "cos": torch.cos, "neg": torch.neg,
         "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "erf": torch.erf, "relu": F.relu, "abs": torch.abs,
         "atan": torch.atan, "log_sigmoid": F.logsigmoid}


def unary(p):
    x = p.pick()
    op = p.random.choice(list(UNARY))
    return p.emit(op, [x], UNARY[op], p.shapes[x])


def bounded(p):
    """Square roots, logarithms and quotients of what is away from 0."""
    x = p.pick()
    square = p.emit("square", [x], torch.square, p.shapes[x])
    above = p.emit("add", [square, "1.0"], lambda a: a + 1, p.shapes[x])
    op, run = p.random.choice([("sqrt", torch.sqrt), ("log", torch.log), ("rsqrt", torch.rsqrt), ("recip", torch.reciprocal)])
    return p.emit(op, [above], run, p.shapes[x])


BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}


def broadcast(a, b):
    try:
        return list(torch.broadcast_shapes(a, b))
    except RuntimeError:
        return None


def binary(p):
    a = p.pick()
    partners = [n for n in p.shapes if broadcast(p.shapes[a], p.shapes[n]) is not None
                and p.size(broadcast(p.shapes[a], p.shapes[n])) <= MOST]
    b = p.random.choice(partners)
    op = p.random.choice(list(BINARY))
    y = p.emit(op, [a, b], BINARY[op], broadcast(p.shapes[a], p.shapes[b]))
    return p.emit("tanh", [y], torch.tanh, p.shapes[y]) if op == "mul" and p.random.random() < 0.5 else y


def scaled(p):
    x = p.pick()
    factor = round(p.random.uniform(-1.5, 1.5), 2)
    return p.emit("mul", [x, repr(factor)], lambda a: a * factor, p.shapes[x])


def residual(p):
    x = p.pick()
    branch = p.emit("tanh", [x], torch.tanh, p.shapes[x])
    branch = p.emit("mul", [branch, "0.5"], lambda a: a * 0.5, p.shapes[x])
    return p.emit("add", [x, branch], torch.add, p.shapes[x])


def product(p):
    a = p.pick(2)
    k, n = p.shapes[a][-1], p.random.randint(1, 4)
    w = p.add_input([k, n]) if p.random.random() < 0.6 else p.pick()
    if p.shapes[w] != [k, n]:
        w = p.add_input([k, n])
    y = p.emit("matmul", [a, w], torch.matmul, p.shapes[a][:-1] + [p.shapes[w][1]])
    return p.emit("mul", [y, "0.5"], lambda t: t * 0.5, p.shapes[y])


def gram(p):
    """A value times itself, transposed."""
    a = p.pick(2)
    turned = p.emit("transpose", [a], lambda t: t.transpose(-1, -2), p.shapes[a][:-2] + p.shapes[a][:-3:-1],
                    "axis=-2, with=-1")
    y = p.emit("matmul", [a, turned], torch.matmul, p.shapes[a][:-1] + [p.shapes[a][-2]])
    return p.emit("tanh", [y], torch.tanh, p.shapes[y])


def norm(p):
    x = p.pick(1)
    if p.shapes[x][-1] < 2:
        return unary(p)
    gamma = p.add_input([p.shapes[x][-1]])
    n = p.shapes[x][-1]
    if p.random.random() < 0.5:
        return p.emit("layer_norm", [x, gamma], lambda a, g: F.layer_norm(a, [n], g, eps=0.1), p.shapes[x], "eps=0.1")
    return p.emit("rms_norm", [x, gamma], lambda a, g: F.rms_norm(a, [n], g, eps=0.1), p.shapes[x], "eps=0.1")


def softmax(p):
    x = p.pick(1)
    axis = p.random.randrange(len(p.shapes[x]))
    op, run = p.random.choice([("softmax", torch.softmax), ("log_softmax", torch.log_softmax), ("cumsum", torch.cumsum)])
    return p.emit(op, [x], lambda a: run(a, dim=axis), p.shapes[x], "axis=%d" % axis)


def reduction(p):
    x = p.pick(1)
    axis, keep = p.random.randrange(len(p.shapes[x])), p.random.random() < 0.5
    dims = list(p.shapes[x])
    dims[axis:axis + 1] = [1] if keep else []
    op, run = p.random.choice([("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("min", torch.amin)])
    return p.emit(op, [x], lambda a: run(a, dim=axis, keepdim=keep), dims, "axes=[%d], keep=%s" % (axis, str(keep).lower()))


def view(p):
    x = p.pick(1)
    dims = p.shapes[x]
    kind = p.random.randrange(4)
    if kind == 0:
        order = list(range(len(dims)))
        p.random.shuffle(order)
        return p.emit("permute", [x], lambda a: a.permute(order), [dims[d] for d in order], "order=%s" % order)
    if kind == 1:
        axis = p.random.randrange(len(dims))
        return p.emit("flip", [x], lambda a: a.flip(axis), dims, "axes=[%d]" % axis)
    if kind == 2:
        start, step = p.random.randrange(dims[0]), p.random.randint(1, 2)
        part = [len(range(start, dims[0], step))] + dims[1:]
        return p.emit("slice", [x], lambda a: a[start::step], part, "slices=[%d::%d]" % (start, step))
    return p.emit("reshape", [x], lambda a: a.reshape(-1), [p.size(dims)], "dims=[-1]")


def join(p):
    x = p.pick(1)
    partners = [n for n in p.shapes if len(p.shapes[n]) == len(p.shapes[x]) and p.shapes[n][1:] == p.shapes[x][1:]]
    other = p.random.choice(partners)
    dims = [p.shapes[x][0] + p.shapes[other][0]] + p.shapes[x][1:]
    if p.size(dims) > MOST:
        return unary(p)
    return p.emit("cat", [x, other], lambda *v: torch.cat([v[0], v[-1]], 0), dims, "axis=0")


def padded(p):
    x = p.pick(1)
    dims = p.shapes[x][:-1] + [p.shapes[x][-1] + 2]
    if p.size(dims) > MOST:
        return unary(p)
    low = [0] * (len(dims) - 1) + [1]
    return p.emit("pad", [x, "0.25"], lambda a: F.pad(a, (1, 1), value=0.25), dims, "low=%s, high=%s" % (low, low))


def read(p):
    """Rows at numbers, some of them twice."""
    x = p.pick(1)
    count = p.random.randint(1, 5)
    dims = [count] + p.shapes[x][1:]
    if p.size(dims) > MOST:
        return unary(p)
    i = p.add_index(count, p.shapes[x][0])
    return p.emit("select", [x, i], lambda a, i: a.index_select(0, i), dims, "axis=0")


def written(p):
    """Rows added at numbers, some of them twice."""
    x = p.pick(1)
    count = p.random.randint(1, 4)
    i, values = p.add_index(count, p.shapes[x][0]), p.add_input([count] + p.shapes[x][1:])
    return p.emit("select_assign", [x, i, values], lambda a, i, v: a.index_add(0, i, v), p.shapes[x], "axis=0, update=add")


def clipped(p):
    x = p.pick()
    return p.emit("clamp", [x, "-0.6", "0.7"], lambda a: a.clamp(-0.6, 0.7), p.shapes[x])


KINDS = [unary, bounded, binary, binary, scaled, residual, product, gram, norm, softmax, reduction, view, view, join, padded,
         read, written, clipped]


def unused(p, without):
    used = {o for _, operands, _ in p.steps for o in operands}
    return [name for name, _, _ in p.steps if name not in used and name not in without]


def make(seed):
    p = Program(seed)
    count = p.random.randint(*OPS)
    while len(p.steps) < count:
        p.random.choice(KINDS)(p)
    last = "v%d" % (p.count - 1)
    square = p.emit("square", [last], torch.square, p.shapes[last])
    first = p.emit("mean", [square], torch.mean, [])
    second = None  # of all that nothing else uses, and one value more
    for other in [p.pick()] + unused(p, [first]):
        part = p.emit("sum", [p.emit("sin", [other], torch.sin, p.shapes[other])], torch.sum, [])
        second = part if second is None else p.emit("add", [second, part], torch.add, [])
    p.lines.append("output %s, %s" % (first, second))
    return p, first, second


def write(book, count):
    for seed in range(count):
        p, first, second = make(seed)
        book.case("program%d" % seed, "f64", p.inputs, p.lines,
                  lambda inputs: (lambda values: (values[first], values[second]))(p.execute(inputs)), losses=True)
