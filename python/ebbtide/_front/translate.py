"""Programs: parameters, two passes, calls. The first pass finds which arrays are written and which types variables
have; the second builds."""

from __future__ import annotations

import ast
from typing import Any, Optional

from .. import language
from .._native import Builder, Ir
from .._types import ArrayType, Kind, ScalarType, StructType, element_type, kind_of_annotation
from ..errors import BuildError
from .analysis import assigned_in
from .ranges import Bounds, Linear
from .source import Source, source_of
from .statements import Statements
from .values import Array, Const, Local, Named, Object, Retype, Struct, Value

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
            return ir
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
            array = Array(self.builder.array(name, kind.ty, kind.rank, write), kind.ty, kind.rank, name)
            self.arrays.append(array)
            return array
        if isinstance(kind, ScalarType):
            id = self.builder.scalar(name, kind.ty)
            form = Linear.atom(("scalar", id)) if kind.ty == "int" else None
            return Named(id, kind.ty, form)
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
            if not isinstance(bound, (Named, Const)):
                # The assignment itself is refused, at its line.
                continue
            # A parameter that is assigned is a variable that begins with the argument.
            value = self.default(source.tree, self.scalar_of(source.tree, bound))
            self.at(source.tree)
            scope[name] = Local(self.builder.local(name, value.emit()), value.ty, source.tree.lineno)
        if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
            statements = statements[1:]
        returned: Optional[Any] = None
        if statements and isinstance(statements[-1], ast.Return):
            last = statements[-1]
            statements = statements[:-1]
            self.block(statements, source.tree.body)
            if last.value is None:
                pass
            elif not self.func:
                raise self.fail(last, "a program returns nothing: write results to an array; `@ebbtide.func` is for functions with a value")
            else:
                returned = self.scalar(last.value)
                if isinstance(returned, Value):
                    returned = Named(returned.emit(), returned.ty, returned.form)
        else:
            self.block(statements, source.tree.body)
            if self.func:
                raise self.fail(source.tree, f"`{source.name}` ends without `return`: an `@ebbtide.func` has a value")
        self.source, self.scopes, self.assigned_names = outer
        return returned

    def scalar_of(self, node: ast.AST, bound: Any) -> Any:
        if isinstance(bound, Named):
            id = bound.id
            return Value(bound.ty, lambda: id, bound.form)
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
        if isinstance(found, Const):
            return found
        assert isinstance(found, Named)

        def emit() -> int:
            returned = self.call_source(node, callee, func=True)
            assert isinstance(returned, Named)
            return returned.id

        return Value(found.ty, emit, safe=False)

    def pass_on(self, argument: ast.expr, name: str, callee: Any, declared: Optional[Kind]) -> Any:
        found = self.known(argument)
        if isinstance(found, Array):
            if isinstance(declared, ScalarType):
                raise self.fail(argument, f"`{name}` of `{callee.name}` is a scalar, this is an array")
            if isinstance(declared, ArrayType) and (
                (declared.ty or found.ty) != found.ty or (found.rank if declared.rank is None else declared.rank) != found.rank
            ):
                raise self.fail(argument, f"`{name}` of `{callee.name}` has {declared.rank} dimensions of `{declared.ty}`, `{found.name}` has {found.rank} of `{found.ty}`")
            return Array(found.id, found.ty, found.rank, found.name, outer=found)
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
        return Named(value.emit(), value.ty, value.form)

    def handed(self, bound: Any) -> Any:
        if isinstance(bound, Array):
            return Array(bound.id, bound.ty, bound.rank, bound.name, outer=bound)
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

        found = self.known(node.func)
        function = found.value if isinstance(found, Object) else None
        if isinstance(function, Func):
            return self.call_func(node, function)
        if isinstance(function, Program):
            raise self.fail(node, f"`{function.name}` is a program and has no value: call it on a line of its own")
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
        if callable(function) and getattr(function, "__module__", "") not in ("numpy", "math", "builtins"):
            return self.fail(node, f"`{name}` is a plain function: put `@ebbtide.func` before it (or `@ebbtide.program`, if it works on whole arrays)")
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
