"""Which wheel brings which public name that is not in rushlight-core, so that asking for it loads just that wheel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from . import _C, _registry

MODULES = {
    "amp": "autograd",
    "autograd": "autograd",
    "autograd.profiler": "profiler",
    "cuda.amp": "autograd",
    "distributed": "distributed",
    "distributions": "special",
    "func": "nn",
    "futures": "distributed",
    "fx": "jit",
    "jit": "jit",
    "linalg": "linalg",
    "mobile": "mobile",
    "multiprocessing": "distributed",
    "nn": "nn",
    "nn.parallel": "distributed",
    "onnx": "jit",
    "optim": "nn",
    "package": "package",
    "profiler": "profiler",
    "special": "special",
    "utils.benchmark": "profiler",
    "utils.bundled_inputs": "mobile",
    "utils.checkpoint": "autograd",
    "utils.data": "nn",
    "utils.mobile_optimizer": "mobile",
    "utils.tensorboard": "nn",
    "vision": "vision",
}
"""Modules below rushlight."""

OWN = frozenset({
    "array_api", "cuda", "fft", "quasirandom", "return_types", "serialization", "signal", "sparse", "storage",
    "testing", "utils", "utils.deterministic", "utils.dlpack", "utils.hooks",
})  # fmt: skip
"""Modules of the core that are imported when they are first asked for."""

OWN_FUNCTIONS = {
    name: module
    for module, names in {
        "_determinism": """
            are_deterministic_algorithms_enabled deterministic_report get_deterministic_debug_mode
            is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode use_deterministic_algorithms
        """,
        "_legacy": "set_default_tensor_type",
        "amp.autocast_mode": """
            autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_dtype
            is_autocast_cache_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_dtype
            set_autocast_enabled
        """,
        "serialization": "load save",
        "sparse": """
            hspmm smm sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sspaddmm
        """,
        "storage": """
            BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
            DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage TypedStorage
            UntypedStorage from_file is_storage
        """,
        "utils.dlpack": "to_dlpack",
    }.items()
    for name in names.split()
}
"""Functions and classes of rushlight that a module below it brings, and no wheel as a whole."""

OWN_METHODS = {
    name: module
    for module, names in {
        "_legacy": "record_stream reinforce resize resize_as volatile",
        "sparse": """
            _coalesced_ _indices _nnz _values ccol_indices coalesce col_indices crow_indices dense_dim indices
            is_coalesced is_same_size row_indices sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_
            to_dense to_sparse to_sparse_coo to_sparse_csc to_sparse_csr values
        """,
    }.items()
    for name in names.split()
}
"""Methods of Tensor that such a module brings."""

FUNCTIONS = {
    name: wheel
    for wheel, names in {
        "autograd": """
            detach detach_ enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad
            set_grad_enabled
        """,
        "linalg": """
            chain_matmul cholesky cholesky_inverse cholesky_solve det dist eig geqrf inverse logdet lstsq lu
            lu_solve lu_unpack matrix_exp matrix_power matrix_rank norm orgqr ormqr pca_lowrank pinverse qr
            slogdet solve svd svd_lowrank symeig triangular_solve
        """,
        "nn": """
            adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout alpha_dropout_
            avg_pool1d batch_norm bilinear binary_cross_entropy_with_logits celu celu_ channel_shuffle
            constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
            cosine_embedding_loss cosine_similarity ctc_loss dropout dropout_ embedding embedding_bag
            feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ grid_sampler group_norm
            gru gru_cell hardshrink hinge_embedding_loss instance_norm kl_div layer_norm lstm lstm_cell
            margin_ranking_loss max_pool1d max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle
            pixel_unshuffle poisson_nll_loss prelu rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
            rrelu rrelu_ selu selu_ threshold triplet_margin_loss
        """,
        "special": """
            digamma erf erf_ erfc erfc_ erfinv i0 i0_ igamma igammac lgamma logit logit_ mvlgamma polygamma
            xlogy xlogy_
        """,
    }.items()
    for name in names.split()
}
"""Functions of the module rushlight itself."""

METHODS = {
    name: wheel
    for wheel, names in {
        "autograd": """
            backward detach detach_ grad grad_fn is_leaf output_nr register_hook requires_grad_ retain_grad
        """,
        "linalg": """
            cholesky cholesky_inverse cholesky_solve det dist eig geqrf inverse logdet lstsq lu lu_solve
            matrix_exp matrix_power norm orgqr ormqr pinverse qr slogdet solve svd symeig
            triangular_solve
        """,
        "nn": """
            hardshrink prelu
        """,
        "special": """
            digamma digamma_ erf erf_ erfc erfc_ erfinv erfinv_ i0 i0_ igamma igamma_ igammac igammac_ lgamma
            lgamma_ logit logit_ mvlgamma mvlgamma_ polygamma polygamma_ xlogy xlogy_
        """,
    }.items()
    for name in names.split()
}
"""Methods and attributes of Tensor."""

WHEELS = frozenset((*MODULES.values(), *FUNCTIONS.values(), *METHODS.values()))


def missing(what: str, wheel: str) -> str:
    """The message for a name whose wheel is not installed."""
    return f"{what} needs the wheel rushlight-{wheel} (pip install rushlight-{wheel})"


def getter(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package of the core: finds submodules of the core, and what other wheels bring.

    Args:
        module: Name of the package, as "rushlight" or "rushlight.utils".
    """

    def get(name: str) -> Any:
        path = f"{module}.{name}"
        area = path.removeprefix("rushlight.")
        if area in OWN:
            return import_module(path)
        if area in MODULES:
            return _module(path)
        if module == "rushlight" and name in OWN_FUNCTIONS:
            return getattr(_module(f"rushlight.{OWN_FUNCTIONS[name]}"), name)
        if module == "rushlight" and name in FUNCTIONS:
            return _function(name, FUNCTIONS[name])
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get


