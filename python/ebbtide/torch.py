"""Programs as operations of PyTorch's autograd.

>>> op = ebbtide.torch.op(objective, outputs=["loss"], wrt=["u", "nu"])     # doctest: +SKIP
>>> loss = op(u, next, nu, dt, steps, target, loss0)                        # doctest: +SKIP
>>> loss.backward()                                                         # doctest: +SKIP

Tensors are on the CPU. The operation returns new tensors and leaves its arguments as they are: written arguments are copied
once, before the program runs on the copies; all others are used in place.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

import numpy as np
import torch

from .program import Program


def _array(value: Any) -> Any:
    """An argument as the program takes it; tensors are looked at in place."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            raise TypeError(f"this tensor is on {value.device}: programs called from Python use host memory, move it with `.cpu()`")
        return value.detach().numpy()
    return value


def _scalar(value: Any, ty: str) -> Any:
    """A tensor of rank 0 for a scalar parameter is its number."""
    if isinstance(value, torch.Tensor):
        number = value.item()
        return np.float32(number) if ty == "f32" else number
    return value


def op(program: Program, outputs: Union[str, Sequence[str]], wrt: Sequence[str], **options: Any) -> Callable[..., Any]:
    """The program as a function of tensors with derivatives: it returns the named outputs, and can be differentiated by the
    parameters named in ``wrt``. Options are those of `Program.vjp`, such as ``memory="1GiB"``.

    A backward pass runs one vector-Jacobian product for each output whose cotangent is wanted. Where there is one output, of
    rank 0, the backward pass can be differentiated again (a Hessian-vector product).
    """
    names = [outputs] if isinstance(outputs, str) else list(outputs)
    wanted = list(wrt)
    parameters = program._names
    pullbacks = {name: program.vjp(name, wanted, **options) for name in names}
    second = program.hvp(names[0], wanted, **options) if len(names) == 1 else None
    positions = {name: k for k, name in enumerate(parameters)}
    unknown = [name for name in (*names, *wanted) if name not in positions]
    if unknown:
        raise ValueError(f"`{program.name}` has no parameter `{unknown[0]}`; it has {', '.join(parameters)}")

    def arguments(values: Sequence[Any]) -> list[Any]:
        built = program._built()
        kinds = {p[0]: p[1:3] for p in built[-1].params} if built else {}
        found = []
        for name, value in zip(parameters, values):
            ty, rank = kinds.get(name, (None, 0))
            is_number = isinstance(value, torch.Tensor) and value.ndim == 0 and (name not in names and _is_scalar(program, name, kinds))
            found.append(_scalar(value, ty or "f64") if is_number else _array(value))
        return found

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, cotangent: torch.Tensor, *values: Any) -> Any:
            ctx.cotangent, ctx.values = cotangent, values
            _, grads = pullbacks[names[0]](np.asarray(cotangent.detach().numpy(), order="C"), *arguments(values))
            return tuple(torch.as_tensor(np.asarray(grad)) for grad in grads)

        @staticmethod
        def backward(ctx: Any, *moved: Any) -> Any:
            if second is None or ctx.cotangent.ndim != 0:
                raise RuntimeError("a second derivative needs one output of rank 0")
            direction = {
                name: np.asarray(m.detach().numpy(), order="C") if m.ndim else m.item()
                for name, m in zip(wanted, moved)
                if m is not None
            }
            args = arguments(ctx.values)
            products = second(direction, *args)
            grads: list[Any] = [None] * len(ctx.values)
            for name, product in zip(wanted, products):
                grads[positions[name]] = torch.as_tensor(np.asarray(product)) * ctx.cotangent
            _, first = pullbacks[names[0]](np.ones_like(ctx.cotangent.detach().numpy()), *args)
            along = sum(float((np.asarray(f) * m.detach().numpy()).sum()) for f, m in zip(first, moved) if m is not None)
            return (torch.as_tensor(along, dtype=ctx.cotangent.dtype), *grads)

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            args = arguments(values)
            ir = program._ir(tuple(args))
            written = {p[0].split(".")[0] for p in ir.params if p[3]}
            args = arguments(values)
            # Written arguments are copied: operations of PyTorch give new tensors.
            args = [a.copy() if name in written and isinstance(a, np.ndarray) else a for name, a in zip(parameters, args)]
            if program(*args) is not None:
                raise RuntimeError(f"`{program.name}` yielded: an operation of PyTorch cannot")
            ctx.save_for_backward(*[v for v in values if isinstance(v, torch.Tensor)])
            ctx.others = [None if isinstance(v, torch.Tensor) else (v,) for v in values]
            results = tuple(torch.from_numpy(np.asarray(args[positions[name]])) for name in names)
            return results[0] if isinstance(outputs, str) else results

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            values = [next(saved) if other is None else other[0] for other in ctx.others]
            if len(names) == 1:
                grads = Backward.apply(cotangents[0], *values)
                totals: dict[str, Any] = dict(zip(wanted, grads))
            else:
                totals = {}
                args = arguments(values)
                for name, cotangent in zip(names, cotangents):
                    if cotangent is None:
                        continue
                    _, parts = pullbacks[name](np.asarray(cotangent.detach().numpy(), order="C"), *args)
                    for key, part in zip(wanted, parts):
                        tensor = torch.as_tensor(np.asarray(part))
                        totals[key] = tensor if key not in totals else totals[key] + tensor
            found: list[Any] = [None] * len(values)
            for name, grad in totals.items():
                found[positions[name]] = grad if isinstance(values[positions[name]], torch.Tensor) else None
            return tuple(found)

    def call(*args: Any, **kwargs: Any) -> Any:
        return Operation.apply(*program._bind(*args, **kwargs))

    call.__name__ = program.name
    return call


def _is_scalar(program: Program, name: str, kinds: dict[str, Any]) -> bool:
    from ._front.source import source_of
    from ._types import ScalarType, kind_of_annotation

    if name in kinds:
        return kinds[name][1] is None
    return isinstance(kind_of_annotation(source_of(program.function).annotations.get(name)), ScalarType)
