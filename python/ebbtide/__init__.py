"""Differentiable compute programs in which a checkpoint is a first-class thing.

>>> import ebbtide as eb, numpy as np
>>> from ebbtide import par
>>> @eb.program                                     # doctest: +SKIP
... def energy(u, loss):
...     for i in par(len(u)):
...         loss[()] += 0.5 * u[i] * u[i]
>>> g = energy.grad("loss", wrt="u")                # doctest: +SKIP
>>> value, du = g(np.ones(4), np.zeros(()))         # doctest: +SKIP
"""

from __future__ import annotations

import os as _os
from typing import Any as _Any, Optional as _Optional

from . import _cuda, _native, errors, schedules
from ._native import DeviceArray, Ir, Yielded, device_name
from ._types import (
    Array0, Array1, Array2, Array3, Array4, Array5, Array6, Mat2, Mat3, Mat4, Vec2, Vec3, Vec4, f32, f64, i32, i64, u32,
)  # fmt: skip
from .derivatives import Bound, Derivative
from .errors import BuildError, Cancelled, DeviceError, Error, LaunchError, RunError, StorageError
from .language import (
    checkpoint,
    compact,
    copy,
    fill,
    fma,
    matmul,
    max_assign,
    min_assign,
    par,
    rand,
    scan,
    scatter_unique,
    scheduled,
    select,
    swap,
)
from .plans import Plan
from .program import Func, Program, func, program
from .reversal import Reversal, reverse
from .runs import Run

__version__ = "0.2.0"


def device(name: str) -> str:
    """Makes a device the default one: ``cpu``, ``cuda``, ``interpreter``, or ``checked``, which stops at the first NaN."""
    if name == "cuda":
        _cuda.find_compiler()
    return _native.set_device(name)


def to_device(array: _Any, device: _Optional[str] = None) -> DeviceArray:
    """A copy of an array of the host in the memory of a device (``"cuda"``): for those without another library that has
    arrays on GPUs. ``array.numpy()`` copies back."""
    if device == "cuda":
        _cuda.find_compiler()
    return _native.to_device(array, device)


if _os.environ.get("EBBTIDE_DEVICE") == "cuda":
    _cuda.find_compiler()


# The threads of a device do not exist in a child of `fork`: it gets a device of its own.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_native.after_fork)

__all__ = [
    "Array0", "Array1", "Array2", "Array3", "Array4", "Array5", "Array6", "Bound", "BuildError", "Cancelled", "Derivative", "DeviceArray", "DeviceError", "Error",
    "Func", "Ir", "LaunchError", "Mat2", "Mat3", "Mat4", "Plan", "Program", "Reversal", "Run", "RunError", "StorageError", "Vec2", "Vec3", "Vec4", "Yielded", "checkpoint",
    "compact", "copy", "device", "device_name", "errors", "f32", "f64", "fill", "fma", "func", "i32", "i64", "matmul",
    "max_assign", "min_assign", "par", "program", "rand", "reverse", "scan", "scatter_unique", "schedules", "scheduled",
    "select", "swap", "to_device", "u32",
]  # fmt: skip
