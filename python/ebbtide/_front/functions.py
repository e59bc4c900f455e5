"""Functions of `math` and NumPy that programs know, by the function itself: a name may be imported in any way."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

#: Elementary functions of one float.
MATH: dict[Any, str] = {}
#: Elementary functions of two floats.
MATH2: dict[Any, str] = {math.atan2: "atan2", math.pow: "powf", math.hypot: "hypot"}
#: Operations on one float.
UNARY: dict[Any, str] = {}
#: Everything else: the name of a method of the translator.
SPECIAL: dict[Any, str] = {}

_SAME = {
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "exp": "exp",
    "exp2": "exp2", "expm1": "exp_m1", "log": "ln", "log1p": "ln_1p", "log2": "log2", "log10": "log10", "cbrt": "cbrt",
    "erf": "erf", "asin": "asin", "acos": "acos", "atan": "atan",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan",
}  # fmt: skip
for _name, _function in _SAME.items():
    for _module in (math, np):
        if hasattr(_module, _name):
            MATH[getattr(_module, _name)] = _function
for _name, _function in {"arctan2": "atan2", "atan2": "atan2", "power": "powf", "hypot": "hypot"}.items():
    if hasattr(np, _name):
        MATH2[getattr(np, _name)] = _function

UNARY.update({math.sqrt: "sqrt", np.sqrt: "sqrt", np.floor: "floor", np.ceil: "ceil", np.trunc: "trunc", np.fix: "trunc"})
UNARY.update({math.fabs: "abs", np.fabs: "abs"})

_SPECIAL: dict[str, list[Callable[..., Any]]] = {
    "absolute": [abs, np.abs],
    "python_min": [min],
    "python_max": [max],
    "numpy_minimum": [np.minimum],
    "numpy_maximum": [np.maximum],
    "fmin": [np.fmin],
    "fmax": [np.fmax],
    "where": [np.where],
    "clip": [np.clip],
    "sign": [np.sign],
    "copysign": [math.copysign, np.copysign],
    "square": [np.square],
    "rint": [np.rint, np.round, np.around],
    "builtin_round": [round],
    "floor_to_int": [math.floor],
    "ceil_to_int": [math.ceil],
    "trunc_to_int": [math.trunc],
    "fmod": [math.fmod, np.fmod],
    "floored_mod": [np.mod, np.remainder],
    "is_nan": [math.isnan, np.isnan],
    "is_inf": [math.isinf, np.isinf],
    "is_finite": [math.isfinite, np.isfinite],
    "length": [len],
}
for _method, _callables in _SPECIAL.items():
    for _callable in _callables:
        SPECIAL[_callable] = _method


def is_pythons(function: Any) -> bool:
    """Is it a function of Python's own, which gives floats of Python's? Those of NumPy give floats with a type."""
    return getattr(function, "__module__", None) == "math"


def known_names() -> str:
    names = sorted({getattr(f, "__name__", "?") for f in (*MATH, *MATH2, *UNARY, *SPECIAL)})
    return ", ".join(names)
