"""Arrays of PyTorch, JAX and CuPy on a GPU; skipped where there is none."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import par, swap


def reason():
    try:
        eb.to_device(np.ones(1), "cuda")
    except eb.Error as error:
        return str(error)
    return None


NONE = reason()
pytestmark = pytest.mark.skipif(NONE is not None, reason=str(NONE))


def steps(u, v, count: int):
    for _t in range(count):
        for i in par(range(1, len(u) - 1)):
            v[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        swap(u, v)


def energy(u, w, loss):
    for i in par(len(u)):
        loss[()] += 0.5 * w[i] * u[i] * u[i]


def double(u):
    for i in par(len(u)):
        u[i] = 2.0 * u[i]


def looped(u, steps: int, nu: float, loss):
    for _t in range(steps):
        for i in par(len(u)):
            u[i] = u[i] - nu * u[i] * u[i]
    for i in par(len(u)):
        loss[()] += u[i] * u[i]


on_cpu = {f.__name__: eb.program(f) for f in (steps, energy, double, looped)}
on_gpu = {f.__name__: eb.Program(f, device="cuda") for f in (steps, energy, double, looped)}


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return module


@pytest.fixture
def jax():
    module = pytest.importorskip("jax")
    if module.default_backend() not in ("gpu", "cuda"):
        pytest.skip("this JAX has no CUDA")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.mark.parametrize("count", [4, 5])
def test_tensors_on_the_gpu_are_changed_in_place_with_the_bits_of_the_cpu(torch, count):
    a, b = noise(100_003), noise(100_003, 1)
    u, v = torch.tensor(a, device="cuda"), torch.tensor(b, device="cuda")
    places = u.data_ptr(), v.data_ptr()
    on_gpu["steps"](u, v, count)
    on_cpu["steps"](a, b, count)
    assert (u.data_ptr(), v.data_ptr()) == places
    assert np.array_equal(u.cpu().numpy(), a) and np.array_equal(v.cpu().numpy(), b)


def test_no_memory_is_taken_for_arguments(torch):
    n = 64 << 20
    u = torch.ones(n, dtype=torch.float64, device="cuda")
    on_gpu["double"](u[: 1 << 10])
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    on_gpu["double"](u)
    assert before - torch.cuda.mem_get_info()[0] < 64 << 20
    assert float(u[-1]) == 2.0


def test_what_a_stream_of_the_library_does_comes_before_and_after(torch):
    """A long chain of work on a stream of PyTorch's own, then the program, then more work there, without waits."""
    n = 1 << 22
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            for _ in range(5):
                u = torch.zeros(n, dtype=torch.float64, device="cuda")
                for _ in range(200):
                    u += 1.0
                on_gpu["double"](u)
                u += 1.0
                assert bool((u == 401.0).all())


def test_gradients_leave_by_dlpack_on_the_gpu(torch):
    a, w = noise(50_000), noise(50_000, 1)
    u, c = torch.tensor(a, device="cuda"), torch.tensor(w, device="cuda")
    loss = torch.zeros((), dtype=torch.float64, device="cuda")
    value, (du, dw) = on_gpu["energy"].grad("loss", wrt=["u", "w"])(u, c, loss)
    expected, (eu, ew) = on_cpu["energy"].grad("loss", wrt=["u", "w"])(a, w, np.zeros(()))
    assert value == expected and float(loss) == 0.0
    tensor = torch.from_dlpack(du)
    assert tensor.is_cuda and tensor.dtype == torch.float64
    assert np.array_equal(tensor.cpu().numpy(), eu) and np.array_equal(dw.numpy(), ew)
    # In place: what PyTorch writes there, the array has.
    tensor.fill_(3.0)
    assert (du.numpy() == 3.0).all()
    del du
    assert bool((tensor == 3.0).all())


