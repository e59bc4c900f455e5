"""Assignments: names, variables, elements, temporaries."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any, Optional

import numpy as np

from .._types import FLOATS, INTEGERS, ScalarType, kind_of_annotation
from .operators import _BINARY
from .small_assignments import SmallAssignments
from .values import Array, Const, Gone, Local, LoopVariable, Named, Object, Retype, Several, Small, SmallLocal, Struct, Value


class Assignments(SmallAssignments):
    """Translates assignments."""

    facts: dict[Any, str]
    parallel: bool
    func: bool
    path: tuple[Any, ...]

    # Of the classes that derive from this one.

    def temporary_type(self, node: ast.AST, argument: Optional[ast.expr]) -> str:
        raise NotImplementedError

    def program_level(self, node: ast.AST, what: str) -> None:
        raise NotImplementedError

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
            if self.temporary(statement, target, value, counts):
                return
            found = self.known(value)
            if isinstance(found, (Array, Struct)):
                raise self.fail(statement, f"an array has one name in programs: use `{ast.unparse(value)}` itself, or `copy` it")
            if isinstance(found, Object):
                raise self.fail(value, f"`{ast.unparse(value)}` is no number")
            if isinstance(found, Several):
                raise self.fail(statement, f"this has {len(found.items)} values: write a name for each, `a, b = ...`")
            if isinstance(found, Small):
                self.bind_small(statement, target, found, counts)
                return
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
        if not isinstance(value, (ast.Tuple, ast.List)):
            self.take_apart(statement, names, self.known(value), counts)
            return
        if len(value.elts) != len(names):
            raise self.fail(statement, "write one value for each name")
        if any(isinstance(self.known_quietly(v), (Array, Struct)) for v in value.elts):
            raise self.fail(statement, "names of arrays cannot be exchanged: `swap(u, v)` exchanges the arrays, for the caller too")
        # All values are computed before the first name changes.
        found: list[Any] = []
        for v in value.elts:
            small = self.known(v)
            if isinstance(small, Small):
                found.append(self.checked_view(statement, small))
                found[-1].emit()
                continue
            scalar = self.scalar(v)
            if isinstance(scalar, Value):
                id, kept = scalar.emit(), scalar
                scalar = dataclasses.replace(kept, emit=(lambda id: lambda: id)(id), adapt=None)
            found.append(scalar)
        for name, scalar in zip(names, found):
            self.bind_any(statement, name, scalar, counts)

    def bind_any(self, statement: ast.stmt, name: ast.expr, found: Any, counts: dict[str, int]) -> None:
        if not isinstance(name, ast.Name):
            raise self.fail(name, "here only names can be assigned: write one assignment for each element")
        if isinstance(found, Small):
            self.bind_small(statement, name, found, counts)
        else:
            self.bind(statement, name, found, counts)

    def bind(self, statement: ast.stmt, target: ast.Name, found: Any, counts: dict[str, int]) -> None:
        name = target.id
        bound = self.find(name)
        builder = self.builder
        if isinstance(bound, LoopVariable):
            raise self.fail(statement, f"`{name}` is the variable of a loop: use another name")
        if isinstance(bound, (Array, Struct)):
            raise self.fail(statement, f"`{name}` is an array or a dataclass: use another name")
        if isinstance(bound, Local):
            self.learn(bound, found)
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
            self.scopes[-1][name] = Named(id, found.ty, found.form, found.python)
            return
        key = (*self.path, target.lineno, target.col_offset, name)
        weak = (isinstance(found, Const) and found.ty is None) or (isinstance(found, Value) and found.weak is not None)
        value = self.default(statement, found)
        if weak and key in self.facts and self.facts[key] != value.ty:
            ty = self.facts[key]
            value = self.literal(statement, found, ty) if isinstance(found, Const) else self.convert(statement, found, ty, f"`{name}`")
        id = value.emit()
        self.at(statement)
        python = value.python and key not in self.facts
        self.scopes[-1][name] = Local(builder.local(name, id), value.ty, target.lineno, key, weak, python)

    def learn(self, bound: Local, found: Any) -> None:
        """Where a variable began with a number without a type, what is assigned to it says which type it has."""
        if isinstance(found, Const):
            if bound.weak and isinstance(found.value, float) and bound.ty == "int":
                raise Retype(bound.key, "f64")
            return
        if bound.python and found.ty == "f64" and not found.python:
            raise Retype(bound.key, "f64")
        if bound.weak and found.ty != bound.ty and not (bound.ty in FLOATS and (found.ty == "int" or found.python)):
            raise Retype(bound.key, found.ty)

    def line(self, local: Local) -> int:
        return local.line + self.source.first - 1

    def temporary(self, statement: ast.stmt, target: ast.Name, value: ast.expr, counts: dict[str, int]) -> bool:
        """`t = np.zeros((n, m))` and its kin."""
        if not isinstance(value, ast.Call):
            return False
        function = self.function_of(value)
        if function not in (np.zeros, np.empty, np.zeros_like, np.empty_like, np.ones, np.full):
            return False
        if function in (np.ones, np.full):
            raise self.fail(value, "a temporary begins with zeros: write `t = np.zeros(n)`, then `fill(t, x)`")
        if self.parallel or self.func:
            small = self.small_zeros(value)
            if small is not None:
                self.bind_small(statement, target, small, counts)
                return True
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
        if len(extents) > 6:
            raise self.fail(value, "arrays of programs have at most 6 dimensions")
        ids = [extent.emit() for extent in extents]
        self.at(statement)
        array = Array(self.builder.temp(name, ty, ids), ty, len(ids), name, item=self.fixed(extents))
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
        if len(index) < array.rank:
            self.store_small(target, array, index, value)
            return
        converted = self.convert(value, self.scalar(value), array.ty, f"`{array.name}`")
        ids = [i.emit() for i in index]
        id = converted.emit()
        self.at(target)
        self.builder.store(array.id, ids, id)

    def written_array(self, node: ast.expr) -> Array:
        array = self.known(node)
        if isinstance(array, Small):
            raise self.fail(node, "components of a small value are not assigned: make the vector anew, `v = np.array([x, v[1]])`")
        if not isinstance(array, Array):
            said = f"`{ast.unparse(node)}` is not an array"
            hint = ": results are written to arrays; `np.zeros(())` holds one number" if isinstance(node, ast.Name) else ""
            raise self.fail(node, said + hint)
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
            if len(index) < array.rank:
                self.update_small(statement, array, index)
                return
            right = self.scalar(statement.value)
            if isinstance(statement.op, (ast.Add, ast.Sub)):
                subtracts = isinstance(statement.op, ast.Sub)
                if array.ty == "bool":
                    raise self.fail(statement, f"there is no `{'-' if subtracts else '+'}` of bools")
                value = self.convert(statement.value, right, array.ty, f"`{array.name}`")
                ids = [i.emit() for i in index]
                id = value.emit()
                self.at(statement.target)
                if subtracts:
                    id = self.negated(id, array.ty)
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
        if isinstance(bound, SmallLocal):
            if bound.parameter:
                raise self.fail(statement, f"in NumPy this changes the caller's `{statement.target.id}`: write `{statement.target.id} = {statement.target.id} + ...`")
            old_small = self.binding(statement.target, bound)
            changed = self.elementwise(statement, type(statement.op), old_small, self.numbers(statement.value, self.known(statement.value)))
            self.bind_small(statement, statement.target, changed, {})
            return
        if not isinstance(bound, Local):
            if isinstance(bound, LoopVariable):
                raise self.fail(statement, f"`{statement.target.id}` is the variable of a loop: use another name")
            if isinstance(bound, Array) and bound.rank == 0:
                raise self.fail(statement, f"`{bound.name}` is an array: its element is `{bound.name}[()]`")
            if isinstance(bound, Array):
                raise self.fail(statement, f"`{bound.name}` is an array: write a loop over its elements")
            raise self.fail(statement, f"`{statement.target.id}` is read before it is assigned: assign it before, in the same block or around it")
        old_value = self.binding(statement.target, bound)
        right = self.first(statement, self.scalar(statement.value), bound.ty)
        new = self.binary(statement, type(statement.op), old_value, right)  # type: ignore[arg-type]
        self.learn(bound, new)
        result = self.convert(statement, new, bound.ty, f"`{statement.target.id}` (since line {self.line(bound)})").emit()
        self.at(statement)
        builder.set(bound.id, result)

    def negated(self, id: int, ty: str) -> int:
        """A value with the sign exchanged; of an unsigned one what wraps to that."""
        if ty == "u32":
            return int(self.builder.binary("sub", self.builder.int_literal(ty, 0), id))
        return int(self.builder.unary("neg", id))

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
        return dataclasses.replace(found, emit=lambda: id, adapt=None)

