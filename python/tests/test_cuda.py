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


on_cpu = {f.__name__: eb.program(f) for f in (steps, energy, double)}
on_gpu = {f.__name__: eb.Program(f, device="cuda") for f in (steps, energy, double)}


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


def test_arrays_of_cupy_are_changed_in_place():
    cupy = pytest.importorskip("cupy")
    u = cupy.ones(1000)
    on_gpu["double"](u)
    assert float(u.sum()) == 2000.0


def test_arrays_of_our_own_need_no_other_library():
    u = eb.to_device(noise(1000), "cuda")
    on_gpu["double"](u)
    assert np.array_equal(u.numpy(), 2.0 * noise(1000)) and u.__dlpack_device__()[0] == 2