def test_gradients_of_time_loops_under_a_budget(torch):
    def whole(u, v, w, loss, count: int):
        for _t in range(count):
            for i in par(range(1, len(u) - 1)):
                v[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1]) - 0.1 * u[i] * u[i] * u[i]
            swap(u, v)
        for i in par(len(u)):
            loss[()] += 0.5 * w[i] * u[i] * u[i]

    n = 10_000
    a = [0.1 * noise(n), np.zeros(n), noise(n, 1), np.zeros(())]
    t = [torch.tensor(x, device="cuda") for x in a]
    memory = 40 * n * 8
    value, du = eb.Program(whole, device="cuda").grad("loss", wrt="u", memory=memory)(*t, 100)
    expected, eu = eb.Program(whole).grad("loss", wrt="u", memory=memory)(*a, 100)
    assert value == expected and np.array_equal(du.numpy(), eu)


def test_arrays_that_cannot_be_used_are_refused_in_words(torch):
    double = on_gpu["double"]
    with pytest.raises(eb.LaunchError, match="in host memory"):
        double(np.ones(3))
    with pytest.raises(eb.LaunchError, match="in host memory"):
        double(torch.ones(3, dtype=torch.float64))
    with pytest.raises(eb.LaunchError, match="not contiguous"):
        double(torch.ones(6, dtype=torch.float64, device="cuda")[::2])
    with pytest.raises(eb.LaunchError, match="memory of a GPU"):
        on_cpu["double"](torch.ones(6, dtype=torch.float64, device="cuda"))
    with pytest.raises(eb.LaunchError, match="DLPack type"):
        double(torch.ones(6, dtype=torch.float16, device="cuda"))


def test_parts_of_tensors_are_used_in_place(torch):
    u = torch.ones(7, dtype=torch.float32, device="cuda")
    on_gpu["double"](u[3:])
    assert u.cpu().tolist() == [1.0] * 3 + [2.0] * 4


def test_gradients_of_parts_that_are_aligned_to_their_elements_alone(torch):
    a = (0.1 + 0.1 * noise(10_001)).astype(np.float32)
    whole, start = torch.tensor(a, device="cuda"), torch.zeros((), dtype=torch.float32, device="cuda")
    memory = 20 * a.nbytes
    value, du = on_gpu["looped"].grad("loss", wrt="u", memory=memory)(whole[1:], 100, 0.1, start)
    expected, eu = on_cpu["looped"].grad("loss", wrt="u", memory=memory)(a[1:].copy(), 100, 0.1, np.zeros((), np.float32))
    assert value == expected and np.array_equal(du.numpy(), eu)


def test_arrays_of_jax_are_read_in_place_and_never_written(jax):
    a, w = noise(10_000), noise(10_000, 1)
    u, c, loss = (jax.numpy.asarray(x) for x in (a, w, np.zeros(())))
    value, du = on_gpu["energy"].grad("loss", wrt="u")(u, c, loss)
    expected, eu = on_cpu["energy"].grad("loss", wrt="u")(a, w, np.zeros(()))
    assert value == expected
    back = jax.dlpack.from_dlpack(du)
    assert next(iter(back.devices())).platform in ("gpu", "cuda")
    assert np.array_equal(np.asarray(back), eu)
    with pytest.raises(eb.LaunchError, match="read-only"):
        on_gpu["double"](u)


def test_operations_of_pytorch_run_where_their_tensors_are(torch):
    import ebbtide.torch

    a = 0.1 + 0.1 * noise(10_000)
    op = ebbtide.torch.op(on_gpu["looped"], outputs="loss", wrt=["u", "nu"])
    u = torch.tensor(a, device="cuda", requires_grad=True)
    nu = torch.tensor(0.1, dtype=torch.float64, device="cuda", requires_grad=True)
    loss = op(u, 10, nu, torch.zeros((), dtype=torch.float64, device="cuda"))
    loss.backward()
    value, (du, dnu) = on_cpu["looped"].grad("loss", wrt=["u", "nu"])(a, 10, 0.1, np.zeros(()))
    assert loss.is_cuda and u.grad.is_cuda and nu.grad.is_cuda
    assert loss.item() == value and np.array_equal(u.detach().cpu().numpy(), a), "arguments stay as they are"
    assert np.array_equal(u.grad.cpu().numpy(), du) and nu.grad.item() == dnu


