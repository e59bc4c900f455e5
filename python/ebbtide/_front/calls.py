"""Calls of functions that have a value: `math`, NumPy, conversions, words of the language."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .. import language
from .._types import FLOATS, INTEGERS, NAMES, DType, element_type
from . import functions
from .names import Known
from .special import Special
from .values import Const, Object, Scalar, Small, Value


class Calls(Special):
    """Translates calls."""

    # -- calls -------------------------------------------------------------------------------------------------------

    def floats(self, node: ast.Call, count: int) -> list[Value]:
        """The arguments, floats of one type."""
        found = self.arguments(node, count)
        if all(isinstance(a, Const) and a.ty is None for a in found):
            return [self.literal(node, Const(float(a.value)), "f64") for a in found if isinstance(a, Const)]
        if count == 2:
            values = list(self.alike(node, found[0], found[1], ast.unparse(node.func)))
        else:
            values = [self.default(node, found[0])]
        if values[0].ty == "int":
            values = [self.cast(node, v, "f64") for v in values]
        if values[0].ty == "f32" and functions.is_pythons(self.function_of(node)):
            # Python's own functions compute in float64, whatever they are given.
            values = [dataclasses.replace(self.cast(node, v, "f64"), python=True) for v in values]
        if values[0].ty not in FLOATS:
            raise self.fail(node, f"`{ast.unparse(node.func)}` takes floats, this is `{values[0].ty}`: convert it, `f64(...)`")
        return values

    def arguments(self, node: ast.Call, count: int) -> list[Scalar]:
        if node.keywords or len(node.args) != count:
            raise self.fail(node, f"`{ast.unparse(node.func)}` takes {count} argument{'s' if count != 1 else ''} in programs")
        return [self.scalar(argument) for argument in node.args]

    def math_call(self, node: ast.Call, function: Any) -> Optional[Known]:
        """A function of `math`, NumPy or Python; `None` if it is none."""
        try:
            hash(function)
        except TypeError:
            return None
        if function in functions.MATH or function in functions.UNARY or function in functions.MATH2:
            count = 2 if function in functions.MATH2 else 1
            found = self.arguments(node, count)
            if all(isinstance(a, Const) and a.ty is None for a in found):
                return self.folded(node, function, found)
            values = self.floats(node, count)
            if function in functions.UNARY:
                result = self.unary(node, functions.UNARY[function], values[0])
            else:
                result = self.math(node, functions.MATH.get(function) or functions.MATH2[function], values)
            result.python = functions.is_pythons(function)
            return result
        if function in functions.SPECIAL:
            method: Callable[[ast.Call], Known] = getattr(self, "call_" + functions.SPECIAL[function])
            return method(node)
        if isinstance(function, DType) or (isinstance(function, type) and element_type(function) is not None):
            return self.conversion(node, function)
        return None

    def folded(self, node: ast.Call, function: Any, found: Sequence[Scalar]) -> Const:
        numbers = [a.value for a in found if isinstance(a, Const)]
        try:
            result = function(*numbers)
        except (ArithmeticError, ValueError) as error:
            raise self.fail(node, f"this constant cannot be computed: {error}") from None
        # What NumPy computes has a type.
        return Const(result.item(), NAMES.get(result.dtype.name)) if isinstance(result, np.generic) else Const(result)

    def function_of(self, node: ast.Call) -> Any:
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            return None
        if isinstance(node.func, ast.Attribute) and isinstance(self.known(node.func.value), Small):
            # A method of a small value.
            return None
        found = self.known(node.func)
        return found.value if isinstance(found, Object) else None

    def conversion(self, node: ast.Call, function: Any) -> Known:
        if function is int:
            ty: Optional[str] = "int"
        elif function is bool:
            raise self.fail(node, "`bool(...)` is not known in programs: compare, `x != 0`")
        else:
            ty = element_type(function)
        assert ty is not None
        (found,) = self.arguments(node, 1)
        if isinstance(found, Const):
            if function is int or function is float:
                return Const(function(found.value))
            try:
                number = np.asarray(found.value).astype(function.numpy if isinstance(function, DType) else function).item()
            except (OverflowError, ValueError) as error:
                raise self.fail(node, f"this constant cannot be converted: {error}") from None
            return Const(number, ty)
        if found.ty == "bool":
            one, zero = self.literal(node, Const(1), ty), self.literal(node, Const(0), ty)
            return self.choose(node, found, one, zero)
        result = self.cast(node, found, ty)
        form = found.form if ty == "int" == found.ty else None
        return Value(ty, result.emit, form, safe=found.safe, python=function is float)

    def pair(self, node: ast.Call) -> tuple[Value, Value]:
        a, b = self.arguments(node, 2)
        left, right = self.alike(node, a, b, ast.unparse(node.func))
        return left, right

    # -- words of the language that have a value ---------------------------------------------------------------------

    def language_call(self, node: ast.Call, function: Any) -> Optional[Known]:
        if function is language.select:
            return self.call_where(node)
        if function is language.fma:
            values = [self.scalar(argument) for argument in node.args]
            if len(values) != 3:
                raise self.fail(node, "`fma` takes three numbers")
            typed = next((v.ty for v in values if isinstance(v, Value)), "f64")
            a, b, c = (self.convert(node, v, typed, "`fma`") for v in values)
            builder = self.builder

            def emit() -> int:
                first, second = a.emit(), b.emit()
                return int(builder.fma(first, second, c.emit()))

            return Value(typed, self.emitting(node, emit), safe=a.safe and b.safe and c.safe)
        if function is language.rand:
            return self.random(node)
        return None

    def random(self, node: ast.Call) -> Value:
        if len(node.args) not in (2, 3) or node.keywords:
            raise self.fail(node, "`rand` takes a seed, an index and perhaps a type: `rand(seed, i)`, `rand(seed, i, f32)`")
        ty: Optional[str] = "f64"
        if len(node.args) == 3:
            found = self.known(node.args[2])
            ty = element_type(found.value) if isinstance(found, Object) else None
        if ty not in FLOATS:
            raise self.fail(node, "random numbers are `f64` or `f32`")
        numbers = []
        for argument in node.args[:2]:
            number = self.default(argument, self.scalar(argument))
            if number.ty not in INTEGERS:
                raise self.fail(argument, f"seed and index are integers, this is `{number.ty}`")
            numbers.append(self.cast(argument, number, "i64"))
        builder, (seed, index) = self.builder, numbers

        def emit() -> int:
            first = seed.emit()
            return int(builder.rand(ty, first, index.emit()))

        return Value(str(ty), self.emitting(node, emit), safe=seed.safe and index.safe)
