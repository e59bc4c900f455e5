"""Calls: in place, without copies, with errors in words."""

import dataclasses
import gc
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import weakref

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import Array0, Array1, f64, par, swap


@eb.program
def scale(u, factor: float = 2.0):
    for i in par(len(u)):
        u[i] = u[i] * factor


@eb.program
def exchange(u, v):
    swap(u, v)


@eb.program
def total(u, out):
    for i in par(len(u)):
        out[()] += u[i]


def test_arrays_are_changed_in_place():
    u = np.arange(5.0)
    address = u.ctypes.data
    assert scale(u) is None
    scale(u, factor=3.0)
    scale(factor=0.5, u=u)
    assert u.tolist() == [0.0, 3.0, 6.0, 9.0, 12.0] and u.ctypes.data == address


def test_after_a_swap_each_name_has_its_contents():
    u, v = np.arange(3.0), np.ones(3)
    exchange(u, v)
    assert u.tolist() == [1.0, 1.0, 1.0] and v.tolist() == [0.0, 1.0, 2.0]


def test_one_build_for_each_signature():
    for dtype in (np.float32, np.float64, np.float32):
        scale_any(np.ones(3, dtype))
    assert len(scale_any._built()) == 2


@eb.program
def scale_any(u):
    for i in par(len(u)):
        u[i] = u[i] * 2


def test_arguments_that_do_not_fit_are_refused_in_words():
    with pytest.raises(eb.LaunchError, match="`u` is not contiguous in C order"):
        scale(np.ones((4, 4))[:, 0])
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(eb.LaunchError, match="`u` is written by the program, and this array is read-only"):
        scale(frozen)
    with pytest.raises(eb.LaunchError, match="complex128; programs know"):
        scale(np.ones(3, complex))
    with pytest.raises(eb.LaunchError, match="order of another machine"):
        scale(np.ones(3, ">f8"))
    with pytest.raises(eb.LaunchError, match="has 7 dimensions"):
        scale(np.ones((1,) * 7))
    with pytest.raises(eb.LaunchError, match="`factor` is `f64`, and a bool does not fit"):
        scale(np.ones(3), True)
    with pytest.raises(eb.LaunchError, match="`u` is a `str`"):
        scale("text")
    u = np.ones(8)
    with pytest.raises(eb.LaunchError, match="share memory"):
        exchange(u[:4], u[2:6])
    with pytest.raises(TypeError, match="misses the argument 'u'"):
        scale()
    with pytest.raises(TypeError, match="has no parameter 'v'"):
        scale(np.ones(3), v=1)
    with pytest.raises(TypeError, match="multiple values"):
        scale(np.ones(3), u=np.ones(3))
    with pytest.raises(TypeError, match="takes 2 arguments, 3"):
        scale(np.ones(3), 1.0, 2.0)


def test_read_arrays_may_be_read_only_and_given_twice():
    frozen, out = np.arange(4.0), np.zeros(())
    frozen.flags.writeable = False
    total(frozen, out)
    assert out[()] == 6.0


def test_parts_of_arrays_are_used_in_place():
    whole = np.zeros(10)
    whole[4:8] = 1.0
    scale(whole[4:8])
    assert whole.tolist() == [0.0] * 4 + [2.0] * 4 + [0.0] * 2


def test_empty_arrays():
    out = np.zeros(())
    total(np.zeros(0), out)
    assert out[()] == 0.0


@dataclasses.dataclass
class Grid:
    u: Array1[f64]
    dx: float


@dataclasses.dataclass
class World:
    grid: Grid
    energy: Array0[f64]
    name: str


@eb.program
def measure(grid: Grid, energy):
    for i in par(len(grid.u)):
        energy[()] += grid.u[i] * grid.u[i] * grid.dx


@eb.program
def step(w: World):
    w.energy[()] = 0.0
    measure(w.grid, w.energy)


def test_dataclasses_of_arrays_are_arguments():
    world = World(Grid(np.array([1.0, 2.0]), 0.5), np.ones(()), "two points")
    step(world)
    assert world.energy[()] == 2.5
    g = measure.grad("energy", wrt="grid.u")
    value, du = g(world.grid, np.zeros(()))
    assert (value, du.tolist()) == (2.5, [1.0, 2.0])


