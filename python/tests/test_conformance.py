"""CONFORMANCE C, D and G from Python; the number of each promise is in the name of its test."""

import concurrent.futures
import dataclasses
import enum
import importlib.util
import os
import random
import re
import subprocess
import sys
import textwrap

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import Array0, Array1, checkpoint, f64, i32, par, select, swap


class Stage(enum.Enum):
    A = 0
    B = 1
    C = 2


class Other(enum.Enum):
    B = 0


def flag():
    return np.zeros((), np.int32)


# -- C: loops -----------------------------------------------------------------------------------------------------------


@eb.program
def once_or_never(counts, limit: int):
    while True:
        counts[0] += 1
        if counts[0] >= limit:
            break
    while counts[1] < limit:
        counts[1] += 1


def test_c18_a_loop_with_a_closing_break_runs_at_least_once_and_a_while_may_run_never():
    counts = np.zeros(2, np.int64)
    once_or_never(counts, 0)
    assert counts.tolist() == [1, 0]
    once_or_never(counts, 3)
    assert counts.tolist() == [3, 3]


@eb.program
def conditions(left, more, u, counts):
    while left[()] > 0:
        left[()] -= 1
        counts[0] += 1
    while more[()]:
        counts[1] += 1
        more[()] = counts[1] < 4
    while u[0] < u[1]:
        u[0] += 1.0
        counts[2] += 1


def test_c19_counters_bools_and_elements_are_conditions():
    counts = np.zeros(3, np.int32)
    conditions(np.array(5, np.uint32), np.array(True), np.array([0.5, 3.0]), counts)
    assert counts.tolist() == [5, 4, 3]


@eb.program
def nest(counts, a: int, b: int, c: int):
    counts[0] += 1
    for i in range(a):
        counts[1] += 1
        for j in range(b):
            for k in range(c):
                counts[2] += 1
            counts[3] += 1
        for j in range(b):
            counts[4] += 1
    counts[5] += 1


def test_c20_c21_nests_run_each_statement_as_often_as_it_stands_there():
    counts = np.zeros(6, np.int64)
    nest(counts, 2, 3, 2)
    assert counts.tolist() == [1, 2, 12, 6, 6, 1]


def test_c22_other_arrays_sizes_and_flags_build_nothing_anew():
    for n in (1, 5, 100):
        with stages.run(np.zeros(3, np.int32), flag(), flag()) as run:
            assert list(run) == []
        once_or_never(np.zeros(2 + n, np.int64), n)
    assert len(stages._built()) == 1 and len(once_or_never._built()) == 1


@eb.program
def bounds_from_data(n, u):
    n[()] = 0
    for i in range(len(u)):
        n[()] += 2
    for i in range(int(n[()]) - len(u)):
        u[i] = float(i)


def test_c23_bounds_depend_on_data_of_the_same_launch():
    u = np.zeros(4)
    bounds_from_data(flag(), u)
    assert u.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_c24_loops_that_the_language_does_not_have_are_errors():
    def over_elements(u):
        for x in u:
            u[0] += x

    def with_else(u):
        for i in range(3):
            u[i] = 1.0
        else:
            u[0] = 2.0

    def endless(u):
        while True:
            u[0] += 1.0

    for function in (over_elements, with_else, endless):
        with pytest.raises(eb.BuildError):
            eb.program(function)(np.ones(4))


# -- D: yields ----------------------------------------------------------------------------------------------------------


@eb.program
def stages(u, at_b, at_c):
    with checkpoint(Stage.A):
        u[0] += 1
    with checkpoint(Stage.B, yield_on=at_b):
        u[1] += 10
    with checkpoint(Stage.C, yield_on=at_c):
        u[2] += 100


def test_d28_d29_d32_a_yield_stands_after_its_region_and_resumes_where_it_is_told():
    u, b = np.zeros(3, np.int32), flag()
    assert stages(u, b, flag()) is None and u.tolist() == [1, 10, 100]
    for label, expected in ((None, [1, 20, 100]), (Stage.C, [1, 10, 100])):
        u[:], b[()] = 0, 7
        at = stages(u, b, flag())
        assert u.tolist() == [1, 10, 0] and at.reason == 7
        assert at.is_at(Stage.B) and not at.is_at(Stage.A)
        b[()] = 0
        assert stages.resume(at if label is None else at.to(label), u, b, flag()) is None
        assert u.tolist() == expected


