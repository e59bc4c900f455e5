"""The rest of the language: what programs can say beside arithmetic."""

import numpy as np
import numpy.typing as npt
import pytest

import ebbtide as eb
from ebbtide import Array0, Array2, Array6, f32, f64, fma, func, i32, par, rand, scheduled, select, swap, u32


@func
def square(x):
    return x * x


@func
def length(x, y):
    """A function may call functions and have names of its own."""
    total = square(x) + square(y)
    return np.sqrt(total)


@func
def at(u, i, shift=1):
    return u[i + shift] if i + shift < len(u) else 0.0


@eb.program
def lengths(x, y, out):
    for i in par(len(x)):
        out[i] = 2.0 * length(x[i], y=y[i]) + length(3.0, 4.0) + at(x, i) + at(x, i, shift=2)


WIDTH = 7.0


def with_default():
    WIDTH = 2.0

    @func
    def widened(x, by=WIDTH):
        return x * by

    return widened


def test_defaults_have_the_value_that_they_had_where_the_function_was_defined():
    widened = with_default()

    @eb.program
    def widen(u):
        for i in par(len(u)):
            u[i] = widened(u[i]) + WIDTH

    u = np.ones(2)
    widen(u)
    assert u.tolist() == [9.0, 9.0]


def test_functions_are_expanded_where_they_are_called():
    x, y, out = np.arange(5.0), np.ones(5), np.zeros(5)
    lengths(x, y, out)
    expected = 2.0 * np.sqrt(x * x + y * y) + 5.0 + [1.0, 2.0, 3.0, 4.0, 0.0] + [2.0, 3.0, 4.0, 0.0, 0.0]
    assert np.allclose(out, expected, rtol=1e-15)
    assert length(3.0, 4.0) == 5.0


@eb.program
def annotated(u: npt.NDArray[np.float32], v: np.ndarray, loss: Array0[f64], flag: bool = True, k: i32 = 3):
    for i in par(len(u)):
        if flag:
            u[i] = f32(v[i]) * 0.5
    loss[()] = f64(k)


def test_annotations_of_numpy_and_defaults():
    u, v, loss = np.zeros(3, np.float32), np.arange(3.0), np.zeros(())
    annotated(u, v, loss)
    assert u.tolist() == [0.0, 0.5, 1.0] and loss[()] == 3.0
    annotated(u, v, loss, k=7, flag=False)
    assert loss[()] == 7.0 and len(annotated._built()) == 1


@eb.program
def scheduled_loop(u, steps: int, loss):
    for t in scheduled(range(steps), revolve=3):
        for i in par(len(u)):
            u[i] = u[i] * (1.0 - 0.1 * u[i])
    for i in par(len(u), relaxed=True):
        loss[()] += u[i]


def test_loops_say_how_they_are_reversed():
    args = (np.linspace(0.1, 0.9, 5), 20, np.zeros(()))
    g = scheduled_loop.grad("loss", wrt="u")
    assert "#[reverse(revolve = 3)]" in str(scheduled_loop.ir(*args)) and "#[relaxed]" in str(scheduled_loop.ir(*args))
    assert g.plan(*args).loops[0]["schedule"] == "revolve"
    g(*args)
    assert g.ran["advanced"] > 0


@eb.program
def inner(u, factor=2.0):
    for i in par(len(u)):
        u[i] *= factor


@eb.program
def outer(u, v):
    inner(u)
    inner(v, factor=0.5)
    inner(u=v)
    swap(u, v)


def test_programs_call_programs_with_names_and_defaults():
    u, v = np.ones(2), np.full(2, 3.0)
    outer(u, v)
    assert (u.tolist(), v.tolist()) == ([3.0, 3.0], [2.0, 2.0])


@eb.program
def loops(out, n: int):
    k = n
    total = 0
    while k > 0:
        total += k
        k -= 1
    out[0] = total
    for t in range(n):
        out[1] += 1
        if out[1] > 2:
            break
    i = 0
    while True:
        i += 1
        if i * i > n:
            break
    out[2] = i


def test_sequential_loops():
    ours, theirs = np.zeros(3, np.int64), np.zeros(3, np.int64)
    loops(ours, 10)
    loops.function(theirs, 10)
    assert ours.tolist() == theirs.tolist() == [55, 3, 4]


