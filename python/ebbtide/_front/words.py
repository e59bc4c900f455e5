"""Statements that are calls: programs, and words of the language that have no value."""

from __future__ import annotations

import ast
from typing import Any, Optional

from .. import language
from .assignments import Assignments
from .values import Array, Object


class Words(Assignments):
    """Translates calls on lines of their own."""

    STATEMENTS = (
        language.swap, language.fill, language.copy, language.min_assign, language.max_assign, language.scatter_unique,
        language.matmul, language.scan, language.compact, language.checkpoint,
    )  # fmt: skip

    # Of the translator.

    def call_source(self, node: ast.Call, callee: Any, func: bool) -> Optional[Any]:
        raise NotImplementedError

    def unknown_function(self, node: ast.Call, function: Any) -> Exception:
        raise NotImplementedError

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
        if len(index) < array.rank:
            raise self.fail(node, f"`{name}` takes one element: `{name}(x, (i, k), value)`")
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
