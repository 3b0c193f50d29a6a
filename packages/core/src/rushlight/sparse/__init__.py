"""Sparse tensors: those whose elements are mostly zero and not kept.

A sparse tensor is a `Tensor` of another layout. `sparse_coo` keeps coordinates and values of the elements that are not
zero, any number of dimensions of them, each value a number or a strided block; `sparse_csr` (`sparse_csc`) keeps a
matrix by rows (columns). `Tensor.to_sparse`, `Tensor.to_dense` and the constructors here convert. SciPy's matrices are
taken apart by their attributes, without a copy::

    rushlight.sparse_csr_tensor(m.indptr, m.indices, m.data, m.shape)  # from a scipy.sparse.csr_array
    scipy.sparse.csr_array((t.values(), t.col_indices(), t.crow_indices()), t.shape)
"""

from .._public import claim as _claim
from . import _create, _elementwise, _methods, _products, _reductions, _shapes  # what ops do on the layouts
from ._construct import (
    check_sparse_tensor_invariants as check_sparse_tensor_invariants,
    empty_of_layout as empty_of_layout,
    rebuild as rebuild,
    reduce as reduce,
    sparse_compressed_tensor as sparse_compressed_tensor,
    sparse_coo_tensor as sparse_coo_tensor,
    sparse_csc_tensor as sparse_csc_tensor,
    sparse_csr_tensor as sparse_csr_tensor,
)
from ._functions import (
    addmm as addmm,
    hspmm as hspmm,
    log_softmax as log_softmax,
    mm as mm,
    sampled_addmm as sampled_addmm,
    smm as smm,
    softmax as softmax,
    spdiags as spdiags,
    sspaddmm as sspaddmm,
    sum as sum,
)

_methods.install()
_claim(globals())
