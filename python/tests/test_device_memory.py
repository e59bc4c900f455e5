"""Arrays in the memory of a device, on a device that plays a GPU: host memory that is handled as a GPU's (`_own_memory`)."""

import ctypes
import gc
import sys

import ebbtide as eb
import numpy as np
import pytest
from ebbtide import par, swap

FAR = 12  # DLPack's number for devices of extensions
STREAM = 4711

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class OnDevice:
    """An array of another library on the device. It notes what it was asked for."""

    kind = FAR
    knows_versions = True

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self.asked = []

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, **options):
        self.asked.append(dict(options))
        if not self.knows_versions and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        capsule = self.array.__dlpack__()
        # NumPy says that it is on the CPU: the first form of a tensor has its device behind its address.
        ctypes.c_int32.from_address(_pointer(capsule, b"dltensor") + 8).value = self.kind
        return capsule


class Old(OnDevice):
    knows_versions = False


@eb.program(device="_own_memory")
def scale(u, by: float):
    for i in par(len(u)):
        u[i] = by * u[i]


@eb.program(device="_own_memory")
def turn(a, b, c):
    for i in par(len(a)):
        a[i] += 1.0
    swap(a, b)
    swap(b, c)


@eb.program(device="_own_memory")
def energy(u, w, loss):
    for i in par(len(u)):
        loss[()] += 0.5 * w[i] * u[i] * u[i]


@pytest.mark.parametrize("library", [OnDevice, Old])
def test_arrays_of_the_device_are_used_in_place_in_the_order_of_its_stream(library):
    array = np.arange(4.0)
    given = library(array)
    scale(given, 3.0)
    assert array.tolist() == [0.0, 3.0, 6.0, 9.0]
    assert [asked["stream"] for asked in given.asked] == [STREAM] * len(given.asked) and given.asked


def test_swapped_arrays_of_the_device_have_their_contents_where_their_names_are():
    a, b, c = np.full(3, 1.0), np.full(3, 10.0), np.full(3, 100.0)
    turn(OnDevice(a), OnDevice(b), OnDevice(c))
    assert (a[0], b[0], c[0]) == (10.0, 100.0, 2.0)


def test_nothing_is_kept_of_arrays_of_the_device():
    array = np.ones(100)
    count = sys.getrefcount(array)
    for _ in range(3):
        scale(OnDevice(array), 1.0)
        with pytest.raises(eb.LaunchError):
            scale(OnDevice(array[::2]), 1.0)
    gc.collect()
    assert sys.getrefcount(array) == count


def test_memory_that_cannot_be_used_in_place_is_refused_in_words():
    with pytest.raises(eb.LaunchError, match="`u` is in host memory, and this program runs on `own memory`"):
        scale(np.ones(3), 1.0)
    with pytest.raises(eb.LaunchError, match=r"not contiguous.*`u.contiguous\(\)`"):
        scale(OnDevice(np.ones(6)[::2]), 1.0)
    elsewhere = OnDevice(np.ones(3))
    elsewhere.kind = 2
    with pytest.raises(eb.LaunchError, match=r"DLPack device 2\), which `own memory` \(DLPack device 12\) cannot use"):
        scale(elsewhere, 1.0)
    second = OnDevice(np.ones(3))
    second.__class__ = type("Second", (OnDevice,), {"__dlpack_device__": lambda self: (FAR, 1)})
    with pytest.raises(eb.LaunchError, match="is on GPU 1, and this program runs on GPU 0"):
        scale(second, 1.0)
    torn = OnDevice(np.ones(3))
    torn.__class__ = type("Torn", (OnDevice,), {"__dlpack__": lambda self, **options: self.array.__dlpack__()})
    with pytest.raises(eb.LaunchError, match="says that it is on DLPack device 12"):
        scale(torn, 1.0)


def test_gradients_of_arrays_of_the_device_stay_there():
    u, w = np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    g = energy.grad("loss", wrt=["u", "w"])
    value, (du, dw) = g(OnDevice(u), OnDevice(w), OnDevice(np.zeros(())))
    assert value == 0.5 * (w * u * u).sum()
    assert isinstance(du, eb.DeviceArray) and isinstance(dw, eb.DeviceArray)
    assert (du.shape, du.ndim, du.dtype, du.device) == ((3,), 1, np.float64, "own memory")
    assert du.numpy().tolist() == (w * u).tolist()
    assert dw.numpy().tolist() == (0.5 * u * u).tolist()
    assert u.tolist() == [1.0, 2.0, 3.0]


def test_products_of_arrays_of_the_device():
    u, w = np.array([1.0, 2.0]), np.array([1.0, 10.0])
    given = [OnDevice(u), OnDevice(w), OnDevice(np.zeros(()))]
    value, tangent = energy.jvp("loss", wrt="u")({"u": OnDevice(np.array([1.0, 0.5]))}, *given)
    assert (value, tangent) == (20.5, 11.0)
    _, du = energy.vjp("loss", wrt="u")(2.0, *given)
    assert du.numpy().tolist() == [2.0, 40.0]
    product = energy.hvp("loss", wrt="u")({"u": OnDevice(np.array([1.0, 0.5]))}, *given)
    assert product.numpy().tolist() == [1.0, 5.0]
    with pytest.raises(eb.LaunchError, match="in host memory"):
        energy.hvp("loss", wrt="u")({"u": np.ones(2)}, *given)


def test_results_leave_by_dlpack_and_are_arguments():
    u = eb.to_device(np.arange(6.0).reshape(2, 3), "_own_memory")
    assert u.__dlpack_device__() == (FAR, 0)

    @eb.program(device="_own_memory")
    def double(u):
        for i, j in par(u.shape[0], u.shape[1]):
            u[i, j] = 2.0 * u[i, j]

    double(u)
    assert u.numpy().tolist() == (2.0 * np.arange(6.0).reshape(2, 3)).tolist()
    for options, name, offset in (({}, b"dltensor", 0), ({"max_version": (1, 0)}, b"dltensor_versioned", 32)):
        capsule = u.__dlpack__(stream=1, **options)
        tensor = _pointer(capsule, name) + offset
        start = ctypes.c_void_p.from_address(tensor).value
        seen = (ctypes.c_double * 6).from_address(start)
        assert list(seen) == u.numpy().ravel().tolist()
        rank = ctypes.c_int32.from_address(tensor + 16).value
        extents = (ctypes.c_int64 * 4).from_address(ctypes.c_void_p.from_address(tensor + 24).value)
        assert (rank, list(extents)) == (2, [2, 3, 3, 1])
        seen[0] = 50.0
        assert u.numpy()[0, 0] == 50.0
        seen[0] = 0.0
    with pytest.raises(BufferError, match="in place"):
        u.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="in place"):
        u.__dlpack__(dl_device=(1, 0))


def test_a_capsule_keeps_the_memory_that_it_points_to():
    u = eb.to_device(np.full(1000, 7.0), "_own_memory")
    capsule = u.__dlpack__()
    del u
    gc.collect()
    others = [eb.to_device(np.zeros(1000), "_own_memory") for _ in range(4)]
    start = ctypes.c_void_p.from_address(_pointer(capsule, b"dltensor")).value
    assert list((ctypes.c_double * 3).from_address(start)) == [7.0] * 3
    del others, capsule


def test_devices_without_memory_of_their_own_need_no_copies():
    with pytest.raises(eb.DeviceError, match="computes in host memory"):
        eb.to_device(np.ones(3), "cpu")
    with pytest.raises(eb.LaunchError, match="not contiguous"):
        eb.to_device(np.ones(6)[::2], "_own_memory")
