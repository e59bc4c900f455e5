"""Types of parameters: element types, arrays of a rank, dataclasses of arrays."""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any, Optional, Union

import numpy as np


class DType:
    """An element type. Outside programs it makes a scalar of NumPy; inside it converts, as ``astype`` does."""

    def __init__(self, name: str, numpy_type: type) -> None:
        self.name = name
        self.numpy = numpy_type
        self.dtype = np.dtype(numpy_type)

    def __call__(self, value: Any) -> Any:
        return np.asarray(value).astype(self.numpy)[()]

    def __repr__(self) -> str:
        return self.name


f32 = DType("f32", np.float32)
f64 = DType("f64", np.float64)
i32 = DType("i32", np.int32)
i64 = DType("i64", np.int64)
u32 = DType("u32", np.uint32)

#: The name of each element type in programs, by NumPy's.
NAMES: dict[str, str] = {
    "float32": "f32",
    "float64": "f64",
    "int32": "i32",
    "int64": "i64",
    "uint32": "u32",
    "bool": "bool",
}
NUMPY: dict[str, type] = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "u32": np.uint32,
    "bool": np.bool_,
}
FLOATS = ("f32", "f64")
INTEGERS = ("i32", "i64", "u32", "int")


def element_type(object: Any) -> Optional[str]:
    """The element type that an object names: ``f32``, ``np.float32``, ``float``, ``"float32"``."""
    if isinstance(object, DType):
        return object.name
    if object is float:
        return "f64"
    if object is bool:
        return "bool"
    if object is int:
        return "i64"
    try:
        return NAMES.get(np.dtype(object).name)
    except TypeError:
        return None


@dataclasses.dataclass(frozen=True)
class ArrayType:
    """Arrays of a rank, or of an element type, or both; what is ``None`` comes from the call."""

    ty: Optional[str]
    rank: Optional[int]
    #: The last extents, where elements are small vectors or matrices; they count among the dimensions.
    item: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class SmallType:
    """Small vectors and matrices: ``Vec3[f64]``, ``Mat2[f32]``."""

    ty: str
    shape: tuple[int, ...]


class _Small:
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.shape = shape

    def __getitem__(self, element: Any) -> SmallType:
        ty = element_type(element)
        if ty is None:
            raise TypeError(f"small values have components f32, f64, i32, i64, u32 or bool, not {element!r}")
        return SmallType(ty, self.shape)

    def __repr__(self) -> str:
        return self.name


Vec2, Vec3, Vec4 = (_Small(f"Vec{n}", (n,)) for n in (2, 3, 4))
Mat2, Mat3, Mat4 = (_Small(f"Mat{n}", (n, n)) for n in (2, 3, 4))


class _Rank:
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __getitem__(self, element: Any) -> ArrayType:
        if isinstance(element, SmallType):
            return ArrayType(element.ty, self.rank + len(element.shape), element.shape)
        ty = element_type(element)
        if ty is None:
            raise TypeError(f"arrays of programs have elements f32, f64, i32, i64, u32 or bool, small vectors or matrices, not {element!r}")
        return ArrayType(ty, self.rank)

    def __repr__(self) -> str:
        return f"Array{self.rank}"


Array0, Array1, Array2, Array3, Array4, Array5, Array6 = (_Rank(rank) for rank in range(7))


@dataclasses.dataclass(frozen=True)
class ScalarType:
    ty: str
    #: A ``float`` of Python's, which takes the type of the floats that it meets, as in NumPy 2.
    python: bool = False


@dataclasses.dataclass(frozen=True)
class StructType:
    """A dataclass of arrays and scalars."""

    cls: type
    fields: tuple[tuple[str, "Kind"], ...]


Kind = Union[ArrayType, ScalarType, StructType]


def kind_of_annotation(annotation: Any) -> Optional[Kind]:
    """What an annotation says of a parameter; ``None`` if nothing."""
    if annotation is float:
        return ScalarType("f64", python=True)
    if annotation is bool:
        return ScalarType("bool")
    if annotation is int:
        return ScalarType("int")
    if isinstance(annotation, ArrayType):
        return annotation
    if isinstance(annotation, _Rank):
        return ArrayType(None, annotation.rank)
    if isinstance(annotation, DType):
        return ScalarType(annotation.name)
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        ty = element_type(annotation)
        return ScalarType(ty) if ty else None
    if annotation is np.ndarray:
        return ArrayType(None, None)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return struct_of(annotation)
    if typing.get_origin(annotation) is np.ndarray:
        # numpy.typing.NDArray[np.float64]
        arguments = typing.get_args(annotation)
        inner = typing.get_args(arguments[1]) if len(arguments) > 1 else ()
        return ArrayType(element_type(inner[0]) if inner else None, None)
    return None


@functools.lru_cache(maxsize=None)
def struct_of(cls: type) -> StructType:
    hints = typing.get_type_hints(cls)
    fields = []
    for field in dataclasses.fields(cls):
        kind = kind_of_annotation(hints.get(field.name))
        if kind is not None and not field.metadata.get("skip", False):
            fields.append((field.name, kind))
    return StructType(cls, tuple(fields))


@functools.lru_cache(maxsize=None)
def fields_of(cls: type) -> tuple[str, ...]:
    """The fields of a dataclass that programs see: those annotated as arrays, numbers or dataclasses of these, but for
    ``field(metadata={"skip": True})``."""
    return tuple(name for name, _ in struct_of(cls).fields)


def kind_of_value(value: Any) -> Optional[Kind]:
    """What an argument is."""
    if isinstance(value, np.ndarray):
        return ArrayType(NAMES.get(value.dtype.name), value.ndim)
    if isinstance(value, bool):
        return ScalarType("bool")
    if isinstance(value, float):
        return ScalarType("f64", python=type(value) is float)
    if isinstance(value, int):
        return ScalarType("int")
    if isinstance(value, np.generic):
        ty = NAMES.get(value.dtype.name)
        return ScalarType(ty) if ty else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kinds = tuple((name, kind_of_value(getattr(value, name))) for name in fields_of(type(value)))
        return StructType(type(value), typing.cast(Any, kinds))
    if hasattr(value, "__dlpack__") and hasattr(value, "dtype"):
        name = str(value.dtype).rsplit(".", 1)[-1]
        return ArrayType(NAMES.get(name), len(value.shape))
    return None


def merge(declared: Optional[Kind], given: Optional[Kind]) -> Optional[Kind]:
    """What a parameter is: what its annotation says, and the rest from the argument."""
    if isinstance(declared, ArrayType) and isinstance(given, ArrayType):
        return ArrayType(declared.ty or given.ty, given.rank if declared.rank is None else declared.rank, declared.item)
    if isinstance(declared, StructType) and isinstance(given, StructType):
        inner = dict(given.fields)
        return StructType(declared.cls, tuple((n, typing.cast(Any, merge(k, inner.get(n)))) for n, k in declared.fields))
    return declared or given


def is_complete(kind: Optional[Kind]) -> bool:
    if isinstance(kind, ArrayType):
        return kind.ty is not None and kind.rank is not None
    if isinstance(kind, StructType):
        return all(is_complete(inner) for _, inner in kind.fields)
    return kind is not None
