"""Assignments of small vectors and matrices: to names, and to rows of arrays."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any, Optional

import numpy as np

from .calls import Calls
from .values import Array, Const, Gone, Local, Retype, Several, Small, SmallLocal, Value


class SmallAssignments(Calls):
    """Translates assignments whose right side is a small value."""

    # Of the classes that derive from this one.

    def bind_any(self, statement: ast.stmt, name: ast.expr, found: Any, counts: dict[str, int]) -> None:
        raise NotImplementedError

    def negated(self, id: int, ty: str) -> int:
        raise NotImplementedError

    def temporary_type(self, node: ast.AST, argument: Optional[ast.expr]) -> str:
        raise NotImplementedError

    def take_apart(self, statement: ast.stmt, names: list[ast.expr], found: Any, counts: dict[str, int]) -> None:
        """`a, b = f(x)`, `x, y = position[i]`."""
        if isinstance(found, Small) and len(found.shape) == 1:
            found.emit()
            items: list[Any] = list(self.items(found))
        elif isinstance(found, Several):
            items = found.items
        else:
            raise self.fail(statement, "write one value for each name")
        if len(items) != len(names):
            raise self.fail(statement, f"here are {len(items)} values and {len(names)} names")
        for item in items:
            if not isinstance(item, Const):
                item.emit()
        for name, item in zip(names, items):
            self.bind_any(statement, name, item, counts)

    def checked_view(self, statement: ast.stmt, found: Small) -> Small:
        """A small value that gets a name: in NumPy a row of an array would be a view of it."""
        if found.named:
            raise self.fail(statement, "a second name would be a second name of the same vector in NumPy: write `.copy()` after it")
        if found.view is not None and self.may_be_written(found.view):
            raise self.fail(
                statement,
                f"this is a view in NumPy, which changes when `{found.view.name}` does: write `.copy()` after it, or use it without a name",
            )
        return dataclasses.replace(found, view=None)

    def may_be_written(self, array: Array) -> bool:
        raise NotImplementedError

    def bind_small(self, statement: ast.stmt, target: ast.Name, found: Small, counts: dict[str, int]) -> None:
        name, builder = target.id, self.builder
        bound = self.find(name)
        found = self.checked_view(statement, found)
        if isinstance(bound, Local) and bound.hoisted:
            raise Retype(bound.key, (found.ty, found.shape))
        if isinstance(bound, SmallLocal):
            if (bound.ty, bound.shape) != (found.ty, found.shape):
                raise self.fail(statement, f"`{name}` is a small value of shape {bound.shape} and type `{bound.ty}`, this is {found.shape} and `{found.ty}`")
            ids = found.emit()
            self.at(statement)
            for local, id in zip(bound.ids, ids):
                builder.set(local, id)
            return
        if bound is not None and not isinstance(bound, (Gone, Small)):
            raise self.fail(statement, f"`{name}` is no small vector or matrix: use another name")
        ids = list(found.emit())
        self.at(statement)
        names = [f"{name}.{'xyzw'[k]}" if len(found.shape) == 1 and found.size <= 4 else f"{name}.{k}" for k in range(found.size)]
        if counts.get(name, 0) <= 1 and not isinstance(bound, Small):
            for id, each in zip(ids, names):
                builder.name(id, each)
            self.scopes[-1][name] = Small(found.shape, found.ty, lambda: ids, named=True)
            return
        self.scopes[-1][name] = SmallLocal([builder.local(each, id) for each, id in zip(names, ids)], found.ty, found.shape)

    def known_quietly(self, node: ast.expr) -> Any:
        return self.find(node.id) if isinstance(node, ast.Name) else None

    def small_zeros(self, value: ast.Call) -> Optional[Small]:
        """`np.zeros(3)`, `np.zeros((2, 2), dtype=...)` of a constant shape."""
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        if not 1 <= len(value.args) <= 2 or set(options) - {"dtype"} or self.function_of(value) is not np.zeros:
            return None
        parts = value.args[0].elts if isinstance(value.args[0], (ast.Tuple, ast.List)) else [value.args[0]]
        numbers = [self.scalar(part) for part in parts]
        shape = tuple(int(n.value) for n in numbers if isinstance(n, Const) and isinstance(n.value, int))
        if len(shape) != len(parts) or not 1 <= len(shape) <= 2 or not 1 <= int(np.prod(shape)) <= 16:
            return None
        dtype = options.get("dtype") or (value.args[1] if len(value.args) == 2 else None)
        ty = self.temporary_type(value, dtype)
        return self.filled(value, shape, [0] * int(np.prod(shape)), ty)

    def fixed(self, extents: list[Value]) -> tuple[int, ...]:
        """The last extents that are constants."""
        item: list[int] = []
        for extent in reversed(extents):
            form = extent.form
            if form is None or form.terms or not 1 <= form.constant <= 16 or len(item) == 2:
                break
            item.insert(0, form.constant)
        return tuple(item)

    def row(self, node: ast.expr, array: Array, index: list[Value], right: Any) -> list[Value]:
        """The components that a row of an array is given: those of a small value, or one number for all."""
        shape = array.item[len(array.item) - (array.rank - len(index)) :]
        if not isinstance(right, Small):
            number = self.convert(node, self.scalar(node), array.ty, f"`{array.name}`")
            return [self.once(number)] * int(np.prod(shape))
        if right.shape != shape:
            raise self.fail(node, f"a row of `{array.name}` has shape {shape}, this has {right.shape}")
        return [self.convert(node, item, array.ty, f"`{array.name}`") for item in self.items(right)]

    def store_small(self, target: ast.Subscript, array: Array, index: list[Value], value: ast.expr) -> None:
        items = self.row(value, array, index, self.known(value))
        at = [i.emit() for i in index]
        ids = [item.emit() for item in items]
        self.at(target)
        shape = array.item[len(array.item) - (array.rank - len(index)) :]
        for place, id in zip(self.places(shape), ids):
            self.builder.store(array.id, [*at, *place], id)

    def update_small(self, statement: ast.AugAssign, array: Array, index: list[Value]) -> None:
        assert isinstance(statement.target, ast.Subscript)
        right = self.known(statement.value)
        at = [self.once(i) for i in index]
        if not isinstance(statement.op, (ast.Add, ast.Sub)):
            old = self.element(statement.target, array, list(at))
            new = self.elementwise(statement, type(statement.op), old, self.numbers(statement.value, right))
            items = [self.convert(statement, item, array.ty, f"`{array.name}`") for item in self.items(new)]
        else:
            items = self.row(statement.value, array, index, right)
        place = [i.emit() for i in at]
        ids = [item.emit() for item in items]
        self.at(statement.target)
        shape = array.item[len(array.item) - (array.rank - len(index)) :]
        for rest, id in zip(self.places(shape), ids):
            if isinstance(statement.op, (ast.Add, ast.Sub)):
                id = self.negated(id, array.ty) if isinstance(statement.op, ast.Sub) else id
                self.builder.update("add", array.id, [*place, *rest], id)
            else:
                self.builder.store(array.id, [*place, *rest], id)
