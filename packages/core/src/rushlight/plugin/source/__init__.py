"""Kernels as C, generated from the operators' own expressions, for a backend whose devices compile source.

An operator's record says what it computes once, for every device, in its array kernel: `lambda xp, x, y: x * y + 1`.
Where `x` and `y` are `Expression`s, nothing is computed: the result holds how it follows from them, and `store`,
`reduce`, `scan` and `scatter` make one kernel of it all, as does `store_lines` of what reduces and goes on. So every
pointwise operator is one kernel, as a softmax is, and no list of operators is needed. The same text is OpenCL C after
the prelude `OPENCL` and CUDA C++ after `CUDA`.

Example:
    >>> import numpy as np
    >>> from rushlight.plugin.source import Expression, store
    >>> class Array(Expression):
    ...     def __init__(self, shape, dtype, node=None):
    ...         self.shape, self.dtype, self.node = shape, np.dtype(dtype), node
    ...         self.strides, self.offset, self.buffer, self.device = (1,), 0, None, self
    ...     @classmethod
    ...     def put_off(cls, shape, dtype, node):
    ...         return cls(shape, dtype, node)
    ...     def run(self, source, arguments, size, group):
    ...         print(source.splitlines()[-1])
    >>> x = Array((3,), "float32")
    >>> store(Array((3,), "float32"), x * x + 1)  # doctest: +ELLIPSIS
    KERNEL run(GLOBAL const f32 *a0, ...
"""

from importlib import resources

from ..._public import claim
from ._expression import ALIASES, ELEMENTWISE, Expression, Special, apply, where
from ._kernel import GROUP, Fold, Node, Source, collapse, fold_of, reduce, scan, scatter, store, store_lines
from ._scalar import EXPRESSIONS, HELPERS, SPECIAL, TYPES, Helpers, Type, c_type, convert, expression, scalar

__all__ = [
    "ALIASES",
    "CUDA",
    "ELEMENTWISE",
    "EXPRESSIONS",
    "GROUP",
    "HELPERS",
    "OPENCL",
    "SPECIAL",
    "TYPES",
    "Expression",
    "Fold",
    "Helpers",
    "Node",
    "Source",
    "Special",
    "Type",
    "apply",
    "c_type",
    "collapse",
    "convert",
    "expression",
    "fold_of",
    "reduce",
    "scalar",
    "scan",
    "scatter",
    "store",
    "store_lines",
    "where",
]

OPENCL, CUDA = (resources.files(__package__).joinpath(name).read_text() for name in ("opencl.h", "cuda.h"))
"""What the names of generated kernels mean in a language: goes in front of their source."""

claim(globals())
