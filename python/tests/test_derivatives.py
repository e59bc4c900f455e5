"""Derivatives, plans, yields, durable runs, progress."""

import enum
import os
import signal
import subprocess
import sys
import textwrap

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import checkpoint, max_assign, par, select, swap


@eb.program
def burgers(u, next, nu: float, dt: float, steps: int):
    n = len(u)
    for t in range(steps):
        for i in par(n):
            l = u[(i - 1) % n]
            r = u[(i + 1) % n]
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l))
        swap(u, next)


@eb.program
def objective(u, next, nu: float, dt: float, steps: int, target, loss):
    burgers(u, next, nu, dt, steps)
    for i in par(len(u)):
        d = u[i] - target[i]
        loss[()] += 0.5 * d * d


def arguments(n=30, steps=50):
    u = np.sin(np.arange(n) * 0.3)
    return [u, np.zeros(n), 0.1, 0.05, steps, np.zeros(n), np.zeros(())]


def value(args):
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    objective(*copies)
    return copies[-1][()]


def test_a_gradient_agrees_with_differences():
    args = arguments()
    g = objective.grad("loss", wrt=["u", "nu"])
    kept = args[0].copy()
    found, (du, dnu) = g(*args)
    assert found == value(args) and (args[0] == kept).all()
    h = 1e-6
    slope = (value([*args[:2], 0.1 + h, *args[3:]]) - value([*args[:2], 0.1 - h, *args[3:]])) / (2 * h)
    assert abs(dnu - slope) < 1e-7
    up, down = kept.copy(), kept.copy()
    up[7] += h
    down[7] -= h
    assert abs(du[7] - (value([up, *args[1:]]) - value([down, *args[1:]])) / (2 * h)) < 1e-7


def test_budgets_change_no_bit():
    args = arguments()
    reference = objective.grad("loss", wrt="u", schedule="store_all")(*args)
    for options in ({"memory": "18KiB"}, {"memory": 20000}, {"schedule": ("revolve", 3)}, {"schedule": ("periodic", 7)}):
        g = objective.grad("loss", wrt="u", **options)
        found, du = g(*args)
        assert found == reference[0] and (du == reference[1]).all(), options
    assert g.ran["reversed"] == 50


def test_products_agree_with_each_other():
    args = arguments()
    du = np.cos(np.arange(30.0))
    _, grad = objective.grad("loss", wrt="u")(*args)
    found, moved = objective.jvp("loss", wrt="u")({"u": du}, *args)
    assert found == value(args) and abs(moved - grad @ du) < 1e-12 * abs(moved)
    product = objective.hvp("loss", wrt="u")({"u": du}, *args)
    h = 1e-6
    g = objective.grad("loss", wrt="u")
    slope = (g(args[0] + h * du, *args[1:])[1] - g(args[0] - h * du, *args[1:])[1]) / (2 * h)
    assert np.allclose(product, slope, atol=1e-8)
    cotangent = np.sin(np.arange(30.0))
    out, pulled = burgers.vjp("u", wrt="u")(cotangent, *args[:5])
    _, pushed = burgers.jvp("u", wrt="u")({"u": du}, *args[:5])
    assert abs(pulled @ du - cotangent @ pushed) < 1e-12
    after = [a.copy() if isinstance(a, np.ndarray) else a for a in args[:5]]
    burgers(*after)
    assert (out == after[0]).all()


def test_directions_and_cotangents_are_checked():
    args = arguments()
    with pytest.raises(eb.LaunchError, match="cannot move here"):
        objective.jvp("loss", wrt="u")({"nu": 1.0}, *args)
    with pytest.raises(eb.LaunchError, match="direction of `u` has shape"):
        objective.hvp("loss", wrt="u")({"u": np.ones(3)}, *args)
    with pytest.raises(eb.LaunchError, match="the cotangent is an array"):
        burgers.vjp("u", wrt="u")(np.ones(3), *args[:5])
    with pytest.raises(TypeError, match="takes a direction first"):
        objective.jvp("loss", wrt="u")(*args)


def test_a_plan_says_what_a_run_will_do_and_shows_it():
    args = arguments()
    plan = objective.grad("loss", wrt="u", memory="4KiB").plan(*args)
    assert plan.peak_bytes <= 4 * 1024 == plan.budget and plan.recompute_factor > 1.0
    assert "recompute factor" in str(plan) and plan.loops[0]["steps"] == 50
    assert plan._repr_svg_().startswith("<svg") and "every tape" in plan._repr_html_()


