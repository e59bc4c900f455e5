"""Statements: assignments, branches, loops, regions."""

from __future__ import annotations

import ast
import enum
from typing import Any, Optional, Sequence

import numpy as np

from .. import language
from .._types import FLOATS, INTEGERS
from .expressions import _BINARY, Expressions
from .ranges import Linear
from .values import Array, Const, Gone, Local, LoopVariable, Named, Object, Struct, Value


def assigned_in(statements: Sequence[ast.stmt]) -> dict[str, int]:
    """How often names are assigned, in blocks within too; `x += 1` counts twice, as it needs a variable."""
    counts: dict[str, int] = {}

    def target(node: ast.expr, weight: int) -> None:
        if isinstance(node, ast.Name):
            counts[node.id] = counts.get(node.id, 0) + weight
        elif isinstance(node, (ast.Tuple, ast.List)):
            for element in node.elts:
                target(element, weight)

    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                for t in node.targets:
                    target(t, 1)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                target(node.target, 1)
            elif isinstance(node, ast.AugAssign):
                target(node.target, 2)
    return counts


def surely_assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that are assigned whatever happens."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            names |= surely_assigned(statement.body) & surely_assigned(statement.orelse)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            names |= set(assigned_in([statement]))
    return names


def read_after(statements: Sequence[ast.stmt], line: int) -> set[str]:
    """Names that are read in lines after this one."""
    found = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.lineno > line:
                found.add(node.id)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.lineno > line:
                found.add(node.target.id)
    return found


