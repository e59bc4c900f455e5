"""Programs: parameters, two passes, calls. The first pass finds which arrays are written and which types variables
have; the second builds."""

from __future__ import annotations

import ast
import dataclasses
import functools
from typing import Any, Callable, Optional, Sequence

from .. import language
from .._native import Builder, Ir
from .._types import ArrayType, Kind, ScalarType, StructType, element_type, kind_of_annotation
from ..errors import BuildError
from .analysis import assigned_in
from .jumps import Jumps, always_returns, kinds
from .ranges import Bounds, Linear
from .source import Source, source_of
from .statements import Statements
from .values import Array, Const, Local, Named, Object, Retype, Several, Small, SmallLocal, Struct, Value

#: More rounds than a program has variables whose types are found one by one.
_ROUNDS = 1000


def build(program: Any, kinds: list[Kind]) -> Ir:
    """The program of a function whose parameters are these."""
    facts: dict[Any, str] = {}
    for _ in range(_ROUNDS):
        try:
            written = Translator(program, kinds, facts, None).root()
            translator = Translator(program, kinds, facts, written)
            translator.root()
            ir: Ir = translator.builder.finish()
            items = [(k, list(array.item)) for k, array in translator.array_parameters if array.item]
            return ir.with_items(items) if items else ir
        except Retype as learnt:
            facts[learnt.key] = learnt.ty
    raise BuildError(f"build error: the types of the variables of `{program.name}` cannot be found: convert their first values")


