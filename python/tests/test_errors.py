"""What programs do not have is an error at the line, which says what to write."""

import traceback

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import Array1, f64, par


def refused(function, *args, contains, line=None):
    with pytest.raises(eb.BuildError) as caught:
        eb.program(function)(*args)
    text = str(caught.value)
    assert contains in text, text
    file, number, column, _ = caught.value.spots[0]
    assert file == __file__
    if line is not None:
        with open(__file__) as source:
            assert line in source.read().splitlines()[number - 1], number
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert (frames[-1].filename, frames[-1].lineno) == (file, number)
        assert f"{number} | " in text and "^" in text
    return text


U = np.ones(4)


def test_a_race_is_an_error_at_the_loop():
    def shift(u):
        for i in par(range(1, len(u))):
            u[i] = u[i - 1]

    refused(shift, U, contains="a race")


def test_true_division_of_integers():
    def divide(u, n: int):
        u[0] = n / 2

    refused(divide, U, 3, contains="write `//`", line="u[0] = n / 2")


def test_round():
    def rounded(u):
        u[0] = round(u[0])

    refused(rounded, U, contains="np.rint", line="round(u[0])")


def test_and_of_values():
    def either(u):
        u[0] = u[1] or 2.0

    refused(either, U, contains="`or` takes bools", line="u[1] or 2.0")


def test_a_number_is_no_condition():
    def condition(u):
        if u[0]:
            u[1] = 1.0

    refused(condition, U, contains="compare, `x != 0`", line="if u[0]:")


def test_types_that_do_not_fit_are_not_converted():
    def mixed(u, v):
        u[0] = v[0]

    refused(mixed, U, np.ones(2, np.float32), contains="`f64(...)`", line="u[0] = v[0]")

    def halves(k):
        k[0] = k[1] * 0.5

    refused(halves, np.ones(2, np.int32), contains="NumPy would give float64", line="k[1] * 0.5")

    def scalar(u, nu: f64):
        u[0] = u[0] * nu

    refused(scalar, np.ones(2, np.float32), 0.5, contains="nothing is converted by itself", line="u[0] * nu")

    def typed(u):
        u[0] = u[0] * np.sqrt(2.0)

    refused(typed, np.ones(2, np.float32), contains="nothing is converted by itself", line="np.sqrt(2.0)")

    def truths(u, mask):
        u[0] = u[0] * mask[0]

    refused(truths, U, np.ones(2, bool), contains="`float(c)`", line="u[0] * mask[0]")


def test_exchanged_names_of_arrays():
    def exchange(u, v):
        u, v = v, u

    refused(exchange, U, U.copy(), contains="swap(u, v)")


def test_slices_and_reductions():
    def slices(u):
        u[0] = u[1:3]

    refused(slices, U, contains="no slices", line="u[1:3]")

    def total(u):
        u[0] = np.sum(u)

    refused(total, U, contains="add in a parallel loop", line="np.sum(u)")


def test_plain_functions_are_named():
    def helper(x):
        return x

    def caller(u):
        u[0] = helper(u[0])

    refused(caller, U, contains="put `@ebbtide.func` before it", line="helper(u[0])")


def test_jumps_that_cannot_be():
    def parallel(u):
        for i in par(len(u)):
            u[i] = 1.0
            if u[i] > 0.0:
                break

    refused(parallel, U, contains="a parallel loop has no `break`", line="break")

    def leaves(u):
        for i in par(len(u)):
            if u[i] > 0.0:
                return
            u[i] = 1.0

    refused(leaves, U, contains="a parallel loop has no `return`", line="return")

    def endless(u):
        while True:
            u[0] += 1.0

    refused(endless, U, contains="this loop never ends", line="while True")

    def never(u):
        return
        u[0] = 1.0

    refused(never, U, contains="this never runs", line="u[0] = 1.0")

    @eb.func
    def found(u):
        for i in range(len(u)):
            if u[i] > 0.0:
                return u[i]
        return 0.0

    def searches(u):
        u[0] = found(u)

    refused(searches, U, contains="leave the loop with `break`", line="for i in range(len(u)):")


