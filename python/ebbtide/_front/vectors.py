"""Small vectors and matrices: rows of arrays whose last extents are known, and what is computed from them.

Input: `x[i]` of an `Array1[Vec3[f64]]`, `np.array([a, b])`, arithmetic of these. Output: one value of the program for each
component, last dimension fastest. Invariant: what NumPy would make a view of is never copied silently: it is used at
once, or written `.copy()`.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .._types import FLOATS, element_type
from .names import Known
from .operators import Operators
from .values import Array, Const, Object, Small, Value

#: What has a small value, or takes one: the name of a method.
FUNCTIONS: dict[Any, str] = {
    np.array: "array", np.dot: "dot", np.vdot: "dot", np.matmul: "dot", np.cross: "cross", np.outer: "outer",
    np.linalg.norm: "norm", np.linalg.det: "det", np.linalg.inv: "inv", np.trace: "trace", np.eye: "eye",
    np.identity: "eye", np.sum: "sum", np.transpose: "transposed",
}  # fmt: skip


class Vectors(Operators):
    """Translates expressions of small values."""

    def function_of(self, node: ast.Call) -> Any:
        raise NotImplementedError

    # -- making them -------------------------------------------------------------------------------------------------

    def small(self, shape: tuple[int, ...], items: Sequence[Value], before: Sequence[Any] = ()) -> Small:
        """A small value; `before` is computed first."""
        made: list[int] = []

        def emit() -> list[int]:
            if not made:
                for each in before:
                    each.emit()
                made.extend(item.emit() for item in items)
            return made

        return Small(shape, items[0].ty, emit, all(item.safe for item in items), all(item.python for item in items))

    def items(self, small: Small) -> list[Value]:
        """Its components; the first that is asked for computes all of them, in order."""
        each = []
        for k in range(small.size):
            each.append(Value(small.ty, (lambda k: lambda: small.emit()[k])(k), safe=small.safe, python=small.python))
        return each

    def element(self, node: ast.Subscript, array: Array, index: list[Value]) -> Small:
        """`x[i]`, where the rest of the shape is known."""
        shape = array.item[len(array.item) - (array.rank - len(index)) :]
        builder, id = self.builder, array.id

        def emit() -> list[int]:
            at = [i.emit() for i in index]
            builder.at(*self.source.spot(node)[:3])
            return [builder.load(id, [*at, *place]) for place in self.places(shape)]

        kept = self.kept(emit)
        return Small(shape, array.ty, kept, safe=False, view=array)

    def kept(self, emit: Callable[[], list[int]]) -> Callable[[], list[int]]:
        made: list[int] = []

        def once() -> list[int]:
            if not made:
                made.extend(emit())
            return made

        return once

    def places(self, shape: tuple[int, ...]) -> list[list[int]]:
        """The indices of the components, as values, last dimension fastest."""
        places: list[list[int]] = [[]]
        for extent in shape:
            places = [[*place, self.builder.int_literal("int", k)] for place in places for k in range(extent)]
        return places

    # -- operators ---------------------------------------------------------------------------------------------------

    def expr_BinOp(self, node: ast.BinOp) -> Known:
        a, b = self.known(node.left), self.known(node.right)
        if isinstance(a, Small) or isinstance(b, Small):
            if isinstance(node.op, ast.MatMult):
                return self.product(node, self.as_small(node.left, a), self.as_small(node.right, b))
            return self.elementwise(node, type(node.op), self.numbers(node.left, a), self.numbers(node.right, b))
        return super().expr_BinOp(node)

    def numbers(self, node: ast.expr, found: Known) -> Any:
        return found if isinstance(found, Small) else self.scalar(node)

    def as_small(self, node: ast.expr, found: Known) -> Small:
        if not isinstance(found, Small):
            raise self.fail(node, f"`{ast.unparse(node)}` is no small vector or matrix")
        return found

    def elementwise(self, node: ast.AST, op: type, a: Any, b: Any) -> Small:
        if isinstance(a, Small) and isinstance(b, Small) and a.shape != b.shape:
            raise self.fail(node, f"shapes {a.shape} and {b.shape} differ: small values are combined component by component")
        shape = a.shape if isinstance(a, Small) else b.shape
        a, b = (self.once(x) if isinstance(x, Value) else x for x in (a, b))
        lefts = self.items(a) if isinstance(a, Small) else [a] * b.size
        rights = self.items(b) if isinstance(b, Small) else [b] * a.size
        results = [self.default(node, self.binary(node, op, x, y)) for x, y in zip(lefts, rights)]
        return self.small(shape, results, [x for x in (a, b) if not isinstance(x, Const)])

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Known:
        a = self.known(node.operand)
        if not isinstance(a, Small):
            return super().expr_UnaryOp(node)
        if isinstance(node.op, ast.UAdd):
            return dataclasses.replace(a, view=None)
        if not isinstance(node.op, ast.USub) or a.ty in ("bool", "u32"):
            raise self.fail(node, "small values have `+`, `-`, `*`, `/`, `**` and `@`")
        return self.small(a.shape, [self.unary(node, "neg", item) for item in self.items(a)], [a])

    def expr_IfExp(self, node: ast.IfExp) -> Known:
        condition = self.scalar(node.test)
        if isinstance(condition, Const):
            return self.known(node.body if condition.value else node.orelse)
        yes, no = self.known(node.body), self.known(node.orelse)
        if not isinstance(yes, Small) and not isinstance(no, Small):
            return super().expr_IfExp(node)
        yes, no = self.as_small(node.body, yes), self.as_small(node.orelse, no)
        if (yes.ty, yes.shape) != (no.ty, no.shape):
            raise self.fail(node, f"one choice has shape {yes.shape} and type `{yes.ty}`, the other {no.shape} and `{no.ty}`")
        builder, truth, ty = self.builder, self.truth(node.test, condition), yes.ty

        def emit() -> list[int]:
            slots = [builder.numbered_local("if", builder.int_literal(ty, 0)) for _ in range(yes.size)]
            builder.begin_if(truth.emit())
            for slot, id in zip(slots, yes.emit()):
                builder.set(slot, id)
            builder.begin_else()
            for slot, id in zip(slots, no.emit()):
                builder.set(slot, id)
            builder.end_if()
            return [builder.get(slot) for slot in slots]

        return Small(yes.shape, ty, self.kept(emit), safe=False, view=yes.view or no.view, named=yes.named or no.named)

    def product(self, node: ast.AST, a: Small, b: Small) -> Known:
        """`a @ b`; sums are taken in the order of components."""
        if a.ty != b.ty:
            raise self.fail(node, f"the left side of `@` is `{a.ty}`, the right side `{b.ty}`: convert one of them")
        inner = a.shape[-1]
        if inner != b.shape[0]:
            raise self.fail(node, f"shapes {a.shape} and {b.shape} have no product")
        rows = a.shape[0] if len(a.shape) == 2 else 1
        columns = b.shape[1] if len(b.shape) == 2 else 1
        left, right = self.items(a), self.items(b)
        sums = [
            self.sum_of_products(node, left[i * inner : (i + 1) * inner], right[j::columns])
            for i in range(rows)
            for j in range(columns)
        ]
        shape = (*a.shape[:-1], *b.shape[1:])
        if not shape:
            return sums[0]
        return self.small(shape, sums, [a, b])

    def sum_of_products(self, node: ast.AST, a: Sequence[Value], b: Sequence[Value]) -> Value:
        products = [self.once(self.arithmetic(node, "mul", x, y)) for x, y in zip(a, b)]
        return self.total(node, products)

    def total(self, node: ast.AST, items: Sequence[Value]) -> Value:
        """All added in order, each computed before the first sum."""
        builder = self.builder

        def emit() -> int:
            ids = [item.emit() for item in items]
            total = ids[0]
            for id in ids[1:]:
                total = builder.binary("add", total, id)
            return total

        return Value(items[0].ty, self.emitting(node, emit), safe=all(item.safe for item in items))

    # -- components --------------------------------------------------------------------------------------------------

    def component(self, node: ast.Subscript, small: Small) -> Known:
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        numbers = [self.scalar(part) for part in parts]
        places = []
        for k, number in enumerate(numbers):
            if not isinstance(number, Const) or isinstance(number.value, bool) or not isinstance(number.value, int):
                raise self.fail(node, "a component has a constant index; an element of an array, `x[i, k]`, may have any")
            extent = small.shape[k] if k < len(small.shape) else 0
            place = number.value + extent if number.value < 0 else number.value
            if not 0 <= place < extent:
                raise self.fail(node, f"a small value of shape {small.shape} has no component [{ast.unparse(node.slice)}]")
            places.append(place)
        rest = small.shape[len(places) :]
        size = int(np.prod(rest, dtype=int))
        first = 0
        for place, extent in zip(places, small.shape):
            first = first * extent + place
        items = self.items(small)[first * size : (first + 1) * size]
        return items[0] if not rest else self.small(rest, items, [small])

    def small_attribute(self, node: ast.Attribute, small: Small) -> Known:
        if node.attr == "T":
            return self.transpose(small)
        raise self.fail(node, f"small values have `T`, `copy()` and components in programs, no `{node.attr}`")

    def transpose(self, small: Small) -> Small:
        if len(small.shape) == 1:
            return small
        n, m = small.shape
        items = self.items(small)
        return self.small((m, n), [items[i * m + j] for j in range(m) for i in range(n)], [small])

    # -- functions ---------------------------------------------------------------------------------------------------

    def small_call(self, node: ast.Call, function: Any) -> Optional[Known]:
        """A function that has or takes a small value; `None` if this is none."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("copy", "dot") and function is None:
            found = self.known(node.func.value)
            if isinstance(found, Small):
                if node.func.attr == "dot":
                    return self.product(node, found, self.as_small(node.args[0], self.known(node.args[0])))
                return dataclasses.replace(found, view=None, named=False, parameter=False)
        try:
            name = FUNCTIONS.get(function)
        except TypeError:
            return None
        if name is None:
            return None
        if name in ("array", "eye"):
            result: Known = getattr(self, "small_" + name)(node)
            return result
        found_all = [self.known(argument) for argument in node.args]
        if not any(isinstance(found, Small) for found in found_all):
            return None
        count = 2 if name in ("dot", "cross", "outer") else 1
        if node.keywords or len(node.args) != count:
            raise self.fail(node, f"`{ast.unparse(node.func)}` takes {count} small value{'s' if count > 1 else ''} in programs")
        smalls = [self.as_small(argument, found) for argument, found in zip(node.args, found_all)]
        method: Callable[..., Known] = getattr(self, "small_" + name)
        return method(node, *smalls)

    def small_array(self, node: ast.Call) -> Small:
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        if len(node.args) != 1 or set(options) - {"dtype"} or not isinstance(node.args[0], (ast.List, ast.Tuple)):
            raise self.fail(node, "a small vector is `np.array([a, b])`, a matrix `np.array([[a, b], [c, d]])`")
        rows = node.args[0].elts
        nested = [row for row in rows if isinstance(row, (ast.List, ast.Tuple))]
        if nested and (len(nested) != len(rows) or len({len(row.elts) for row in nested}) != 1):
            raise self.fail(node, "the rows of a small matrix have one length")
        parts = [part for row in nested for part in row.elts] if nested else list(rows)
        shape = (len(rows), len(nested[0].elts)) if nested else (len(rows),)
        if not 1 <= len(parts) <= 16:
            raise self.fail(node, "a small value has one to sixteen components: for more, make a temporary, `t = np.zeros(n)`")
        found = [self.scalar(part) for part in parts]
        typed = {x.ty for x in found if x.ty is not None and not (isinstance(x, Value) and (x.python or x.ty == "int"))}
        if "dtype" in options:
            said = self.known(options["dtype"])
            ty = element_type(said.value) if isinstance(said, Object) else None
        else:
            whole = all(isinstance(x, Const) and isinstance(x.value, int) for x in found)
            ty = typed.pop() if len(typed) == 1 else None if typed else "i64" if whole else "f64"
        if ty is None:
            raise self.fail(node, "the components have several types: convert them to one, or say `dtype=np.float32`")
        values = [self.convert(part, x, ty, "the vector") for part, x in zip(parts, found)]
        return self.small(shape, [dataclasses.replace(v, python=False) for v in values])

    def small_eye(self, node: ast.Call) -> Small:
        size = self.scalar(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        if not isinstance(size, Const) or not isinstance(size.value, int) or not 1 <= size.value <= 4:
            raise self.fail(node, "`np.eye(n)` has a constant size from 1 to 4 in programs")
        n = size.value
        return self.filled(node, (n, n), [1.0 if i == j else 0.0 for i in range(n) for j in range(n)], "f64")

    def filled(self, node: ast.AST, shape: tuple[int, ...], numbers: Sequence[float], ty: str) -> Small:
        return self.small(shape, [self.literal(node, Const(number, ty), ty) for number in numbers])

    def small_dot(self, node: ast.Call, a: Small, b: Small) -> Known:
        return self.product(node, a, b)

    def small_sum(self, node: ast.Call, a: Small) -> Value:
        return self.total(node, self.items(a))

    def small_norm(self, node: ast.Call, a: Small) -> Value:
        if a.ty not in FLOATS:
            raise self.fail(node, "a norm is taken of floats")
        items = self.items(a)
        return self.unary(node, "norm", self.sum_of_products(node, items, items))

    def small_cross(self, node: ast.Call, a: Small, b: Small) -> Small:
        if a.shape != (3,) or b.shape != (3,):
            raise self.fail(node, "`np.cross` takes vectors of three components in programs")
        x, y = self.items(a), self.items(b)

        def difference(i: int, j: int) -> Value:
            return self.minor(node, x[i], y[j], x[j], y[i])

        return self.small((3,), [difference(1, 2), difference(2, 0), difference(0, 1)], [a, b])

    def minor(self, node: ast.AST, a: Value, d: Value, b: Value, c: Value) -> Value:
        return self.arithmetic(node, "sub", self.arithmetic(node, "mul", a, d), self.arithmetic(node, "mul", b, c))

    def small_outer(self, node: ast.Call, a: Small, b: Small) -> Small:
        if len(a.shape) != 1 or len(b.shape) != 1:
            raise self.fail(node, "`np.outer` takes two vectors")
        products = [self.arithmetic(node, "mul", x, y) for x in self.items(a) for y in self.items(b)]
        return self.small((a.size, b.size), products, [a, b])

    def square(self, node: ast.AST, a: Small, most: int = 4) -> int:
        if len(a.shape) != 2 or a.shape[0] != a.shape[1] or a.shape[0] > most:
            raise self.fail(node, f"this takes a square matrix of at most {most} rows")
        return a.shape[0]

    def small_trace(self, node: ast.Call, a: Small) -> Value:
        n, items = self.square(node, a), self.items(a)
        return self.total(node, [items[k * n + k] for k in range(n)])

    def small_transposed(self, node: ast.Call, a: Small) -> Small:
        return self.transpose(a)

    def small_det(self, node: ast.Call, a: Small) -> Value:
        n, m = self.square(node, a, 3), self.items(a)
        if n == 1:
            return m[0]
        if n == 2:
            return self.minor(node, m[0], m[3], m[1], m[2])
        return self.sum_of_products(node, m[:3], [self.cofactor(node, m, 0, j) for j in range(3)])

    def cofactor(self, node: ast.AST, m: list[Value], i: int, j: int) -> Value:
        p, q, r, s = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return self.minor(node, m[3 * p + r], m[3 * q + s], m[3 * p + s], m[3 * q + r])

    def small_inv(self, node: ast.Call, a: Small) -> Small:
        n, m = self.square(node, a, 3), self.items(a)
        if a.ty not in FLOATS:
            raise self.fail(node, "an inverse is taken of floats")
        scale = self.once(self.arithmetic(node, "div", self.literal(node, Const(1.0, a.ty), a.ty), self.small_det(node, a)))
        if n == 2:
            adjugate = [m[3], self.unary(node, "neg", m[1]), self.unary(node, "neg", m[2]), m[0]]
        elif n == 3:
            adjugate = [self.cofactor(node, m, j, i) for i in range(3) for j in range(3)]
        else:
            adjugate = [self.literal(node, Const(1.0, a.ty), a.ty)]
        return self.small(a.shape, [self.arithmetic(node, "mul", x, scale) for x in adjugate], [a, scale])
