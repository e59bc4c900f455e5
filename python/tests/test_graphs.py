"""Programs in the graphs of PyTorch and JAX; skipped where these are not installed."""

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import par


@eb.program
def energy(u, steps: int, nu: float, loss):
    n = len(u)
    for t in range(steps):
        for i in par(n):
            u[i] = u[i] - nu * u[i] * u[i]
    for i in par(n):
        loss[()] += u[i] * u[i]


def reference(u, nu):
    return energy.grad("loss", wrt=["u", "nu"])(u, 10, nu, np.zeros(()))


U = np.linspace(0.1, 1.0, 7)


def test_a_program_is_an_operation_of_pytorch():
    torch = pytest.importorskip("torch")
    import ebbtide.torch

    op = ebbtide.torch.op(energy, outputs="loss", wrt=["u", "nu"])
    u = torch.tensor(U, requires_grad=True)
    nu = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    loss = op(u, 10, nu, torch.zeros((), dtype=torch.float64))
    (3.0 * loss).backward()
    value, (du, dnu) = reference(U, 0.1)
    assert loss.item() == value and (u.detach().numpy() == U).all()
    assert np.allclose(u.grad.numpy(), 3.0 * du, rtol=1e-15) and np.isclose(nu.grad.item(), 3.0 * dnu, rtol=1e-15)


def test_pytorch_differentiates_twice():
    torch = pytest.importorskip("torch")
    import ebbtide.torch

    op = ebbtide.torch.op(energy, outputs="loss", wrt=["u"])
    start = torch.zeros((), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda u: op(u, 4, 0.1, start), torch.tensor(U, requires_grad=True))
    assert torch.autograd.gradgradcheck(lambda u: op(u, 4, 0.1, start), torch.tensor(U, requires_grad=True))


def test_pytorch_differentiates_twice_by_tensors_of_rank_0():
    """A scalar parameter and an array of rank 0 look alike to PyTorch."""
    torch = pytest.importorskip("torch")
    import ebbtide.torch

    @eb.program
    def cubes(u, by: float, power, loss):
        for i in par(len(u)):
            loss[()] += by * by * u[i] * power[()] * power[()] * power[()]

    op = ebbtide.torch.op(cubes, outputs="loss", wrt=["u", "by", "power"])
    start = torch.zeros((), dtype=torch.float64)
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (U, 0.3, 1.5)]
    assert torch.autograd.gradgradcheck(lambda u, by, power: op(u, by, power, start), inputs)


def test_tensors_are_changed_in_place():
    torch = pytest.importorskip("torch")
    u, loss = torch.tensor(U), torch.zeros((), dtype=torch.float64)
    energy(u, 1, 0.5, loss)
    assert u[3].item() == U[3] - 0.5 * U[3] * U[3] and loss.item() > 0


def test_a_program_is_a_function_of_jax_under_jit_and_grad():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import ebbtide.jax

    op = ebbtide.jax.op(energy, outputs="loss", wrt=["u", "nu"])

    def loss(u, nu):
        return 3.0 * op(u, 10, nu, jax.numpy.zeros(()))

    u = jax.numpy.asarray(U)
    value, (du, dnu) = reference(U, 0.1)
    assert float(loss(u, 0.1)) == 3.0 * value
    for differentiate in (jax.grad(loss, argnums=(0, 1)), jax.jit(jax.grad(loss, argnums=(0, 1)))):
        found, slope = differentiate(u, 0.1)
        assert np.allclose(np.asarray(found), 3.0 * du, rtol=1e-15) and np.isclose(float(slope), 3.0 * dnu, rtol=1e-15)


def test_programs_on_devices_with_memory_of_their_own_are_functions_of_jax():
    """`_own_memory` plays a GPU: arrays are copied to it and back."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import ebbtide.jax

    op = ebbtide.jax.op(eb.Program(energy.function, device="_own_memory"), outputs=["loss", "u"], wrt=["u", "nu"])

    def loss(u, nu):
        total, end = op(u, 10, nu, jax.numpy.zeros(()))
        return 3.0 * total + 0.0 * end.sum()

    u = jax.numpy.asarray(U)
    value, (du, dnu) = reference(U, 0.1)
    assert float(loss(u, 0.1)) == 3.0 * value and (np.asarray(u) == U).all()
    found, slope = jax.jit(jax.grad(loss, argnums=(0, 1)))(u, 0.1)
    assert np.allclose(np.asarray(found), 3.0 * du, rtol=1e-15) and np.isclose(float(slope), 3.0 * dnu, rtol=1e-15)


def test_arrays_of_jax_may_be_read_and_not_written():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    @eb.program
    def total(u, out):
        for i in par(len(u)):
            out[()] += u[i]

    # JAX puts arrays on a GPU where there is one.
    u = jax.device_put(U, jax.devices("cpu")[0])
    out = np.zeros(())
    total(u, out)
    assert np.isclose(out[()], U.sum())
    with pytest.raises(eb.LaunchError, match="read-only"):
        energy(u, 1, 0.1, np.zeros(()))
