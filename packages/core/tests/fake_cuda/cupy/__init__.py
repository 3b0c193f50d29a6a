"""CuPy without a GPU: arrays are NumPy's, kernels are compiled for the host, and what the driver is asked is recorded.

Two devices, each with memory, streams and events of its own in name. An array of the host among a call's arguments is
the TypeError that it is in CuPy.
"""

import ctypes
import hashlib
import os
import subprocess
import tempfile
import types
from pathlib import Path

import numpy as np

from . import cuda as cuda

SHIM = Path(__file__).with_name("shim.h")
KERNELS = Path(os.environ.get("FAKE_CUDA_KERNELS") or tempfile.mkdtemp())
"""Where compiled kernels are kept."""

PTX = {
    'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(p[i]))': "x = reinterpret_cast<const _Float16&>(p[i])",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p[i]) : "f"(x))': "reinterpret_cast<_Float16&>(p[i]) = _Float16(x)",
}
"""What a GPU's instructions are on the host."""

REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin"]
REDUCTIONS += ["cumsum", "cumprod", "dot"]


class ndarray(np.ndarray):
    """An array of a device: never a number, and never mixed with the host's."""

    def __array_finalize__(self, source):
        self._device = getattr(source, "_device", None) or cuda.Device()

    @property
    def device(self):
        return self._device

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return on_device(array)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        refuse_host(inputs)
        kwargs |= {"out": tuple(map(plain, out))} if out else {}
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*map(plain, inputs), **kwargs)
        return out[0] if out else on_device(result)

    def __array_function__(self, function, types, args, kwargs):
        refuse_host(args)
        return on_device(function(*map(plain, args), **{key: plain(value) for key, value in kwargs.items()}))

    def __getitem__(self, key):
        refuse_host(key if isinstance(key, tuple) else (key,))
        found = super().__getitem__(plain(key))
        return found if isinstance(found, ndarray) else on_device(found)

    def __setitem__(self, key, value):
        refuse_host((*key, value) if isinstance(key, tuple) else (key, value))
        plain(self)[plain(key)] = plain(value)

    def _method(name):
        def method(self, *args, **kwargs):
            with np.errstate(all="ignore"):
                return on_device(getattr(plain(self), name)(*map(plain, args), **kwargs))

        return method

    for _name in REDUCTIONS:
        locals()[_name] = _method(_name)

    def get(self, stream=None, out=None):
        out = np.empty(self.shape, self.dtype) if out is None else out
        out[...] = plain(self)
        if stream is not None:
            cuda.log.append(("get", stream.ptr))
        return out

    def set(self, array, stream=None):
        plain(self)[...] = array
        if stream is not None:
            cuda.log.append(("set", stream.ptr))


def plain(value):
    """Arrays of the device as NumPy's, in tuples and lists too."""
    if isinstance(value, ndarray):
        return value.view(np.ndarray)
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def on_device(value):
    """NumPy's arrays and numbers as arrays of the current device, in tuples and lists too."""
    if isinstance(value, ndarray) or value is None:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.base is None:
            cuda.pools[cuda.runtime.getDevice()].count(array)
        return array.view(ndarray)
    if type(value) in (tuple, list):
        return type(value)(map(on_device, value))
    return type(value)(*map(on_device, value)) if hasattr(value, "_fields") else value


def refuse_host(values):
    """CuPy's TypeError for arrays of the host."""
    for value in values:
        if isinstance(value, (tuple, list)):
            refuse_host(value)
        elif isinstance(value, np.ndarray) and value.ndim and not isinstance(value, ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")


def asarray(value, dtype=None, order=None):
    if isinstance(value, ndarray):
        found = np.asarray(plain(value), dtype, order)
        return value if found is value.view(np.ndarray) or np.shares_memory(found, plain(value)) else on_device(found)
    return on_device(np.array(value, dtype))


def empty(shape, dtype=float, order="C"):
    # What a kernel that does not run leaves behind should hurt nobody.
    return on_device((np.empty if collecting is None else np.zeros)(shape, dtype, order))


def get_default_memory_pool():
    return cuda.pools[cuda.runtime.getDevice()]


def get_default_pinned_memory_pool():
    return cuda.pinned


class RawKernel:
    """A kernel of CUDA C++, compiled by the host's compiler; each thread runs after the one before."""

    def __init__(self, code, name, options=()):
        self.code = code
        self.name = name
        self._start = None

    def __call__(self, grid, block, arguments):
        cuda.log.append(("launch", cuda.get_current_stream().ptr))
        if collecting is not None:
            collecting[self.code] = self.name
            return
        self._start = self._start or _starts.get(self.code) or compiled([self.code], self.name)[0]
        held = [each if isinstance(each, ndarray) else np.array(each) for each in arguments]
        values = [np.array(each.ctypes.data) if isinstance(each, ndarray) else each for each in held]
        self._start((ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values)), grid[0], block[0])


collecting = None
"""Where it is a dict, sources go there by name and nothing runs; `prepare` compiles them together."""

_starts = {}


def prepare(codes):
    """Compiles sources together, each of a kernel `run`: much faster than one by one."""
    new = sorted(set(codes) - _starts.keys())
    for first in range(0, len(new), 64):
        part = new[first : first + 64]
        _starts.update(zip(part, compiled(part, "run"), strict=True))


def compiled(codes, name):
    """Kernels of one name, each of a source of its own, as functions of argument pointers, blocks and threads."""
    from rushlight.plugin.source import CUDA

    prelude = CUDA.replace('extern "C" __global__', "static")
    for assembly, meaning in PTX.items():
        prelude = prelude.replace(assembly, meaning)
    parts = [SHIM.read_text(), prelude]
    for number, code in enumerate(codes):
        parts.append(f"namespace k{number} {{\n{code.removeprefix(CUDA)}\n}}")
        waits = "true" if "BARRIER" in code.removeprefix(CUDA) else "false"
        parts.append(
            f'extern "C" void start{number}(void** arguments, unsigned blocks, unsigned threads) '
            f"{{ start<{waits}>(k{number}::{name}, arguments, blocks, threads); }}"
        )
    text = "\n".join(parts)
    library = KERNELS / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    if not library.exists():
        fresh = library.with_suffix(f".{os.getpid()}.so")
        command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
        subprocess.run([*command, "-x", "c++", "-", "-o", str(fresh)], input=text, text=True, check=True)
        fresh.replace(library)
    loaded = ctypes.CDLL(str(library))
    return [getattr(loaded, f"start{number}") for number in range(len(codes))]


class Module(types.ModuleType):
    """A module of NumPy's whose functions take and return arrays of the device."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            return Module(found)
        if not callable(found) or isinstance(found, (type, np.ufunc)):
            return found

        def function(*args, **kwargs):
            refuse_host(args)
            with np.errstate(all="ignore"):
                return on_device(found(*map(plain, args), **{key: plain(value) for key, value in kwargs.items()}))

        return function


class lib:
    class stride_tricks:
        @staticmethod
        def as_strided(x, shape, strides):
            return np.lib.stride_tricks.as_strided(x, shape, strides, subok=True)


_numpy = Module(np)


def __getattr__(name):
    return getattr(_numpy, name)