class Statements(Expressions):
    """Translates statements."""

    facts: dict[Any, str]
    parallel: bool
    func: bool
    path: tuple[Any, ...]
    STATEMENTS = (
        language.swap, language.fill, language.copy, language.min_assign, language.max_assign, language.scatter_unique,
        language.matmul, language.scan, language.compact, language.checkpoint,
    )  # fmt: skip

    # Of the translator.
    def call_source(self, node: ast.Call, callee: Any, func: bool) -> Optional[Any]:
        raise NotImplementedError

    def unknown_function(self, node: ast.Call, function: Any) -> Exception:
        raise NotImplementedError

    def temporary_type(self, node: ast.AST, argument: Optional[ast.expr]) -> str:
        raise NotImplementedError

    # -- blocks ------------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt], whole: Sequence[ast.stmt]) -> None:
        """The statements of a block; `whole` is the body of the function."""
        counts = assigned_in(statements)
        for statement in statements:
            if isinstance(statement, ast.If):
                self.hoist(statement, whole)
            method = getattr(self, "stmt_" + type(statement).__name__, None)
            if method is None:
                raise self.fail(statement, _REFUSED.get(type(statement), "this statement has no place in programs"))
            method(statement, counts, whole)

    def inner(self, statements: Sequence[ast.stmt], whole: Sequence[ast.stmt], what: ast.stmt) -> None:
        """A block within: what is assigned there is known there alone."""
        scope: dict[str, Any] = {}
        self.scopes.append(scope)
        bounds = self.bounds.copy()
        self.block(statements, whole)
        self.bounds = bounds
        self.scopes.pop()
        words = {ast.If: "`if`", ast.For: "`for`", ast.While: "`while`"}.get(type(what), "`with`")
        for name in scope:
            if self.find(name) is None:
                self.scopes[-1][name] = Gone(self.source.spot(what)[1], words)

    def hoist(self, statement: ast.If, whole: Sequence[ast.stmt]) -> None:
        """What both arms assign and later lines read is a variable that begins before them."""
        both = surely_assigned(statement.body) & surely_assigned(statement.orelse)
        used = both & read_after(whole, statement.end_lineno or statement.lineno)
        for name in sorted(used):
            if isinstance(self.find(name), (type(None), Gone)):
                key = (*self.path, statement.lineno, statement.col_offset, name)
                ty = self.facts.get(key, "f64")
                self.at(statement)
                zero = self.builder.int_literal(ty, 0)
                self.scopes[-1][name] = Local(self.builder.local(name, zero), ty, statement.lineno, key, weak=True)

    # -- assignments -------------------------------------------------------------------------------------------------

    def stmt_Pass(self, statement: ast.Pass, counts: Any, whole: Any) -> None:
        pass

    def stmt_Assign(self, statement: ast.Assign, counts: dict[str, int], whole: Any) -> None:
        if len(statement.targets) > 1:
            raise self.fail(statement, "write one assignment for each name")
        self.assign(statement, statement.targets[0], statement.value, counts)

    def stmt_AnnAssign(self, statement: ast.AnnAssign, counts: dict[str, int], whole: Any) -> None:
        if statement.value is None:
            raise self.fail(statement, "a variable needs a first value")
        annotation = self.known(statement.annotation)
        from .._types import ScalarType, kind_of_annotation

        kind = kind_of_annotation(annotation.value) if isinstance(annotation, Object) else None
        ty = kind.ty if isinstance(kind, ScalarType) else None
        self.assign(statement, statement.target, statement.value, counts, ty)

    def assign(
        self, statement: ast.stmt, target: ast.expr, value: ast.expr, counts: dict[str, int], ty: Optional[str] = None
    ) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self.assign_many(statement, target, value, counts)
        elif isinstance(target, ast.Subscript):
            self.assign_element(statement, target, value)
        elif isinstance(target, ast.Name):
            if self.temporary(statement, target, value):
                return
            found = self.known(value)
            if isinstance(found, (Array, Struct)):
                raise self.fail(statement, f"an array has one name in programs: use `{ast.unparse(value)}` itself, or `copy` it")
            if isinstance(found, Object):
                raise self.fail(value, f"`{ast.unparse(value)}` is no number")
            if ty is not None:
                found = self.convert(value, found, ty, f"`{target.id}`")
            self.bind(statement, target, found, counts)
        elif isinstance(target, ast.Attribute):
            raise self.fail(statement, "fields of dataclasses are constant in programs: write to an array of rank 0")
        else:
            raise self.fail(statement, "only a name or an element of an array can be assigned to")

    def assign_many(self, statement: ast.stmt, target: Any, value: ast.expr, counts: dict[str, int]) -> None:
        names = target.elts
        if isinstance(value, ast.Attribute) and value.attr == "shape":
            array = self.known(value.value)
            if isinstance(array, Array):
                if len(names) != array.rank:
                    raise self.fail(statement, f"`{array.name}` has {array.rank} dimensions, here are {len(names)} names")
                for k, name in enumerate(names):
                    if not isinstance(name, ast.Name):
                        raise self.fail(name, "write a name")
                    self.bind(statement, name, self.dim(value, array, k), counts)
                return
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(names):
            raise self.fail(statement, "write one value for each name")
        if any(isinstance(self.known_quietly(v), (Array, Struct)) for v in value.elts):
            raise self.fail(statement, "names of arrays cannot be exchanged: `swap(u, v)` exchanges the arrays, for the caller too")
        # All values are computed before the first name changes.
        found = []
        for v in value.elts:
            scalar = self.scalar(v)
            if isinstance(scalar, Value):
                id, kept = scalar.emit(), scalar
                scalar = Value(kept.ty, (lambda id: lambda: id)(id), kept.form, kept.safe, kept.weak)
            found.append(scalar)
        for name, scalar in zip(names, found):
            if isinstance(name, ast.Name):
                self.bind(statement, name, scalar, counts)
            else:
                raise self.fail(name, "here only names can be assigned: write one assignment for each element")

    def known_quietly(self, node: ast.expr) -> Any:
        return self.find(node.id) if isinstance(node, ast.Name) else None

    def bind(self, statement: ast.stmt, target: ast.Name, found: Any, counts: dict[str, int]) -> None:
        name = target.id
        bound = self.find(name)
        builder = self.builder
        if isinstance(bound, LoopVariable):
            raise self.fail(statement, f"`{name}` is the variable of a loop: use another name")
        if isinstance(bound, (Array, Struct)):
            raise self.fail(statement, f"`{name}` is an array or a dataclass: use another name")
        if isinstance(bound, Local):
            if bound.weak and isinstance(found, Value) and found.ty != bound.ty and not (bound.ty in FLOATS and found.ty == "int"):
                from .values import Retype

                raise Retype(bound.key, found.ty)
            if bound.weak and isinstance(found, Const) and isinstance(found.value, float) and bound.ty == "int":
                from .values import Retype

                raise Retype(bound.key, "f64")
            value = self.convert(statement, found, bound.ty, f"`{name}` (since line {self.line(bound)})")
            id = value.emit()
            self.at(statement)
            builder.set(bound.id, id)
            return
        if counts.get(name, 0) <= 1 and not isinstance(bound, Named):
            if isinstance(found, Const):
                # A constant stays one, and takes the type of what it meets.
                self.scopes[-1][name] = found
                return
            id = found.emit()
            builder.name(id, name)
            self.scopes[-1][name] = Named(id, found.ty, found.form)
            return
        key = (*self.path, target.lineno, target.col_offset, name)
        weak = (isinstance(found, Const) and found.ty is None) or (isinstance(found, Value) and found.weak is not None)
        value = self.default(statement, found)
        if weak and key in self.facts and self.facts[key] != value.ty:
            ty = self.facts[key]
            value = self.literal(statement, found, ty) if isinstance(found, Const) else self.convert(statement, found, ty, f"`{name}`")
        id = value.emit()
        self.at(statement)
        self.scopes[-1][name] = Local(builder.local(name, id), value.ty, target.lineno, key, weak)

    def line(self, local: Local) -> int:
        return local.line + self.source.first - 1

    def temporary(self, statement: ast.stmt, target: ast.Name, value: ast.expr) -> bool:
        """`t = np.zeros((n, m))` and its kin."""
        if not isinstance(value, ast.Call):
            return False
        found = self.known(value.func) if isinstance(value.func, (ast.Name, ast.Attribute)) else None
        function = found.value if isinstance(found, Object) else None
        if function not in (np.zeros, np.empty, np.zeros_like, np.empty_like, np.ones, np.full):
            return False
        if function in (np.ones, np.full):
            raise self.fail(value, "a temporary begins with zeros: write `t = np.zeros(n)`, then `fill(t, x)`")
        if self.parallel or self.func:
            raise self.fail(value, "a temporary array belongs to the program, not to an iteration: make it before the parallel loop")
        if self.find(target.id) is not None and not isinstance(self.find(target.id), Gone):
            raise self.fail(statement, f"`{target.id}` exists already: use another name")
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        if set(options) - {"dtype", "shape"}:
            raise self.fail(value, "a temporary has a shape and a `dtype`")
        name = target.id
        if function in (np.zeros_like, np.empty_like):
            model = self.known(value.args[0]) if value.args else None
            if not isinstance(model, Array):
                raise self.fail(value, "`zeros_like` takes an array")
            ty = self.temporary_type(value, options["dtype"]) if "dtype" in options else model.ty
            extents = [self.dim(value, model, k) for k in range(model.rank)]
        else:
            positional = list(value.args)
            shape = options.get("shape") or (positional.pop(0) if positional else None)
            dtype = options.get("dtype") or (positional.pop(0) if positional else None)
            if shape is None or positional:
                raise self.fail(value, "a temporary has a shape and a `dtype`: `np.zeros((n, m), dtype=np.float32)`")
            ty = self.temporary_type(value, dtype)
            extents = self.extents(shape)
        if len(extents) > 4:
            raise self.fail(value, "arrays of programs have at most 4 dimensions")
        ids = [extent.emit() for extent in extents]
        self.at(statement)
        array = Array(self.builder.temp(name, ty, ids), ty, len(ids), name)
        for k, extent in enumerate(extents):
            low = self.bounds.lower(extent.form)
            self.bounds.low[("dim", array.id, k)] = max(low or 0, 0)
        self.scopes[-1][name] = array
        return True

    def extents(self, shape: ast.expr) -> list[Value]:
        if isinstance(shape, (ast.Tuple, ast.List)):
            return [self.index(extent) for extent in shape.elts]
        found = self.known(shape)
        if isinstance(found, Object) and isinstance(found.value, tuple) and len(found.value) == 2 and isinstance(found.value[0], Array):
            array = found.value[0]
            return [self.dim(shape, array, k) for k in range(array.rank)]
        return [self.index(shape)]

    def assign_element(self, statement: ast.stmt, target: ast.Subscript, value: ast.expr) -> None:
        array = self.written_array(target.value)
        if isinstance(target.slice, (ast.Slice, ast.Constant)) and (
            isinstance(target.slice, ast.Slice) and not (target.slice.lower or target.slice.upper or target.slice.step)
            or isinstance(target.slice, ast.Constant) and target.slice.value is ...
        ):
            # `u[:] = x`, `u[...] = v`
            self.program_level(statement, "an assignment to a whole array")
            found = self.known(value)
            if isinstance(found, Array):
                self.same_type(statement, found, array)
                self.at(statement)
                self.builder.copy(found.id, array.id)
            else:
                scalar = self.convert(value, self.scalar(value), array.ty, f"`{array.name}`")
                id = scalar.emit()
                self.at(statement)
                self.builder.fill(array.id, id)
            return
        index = self.indices(target, array)
        converted = self.convert(value, self.scalar(value), array.ty, f"`{array.name}`")
        ids = [i.emit() for i in index]
        id = converted.emit()
        self.at(target)
        self.builder.store(array.id, ids, id)

    def written_array(self, node: ast.expr) -> Array:
        array = self.known(node)
        if not isinstance(array, Array):
            raise self.fail(node, f"`{ast.unparse(node)}` is no array")
        if self.func:
            raise self.fail(node, "an `@ebbtide.func` computes one value and writes no array: make it a program, or write in the caller")
        array.write()
        return array

    def same_type(self, node: ast.AST, a: Array, b: Array) -> None:
        if (a.ty, a.rank) != (b.ty, b.rank):
            raise self.fail(
                node, f"`{a.name}` has {a.rank} dimensions of `{a.ty}`, `{b.name}` {b.rank} of `{b.ty}`: they must be alike"
            )

    def stmt_AugAssign(self, statement: ast.AugAssign, counts: Any, whole: Any) -> None:
        builder = self.builder
        if isinstance(statement.target, ast.Subscript):
            array = self.written_array(statement.target.value)
            index = self.indices(statement.target, array)
            right = self.scalar(statement.value)
            if isinstance(statement.op, ast.Add):
                if array.ty == "bool":
                    raise self.fail(statement, "there is no `+` of bools")
                value = self.convert(statement.value, right, array.ty, f"`{array.name}`")
                ids = [i.emit() for i in index]
                id = value.emit()
                self.at(statement.target)
                builder.update("add", array.id, ids, id)
                return
            ids = [i.emit() for i in index]
            old = Value(array.ty, self.emitting(statement.target, lambda: builder.load(array.id, ids)), safe=False)
            self.check_augmented(statement, array.ty, right)
            new = self.binary(statement, type(statement.op), old, self.first(statement, right, array.ty))
            result = self.convert(statement, new, array.ty, f"`{array.name}`").emit()
            self.at(statement.target)
            builder.store(array.id, ids, result)
            return
        if not isinstance(statement.target, ast.Name):
            raise self.fail(statement, "only a name or an element of an array can be assigned to")
        bound = self.find(statement.target.id)
        if not isinstance(bound, Local):
            if isinstance(bound, LoopVariable):
                raise self.fail(statement, f"`{statement.target.id}` is the variable of a loop: use another name")
            if isinstance(bound, Array):
                raise self.fail(statement, f"`{bound.name}` is an array: write a loop over its elements")
            raise self.fail(statement, f"`{statement.target.id}` is read before it is assigned: assign it before, in the same block or around it")
        old_value = self.binding(statement.target, bound)
        right = self.first(statement, self.scalar(statement.value), bound.ty)
        new = self.binary(statement, type(statement.op), old_value, right)  # type: ignore[arg-type]
        result = self.convert(statement, new, bound.ty, f"`{statement.target.id}` (since line {self.line(bound)})").emit()
        self.at(statement)
        builder.set(bound.id, result)

    def check_augmented(self, statement: ast.AugAssign, ty: str, right: Any) -> None:
        symbol = _BINARY[type(statement.op)][1] if type(statement.op) in _BINARY else "@"
        if isinstance(right, Value) and right.ty != ty and not (right.ty == "int" and ty in (*FLOATS, "i64")):
            raise self.fail(statement, f"the element is `{ty}`, the right side of `{symbol}=` is `{right.ty}`: convert it, `{ty}(...)`")

    def first(self, statement: ast.AugAssign, found: Any, ty: str) -> Any:
        """The right side of `x op= y` is computed before `x` is read."""
        if isinstance(found, Const):
            fits = ty in FLOATS or (isinstance(found.value, int) and ty in INTEGERS)
            if isinstance(statement.op, ast.Pow) or not fits or isinstance(found.value, bool) or found.ty not in (None, ty):
                return found
            found = self.literal(statement.value, found, ty)
        elif found.adapt is not None:
            found = found.adapt(ty) or found
        id = found.emit()
        return Value(found.ty, lambda: id, found.form, found.safe, found.weak)

    # -- statements that are calls -----------------------------------------------------------------------------------

    def stmt_Expr(self, statement: ast.Expr, counts: Any, whole: Any) -> None:
        from ..program import Program

        node = statement.value
        if isinstance(node, ast.Constant) and (isinstance(node.value, str) or node.value is ...):
            return
        if not isinstance(node, ast.Call):
            raise self.fail(statement, "this computes a value that nothing uses: assign it")
        found = self.known(node.func)
        function = found.value if isinstance(found, Object) else None
        if isinstance(function, Program):
            self.program_level(statement, f"a call of the program `{function.name}`")
            self.call_source(node, function, func=False)
            return
        word = getattr(self, "word_" + getattr(function, "__name__", "?"), None)
        if word is not None and any(function is known for known in self.STATEMENTS):
            if node.keywords:
                raise self.fail(node, f"`{ast.unparse(node.func)}` takes its arguments without names")
            word(node)
            return
        if function is print:
            raise self.fail(node, "there is no `print` in programs: write to an array and print that")
        raise self.unknown_function(node, function)

    def program_level(self, node: ast.AST, what: str) -> None:
        if self.func:
            raise self.fail(node, f"{what} has no place in an `@ebbtide.func`, which computes one value")
        if self.parallel:
            raise self.fail(node, f"{what} has no place inside a parallel loop: write it before or after")

    def array_arguments(self, node: ast.Call, count: int) -> list[Array]:
        name = ast.unparse(node.func)
        self.program_level(node, f"`{name}`")
        if len(node.args) != count:
            raise self.fail(node, f"`{name}` takes {count} arrays")
        found = [self.known(argument) for argument in node.args]
        for argument, array in zip(node.args, found):
            if not isinstance(array, Array):
                raise self.fail(argument, f"`{name}` takes arrays, `{ast.unparse(argument)}` is none")
        return [array for array in found if isinstance(array, Array)]

    def word_swap(self, node: ast.Call) -> None:
        a, b = self.array_arguments(node, 2)
        self.same_type(node, a, b)
        a.write()
        b.write()
        self.at(node)
        self.builder.swap(a.id, b.id)

    def word_copy(self, node: ast.Call) -> None:
        source, target = self.array_arguments(node, 2)
        self.same_type(node, source, target)
        target.write()
        self.at(node)
        self.builder.copy(source.id, target.id)

    def word_fill(self, node: ast.Call) -> None:
        self.program_level(node, "`fill`")
        if len(node.args) != 2:
            raise self.fail(node, "`fill` takes an array and a number")
        array = self.written_array(node.args[0])
        value = self.convert(node.args[1], self.scalar(node.args[1]), array.ty, f"`{array.name}`").emit()
        self.at(node)
        self.builder.fill(array.id, value)

    def element_call(self, node: ast.Call) -> tuple[Array, list[int], int]:
        name = ast.unparse(node.func)
        if len(node.args) != 3:
            raise self.fail(node, f"`{name}` takes an array, an index and a value: `{name}(a, (i, j), x)`")
        array = self.written_array(node.args[0])
        subscript = ast.Subscript(value=node.args[0], slice=node.args[1], ctx=ast.Load())
        index = self.indices(ast.copy_location(subscript, node), array)
        value = self.convert(node.args[2], self.scalar(node.args[2]), array.ty, f"`{array.name}`")
        ids = [i.emit() for i in index]
        id = value.emit()
        self.at(node)
        return array, ids, id

    def word_min_assign(self, node: ast.Call) -> None:
        array, index, value = self.element_call(node)
        self.builder.update("min", array.id, index, value)

    def word_max_assign(self, node: ast.Call) -> None:
        array, index, value = self.element_call(node)
        self.builder.update("max", array.id, index, value)

    def word_scatter_unique(self, node: ast.Call) -> None:
        array, index, value = self.element_call(node)
        self.builder.store_unique(array.id, index, value)

    def word_matmul(self, node: ast.Call) -> None:
        a, b, c = self.array_arguments(node, 3)
        c.write()
        self.at(node)
        self.builder.matmul(a.id, b.id, c.id)

    def word_scan(self, node: ast.Call) -> None:
        x, out = self.array_arguments(node, 2)
        out.write()
        self.at(node)
        self.builder.scan(x.id, out.id)

    def word_compact(self, node: ast.Call) -> None:
        flags, out, count = self.array_arguments(node, 3)
        out.write()
        count.write()
        self.at(node)
        self.builder.compact(flags.id, out.id, count.id)

    def word_checkpoint(self, node: ast.Call) -> None:
        raise self.fail(node, "write `with checkpoint(Stage.SOLVE, yield_on=flag):` before a block")

    # -- branches and loops ------------------------------------------------------------------------------------------

    def stmt_If(self, statement: ast.If, counts: Any, whole: Sequence[ast.stmt]) -> None:
        if any(isinstance(s, ast.Break) for s in statement.body):
            raise self.fail(statement, "`if …: break` may be the last statement of a loop, and of nothing else")
        condition = self.scalar(statement.test)
        if isinstance(condition, Const):
            # Known now: only one arm is part of the program.
            self.block(statement.body if condition.value else statement.orelse, whole)
            return
        truth = self.truth(statement.test, condition).emit()
        self.at(statement.test)
        self.builder.begin_if(truth)
        self.inner(statement.body, whole, statement)
        if statement.orelse:
            self.builder.begin_else()
            self.inner(statement.orelse, whole, statement)
        self.at(statement)
        self.builder.end_if()

    def closing_break(self, body: Sequence[ast.stmt]) -> tuple[Sequence[ast.stmt], Optional[ast.expr]]:
        """The body without a last `if …: break`, and its condition."""
        last = body[-1]
        if isinstance(last, ast.If) and len(last.body) == 1 and isinstance(last.body[0], ast.Break) and not last.orelse:
            return body[:-1], last.test
        return body, None

    def loop_body(self, statement: Any, whole: Sequence[ast.stmt], scope: dict[str, Any]) -> None:
        """The body of a sequential loop and its end."""
        if statement.orelse:
            raise self.fail(statement, "a loop has no `else` in programs")
        body, until = self.closing_break(statement.body)
        self.scopes.append(scope)
        self.block(body, whole)
        condition = None
        if until is not None:
            condition = self.truth(until, self.scalar(until)).emit()
        self.scopes.pop()
        word = "`for`" if isinstance(statement, ast.For) else "`while`"
        for name in scope:
            if self.find(name) is None:
                self.scopes[-1][name] = Gone(self.source.spot(statement)[1], word)
        self.at(statement)
        self.builder.end_loop(condition)

    def stmt_While(self, statement: ast.While, counts: Any, whole: Sequence[ast.stmt]) -> None:
        bounds = self.bounds.copy()
        test = statement.test
        if isinstance(test, ast.Constant) and test.value:
            if self.closing_break(statement.body)[1] is None:
                raise self.fail(statement, "`while True` ends with `if …: break` as its last statement")
            self.at(statement)
            self.builder.begin_loop()
        else:
            self.at(statement)
            self.builder.begin_while()
            condition = self.truth(test, self.scalar(test)).emit()
            self.at(test)
            self.builder.while_condition(condition)
        self.loop_body(statement, whole, {})
        self.bounds = bounds

    def stmt_For(self, statement: ast.For, counts: Any, whole: Sequence[ast.stmt]) -> None:
        head = statement.iter
        function: Any = None
        if isinstance(head, ast.Call):
            found = self.known(head.func)
            function = found.value if isinstance(found, Object) else None
        if function is language.par:
            self.par(statement, head, whole)  # type: ignore[arg-type]
            return
        if function is language.scheduled:
            assert isinstance(head, ast.Call)
            head = self.schedule(head)
            function = range
        if function is not range or not isinstance(head, ast.Call):
            raise self.fail(statement.iter, "a loop runs over `range(...)` or `par(...)`")
        start, stop = self.range(head)
        if not isinstance(statement.target, ast.Name):
            raise self.fail(statement.target, "a loop over `range` has one variable")
        name = statement.target.id
        self.check_loop_variable(statement, name)
        ids = start.emit(), stop.emit()
        self.at(statement)
        variable = self.builder.begin_for(name, *ids)
        bounds = self.bounds.copy()
        atom = ("loop", variable)
        self.bounds.enter_loop(atom, start.form, stop.form)
        self.loop_body(statement, whole, {name: LoopVariable(variable, Linear.atom(atom))})
        self.bounds = bounds

    def check_loop_variable(self, statement: ast.For, name: str) -> None:
        bound = self.find(name)
        if isinstance(bound, (Local, Named, Array, Struct, LoopVariable)):
            raise self.fail(statement.target, f"`{name}` has a meaning here already, and a loop would change it: use another name")

    def schedule(self, head: ast.Call) -> ast.Call:
        if len(head.args) != 1 or len(head.keywords) != 1 or not isinstance(head.args[0], ast.Call):
            raise self.fail(head, "write `scheduled(range(n), revolve=10)`")
        how = head.keywords[0]
        number = self.scalar(how.value)
        if how.arg not in ("store_all", "periodic", "revolve", "online", "mixed") or not isinstance(number, Const):
            raise self.fail(head, "a loop is reversed by `store_all=True`, `periodic=32`, `revolve=10`, `online=10` or `mixed=10`")
        self.at(head)
        self.builder.reverse(how.arg, int(number.value))
        return head.args[0]

    def range(self, node: ast.Call) -> tuple[Value, Value]:
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise self.fail(node, "write `range(n)` or `range(start, stop)`")
        if len(node.args) == 3:
            step = self.scalar(node.args[2])
            if not isinstance(step, Const) or step.value != 1:
                raise self.fail(node, "loops go up by one: write `for k in range(n): i = start + step * k`")
        if len(node.args) == 1:
            return self.literal(node, Const(0), "int"), self.index(node.args[0])
        return self.index(node.args[0]), self.index(node.args[1])

    def par(self, statement: ast.For, head: ast.Call, whole: Sequence[ast.stmt]) -> None:
        if self.func:
            raise self.fail(statement, "an `@ebbtide.func` has no parallel loops: write a program")
        if self.parallel:
            raise self.fail(statement, "a parallel loop cannot stand inside another: write `for i, j in par(n, m)`, or make this one sequential")
        if statement.orelse:
            raise self.fail(statement, "a loop has no `else` in programs")
        relaxed = False
        for keyword in head.keywords:
            found = self.scalar(keyword.value)
            if keyword.arg != "relaxed" or not isinstance(found, Const):
                raise self.fail(head, "`par` takes one to four ranges and `relaxed=True`")
            relaxed = bool(found.value)
        if not 1 <= len(head.args) <= 4:
            raise self.fail(head, "`par` takes one to four ranges")
        target = statement.target
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(names) != len(head.args):
            raise self.fail(target, f"`par` has {len(head.args)} ranges and the loop {len(names)} variables: write one variable for each range")
        ranges = []
        for argument in head.args:
            if isinstance(argument, ast.Call):
                found = self.known(argument.func)
                if isinstance(found, Object) and found.value is range:
                    ranges.append(self.range(argument))
                    continue
            ranges.append((self.literal(argument, Const(0), "int"), self.index(argument)))
        words = []
        for name in names:
            if not isinstance(name, ast.Name):
                raise self.fail(name, "write a name")
            self.check_loop_variable(statement, name.id)
            words.append(name.id)
        if relaxed:
            self.builder.relaxed()
        emitted = [(word, start.emit(), stop.emit()) for word, (start, stop) in zip(words, ranges)]
        self.at(statement)
        variables = self.builder.begin_par(emitted)
        bounds = self.bounds.copy()
        scope: dict[str, Any] = {}
        for word, variable, (start, stop) in zip(words, variables, ranges):
            atom = ("loop", variable)
            self.bounds.enter_loop(atom, start.form, stop.form)
            scope[word] = LoopVariable(variable, Linear.atom(atom))
        if self.closing_break(statement.body)[1] is not None:
            raise self.fail(statement.body[-1], "a parallel loop has no `break`: its iterations run at once")
        self.parallel = True
        self.scopes.append(scope)
        self.block(statement.body, whole)
        self.scopes.pop()
        self.parallel = False
        for name in scope:
            if self.find(name) is None:
                self.scopes[-1][name] = Gone(self.source.spot(statement)[1], "`for`")
        self.bounds = bounds
        self.at(statement)
        self.builder.end_par()

    def stmt_With(self, statement: ast.With, counts: Any, whole: Sequence[ast.stmt]) -> None:
        item = statement.items[0]
        call = item.context_expr
        found = self.known(call.func) if isinstance(call, ast.Call) else None
        if len(statement.items) != 1 or item.optional_vars or not isinstance(call, ast.Call) or not isinstance(found, Object) or found.value is not language.checkpoint:
            raise self.fail(statement, "`with` stands before a region alone: `with checkpoint(Stage.SOLVE, yield_on=flag):`")
        self.program_level(statement, "a region")
        if len(call.args) != 1:
            raise self.fail(call, "a region has one label: `checkpoint(Stage.SOLVE)`")
        label = self.known(call.args[0])
        if not isinstance(label, Object) or not isinstance(label.value, enum.Enum):
            raise self.fail(call.args[0], "a label is a member of an `enum.Enum`")
        flag: Optional[int] = None
        undo: Optional[list[int]] = None
        for keyword in call.keywords:
            if keyword.arg == "yield_on":
                array = self.known(keyword.value)
                if not isinstance(array, Array) or array.rank != 0 or array.ty not in ("i32", "u32", "bool"):
                    raise self.fail(keyword.value, "a flag is an array of rank 0 of i32, u32 or bool: `np.zeros((), np.int32)`")
                flag = array.id
                # The host clears it, and a yield tells it: it must be the caller's to write.
                array.write()
            elif keyword.arg == "undo":
                undo = self.undone(keyword.value)
            else:
                raise self.fail(call, "a region takes a label, `yield_on` and `undo`")
        self.at(statement)
        family, variant = type(label.value).__name__, label.value.name
        self.builder.begin_region(family, variant, flag, undo)
        self.inner(statement.body, whole, statement)
        self.at(statement)
        self.builder.end_region()

    def undone(self, node: ast.expr) -> Optional[list[int]]:
        if isinstance(node, (ast.List, ast.Tuple)):
            ids: list[int] = []
            for element in node.elts:
                self.collect(element, self.known(element), ids)
            return ids
        found = self.scalar(node)
        if not isinstance(found, Const):
            raise self.fail(node, "`undo` is `True` or a list of arrays")
        return [] if found.value else None

    def collect(self, node: ast.expr, found: Any, ids: list[int]) -> None:
        if isinstance(found, Array):
            ids.append(found.id)
        elif isinstance(found, Struct):
            for inner in found.fields.values():
                self.collect(node, inner, ids)
        elif not isinstance(found, Named):
            raise self.fail(node, "`undo` takes arrays")


_REFUSED: dict[type, str] = {
    ast.Return: "a program has no `return`: write results to an array; the value of an `@ebbtide.func` stands in its last line",
    ast.Break: "`if …: break` may be the last statement of a loop, and of nothing else",
    ast.Continue: "there is no `continue`: put the rest of the body under an `if`",
    ast.Try: "there is no `try` in programs",
    ast.Raise: "there is no `raise` in programs: set a flag and yield on it",
    ast.Assert: "there is no `assert` in programs: set a flag and yield on it",
    ast.FunctionDef: "a function is written outside of programs, with `@ebbtide.func` before it",
    ast.ClassDef: "there are no classes in programs",
    ast.Import: "import before the program",
    ast.ImportFrom: "import before the program",
    ast.Global: "programs read constants of the module and change none",
    ast.Nonlocal: "programs read constants around them and change none",
    ast.Delete: "there is no `del` in programs",
    ast.AsyncFor: "there is no `async` in programs",
    ast.AsyncWith: "there is no `async` in programs",
    ast.Match: "there is no `match`: write `if`",
}
