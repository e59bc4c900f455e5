"""The words of programs beside Python's own. Outside programs they do the same to NumPy arrays, one element at a time,
so that a program without its decorator is plain Python with the same meaning."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Iterable, Iterator, Optional, Sequence, Union

import numpy as np

from ._types import f64


def par(*ranges: Union[int, Iterable[int]], relaxed: bool = False) -> Any:
    """A parallel loop: ``for i in par(n)``, ``for i, j in par(range(1, n - 1), m)``, up to four ranges.

    The iterations run in any order or at once, so no two may touch the same element while one writes it (a build error),
    unless all combine into it: ``loss[()] += x``. The order of such sums is part of the program's meaning;
    ``relaxed=True`` gives that up for speed where sums go to elements that depend on data.
    """
    each = [range(r) if isinstance(r, (int, np.integer)) else r for r in ranges]
    return iter(each[0]) if len(each) == 1 else itertools.product(*each)


def scheduled(steps: range, **how: Any) -> range:
    """A sequential loop with a word on how it is reversed: ``for t in scheduled(range(n), revolve=10)``.

    One of ``store_all=True``, ``periodic=32``, ``revolve=10``, ``online=10``, ``mixed=10``.
    """
    return steps


def swap(a: np.ndarray, b: np.ndarray) -> None:
    """Exchanges two arrays of equal type and shape; inside programs no element moves."""
    kept = a.copy()
    a[...] = b
    b[...] = kept


def fill(a: np.ndarray, value: Any) -> None:
    """Gives every element one value."""
    a[...] = value


def copy(source: np.ndarray, target: np.ndarray) -> None:
    """Copies all elements of one array to another of equal type and shape."""
    target[...] = source


def select(condition: Any, yes: Any, no: Any) -> Any:
    """``yes if condition else no``, both computed."""
    return yes if condition else no


class _Element:
    def __init__(self, array: np.ndarray, index: Any) -> None:
        self.array, self.index = array, index


def min_assign(array: np.ndarray, index: Any, value: Any) -> None:
    """Combines into an element: ``a[index] = fmin(a[index], value)``. In a parallel loop it is a reduction."""
    array[index] = np.fmin(array[index], value)


def max_assign(array: np.ndarray, index: Any, value: Any) -> None:
    """Combines into an element: ``a[index] = fmax(a[index], value)``. In a parallel loop it is a reduction."""
    array[index] = np.fmax(array[index], value)


def scatter_unique(array: np.ndarray, index: Any, value: Any) -> None:
    """``array[index] = value`` in a parallel loop where all indices differ; one written twice is a run error."""
    array[index] = value


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once. Outside programs it is computed in twice the precision or so."""
    return type(a)(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))


def rand(seed: int, index: int, dtype: Any = f64) -> float:
    """A uniform random number in [0, 1) that depends on its two integers alone. Inside programs only."""
    raise TypeError("`rand` is known inside programs only")


def matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """``c = a · b``; an element of the product adds its terms in ascending order, each with one ``fma``."""
    np.matmul(a, b, out=c)


def scan(x: np.ndarray, out: np.ndarray) -> None:
    """Running sums: ``out[i] = x[0] + … + x[i]``."""
    np.cumsum(x, out=out)


def compact(flags: np.ndarray, out: np.ndarray, count: np.ndarray) -> None:
    """The indices of what is not zero, in order, and their number."""
    found = np.flatnonzero(flags)
    room = min(len(found), len(out))
    out[:room] = found[:room]
    count[()] = len(found)


@contextlib.contextmanager
def checkpoint(
    label: Any,
    yield_on: Optional[np.ndarray] = None,
    undo: Union[bool, Sequence[np.ndarray]] = False,
) -> Iterator[None]:
    """A labelled region: ``with checkpoint(Stage.SOLVE, yield_on=flag):``.

    The label is a member of an ``enum.Enum``. If the flag, an array of rank 0, is not zero at the end of the region, the
    program yields; ``undo`` undoes what the region wrote (``True``), or the arrays named.
    """
    yield