def test_d25_a_program_without_a_yielding_region_costs_what_it_costs_without_regions():
    def plain(u):
        u[0] += 1.0
        for i in par(len(u)):
            u[i] = 2.0 * u[i]

    def labelled(u):
        with checkpoint(Stage.A):
            u[0] += 1.0
        with checkpoint(Stage.B):
            for i in par(len(u)):
                u[i] = 2.0 * u[i]

    def yielding(u, b):
        with checkpoint(Stage.A, yield_on=b):
            u[0] += 1.0
        with checkpoint(Stage.B):
            for i in par(len(u)):
                u[i] = 2.0 * u[i]

    u = np.ones(3)
    source = [code(eb.program(function), u) for function in (plain, labelled)]
    assert source[0] == source[1] != code(eb.program(yielding), u, flag())


def code(program, *args):
    """The generated source without what it says of where it comes from."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|#line[^\n]*", "", program.source(*args), flags=re.S)
    return [line.strip() for line in text.replace(program.name, "program").splitlines() if line.strip()]


@eb.program
def between(log, u, b, c):
    count = 10.0
    if u[0] > 0.0:
        count = count + 1.0
    log[0] += count
    with checkpoint(Stage.A, yield_on=b):
        log[1] += 1.0
    scaled = 2.0 * u[0]
    if scaled > 1.0:
        log[2] += scaled
    else:
        log[2] -= scaled
    with checkpoint(Stage.B, yield_on=c):
        log[3] += 1.0
    log[4] += count + scaled


@pytest.mark.parametrize("first, log", [(1.0, [11.0, 1.0, 2.0, 1.0, 13.0]), (-1.0, [10.0, 1.0, 2.0, 1.0, 8.0])])
def test_d27_statements_outside_of_labels_are_regions_too_in_their_order(first, log):
    expected = np.array(log)
    found, u, b, c = np.zeros(5), np.array([first]), flag(), flag()
    assert between(found, u, b, c) is None and found.tolist() == log
    # Nothing behind a yield has run; a resume runs again the region that yielded, and nothing before it.
    found[:], b[()] = 0.0, 1
    at = between(found, u, b, c)
    assert at.is_at(Stage.A) and found.tolist() == [*log[:2], 0.0, 0.0, 0.0]
    b[()], c[()] = 0, 1
    at = between.resume(at, found, u, b, c)
    assert at.is_at(Stage.B) and found.tolist() == [log[0], 2.0, *log[2:4], 0.0]
    c[()] = 0
    assert between.resume(at, found, u, b, c) is None
    assert found.tolist() == (expected + [0.0, 1.0, 0.0, 1.0, 0.0]).tolist()


def test_d41_labels_belong_to_a_compiled_program_and_statuses_are_its_own():
    def three(u, b):
        with checkpoint(Stage.C, yield_on=b):
            u[0] += 1
        with checkpoint(Stage.A, yield_on=b):
            u[1] += 1

    first, other = eb.program(three), eb.program(three.__class__(three.__code__, three.__globals__, "three"))
    u, b = np.zeros(3, np.int32), np.array(5, np.int32)
    at = stages(u, b, flag())
    assert at.is_at(Stage.B)
    here = first(u, b)
    assert here.is_at(Stage.C) and here.reason == 5 and not here.is_at(Stage.B)
    # The yield of one program is no place of another one; what each said stays what it was.
    with pytest.raises(eb.LaunchError):
        first.resume(at, u, b)
    with pytest.raises(eb.LaunchError):
        at.to(Other.B)
    b[()] = 0
    assert first(u, b) is None and stages(u, b, flag()) is None
    assert at.is_at(Stage.B) and here.is_at(Stage.C)
    # The same program for other element types, and another object of the same function, know their labels too.
    wide = np.zeros(3, np.int64)
    b[()] = 6
    assert first(wide, b).reason == 6 and other(u, b).is_at(Stage.C)
    b[()] = 0
    assert first.resume(here, u, b) is None and first(wide, b) is None


def test_d43_a_status_is_polled_and_waited_for_in_a_thread_and_may_be_dropped():
    """The interpreter's lock is free while a program runs: a future of Python is its pending launch."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        u, b = np.zeros(3, np.int32), np.array(3, np.int32)
        pending = pool.submit(stages, u, b, flag())
        at = pending.result()
        assert pending.done() and at.reason == 3 and u.tolist() == [1, 10, 0]
        b[()] = 0
        assert pool.submit(stages.resume, at, u, b, flag()).result() is None and u.tolist() == [1, 20, 100]
        # A future that nobody asks: the launch ends all the same, and its arrays live until then.
        left = np.zeros(3, np.int32)
        pool.submit(stages, left, flag(), flag())
    assert left.tolist() == [1, 10, 100]


