"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._op import COMPOSITE, Op, Sample
from ._dims import wrap_dim
from ._pointwise import check_factor, mul

_ROUNDED_SUM = {"float16": (1e-2, 0.1), "bfloat16": (5e-2, 1.0)}  # products of 200 and more are rounded on the way

mm = (
    Op(
        "mm(Tensor self, Tensor mat2) -> Tensor",
        doc="""Product of two matrices, (n, k) by (k, m).

        Raises:
            RuntimeError: The ranks, inner sizes or dtypes do not fit.
        """,
    )
    .array(lambda xp, a, b: xp.matmul(a, b))
    .grad(self="mm(grad, conj(t(mat2)))", mat2="mm(conj(t(self)), grad)")
    .samples(
        lambda make, dtype: (
            Sample((make(*a), make(*b)))
            for a, b in (((3, 4), (4, 5)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 3)))
        )
    )
)
bmm = (
    Op("bmm(Tensor self, Tensor mat2) -> Tensor", doc="Products of two batches of matrices, (b, n, k) by (b, k, m).")
    .array(lambda xp, a, b: xp.matmul(a, b))
    .grad(self="bmm(grad, conj(transpose(mat2, 1, 2)))", mat2="bmm(conj(transpose(self, 1, 2)), grad)")
    .samples(
        lambda make, dtype: (
            Sample((make(*a), make(*b)))
            for a, b in (((2, 3, 4), (2, 4, 5)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 3)))
        )
    )
)
mv = (
    Op("mv(Tensor self, Tensor vec) -> Tensor", doc="Product of a matrix (n, k) and a vector (k).")
    .array(lambda xp, a, v: xp.matmul(a, v))
    .grad(self="mm(unsqueeze(grad, 1), unsqueeze(conj(vec), 0))", vec="mv(conj(t(self)), grad)")
    .samples(lambda make, dtype: (Sample((make(3, 4), make(4))), Sample((make(3, 0), make(0)))))
)
dot = (
    Op("dot(Tensor self, Tensor tensor) -> Tensor", doc="Sum of the products of two vectors, without conjugation.")
    .array(lambda xp, a, b: xp.dot(a, b))
    .grad(self="grad * conj(tensor)", tensor="grad * conj(self)")
    .samples(lambda make, dtype: (Sample((make(5), make(5))), Sample((make(0), make(0)))))
)
vdot = (
    Op(
        "vdot(Tensor self, Tensor other) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="Sum of the products of two vectors, the first conjugated.",
    )
    .composite(lambda self, other: dot.operator(self.conj(), other))
    .samples(lambda make, dtype: (Sample((make(5), make(5))),), np.vdot)
)
addmm = (
    Op(
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        inplace=True,
        doc="`beta * input + alpha * mat1 @ mat2`.",
    )
    .array(lambda xp, c, a, b, beta, alpha: _added(xp, c, xp.matmul(a, b), beta, alpha))
    .grad(
        self="grad * conj(beta)",
        mat1="mm(grad, conj(t(mat2))) * conj(alpha)",
        mat2="mm(conj(t(mat1)), grad) * conj(alpha)",
    )
    .samples(
        lambda make, dtype: (
            Sample((make(*c), make(3, 4), make(4, 5)), {"beta": 2, "alpha": 3}) for c in ((3, 5), (5,), (3, 1), ())
        )
    )
)
addmv = (
    Op(
        "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        inplace=True,
        doc="`beta * input + alpha * mat @ vec`.",
    )
    .array(lambda xp, c, a, b, beta, alpha: _added(xp, c, xp.matmul(a, b), beta, alpha))
    .grad(
        self="grad * conj(beta)",
        mat="mm(unsqueeze(grad, 1), unsqueeze(conj(vec), 0)) * conj(alpha)",
        vec="mv(conj(t(mat)), grad) * conj(alpha)",
    )
    .samples(
        lambda make, dtype: (Sample((make(*c), make(3, 4), make(4)), {"beta": 2, "alpha": 3}) for c in ((3,), (1,), ()))
    )
)
baddbmm = (
    Op(
        "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        inplace=True,
        doc="`beta * input + alpha * batch1 @ batch2`, matrix by matrix.",
    )
    .array(lambda xp, c, a, b, beta, alpha: _added(xp, c, xp.matmul(a, b), beta, alpha))
    .grad(
        self="grad * conj(beta)",
        batch1="bmm(grad, conj(transpose(batch2, 1, 2))) * conj(alpha)",
        batch2="bmm(conj(transpose(batch1, 1, 2)), grad) * conj(alpha)",
    )
    .samples(
        lambda make, dtype: (
            Sample((make(*c), make(2, 3, 4), make(2, 4, 5)), {"beta": 2, "alpha": 3}) for c in ((2, 3, 5), (5,), ())
        )
    )
)
addbmm = (
    Op(
        "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="`beta * input + alpha * (batch1 @ batch2).sum(0)`.",
    )
    .composite(lambda self, batch1, batch2, *, beta, alpha: _addbmm(self, batch1, batch2, beta, alpha))
    .samples(
        lambda make, dtype: (Sample((make(3, 5), make(2, 3, 4), make(2, 4, 5)), {"beta": 2, "alpha": 3}),),
        lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b).sum(0),
        tolerance=_ROUNDED_SUM,
    )
)
addbmm_ = (
    Op(
        "addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
        exact=True,
        family=COMPOSITE,
        function=False,
        doc="""`addbmm` in place. Unlike in `addmm_` and `baddbmm_` a smaller tensor grows, into memory of its own.

        Raises:
            RuntimeError: Ranks, sizes or dtypes do not fit, or a tensor in a graph would have to grow.
        """,
    )
    .composite(lambda self, batch1, batch2, *, beta, alpha: _addbmm_(self, batch1, batch2, beta, alpha))
    .samples(
        lambda make, dtype: (Sample((make(3, 5), make(2, 3, 4), make(2, 4, 5)), {"beta": 2, "alpha": 3}),),
        lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b).sum(0),
        tolerance=_ROUNDED_SUM,
    )
)
outer = (
    Op(
        "outer(Tensor self, Tensor vec2) -> Tensor",
        family=COMPOSITE,
        aliases=("ger",),
        doc="Outer product of two vectors, (n) and (m) to (n, m).",
    )
    .composite(lambda self, vec2: _outer(self, vec2))
    .samples(lambda make, dtype: (Sample((make(3), make(4))),), np.outer)
)
addr = (
    Op(
        "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        exact=False,
        family=COMPOSITE,
        inplace=True,
        doc="`beta * input + alpha * outer(vec1, vec2)`.",
    )
    .composite(lambda self, vec1, vec2, *, beta, alpha: _addr(self, vec1, vec2, beta, alpha))
    .samples(
        lambda make, dtype: (Sample((make(3, 4), make(3), make(4)), {"beta": 2, "alpha": 3}),),
        lambda c, a, b, beta, alpha: beta * c + alpha * np.outer(a, b),
    )
)
matmul = Op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    exact=True,
    family=COMPOSITE,
    doc="""Matrix product of vectors, matrices and batches of them, whose batch dimensions broadcast.

        Args:
            input: Tensor (*, n, k) or (k).
            other: Tensor (*, k, m) or (k).

        Returns:
            Tensor (*, n, m); the dimension of a vector is left out.

        Example:
            >>> rushlight.matmul(rushlight.ones(2, 3), rushlight.ones(3))
            tensor([3., 3.])
        """,
).samples(
    lambda make, dtype: (
        Sample((make(*a), make(*b)))
        for a, b in (
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3, 4)),
            ((5, 2, 3), (3,)),
            ((3,), (5, 3, 2)),
            ((5, 1, 2, 3), (4, 3, 2)),
            ((0, 2, 3), (3, 4)),
            ((2, 0), (0, 2)),
        )
    ),
    np.matmul,
)
inner = (
    Op(
        "inner(Tensor self, Tensor other) -> Tensor",
        exact=True,
        family=COMPOSITE,
        doc="Sums of products over the last dimension of both.",
    )
    .composite(lambda self, other: _inner(self, other))
    .samples(lambda make, dtype: (Sample((make(2, 3), make(4, 3))), Sample((make(3), make(3)))), np.inner)
)
tensordot = (
    Op(
        "tensordot(Tensor self, Tensor other, Any dims=2) -> Tensor",
        exact=True,
        family=COMPOSITE,
        method=False,
        doc="Products summed over pairs of dimensions: the last `dims` with the first, or two lists of dimensions.",
    )
    .composite(lambda self, other, dims: _tensordot(self, other, dims))
    .samples(
        lambda make, dtype: (
            Sample((make(2, 3, 4), make(3, 4, 5), 2)),
            Sample((make(2, 3, 4), make(4, 2, 5), ([2, 0], [0, 1]))),
        ),
        np.tensordot,
    )
)
einsum = (
    Op(
        "einsum(str equation, Tensor[] operands) -> Tensor",
        family=COMPOSITE,
        method=False,
        function=False,
        out=False,
        doc="Sums of products by Einstein's convention, see the function.",
    )
    .composite(lambda equation, operands: _einsum(equation, operands))
    .samples(
        lambda make, dtype: (
            Sample((equation, [make(*s) for s in shapes]))
            for equation, shapes in (
                ("ij,jk->ik", ((2, 3), (3, 4))),
                ("ii->i", ((3, 3),)),
                ("ij->", ((3, 4),)),
                ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
                ("i,j->ij", ((3,), (4,))),
                ("...ij,...j->...i", ((2, 3, 4), (4,))),
                ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
                ("ij,ji", ((3, 4), (4, 3))),
            )
        ),
        lambda equation, operands: np.einsum(equation, *operands),
    )
)