def test_a_name_that_is_assigned_inside_a_block_alone():
    def late(u):
        for t in range(3):
            x = u[t]
        u[0] = x

    refused(late, U, contains="assigned only inside the `for`", line="u[0] = x")

    def counted(u):
        for t in range(3):
            u[t] = 1.0
        u[0] = t

    refused(counted, U, contains="the variable of the loop at line", line="u[0] = t")

    def maybe(u):
        if u[0] > 0.0:
            y = 1.0
        u[0] = y

    refused(maybe, U, contains="assigned only inside the `if`", line="u[0] = y")


def test_a_variable_keeps_its_type():
    def changes(u, n: int):
        k = n
        k = 0.5
        u[0] = k

    refused(changes, U, 2, contains="`k`", line="k = 0.5")


def test_steps_of_ranges_and_iterators():
    def strided(u, k: int):
        for i in range(0, 4, k):
            u[i] = 1.0

    refused(strided, U, 2, contains="the step of a range is a constant", line="range(0, 4, k)")

    def iterator(u):
        for x in u:
            u[0] += x

    refused(iterator, U, contains="a loop runs over `range(...)`", line="for x in u")


def test_statements_of_python_that_programs_do_not_have():
    def raises(u):
        raise ValueError

    refused(raises, U, contains="set a flag and yield on it", line="raise ValueError")

    def generator(u):
        u[0] = sum(u[k] for k in range(4))

    refused(generator, U, contains="there are no generators", line="sum(u[k]")

    def member(u):
        for i in par(len(u)):
            if i in (0, 2):
                u[i] = 1.0

    refused(member, U, contains="a == 0 or a == 2", line="if i in (0, 2)")

    def product(u):
        u[:] = u @ u

    refused(product, U, contains="matmul(a, b, c)", line="u @ u")

    def returns(u):
        return u[0]

    refused(returns, U, contains="a program returns nothing")

    def prints(u):
        print(u[0])

    refused(prints, U, contains="there is no `print`", line="print(u[0])")

    def comprehension(u):
        u[0] = max([x for x in u])

    refused(comprehension, U, contains="no comprehensions")


def test_recursion_names_the_cycle():
    with pytest.raises(eb.BuildError, match="recursion: `forth` calls `back` calls `forth`"):
        forth(U)


@eb.program
def forth(u):
    back(u)


@eb.program
def back(u):
    forth(u)


def test_one_array_for_two_parameters_of_a_callee():
    @eb.program
    def add(a, b):
        for i in par(len(a)):
            a[i] += b[i]

    def twice(u):
        add(u, u)

    refused(twice, U, contains="bound to the parameters `a` and `b` of `add`", line="add(u, u)")


def test_functions_without_source_say_so():
    scope = {"eb": eb}
    exec("def f(u):\n    u[0] = 1.0\n", scope)
    with pytest.raises(eb.BuildError, match="put it into a file"):
        eb.program(scope["f"])(U)


def test_an_index_out_of_bounds_is_a_run_error_at_its_line():
    @eb.program
    def shifted(u, v):
        for i in par(len(u)):
            v[i] = u[i - 1]

    with pytest.raises(eb.RunError, match="index -1 is out of bounds for dimension 0 of `u`") as caught:
        shifted(U, np.zeros(4))
    file, line, _, _ = caught.value.spots[0]
    assert file == __file__
    assert "v[i] = u[i - 1]" in open(file).read().splitlines()[line - 1]
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == "v[i] = u[i - 1]"


def test_derivatives_that_do_not_exist():
    @eb.program
    def square(u, k, loss):
        for i in par(len(u)):
            loss[()] += u[i] * u[i]
        k[0] = 1

    args = (U, np.zeros(1, np.int32), np.zeros(()))
    with pytest.raises(eb.BuildError, match="no parameter `v`"):
        square.grad("loss", wrt="v")(*args)
    with pytest.raises(eb.BuildError, match="has no derivative"):
        square.grad("loss", wrt="k")(*args)
    with pytest.raises(eb.LaunchError, match="the least that works here is"):
        long.grad("loss", wrt="u", memory=1)(np.ones(3), 10, np.zeros(()))


