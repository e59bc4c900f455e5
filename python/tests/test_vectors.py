"""Small vectors and matrices: rows of arrays, and what is computed from them."""

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import Array0, Array1, Mat2, Mat3, Vec2, Vec3, f32, f64, func, min_assign, par


def same(program, *args, exactly=True):
    """The program does to its arrays what the function does in plain Python."""
    ours = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    theirs = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    program(*ours)
    program.function(*theirs)
    for a, b in zip(ours, theirs):
        if isinstance(a, np.ndarray):
            assert (a == b).all() if exactly else np.allclose(a, b, rtol=1e-12, atol=1e-14)
    return ours


def random(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


@eb.program
def fall(x: Array1[Vec2[f64]], v: Array1[Vec2[f64]], dt: float):
    g = np.array([0.0, -9.81])
    for i in par(len(x)):
        v[i] += dt * g
        x[i] = x[i] + dt * v[i]
        v[i] *= 0.99
        x[i] -= 0.5 * np.array([v[i, 1], v[i][0]])


def test_rows_are_vectors():
    same(fall, random(5, 2), random(5, 2), 0.1)


@eb.program
def geometry(x: Array1[Vec3[f64]], y: Array1[Vec3[f64]], out):
    for i in par(len(x)):
        c = np.cross(x[i], y[i])
        d = x[i] - y[i]
        out[i] = np.dot(c, d) + np.linalg.norm(d) + x[i] @ y[i] + np.sum(c) + c[2] - c[-1] + x[i, 1]


@eb.program
def matrices(m: Array1[Mat2[f64]], x: Array1[Vec2[f64]], out: Array1[Vec2[f64]], t):
    for i in par(len(x)):
        s = m[i] @ m[i].T + np.eye(2)
        out[i] = np.linalg.inv(s) @ x[i]
        t[i] = np.trace(s) + np.linalg.det(s) + s[0, 1] + s[1][0] + np.sum(np.outer(x[i], x[i]))


@eb.program
def inverses(m: Array1[Mat3[f64]], out: Array1[Mat3[f64]], det):
    for i in par(len(m)):
        out[i] = np.linalg.inv(m[i])
        det[i] = np.linalg.det(m[i])


def test_products_norms_and_inverses_agree_with_numpy():
    # NumPy adds the terms of a product in an order of its own.
    same(geometry, random(5, 3), random(5, 3) + 1.0, np.zeros(5), exactly=False)
    same(matrices, random(5, 2, 2), random(5, 2), np.zeros((5, 2)), np.zeros(5), exactly=False)
    same(inverses, random(5, 3, 3), np.zeros((5, 3, 3)), np.zeros(5), exactly=False)


@func
def orbit(pos, vel, dt):
    """A function takes vectors and returns several."""
    r = np.linalg.norm(pos)
    new = vel - pos * (dt / (r * r * r))
    return pos + new * dt, new, r


@eb.program
def orbits(x: Array1[Vec2[f64]], v: Array1[Vec2[f64]], nearest: Array1[f64], dt: float, steps: int):
    for i in par(len(x)):
        for _t in range(steps):
            pos, vel, r = orbit(x[i], v[i], dt)
            min_assign(nearest, i, r)
            x[i] = pos
            v[i] = vel


def test_functions_take_and_return_vectors():
    x, v, nearest, _, _ = same(orbits, np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.full(1, 9.0), 0.001, 100, exactly=False)
    assert abs(nearest[0] - 1.0) < 1e-3 and abs(np.linalg.norm(x[0]) - 1.0) < 1e-2


@eb.program
def variables(x: Array1[Vec2[f64]], out: Array1[Vec2[f64]], shift: Array0[Vec2[f64]]):
    for i in par(len(x)):
        s = np.zeros(2)
        for j in range(len(x)):
            s += (x[j] - x[i]) * 0.5
            s = s * 1.01
        if s[0] > 0.0:
            w = s * 2.0
        else:
            w = -s
        a, b = x[i]
        out[i] = w + shift[()] + np.array([b, a]) if a > 0.0 else w.copy()


def test_variables_are_vectors():
    same(variables, random(5, 2), np.zeros((5, 2)), np.array([0.5, 0.25]))


@eb.program
def single(x: Array1[Vec2[f32]], out: Array1[Vec2[f32]], k: float):
    for i in par(len(x)):
        out[i] = x[i] * k + 0.1 * x[i] + np.array([k, 1.0], dtype=np.float32)


def test_vectors_of_f32():
    same(single, random(5, 2).astype(np.float32), np.zeros((5, 2), np.float32), 0.3)


@eb.program
def energy(x: Array1[Vec3[f64]], loss):
    squares = np.zeros((len(x), 3))
    for i in par(len(x)):
        squares[i] = x[i] * x[i]
    for i in par(len(x)):
        loss[()] += np.linalg.norm(squares[i])


def test_gradients_have_the_shape_of_their_arrays():
    x = random(4, 3)
    value, dx = energy.grad("loss", wrt="x")(x, np.zeros(()))
    norms = np.linalg.norm(x * x, axis=1)
    assert np.isclose(value, norms.sum()) and np.allclose(dx, 2.0 * x**3 / norms[:, None])


def test_an_array_with_other_extents_is_refused():
    with pytest.raises(eb.LaunchError, match=r"`x` has elements of shape \[3\], and this array has shape \[4, 2\]"):
        energy(np.zeros((4, 2)), np.zeros(()))
    energy(np.zeros((4, 3)), np.zeros(()))
    with pytest.raises(eb.LaunchError, match="`x` has elements of shape"):
        energy.grad("loss", wrt="x")(np.zeros((4, 2)), np.zeros(()))


def refused(function, *args, contains):
    with pytest.raises(eb.BuildError) as caught:
        eb.program(function)(*args)
    assert contains in str(caught.value), caught.value


def test_what_numpy_makes_a_view_of_is_not_copied_silently():
    x, out = random(5, 2), np.zeros((5, 2))

    def view(x: Array1[Vec2[f64]], out: Array1[Vec2[f64]]):
        for i in par(len(x)):
            old = x[i]
            x[i] = x[i] * 2.0
            out[i] = x[i] - old

    refused(view, x, out, contains="write `.copy()` after it")

    def alias(x: Array1[Vec2[f64]], out: Array1[Vec2[f64]]):
        for i in par(len(x)):
            a = x[i] * 2.0
            b = a
            b += 1.0
            out[i] = a

    refused(alias, x, out, contains="a second name of the same vector")

    @func
    def moved(p):
        p += 1.0
        return p

    def parameter(x: Array1[Vec2[f64]], out: Array1[Vec2[f64]]):
        for i in par(len(x)):
            out[i] = moved(x[i])

    refused(parameter, x, out, contains="changes the caller's `p`")

    def component(x: Array1[Vec2[f64]], out: Array1[Vec2[f64]]):
        for i in par(len(x)):
            a = x[i] * 2.0
            a[0] = 1.0
            out[i] = a

    refused(component, x, out, contains="make the vector anew")


def test_what_vectors_do_not_have_says_what_to_write():
    x, out = random(5, 2), np.zeros(5)

    def unknown(x, out):
        for i in par(len(x)):
            out[i] = np.linalg.norm(x[i])

    refused(unknown, x, out, contains="annotate `x: Array1[Vec3[f64]]`")

    def computed(x: Array1[Vec2[f64]], out):
        for i in par(len(x)):
            a = x[i] * 2.0
            for k in range(2):
                out[i] += a[k]

    refused(computed, x, out, contains="a component has a constant index")

    def mixed(x: Array1[Vec2[f32]], out):
        for i in par(len(x)):
            out[i] = np.sum(x[i] + np.array([0.1, 1.0]))

    refused(mixed, x.astype(np.float32), out, contains="nothing is converted by itself")

    def number(x: Array1[Vec2[f64]], out):
        for i in par(len(x)):
            out[i] = x[i]

    refused(number, x, out, contains="where a number is wanted")
