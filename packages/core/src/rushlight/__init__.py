"""rushlight: PyTorch's API in pieces. `import rushlight as torch` runs a PyTorch program.

This module is the tensor core. Every further area (`rushlight.linalg`, `rushlight.nn`, ...) is a wheel of its own that
loads when it is first asked for; asking for one that is not installed names the command that brings it.
"""

from pkgutil import extend_path as _extend_path

__path__ = _extend_path(__path__, __name__)
__version__ = "0.1.0"

from math import e as e, inf as inf, nan as nan, pi as pi

from . import _areas, _registry
from ._C import (
    Generator as Generator,
    Size as Size,
    Tensor as Tensor,
    as_tensor as as_tensor,
    asarray as asarray,
    bfloat16 as bfloat16,
    bool as bool,
    can_cast as can_cast,
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    complex64 as complex64,
    complex128 as complex128,
    contiguous_format as contiguous_format,
    default_generator as default_generator,
    device as device,
    dtype as dtype,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    from_dlpack as from_dlpack,
    from_numpy as from_numpy,
    frombuffer as frombuffer,
    get_default_dtype as get_default_dtype,
    get_num_threads as get_num_threads,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    layout as layout,
    memory_format as memory_format,
    preserve_format as preserve_format,
    promote_types as promote_types,
    result_type as result_type,
    set_default_device as set_default_device,
    set_default_dtype as set_default_dtype,
    set_num_threads as set_num_threads,
    sparse_coo as sparse_coo,
    sparse_csc as sparse_csc,
    sparse_csr as sparse_csr,
    strided as strided,
    tensor as tensor,
    uint8 as uint8,
)  # fmt: skip

newaxis = None
half = float16
float = float32
double = float64
cfloat = complex64
cdouble = complex128
short = int16
int = int32
long = int64

_registry.register_core()
_areas.install()

from . import _tensor, overrides as overrides, random as random
from ._functions import (
    allclose as allclose,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    block_diag as block_diag,
    broadcast_shapes as broadcast_shapes,
    broadcast_tensors as broadcast_tensors,
    cartesian_prod as cartesian_prod,
    einsum as einsum,
    equal as equal,
    finfo as finfo,
    get_device as get_device,
    iinfo as iinfo,
    is_complex as is_complex,
    is_floating_point as is_floating_point,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    is_tensor as is_tensor,
    isclose as isclose,
    meshgrid as meshgrid,
    numel as numel,
    split as split,
)
from ._printing import get_printoptions as get_printoptions, set_printoptions as set_printoptions
from ._public import claim as _claim
from .random import (
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)

_tensor.install()
globals().update(_tensor.legacy_types())  # FloatTensor and its kin

__getattr__ = _areas.getter(__name__)
_claim(globals())


def get_include() -> str:
    """Path of the C headers, for compiling extensions against the C API."""
    from pathlib import Path

    here = Path(__file__).parent / "include"
    # In a source tree the headers stand beside src/.
    return str(here if here.is_dir() else Path(__file__).parents[2] / "include")
