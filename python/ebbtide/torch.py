"""Programs as operations of PyTorch's autograd.

>>> op = ebbtide.torch.op(objective, outputs=["loss"], wrt=["u", "nu"])     # doctest: +SKIP
>>> loss = op(u, next, nu, dt, steps, target, loss0)                        # doctest: +SKIP
>>> loss.backward()                                                         # doctest: +SKIP

Tensors are where the program runs: on the CPU, or on the GPU for a program with ``device="cuda"``. The operation returns new
tensors and leaves its arguments as they are: written arguments are copied once, before the program runs on the copies; all
others are used in place, and nothing passes through the host but tensors of rank 0 for scalar parameters.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

import numpy as np
import torch
import torch.utils.dlpack

from ._native import DeviceArray
from .program import Program


def _array(value: Any) -> Any:
    """An argument as the program takes it; tensors are used in place, where they are."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.numpy() if value.device.type == "cpu" else value
    return value


def _copied(value: Any) -> Any:
    """A copy of an argument that the program writes."""
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.contiguous_format)
    return value.copy() if isinstance(value, np.ndarray) else value


def _cotangent(value: torch.Tensor) -> Any:
    """A cotangent or a direction, which PyTorch may give with gaps."""
    return _array(value.detach().contiguous())


def _tensor(found: Any, like: Any = None) -> torch.Tensor:
    """A result of the engine as a tensor, in place; a number goes where ``like`` is."""
    if isinstance(found, DeviceArray):
        made: torch.Tensor = torch.utils.dlpack.from_dlpack(found)
        return made
    if isinstance(found, torch.Tensor):
        return found
    device = like.device if isinstance(like, torch.Tensor) else None
    return torch.as_tensor(np.asarray(found), device=device)


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

    def arguments(values: Sequence[Any], of: Sequence[str] = parameters) -> list[Any]:
        """Values of these parameters as the program takes them."""
        built = program._built()
        kinds = {p[0]: p[1:3] for p in built[-1].params} if built else {}
        found = []
        for name, value in zip(of, values):
            is_rank_0 = isinstance(value, torch.Tensor) and value.ndim == 0
            if is_rank_0 and name not in names and _is_scalar(program, name, kinds):
                found.append(_scalar(value, kinds.get(name, ("f64",))[0]))
            else:
                found.append(_array(value))
        return found

    def pulled(name: str, cotangent: torch.Tensor, values: Sequence[Any], args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        _, grads = pullbacks[name](_cotangent(cotangent), *args)
        return tuple(_tensor(grad, values[positions[key]]) for key, grad in zip(wanted, grads))

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, cotangent: torch.Tensor, *values: Any) -> Any:
            ctx.cotangent, ctx.values = cotangent, values
            return pulled(names[0], cotangent, values, arguments(values))

        @staticmethod
        def backward(ctx: Any, *moved: Any) -> Any:
            if second is None or ctx.cotangent.ndim != 0:
                raise RuntimeError("a second derivative needs one output of rank 0")
            along = {name: m.detach().contiguous() for name, m in zip(wanted, moved) if m is not None}
            direction = dict(zip(along, arguments(list(along.values()), list(along))))
            args = arguments(ctx.values)
            products = second(direction, *args)
            grads: list[Any] = [None] * len(ctx.values)
            for name, product in zip(wanted, products):
                grads[positions[name]] = _tensor(product, ctx.values[positions[name]]) * ctx.cotangent
            first = pulled(names[0], torch.ones_like(ctx.cotangent), ctx.values, args)
            slope = torch.zeros_like(ctx.cotangent)
            for name, grad in zip(wanted, first):
                if name in along:
                    slope = slope + (grad * along[name]).sum()
            return (slope, *grads)

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            args = arguments(values)
            ir = program._ir(tuple(args))
            written = {p[0].split(".")[0] for p in ir.params if p[3]}
            args = arguments(values)
            # Written arguments are copied: operations of PyTorch give new tensors.
            args = [_copied(a) if name in written else a for name, a in zip(parameters, args)]
            if program(*args) is not None:
                raise RuntimeError(f"`{program.name}` yielded: an operation of PyTorch cannot")
            ctx.save_for_backward(*[v for v in values if isinstance(v, torch.Tensor)])
            ctx.others = [None if isinstance(v, torch.Tensor) else (v,) for v in values]
            results = tuple(_tensor(args[positions[name]]) for name in names)
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
                    for key, part in zip(wanted, pulled(name, cotangent, values, args)):
                        totals[key] = part if key not in totals else totals[key] + part
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
