"""What `rushlight.sparse` composes its operators of; the kernels for the layouts are registered there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._op import Op


def _late(name: str) -> Callable[..., Any]:
    """A function of `rushlight.sparse._records`, which loads when the first sparse tensor is made."""

    def call(*args: Any, **kwargs: Any) -> Any:
        from ..sparse import _records

        return getattr(_records, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def _arrays(name: str) -> Callable[..., Any]:
    """The same for an array kernel of `rushlight.sparse._arrays`."""

    def call(*args: Any) -> Any:
        from ..sparse import _arrays

        return getattr(_arrays, name)(*args)

    return call


def _rule(name: str, parameters: str) -> Callable[..., Any]:
    """The same for a gradient rule, whose parameters the compiler of rules reads."""
    call = _late(name)
    call.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
    return call


def _signature(parameters: str) -> Any:
    from inspect import Parameter, Signature

    return Signature([Parameter(p, Parameter.POSITIONAL_OR_KEYWORD) for p in parameters.split()])


def _part(schema: str, doc: str) -> Op:
    return Op(schema, method=False, function=False, out=False, doc=doc)


def _index_part(schema: str, doc: str) -> Op:
    return Op(schema, method=False, function=False, out=False, differentiable=False, doc=doc)


def _by_layout(schema: str, doc: str, coo: str, compressed: str | None = None) -> Op:
    op = _part(schema, doc).layout(_C.sparse_coo, _late(coo))
    if compressed:
        op.layout(_C.sparse_csr, _late(compressed)).layout(_C.sparse_csc, _late(compressed))
    return op


# -- over strided tensors, native on the CPU

coo_keys = _index_part(
    "_coo_keys(Tensor indices, int[] size) -> Tensor", "The row-major place of each coordinate."
).array(_arrays("coo_keys"))
coo_indices = _index_part("_coo_indices(Tensor keys, int[] size) -> Tensor", "Coordinates of row-major places.").array(
    _arrays("coo_indices")
)
coo_sum = _index_part(
    "_coo_sum(Tensor keys, Tensor values) -> (Tensor keys, Tensor values)",
    "Ascending distinct keys, and the sums of the values that had them.",
).array(_arrays("coo_sum"))
coo_merge = _index_part(
    "_coo_merge(Tensor a, Tensor b) -> (Tensor keys, Tensor place_a, Tensor place_b)",
    "Two lists of keys merged, and where their elements went.",
).array(_arrays("coo_merge"))
coo_find = _index_part(
    "_coo_find(Tensor keys, Tensor wanted) -> Tensor", "Places in ascending keys, -1 for absent ones."
).array(_arrays("coo_find"))
csr_rows = _index_part("_csr_rows(Tensor crow, int nnz) -> Tensor", "The row of each element.").array(
    _arrays("csr_rows")
)
csr_crow = _index_part(
    "_csr_crow(Tensor rows, int n) -> Tensor", "Offsets of n rows into ascending row numbers."
).array(_arrays("csr_crow"))
csr_matmul_csr = _index_part(
    "_csr_matmul_csr(Tensor crow, Tensor col, Tensor values, Tensor other_crow, Tensor other_col, Tensor other_values,"
    " int cols) -> (Tensor crow, Tensor col, Tensor values)",
    "Product of two matrices of compressed rows.",
).array(_arrays("csr_matmul_csr"))
coo_matmul = (
    _part(
        "_coo_matmul(Tensor indices, Tensor values, Tensor mat2, int rows) -> Tensor",
        "Product of a matrix of coordinates and a dense one.",
    )
    .array(_arrays("coo_matmul"))
    .grad(
        indices=None,
        values=_rule("coo_matmul_values_grad", "grad indices mat2"),
        mat2=_rule("coo_matmul_dense_grad", "grad indices values mat2"),
    )
)
csr_matmul = (
    _part(
        "_csr_matmul(Tensor crow, Tensor col, Tensor values, Tensor mat2) -> Tensor",
        "Product of a matrix of compressed rows and a dense one.",
    )
    .array(_arrays("csr_matmul"))
    .grad(
        crow=None,
        col=None,
        values=_rule("csr_matmul_values_grad", "grad crow col mat2"),
        mat2=_rule("csr_matmul_dense_grad", "grad crow col values mat2"),
    )
)
sampled_products = (
    _part(
        "_sampled_products(Tensor rows, Tensor cols, Tensor mat1, Tensor mat2) -> Tensor",
        "Products of pairs of rows of two matrices.",
    )
    .array(_arrays("sampled_products"))
    .grad(
        rows=None,
        cols=None,
        mat1=_rule("sampled_grad_mat1", "grad rows cols mat1 mat2"),
        mat2=_rule("sampled_grad_mat2", "grad rows cols mat1 mat2"),
    )
)

# -- between layouts

sparse_coo = (
    _part(
        "_sparse_coo(Tensor indices, Tensor values, int[] size, bool coalesced) -> Tensor",
        "A tensor of layout sparse_coo over its parts.",
    )
    .composite(_late("make_coo"))
    .grad(indices=None, values=_rule("gather", "grad indices"))
)
sparse_compressed = (
    _part(
        "_sparse_compressed(Tensor compressed, Tensor plain, Tensor values, int[] size, Layout layout) -> Tensor",
        "A tensor of layout sparse_csr or sparse_csc over its parts.",
    )
    .composite(_late("make_compressed"))
    .grad(compressed=None, plain=None, values=_rule("compressed_values_grad", "grad compressed plain values layout"))
)
sparse_values = _by_layout(
    "_sparse_values(Tensor self) -> Tensor", "The values of a sparse tensor.", "values", "values"
).grad(self=_rule("with_values_of", "grad self"))
coalesce = _by_layout("_coalesce(Tensor self) -> Tensor", "Ascending indices without duplicates.", "coalesce").grad(
    self="grad"
)
to_dense = _by_layout(
    "_to_dense(Tensor self, bool masked_grad) -> Tensor", "A strided tensor.", "coo_to_dense", "compressed_to_dense"
).grad(self=_rule("to_dense_grad", "grad self masked_grad"))
to_sparse = (
    _part("_to_sparse(Tensor self, int sparse_dim) -> Tensor", "The elements of a strided tensor that are not zero.")
    .composite(_late("dense_to_coo"))
    .grad(self=_rule("dense", "grad"))
)
to_layout = _by_layout(
    "_to_layout(Tensor self, Layout layout) -> Tensor", "A sparse tensor in another layout.", "coo_to", "compressed_to"
).grad(self=_rule("to_layout_grad", "grad self"))
sparse_mask = _by_layout(
    "_sparse_mask(Tensor self, Tensor mask) -> Tensor",
    "The elements at the indices of a mask.",
    "sparse_mask",
    "sparse_mask_compressed",
).grad(self=_rule("sparse_mask_grad", "grad self mask"), mask=None)
sparse_sparse_matmul = _by_layout(
    "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    "Product of two sparse matrices.",
    "sparse_sparse_matmul",
    "sparse_sparse_matmul",
).grad(
    self=_rule("sparse_matmul_grad_self", "grad self other"), other=_rule("sparse_matmul_grad_other", "grad self other")
)
