"""NVRTC by ctypes: compiles CUDA C++ to PTX without a GPU."""

import ctypes
import ctypes.util
import importlib.util
from pathlib import Path


def library():
    """NVRTC from a wheel of NVIDIA's or from the system; None where there is none."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations) if found else []
    paths = [path for folder in folders for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"))]
    paths = [str(path) for path in paths if "builtins" not in path.name]
    if not paths and ctypes.util.find_library("nvrtc"):
        paths = [ctypes.util.find_library("nvrtc")]
    return ctypes.CDLL(paths[-1]) if paths else None


def architectures(nvrtc):
    """The compute capabilities that it compiles for, as 90."""
    count = ctypes.c_int()
    assert nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
    found = (ctypes.c_int * count.value)()
    assert nvrtc.nvrtcGetSupportedArchs(found) == 0
    return list(found)


def compile_to_ptx(nvrtc, source, architecture):
    """PTX of a source for a compute capability as 90; an AssertionError has the compiler's words."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = source.encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None) == 0
    options = [f"--gpu-architecture=compute_{architecture}".encode(), b"--std=c++17"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    kind = "ProgramLog" if failed else "PTX"
    assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    result = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{kind}")(program, result) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    assert not failed, result.value.decode()
    return result.value.decode()
