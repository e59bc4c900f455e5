"""Blocks: branches, loops, regions."""

from __future__ import annotations

import ast
import enum
import math
from typing import Any, Optional, Sequence

from .. import language
from .analysis import assigned_in, read_after, surely_assigned
from .values import Array, Const, Gone, Local, LoopVariable, Named, Object, SmallLocal, Struct
from .walks import Walks


def ranges_and_variables(ranges: Sequence[ast.expr], variables: int) -> str:
    """What to write where `par` has another number of ranges than its loop has variables."""
    if variables == 1 and len(ranges) == 2:
        first, last = (ast.unparse(r) for r in ranges)
        return f"`par` has two ranges and the loop one variable: from `{first}` to `{last}` is `par(range({first}, {last}))`"
    if variables > 1 and len(ranges) == 1:
        return f"`par` has one range and the loop {variables} variables: write one range for each, `par({', '.join('nmkl'[:variables])})`"
    return f"`par` has {len(ranges)} ranges and the loop {variables} variables: write one variable for each range"


class Statements(Walks):
    """Translates statements."""

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
                ty: Any = self.facts.get(key, "f64")
                self.at(statement)
                if isinstance(ty, tuple):
                    item, shape = ty
                    zeros = [self.builder.int_literal(item, 0) for _ in range(math.prod(shape))]
                    self.scopes[-1][name] = SmallLocal([self.builder.local(name, zero) for zero in zeros], item, shape)
                    continue
                zero = self.builder.int_literal(ty, 0)
                self.scopes[-1][name] = Local(
                    self.builder.local(name, zero), ty, statement.lineno, key, weak=True, python=key not in self.facts, hoisted=True
                )

    # -- branches and loops ------------------------------------------------------------------------------------------

    def stmt_If(self, statement: ast.If, counts: Any, whole: Sequence[ast.stmt]) -> None:
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

    def stmt_Assert(self, statement: ast.Assert, counts: Any, whole: Sequence[ast.stmt]) -> None:
        found = self.scalar(statement.test)
        text = f"`{ast.unparse(statement.test)}` does not hold"
        if statement.msg is not None:
            if not isinstance(statement.msg, ast.Constant) or not isinstance(statement.msg.value, str):
                raise self.fail(statement.msg, "the message of an `assert` is a text without values")
            text = statement.msg.value
        if isinstance(found, Const) and found.value:
            return
        condition = self.truth(statement.test, found).emit()
        self.at(statement)
        self.builder.assertion(condition, text)

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
        self.forget(statement, scope)
        self.at(statement)
        self.builder.end_loop(condition)

    def forget(self, statement: ast.stmt, scope: dict[str, Any]) -> None:
        """What a loop assigned is not known after it."""
        word = "`for`" if isinstance(statement, ast.For) else "`while`"
        for name, bound in scope.items():
            if self.find(name) is None:
                what = "loop variable" if isinstance(bound, LoopVariable) else word
                self.scopes[-1][name] = Gone(self.source.spot(statement)[1], what)

    def stmt_While(self, statement: ast.While, counts: Any, whole: Sequence[ast.stmt]) -> None:
        bounds = self.bounds.copy()
        test = statement.test
        if isinstance(test, ast.Constant) and test.value:
            if self.closing_break(statement.body)[1] is None:
                raise self.fail(statement, "this loop never ends: write `if …: break` in its body")
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
        if function not in (range, reversed) or not isinstance(head, ast.Call):
            raise self.fail(statement.iter, "a loop runs over `range(...)`, `reversed(range(...))` or `par(...)`")
        walk = self.walk(head)
        if not isinstance(statement.target, ast.Name):
            raise self.fail(statement.target, "a loop over `range` has one variable")
        name = statement.target.id
        self.check_loop_variable(statement, name)
        ids = self.prepared(walk)
        self.at(statement)
        counter = self.builder.begin_for(self.counter_name(walk, name), *ids)
        bounds = self.bounds.copy()
        self.loop_body(statement, whole, {name: self.variable(walk, name, counter)})
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

    def par(self, statement: ast.For, head: ast.Call, whole: Sequence[ast.stmt]) -> None:
        if self.func:
            raise self.fail(statement, "an `@ebbtide.func` has no parallel loops: write a program")
        if self.parallel:
            raise self.fail(statement, "a parallel loop cannot stand inside another: write `for i, j in par(n, m)`, or make this one sequential")
        if statement.orelse:
            raise self.fail(statement, "a loop has no `else` in programs")
        relaxed = False
        for keyword in head.keywords:
            said = self.scalar(keyword.value)
            if keyword.arg != "relaxed" or not isinstance(said, Const):
                raise self.fail(head, "`par` takes one to four ranges and `relaxed=True`")
            relaxed = bool(said.value)
        if not 1 <= len(head.args) <= 4:
            raise self.fail(head, "`par` takes one to four ranges")
        target = statement.target
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(names) != len(head.args):
            raise self.fail(target, ranges_and_variables(head.args, len(names)))
        walks = [self.walk(argument) for argument in head.args]
        words = []
        for name in names:
            if not isinstance(name, ast.Name):
                raise self.fail(name, "write a name")
            self.check_loop_variable(statement, name.id)
            words.append(name.id)
        if relaxed:
            self.builder.relaxed()
        emitted = [(self.counter_name(walk, word), *self.prepared(walk)) for word, walk in zip(words, walks)]
        self.at(statement)
        counters = self.builder.begin_par(emitted)
        bounds = self.bounds.copy()
        scope: dict[str, Any] = {word: self.variable(walk, word, counter) for word, counter, walk in zip(words, counters, walks)}
        self.parallel = True
        self.scopes.append(scope)
        self.block(statement.body, whole)
        self.scopes.pop()
        self.parallel = False
        self.forget(statement, scope)
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
    ast.Try: "there is no `try` in programs",
    ast.Raise: "there is no `raise` in programs: `assert` is a run error, or set a flag and yield on it",
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
