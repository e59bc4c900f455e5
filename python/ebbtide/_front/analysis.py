"""Which names a piece of source assigns and reads."""

from __future__ import annotations

import ast
from typing import Sequence


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