def test_d26_labels_come_back_as_their_members_and_are_unique():
    at = stages(np.zeros(3, np.int32), np.array(1, np.int32), flag())
    assert not at.is_at(Other.B)

    def twice(u):
        with checkpoint(Stage.A):
            u[0] = 1.0
        with checkpoint(Stage.A):
            u[0] = 2.0

    with pytest.raises(eb.BuildError, match="Stage::A"):
        eb.program(twice)(np.ones(1))


def test_d30_the_first_of_two_flags_wins_and_d31_a_flag_that_stays_yields_again():
    u, b, c = np.zeros(3, np.int32), np.array(1, np.int32), np.array(1, np.int32)
    at = stages(u, b, c)
    assert at.is_at(Stage.B)
    again = stages.resume(at, u, b, c)
    assert again.is_at(Stage.B) and u.tolist() == [1, 20, 0] and b[()] == 1 == c[()]
    b[()] = 0
    assert stages.resume(again, u, b, c).is_at(Stage.C)


@eb.program
def passes(u, b, n: int, at: int):
    for t in range(n):
        with checkpoint(Stage.A):
            u[0] += 1
        with checkpoint(Stage.B, yield_on=b):
            u[1] += 1
            if t == at and u[1] == at + 1:
                b[()] = 1
        with checkpoint(Stage.C):
            u[2] += 1


@pytest.mark.parametrize("at", [0, 1, 2])
def test_d33_in_a_loop_the_skip_is_of_the_resumed_iteration_alone(at):
    for label, expected in ((None, [3, 4, 3]), (Stage.C, [3, 3, 3])):
        u, b, calls = np.zeros(3, np.int64), flag(), 0
        with passes.run(u, b, 3, at) as run:
            for _ in run:
                calls += 1
                b[()] = 0
                if label is not None:
                    run.to(label)
        assert u.tolist() == expected and calls == 1


def test_d34_a_run_begins_at_a_label_without_a_yield():
    u = np.zeros(3, np.int32)
    assert stages.resume_at(Stage.B, u, flag(), flag()) is None
    assert u.tolist() == [0, 10, 100]


def test_d35_wrong_labels_and_flags_say_so():
    u = np.zeros(3, np.int32)
    at = stages(u, np.array(1, np.int32), flag())
    with pytest.raises(eb.LaunchError, match="there is no label"):
        at.to(Other.B)
    with pytest.raises(eb.LaunchError, match="label"):
        stages.resume_at(Other.B, u, flag(), flag())
    with pytest.raises(eb.Error):
        nest.resume_at(Stage.A, np.zeros(6, np.int64), 1, 1, 1)

    def nested(u, b):
        with checkpoint(Stage.A):
            with checkpoint(Stage.B, yield_on=b):
                u[0] = 1.0

    def float_flag(u, b):
        with checkpoint(Stage.A, yield_on=u):
            u[0] = 1.0

    def unknown_option(u, b):
        with checkpoint(Stage.A, when=b):
            u[0] = 1.0

    for function in (nested, float_flag, unknown_option):
        with pytest.raises(eb.BuildError):
            eb.program(function)(np.ones(1), flag())