class _Silent:
    """A builder that builds nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


class Translator(Statements):
    """Builds one program."""

    def __init__(self, program: Any, kinds: list[Kind], facts: dict[Any, str], written: Optional[set[str]]) -> None:
        self.program = program
        self.kinds = kinds
        self.facts = facts
        #: The arrays that are written, where that is known.
        self.written = written
        self.builder = Builder(program.name)
        self.source: Source = source_of(program.function)
        self.scopes = [{}]
        self.bounds = Bounds()
        self.calls: list[Any] = []
        self.arrays: list[Array] = []
        #: The array parameters by their number among all parameters.
        self.array_parameters: list[tuple[int, Array]] = []
        self.leaves = 0
        self.parallel = False
        self.func = False
        self.path: tuple[Any, ...] = ()

    def root(self) -> set[str]:
        """Builds all of it; gives the names of the parameters that are written."""
        source = self.source
        scope: dict[str, Any] = {}
        self.at(source.tree)
        for name, kind in zip(source.parameters, self.kinds):
            scope[name] = self.declare(name, kind)
        self.calls.append(self.program)
        self.body(source, scope)
        return {array.name for array in self.arrays if array.written}

    def declare(self, name: str, kind: Optional[Kind]) -> Any:
        if isinstance(kind, ArrayType):
            if kind.ty is None or kind.rank is None:
                raise self.fail(self.source.tree, f"the type of `{name}` is not known: annotate it, `{name}: Array1[f64]`")
            write = self.written is None or name in self.written
            array = Array(self.builder.array(name, kind.ty, kind.rank, write), kind.ty, kind.rank, name, item=kind.item)
            self.arrays.append(array)
            self.array_parameters.append((self.leaves, array))
            self.leaves += 1
            return array
        if isinstance(kind, ScalarType):
            self.leaves += 1
            id = self.builder.scalar(name, kind.ty)
            form = Linear.atom(("scalar", id)) if kind.ty == "int" else None
            return Named(id, kind.ty, form, kind.python)
        if isinstance(kind, StructType):
            return Struct(name, {field: self.declare(f"{name}.{field}", inner) for field, inner in kind.fields})
        raise self.fail(self.source.tree, f"the type of `{name}` is not known: annotate it, `{name}: Array1[f64]`, or call the program first")

    def body(self, source: Source, scope: dict[str, Any]) -> Optional[Any]:
        """The statements of a function, in a scope of their own; gives what it returns."""
        outer = (self.source, self.scopes, self.assigned_names)
        self.source, self.scopes = source, [scope]
        statements = source.tree.body
        counts = assigned_in(statements)
        self.assigned_names = set(counts)
        for name in source.parameters:
            bound = scope.get(name)
            if name not in counts or bound is None:
                continue
            if isinstance(bound, Small):
                ids = [self.builder.local(name, id) for id in bound.emit()]
                scope[name] = SmallLocal(ids, bound.ty, bound.shape, parameter=True)
                continue
            if not isinstance(bound, (Named, Const)):
                # The assignment itself is refused, at its line.
                continue
            # A parameter that is assigned is a variable that begins with the argument.
            value = self.default(source.tree, self.scalar_of(source.tree, bound))
            self.at(source.tree)
            key = (*self.path, source.tree.lineno, name)
            python = value.python and key not in self.facts
            scope[name] = Local(self.builder.local(name, value.emit()), value.ty, source.tree.lineno, key, python=python)
        if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
            statements = statements[1:]
        returned: Optional[Any] = None
        jumps = source.jumps()
        if self.func:
            returned = self.computed(self.value_of(statements, jumps))
        else:
            rewritten = jumps.body(statements)
            self.assigned_names |= set(assigned_in(rewritten))
            self.block(rewritten, rewritten)
        self.source, self.scopes, self.assigned_names = outer
        return returned

    def value_of(self, statements: Sequence[ast.stmt], jumps: Jumps) -> Any:
        """The value of a function: its statements up to a `return`; branches decide among several."""
        at = next((k for k, statement in enumerate(statements) if "return" in kinds(statement)), None)
        if at is None:
            raise self.fail(self.source.tree, f"`{self.source.name}` ends without `return`: an `@ebbtide.func` has a value")
        last, rest = statements[at], [*statements[at + 1 :]]
        first = [jumps.without_jumps(statement) for statement in statements[:at]]
        self.block(first, [*first, last, *rest])
        if isinstance(last, ast.Return):
            if last.value is None:
                raise self.fail(last, "a value is missing here: `return x`")
            if rest:
                raise self.fail(rest[0], "this never runs: it stands after a `return`")
            if isinstance(last.value, ast.Tuple):
                return Several([self.small_or_number(part) for part in last.value.elts])
            return self.small_or_number(last.value)
        if not isinstance(last, ast.If):
            raise self.fail(last, "a `return` stands outside of loops: set a variable, leave the loop with `break`, and return the variable")
        condition = self.scalar(last.test)
        always = bool(last.body) and always_returns(last.body)
        if isinstance(condition, Const):
            taken = last.body if condition.value else last.orelse
            return self.value_of(taken if always_returns(taken) else [*taken, *rest], jumps)
        if not always:
            raise self.fail(last, "only some of these branches return: end each with `return`, or set a variable and return it at the end")
        return self.branch_of(last, self.truth(last.test, condition), [*last.orelse, *rest], jumps)

    def small_or_number(self, node: ast.expr) -> Any:
        found = self.known(node)
        return found if isinstance(found, Small) else self.scalar(node)

    def computed(self, found: Any) -> Any:
        """What a function returns, computed."""
        if isinstance(found, Value):
            return Named(found.emit(), found.ty, found.form, found.python)
        if isinstance(found, Small):
            ids = list(found.emit())
            # Names of the function's own have ended with it.
            return dataclasses.replace(found, emit=lambda: ids, named=found.parameter)
        if isinstance(found, Several):
            return Several([self.computed(item) for item in found.items])
        return found

    def may_be_written(self, array: Array) -> bool:
        while array.outer is not None:
            array = array.outer
        if self.written is None:
            return False
        return array not in self.arrays or array.name in self.written

    def branch_of(self, node: ast.If, truth: Value, rest: Sequence[ast.stmt], jumps: Jumps) -> Value:
        """The value of the one branch or of the other; its type is learnt from them."""
        builder, key = self.builder, (*self.path, node.lineno, node.col_offset, "if")
        ty = self.facts.get(key, "f64")
        learnt = key in self.facts
        self.at(node)
        slot = builder.numbered_local("if", builder.int_literal(ty, 0))
        builder.begin_if(truth.emit())
        python = True
        for arm in (node.body, rest):
            if arm is rest:
                builder.begin_else()
            self.scopes.append({})
            found = self.value_of(arm, jumps)
            self.scopes.pop()
            if isinstance(found, (Small, Several)):
                raise self.fail(node, "branches return one number each: set variables in them, and return these at the end")
            if not learnt and isinstance(found, Value) and (found.ty != ty or not found.python):
                raise Retype(key, found.ty)
            value = self.convert(node, found, ty, f"what `{self.source.name}` returns")
            python = python and value.python
            builder.set(slot, value.emit())
        id = int(builder.end_value_if(slot))
        return Value(ty, lambda: id, safe=False, python=python and not learnt)

    def scalar_of(self, node: ast.AST, bound: Any) -> Any:
        if isinstance(bound, Named):
            id = bound.id
            return Value(bound.ty, lambda: id, bound.form, python=bound.python)
        return bound

    # -- calls of programs and functions -----------------------------------------------------------------------------

    def bind_arguments(self, node: ast.Call, callee: Any, source: Source) -> dict[str, ast.expr]:
        names = source.parameters
        if len(node.args) > len(names) or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.fail(node, f"`{callee.name}` takes {len(names)} arguments")
        given: dict[str, ast.expr] = dict(zip(names, node.args))
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in names or keyword.arg in given:
                raise self.fail(node, f"`{callee.name}` takes {', '.join(names)}")
            given[keyword.arg] = keyword.value
        # Python computes defaults where the function is defined: these are their values.
        defaults = callee.function.__defaults__ or ()
        for name, default in zip(names[len(names) - len(defaults) :], defaults):
            given.setdefault(name, ast.copy_location(ast.Constant(default), node))
        missing = [name for name in names if name not in given]
        if missing:
            raise self.fail(node, f"`{callee.name}` misses the argument `{missing[0]}`")
        return {name: given[name] for name in names}

    def call_source(self, node: ast.Call, callee: Any, func: bool) -> Optional[Any]:
        if callee in self.calls:
            cycle = [c.name for c in self.calls[self.calls.index(callee) :]] + [callee.name]
            raise self.fail(node, f"recursion: {' calls '.join(f'`{name}`' for name in cycle)}: a program has no stack, write a loop instead")
        source = source_of(callee.function)
        scope: dict[str, Any] = {}
        for name, argument in self.bind_arguments(node, callee, source).items():
            declared = kind_of_annotation(source.annotations.get(name))
            scope[name] = self.pass_on(argument, name, callee, declared)
        outer = (self.func, self.path)
        self.func, self.path = func, (*self.path, node.lineno, node.col_offset, callee.name)
        self.calls.append(callee)
        if not func:
            self.at(node)
            self.builder.begin_call(callee.name)
        returned = self.body(source, scope)
        if not func:
            self.builder.end_call()
            self.check_aliases(node, callee, scope)
        self.calls.pop()
        self.func, self.path = outer
        return returned

    def call_func(self, node: ast.Call, callee: Any) -> Any:
        """A function is expanded where its value is computed; a silent expansion before finds its type."""
        builder = self.builder
        self.builder = _Silent()
        try:
            found = self.call_source(node, callee, func=True)
        finally:
            self.builder = builder
        made: list[Any] = []

        def call() -> Any:
            if not made:
                made.append(self.call_source(node, callee, func=True))
            return made[0]

        if isinstance(found, Several):
            return Several([self.later(item, functools.partial(lambda k: call().items[k], k)) for k, item in enumerate(found.items)])
        return self.later(found, call)

    def later(self, found: Any, call: Callable[[], Any]) -> Any:
        """A value like the one that was found, computed when it is wanted."""
        if isinstance(found, Const):
            return found
        if isinstance(found, Small):
            return dataclasses.replace(found, emit=lambda: call().emit())
        return Value(found.ty, lambda: int(call().id), safe=False, python=found.python)

    def pass_on(self, argument: ast.expr, name: str, callee: Any, declared: Optional[Kind]) -> Any:
        found = self.known(argument)
        if isinstance(found, Array):
            if isinstance(declared, ScalarType):
                raise self.fail(argument, f"`{name}` of `{callee.name}` is a scalar, this is an array")
            if isinstance(declared, ArrayType) and (
                (declared.ty or found.ty) != found.ty or (found.rank if declared.rank is None else declared.rank) != found.rank
            ):
                raise self.fail(argument, f"`{name}` of `{callee.name}` has {declared.rank} dimensions of `{declared.ty}`, `{found.name}` has {found.rank} of `{found.ty}`")
            item = declared.item if isinstance(declared, ArrayType) else ()
            if item and found.item[len(found.item) - len(item) :] != item:
                raise self.fail(argument, f"`{name}` of `{callee.name}` has elements of shape {item}: annotate `{found.name}` likewise")
            return Array(found.id, found.ty, found.rank, found.name, outer=found, item=found.item)
        if isinstance(found, Small):
            if declared is not None:
                raise self.fail(argument, f"`{name}` of `{callee.name}` is a number or an array, this is a small vector or matrix")
            ids = list(found.emit())
            return dataclasses.replace(found, emit=lambda: ids, view=None, named=True, parameter=True)
        if isinstance(found, Struct):
            return Struct(found.name, {field: self.handed(inner) for field, inner in found.fields.items()})
        if isinstance(found, Object):
            return found
        if isinstance(declared, (ArrayType, StructType)):
            raise self.fail(argument, f"`{name}` of `{callee.name}` is an array or a dataclass, this is a number")
        if isinstance(declared, ScalarType):
            value = self.convert(argument, found, declared.ty, f"`{name}` of `{callee.name}`")
        elif isinstance(found, Const):
            return found
        else:
            value = found
        return Named(value.emit(), value.ty, value.form, value.python)

    def handed(self, bound: Any) -> Any:
        if isinstance(bound, Array):
            return Array(bound.id, bound.ty, bound.rank, bound.name, outer=bound, item=bound.item)
        if isinstance(bound, Struct):
            return Struct(bound.name, {field: self.handed(inner) for field, inner in bound.fields.items()})
        return bound

    def check_aliases(self, node: ast.Call, callee: Any, scope: dict[str, Any]) -> None:
        seen: list[tuple[str, Array]] = []

        def visit(name: str, bound: Any) -> None:
            if isinstance(bound, Struct):
                for field, inner in bound.fields.items():
                    visit(f"{name}.{field}", inner)
            if isinstance(bound, Array):
                for other, array in seen:
                    if array.id == bound.id and (array.written or bound.written):
                        raise self.fail(
                            node,
                            f"`{bound.name}` is bound to the parameters `{other}` and `{name}` of `{callee.name}`, and one of "
                            f"them is written: `copy` it to another array first",
                        )
                seen.append((name, bound))

        for name, bound in scope.items():
            visit(name, bound)

    def call(self, node: ast.Call) -> Any:
        """A call that stands where a value is wanted."""
        from ..program import Func, Program

        function = self.function_of(node)
        if isinstance(function, Func):
            return self.call_func(node, function)
        if isinstance(function, Program):
            raise self.fail(node, f"`{function.name}` is a program and has no value: call it on a line of its own")
        result = self.small_call(node, function)
        if result is not None:
            return result
        result = self.language_call(node, function)
        if result is None and function is not None:
            result = self.math_call(node, function)
        if result is not None:
            return result
        if function is language.par or function is range:
            raise self.fail(node, "`range` and `par` stand in the head of a loop")
        if any(function is word for word in self.STATEMENTS):
            raise self.fail(node, f"`{ast.unparse(node.func)}` has no value: write it on a line of its own")
        raise self.unknown_function(node, function)

    def unknown_function(self, node: ast.Call, function: Any) -> Exception:
        name = ast.unparse(node.func)
        module = getattr(function, "__module__", "") or ""
        if callable(function) and module.split(".")[0] not in ("numpy", "math", "builtins"):
            return self.fail(node, f"`{name}` is a plain function: put `@ebbtide.func` before it (or `@ebbtide.program`, if it works on whole arrays)")
        if function is sum and node.args and isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)):
            return self.fail(node, "there are no generators: write `s = 0.0`, then a loop with `s += ...`")
        if name in ("np.sum", "numpy.sum", "sum", "np.dot", "np.mean"):
            return self.fail(node, f"there is no `{name}` of arrays: add in a parallel loop, `for i in par(n): total[()] += u[i]`")
        from .functions import known_names

        return self.fail(node, f"`{name}` is not known in programs; these are: {known_names()}")

    def temporary_type(self, node: ast.AST, argument: Optional[ast.expr]) -> str:
        if argument is None:
            return "f64"
        found = self.known(argument)
        if isinstance(found, Object) and isinstance(found.value, tuple) and len(found.value) == 2 and isinstance(found.value[0], Array):
            return found.value[0].ty
        ty = element_type(found.value) if isinstance(found, Object) else None
        if ty is None:
            raise self.fail(node, "arrays have elements f32, f64, i32, i64, u32 or bool: `np.zeros(n, dtype=np.float32)`")
        return ty
