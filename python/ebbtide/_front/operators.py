"""Operators, conditions and choices."""

from __future__ import annotations

import ast
import operator
from typing import Any, Callable, Optional, Sequence

from .._types import FLOATS, INTEGERS
from .division import Division
from .names import Known
from .ranges import Linear
from .values import Const, Scalar, Value

_BINARY = {
    ast.Add: ("add", "+", operator.add),
    ast.Sub: ("sub", "-", operator.sub),
    ast.Mult: ("mul", "*", operator.mul),
    ast.Div: ("div", "/", operator.truediv),
    ast.FloorDiv: ("floor_div", "//", operator.floordiv),
    ast.Mod: ("mod", "%", operator.mod),
    ast.Pow: ("pow", "**", operator.pow),
    ast.BitAnd: ("and", "&", operator.and_),
    ast.BitOr: ("or", "|", operator.or_),
    ast.BitXor: ("xor", "^", operator.xor),
    ast.LShift: ("shl", "<<", operator.lshift),
    ast.RShift: ("shr", ">>", operator.rshift),
}
_COMPARE = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}


class Operators(Division):
    """Translates operators."""

    # -- operators ---------------------------------------------------------------------------------------------------

    def expr_BinOp(self, node: ast.BinOp) -> Known:
        if isinstance(node.op, ast.MatMult):
            raise self.fail(node, "there is no `@` here: `matmul(a, b, c)`, on a line of its own, makes `c` the product")
        a, b = self.scalar(node.left), self.scalar(node.right)
        return self.binary(node, type(node.op), a, b)

    def binary(self, node: ast.AST, op: type, a: Scalar, b: Scalar) -> Scalar:
        if op not in _BINARY:
            raise self.fail(node, "there is no `@` of values: `matmul(a, b, c)` multiplies matrices")
        name, symbol, fold = _BINARY[op]
        if isinstance(a, Const) and isinstance(b, Const) and a.ty is None and b.ty is None:
            try:
                return Const(fold(a.value, b.value))
            except (ArithmeticError, TypeError, ValueError) as error:
                raise self.fail(node, f"this constant cannot be computed: {error}") from None
        if any(isinstance(x, Value) and x.ty == "bool" for x in (a, b)) and name not in ("and", "or", "xor"):
            raise self.fail(node, f"there is no `{symbol}` of bools: `float(c)` and `int(c)` make a number of one, `select(c, a, b)` chooses")
        if name == "pow":
            return self.power(node, a, b)
        left, right = self.alike(node, a, b, symbol)
        ty = left.ty
        if ty in FLOATS and name in ("and", "or", "xor", "shl", "shr"):
            raise self.fail(node, f"there is no `{symbol}` of floats")
        if name == "div" and ty not in FLOATS:
            raise self.fail(node, "`/` of integers is a float in Python: write `//`, or `float(a) / float(b)`")
        if name == "floor_div":
            return self.floor_division(node, left, right)
        if name == "mod":
            return self.modulo(node, left, right)
        if name in ("shl", "shr"):
            return self.shift(node, name, left, right)
        return self.arithmetic(node, name, left, right)

    def arithmetic(self, node: ast.AST, name: str, a: Value, b: Value, safe: bool = True) -> Value:
        builder, left, right = self.builder, a.emit, b.emit
        form: Optional[Linear] = None
        if a.form is not None and b.form is not None and a.ty == "int":
            if name in ("add", "sub"):
                form = a.form.plus(b.form, 1 if name == "add" else -1)
            elif name == "mul" and not b.form.terms:
                form = a.form.times(b.form.constant)
            elif name == "mul" and not a.form.terms:
                form = b.form.times(a.form.constant)
        return Value(
            a.ty,
            self.emitting(node, lambda: builder.binary(name, left(), right())),
            form,
            safe=safe and a.safe and b.safe,
            python=a.python and b.python,
        )

    def unary(self, node: ast.AST, name: str, a: Value) -> Value:
        builder, emit = self.builder, a.emit
        return Value(a.ty, self.emitting(node, lambda: builder.unary(name, emit())), safe=a.safe, python=a.python)

    def math(self, node: ast.AST, name: str, args: Sequence[Value]) -> Value:
        builder = self.builder
        return Value(
            args[0].ty,
            self.emitting(node, lambda: builder.math(name, [a.emit() for a in args])),
            safe=all(a.safe for a in args),
            python=all(a.python for a in args),
        )

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Known:
        a = self.scalar(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(a, Const):
                return Const(not a.value)
            return self.unary(node, "not", self.truth(node.operand, a))
        if isinstance(a, Const):
            folded: Any = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(node.op)]
            return Const(folded(a.value), a.ty)
        if isinstance(node.op, ast.UAdd):
            return a
        if isinstance(node.op, ast.Invert):
            if a.ty in FLOATS:
                raise self.fail(node, "there is no `~` of floats")
            return self.unary(node, "not", a)
        if a.ty in ("bool", "u32"):
            raise self.fail(node, f"there is no `-` of `{a.ty}`")
        if a.ty == "int":
            return self.opposite(node, a)
        return self.unary(node, "neg", a)

    def opposite(self, node: ast.AST, a: Value) -> Value:
        """`-a` of an int: indices have no negation of their own."""
        return self.arithmetic(node, "sub", self.literal(node, Const(0), "int"), a)

    def truth(self, node: ast.AST, found: Scalar) -> Value:
        """A condition."""
        if isinstance(found, Const):
            return self.literal(node, Const(bool(found.value)), "bool")
        if found.ty != "bool":
            raise self.fail(node, f"a condition is a bool, this is `{found.ty}`: compare, `x != 0`")
        return found

    def comparison(self, node: ast.AST, name: str, a: Value, b: Value) -> Value:
        builder, left, right = self.builder, a.emit, b.emit
        return Value("bool", self.emitting(node, lambda: builder.compare(name, left(), right())), safe=a.safe and b.safe)

    def expr_Compare(self, node: ast.Compare) -> Known:
        if any(type(op) not in _COMPARE for op in node.ops):
            raise self.fail(node, "`is` and `in` have no place in programs: compare numbers, `a == b`, `a == 0 or a == 2`")
        parts = [self.scalar(part) for part in [node.left, *node.comparators]]
        if len(parts) > 2:
            # In `a < b < c` the middle is computed once.
            parts[1:-1] = [self.once(p) if isinstance(p, Value) else p for p in parts[1:-1]]
        result: Optional[Scalar] = None
        for op, a, b in zip(node.ops, parts, parts[1:]):
            name, fold = _COMPARE[type(op)]
            one: Scalar
            if isinstance(a, Const) and isinstance(b, Const):
                one = Const(bool(fold(a.value, b.value)))
            else:
                left, right = self.alike(node, a, b, ast.unparse(node))
                if left.ty == "bool" and name not in ("eq", "ne"):
                    raise self.fail(node, "bools are compared with `==` and `!=` alone")
                one = self.comparison(node, name, left, right)
            result = one if result is None else self.both(node, result, one, "and")
        assert result is not None
        return result

    def expr_BoolOp(self, node: ast.BoolOp) -> Known:
        name = "and" if isinstance(node.op, ast.And) else "or"
        result: Scalar = self.scalar(node.values[0])
        for part in node.values[1:]:
            if isinstance(result, Const) and bool(result.value) != (name == "and"):
                return Const(bool(result.value))
            other = self.scalar(part)
            for operand, at in ((result, node), (other, part)):
                if isinstance(operand, Value) and operand.ty != "bool":
                    raise self.fail(
                        at,
                        f"`{name}` takes bools, this is `{operand.ty}` (in Python it would give one of its operands): compare "
                        f"with zero, or write `a if c else b`",
                    )
            if isinstance(result, Const):
                result = Const(bool(other.value)) if isinstance(other, Const) else other
            else:
                result = self.both(part, result, other, name)
        return result

    def both(self, node: ast.AST, a: Scalar, b: Scalar, name: str) -> Value:
        """`a and b`, `a or b`. Where computing `b` could fail, it is computed only if it is asked for."""
        left, right = self.truth(node, a), self.truth(node, b)
        if right.safe:
            return self.arithmetic(node, name, left, right)
        builder = self.builder

        def emit() -> int:
            known = left.emit()
            slot = builder.numbered_local(name, known)
            builder.begin_if(known if name == "and" else builder.unary("not", known))
            builder.set(slot, right.emit())
            builder.end_if()
            return int(builder.get(slot))

        return Value("bool", self.emitting(node, emit), safe=False)

    def expr_IfExp(self, node: ast.IfExp) -> Known:
        condition = self.scalar(node.test)
        if isinstance(condition, Const):
            return self.scalar(node.body if condition.value else node.orelse)
        truth = self.truth(node.test, condition)
        return self.chosen(node, self.scalar(node.body), self.scalar(node.orelse), lambda a, b: self.branch(node, truth, a, b))

    def chosen(self, node: ast.AST, yes: Scalar, no: Scalar, make: Callable[[Value, Value], Value]) -> Value:
        """A choice of two; among numbers without a type it takes the type of what it meets."""
        result = make(*self.alike(node, yes, no, "if"))
        numbers = [x.value for x in (yes, no) if isinstance(x, Const) and x.ty is None and not isinstance(x.value, bool)]
        if len(numbers) == 2:
            whole = all(isinstance(number, int) for number in numbers)

            def adapt(ty: str) -> Optional[Value]:
                if ty in FLOATS or (whole and ty in INTEGERS):
                    assert isinstance(yes, Const) and isinstance(no, Const)
                    return make(self.literal(node, yes, ty), self.literal(node, no, ty))
                return None

            result.adapt = adapt
        return result

    def branch(self, node: ast.AST, truth: Value, yes: Value, no: Value) -> Value:
        builder, ty = self.builder, yes.ty

        def emit() -> int:
            slot = builder.numbered_local("if", builder.int_literal(ty, 0))
            builder.begin_if(truth.emit())
            builder.set(slot, yes.emit())
            builder.begin_else()
            builder.set(slot, no.emit())
            return int(builder.end_value_if(slot))

        return Value(ty, self.emitting(node, emit), safe=False, python=yes.python and no.python)

    def choose(self, node: ast.AST, condition: Value, yes: Value, no: Value) -> Value:
        """`select`: all three computed, in this order."""
        builder = self.builder

        def emit() -> int:
            c = condition.emit()
            a = yes.emit()
            return int(builder.select(c, a, no.emit()))

        safe = condition.safe and yes.safe and no.safe
        return Value(yes.ty, self.emitting(node, emit), safe=safe, python=yes.python and no.python)

