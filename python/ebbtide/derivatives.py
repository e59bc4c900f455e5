"""Derivatives of programs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from ._native import DerivativeBase
from .plans import Plan

if TYPE_CHECKING:
    from .program import Program

Size = Union[int, str]

_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def byte_count(size: Size) -> int:
    """A number of bytes: ``65536``, ``"64KiB"``, ``"1.5 GiB"``."""
    if isinstance(size, int):
        if size < 0:
            raise ValueError(f"{size} bytes: a size is not negative")
        return size
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", size)
    if not found or found[2].lower() not in _UNITS:
        raise ValueError(f"{size!r} is no number of bytes: write 65536, '64KiB', '1.5GiB'")
    return int(float(found[1]) * _UNITS[found[2].lower()])


class Derivative(DerivativeBase):
    """A derivative of a program, compiled when it is first called, once for each signature.

    ``grad``: ``value, grads = g(...)``; ``vjp``: ``value, grads = v(cotangent, ...)``; ``jvp``: ``value, tangent =
    j(direction, ...)``; ``hvp``: ``products = h(direction, ...)``. ``grads`` has one entry for each name of ``wrt``; it is the
    entry itself if ``wrt`` was a string. The caller's arrays stay as they are.
    """

    program: "Program"
    kind: str
    of: str
    wrt: list[str]
    #: What the last run did: passes advanced, recorded, reversed, states stored and loaded.
    ran: dict[str, int]
    _single: bool
    _values: list[str]
    _durable: Optional[tuple[str, float]]
    _progress: Optional[Callable[[int, Optional[int]], Any]]
    _options: dict[str, Any]
    _wrt: Union[str, Sequence[str]]

    def __new__(
        cls,
        program: "Program",
        kind: str,
        of: str,
        wrt: Union[str, Sequence[str]],
        *,
        memory: Optional[Size] = None,
        schedule: Optional[Union[str, tuple[Any, ...]]] = None,
        host_memory: Optional[Size] = None,
        disk: Optional[tuple[Union[str, os.PathLike[str]], Size]] = None,
        values: Sequence[str] = (),
        checked: bool = False,
        on_yield: Optional[Callable[..., Any]] = None,
    ) -> "Derivative":
        names = [wrt] if isinstance(wrt, str) else list(wrt)
        for name in [of, *names, *values]:
            if not isinstance(name, str):
                raise TypeError(f"`{kind}` takes the names of parameters, as in `.{kind}(\"loss\", wrt=\"u\")`, not a `{type(name).__name__}`")
        wanted = [of, *values] if kind in ("grad", "vjp") else []
        chosen = None
        if schedule is not None:
            parts = (schedule,) if isinstance(schedule, str) else tuple(schedule)
            chosen = (parts[0], int(parts[1]) if len(parts) > 1 else 0, int(parts[2]) if len(parts) > 2 else 1)
        self: Any = super().__new__(
            cls,
            program,
            kind,
            of,
            names,
            wanted,
            None if memory is None else byte_count(memory),
            chosen,
            None if host_memory is None else byte_count(host_memory),
            None if disk is None else (os.fspath(disk[0]), byte_count(disk[1])),
            checked,
            on_yield,
        )
        self.program = program
        self.kind = kind
        self.of = of
        self.wrt = names
        self._single = isinstance(wrt, str)
        self._values = list(values)
        self._durable = None
        self._progress = None
        self._options = {
            "memory": memory, "schedule": schedule, "host_memory": host_memory, "disk": disk, "values": values,
            "checked": checked, "on_yield": on_yield,
        }  # fmt: skip
        self._wrt = wrt
        self.ran = {}
        made: Derivative = self
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def _copy(self, **changes: Any) -> "Derivative":
        other = Derivative(self.program, self.kind, self.of, self._wrt, **{**self._options, **changes})
        other._durable, other._progress = self._durable, self._progress
        return other

    def with_memory(self, memory: Size) -> "Derivative":
        """The same derivative under another budget."""
        return self._copy(memory=memory)

    def durable(self, directory: Union[str, os.PathLike[str]], every: float = 10.0) -> "Derivative":
        """The same derivative in a directory, so that it survives its process: killed and called again with the same
        arguments, it continues from its last state, to the same bits. The state is written every ``every`` seconds."""
        if self.kind == "jvp":
            raise ValueError("a jvp does not run durably: it keeps no states and has nothing to continue from")
        other = self._copy()
        other._durable = (os.fspath(directory), float(every))
        return other

    def progress(self, callback: Callable[[int, Optional[int]], Any]) -> "Derivative":
        """The same derivative, which calls ``callback(done, total)`` now and then and at its end; ``total`` is ``None`` where it
        is not known. `ebbtide.progress.tqdm()` makes such a callback. An exception ends the run."""
        other = self._copy()
        other._progress = callback
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        seed: Any = None
        direction: Optional[dict[str, Any]] = None
        if self.kind == "vjp":
            if not args:
                raise TypeError("a vjp takes the cotangent of its output first: v(cotangent, ...)")
            seed, args = self._seed(args[0]), args[1:]
        elif self.kind in ("jvp", "hvp"):
            if not args or not isinstance(args[0], Mapping):
                raise TypeError(f"a {self.kind} takes a direction first, by name: {{{self.wrt[0]!r}: ...}}")
            direction, args = dict(args[0]), args[1:]
        bound = self.program._bind(*args, **kwargs)
        values, grads, self.ran = self._run(bound, seed, direction, self._durable, self._progress)
        if self.kind == "hvp":
            return self._pick(grads)
        if self.kind == "jvp":
            return values[0], grads[0]
        value: Any = values[0] if len(values) == 1 else tuple(values)
        return value, self._pick(grads)

    def _seed(self, seed: Any) -> Any:
        # A number for an output of rank 0, in its type.
        if isinstance(seed, (int, float, np.generic)) and not isinstance(seed, np.ndarray):
            ty = next((p[1] for p in self._params() if p[0] == self.of), "f64")
            return np.asarray(seed, dtype=np.float32 if ty == "f32" else np.float64)
        return seed

    def _params(self) -> list[Any]:
        built = self.program._built()
        return list(built[-1].params) if built else []

    def _pick(self, grads: Sequence[Any]) -> Any:
        return grads[0] if self._single else tuple(grads)

    def bind(self, variable: str, **fixed: Any) -> "Bound":
        """The gradient as a function of one parameter, the others fixed: for SciPy and its kin."""
        if self.kind != "grad":
            raise ValueError("only a gradient can be bound")
        return Bound(self, variable, fixed)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """What a run with these arguments would do; it runs nothing. ``print`` it, or let a notebook show it."""
        return Plan(self._plan(self.program._bind(*args, **kwargs)))

    def source(self, *args: Any, **kwargs: Any) -> Optional[str]:
        """The generated source for these arguments, where the device generates any."""
        return self._source(self.program._bind(*args, **kwargs))

    def ir(self, *args: Any, **kwargs: Any) -> str:
        """The derivative as a program, in text."""
        return self.program.ir(*args, **kwargs).derivative_text(self.kind, self.of, self.wrt, [self.of, *self._values] if self.kind in ("grad", "vjp") else [])

    def __str__(self) -> str:
        return self.ir()

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.of} of program {self.program.name} by {', '.join(self.wrt)}>"


class Bound:
    """A gradient as a function of one array, flat as SciPy gives it.

    >>> scipy.optimize.minimize(g.bind("u", target=target, ...).fun, u0.ravel(), jac=True)    # doctest: +SKIP

    Arrays that the program writes are given once and stay as they are: a gradient works on copies.
    """

    def __init__(self, gradient: Derivative, variable: str, fixed: dict[str, Any]) -> None:
        self.gradient, self.variable = gradient, variable
        if variable not in gradient.wrt:
            raise ValueError(f"the gradient is not by `{variable}`: it is by {', '.join(gradient.wrt)}")
        if variable not in fixed:
            raise ValueError(f"give a first `{variable}` too: its shape and type are taken from it")
        self.fixed = dict(fixed)
        self.model = np.asarray(self.fixed.pop(variable))

    def fun(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at ``x``."""
        u = np.ascontiguousarray(np.asarray(x, dtype=self.model.dtype).reshape(self.model.shape))
        value, grads = self.gradient(**{self.variable: u}, **self.fixed)
        if isinstance(value, tuple):
            value = value[0]
        grad = grads if self.gradient._single else grads[self.gradient.wrt.index(self.variable)]
        return float(value), np.asarray(grad, dtype=np.float64).ravel()