@eb.program
def long(u, steps: int, loss):
    for t in range(steps):
        for i in par(len(u)):
            u[i] = u[i] * u[i] * 0.5
    for i in par(len(u)):
        loss[()] += u[i]


def test_all_errors_are_of_one_class():
    for name in ("BuildError", "LaunchError", "RunError", "Cancelled", "DeviceError", "StorageError"):
        assert issubclass(getattr(eb, name), eb.Error)


def test_a_device_that_does_not_exist():
    with pytest.raises(eb.DeviceError, match="there is no device `abacus`"):
        eb.device("abacus")


def test_types_of_annotations_are_checked_at_the_launch():
    @eb.program
    def typed(u: Array1[f64]):
        u[0] = 1.0

    with pytest.raises(eb.LaunchError, match="`u` is an Array1<f64>, not an Array1<f32>"):
        typed(np.ones(2, np.float32))


def test_a_panic_is_an_exception_and_never_the_interpreters_end():
    """`_panicking` is a device that panics, as a flaw of ours would."""

    def uncompilable(u, loss):
        for i in par(len(u)):
            loss[()] += u[i] * u[i]

    def unrunnable(u, loss):
        for i in par(len(u)):
            loss[()] += u[i] * u[i]

    u, loss = np.ones(3), np.zeros(())
    for function, words in ((uncompilable, "compiles nothing"), (unrunnable, "runs nothing")):
        program = eb.program(device="_panicking")(function)
        calls = [
            lambda: program(u, loss),
            lambda: program.grad("loss", wrt="u")(u, loss),
            lambda: program.vjp("loss", wrt="u")(1.0, u, loss),
            lambda: program.jvp("loss", wrt="u")({"u": u}, u, loss),
            lambda: program.hvp("loss", wrt="u")({"u": u}, u, loss),
        ]
        # A second time too: a panic leaves no lock behind that the next call would wait for or fail at.
        for call in calls + calls:
            with pytest.raises(eb.Error, match=f"internal error: a panicking device {words}.*please report it"):
                call()
    assert (u.tolist(), loss[()]) == ([1.0] * 3, 0.0)
    eb.program(unrunnable)(u, loss)
    assert loss[()] == 3.0


def test_the_element_of_an_array_of_rank_0():
    def add(u, loss):
        for i in par(len(u)):
            loss += u[i]

    refused(add, U, np.zeros(()), contains="its element is `loss[()]`", line="loss += u[i]")

    def result(u, loss):
        for i in par(len(u)):
            loss[()] += u[i]

    refused(result, U, 0.0, contains="`loss` is not an array: results are written to arrays; `np.zeros(())` holds one number")
    refused(result, U, np.zeros(1), contains="or pass an array of rank 0, `np.zeros(())`")


def test_ranges_of_parallel_loops():
    def inner(u):
        for i in par(1, len(u) - 1):
            u[i] = 0.0

    refused(inner, U, contains="from `1` to `len(u) - 1` is `par(range(1, len(u) - 1))`", line="par(1, len(u) - 1)")

    def shape(u):
        for i, j in par(u.shape):
            u[i, j] = 0.0

    refused(shape, np.ones((2, 2)), contains="write one range for each, `par(n, m)`")

    def numba(u):
        for i in prange(len(u)):  # noqa: F821
            u[i] = 0.0

    refused(numba, U, contains="there is no `prange` here: write `par`, with `from ebbtide import par`")

    def missing(u):
        fill(u, 0.0)  # noqa: F821

    refused(missing, U, contains="there is no `fill` here: write `fill`, with `from ebbtide import fill`")


def test_methods_are_not_programs():
    def define():
        class Model:
            @eb.program
            def step(self, u):
                u[0] = 0.0

        return Model

    with pytest.raises(TypeError, match="Model.step` is a method, and a program is a function"):
        define()


def test_derivatives_take_names():
    @eb.program
    def square(u, loss):
        for i in par(len(u)):
            loss[()] += u[i] * u[i]

    with pytest.raises(TypeError, match="takes the names of parameters.*not a `ndarray`"):
        square.grad(np.zeros(()), wrt="u")
    with pytest.raises(TypeError, match="takes the names of parameters.*not a `float64`"):
        square.grad("loss", wrt=U)
