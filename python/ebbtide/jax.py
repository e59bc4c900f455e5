"""Programs as functions of JAX, under ``jit`` and ``grad``.

>>> op = ebbtide.jax.op(objective, outputs=["loss"], wrt=["u", "nu"])      # doctest: +SKIP
>>> jax.grad(lambda u: op(u, next, nu, dt, steps, target, loss0)[0])(u)    # doctest: +SKIP

The function returns new arrays. It runs as a callback of the host (`jax.pure_callback`): JAX copies arguments to host memory
(on the CPU it may lend them), the program runs on copies of the arguments that it writes, and the results are copied back. A
program with ``device="cuda"`` runs on the GPU all the same: all its arrays are copied from host memory to the GPU before it
runs, and its results to host memory after it, in each direction once.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

import jax
import numpy as np

from ._native import DeviceArray, in_host_memory, to_device
from .program import Program


def op(program: Program, outputs: Union[str, Sequence[str]], wrt: Sequence[str], **options: Any) -> Callable[..., Any]:
    """The program as a JAX function with a custom derivative: it returns the named outputs, and can be differentiated (in
    reverse mode, once) by the parameters named in ``wrt``. Options are those of `Program.vjp`.

    Numbers of Python (such as a number of steps) are constants of the call; arrays and JAX numbers may be traced. A program's
    ``int`` parameters must be numbers of Python.
    """
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    wanted = list(wrt)
    parameters = program._names
    positions = {name: k for k, name in enumerate(parameters)}
    unknown = [name for name in (*names, *wanted) if name not in positions]
    if unknown:
        raise ValueError(f"`{program.name}` has no parameter `{unknown[0]}`; it has {', '.join(parameters)}")
    pullbacks = {name: program.vjp(name, wanted, **options) for name in names}

    def host_arguments(values: Sequence[Any]) -> list[Any]:
        """Arguments as the program takes them: scalars of JAX are numbers."""
        found: list[Any] = []
        for name, value in zip(parameters, values):
            if isinstance(value, (bool, int, float)):
                found.append(value)
                continue
            array = np.asarray(value)
            scalar = array.ndim == 0 and _is_scalar(program, name)
            found.append(array[()] if scalar else array)
        return found

    def placed(value: Any) -> Any:
        """An array where the program runs."""
        if not isinstance(value, np.ndarray) or in_host_memory(program._device):
            return value
        return to_device(np.asarray(value, order="C"), program._device)

    def written(args: Sequence[Any]) -> set[str]:
        return {p[0].split(".")[0] for p in program._ir(tuple(args)).params if p[3]}

    def run(*values: Any) -> tuple[np.ndarray, ...]:
        args = host_arguments(values)
        copies = written(args)
        args = [np.array(a) if name in copies and isinstance(a, np.ndarray) else a for name, a in zip(parameters, args)]
        args = [placed(a) for a in args]
        if program(*args) is not None:
            raise RuntimeError(f"`{program.name}` yielded: a function of JAX cannot")
        return tuple(_host(args[positions[name]]) for name in names)

    def pull(cotangents: Sequence[Any], *values: Any) -> tuple[np.ndarray, ...]:
        args = [placed(a) for a in host_arguments(values)]
        totals: list[Any] = [None] * len(wanted)
        for name, cotangent in zip(names, cotangents):
            _, parts = pullbacks[name](placed(np.asarray(cotangent, order="C")), *args)
            totals = [_host(p) if t is None else t + _host(p) for t, p in zip(totals, parts)]
        return tuple(np.asarray(t) for t in totals)

    def shaped(value: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(np.shape(value), jax.numpy.result_type(value))

    def make(fixed: dict[int, Any]) -> Callable[..., Any]:
        """The function of what may be traced, numbers of Python fixed."""

        def whole(traced: Sequence[Any]) -> list[Any]:
            rest = iter(traced)
            return [fixed[k] if k in fixed else next(rest) for k in range(len(parameters))]

        @jax.custom_vjp
        def function(*traced: Any) -> Any:
            values = whole(traced)
            results = tuple(shaped(values[positions[name]]) for name in names)
            return jax.pure_callback(lambda *t: run(*whole(t)), results, *traced, vmap_method="sequential")

        def forward(*traced: Any) -> Any:
            return function(*traced), traced

        def backward(traced: Any, cotangents: Any) -> Any:
            values = whole(traced)
            results = tuple(shaped(values[positions[name]]) for name in wanted)
            grads = jax.pure_callback(
                lambda c, *t: pull(c, *whole(t)), results, cotangents, *traced, vmap_method="sequential"
            )
            by_position = {positions[name]: grad for name, grad in zip(wanted, grads)}
            found = []
            for k, value in enumerate(values):
                if k in fixed:
                    continue
                if k in by_position:
                    found.append(by_position[k])
                elif jax.numpy.issubdtype(jax.numpy.result_type(value), jax.numpy.floating):
                    found.append(jax.numpy.zeros_like(value))
                else:
                    found.append(np.zeros(np.shape(value), jax.dtypes.float0))
            return tuple(found)

        function.defvjp(forward, backward)
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = program._bind(*args, **kwargs)
        fixed = {k: v for k, v in enumerate(bound) if isinstance(v, (bool, int, float))}
        missing = [name for name in wanted if positions[name] in fixed]
        if missing:
            # A number of Python that is differentiated by is traced like any other.
            for name in missing:
                del fixed[positions[name]]
        traced = [jax.numpy.asarray(v) for k, v in enumerate(bound) if k not in fixed]
        results = make(fixed)(*traced)
        return results[0] if isinstance(outputs, str) else results

    call.__name__ = program.name
    return call


def _host(found: Any) -> np.ndarray:
    """A result of the engine in host memory."""
    return np.asarray(found.numpy() if isinstance(found, DeviceArray) else found)


def _is_scalar(program: Program, name: str) -> bool:
    from ._front.source import source_of
    from ._types import ScalarType, kind_of_annotation

    return isinstance(kind_of_annotation(source_of(program.function).annotations.get(name)), ScalarType)
