"""Integer and float arithmetic where Python differs from the machine: shifts, `%`, `//` and `**`."""

from __future__ import annotations

import ast
import dataclasses

from .._types import FLOATS, INTEGERS
from .names import Names
from .values import Const, Scalar, Value


class Division(Names):
    """Python's meaning of what languages disagree on, made of operations of the builder."""

    def comparison(self, node: ast.AST, name: str, a: Value, b: Value) -> Value:
        raise NotImplementedError

    def choose(self, node: ast.AST, condition: Value, yes: Value, no: Value) -> Value:
        raise NotImplementedError

    def unary(self, node: ast.AST, name: str, a: Value) -> Value:
        raise NotImplementedError

    def math(self, node: ast.AST, name: str, args: list[Value]) -> Value:
        raise NotImplementedError

    def shift(self, node: ast.AST, name: str, a: Value, b: Value) -> Value:
        count = b.form.constant if b.form is not None and not b.form.terms else None
        width = 32 if a.ty in ("i32", "u32") else 64
        if count is None or not 0 <= count < width:
            raise self.fail(node, f"a shift is by a constant from 0 to {width - 1}: what lies beyond differs between languages")
        return self.arithmetic(node, name, a, b)

    def sure(self, value: Value) -> bool:
        """Can it not be negative?"""
        return value.ty == "u32" or self.bounds.not_negative(value.form)

    def once(self, value: Value) -> Value:
        """The same value, computed at its first use alone."""
        kept: list[int] = []

        def emit() -> int:
            if not kept:
                kept.append(value.emit())
            return kept[0]

        return dataclasses.replace(value, emit=emit, adapt=None)

    def modulo(self, node: ast.AST, a: Value, b: Value) -> Value:
        """Python's `%`: the sign of the divisor."""
        if a.ty in FLOATS:
            return self.float_modulo(node, a, b)
        if self.sure(a) and self.sure(b):
            return self.arithmetic(node, "rem", a, b, safe=False)
        if self.sure(b):
            return self.arithmetic(node, "rem_euclid", a, b, safe=False)
        a, b = self.once(a), self.once(b)
        rest = self.once(self.arithmetic(node, "rem", a, b, safe=False))
        return self.choose(node, self.signs_differ(node, rest, b), self.arithmetic(node, "add", rest, b), rest)

    def signs_differ(self, node: ast.AST, rest: Value, divisor: Value) -> Value:
        """Is the rest not zero, and of another sign than the divisor?"""
        zero = self.once(self.literal(node, Const(0), rest.ty))
        differ = self.comparison(
            node, "ne", self.comparison(node, "lt", rest, zero), self.comparison(node, "lt", divisor, zero)
        )
        return self.arithmetic(node, "and", self.comparison(node, "ne", rest, zero), differ)

    def float_modulo(self, node: ast.AST, a: Value, b: Value) -> Value:
        b = self.once(b)
        rest = self.once(self.arithmetic(node, "rem", a, b))
        moved = self.choose(node, self.signs_differ(node, rest, b), self.arithmetic(node, "add", rest, b), rest)
        zero = self.once(self.literal(node, Const(0.0), a.ty))
        signed = self.choose(node, self.comparison(node, "lt", b, zero), self.literal(node, Const(-0.0), a.ty), zero)
        return self.choose(node, self.comparison(node, "eq", rest, zero), signed, moved)

    def floor_division(self, node: ast.AST, a: Value, b: Value) -> Value:
        """Python's `//`: rounded towards minus infinity."""
        if a.ty in FLOATS:
            return self.float_floor_division(node, a, b)
        if self.sure(a) and self.sure(b):
            return self.arithmetic(node, "div", a, b, safe=False)
        a, b = self.once(a), self.once(b)
        quotient = self.once(self.arithmetic(node, "div", a, b, safe=False))
        rest = self.once(self.arithmetic(node, "sub", a, self.arithmetic(node, "mul", quotient, b)))
        lower = self.arithmetic(node, "sub", quotient, self.literal(node, Const(1), a.ty))
        return self.choose(node, self.signs_differ(node, rest, b), lower, quotient)

    def float_floor_division(self, node: ast.AST, a: Value, b: Value) -> Value:
        # CPython's and NumPy's algorithm: exact where the quotient is a whole number.
        a, b = self.once(a), self.once(b)
        zero = self.once(self.literal(node, Const(0.0), a.ty))
        one = self.once(self.literal(node, Const(1.0), a.ty))
        rest = self.once(self.arithmetic(node, "rem", a, b))
        raw = self.once(self.arithmetic(node, "div", self.arithmetic(node, "sub", a, rest), b))
        differ = self.signs_differ(node, rest, b)
        moved = self.once(self.choose(node, differ, self.arithmetic(node, "sub", raw, one), raw))
        floored = self.once(self.unary(node, "floor", moved))
        half = self.literal(node, Const(0.5), a.ty)
        far = self.comparison(node, "gt", self.arithmetic(node, "sub", moved, floored), half)
        whole = self.choose(node, far, self.arithmetic(node, "add", floored, one), floored)
        quotient = self.once(self.arithmetic(node, "div", a, b))
        signed = self.arithmetic(node, "mul", quotient, zero)
        small = self.choose(node, self.comparison(node, "ne", moved, zero), whole, signed)
        # By zero, and of infinities, NumPy gives what the division gives.
        return self.choose(node, self.comparison(node, "eq", b, zero), quotient, small)

    def power(self, node: ast.AST, a: Scalar, b: Scalar) -> Scalar:
        exponent = b.value if isinstance(b, Const) and b.ty is None else None
        if isinstance(exponent, int) and not isinstance(exponent, bool) and isinstance(a, Value):
            if a.ty in FLOATS:
                if not -(2**31) <= exponent < 2**31:
                    raise self.fail(node, f"the exponent {exponent} is beyond 32 bits: write it as a float")
                builder, emit, number = self.builder, a.emit, exponent
                return Value(
                    a.ty,
                    self.emitting(node, lambda: builder.math("powi", [emit(), builder.int_literal("i32", number)])),
                    safe=a.safe,
                    python=a.python,
                )
            if a.ty in INTEGERS and 1 <= exponent <= 64:
                base = self.once(a)
                product: Value = base
                for _ in range(exponent - 1):
                    product = self.arithmetic(node, "mul", product, base)
                return product
        if isinstance(a, Value) and a.ty in INTEGERS and not (isinstance(b, Value) and b.ty in FLOATS):
            raise self.fail(node, "a power of an integer has a constant exponent from 1 to 64; write `float(a) ** b` for others")
        left, right = self.alike(node, a, b, "**")
        if left.ty not in FLOATS:
            raise self.fail(node, "a power of an integer has a constant exponent from 1 to 64")
        return self.math(node, "powf", [left, right])

