"""Jumps: `continue`, `break` and `return` become branches and flags.

Input: the body of a function as written. Output: statements of the same meaning in which the only jump is a closing
`if …: break` of a sequential loop, which is all that a program has (law 5), and the `return` of a value. They are those
that Rust's macro makes of the same jumps, so that one program is the same in both languages.

A branch that always jumps leaves the statements after it to the other branch: `if c: continue` becomes `if c: pass`, with
the rest under `else`. Where a branch jumps only sometimes, a flag says so: it is set at the jump, and the statements after
it run where it is not set.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Callable, Optional, Sequence, TypeVar, Union

Loop = Union[ast.For, ast.While]
Statements = list[ast.stmt]

ALWAYS, SOMETIMES, NEVER = "always", "sometimes", "never"
_LOOPS = (ast.For, ast.While)
_JUMPS = (ast.Break, ast.Continue, ast.Return)


def either(a: str, b: str) -> str:
    """Does one of two branches reach its end?"""
    return a if a == b else SOMETIMES


@dataclasses.dataclass
class Frame:
    """A loop whose jumps are being rewritten."""

    stop: str
    skip: str
    parallel: bool
    uses_stop: bool = False
    uses_skip: bool = False


def kinds(statement: ast.stmt, in_loop: bool = False) -> set[str]:
    """Which jumps out of it a statement holds."""
    if isinstance(statement, ast.Return):
        return {"return"}
    if isinstance(statement, ast.Break):
        return set() if in_loop else {"break"}
    if isinstance(statement, ast.Continue):
        return set() if in_loop else {"continue"}
    inner: list[ast.stmt] = []
    if isinstance(statement, (ast.If, ast.For, ast.While)):
        inner = [*statement.body, *statement.orelse]
    elif isinstance(statement, ast.With):
        inner = statement.body
    found: set[str] = set()
    for each in inner:
        found |= kinds(each, in_loop or isinstance(statement, _LOOPS))
    return found


def has_jumps(statements: Sequence[ast.stmt]) -> bool:
    return any(kinds(statement) for statement in statements)


def always_returns(statements: Sequence[ast.stmt]) -> bool:
    """Does every way through end with `return`?"""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return always_returns(last.body) and always_returns(last.orelse)
    return isinstance(last, ast.Return)


def has_closing_break(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.If) and len(last.body) == 1 and isinstance(last.body[0], ast.Break) and not last.orelse


class Jumps:
    """Rewrites the jumps of one body; `is_parallel` knows parallel loops, `fail` makes an error at a statement."""

    def __init__(self, is_parallel: Callable[[ast.stmt], bool], fail: Callable[[ast.AST, str], Exception], taken: set[str]) -> None:
        self.is_parallel = is_parallel
        self.fail = fail
        self.taken = taken
        self.frames: list[Frame] = []
        self.returned = self.hidden("returned")
        self.uses_returned = False
        self.loops = 0
        #: Loops in which a guard asks for the flag of `continue`.
        self.guarded: set[int] = set()

    def hidden(self, name: str) -> str:
        """A name that the function does not have."""
        while name in self.taken:
            name += "_"
        return name

    def body(self, statements: Statements) -> Statements:
        """The body of a program without jumps."""
        if not has_jumps(statements):
            return [self.without_jumps(statement) for statement in statements]
        lowered, _ = self.list(statements)
        if self.uses_returned:
            # A guard asks for the flag: `return`s before it set it too.
            self.loops = 0
            lowered, _ = self.list(statements)
        if self.uses_returned:
            lowered.insert(0, self.set(statements[0], self.returned, False))
        return lowered

    def list(self, statements: Sequence[ast.stmt]) -> tuple[Statements, str]:
        if not statements:
            return [], ALWAYS
        statement, rest = statements[0], statements[1:]
        asked = kinds(statement)
        if not asked:
            first = self.without_jumps(statement)
            lowered, falls = self.list(rest)
            return [first, *lowered], falls
        if isinstance(statement, ast.If):
            return self.branch(statement, rest)
        if isinstance(statement, _LOOPS):
            # What jumps out of a loop is a `return`: a `break` or `continue` inside is the loop's own.
            return self.guarded_rest([self.without_jumps(statement)], SOMETIMES, rest, asked, statement)
        if isinstance(statement, _JUMPS):
            if rest:
                raise self.fail(rest[0], "this never runs: it stands after a jump")
            return self.jump(statement), NEVER
        raise self.fail(statement, "a region ends at its last statement: set a variable inside it, and jump after it")

    def branch(self, statement: ast.If, rest: Sequence[ast.stmt]) -> tuple[Statements, str]:
        then, then_falls = self.list(statement.body)
        chain = len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)
        if then_falls == NEVER and (not statement.orelse or chain):
            lowered, falls = self.list([*statement.orelse, *rest])
            return [self.built(statement, then, lowered)], either(then_falls, falls)
        otherwise, else_falls = self.list(statement.orelse)
        if (then_falls, else_falls) == (NEVER, ALWAYS):
            lowered, falls = self.list(rest)
            return [self.built(statement, then, [*otherwise, *lowered])], either(then_falls, falls)
        if (then_falls, else_falls) == (ALWAYS, NEVER):
            lowered, falls = self.list(rest)
            return [self.built(statement, [*then, *lowered], otherwise)], either(else_falls, falls)
        made = self.built(statement, then, otherwise)
        return self.guarded_rest([made], either(then_falls, else_falls), rest, kinds(statement), statement)

    def built(self, like: ast.If, then: Statements, otherwise: Statements) -> ast.If:
        empty = ast.copy_location(ast.Pass(), like)
        made = ast.If(test=like.test, body=then or [empty], orelse=otherwise)
        return ast.copy_location(made, like)

    def guarded_rest(
        self, statements: Statements, falls: str, rest: Sequence[ast.stmt], asked: set[str], at: ast.stmt
    ) -> tuple[Statements, str]:
        """Statements of which some may have jumped, and those after them, which run if none has."""
        if falls == NEVER or not rest:
            return statements, falls
        lowered, rest_falls = self.list(rest)
        flags = []
        if self.frames:
            frame = self.frames[-1]
            if asked & {"break", "return"}:
                frame.uses_stop = True
                flags.append(frame.stop)
            if "continue" in asked:
                frame.uses_skip = True
                flags.append(frame.skip)
        else:
            self.uses_returned = True
            flags.append(self.returned)
        test: ast.expr = ast.Name(flags[0], ast.Load())
        if len(flags) == 2:
            test = ast.BinOp(test, ast.BitOr(), ast.Name(flags[1], ast.Load()))
        guard = ast.If(test=ast.UnaryOp(ast.Not(), test), body=lowered, orelse=[])
        statements.append(self.placed(guard, rest[0]))
        return statements, NEVER if rest_falls == NEVER else SOMETIMES

    def placed(self, made: ast.stmt, at: ast.stmt) -> ast.stmt:
        """A statement of ours, at the place of one of the user's; what it holds keeps its own places."""
        return ast.fix_missing_locations(ast.copy_location(made, at))

    def set(self, at: ast.stmt, name: str, to: bool) -> ast.stmt:
        return self.placed(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(to)), at)

    def jump(self, statement: ast.stmt) -> Statements:
        frame: Optional[Frame] = self.frames[-1] if self.frames else None
        if isinstance(statement, ast.Continue):
            return [self.set(statement, frame.skip, True)] if frame is not None and frame.uses_skip else []
        if isinstance(statement, ast.Break):
            if frame is None or frame.parallel:
                raise self.fail(statement, "a parallel loop has no `break`: its iterations run at once; `continue` ends one of them")
            frame.uses_stop = True
            return [self.set(statement, frame.stop, True)]
        assert isinstance(statement, ast.Return)
        if any(f.parallel for f in self.frames):
            raise self.fail(statement, "a parallel loop has no `return`: its iterations run at once; `continue` ends one of them")
        if statement.value is not None:
            raise self.fail(
                statement, "a program returns nothing: write results to an array; `@ebbtide.func` is for functions with a value"
            )
        made = []
        if self.uses_returned or self.frames:
            self.uses_returned = True
            made.append(self.set(statement, self.returned, True))
        for each in self.frames:
            each.uses_stop = True
            made.append(self.set(statement, each.stop, True))
        return made

    def without_jumps(self, statement: ast.stmt) -> ast.stmt:
        """A statement that falls through, with the jumps of the loops inside it rewritten."""
        if isinstance(statement, _LOOPS):
            made: Loop = _copy(statement)
            made.body = self.loop_body(statement)
            return made
        if isinstance(statement, ast.If):
            branch = _copy(statement)
            branch.body = self.list(statement.body)[0]
            branch.orelse = self.list(statement.orelse)[0]
            return branch
        if isinstance(statement, ast.With):
            region = _copy(statement)
            region.body = self.list(statement.body)[0]
            return region
        return statement

    def loop_body(self, statement: Loop) -> Statements:
        """The body of a loop, with the flags that it needs before it and a closing `break` after it."""
        body, parallel = statement.body, self.is_parallel(statement)
        if not has_jumps(body):
            return [self.without_jumps(each) for each in body]
        if not parallel and has_closing_break(body) and not has_jumps(body[:-1]):
            return [*(self.without_jumps(each) for each in body[:-1]), body[-1]]
        self.loops += 1
        number = self.loops
        frame = Frame(self.hidden(f"stop{number}"), self.hidden(f"skip{number}"), parallel, uses_skip=number in self.guarded)
        self.frames.append(frame)
        lowered, _ = self.list(body)
        self.frames.pop()
        if frame.uses_skip and number not in self.guarded:
            # A guard asks for the flag that jumps before it did not set: once more.
            self.guarded.add(number)
            self.loops = number - 1
            return self.loop_body(statement)
        made: Statements = []
        if frame.uses_stop:
            made.append(self.set(body[0], frame.stop, False))
        if frame.uses_skip:
            made.append(self.set(body[0], frame.skip, False))
        made += lowered
        if frame.uses_stop and not parallel:
            leave = ast.If(test=ast.Name(frame.stop, ast.Load()), body=[ast.Break()], orelse=[])
            made.append(self.placed(leave, body[-1]))
        return made


Node = TypeVar("Node", bound=ast.AST)


def _copy(node: Node) -> Node:
    """The node without its inner ones copied."""
    made = type(node)(**{field: getattr(node, field, None) for field in node._fields})
    return ast.copy_location(made, node)
