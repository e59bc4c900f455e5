"""Expressions: typed first, then emitted where they stand."""

from __future__ import annotations

import ast
import math
import operator
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from .. import language
from .._types import FLOATS, INTEGERS, NAMES, DType, element_type
from . import functions
from .ranges import Bounds, Linear
from .source import Source
from .values import Array, Const, Gone, Local, LoopVariable, Named, Object, Retype, Scalar, Struct, Value

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
_LIMITS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u32": (0, 2**32 - 1), "int": (-(2**63), 2**63 - 1)}

Known = Union[Const, Value, Array, Struct, Object]


class Expressions:
    """Translates expressions. `Translator` adds statements."""

    builder: Any
    source: Source
    bounds: Bounds
    scopes: list[dict[str, Any]]

    # -- places ------------------------------------------------------------------------------------------------------

    def fail(self, node: ast.AST, message: str) -> Exception:
        return self.source.fail(node, message)

    def at(self, node: ast.AST) -> None:
        file, line, column, _ = self.source.spot(node)
        self.builder.at(file, line, column)

    def emitting(self, node: ast.AST, work: Callable[[], int]) -> Callable[[], int]:
        def emit() -> int:
            result = work()
            return result

        source, builder = self.source, self.builder
        file, line, column, _ = source.spot(node)

        def placed() -> int:
            builder.at(file, line, column)
            return emit()

        return placed

    # -- names -------------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Optional[Any]:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def known(self, node: ast.expr) -> Known:
        """What an expression stands for: a value, an array, a struct, or something of the host's."""
        if isinstance(node, ast.Name):
            return self.named(node)
        if isinstance(node, ast.Attribute):
            base = self.known(node.value)
            if isinstance(base, Struct):
                if node.attr not in base.fields:
                    raise self.fail(node, f"`{base.name}` has no field `{node.attr}`; it has {', '.join(base.fields)}")
                return self.binding(node, base.fields[node.attr])
            if isinstance(base, Array):
                return self.array_attribute(node, base)
            if isinstance(base, Object):
                try:
                    return self.host(node, getattr(base.value, node.attr))
                except AttributeError:
                    raise self.fail(node, f"`{ast.unparse(node.value)}` has no attribute `{node.attr}`") from None
            raise self.fail(node, f"a number has no `{node.attr}` in programs: write a function, `np.sqrt(x)`")
        return self.value(node)

    def named(self, node: ast.Name) -> Known:
        found = self.find(node.id)
        if found is not None:
            return self.binding(node, found)
        if node.id in self.assigned_names:
            raise self.fail(node, f"`{node.id}` is read before it is assigned")
        try:
            return self.host(node, self.source.lookup(node.id))
        except KeyError:
            raise self.fail(node, f"there is no `{node.id}` here") from None

    assigned_names: set[str] = set()

    def binding(self, node: ast.expr, found: Any) -> Known:
        builder = self.builder
        if isinstance(found, (Array, Struct, Const, Object)):
            return found
        if isinstance(found, (Named, LoopVariable)):
            id = found.id
            return Value(found.ty, lambda: id, found.form)
        if isinstance(found, Local):
            local = found.id
            weak = found if found.weak else None
            return Value(found.ty, self.emitting(node, lambda: builder.get(local)), weak=weak)
        if isinstance(found, Gone):
            raise self.fail(
                node,
                f"`{ast.unparse(node)}` is assigned only inside the {found.what} at line {found.line}: assign it before that",
            )
        return Object(found)

    def host(self, node: ast.AST, object: Any) -> Known:
        """Something of the host's: numbers are constants."""
        if isinstance(object, (bool, int, float)) and not isinstance(object, np.generic):
            return Const(object)
        if isinstance(object, np.generic):
            ty = NAMES.get(object.dtype.name)
            if ty is not None:
                return Const(object.item(), ty)
        if isinstance(object, np.ndarray):
            if object.ndim == 0:
                return self.host(node, object[()])
            raise self.fail(node, "an array of the host is not known in programs: make it a parameter")
        return Object(object)

    def array_attribute(self, node: ast.Attribute, array: Array) -> Known:
        if node.attr == "size":
            return self.size(node, array)
        if node.attr == "ndim":
            return Const(array.rank)
        if node.attr in ("shape", "dtype"):
            return Object((array, node.attr))
        raise self.fail(node, f"arrays have `shape`, `size`, `ndim` and elements in programs, no `{node.attr}`: write a loop")

    def dim(self, node: ast.AST, array: Array, k: int) -> Value:
        if not 0 <= k < array.rank:
            raise self.fail(node, f"`{array.name}` has {array.rank} dimensions: there is no `shape[{k}]`")
        builder, id = self.builder, array.id
        atom = ("dim", id, k)
        self.bounds.low.setdefault(atom, 0)
        return Value("int", self.emitting(node, lambda: builder.dim(id, k)), Linear.atom(atom))

    def size(self, node: ast.AST, array: Array) -> Scalar:
        if array.rank == 0:
            return Const(1)
        dims = [self.dim(node, array, k) for k in range(array.rank)]
        if array.rank == 1:
            return dims[0]
        builder = self.builder

        def emit() -> int:
            ids = [dim.emit() for dim in dims]
            product = ids[0]
            for id in ids[1:]:
                product = builder.binary("mul", product, id)
            return product

        atom = ("size", array.id)
        self.bounds.low.setdefault(atom, 0)
        return Value("int", emit, Linear.atom(atom))

    # -- values ------------------------------------------------------------------------------------------------------

    def scalar(self, node: ast.expr) -> Scalar:
        found = self.known(node)
        if isinstance(found, (Const, Value)):
            return found
        if isinstance(found, Array):
            hint = f"{found.name}[()]" if found.rank == 0 else f"{found.name}[{', '.join('ijkl'[: found.rank])}]"
            raise self.fail(node, f"`{ast.unparse(node)}` is an array: write an element, `{hint}`, or a loop over them")
        if isinstance(found, Struct):
            raise self.fail(node, f"`{found.name}` is a dataclass: write one of its fields")
        raise self.fail(node, f"`{ast.unparse(node)}` is no number: programs know numbers, arrays and dataclasses of these")

    def value(self, node: ast.expr) -> Known:
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            what = _REFUSED.get(type(node), "this has no place in programs")
            raise self.fail(node, what)
        result: Known = method(node)
        return result

    def expr_Constant(self, node: ast.Constant) -> Known:
        if isinstance(node.value, (bool, int, float)):
            return Const(node.value)
        raise self.fail(node, "values of programs are numbers and bools")

    def expr_Name(self, node: ast.Name) -> Known:
        return self.named(node)

    def expr_Attribute(self, node: ast.Attribute) -> Known:
        return self.known(node)

    def expr_Call(self, node: ast.Call) -> Known:
        return self.call(node)

    def expr_Subscript(self, node: ast.Subscript) -> Known:
        base = self.known(node.value)
        if isinstance(base, Array):
            index = self.indices(node, base)
            builder, id = self.builder, base.id
            return Value(
                base.ty, self.emitting(node, lambda: builder.load(id, [i.emit() for i in index])), safe=False
            )
        if isinstance(base, Object) and isinstance(base.value, tuple) and len(base.value) == 2 and isinstance(base.value[0], Array):
            array, what = base.value
            k = self.scalar(node.slice)
            if what != "shape" or not isinstance(k, Const) or not isinstance(k.value, int):
                raise self.fail(node, "write `u.shape[0]` with the number of the dimension")
            return self.dim(node, array, k.value + array.rank if k.value < 0 else k.value)
        if isinstance(base, Object) and isinstance(base.value, (tuple, list)):
            k = self.scalar(node.slice)
            if isinstance(k, Const) and isinstance(k.value, int):
                try:
                    return self.host(node, base.value[k.value])
                except IndexError:
                    raise self.fail(node, f"there are {len(base.value)} of them") from None
            raise self.fail(node, "a tuple of the host is indexed with a constant; what varies is an array: make it a parameter")
        raise self.fail(node, "only arrays have elements")

    def indices(self, node: ast.Subscript, array: Array) -> list[Value]:
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts):
            raise self.fail(node, "there are no slices of arrays: write a loop over the indices")
        if len(parts) != array.rank:
            shown = ", ".join("ijkl"[: array.rank]) or "()"
            raise self.fail(
                node, f"`{array.name}` has {array.rank} dimensions and is indexed with {len(parts)}: write `{array.name}[{shown}]`"
            )
        return [self.index(part, array, k) for k, part in enumerate(parts)]

    def index(self, node: ast.expr, array: Optional[Array] = None, k: int = 0) -> Value:
        """A value used as an index, a loop bound or an extent."""
        found = self.scalar(node)
        builder = self.builder
        if isinstance(found, Const):
            if isinstance(found.value, bool) or not isinstance(found.value, int):
                raise self.fail(node, f"`{found.value}` is no integer")
            number = found.value
            if array is not None and number < 0:
                # `u[-1]` counts from the end, as in Python.
                dim = self.dim(node, array, k)
                return self.arithmetic(node, "add", dim, self.literal(node, Const(number), "int"))
            return self.literal(node, Const(number), "int")
        if found.ty == "int":
            return found
        if found.ty in INTEGERS:
            emit = found.emit
            return Value("int", self.emitting(node, lambda: builder.cast(emit(), "int")), safe=found.safe)
        raise self.fail(node, f"an index is an integer, this is `{found.ty}`: write `int(...)`")

    # -- types -------------------------------------------------------------------------------------------------------

    def literal(self, node: ast.AST, const: Const, ty: str) -> Value:
        """A constant in a type."""
        value = const.value
        builder = self.builder
        if ty in FLOATS:
            if isinstance(value, bool):
                raise self.fail(node, f"`{value}` is a bool, and the other side is `{ty}`")
            number = float(value)
            return Value(ty, self.emitting(node, lambda: builder.float_literal(ty, number)))
        if ty == "bool":
            if not isinstance(value, bool):
                raise self.fail(node, f"`{value}` is no bool: compare, `x != 0`")
            return Value(ty, self.emitting(node, lambda: builder.int_literal("bool", int(value))))
        if isinstance(value, (bool, float)):
            raise self.fail(
                node,
                f"`{value}` is a {type(value).__name__}, and the other side is `{ty}`: NumPy would give float64 here; convert "
                f"the integer, `f64(...)`, or write an integer",
            )
        low, high = _LIMITS[ty]
        if not low <= value <= high:
            raise self.fail(node, f"{value} does not fit `{ty}`")
        return Value(ty, self.emitting(node, lambda: builder.int_literal(ty, value)), Linear(value))

    def default(self, node: ast.AST, found: Scalar) -> Value:
        """A value; constants without a type are what they are in Python."""
        if isinstance(found, Value):
            return found
        ty = found.ty or ("bool" if isinstance(found.value, bool) else "int" if isinstance(found.value, int) else "f64")
        return self.literal(node, found, ty)

    def convert(self, node: ast.AST, found: Scalar, ty: str, what: str) -> Value:
        """A value of a type, where Python converts without loss; else an error that says what to write."""
        if isinstance(found, Const):
            if found.ty is not None and found.ty != ty:
                raise self.fail(node, f"{what} is `{ty}`, this is `{found.ty}`: convert it, `{ty}(...)`")
            if ty in INTEGERS and isinstance(found.value, float):
                raise self.fail(node, f"{what} is `{ty}`, `{found.value}` is a float: convert one of them")
            return self.literal(node, found, ty)
        if found.ty == ty:
            return found
        adapted = found.adapt(ty) if found.adapt is not None else None
        if adapted is not None:
            return adapted
        if found.ty == "int" and (ty in FLOATS or ty == "i64"):
            return self.cast(node, found, ty)
        if found.weak is not None and ty in FLOATS + INTEGERS:
            raise Retype(found.weak.key, ty)
        raise self.fail(node, f"{what} is `{ty}`, this is `{found.ty}`: convert it, `{ty}(...)`")

    def cast(self, node: ast.AST, found: Value, ty: str) -> Value:
        if found.ty == ty:
            return found
        builder, emit = self.builder, found.emit
        return Value(ty, self.emitting(node, lambda: builder.cast(emit(), ty)), safe=found.safe)

    def alike(self, node: ast.AST, a: Scalar, b: Scalar, symbol: str) -> tuple[Value, Value]:
        """Two operands in one type."""
        if isinstance(a, Const) and a.ty is not None:
            a = self.literal(node, a, a.ty)
        if isinstance(b, Const) and b.ty is not None:
            b = self.literal(node, b, b.ty)
        if isinstance(a, Const) and isinstance(b, Const):
            left, right = self.default(node, a), self.default(node, b)
            return self.alike(node, left, right, symbol)
        if isinstance(a, Const):
            assert isinstance(b, Value)
            right, left = self.beside(node, b, a)
            return left, right
        if isinstance(b, Const):
            left, right = self.beside(node, a, b)
            return left, right
        if a.ty == b.ty:
            return a, b
        if a.adapt is not None and (adapted := a.adapt(b.ty)) is not None:
            return adapted, b
        if b.adapt is not None and (adapted := b.adapt(a.ty)) is not None:
            return a, adapted
        for one, other in ((a, b), (b, a)):
            if one.weak is not None and other.ty in FLOATS + INTEGERS and not (one.ty in FLOATS and other.ty in INTEGERS):
                raise Retype(one.weak.key, other.ty)
        if a.ty == "int" and (b.ty in FLOATS or b.ty == "i64"):
            return self.cast(node, a, b.ty), b
        if b.ty == "int" and (a.ty in FLOATS or a.ty == "i64"):
            return a, self.cast(node, b, a.ty)
        raise self.fail(
            node,
            f"the left side of `{symbol}` is `{a.ty}`, the right side `{b.ty}`: nothing is converted by itself; convert one of "
            f"them, `{a.ty}(...)` or `{b.ty}(...)`",
        )

    def beside(self, node: ast.AST, value: Value, const: Const) -> tuple[Value, Value]:
        """A value, and a constant without a type beside it."""
        if isinstance(const.value, float) and value.ty in INTEGERS:
            if value.weak is not None:
                raise Retype(value.weak.key, "f64")
            if value.ty == "int":
                # An int of Python beside a float is a float.
                return self.cast(node, value, "f64"), self.literal(node, const, "f64")
        return value, self.literal(node, const, value.ty)

    # -- operators ---------------------------------------------------------------------------------------------------

    def expr_BinOp(self, node: ast.BinOp) -> Known:
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
        if name == "pow":
            return self.power(node, a, b)
        left, right = self.alike(node, a, b, symbol)
        ty = left.ty
        if ty == "bool" and name not in ("and", "or", "xor"):
            raise self.fail(node, f"there is no `{symbol}` of bools: `select(c, 1, 0)` makes a number of one")
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
        )

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

        return Value(value.ty, emit, value.form, value.safe, value.weak)

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

    def unary(self, node: ast.AST, name: str, a: Value) -> Value:
        builder, emit = self.builder, a.emit
        return Value(a.ty, self.emitting(node, lambda: builder.unary(name, emit())), safe=a.safe)

    def math(self, node: ast.AST, name: str, args: Sequence[Value]) -> Value:
        builder = self.builder
        return Value(
            args[0].ty,
            self.emitting(node, lambda: builder.math(name, [a.emit() for a in args])),
            safe=all(a.safe for a in args),
        )

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Known:
        a = self.scalar(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(a, Const):
                return Const(not a.value)
            return self.unary(node, "not", self.truth(node.operand, a))
        if isinstance(a, Const):
            folded = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(node.op)]
            return Const(folded(a.value), a.ty)
        if isinstance(node.op, ast.UAdd):
            return a
        if isinstance(node.op, ast.Invert):
            if a.ty in FLOATS:
                raise self.fail(node, "there is no `~` of floats")
            return self.unary(node, "not", a)
        if a.ty in ("bool", "u32"):
            raise self.fail(node, f"there is no `-` of `{a.ty}`")
        negated = self.unary(node, "neg", a)
        negated.form = None if a.form is None else a.form.times(-1)
        return negated

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
        parts = [self.scalar(part) for part in [node.left, *node.comparators]]
        if len(parts) > 2:
            # In `a < b < c` the middle is computed once.
            parts[1:-1] = [self.once(p) if isinstance(p, Value) else p for p in parts[1:-1]]
        result: Optional[Scalar] = None
        for op, a, b in zip(node.ops, parts, parts[1:]):
            if type(op) not in _COMPARE:
                raise self.fail(node, "`is` and `in` have no place in programs: compare numbers with `==`, `<` and their kin")
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

        return Value(ty, self.emitting(node, emit), safe=False)

    def choose(self, node: ast.AST, condition: Value, yes: Value, no: Value) -> Value:
        """`select`: all three computed, in this order."""
        builder = self.builder

        def emit() -> int:
            c = condition.emit()
            a = yes.emit()
            return int(builder.select(c, a, no.emit()))

        return Value(yes.ty, self.emitting(node, emit), safe=condition.safe and yes.safe and no.safe)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Known:
        raise NotImplementedError

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
                return self.unary(node, functions.UNARY[function], values[0])
            name = functions.MATH.get(function) or functions.MATH2[function]
            return self.math(node, name, values)
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
        return Const(result.item() if isinstance(result, np.generic) else result)

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
        return Value(ty, result.emit, found.form if ty == "int" == found.ty else None, safe=found.safe)

    def pair(self, node: ast.Call) -> tuple[Value, Value]:
        a, b = self.arguments(node, 2)
        left, right = self.alike(node, a, b, ast.unparse(node.func))
        return left, right

    def call_absolute(self, node: ast.Call) -> Known:
        (a,) = self.arguments(node, 1)
        if isinstance(a, Const):
            return Const(abs(a.value), a.ty)
        if a.ty == "bool":
            raise self.fail(node, "there is no `abs` of bools")
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

            return Value(a.ty, self.emitting(node, emit), safe=a.safe and b.safe)

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
        return self.chosen(node, yes, no, lambda a, b: self.choose(node, truth, a, b))

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

            return Value(ty, self.emitting(node, emit), safe=number.safe)
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


_REFUSED: dict[type, str] = {
    ast.Lambda: "there are no lambdas in programs: write a function with `@ebbtide.func` before it",
    ast.ListComp: "there are no comprehensions: write a loop",
    ast.GeneratorExp: "there are no generators: write a loop",
    ast.DictComp: "there are no comprehensions: write a loop",
    ast.SetComp: "there are no comprehensions: write a loop",
    ast.List: "there are no lists in programs: a temporary array is `t = np.zeros(n)`",
    ast.Tuple: "there are no tuples of values in programs: name each value",
    ast.Dict: "there are no dictionaries in programs",
    ast.Set: "there are no sets in programs",
    ast.JoinedStr: "there is no text in programs",
    ast.NamedExpr: "write the assignment on a line of its own",
    ast.Await: "there is no `await` in programs",
    ast.Yield: "a program yields at a region: `with checkpoint(Stage.SOLVE, yield_on=flag):`",
    ast.Starred: "there is no `*` of values in programs",
    ast.Slice: "there are no slices: write a loop over the indices",
}
