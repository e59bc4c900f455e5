"""Names, elements and types: what an expression stands for, before anything is computed."""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional, Union

import numpy as np

from .. import language
from .._types import FLOATS, INTEGERS, NAMES
from .ranges import Bounds, Linear
from .source import Source
from .values import Array, Const, Gone, Local, LoopVariable, Named, Object, Retype, Scalar, Small, SmallLocal, Struct, Value

_LIMITS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "u32": (0, 2**32 - 1), "int": (-(2**63), 2**63 - 1)}


Known = Union[Const, Value, Array, Struct, Object, Small]


def imported_from(name: str) -> str:
    """What to write where a word of the language is missing, or one of another system stands in its place."""
    word = "par" if name == "prange" else name
    known = getattr(getattr(language, word, None), "__module__", None) == language.__name__
    return f": write `{word}`, with `from ebbtide import {word}`" if known else ""


class Names:
    """What expressions stand for, and in which type."""

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
        """The same computation, at a place of the source."""
        builder = self.builder
        file, line, column, _ = self.source.spot(node)

        def placed() -> int:
            builder.at(file, line, column)
            return work()

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
            if isinstance(base, Small):
                return self.small_attribute(node, base)
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
            raise self.fail(node, f"there is no `{node.id}` here{imported_from(node.id)}") from None

    assigned_names: set[str] = set()

    def binding(self, node: ast.expr, found: Any) -> Known:
        builder = self.builder
        if isinstance(found, (Array, Struct, Const, Object, Small)):
            return found
        if isinstance(found, SmallLocal):
            ids, read = found.ids, list[int]()

            def emit() -> list[int]:
                if not read:
                    read.extend(builder.get(id) for id in ids)
                return read

            return Small(found.shape, found.ty, emit, named=True, parameter=found.parameter)
        if isinstance(found, (Named, LoopVariable)):
            id = found.id
            return Value(found.ty, lambda: id, found.form, python=isinstance(found, Named) and found.python)
        if isinstance(found, Local):
            local = found.id
            weak = found if found.weak else None
            return Value(found.ty, self.emitting(node, lambda: builder.get(local)), weak=weak, python=found.python)
        if isinstance(found, Gone):
            if found.what == "loop variable":
                raise self.fail(
                    node,
                    f"`{ast.unparse(node)}` is the variable of the loop at line {found.line}, which has ended: keep what you need "
                    f"of it in a variable of its own",
                )
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
            hint = f"{found.name}[()]" if found.rank == 0 else f"{found.name}[{', '.join('ijklmn'[: found.rank])}]"
            raise self.fail(node, f"`{ast.unparse(node)}` is an array: write an element, `{hint}`, or a loop over them")
        if isinstance(found, Struct):
            raise self.fail(node, f"`{found.name}` is a dataclass: write one of its fields")
        if isinstance(found, Small):
            raise self.fail(node, f"`{ast.unparse(node)}` is a small vector or matrix where a number is wanted: write a component, `[0]`")
        raise self.fail(node, f"`{ast.unparse(node)}` is no number: programs know numbers, arrays and dataclasses of these")

    def value(self, node: ast.expr) -> Known:
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            what = _REFUSED.get(type(node), "this has no place in programs")
            raise self.fail(node, what)
        result: Known = method(node)
        return result

    def expr_Constant(self, node: ast.Constant) -> Known:
        found = self.host(node, node.value)
        if isinstance(found, Const):
            return found
        raise self.fail(node, "values of programs are numbers and bools")

    def expr_Name(self, node: ast.Name) -> Known:
        return self.named(node)

    def expr_Attribute(self, node: ast.Attribute) -> Known:
        return self.known(node)

    def expr_Call(self, node: ast.Call) -> Known:
        return self.call(node)

    def expr_Subscript(self, node: ast.Subscript) -> Known:
        base = self.known(node.value)
        if isinstance(base, Small):
            return self.component(node, base)
        if isinstance(base, Array):
            index = self.indices(node, base)
            if len(index) < base.rank:
                return self.element(node, base, index)
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
        if len(parts) != array.rank and not 0 < array.rank - len(parts) <= len(array.item):
            shown = ", ".join("ijklmn"[: array.rank]) or "()"
            hint = f"write `{array.name}[{shown}]`"
            if not parts:
                hint += ", or pass an array of rank 0, `np.zeros(())`"
            elif 0 < array.rank - len(parts) <= 2:
                small = "Vec3" if array.rank - len(parts) == 1 else "Mat3"
                hint += f"; if its rows are small vectors, annotate `{array.name}: Array{len(parts)}[{small}[{array.ty}]]`"
            raise self.fail(node, f"`{array.name}` has {array.rank} dimensions and is indexed with {len(parts)}: {hint}")
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
            python = ty == "f64" and const.ty is None
            return Value(ty, self.emitting(node, lambda: builder.float_literal(ty, number)), python=python)
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
        if (found.ty == "int" and (ty in FLOATS or ty == "i64")) or (found.python and ty in FLOATS):
            return self.cast(node, found, ty)
        if found.weak is not None and ty in INTEGERS:
            raise Retype(found.weak.key, ty)
        raise self.fail(node, f"{what} is `{ty}`, this is `{found.ty}`: convert it, `{ty}(...)`")

    def cast(self, node: ast.AST, found: Value, ty: str) -> Value:
        if found.ty == ty:
            return found
        builder, emit = self.builder, found.emit
        # An int of Python beside its floats is a float of Python's.
        python = ty == "f64" and found.ty == "int"
        return Value(ty, self.emitting(node, lambda: builder.cast(emit(), ty)), safe=found.safe, python=python)

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
        if a.ty == "int" and (b.ty in FLOATS or b.ty == "i64") or (a.python and b.ty in FLOATS):
            return self.cast(node, a, b.ty), b
        if b.ty == "int" and (a.ty in FLOATS or a.ty == "i64") or (b.python and a.ty in FLOATS):
            return a, self.cast(node, b, a.ty)
        for one, other in ((a, b), (b, a)):
            if one.weak is not None and one.ty in INTEGERS and other.ty in INTEGERS:
                raise Retype(one.weak.key, other.ty)
        raise self.fail(
            node,
            f"the left side of `{symbol}` is `{a.ty}`, the right side `{b.ty}`: nothing is converted by itself; convert one of "
            f"them, `{a.ty}(...)` or `{b.ty}(...)`",
        )

    def beside(self, node: ast.AST, value: Value, const: Const) -> tuple[Value, Value]:
        """A value, and a constant without a type beside it."""
        if isinstance(const.value, float) and value.ty in INTEGERS:
            if value.ty == "int":
                # An int of Python beside a float is a float.
                return self.cast(node, value, "f64"), self.literal(node, const, "f64")
        return value, self.literal(node, const, value.ty)

    # Of the classes that derive from this one.

    def element(self, node: ast.Subscript, array: Array, index: list[Value]) -> Small:
        raise NotImplementedError

    def component(self, node: ast.Subscript, small: Small) -> Known:
        raise NotImplementedError

    def small_attribute(self, node: ast.Attribute, small: Small) -> Known:
        raise NotImplementedError

    def call(self, node: ast.Call) -> Known:
        raise NotImplementedError

    def arithmetic(self, node: ast.AST, name: str, a: Value, b: Value, safe: bool = True) -> Value:
        raise NotImplementedError


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
