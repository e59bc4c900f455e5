"""Programs and functions: what the decorators make."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, Sequence, Union, overload

from . import _front
from ._cuda import find_compiler
from ._front.source import source_of
from ._native import Ir, ProgramBase, Yielded
from ._types import is_complete, kind_of_annotation, kind_of_value, merge
from .derivatives import Derivative
from .runs import Run


class Program(ProgramBase):
    """A program: call it with NumPy arrays, which it changes in place (on a GPU, with arrays that are there), and numbers.

    It is built when it is first called, once for each signature (element types and ranks), and compiled for the device.
    A call returns ``None``, or where the program yielded.
    """

    function: Callable[..., Any]
    name: str
    _device: Optional[str]
    _fma: bool
    _names: list[str]

    def __new__(cls, function: Callable[..., Any], device: Optional[str] = None, fma: bool = False) -> "Program":
        if device == "cuda":
            find_compiler()
        parameters = list(inspect.signature(function).parameters.values())
        if parameters and parameters[0].name == "self" and is_method(function):
            raise TypeError(
                f"`{function.__qualname__}` is a method, and a program is a function: define it outside of the class, and pass arrays, "
                "numbers or a dataclass of these"
            )
        empty = inspect.Parameter.empty
        defaults = [(p.default is not empty, None if p.default is empty else p.default) for p in parameters]
        self: Any = super().__new__(cls, function.__name__, [p.name for p in parameters], defaults, device)
        self.function = function
        self.name = function.__name__
        self._device = device
        self._fma = fma
        self._names = [p.name for p in parameters]
        functools.update_wrapper(self, function)
        made: Program = self
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def _build(self, arguments: Sequence[Any]) -> Ir:
        source = source_of(self.function)
        kinds = []
        for name, argument in zip(source.parameters, arguments):
            kinds.append(merge(kind_of_annotation(source.annotations.get(name)), kind_of_value(argument)))
        ir = _front.build(self, kinds)  # type: ignore[arg-type]
        return ir.with_fma() if self._fma else ir

    def ir(self, *args: Any, **kwargs: Any) -> Ir:
        """The program in the form that devices run, for these arguments; without any, from its annotations alone."""
        if args or kwargs:
            return self._ir(self._bind(*args, **kwargs))
        source = source_of(self.function)
        kinds = [kind_of_annotation(source.annotations.get(name)) for name in source.parameters]
        if not all(is_complete(kind) for kind in kinds):
            built = self._built()
            if built:
                return built[-1]
        ir = _front.build(self, kinds)  # type: ignore[arg-type]
        return ir.with_fma() if self._fma else ir

    def __str__(self) -> str:
        return str(self.ir())

    def __repr__(self) -> str:
        return f"<program {self.name}>"

    def source(self, *args: Any, **kwargs: Any) -> Optional[str]:
        """The generated source for these arguments, where the device generates any."""
        return self._source(self._bind(*args, **kwargs))

    def with_fma(self) -> "Program":
        """The same program with multiply-adds: a product that one sum takes is rounded once, together with it."""
        return Program(self.function, device=self._device, fma=True)

    # -- derivatives -------------------------------------------------------------------------------------------------

    def grad(self, of: str, wrt: Union[str, Sequence[str]], **options: Any) -> Derivative:
        """The gradient of an output of rank 0: ``value, grads = g(...)``.

        Options: ``memory="64MiB"`` (at most so many bytes beyond the caller's arrays and the results),
        ``schedule=("revolve", 10)``, ``host_memory=``, ``disk=("dir", "10GiB")``, ``values=["u"]`` (their final values too),
        ``on_yield=callback``, ``checked=True``.
        """
        return Derivative(self, "grad", of, wrt, **options)

    def vjp(self, of: str, wrt: Union[str, Sequence[str]], **options: Any) -> Derivative:
        """The product of a cotangent of any output with its Jacobian: ``value, grads = v(cotangent, ...)``."""
        return Derivative(self, "vjp", of, wrt, **options)

    def jvp(self, of: str, wrt: Union[str, Sequence[str]], **options: Any) -> Derivative:
        """How an output moves when inputs move: ``value, tangent = j({"u": du}, ...)``."""
        return Derivative(self, "jvp", of, wrt, **options)

    def hvp(self, of: str, wrt: Union[str, Sequence[str]], **options: Any) -> Derivative:
        """How the gradient of an output of rank 0 moves when inputs move: ``products = h({"u": du}, ...)``."""
        return Derivative(self, "hvp", of, wrt, **options)

    # -- yields ------------------------------------------------------------------------------------------------------

    def run(self, *args: Any, **kwargs: Any) -> Run:
        """A run of a program that yields: ``with p.run(...) as run: for at in run: ...``."""
        return Run(self, self._bind(*args, **kwargs))

    def drive(self, callback: Callable[[Yielded], Any], *args: Any, **kwargs: Any) -> Optional[Yielded]:
        """Runs the program; after each yield ``callback(at)`` repairs what must be repaired.

        It returns ``None`` to resume, a label to continue there, or ``False`` to leave the program where it stands.
        """
        with self.run(*args, **kwargs) as run:
            for at in run:
                answer = callback(at)
                if answer is False:
                    return at
                if answer is not None:
                    run.to(answer)
        return None


class Func:
    """A function that computes one value; programs call it, and so does Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<func {self.name}>"


def is_method(function: Callable[..., Any]) -> bool:
    """Is this function defined in the body of a class?"""
    around = function.__qualname__.rpartition(".")[0]
    return around != "" and not around.endswith("<locals>")


@overload
def program(function: Callable[..., Any]) -> Program: ...
@overload
def program(*, device: Optional[str] = None, fma: bool = False) -> Callable[[Callable[..., Any]], Program]: ...
def program(function: Any = None, *, device: Optional[str] = None, fma: bool = False) -> Any:
    """Makes a program of a function: its source is read and compiled. ``program.function`` is the function itself."""
    if function is None:
        return lambda function: Program(function, device=device, fma=fma)
    return Program(function, device=device, fma=fma)


def func(function: Callable[..., Any]) -> Func:
    """Makes a function known to programs: it computes one value from numbers and elements of arrays."""
    return Func(function)


