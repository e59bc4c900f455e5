"""A program means what the function means in plain Python over NumPy arrays, to the last bit, or is an error."""

import math

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import f32, f64, i32, par, select

FLOATS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -7.25, 1e300, -1e-300, np.inf, -np.inf, np.nan, 4.0, 1e16])
INTS = np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 10, -10, 2**31 - 1, -(2**31)], np.int32)


def same(program, *arrays):
    """Runs the program, and its function as plain Python, on the same arrays."""
    ours = [a.copy() for a in arrays]
    theirs = [a.copy() for a in arrays]
    assert program(*ours) is None
    program.function(*theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype
        both_nan = (a != a) & (b != b)
        size = np.uint64 if a.itemsize == 8 else np.uint32 if a.itemsize == 4 else np.uint8
        differ = (a.view(size) != b.view(size)) & ~both_nan
        assert not differ.any(), (np.argwhere(differ)[:5], a[differ][:5], b[differ][:5])


def pairs(values):
    a, b = np.meshgrid(values, values)
    return a.ravel().copy(), b.ravel().copy()


@eb.program
def integer_division(a, b, q, r):
    for i in par(len(a)):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


@eb.program
def float_division(a, b, q, r):
    for i in par(len(a)):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


def test_floor_division_of_integers_rounds_down_and_the_rest_has_the_sign_of_the_divisor():
    a, b = pairs(INTS)
    keep = (b != 0) & ~((a == -(2**31)) & (b == -1))
    same(integer_division, a[keep], b[keep], np.zeros(keep.sum(), np.int32), np.zeros(keep.sum(), np.int32))
    same(integer_division, a[keep].astype(np.int64), b[keep].astype(np.int64), np.zeros(keep.sum(), np.int64), np.zeros(keep.sum(), np.int64))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floor_division_of_floats_is_numpys(dtype):
    a, b = pairs(FLOATS.astype(dtype))
    same(float_division, a, b, np.zeros_like(a), np.zeros_like(a))


@eb.program
def python_int_division(out, n: int):
    for i in range(2 * n):
        out[i] = (i - n) // 3 * 100 + (i - n) % 3 + i // 2 % 2 + (n - 1 - i) % n


def test_python_integers_divide_as_in_python():
    out = np.zeros(40, np.int64)
    ours, theirs = out.copy(), out.copy()
    python_int_division(ours, 20)
    python_int_division.function(theirs, 20)
    assert (ours == theirs).all()


@eb.program
def roundings(x, a, b, c, d, e):
    for i in par(len(x)):
        a[i] = np.rint(x[i])
        b[i] = np.floor(x[i]) + np.ceil(x[i])
        c[i] = np.trunc(x[i])
        d[i] = np.sign(x[i])
        e[i] = np.copysign(2.5, x[i])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_is_numpys_with_halves_to_even(dtype):
    x = np.concatenate([FLOATS, np.arange(-20, 20) * 0.25]).astype(dtype)
    x = x[~np.isnan(x)]
    same(roundings, x, *[np.zeros_like(x) for _ in range(5)])


@eb.program
def extremes(a, b, lo, hi, nlo, nhi, clipped):
    for i in par(len(a)):
        lo[i] = min(a[i], b[i])
        hi[i] = max(a[i], b[i], 1.0)
        nlo[i] = np.minimum(a[i], b[i]) if a[i] != b[i] else a[i]
        nhi[i] = np.maximum(a[i], b[i]) if a[i] != b[i] else b[i]
        clipped[i] = np.clip(a[i], -1.5, 2.0)


def test_minima_and_maxima_treat_nan_as_python_and_numpy_do():
    a, b = pairs(FLOATS)
    same(extremes, a, b, *[np.zeros_like(a) for _ in range(5)])


@eb.program
def literals_beside_f32(x, y):
    third = 1 / 3
    for i in par(len(x)):
        y[i] = x[i] * 0.1 + third - 2 * x[i] + 3


def test_numbers_without_a_type_take_that_of_an_f32_array():
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    same(literals_beside_f32, x, np.zeros_like(x))


@eb.program
def integers_wrap(a, b, c):
    for i in par(len(a)):
        c[i] = a[i] * b[i] + a[i] - 3 * b[i]


def test_integers_of_arrays_wrap_as_numpys_do():
    a, b = pairs(INTS)
    same(integers_wrap, a, b, np.zeros_like(a))


@eb.program
def conditions(a, b, c):
    for i in par(len(a)):
        big = a[i] > 1.0 and b[i] < 2.0 or not a[i] == b[i]
        if -1.0 <= a[i] < 2.0 != b[i]:
            c[i] = 1.0
        elif big:
            c[i] = 2.0
        else:
            c[i] = select(i % 2 == 0, -1.0, -2.0)


def test_conditions_chain_and_combine_as_in_python():
    a, b = pairs(FLOATS)
    same(conditions, a, b, np.zeros_like(a))


@eb.program
def guarded(u, v):
    n = len(u)
    for i in par(n):
        if i + 1 < n and u[i + 1] > 0.0:
            v[i] = 1.0
        v[i] += 1.0 if i > 0 and u[i - 1] > 0.0 else 0.5


def test_the_right_side_of_and_is_read_only_if_it_is_asked_for():
    u = np.array([1.0, -1.0, 2.0])
    same(guarded, u, np.zeros(3))


@eb.program
def from_the_end(u, v):
    v[()] = u[-1] + 10.0 * u[-2]


def test_a_constant_negative_index_counts_from_the_end():
    same(from_the_end, np.arange(5.0), np.zeros(()))


@eb.program
def integers_beside_floats(u, dx: float):
    n = len(u)
    for i in par(n):
        u[i] = i * dx + n - i * 0.5 + float(n) / 3.0


def test_python_integers_beside_floats_are_floats():
    u = np.zeros(17)
    ours, theirs = u.copy(), u.copy()
    integers_beside_floats(ours, 0.1)
    integers_beside_floats.function(theirs, 0.1)
    assert (ours == theirs).all()


@eb.program
def variables(x, y):
    n = len(x)
    for i in par(n):
        total = 0
        best = 0.0
        for k in range(i + 1):
            total += x[k]
            if x[k] > best:
                best = x[k]
        if total > 2.0:
            sign = 1.0
            scale = 2
        else:
            sign = -1.0
            scale = 3
        a, b = total, best
        a, b = b, a
        y[i] = sign * a + scale * b


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variables_take_the_type_of_what_is_assigned_to_them(dtype):
    x = np.array([0.5, -1.0, 2.0, 1.0, 0.25], dtype)
    same(variables, x, np.zeros_like(x))


@eb.program
def powers(x, k, y, m):
    for i in par(len(x)):
        y[i] = x[i] ** 2
        m[i] = k[i] ** 3


def test_squares_and_integer_powers():
    x = np.array([0.0, 1.5, -2.0, 1e160, 3.25])
    same(powers, x, np.array([0, 1, -2, 3, 100], np.int32), np.zeros(5), np.zeros(5, np.int32))


@eb.program
def nan_tests(x, y):
    for i in par(len(x)):
        y[i] = select(math.isnan(x[i]), 1.0, 0.0) + select(np.isinf(x[i]), 10.0, 0.0) + select(math.isfinite(x[i]), 100.0, 0.0)


def test_tests_of_nan_and_infinity():
    same(nan_tests, FLOATS, np.zeros_like(FLOATS))


@eb.program
def conversions(x, a, b, c):
    for i in par(len(x)):
        a[i] = i32(x[i])
        b[i] = f32(x[i])
        c[i] = f64(int(x[i])) + math.floor(x[i])


def test_conversions_truncate_and_round_as_astype():
    x = np.array([0.0, 1.9, -1.9, 1e9, -3.5, 0.1])
    same(conversions, x, np.zeros(6, np.int32), np.zeros(6, np.float32), np.zeros(6))


@eb.program
def python_floats_beside_f32(x, y, dt: float, n: int):
    scale = dt * dt / 3
    turn = 0.1
    for t in range(n):
        turn = turn * 1.1
    for i in par(len(x)):
        y[i] = x[i] * dt + scale * x[i] - turn + math.exp(x[i]) / 1e30 + float(x[i]) * 3.1


def test_floats_of_python_take_the_type_of_f32_arrays_and_pythons_functions_compute_in_f64():
    x = np.array([0.1, -2.5, 7.0, 100.0], np.float32)
    ours, theirs = np.zeros_like(x), np.zeros_like(x)
    python_floats_beside_f32(x, ours, 0.3, 10)
    python_floats_beside_f32.function(x, theirs, 0.3, 10)
    # An exponential in float32 would be infinite.
    assert np.isfinite(theirs).all() and (ours == theirs).all()


@eb.program
def counters_beside_f32(x, y):
    k = 0
    while k < 20:
        k += 1
        y[0] = x[0] * k
    y[1] = k // 3 + x[1]


def test_an_int_that_meets_floats_stays_an_int():
    x = np.array([0.5, 0.25], np.float32)
    same(counters_beside_f32, x, np.zeros_like(x))


@eb.program
def signs_of_ints(out, n: int):
    for i in range(2 * n):
        out[i] = -(i - n) + abs(i - n) * 100 + ~i


def test_ints_have_signs():
    ours, theirs = np.zeros(20, np.int64), np.zeros(20, np.int64)
    signs_of_ints(ours, 10)
    signs_of_ints.function(theirs, 10)
    assert (ours == theirs).all()


@eb.program
def jumps(u, v):
    n = len(u)
    for i in range(n):
        s = 0.0
        for j in range(n):
            if j == i:
                continue
            if u[j] > 1.0:
                if u[j] > 1.5:
                    break
                s += 100.0
            elif u[j] < -1.0:
                continue
            s += u[j]
        if s > 5.0:
            continue
        v[i] = s
    for i in par(n):
        if u[i] < 0.0:
            continue
        v[i] += np.sqrt(u[i])
    k = 0
    while True:
        k += 1
        if u[k] > 1.5 or k > n - 2:
            break
        v[k] = -v[k]
    for i in range(n):
        if u[i] > 1.8:
            return
        v[i] += 1.0
    v[0] = 7.0


def test_break_continue_and_return_stand_where_they_stand_in_python():
    for seed in range(5):
        u = np.random.default_rng(seed).normal(size=20)
        same(jumps, u, np.zeros(20))


@eb.func
def piecewise(x, most: int):
    if x < 0:
        return -x
    elif x < 1:
        y = x * x
        return y
    root = x
    for k in range(most):
        next = 0.5 * (root + x / root)
        if abs(next - root) < 1e-12:
            break
        root = next
    return root


@eb.program
def early_returns(x, out):
    for i in par(len(x)):
        out[i] = piecewise(x[i], 50)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_return_early(dtype):
    x = np.linspace(-2.0, 4.0, 13).astype(dtype)
    same(early_returns, x, np.zeros_like(x))


@eb.program
def walks(u, v):
    n = len(u)
    for i in range(n - 1, -1, -1):
        v[i] = u[i] + (v[i + 1] if i + 1 < n else 0.0)
    for i in range(8, 1, -3):
        v[i] = -v[i]
    for i in reversed(range(1, n)):
        v[i] += v[i - 1]
    for i in range(5, 2, 2):
        v[0] = 9.0
    for i in reversed(range(0, n, 4)):
        v[i] = v[i] * v[0]
    for i in par(range(1, n - 1, 2)):
        u[i] = 0.5 * (u[i - 1] + u[i + 1])
    for i in par(reversed(range(n))):
        v[i] += u[n - 1 - i]


def test_ranges_go_backwards_and_by_steps():
    same(walks, np.random.default_rng(3).normal(size=10), np.zeros(10))


WIDTH = 3
COEFFICIENTS = (0.25, 0.5, 0.25)
DEBUG = False


@eb.program
def constants(u, v):
    for i in par(range(1, len(u) - 1)):
        v[i] = COEFFICIENTS[0] * u[i - 1] + COEFFICIENTS[1] * u[i] + COEFFICIENTS[-1] * u[i + 1] + WIDTH * math.pi
        if DEBUG:
            v[i] = nowhere[i]  # noqa: F821 - an arm that is not taken is not part of the program


def test_constants_of_the_module_are_part_of_the_program():
    same(constants, np.arange(6.0), np.zeros(6))


@eb.program
def whole_arrays(u, v, w):
    v[:] = u
    w[...] = 2.5
    t = np.zeros_like(u)
    for i in par(u.size):
        t[i] = v[i] * 2.0
    u[:] = t


def test_whole_arrays_are_filled_and_copied_by_slices():
    same(whole_arrays, np.arange(4.0), np.zeros(4), np.zeros((2, 2)))