@eb.program
def temporaries(u: Array2[f64], out):
    n, m = u.shape
    rows = np.zeros(n)
    like = np.zeros_like(u, dtype=np.int32)
    half = np.empty((n // 2, m), dtype=u.dtype)
    for i in par(n):
        for j in range(m):
            rows[i] += u[i, j]
            like[i, j] = i32(j)
    for i, j in par(n // 2, m):
        half[i, j] = rows[2 * i] + f64(like[i, j])
    for i in par(n // 2):
        out[i] = half[i, m - 1]


def test_temporaries_of_several_shapes():
    u, ours, theirs = np.arange(12.0).reshape(4, 3), np.zeros(2), np.zeros(2)
    temporaries(u, ours)
    temporaries.function(u, theirs)
    assert (ours == theirs).all()


@eb.program
def drawn(x, seed: int):
    for i in par(len(x)):
        x[i] = fma(rand(seed, i), 2.0, -1.0) + select(rand(seed, i, f32) < 2.0, 0.0, 9.0)


def test_random_numbers_depend_on_their_two_integers_alone():
    a, b = np.zeros(100), np.zeros(100)
    drawn(a, 3)
    drawn(b, 3)
    assert (a == b).all() and -1.0 <= a.min() < -0.5 < 0.5 < a.max() < 1.0
    drawn(b, 4)
    assert (a != b).any()


def make(scale):
    @eb.program
    def scaled(u):
        for i in par(len(u)):
            u[i] = u[i] * scale

    return scaled


def test_closures_over_constants():
    u = np.ones(2)
    make(3.0)(u)
    make(0.5)(u)
    assert u.tolist() == [1.5, 1.5]


def test_fused_multiply_adds_are_asked_for():
    @eb.program
    def plain(a, b, c):
        for i in par(len(a)):
            c[i] = a[i] * b[i] + c[i]

    a = np.array([1.0 + 2.0**-30])
    c, fused = -a * a, -a * a
    plain(a, a, c)
    plain.with_fma()(a, a, fused)
    assert c[0] == 0.0 and fused[0] != 0.0


def test_multidimensional_arrays_up_to_rank_four():
    @eb.program
    def count(u):
        a, b, c, d = u.shape
        for i, j, k, l in par(a, b, c, d):
            u[i, j, k, l] = float(((i * b + j) * c + k) * d + l)

    u = np.zeros((2, 3, 4, 5))
    count(u)
    assert (u.ravel() == np.arange(120.0)).all()


@eb.program
def springs(x: Array6[f64], ends: Array2[i32], f: Array6[f64], left: Array0[u32]):
    for s in par(ends.shape[0]):
        a, b = int(ends[s, 0]), int(ends[s, 1])
        for k in range(x.shape[5]):
            p = x[0, 0, b, 0, 0, k] - x[0, 0, a, 0, 0, k]
            f[0, 0, a, 0, 0, k] += p
            f[0, 0, b, 0, 0, k] -= p
        left[()] -= 1


def test_subtracting_combines_and_arrays_have_up_to_six_dimensions():
    rng = np.random.default_rng(1)
    x, f = rng.random((1, 1, 3, 1, 1, 2)), np.zeros((1, 1, 3, 1, 1, 2))
    ends = np.array([[0, 1], [1, 2], [2, 0], [1, 0]], dtype=np.int32)
    left = np.array(2, dtype=np.uint32)
    expected = np.zeros_like(f)
    for a, b in ends:
        p = x[0, 0, b] - x[0, 0, a]
        expected[0, 0, a] += p
        expected[0, 0, b] -= p
    springs(x, ends, f, left)
    np.testing.assert_allclose(f, expected, atol=1e-15)
    assert left == np.uint32(2**32 - 2)
    value, dx = springs.vjp("f", wrt="x")(np.ones_like(f), x, ends, np.zeros_like(f), left)
    np.testing.assert_array_equal(dx, 0.0)          # forces cancel
    np.testing.assert_array_equal(value, f)
    with pytest.raises(eb.LaunchError, match="has 7 dimensions; arrays of programs have at most 6"):
        springs(x[None], ends, f, left)


@eb.program
def positive(u, out):
    for i in par(len(u)):
        assert u[i] > 0.0, "densities are positive"
        out[i] = np.log(u[i])


def test_an_assertion_that_does_not_hold_is_a_run_error_with_its_text():
    out = np.zeros(3)
    positive(np.ones(3), out)
    with pytest.raises(eb.RunError, match="densities are positive") as caught:
        positive(np.array([1.0, -1.0, 2.0]), out)
    assert "assert u[i] > 0.0" in open(__file__).read().splitlines()[caught.value.spots[0][1] - 1]