def test_operations_of_pytorch_take_the_cotangents_of_a_graph_on_the_gpu(torch):
    """Expanded cotangents, another stream, several outputs, and work of PyTorch on both sides."""
    import ebbtide.torch

    op = ebbtide.torch.op(on_gpu["looped"], outputs=["loss", "u"], wrt=["u"])
    a = 0.1 + 0.1 * noise(10_000)
    grads = []
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            u = torch.tensor(a, device="cuda", requires_grad=True)
            loss, end = op(2.0 * u, 10, 0.1, torch.zeros((), dtype=torch.float64, device="cuda"))
            (loss + end.sum()).backward()
            grads.append(u.grad.cpu().numpy())
    first, second = on_cpu["looped"].vjp("loss", wrt="u"), on_cpu["looped"].vjp("u", wrt="u")
    arguments = (2.0 * a, 10, 0.1, np.zeros(()))
    expected = 2.0 * (first(1.0, *arguments)[1] + second(np.ones_like(a), *arguments)[1])
    assert np.array_equal(grads[0], expected) and np.array_equal(grads[1], expected)


def test_pytorch_differentiates_twice_on_the_gpu(torch):
    import ebbtide.torch

    op = ebbtide.torch.op(on_gpu["looped"], outputs="loss", wrt=["u"])
    start = torch.zeros((), dtype=torch.float64, device="cuda")
    u = torch.tensor(np.linspace(0.1, 1.0, 7), device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda u: op(u, 4, 0.1, start), u)
    assert torch.autograd.gradgradcheck(lambda u: op(u, 4, 0.1, start), u)


def test_operations_of_pytorch_say_where_tensors_must_be(torch):
    import ebbtide.torch

    start = torch.zeros((), dtype=torch.float64)
    u = torch.ones(5, dtype=torch.float64)
    with pytest.raises(eb.LaunchError, match="in host memory"):
        ebbtide.torch.op(on_gpu["looped"], outputs="loss", wrt=["u"])(u, 4, 0.1, start)
    with pytest.raises(eb.LaunchError, match="memory of a GPU"):
        ebbtide.torch.op(on_cpu["looped"], outputs="loss", wrt=["u"])(u.cuda(), 4, 0.1, start.cuda())


@pytest.mark.parametrize("programs", [on_cpu, on_gpu], ids=["cpu", "gpu"])
def test_functions_of_jax_take_arrays_on_the_gpu_through_the_host(jax, programs):
    import ebbtide.jax

    op = ebbtide.jax.op(programs["looped"], outputs="loss", wrt=["u", "nu"])

    def loss(u, nu):
        return 3.0 * op(u, 10, nu, jax.numpy.zeros(()))

    a = 0.1 + 0.1 * noise(10_000)
    value, (du, dnu) = on_cpu["looped"].vjp("loss", wrt=["u", "nu"])(3.0, a, 10, 0.1, np.zeros(()))
    u = jax.numpy.asarray(a)
    assert float(loss(u, 0.1)) == 3.0 * value
    for differentiate in (jax.grad(loss, argnums=(0, 1)), jax.jit(jax.grad(loss, argnums=(0, 1)))):
        found, slope = differentiate(u, 0.1)
        assert next(iter(found.devices())).platform in ("gpu", "cuda")
        assert np.array_equal(np.asarray(found), du) and float(slope) == dnu


def test_arrays_of_cupy_are_changed_in_place():
    cupy = pytest.importorskip("cupy")
    u = cupy.ones(1000)
    on_gpu["double"](u)
    assert float(u.sum()) == 2000.0


def test_arrays_of_our_own_need_no_other_library():
    u = eb.to_device(noise(1000), "cuda")
    on_gpu["double"](u)
    assert np.array_equal(u.numpy(), 2.0 * noise(1000)) and u.__dlpack_device__()[0] == 2
