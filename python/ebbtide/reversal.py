"""For those who have a step and its adjoint in Python: reverse them under any schedule."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _native
from ._native import Schedule
from .derivatives import Size, byte_count
from .errors import StorageError


@dataclasses.dataclass
class Reversal:
    """What a reversal gives."""

    #: The last state of the forward sweep.
    state: Any
    #: The adjoint of the first state, and whatever ``adjoint`` accumulated.
    adjoint: Any
    #: Steps run forward without being recorded.
    advanced: int = 0
    #: Steps run forward and recorded.
    recorded: int = 0


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers of a tree of tuples, lists, dictionaries and dataclasses."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [leaf for field in dataclasses.fields(tree) for leaf in leaves(getattr(tree, field.name))]
    return [tree]


def copied(tree: Any) -> Any:
    """The same tree with arrays of its own."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {key: copied(part) for key, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[copied(part) for part in tree])
    if isinstance(tree, (tuple, list)):
        return type(tree)(copied(part) for part in tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return dataclasses.replace(tree, **{f.name: copied(getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.init})
    return tree


def tree_bytes(tree: Any) -> int:
    return sum(leaf.nbytes if isinstance(leaf, np.ndarray) else 8 for leaf in leaves(tree))


def reverse(
    step: Callable[[int, Any], Any],
    adjoint: Callable[[int, Any, Any], Any],
    state: Any,
    steps: int,
    *,
    turn: Optional[Callable[[Any], Any]] = None,
    memory: Optional[Size] = None,
    slots: Optional[int] = None,
    schedule: Optional[Schedule] = None,
    in_place: bool = False,
    durable: Optional[Union[str, os.PathLike[str]]] = None,
    every: float = 60.0,
    name: Optional[str] = None,
) -> Reversal:
    """Runs ``steps`` steps and reverses them, keeping as many states as there is room for.

    ``step(k, state)`` gives the state after step ``k``; ``adjoint(k, state, bar)`` gets the state before step ``k`` and the
    adjoint of the state after it, and gives the adjoint of the state before it; ``turn(state)`` gives the adjoint of the last
    state (ones of its shape if it is not given). States and adjoints are NumPy arrays, or tuples, lists, dictionaries and
    dataclasses of them.

    How much is kept: ``memory="1GiB"`` (states and recorded states together), ``slots=10`` states, or any ``schedule`` of
    `ebbtide.schedules`; everything if nothing is said. A state is kept as it is, without a copy: ``step`` must give new
    arrays and leave those it gets alone. A step that works in place says ``in_place=True``; states are then copied when they
    are kept.

    ``durable="dir"`` keeps the run in a directory: killed and called again with the same arguments it continues, to the same
    bits. The frontier is written every ``every`` seconds. ``name`` says what is computed: a directory of another name, first
    state or schedule is refused.
    """
    if schedule is None:
        if slots is not None:
            schedule = Schedule.revolve(steps, slots)
        elif memory is not None:
            size = tree_bytes(state)
            schedule = Schedule.best(steps, byte_count(memory), size, size)
        else:
            schedule = Schedule.store_all(steps)
    elif schedule.steps not in (None, steps):
        raise ValueError(f"the schedule is for {schedule.steps} steps, not {steps}")
    start = turn if turn is not None else _ones
    if durable is not None:
        stepper = _Stepper(step, adjoint, start, state, steps, in_place)
        told = name or f"{step.__module__}.{step.__qualname__}"
        digest = hashlib.sha256(f"{told} {steps}".encode()).hexdigest()
        _native.run_durable(stepper, told, digest, schedule, os.fspath(durable), every)
        return Reversal(stepper.last, stepper.bar, stepper.advanced, stepper.recorded)
    return _drive(step, adjoint, start, state, steps, schedule, in_place)


def _ones(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return np.ones_like(state)
    if isinstance(state, dict):
        return {key: _ones(part) for key, part in state.items()}
    if isinstance(state, (tuple, list)):
        return type(state)(_ones(part) for part in state)
    return 1.0


def _drive(
    step: Callable[[int, Any], Any],
    adjoint: Callable[[int, Any, Any], Any],
    turn: Callable[[Any], Any],
    state: Any,
    steps: int,
    schedule: Schedule,
    in_place: bool,
) -> Reversal:
    """Carries the actions out. The numbers of actions are those of `Schedule._next`."""
    online = schedule.steps is None
    kept: dict[int, Any] = {}
    tape: list[Any] = []
    result = Reversal(None, None)
    bar: Any = None
    if in_place:
        state = copied(state)
    following = schedule._next
    while True:
        action = following()
        if action is None:
            break
        kind, first, second = action
        if kind == 0:  # advance
            last = min(second, steps)
            for k in range(first, last):
                state = step(k, state)
            result.advanced += last - first
            if online and last < second:
                schedule.end(last)
                online = False
        elif kind == 4:  # record
            last = min(second, steps)
            for k in range(first, last):
                tape.append(copied(state) if in_place else state)
                state = step(k, state)
            result.recorded += last - first
            if online and last < second:
                schedule.end(last)
                online = False
        elif kind == 5:  # reverse
            for k in range(second - 1, first - 1, -1):
                bar = adjoint(k, tape.pop(), bar)
        elif kind == 1:  # store
            kept[second] = copied(state) if in_place else state
        elif kind == 2:  # load
            state = copied(kept[second]) if in_place else kept[second]
        elif kind == 3:  # drop
            del kept[second]
        else:  # turn
            result.state = copied(state) if in_place else state
            bar = turn(result.state)
    result.adjoint = bar
    return result


class _Stepper:
    """The steps as the durable driver wants them."""

    def __init__(self, step: Any, adjoint: Any, turn: Any, state: Any, steps: int, in_place: bool) -> None:
        self.step, self.backwards, self.turned = step, adjoint, turn
        self.state = copied(state) if in_place else state
        self.steps, self.in_place = steps, in_place
        #: An adjoint is made of the classes that states are made of.
        self.classes = _classes(state, {})
        self.tape: list[Any] = []
        self.last: Any = None
        self.bar: Any = None
        self.advanced = self.recorded = 0

    def advance(self, first: int, last: int) -> None:
        state = self.state
        for k in range(first, last):
            state = self.step(k, state)
        self.state = state
        self.advanced += last - first

    def record(self, first: int, last: int) -> None:
        state, tape = self.state, []
        for k in range(first, last):
            tape.append(copied(state) if self.in_place else state)
            state = self.step(k, state)
        self.state = state
        self.tape += tape
        self.recorded += last - first

    def turn(self) -> None:
        self.last = copied(self.state)
        self.bar = self.turned(self.last)

    def reverse(self, first: int, last: int) -> None:
        bar = copied(self.bar) if self.in_place else self.bar
        for offset, k in enumerate(range(last - 1, first - 1, -1)):
            bar = self.backwards(k, self.tape[-1 - offset], bar)
        self.bar = bar
        del self.tape[len(self.tape) - (last - first) :]

    def save(self) -> list[tuple[str, bytes]]:
        return _pack(self.state)

    def restore(self, pieces: list[tuple[str, bytes]]) -> None:
        self.state = _unpack(pieces, self.classes)

    def save_adjoint(self) -> list[tuple[str, bytes]]:
        return _pack((self.last, self.bar))

    def restore_adjoint(self, pieces: list[tuple[str, bytes]]) -> None:
        self.last, self.bar = _unpack(pieces, self.classes)


def _classes(tree: Any, found: dict[str, type]) -> dict[str, type]:
    """The dataclasses and named tuples of a tree, by name: what is read from a file is made of these alone."""
    if dataclasses.is_dataclass(tree) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        found[type(tree).__qualname__] = type(tree)
    parts: Any = ()
    if isinstance(tree, dict):
        parts = tree.values()
    elif isinstance(tree, (tuple, list)):
        parts = tree
    elif dataclasses.is_dataclass(tree):
        parts = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    for part in parts:
        _classes(part, found)
    return found


def _pack(tree: Any) -> list[tuple[str, bytes]]:
    """A tree as bytes: its form as JSON, its arrays beside it."""
    arrays: list[np.ndarray] = []

    def form(part: Any) -> Any:
        if isinstance(part, (np.ndarray, np.generic)):
            arrays.append(np.asarray(part))
            return {"array": len(arrays) - 1, "dtype": part.dtype.str, "shape": list(part.shape), "scalar": isinstance(part, np.generic)}
        if part is None or isinstance(part, (bool, int, str)):
            return {"value": part}
        if isinstance(part, float):
            return {"float": part.hex()}
        if isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                raise TypeError("a durable run takes dictionaries whose keys are texts")
            return {"dict": {key: form(inner) for key, inner in part.items()}}
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            return {"class": type(part).__qualname__, "parts": [form(inner) for inner in part]}
        if isinstance(part, (tuple, list)):
            return {"tuple" if isinstance(part, tuple) else "list": [form(inner) for inner in part]}
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            return {"class": type(part).__qualname__, "parts": [form(getattr(part, f.name)) for f in dataclasses.fields(part)]}
        raise TypeError(f"a durable run takes arrays, numbers and trees of them, not {type(part).__name__}")

    whole = json.dumps(form(tree)).encode()
    return [("tree", whole)] + [(f"array {k}", np.ascontiguousarray(a).tobytes()) for k, a in enumerate(arrays)]


def _unpack(pieces: list[tuple[str, bytes]], classes: dict[str, type]) -> Any:
    by_name = dict(pieces)

    def made(form: Any) -> Any:
        if "array" in form:
            flat = np.frombuffer(by_name[f"array {form['array']}"], dtype=np.dtype(form["dtype"]))
            array = flat.reshape(form["shape"]).copy()
            return array[()] if form["scalar"] else array
        if "value" in form:
            return form["value"]
        if "float" in form:
            return float.fromhex(form["float"])
        if "dict" in form:
            return {key: made(inner) for key, inner in form["dict"].items()}
        if "tuple" in form:
            return tuple(made(inner) for inner in form["tuple"])
        if "list" in form:
            return [made(inner) for inner in form["list"]]
        return classes[form["class"]](*[made(inner) for inner in form["parts"]])

    try:
        return made(json.loads(by_name["tree"]))
    except (KeyError, ValueError, TypeError) as error:
        raise StorageError(f"the state of a durable run cannot be read: {error!r}") from error