def _added(xp: Any, c: Any, product: Any, beta: Any, alpha: Any) -> Any:
    result = product * alpha
    return (result + c * beta if beta != 0 else result).astype(c.dtype)


def _add_scaled(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    # Factors take the dtype of the tensors; the result has the shape of the product, to which `self` broadcasts.
    def scaled(x: Any, factor: Any) -> Any:
        return x if factor == 1 else x * x.new_full((), factor)

    product = scaled(product, alpha)
    return product if beta == 0 else scaled(self, beta).expand(product.shape) + product


def _addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    check_factor("beta", beta, self, vec1, vec2)
    check_factor("alpha", alpha, self, vec1, vec2)
    return _add_scaled(self, _outer(vec1, vec2), beta, alpha)


def _addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    if self.dtype != batch1.dtype:
        raise RuntimeError(
            f"addbmm: input and batch1 must have the same dtype, got input={self.dtype} and batch1={batch1.dtype}. "
            "Convert one with .to(dtype)."
        )
    return _add_scaled(self, bmm.operator(batch1, batch2).sum(0, dtype=batch1.dtype), beta, alpha)


def _addbmm_(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    total = _addbmm(self, batch1, batch2, beta, alpha)
    if self.shape == total.shape:
        return self.copy_(total)
    if total.requires_grad:
        raise RuntimeError(
            f"addbmm_: a tensor in a graph cannot grow, got input of shape {tuple(self.shape)} for a result of shape "
            f"{tuple(total.shape)}. Use addbmm, which returns a new tensor."
        )
    return self.set_(total)


def _outer(a: Any, b: Any) -> Any:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D arguments, got {a.ndim}-D and {b.ndim}-D. Flatten them first.")
    return a.unsqueeze(1) * b


def _inner(a: Any, b: Any) -> Any:
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    return _tensordot(a, b, ([-1], [-1]))


def _tensordot(a: Any, b: Any, dims: Any) -> Any:
    import rushlight

    if isinstance(dims, rushlight.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims >= 0 and at most the rank of both tensors, but got dims={dims}")
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(left) != len(right):
        raise RuntimeError(f"both dimension lists should have same length, got dims={dims}")
    left = [wrap_dim(d, a.ndim) for d in left]
    right = [wrap_dim(d, b.ndim) for d in right]
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j] and 1 in (a.shape[i], b.shape[j]):  # a dimension of size 1 broadcasts
            if a.shape[i] == 1:
                b = b.sum(j, keepdim=True, dtype=b.dtype)
            else:
                a = a.sum(i, keepdim=True, dtype=a.dtype)
        if a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size "
                f"{b.shape[j]} in dim {j}"
            )
    free_a = [d for d in range(a.ndim) if d not in left]
    free_b = [d for d in range(b.ndim) if d not in right]
    k = int(np.prod([a.shape[d] for d in left], dtype=int))
    rows = int(np.prod([a.shape[d] for d in free_a], dtype=int))
    columns = int(np.prod([b.shape[d] for d in free_b], dtype=int))
    product = mm.operator(
        a.permute([*free_a, *left]).reshape(rows, k), b.permute([*right, *free_b]).reshape(k, columns)
    )
    return product.reshape([a.shape[d] for d in free_a] + [b.shape[d] for d in free_b])


# -- einsum: planned once for an equation and shapes, then two operands at a time, each pair by one product


class _Prepare(NamedTuple):
    """What happens to an operand before its product; None: nothing."""

    diagonals: tuple[tuple[int, int], ...]
    summed: tuple[int, ...] | None = None
    expanded: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None

    def __call__(self, x: Any) -> Any:
        for first, second in self.diagonals:
            x = x.diagonal(0, first, second)
        if self.summed is not None:
            x = x.sum(self.summed)
        if self.expanded is not None:
            x = x.expand(self.expanded)
        if self.order is not None:
            x = x.permute(self.order)
        return x if self.shape is None else x.reshape(self.shape)


class _Product(NamedTuple):
    left: _Prepare
    right: _Prepare
    product: Op
    shape: tuple[int, ...] | None


def _einsum(equation: str, operands: list[Any]) -> Any:
    steps, last = _einsum_plan(equation, tuple([tuple(x.shape) for x in operands]))
    x = operands[0]
    for step, y in zip(steps, operands[1:], strict=True):
        x = step.product.operator(step.left(x), step.right(y))
        if step.shape is not None:
            x = x.reshape(step.shape)
    return last(x)


@lru_cache(maxsize=1024)
def _einsum_plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[_Product, ...], _Prepare]:
    if not shapes:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output = _einsum_labels(equation, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            if sizes.setdefault(label, n) != n and n != 1:
                if sizes[label] != 1:
                    raise RuntimeError(
                        f"einsum(): subscript {label} has size {n} for operand with shape {list(shape)} which does not "
                        f"broadcast with previously seen size {sizes[label]}"
                    )
                sizes[label] = n
    terms = [_einsum_diagonals(labels, shape) for labels, shape in zip(inputs, shapes, strict=True)]
    steps: list[_Product] = []
    labels, extents, diagonals = terms[0]
    for i, (other, other_shape, other_diagonals) in enumerate(terms[1:], 2):
        kept = set(output).union(*(names for names, _, _ in terms[i:]))
        step, labels = _einsum_pair(labels, extents, diagonals, other, other_shape, other_diagonals, kept, sizes)
        steps.append(step)
        extents, diagonals = [sizes[label] for label in labels], ()
    summed = tuple(d for d, label in enumerate(labels) if label not in output)
    labels = [label for label in labels if label in output]
    order = tuple(labels.index(label) for label in output)
    return tuple(steps), _Prepare(diagonals, summed or None, None, order if labels != output else None)


def _einsum_labels(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        problem = "fewer" if len(parts) > len(ranks) else "more"
        raise RuntimeError(
            f"einsum(): {problem} operands were provided than specified in the equation, got {len(ranks)} for "
            f"{equation!r}"
        )
    hidden = max(
        [rank - len(p.replace("...", "")) for p, rank in zip(parts, ranks, strict=True) if "..." in p], default=0
    )
    inputs = []
    for i, (part, rank) in enumerate(zip(parts, ranks, strict=True)):
        names = part.replace("...", "")
        if not all(c.isalpha() and c.isascii() for c in names):
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in "
                f"[a-zA-Z], got {part!r}"
            )
        rest = rank - len(names)
        if rest < 0 or (rest and "..." not in part):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(names)}) does not match the number of "
                "dimensions "
                f"({rank}) for operand {i} and no ellipsis was given"
            )
        before, _, after = part.partition("...")
        ellipsis = [f"...{d}" for d in range(hidden - rest, hidden)] if "..." in part else []
        inputs.append([*before, *ellipsis, *after])
    dots = [f"...{d}" for d in range(hidden)]
    if arrow:
        before, _, after = right.partition("...")
        output = [*before, *(dots if "..." in right else []), *after]
        seen = set().union(*inputs)
        for label in output:
            if label not in seen or output.count(label) > 1:
                reason = "more than once" if output.count(label) > 1 else "but does not appear in any input"
                raise RuntimeError(f"einsum(): output subscript {label} appears {reason} in the equation {equation!r}")
    else:
        flat = [label for labels in inputs for label in labels if not label.startswith("...")]
        output = dots + sorted(label for label in set(flat) if flat.count(label) == 1)
    return inputs, output


