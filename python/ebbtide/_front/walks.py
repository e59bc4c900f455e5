"""What loops run over: `range(n)`, `range(start, stop, step)`, `reversed(range(n))`.

A loop counts upwards. Where the range does not, its variable is `first + stride * counter`, which index arithmetic
understands.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
from typing import Callable, Optional

from .ranges import Linear
from .values import Const, LoopVariable, Object, Value
from .words import Words


@dataclasses.dataclass
class Walk:
    """The bounds of a counter, and the value for each count where that is not the counter itself."""

    start: Value
    stop: Value
    value: Optional[Callable[[Value], Value]] = None
    #: What the loop variable is multiplied with, and where it begins, for walks that are mapped again.
    first: Optional[Value] = None
    stride: int = 1
    size: Optional[Value] = None


class Walks(Words):
    """Translates the heads of loops."""

    def is_builtin(self, node: ast.expr, function: object) -> bool:
        if not isinstance(node, ast.Call):
            return False
        found = self.known(node.func)
        return isinstance(found, Object) and found.value is function

    def walk(self, node: ast.expr) -> Walk:
        """`n`, `range(...)` or `reversed(range(...))`."""
        if self.is_builtin(node, range):
            assert isinstance(node, ast.Call)
            return self.range(node)
        if self.is_builtin(node, builtins.reversed):
            assert isinstance(node, ast.Call)
            if len(node.args) != 1 or not self.is_builtin(node.args[0], range):
                raise self.fail(node, "write `reversed(range(n))`")
            return self.backwards(node, self.walk(node.args[0]))
        return Walk(self.literal(node, Const(0), "int"), self.index(node))

    def range(self, node: ast.Call) -> Walk:
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise self.fail(node, "write `range(n)`, `range(start, stop)` or `range(start, stop, step)`")
        if len(node.args) == 1:
            return Walk(self.literal(node, Const(0), "int"), self.index(node.args[0]))
        start, stop = self.index(node.args[0]), self.index(node.args[1])
        if len(node.args) == 2:
            return Walk(start, stop)
        step = self.scalar(node.args[2])
        if not isinstance(step, Const) or isinstance(step.value, bool) or not isinstance(step.value, int) or step.value == 0:
            raise self.fail(node, "the step of a range is a constant and not zero: write `for k in range(n): i = start + step * k`")
        if step.value == 1:
            return Walk(start, stop)
        return self.stepped(node, start, stop, step.value)

    def number(self, node: ast.AST, number: int) -> Value:
        return self.literal(node, Const(number), "int")

    def stepped(self, node: ast.AST, start: Value, stop: Value, step: int) -> Walk:
        start, stop = self.once(start), self.once(stop)
        from_, to = (start, stop) if step > 0 else (stop, start)
        zero = from_.form is not None and not from_.form.terms and from_.form.constant == 0
        length = to if zero else self.arithmetic(node, "sub", to, from_)
        count = length
        size = self.once(self.number(node, abs(step)))
        if abs(step) > 1:
            builder, one = self.builder, self.number(node, 1)

            def emit() -> int:
                total, by, less = length.emit(), size.emit(), one.emit()
                raised = builder.binary("sub", builder.binary("add", total, by), less)
                return int(builder.binary("div", raised, by))

            count = Value("int", self.emitting(node, emit), safe=False)
        return self.mapped(node, self.once(count), start, step, size)

    def mapped(self, node: ast.AST, count: Value, first: Value, stride: int, size: Optional[Value] = None) -> Walk:
        def times(counter: Value) -> Value:
            return counter if size is None or abs(stride) == 1 else self.arithmetic(node, "mul", size, counter)

        def value(counter: Value) -> Value:
            return self.arithmetic(node, "add" if stride > 0 else "sub", first, times(counter))

        return Walk(self.number(node, 0), count, value, first, stride, size)

    def backwards(self, node: ast.AST, walk: Walk) -> Walk:
        if walk.first is None:
            start, stop = self.once(walk.start), walk.stop
            zero = start.form is not None and not start.form.terms and start.form.constant == 0
            walk = self.mapped(node, self.once(stop if zero else self.arithmetic(node, "sub", stop, start)), start, 1)
        assert walk.first is not None
        last = self.arithmetic(node, "sub", walk.stop, self.number(node, 1))
        moved = last if walk.size is None or abs(walk.stride) == 1 else self.arithmetic(node, "mul", walk.size, last)
        first = self.once(self.arithmetic(node, "add" if walk.stride > 0 else "sub", walk.first, moved))
        return self.mapped(node, walk.stop, first, -walk.stride, walk.size)

    def prepared(self, walk: Walk) -> tuple[int, int]:
        """The bounds of the counter, with all that its values need, computed before the loop."""
        if walk.first is not None:
            walk.first.emit()
            walk.stop.emit()
        return walk.start.emit(), walk.stop.emit()

    def variable(self, walk: Walk, name: str, counter: int) -> LoopVariable:
        """The variable of a loop in its body, and what is known of its values."""
        atom = ("loop", counter)
        self.bounds.enter_loop(atom, walk.start.form, walk.stop.form)
        if walk.value is None:
            return LoopVariable(counter, Linear.atom(atom))
        found = walk.value(Value("int", lambda: counter, Linear.atom(atom)))
        id = found.emit()
        self.builder.name(id, name)
        if found.form is None:
            return LoopVariable(id, Linear.atom(("loop", id)))
        return LoopVariable(id, found.form)

    def counter_name(self, walk: Walk, name: str) -> str:
        return name if walk.value is None else f"{name}_count"
