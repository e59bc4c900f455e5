"""What names and expressions stand for while a program is built."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Optional, Union

from .ranges import Linear


@dataclasses.dataclass
class Const:
    """A number known now. Without a type it takes that of what it meets, as Python's numbers do beside NumPy's."""

    value: Union[bool, int, float]
    ty: Optional[str] = None


@dataclasses.dataclass
class Value:
    """A value of the program; `emit` computes it at the place where it is called."""

    ty: str
    emit: Callable[[], int]
    #: Of an integer: what it is as a sum, for bounds.
    form: Optional[Linear] = None
    #: Can it be computed anywhere without an error? (Indices can be out of bounds, divisors zero.)
    safe: bool = True
    #: The variable that it is, where that got its type from a number without one.
    weak: Optional["Local"] = None
    #: The same value in another type, where it is chosen among numbers without one.
    adapt: Optional[Callable[[str], Optional["Value"]]] = None
    #: A float of Python's: computed in f64, and of the type of the floats that it meets.
    python: bool = False


Scalar = Union[Const, Value]


@dataclasses.dataclass
class Small:
    """A small vector or matrix; `emit` computes its components, last dimension fastest, at its first call."""

    shape: tuple[int, ...]
    ty: str
    emit: Callable[[], list[int]]
    safe: bool = True
    python: bool = False
    #: The array that it is a row of: a view, in NumPy.
    view: Optional["Array"] = None
    #: Has it a name? Another name would be another name of the same memory, in NumPy.
    named: bool = False
    #: Is it the parameter of a function, and so the memory of the caller, in NumPy?
    parameter: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclasses.dataclass(eq=False)
class SmallLocal:
    """A variable that is a small vector or matrix."""

    ids: list[int]
    ty: str
    shape: tuple[int, ...]
    #: Is it the parameter of a function, whose memory is the caller's in NumPy?
    parameter: bool = False


@dataclasses.dataclass(eq=False)
class Several:
    """What a function returns that returns several values."""

    items: list[Any]


@dataclasses.dataclass(eq=False)
class Array:
    """An array: a parameter or a temporary."""

    id: int
    ty: str
    rank: int
    name: str
    written: bool = False
    #: The array of the caller that this parameter of a callee is.
    outer: Optional["Array"] = None
    #: Its last extents, where they are known.
    item: tuple[int, ...] = ()

    def write(self) -> None:
        array: Optional[Array] = self
        while array is not None:
            array.written = True
            array = array.outer


@dataclasses.dataclass(eq=False)
class Named:
    """A value with a name that never changes."""

    id: int
    ty: str
    form: Optional[Linear] = None
    python: bool = False


@dataclasses.dataclass(eq=False)
class Local:
    """A variable."""

    id: int
    ty: str
    line: int
    #: Where it is declared, for what is learnt of its type.
    key: Any = None
    weak: bool = False
    #: Is all that is assigned to it a float of Python's?
    python: bool = False
    #: Was it made for an `if` whose arms both assign it?
    hoisted: bool = False


@dataclasses.dataclass(eq=False)
class LoopVariable:
    id: int
    form: Linear
    ty: str = "int"


@dataclasses.dataclass(eq=False)
class Struct:
    """A dataclass of arrays and scalars."""

    name: str
    fields: dict[str, Any]


@dataclasses.dataclass(eq=False)
class Object:
    """Something of the host's: a module, a function, a program."""

    value: Any


@dataclasses.dataclass(eq=False)
class Gone:
    """A name that was assigned in a block that has ended."""

    line: int
    what: str


class Retype(Exception):
    """A variable that began with a number without a type has another one: build again."""

    def __init__(self, key: Any, ty: Any) -> None:
        super().__init__(key, ty)
        self.key, self.ty = key, ty
