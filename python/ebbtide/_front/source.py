"""The source of a function: its syntax tree, and where its parts stand in the file."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
from typing import Any, Callable, Optional

from .. import language
from ..errors import BuildError, Spot, at
from .jumps import Jumps


class Source:
    """A function as it was written."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self.file = inspect.getsourcefile(function) or function.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise BuildError(
                f"build error: the source of `{self.name}` cannot be read (it was typed at a prompt of plain Python, or made "
                f"by `exec`): programs are read from their source, so put it into a file or a notebook cell"
            ) from error
        text = "".join(lines)
        dedented = textwrap.dedent(text)
        self.indent = len(lines[0]) - len(lines[0].lstrip())
        self.first = first
        module = ast.parse(dedented)
        node = module.body[0] if module.body else None
        if not isinstance(node, ast.FunctionDef):
            raise BuildError(f"build error: {self.file}:{first}: a program is a plain function: `def {self.name}(...)`")
        self.tree = node
        self.closure = inspect.getclosurevars(function).nonlocals
        self.globals = function.__globals__

    def spot(self, node: ast.AST) -> Spot:
        line = getattr(node, "lineno", 1) + self.first - 1
        column = getattr(node, "col_offset", 0) + self.indent + 1
        return (self.file, line, column, "")

    def fail(self, node: ast.AST, message: str) -> BuildError:
        error = at("BuildError", message, self.spot(node))
        assert isinstance(error, BuildError)
        return error

    def lookup(self, name: str) -> Any:
        """What a name stands for outside the function; raises `KeyError`."""
        for table in (self.closure, self.globals, vars(builtins)):
            if name in table:
                return table[name]
        raise KeyError(name)

    def jumps(self) -> Jumps:
        """What rewrites `break`, `continue` and `return`."""
        taken = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)} | set(self.parameters)
        return Jumps(self.is_parallel, self.fail, taken)

    def is_parallel(self, loop: ast.stmt) -> bool:
        """Is it a loop over `par`, by whatever name that was imported?"""
        head = loop.iter if isinstance(loop, ast.For) else None
        if not isinstance(head, ast.Call):
            return False
        names, node = [], head.func
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        try:
            found = self.lookup(node.id)
        except KeyError:
            return False
        for name in reversed(names):
            found = getattr(found, name, None)
        return found is language.par

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        found = dict(self.function.__annotations__)
        scope = {**self.globals, **self.closure}
        for name, annotation in found.items():
            if isinstance(annotation, str):
                try:
                    found[name] = eval(annotation, scope)  # noqa: S307 - the user's own annotation
                except Exception:  # whatever it is, it says nothing of the type
                    found[name] = None
        return found

    @functools.cached_property
    def parameters(self) -> list[str]:
        arguments = self.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
            raise self.fail(self.tree, "a program has plain parameters: no `*args`, `**kwargs`, `*` or `/`")
        return [argument.arg for argument in arguments.args]


def source_of(function: Callable[..., Any]) -> Source:
    """The source of a function, read once. It is kept by the function itself, so that both go together."""
    known: Optional[Source] = getattr(function, "__ebbtide_source__", None)
    if known is None or known.function is not function:
        known = Source(function)
        function.__ebbtide_source__ = known  # type: ignore[attr-defined]
    return known
