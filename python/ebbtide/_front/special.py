"""Functions of Python and NumPy that are made of several operations."""

from __future__ import annotations

import ast
import math
from typing import Any, Callable

import numpy as np

from .._types import FLOATS
from .names import Known
from .values import Array, Const, Object, Scalar, Value
from .vectors import Vectors


class Special(Vectors):
    """One method for each line of `functions.SPECIAL`."""

    def floats(self, node: ast.Call, count: int) -> list[Value]:
        raise NotImplementedError

    def arguments(self, node: ast.Call, count: int) -> list[Scalar]:
        raise NotImplementedError

    def pair(self, node: ast.Call) -> tuple[Value, Value]:
        raise NotImplementedError

    def call_absolute(self, node: ast.Call) -> Known:
        (a,) = self.arguments(node, 1)
        if isinstance(a, Const):
            return Const(abs(a.value), a.ty)
        if a.ty == "bool":
            raise self.fail(node, "there is no `abs` of bools")
        if a.ty == "int":
            a = self.once(a)
            return self.arithmetic(node, "max", a, self.opposite(node, a))
        return a if a.ty == "u32" else self.unary(node, "abs", a)

    def extreme(self, node: ast.Call, combine: Callable[[Value, Value], Value], fold: Callable[..., Any]) -> Known:
        found = [self.scalar(argument) for argument in node.args]
        if node.keywords or len(found) < 2:
            raise self.fail(node, "`min` and `max` take two or more numbers in programs")
        if all(isinstance(a, Const) and a.ty is None for a in found):
            return Const(fold(*[a.value for a in found if isinstance(a, Const)]))
        result: Scalar = found[0]
        for other in found[1:]:
            left, right = self.alike(node, result, other, ast.unparse(node.func))
            if left.ty == "bool":
                raise self.fail(node, "there is no `min` or `max` of bools")
            result = combine(left, right)
        return result

    def python_extreme(self, node: ast.Call, name: str, compare: str) -> Known:
        def combine(a: Value, b: Value) -> Value:
            if a.ty not in FLOATS:
                return self.arithmetic(node, name, a, b)
            # Python gives the first unless the second is smaller: with NaN and zeros that matters.
            a, b = self.once(a), self.once(b)

            def emit() -> int:
                first = a.emit()
                second = b.emit()
                return int(self.builder.select(self.builder.compare(compare, second, first), second, first))

            return Value(a.ty, self.emitting(node, emit), safe=a.safe and b.safe, python=a.python and b.python)

        return self.extreme(node, combine, min if name == "min" else max)

    def call_python_min(self, node: ast.Call) -> Known:
        return self.python_extreme(node, "min", "lt")

    def call_python_max(self, node: ast.Call) -> Known:
        return self.python_extreme(node, "max", "gt")

    def call_fmin(self, node: ast.Call) -> Known:
        a, b = self.pair(node)
        return self.arithmetic(node, "min", a, b)

    def call_fmax(self, node: ast.Call) -> Known:
        a, b = self.pair(node)
        return self.arithmetic(node, "max", a, b)

    def nan_aware(self, node: ast.AST, name: str, a: Value, b: Value) -> Value:
        if a.ty not in FLOATS:
            return self.arithmetic(node, name, a, b)
        a, b = self.once(a), self.once(b)
        inner = self.choose(node, self.comparison(node, "ne", b, b), b, self.arithmetic(node, name, a, b))
        return self.choose(node, self.comparison(node, "ne", a, a), a, inner)

    def call_numpy_minimum(self, node: ast.Call) -> Known:
        return self.nan_aware(node, "min", *self.pair(node))

    def call_numpy_maximum(self, node: ast.Call) -> Known:
        return self.nan_aware(node, "max", *self.pair(node))

    def call_where(self, node: ast.Call) -> Known:
        condition, yes, no = self.arguments(node, 3)
        if isinstance(condition, Const):
            return yes if condition.value else no
        truth = self.truth(node.args[0], condition)
        result = self.chosen(node, yes, no, lambda a, b: self.choose(node, truth, a, b))
        if self.function_of(node) is np.where and result.ty == "f64":
            # NumPy's choice of two numbers without a type has one.
            result.adapt, result.python = None, False
        return result

    def call_clip(self, node: ast.Call) -> Known:
        x, low, high = self.arguments(node, 3)
        if isinstance(x, Const):
            x = self.default(node, x)
        ty = x.ty
        number = self.once(x)
        if isinstance(low, Const) and isinstance(high, Const):
            least, most = self.once(self.literal(node, low, ty)), self.once(self.literal(node, high, ty))

            def emit() -> int:
                builder = self.builder
                value, bottom, top = number.emit(), least.emit(), most.emit()
                raised = builder.select(builder.compare("lt", value, bottom), bottom, value)
                return int(builder.select(builder.compare("gt", raised, top), top, raised))

            return Value(ty, self.emitting(node, emit), safe=number.safe, python=number.python)
        raised = self.nan_aware(node, "max", *self.alike(node, number, low, "clip"))
        return self.nan_aware(node, "min", *self.alike(node, raised, high, "clip"))

    def call_sign(self, node: ast.Call) -> Known:
        (x,) = self.floats(node, 1)
        x = self.once(x)
        zero = self.once(self.literal(node, Const(0.0), x.ty))
        one, minus = self.literal(node, Const(1.0), x.ty), self.literal(node, Const(-1.0), x.ty)
        rest = self.choose(node, self.comparison(node, "eq", x, zero), zero, x)
        below = self.choose(node, self.comparison(node, "lt", x, zero), minus, rest)
        return self.choose(node, self.comparison(node, "gt", x, zero), one, below)

    def call_copysign(self, node: ast.Call) -> Known:
        size, sign = self.floats(node, 2)
        sign = self.once(sign)
        size = self.once(self.unary(node, "abs", size))
        zero = self.once(self.literal(node, Const(0.0), sign.ty))
        reciprocal = self.arithmetic(node, "div", self.literal(node, Const(1.0), sign.ty), sign)
        # The reciprocal of a zero is an infinity of its sign.
        minus_zero = self.arithmetic(
            node, "and", self.comparison(node, "eq", sign, zero), self.comparison(node, "lt", reciprocal, zero)
        )
        negative = self.arithmetic(node, "or", self.comparison(node, "lt", sign, zero), minus_zero)
        return self.choose(node, negative, self.unary(node, "neg", size), size)

    def call_square(self, node: ast.Call) -> Known:
        (x,) = self.arguments(node, 1)
        if isinstance(x, Const):
            return Const(x.value * x.value, x.ty)
        x = self.once(x)
        return self.arithmetic(node, "mul", x, x)

    def call_rint(self, node: ast.Call) -> Known:
        """Halves to even, as NumPy rounds; the language's own rounding goes away from zero."""
        if len(node.args) == 2 or node.keywords:
            raise self.fail(node, "`np.round` rounds to whole numbers in programs: write `np.rint(x * 100.0) / 100.0` for two digits")
        (x,) = self.floats(node, 1)
        x = self.once(x)
        ty = x.ty
        half = self.once(self.literal(node, Const(0.5), ty))
        floor = self.once(self.unary(node, "floor", x))
        above = self.once(self.arithmetic(node, "sub", x, floor))
        next = self.once(self.arithmetic(node, "add", floor, self.literal(node, Const(1.0), ty)))
        halved = self.once(self.arithmetic(node, "mul", floor, half))
        even = self.comparison(node, "eq", halved, self.unary(node, "floor", halved))
        tie = self.choose(node, self.comparison(node, "eq", above, half), self.choose(node, even, floor, next), floor)
        rounded = self.once(self.choose(node, self.comparison(node, "gt", above, half), next, tie))
        zero = self.once(self.literal(node, Const(0.0), ty))
        # A zero has the sign of what was rounded.
        return self.choose(
            node, self.comparison(node, "eq", rounded, zero), self.arithmetic(node, "mul", x, zero), rounded
        )

    def call_builtin_round(self, node: ast.Call) -> Known:
        raise self.fail(node, "`round` makes an int of a float in Python: write `np.rint(x)` for a float, `int(np.rint(x))` for an int")

    def to_int(self, node: ast.Call, name: str, fold: Callable[..., int]) -> Known:
        (x,) = self.arguments(node, 1)
        if isinstance(x, Const):
            return Const(fold(x.value))
        if x.ty not in FLOATS:
            return x
        return self.cast(node, self.unary(node, name, x), "int")

    def call_floor_to_int(self, node: ast.Call) -> Known:
        return self.to_int(node, "floor", math.floor)

    def call_ceil_to_int(self, node: ast.Call) -> Known:
        return self.to_int(node, "ceil", math.ceil)

    def call_trunc_to_int(self, node: ast.Call) -> Known:
        return self.to_int(node, "trunc", math.trunc)

    def call_fmod(self, node: ast.Call) -> Known:
        a, b = self.floats(node, 2)
        return self.arithmetic(node, "rem", a, b)

    def call_floored_mod(self, node: ast.Call) -> Known:
        return self.binary(node, ast.Mod, *self.arguments(node, 2))

    def call_is_nan(self, node: ast.Call) -> Known:
        (x,) = self.floats(node, 1)
        x = self.once(x)
        return self.comparison(node, "ne", x, x)

    def call_is_inf(self, node: ast.Call) -> Known:
        (x,) = self.floats(node, 1)
        return self.comparison(node, "eq", self.unary(node, "abs", x), self.literal(node, Const(math.inf), x.ty))

    def call_is_finite(self, node: ast.Call) -> Known:
        (x,) = self.floats(node, 1)
        return self.comparison(node, "lt", self.unary(node, "abs", x), self.literal(node, Const(math.inf), x.ty))

    def call_length(self, node: ast.Call) -> Known:
        if len(node.args) == 1:
            found = self.known(node.args[0])
            if isinstance(found, Array):
                if found.rank == 0:
                    raise self.fail(node, f"`{found.name}` has rank 0 and no length")
                return self.dim(node, found, 0)
            if isinstance(found, Object) and isinstance(found.value, (tuple, list)):
                return Const(len(found.value))
        raise self.fail(node, "`len` takes an array")