class ByDlpack:
    """An array of another library, as NumPy exports one."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_enter_by_dlpack():
    u = np.arange(4.0)
    scale(ByDlpack(u))
    assert u.tolist() == [0.0, 2.0, 4.0, 6.0]
    with pytest.raises(eb.LaunchError, match="not contiguous"):
        scale(ByDlpack(np.ones((4, 4))[:, 0]))


def test_a_gpu_array_is_refused_in_words():
    class OnGpu(ByDlpack):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(eb.LaunchError, match="in the memory of a GPU"):
        scale(OnGpu(np.ones(3)))


def test_nothing_is_kept_after_a_call():
    u, v = np.ones(1000), np.zeros(1000)
    counts = sys.getrefcount(u), sys.getrefcount(v)
    g = energy.grad("loss", wrt="u")
    loss = np.zeros(())
    for _ in range(50):
        exchange(u, v)
        g(u, 5, loss)
        scale(ByDlpack(u))
    assert (sys.getrefcount(u), sys.getrefcount(v)) == counts
    array = np.ones(10)
    gone = weakref.ref(array)
    scale(array)
    del array
    gc.collect()
    assert gone() is None


def test_errors_keep_nothing():
    u = np.ones((4, 4))[:, 0]
    count = sys.getrefcount(u)
    for _ in range(20):
        with pytest.raises(eb.LaunchError):
            scale(u)
    assert sys.getrefcount(u) == count


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the memory of a process is read from /proc")
def test_calls_and_gradients_leak_nothing():
    u, loss = np.ones(20_000), np.zeros(())
    g = energy.grad("loss", wrt="u")
    for _ in range(10):
        g(u, 5, loss)
    before = resident()
    for _ in range(300):
        g(u, 5, loss)
        scale(u, 1.0)
    # A leak of one array for each call would be 48 MB.
    assert resident() - before < 16e6


@eb.program
def energy(u, steps: int, loss):
    for t in range(steps):
        for i in par(len(u)):
            u[i] = u[i] - 0.1 * u[i] * u[i]
    for i in par(len(u)):
        loss[()] += u[i] * u[i]


def test_eight_threads_run_programs_at_once():
    scale(np.ones(3))
    results = [np.arange(1000.0) for _ in range(8)]

    def work(k):
        for _ in range(50):
            scale(results[k], 1.0 if k % 2 else -1.0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((r == np.arange(1000.0)).all() for r in results)


def test_eight_threads_build_run_and_differentiate_one_program_at_once():
    # Without the interpreter's lock all of this happens at once: builds, compilations, launches, errors.
    @eb.program
    def fresh(u, factor: float, loss):
        for i in par(len(u)):
            u[i] = np.sin(u[i]) * factor
        for i in par(len(u)):
            loss[()] += u[i] * u[i]

    g = fresh.grad("loss", wrt="u", memory="1MiB")
    together, results, failures = threading.Barrier(8), [None] * 8, []

    def work(k):
        try:
            together.wait()
            for _ in range(20):
                u, loss = np.linspace(0.0, 1.0, 500) + k, np.zeros(())
                fresh(u, 0.5, loss)
                value, du = g(np.linspace(0.0, 1.0, 500) + k, 0.5, np.zeros(()))
                assert value == loss[()]
                with pytest.raises(eb.LaunchError):
                    fresh(u[::2], 0.5, loss)
                results[k] = (loss[()], du)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for k, (value, du) in enumerate(results):
        u, loss = np.linspace(0.0, 1.0, 500) + k, np.zeros(())
        fresh(u, 0.5, loss)
        assert value == loss[()] and (du == g(np.linspace(0.0, 1.0, 500) + k, 0.5, np.zeros(()))[1]).all()


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the interpreter's lock")
def test_importing_the_package_does_not_bring_the_interpreters_lock_back():
    assert not sys._is_gil_enabled()


@eb.program
def forever(u, flag):
    while flag[()] == 0:
        for i in par(len(u)):
            u[i] += 1.0


def test_the_interpreters_lock_is_free_while_a_program_runs():
    u, flag = np.zeros(4), np.zeros((), np.int32)
    thread = threading.Thread(target=lambda: forever(u, flag))
    thread.start()
    # This thread gets the lock, and so can end the program.
    while u[0] == 0.0:
        pass
    flag[()] = 1
    thread.join()
    assert u[0] > 0


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals of Unix")
def test_ctrl_c_cancels_a_program_and_raises_keyboard_interrupt():
    script = textwrap.dedent(
        """
        import os, signal, sys, threading
        import numpy as np
        sys.path.insert(0, sys.argv[1])
        from test_calls import forever, scale
        # A shell lets what it runs in its background ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import ebbtide as eb
        u, flag = np.zeros(4), np.zeros((), np.int32)
        forever(u, np.ones((), np.int32))

        def interrupt():
            while u[0] == 0.0:
                pass
            os.kill(os.getpid(), signal.SIGINT)

        for _ in range(2):
            u[:] = 0.0
            threading.Thread(target=interrupt).start()
            try:
                forever(u, flag)
                print("ended")
            except KeyboardInterrupt:
                print("interrupted")
        scale(u, 0.0)
        print(u.tolist())
        """
    )
    here = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["interrupted", "interrupted", "[0.0,", "0.0,", "0.0,", "0.0]"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_fork_has_a_device_of_its_own():
    u = np.ones(50_000)
    scale(u)
    g = energy.grad("loss", wrt="u")
    expected = g(u, 3, np.zeros(()))[1]
    child = os.fork()
    if child == 0:
        try:
            v = np.ones(50_000)
            scale(v)
            again = g(u, 3, np.zeros(()))[1]
            os._exit(0 if v[0] == 2.0 and (again == expected).all() else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    scale(u)
    assert u[0] == 4.0


def test_devices_give_the_same_bits():
    u = np.linspace(0.1, 1.0, 100)
    g = energy.grad("loss", wrt="u")
    on_cpu = g(u, 10, np.zeros(()))
    try:
        assert eb.device("interpreter") == "interpreter"
        interpreted = g(u, 10, np.zeros(()))
    finally:
        eb.device("cpu")
    assert on_cpu[0] == interpreted[0] and (on_cpu[1] == interpreted[1]).all()


def test_without_a_c_compiler_the_first_call_warns_and_programs_are_interpreted(tmp_path):
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np
        from test_calls import scale, total
        u, out = np.arange(3.0), np.zeros(())
        scale(u)
        scale(u)
        total(u, out)
        print(u.tolist(), out)
        """
    )
    without = {**os.environ, "PATH": "/nonexistent", "EBBTIDE_CACHE": str(tmp_path)}
    without.pop("EBBTIDE_CC", None)
    without.pop("CC", None)
    command = [sys.executable, "-c", script, os.path.dirname(__file__)]
    done = subprocess.run(command, capture_output=True, text=True, env=without)
    assert done.stdout == "[0.0, 4.0, 8.0] 12.0\n", done.stderr
    assert done.stderr.count("programs are interpreted") == 1


def test_the_compiler_for_cuda_is_found_among_packages_of_python(tmp_path, monkeypatch):
    from ebbtide import _cuda

    for folder, name in (("cuda_nvrtc", "libnvrtc.so.12"), ("cu13", "libnvrtc.so.13"), ("cu13", "libnvrtc-builtins.so.13.2")):
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True, exist_ok=True)
        (tmp_path / "nvidia" / folder / "lib" / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    newest = str(tmp_path / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13")
    assert _cuda.packaged_compiler() == newest
    monkeypatch.setenv("EBBTIDE_NVRTC", "of the user")
    _cuda.find_compiler()
    assert os.environ["EBBTIDE_NVRTC"] == "of the user"
    monkeypatch.setenv("EBBTIDE_NVRTC", "")
    _cuda.find_compiler()
    assert os.environ["EBBTIDE_NVRTC"] == newest


def test_programs_print_themselves_and_their_source():
    text = str(measure.ir(Grid(np.ones(2), 0.5), np.zeros(())))
    assert "for i in par(0..grid.u.len())" in text
    assert scale.source(np.ones(3)) is None or "scale" in scale.source(np.ones(3))
    assert scale.ir(np.ones(3)).hash == scale.ir(np.ones(5)).hash