def test_derivatives_print_themselves():
    args = arguments()
    g = objective.grad("loss", wrt="u")
    g(*args)
    assert str(g).startswith("driven program objective_gradient(") and "copy(d_u', d_u)" in str(g)
    assert g.source(*args) is None or "void" in g.source(*args)


def test_scipy_minimises():
    optimize = pytest.importorskip("scipy.optimize")
    args = arguments(n=12, steps=10)
    goal = args[0].copy()
    objective_args = dict(next=np.zeros(12), nu=0.1, dt=0.05, steps=10, loss=np.zeros(()))
    burgers(goal, np.zeros(12), 0.1, 0.05, 10)
    g = objective.grad("loss", wrt="u").bind("u", u=np.zeros(12), target=goal, **objective_args)
    found = optimize.minimize(g.fun, np.zeros(12), jac=True, tol=1e-12)
    assert np.allclose(found.x, args[0], atol=1e-4)


def test_progress_is_told_and_its_exceptions_end_the_run():
    args = arguments(steps=400)
    told = []
    g = objective.grad("loss", wrt="u").progress(lambda done, total: told.append((done, total)))
    g(*args)
    assert told[-1][0] == told[-1][1] == 800

    def refuse(done, total):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        objective.grad("loss", wrt="u").progress(refuse)(*args)


def test_tqdm_shows_progress():
    pytest.importorskip("tqdm")
    from ebbtide.progress import tqdm

    objective.grad("loss", wrt="u").progress(tqdm(disable=True))(*arguments())


class Stage(enum.Enum):
    DETECT = 0
    SOLVE = 1


@eb.program
def growing(u, list, count, overflow, steps: int):
    for t in range(steps):
        with checkpoint(Stage.DETECT, yield_on=overflow, undo=[count]):
            count[()] += 2
            if int(count[()]) > len(list):
                overflow[()] = 1
        with checkpoint(Stage.SOLVE):
            for i in par(len(u)):
                u[i] = u[i] * 0.5 + t


def test_a_program_yields_and_is_resumed_with_other_arrays():
    u, count, overflow = np.ones(3), np.zeros((), np.int32), np.zeros((), np.int32)
    list = np.zeros(4, np.int32)
    places = []
    with growing.run(u, list, count, overflow, 5) as run:
        for at in run:
            assert at.is_at(Stage.DETECT) and not at.is_at(Stage.SOLVE) and at.reason == 1
            places.append(at.position)
            list = np.zeros(2 * len(list), np.int32)
            overflow[()] = 0
            run.args = (u, list, count, overflow, 5)
    assert run.done and places == ["growing/for t=2/Stage::DETECT", "growing/for t=4/Stage::DETECT"]
    expected = np.ones(3)
    for t in range(5):
        expected = expected * 0.5 + t
    assert (u == expected).all() and count[()] == 10


def test_a_yield_is_left_saved_loaded_and_resumed(tmp_path):
    args = [np.ones(3), np.zeros(4, np.int32), np.zeros((), np.int32), np.zeros((), np.int32), 5]
    at = growing(*args)
    assert at is not None and "for t=2" in repr(at)
    at.save(tmp_path / "yield.safetensors")
    at = growing.load(tmp_path / "yield.safetensors", *args)
    args[1], args[3] = np.zeros(100, np.int32), np.zeros((), np.int32)
    assert growing.resume(at, *args) is None
    with pytest.raises(eb.LaunchError, match="there is no label"):
        at.to(Other.ELSEWHERE)


class Other(enum.Enum):
    ELSEWHERE = 0


def test_a_callback_drives_a_program():
    u, count, overflow = np.ones(3), np.zeros((), np.int32), np.zeros((), np.int32)
    seen = []

    def repair(at):
        seen.append(at.reason)
        overflow[()] = 0
        count[()] -= 4

    assert growing.drive(repair, u, np.zeros(4, np.int32), count, overflow, 4) is None
    assert seen == [1]
    left = growing.drive(lambda at: False, u, np.zeros(0, np.int32), count, overflow, 4)
    assert left.position == "growing/for t=0/Stage::DETECT"