def _module(path: str) -> ModuleType:
    try:
        return import_module(path)
    except MissingWheel as error:
        raise AttributeError(str(error)) from None


def _function(name: str, wheel: str) -> Any:
    package = sys.modules["rushlight"]
    _registry.require(wheel, f"rushlight.{name}")
    if name not in vars(package):  # no operator of the wheel, but perhaps a name of its module, as no_grad
        try:
            setattr(package, name, getattr(import_module(f"rushlight.{wheel}"), name))
        except AttributeError:
            raise AttributeError(f"rushlight.{name} is not in this version of rushlight-{wheel}") from None
    return vars(package)[name]


class TensorAttribute:
    """Stands on Tensor for an attribute that another module or wheel brings, until it is first asked for."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        if self.name in OWN_METHODS:
            import_module(f"rushlight.{OWN_METHODS[self.name]}")
            return getattr(owner if tensor is None else tensor, self.name)
        _registry.require(METHODS[self.name], f"Tensor.{self.name}")
        if vars(_C.Tensor)[self.name] is self:
            raise AttributeError(f"Tensor.{self.name} is not in this version of rushlight-{METHODS[self.name]}")
        return getattr(owner if tensor is None else tensor, self.name)


class MissingWheel(ModuleNotFoundError):
    """A module of a wheel that is not installed was imported."""


class _MissingWheelFinder:  # no importlib.abc.MetaPathFinder: that module is slow to import
    """Last on sys.meta_path: says which wheel a missing module of rushlight is in."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> None:
        area = name.removeprefix("rushlight.")
        if area != name and area in MODULES:
            # Another name than the module's, since `from rushlight import linalg` would drop the message.
            raise MissingWheel(missing(name, MODULES[area]), name=f"rushlight-{MODULES[area]}")


def install() -> None:
    """Puts the stand-ins of absent names in place; called once by `import rushlight`."""
    for name in (METHODS | OWN_METHODS).keys() - vars(_C.Tensor).keys():
        _C.add_method(name, TensorAttribute(name))
    sys.meta_path.append(_MissingWheelFinder())