@dataclasses.dataclass
class Flags:
    stop: Array0[i32]


@dataclasses.dataclass
class Machine:
    flags: Flags
    u: Array1[f64]


@eb.program
def machine(m: Machine):
    with checkpoint(Stage.A, yield_on=m.flags.stop):
        m.u[0] += 1.0


def test_d36_flags_are_members_of_dataclasses_and_d37_a_yield_touches_no_other_program():
    m = Machine(Flags(np.array(1, np.int32)), np.zeros(1))
    assert machine(m).is_at(Stage.A)
    u = np.zeros(3, np.int32)
    assert stages(u, flag(), flag()) is None and u.tolist() == [1, 10, 100]


@eb.program
def nested_loops(t, b, when: int):
    for i in range(3):
        t[0] += 1
        for j in range(2):
            t[1] += 1
        t[2] += 1
        with checkpoint(Stage.A, yield_on=b):
            t[3] += 1
            if i == when and t[3] == when + 1:
                b[()] = 1
        t[4] += 1


@eb.program
def after_a_loop(t, b, when: int):
    for i in range(3):
        t[0] += 1
    t[1] += 1
    with checkpoint(Stage.A, yield_on=b):
        t[2] += 1
        if t[2] == 1:
            b[()] = 1
    t[3] += 1


@eb.program
def siblings(t, b, when: int):
    for i in range(2):
        t[0] += 1
    for i in range(3):
        t[1] += 1
        with checkpoint(Stage.A, yield_on=b):
            t[2] += 1
            if i == when and t[2] == when + 1:
                b[()] = 1
        t[3] += 1


@pytest.mark.parametrize("when", [0, 1, 2])
@pytest.mark.parametrize(
    "program, expected",
    [(nested_loops, [3, 6, 3, 4, 3]), (after_a_loop, [3, 1, 2, 1]), (siblings, [2, 3, 4, 3])],
    ids=["nested", "after", "siblings"],
)
def test_d38_d39_a_resume_is_exact_in_nested_sibling_and_mixed_loops(program, expected, when):
    t, b = np.zeros(len(expected), np.int64), flag()
    with program.run(t, b, when) as run:
        for _ in run:
            b[()] = 0
    assert t.tolist() == expected


@eb.program
def loop_in_a_region(u, b, n: int):
    with checkpoint(Stage.A, yield_on=b):
        for i in range(n):
            u[0] += 1.0
            b[()] = 1
    u[1] = 1.0


def test_d40_a_region_with_a_loop_looks_at_its_flag_once():
    u, b = np.zeros(2), flag()
    at = loop_in_a_region(u, b, 5)
    assert u.tolist() == [5.0, 0.0] and at.reason == 1


@eb.program
def undone(u, needed, b):
    with checkpoint(Stage.A, yield_on=b, undo=[u]):
        for i in par(len(u)):
            u[i] += 1.0
        needed[()] = 7
        b[()] = 1 if len(u) < 3 else 0


def test_d44_a_yield_undoes_what_its_region_declares_and_nothing_else():
    u, needed, b = np.zeros(2), flag(), flag()
    at = undone(u, needed, b)
    assert u.tolist() == [0.0, 0.0] and needed[()] == 7 and b[()] == 1
    u = np.zeros(3)
    assert undone.resume(at, u, needed, b) is None and u.tolist() == [1.0, 1.0, 1.0]