@eb.program
def repaired(u, flag, steps: int, loss):
    for t in range(steps):
        with checkpoint(Stage.SOLVE, yield_on=flag, undo=[u]):
            for i in par(len(u)):
                u[i] = u[i] * u[i]
                max_assign(flag, (), select(u[i] > 100.0, 1, 0))
    for i in par(len(u)):
        loss[()] += u[i]


def test_a_gradient_asks_the_host_where_the_program_yields():
    asked = []

    def repair(at, arrays):
        asked.append(at.position)
        arrays["u"] *= 0.0
        arrays["u"] += 2.0
        arrays["flag"][()] = 0

    g = repaired.grad("loss", wrt="u", on_yield=repair)
    found, du = g(np.array([3.0, 1.5]), np.zeros((), np.int32), 4, np.zeros(()))
    assert asked and found == repaired_by_hand(asked) and du.shape == (2,)

    def fails(at, arrays):
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        repaired.grad("loss", wrt="u", on_yield=fails)(np.array([3.0]), np.zeros((), np.int32), 4, np.zeros(()))


def repaired_by_hand(asked):
    u, flag, loss = np.array([3.0, 1.5]), np.zeros((), np.int32), np.zeros(())
    with repaired.run(u, flag, 4, loss) as run:
        for at in run:
            u[:] = 2.0
            flag[()] = 0
    return loss[()]


def test_a_durable_gradient_survives_its_process(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        sys.path.insert(0, sys.argv[1])
        from test_derivatives import arguments, objective
        g = objective.grad("loss", wrt="u", memory="18KiB").durable(sys.argv[2], every=0.0)

        def kill(done, total):
            if done > 60 and sys.argv[3] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)

        value, du = g.progress(kill)(*arguments(steps=50))
        print(float(value).hex(), du.tobytes().hex())
        """
    )
    here = os.path.dirname(__file__)
    run = tmp_path / "run"

    def process(how):
        return subprocess.run([sys.executable, "-c", script, here, str(run), how], capture_output=True, text=True, timeout=300)

    first = process("kill")
    value, du = objective.grad("loss", wrt="u")(*arguments())
    expected = [float(value).hex(), du.tobytes().hex()]
    if first.returncode == -signal.SIGKILL:
        assert any(run.iterdir())
    else:
        # Observers are told at intervals: a fast machine may have ended before.
        assert first.stdout.split() == expected, first.stderr
    again = process("on")
    assert again.stdout.split() == expected, again.stderr
    assert process("on").stdout.split() == expected
    with pytest.raises(eb.StorageError, match="|".join(["nu", "input"])):
        args = arguments()
        args[2] = 0.2
        objective.grad("loss", wrt="u", memory="18KiB").durable(run)(*args)


@eb.program
def endless(u, stop, steps: int, loss):
    t = 0
    while stop[()] == 0 and t < steps:
        t += 1
        for i in par(len(u)):
            u[i] = u[i] * (1.0 - 1e-9 * u[i])
    for i in par(len(u)):
        loss[()] += u[i]


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("kind", ["grad", "hvp"])
def test_ctrl_c_cancels_a_derivative_and_leaves_the_arguments_as_they_are(kind):
    script = textwrap.dedent(
        """
        import os, signal, sys, threading
        import numpy as np
        sys.path.insert(0, sys.argv[1])
        from test_derivatives import endless
        # A shell lets what it runs in its background ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        u, stop, first = np.ones(4), np.zeros((), np.int32), [{"u": np.ones(4)}] if sys.argv[2] == "hvp" else []
        g = getattr(endless, sys.argv[2])("loss", wrt="u", memory="1MiB")
        g(*first, u, stop, 3, np.zeros(()))

        sent = []

        def interrupt(done, total):
            if not sent:
                sent.append(os.kill(os.getpid(), signal.SIGINT))

        try:
            g.progress(interrupt)(*first, u, stop, 10**15, np.zeros(()))
            print("ended")
        except KeyboardInterrupt:
            print("interrupted")
        g(*first, u, stop, 3, np.zeros(()))
        print((u == 1.0).all())
        """
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["interrupted", "True"], done.stderr


def test_sizes_are_read():
    from ebbtide.derivatives import byte_count

    assert [byte_count(s) for s in (5, "64KiB", "1.5 MiB", "2GB", "7")] == [5, 65536, 1572864, 2 * 10**9, 7]
    with pytest.raises(ValueError, match="is no number of bytes"):
        byte_count("many")