def _einsum_diagonals(
    labels: list[str], shape: Sequence[int]
) -> tuple[list[str], list[int], tuple[tuple[int, int], ...]]:
    labels, sizes, diagonals = list(labels), list(shape), []
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            n = sizes[first]
            if n != sizes[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand with shape {list(shape)} but the sizes don't "
                    "match"
                )
            diagonals.append((first, second))
            for names in (labels, sizes):
                del names[second], names[first]
            labels.append(label)
            sizes.append(n)
    return labels, sizes, tuple(diagonals)


def _einsum_pair(
    a: list[str],
    a_shape: list[int],
    a_diagonals: Any,
    b: list[str],
    b_shape: list[int],
    b_diagonals: Any,
    kept: set[str],
    sizes: dict[str, int],
) -> tuple[_Product, list[str]]:
    extent = dict(zip(b, b_shape, strict=True))
    # A contracted label of size 1 on a side needs no product: the other side is summed, as PyTorch does.
    single = {
        label
        for label, n in zip(a, a_shape, strict=True)
        if label in b and label not in kept and 1 in (n, extent[label])
    }

    def reduce(labels: list[str], shape: list[int], other: list[str]) -> tuple[list[str], list[int], tuple[int, ...]]:
        # A label that neither the other operand nor the rest needs is summed at once.
        summed = tuple(
            d
            for d, (label, n) in enumerate(zip(labels, shape, strict=True))
            if label not in kept and (label not in other or (label in single and n != 1))
        )
        return (
            [x for d, x in enumerate(labels) if d not in summed],
            [n for d, n in enumerate(shape) if d not in summed],
            summed,
        )

    (a, a_shape, a_summed), (b, b_shape, b_summed) = reduce(a, a_shape, b), reduce(b, b_shape, a)
    batch = [label for label in a if label in b and label in kept]
    inner = [label for label in a if label in b and label not in kept and label not in single]
    rows = [label for label in a if label not in b and label not in single]
    columns = [label for label in b if label not in a and label not in single]
    count = lambda labels: prod(sizes[label] for label in labels)

    def prepare(
        labels: list[str],
        shape: list[int],
        summed: tuple[int, ...],
        diagonals: Any,
        other: list[str],
        order: list[str],
        folded: tuple[int, ...],
    ) -> _Prepare:
        # Size 1 broadcasts by itself in `mul` only.
        wide = [sizes[x] if inner and x in other else n for x, n in zip(labels, shape, strict=True)]
        order = order + [label for label in labels if label in single]
        full = [wide[labels.index(label)] for label in order]
        return _Prepare(
            diagonals,
            summed or None,
            tuple(wide) if wide != shape else None,
            tuple(labels.index(label) for label in order) if labels != order else None,
            folded if list(folded) != full else None,
        )

    result = batch + rows + columns
    if not inner:
        own = lambda labels, shape: tuple(shape[labels.index(label)] for label in batch)
        wide_a = own(a, a_shape) + tuple(sizes[label] for label in rows) + (1,) * len(columns)
        wide_b = own(b, b_shape) + (1,) * len(rows) + tuple(sizes[label] for label in columns)
        left = prepare(a, a_shape, a_summed, a_diagonals, b, batch + rows, wide_a)
        right = prepare(b, b_shape, b_summed, b_diagonals, a, batch + columns, wide_b)
        return _Product(left, right, mul, None), result
    outer = (count(batch),) if batch else ()
    left = prepare(a, a_shape, a_summed, a_diagonals, b, batch + rows + inner, (*outer, count(rows), count(inner)))
    right = prepare(
        b, b_shape, b_summed, b_diagonals, a, batch + inner + columns, (*outer, count(inner), count(columns))
    )
    product = (*outer, count(rows), count(columns))
    shape = tuple(sizes[label] for label in result)
    return _Product(left, right, bmm if batch else mm, shape if shape != product else None), result