def test_d42_a_yield_is_resumed_by_another_process_as_its_first_call_on_other_threads(tmp_path):
    u, b = np.zeros(3, np.int64), flag()
    at = passes(u, b, 3, 1)
    at.save(tmp_path / "at")
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np
        from test_conformance import flag, passes
        u, b = np.array(eval(sys.argv[3])), flag()
        at = passes.load(sys.argv[2], u, b, 3, 1)
        print(passes.resume(at, u, b, 3, 1), u.tolist())
        """
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__), str(tmp_path / "at"), str(u.tolist())]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "EBBTIDE_THREADS": "3"})
    assert done.stdout.strip() == "None [3, 4, 3]", done.stderr


def test_d45_a_gradient_that_was_interrupted_equals_one_that_had_the_hosts_values_from_the_start():
    u = np.array([3.0, 1.5, 1.01])

    def repair(at, arrays):
        arrays["flag"][()] = 0
        arrays["limit"][()] = 50.0

    args = lambda limit: (u, flag(), np.array(limit), 6, np.zeros(()))
    for options in ({}, {"schedule": ("revolve", 2)}):
        interrupted = written.grad("loss", wrt="u", on_yield=repair, **options)(*args(1e300))
        straight = written.grad("loss", wrt="u", **options)(*args(50.0))
        assert interrupted[0] == straight[0] and (interrupted[1] == straight[1]).all()


@eb.program
def written(u, flag, limit, steps: int, loss):
    flag[()] = select(limit[()] > 1e100, 1, 0)
    with checkpoint(Stage.A, yield_on=flag, undo=True):
        limit[()] = limit[()] * 1.0
    for t in range(steps):
        for i in par(len(u)):
            u[i] = np.minimum(u[i] * u[i], limit[()])
    for i in par(len(u)):
        loss[()] += u[i] * u[i]


# -- G: gradients -------------------------------------------------------------------------------------------------------


@eb.program
def smooth(u, next, steps: int, loss):
    n = len(u)
    for t in range(steps):
        for i in par(n):
            next[i] = u[i] + 0.2 * (u[(i - 1) % n] - 2.0 * u[i] + u[(i + 1) % n]) - 0.01 * u[i] * u[i]
        swap(u, next)
    for i in par(n):
        loss[()] += 0.5 * u[i] * u[i]


def wave(n):
    return np.sin(np.arange(n) * 0.1)


@pytest.mark.parametrize("n", [30, 10_000])
def test_g51_a_gradient_gives_the_value_of_a_plain_run(n):
    u, next, loss = wave(n), np.zeros(n), np.zeros(())
    smooth(u, next, 20, loss)
    for options in ({}, {"schedule": ("revolve", 3)}, {"schedule": "store_all"}):
        value, _ = smooth.grad("loss", wrt="u", **options)(wave(n), np.zeros(n), 20, np.zeros(()))
        assert value == loss[()]


@eb.program
def perhaps_swapped(u, v, exchange: bool, loss):
    if exchange:
        swap(u, v)
    for i in par(len(u)):
        loss[()] += u[i] * u[i]


def test_g52_a_swap_that_does_not_run_proves_nothing():
    u, v = np.array([1.0, 2.0, 3.0]), np.array([5.0])
    value, du = perhaps_swapped.grad("loss", wrt="u")(u, v, False, np.zeros(()))
    assert value == 14.0 and du.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(eb.Error, match="shape"):
        perhaps_swapped(u, v, True, np.zeros(()))


def test_g53_all_derivatives_take_the_same_options():
    n, asked = 3, []

    def repair(at, arrays):
        asked.append(at.position)
        arrays["flag"][()] = 0
        arrays["limit"][()] = 50.0

    args = lambda: (np.array([3.0, 1.5, 1.01]), flag(), np.array(50.0), 6, np.zeros(()))
    direction = {"u": np.ones(n)}
    kinds = {
        "grad": lambda d: d(*args()),
        "vjp": lambda d: d(1.0, *args()),
        "jvp": lambda d: d(direction, *args()),
        "hvp": lambda d: d(direction, *args()),
    }
    for kind, call in kinds.items():
        derivative = getattr(written, kind)("loss", wrt="u", memory="1MiB", on_yield=repair)
        told = []
        call(derivative.progress(lambda done, total: told.append(done)))
        assert told, kind
        assert derivative.plan(*args()).peak_bytes <= 2**20
        interrupted = getattr(written, kind)("loss", wrt="u", on_yield=repair, schedule="store_all")
        with_limit, args_of = call(interrupted), args
        args = lambda: (np.array([3.0, 1.5, 1.01]), flag(), np.array(1e300), 6, np.zeros(()))  # noqa: E731
        yielded = call(interrupted)
        args = args_of
        assert str(yielded) == str(with_limit), kind
    assert len(asked) == 4


def test_g53_products_survive_their_process_too(tmp_path):
    args = (wave(30), np.zeros(30), 40, np.zeros(()))
    for kind, first in (("vjp", 1.0), ("hvp", {"u": np.ones(30)})):
        expected = getattr(smooth, kind)("loss", wrt="u")(first, *args)
        durable = getattr(smooth, kind)("loss", wrt="u", memory="24KiB").durable(tmp_path / kind, every=0.0)
        assert str(durable(first, *args)) == str(expected) == str(durable(first, *args))
    with pytest.raises(ValueError, match="a jvp does not run durably"):
        smooth.jvp("loss", wrt="u").durable(tmp_path / "jvp")


@eb.program
def rows(x, steps: int, loss):
    n = x.shape[1]
    for t in range(steps):
        for i in par(n):
            x[t + 1, i] = 0.9 * x[t, i] + 0.1 * x[t, i] * x[t, i]
    for i in par(n):
        loss[()] += x[steps, i]


class RandomProgram:
    """The text of a random program of floats: parallel and sequential loops, conditions, swaps, branches."""

    UNARY = ("np.sin({})", "np.cos({})", "np.tanh({})", "np.exp(-{0} * {0})", "(-{})", "np.sqrt(1.0 + {0} * {0})")
    BINARY = ("({} + {})", "({} - {})", "({} * {})", "({0} / (2.0 + {1} * {1}))", "select({0} > {1}, {0}, 0.5 * {1})")

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []

    def value(self, depth, leaves):
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            return self.random.choice([*leaves, f"{self.random.uniform(-1.0, 1.0):.3f}"])
        if kind < 0.6:
            return self.random.choice(self.UNARY).format(self.value(depth - 1, leaves))
        return self.random.choice(self.BINARY).format(self.value(depth - 1, leaves), self.value(depth - 1, leaves))

    def statement(self, indent, depth):
        def say(text):
            self.lines.append("    " * indent + text)

        to, other = self.random.sample(["u", "v", "w"], 2)
        kind = self.random.randrange(6 if depth else 4)
        if kind == 0:
            say(f"for i in par(len({to})):")
            say(f"    {to}[i] = {self.value(2, [f'{to}[i]', f'{other}[i]', 'k'])}")
        elif kind == 1:
            say(f"for i in par(range(1, len({to}) - 1)):")
            say(f"    {to}[i] = {self.value(2, [f'{other}[i - 1]', f'{other}[i + 1]', f'{other}[i]', 'k'])}")
        elif kind == 2:
            say(f"for i in range(1, len({to})):")
            say(f"    {to}[i] = 0.5 * {to}[i - 1] + {self.value(2, [f'{to}[i]', f'{other}[i]', 'k'])}")
        elif kind == 3:
            say(f"swap({to}, {other})")
        elif kind == 4:
            say(f"for t{depth} in range({self.random.randint(0, 4)}):")
            self.block(indent + 1, depth - 1)
        else:
            say(f"if {to}[0] > {other}[1]:")
            self.block(indent + 1, depth - 1)

    def block(self, indent, depth):
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)

    def text(self):
        self.lines = ["def made(u, v, w, k: float, loss):"]
        self.block(1, 2)
        self.lines += ["    for i in par(len(u)):", "        loss[()] += u[i] * v[i] + 0.5 * w[i] * w[i] + k * u[i]"]
        return "\n".join(self.lines) + "\n"


def test_g54_what_verifies_has_a_gradient_a_jvp_and_an_hvp(tmp_path):
    n, wrt = 5, ["u", "k"]
    for seed in range(60):
        file = tmp_path / f"made_{seed}.py"
        file.write_text("import numpy as np\nfrom ebbtide import par, select, swap\n\n\n" + RandomProgram(seed).text())
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        program = eb.program(device="interpreter")(module.made)
        draw = np.random.default_rng(seed).standard_normal
        args = [draw(n), draw(n), draw(n), float(draw()), np.zeros(())]
        direction = {"u": draw(n), "k": float(draw())}
        plain = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        program(*plain)
        value, (du, dk) = program.grad("loss", wrt=wrt)(*args)
        same, tangent = program.jvp("loss", wrt=wrt)(direction, *args)
        second = program.hvp("loss", wrt=wrt)(direction, *args)
        assert value == plain[4][()] == same, file.read_text()
        along = float((du * direction["u"]).sum() + dk * direction["k"])
        size = float(np.abs(du * direction["u"]).sum() + abs(dk * direction["k"]))
        assert abs(along - tangent) <= 1e-9 * (1.0 + size), file.read_text()
        assert second[0].shape == (n,) and np.shape(second[1]) == ()


def test_g55_a_trajectory_in_the_callers_array_is_linear_and_nothing_runs_again():
    peaks = {}
    for steps in (50, 100, 200):
        x = np.zeros((steps + 1, 20))
        x[0] = np.linspace(0.1, 0.9, 20)
        g = rows.grad("loss", wrt="x")
        value, dx = g(x, steps, np.zeros(()))
        assert g.ran["advanced"] == 0
        peaks[steps] = g.plan(x, steps, np.zeros(())).peak_bytes
    assert peaks[200] - peaks[100] <= 2.2 * (peaks[100] - peaks[50])
    h = 1e-6
    moved = [np.zeros((201, 20)) for _ in range(2)]
    for array, by in zip(moved, (h, -h)):
        array[0] = np.linspace(0.1, 0.9, 20)
        array[0, 3] += by
    losses = []
    for array in moved:
        loss = np.zeros(())
        rows(array, 200, loss)
        losses.append(loss[()])
    assert abs(dx[0, 3] - (losses[0] - losses[1]) / (2 * h)) < 1e-6


@eb.program
def triangle(u, n: int, counts, loss):
    for i in range(n):
        for j in range(i):
            u[0] = u[0] * 0.99 + 0.001 * u[j]
        for j in range(int(counts[i])):
            u[1] = u[1] * u[1] * 0.9
    loss[()] = u[0] + u[1]


def test_g56_bounds_of_outer_variables_and_of_constant_data_are_known_lengths():
    u, counts = np.linspace(0.2, 0.9, 8), np.array([0, 2, 1, 0, 3, 0, 0, 1], np.int32)
    reference = None
    for options in ({"schedule": "store_all"}, {}, {"memory": "64KiB"}):
        found = triangle.grad("loss", wrt="u", **options)(u, 8, counts, np.zeros(()))
        reference = reference or found
        assert found[0] == reference[0] and (found[1] == reference[1]).all()


@eb.program
def accepted(x, y, n: int, m: int):
    for i in par(n):
        y[i] = x[i] + x[i + n]
    for i in par(n):
        x[i] = x[i + n] * 2.0
    for k in par(range(0, 2 * n, 2)):
        x[k] = x[k + 1] if k + 1 < 2 * n else 0.0
    for i, j in par(m, m):
        if j < i:
            y[i * m + j] = y[i * m + j] + 1.0


def test_g57_loops_that_are_safe_are_accepted_and_real_conflicts_name_the_element():
    x, y = np.arange(8.0), np.zeros(16)
    accepted(x, y, 4, 4)
    ours = (x.tolist(), y.tolist())
    x, y = np.arange(8.0), np.zeros(16)
    accepted.function(x, y, 4, 4)
    assert ours == (x.tolist(), y.tolist())

    def conflict(u):
        for i in par(range(1, len(u))):
            u[i] = u[i - 1]

    with pytest.raises(eb.BuildError, match="race"):
        eb.program(conflict)(np.ones(4))


def test_g58_a_budget_holds_for_plans_and_runs():
    args = (wave(1000), np.zeros(1000), 60, np.zeros(()))
    reference = smooth.grad("loss", wrt="u")(*args)
    for memory in ("64KiB", "128KiB", "1MiB"):
        g = smooth.grad("loss", wrt="u", memory=memory)
        plan = g.plan(*args)
        assert plan.peak_bytes <= plan.budget
        found = g(*args)
        assert found[0] == reference[0] and (found[1] == reference[1]).all()
