# SPDX-License-Identifier: Apache-2.0
"""What Python's operators on tensors mean: the rows of the op table, with their rules.  So `/` of
integers truncates, `%` has the sign of the divisor, and types are never mixed."""
from . import ops
from ._tensor import Tensor, is_array

_OPERATORS = {
    "add": ops.add, "sub": ops.sub, "mul": ops.mul, "truediv": ops.div, "mod": ops.rem,
    "pow": ops.pow, "matmul": ops.matmul, "and": ops.and_, "or": ops.or_, "xor": ops.xor,
    "lshift": ops.shl, "rshift": ops.shr,
}
_COMPARISONS = {"eq": ops.eq, "ne": ops.ne, "lt": ops.lt, "le": ops.le, "gt": ops.gt, "ge": ops.ge}
_UNARY = {"neg": ops.neg, "abs": ops.abs, "invert": ops.not_}


def _is_operand(value):
    return isinstance(value, (Tensor, int, float)) or is_array(value)


def _binary(function):
    def left(self, other):
        return function(self, other) if _is_operand(other) else NotImplemented

    def right(self, other):
        return function(other, self) if _is_operand(other) else NotImplemented

    return left, right


def install():
    for name, function in _OPERATORS.items():
        left, right = _binary(function)
        setattr(Tensor, f"__{name}__", left)
        setattr(Tensor, f"__r{name}__", right)
    for name, function in _COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _binary(function)[0])
    for name, function in _UNARY.items():
        setattr(Tensor, f"__{name}__", function)
    for name in ops.METHODS:
        setattr(Tensor, name, getattr(ops, name))
