"""Whom and what the errors name, and what `out=` takes. The rules are PyTorch's; the reasons are the input's."""

import warnings

import pytest

import rushlight as torch

L = torch.linalg
NAN, INF = float("nan"), float("inf")


def batch(value):
    return torch.stack([2 * torch.eye(3), torch.full((3, 3), value)])


FAILS = {  # what is called: with zeros or with NaN in the second matrix, and why it cannot do it
    "linalg.svd": (L.svd, NAN, "non-finite"),
    "linalg.svdvals": (L.svdvals, NAN, "non-finite"),
    "linalg.eigh": (L.eigh, NAN, "non-finite"),
    "linalg.eigvalsh": (L.eigvalsh, NAN, "non-finite"),
    "linalg.eig": (L.eig, NAN, "non-finite"),
    "linalg.eigvals": (L.eigvals, NAN, "non-finite"),
    "linalg.pinv": (L.pinv, NAN, "non-finite"),
    "linalg.pinv ": (lambda a: L.pinv(a, 1e-3, True), NAN, "non-finite"),
    "pinverse": (torch.pinverse, NAN, "non-finite"),
    "linalg.matrix_rank": (L.matrix_rank, NAN, "non-finite"),
    "linalg.matrix_rank ": (lambda a: L.matrix_rank(a, hermitian=True), NAN, "non-finite"),
    "linalg.cond": (L.cond, NAN, "non-finite"),
    "linalg.cond ": (lambda a: L.cond(a, "nuc"), NAN, "non-finite"),
    "linalg.norm": (lambda a: L.norm(a, "nuc", (-2, -1)), NAN, "non-finite"),
    "linalg.matrix_norm": (lambda a: L.matrix_norm(a, 2), NAN, "non-finite"),
    "linalg.lstsq": (lambda a: L.lstsq(a, a), NAN, "non-finite"),
    "svd_lowrank": (torch.svd_lowrank, NAN, "non-finite"),
    "pca_lowrank": (torch.pca_lowrank, NAN, "non-finite"),
    "symeig": (torch.symeig, NAN, "non-finite"),
    "svd": (torch.svd, NAN, "non-finite"),
    "linalg.cholesky": (L.cholesky, 0.0, "not positive-definite"),
    "linalg.cholesky ": (L.cholesky, NAN, "not positive-definite.*non-finite"),
    "cholesky": (torch.cholesky, 0.0, "not positive-definite"),
    "linalg.cholesky_ex": (lambda a: L.cholesky_ex(a, check_errors=True), 0.0, "not positive-definite"),
    "cholesky_inverse": (torch.cholesky_inverse, 0.0, "singular"),
    "linalg.inv": (L.inv, 0.0, "singular"),
    "linalg.inv_ex": (lambda a: L.inv_ex(a, check_errors=True), 0.0, "singular"),
    "inverse": (torch.inverse, 0.0, "singular"),
    "linalg.matrix_power": (lambda a: L.matrix_power(a, -2), 0.0, "singular"),
    "matrix_power": (lambda a: torch.matrix_power(a, -1), 0.0, "singular"),
    "linalg.solve": (lambda a: L.solve(a, a), 0.0, "singular"),
    "linalg.solve ": (lambda a: L.solve(a, a, left=False), 0.0, "singular"),
    "linalg.solve_ex": (lambda a: L.solve_ex(a, a, check_errors=True), 0.0, "singular"),
    "solve": (lambda a: torch.solve(a, a), 0.0, "U.1,1. is zero"),
    "linalg.lu_factor": (L.lu_factor, 0.0, "U.1,1. is zero"),
    "lu": (torch.lu, 0.0, "U.1,1. is zero"),
    "linalg.ldl_factor": (L.ldl_factor, 0.0, "D.1,1. is exactly zero"),
    "linalg.ldl_factor ": (L.ldl_factor, NAN, "D.1,1. is exactly zero.*non-finite"),
}


@pytest.mark.parametrize("name", FAILS)
def test_failures_name_function_batch_element_and_reason(name):
    function, value, reason = FAILS[name]
    with pytest.raises(L.LinAlgError, match=rf"^{name.strip()}: \(Batch element 1\): .*{reason}"):
        function(batch(value))
    with pytest.raises(L.LinAlgError, match=rf"^{name.strip()}: (?!\(Batch).*{reason}"):
        function(batch(value)[1])


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh", "eigvals", "cond", "pinv"])
def test_recorded_calls_fail_under_their_own_name(name):
    pytest.importorskip("rushlight.autograd")
    with pytest.raises(L.LinAlgError, match=rf"^linalg.{name}: \(Batch element 1\)"):
        getattr(L, name)(batch(NAN).requires_grad_())


def test_functions_of_tensors_fail_under_their_own_name():
    with pytest.raises(L.LinAlgError, match=r"^linalg.tensorinv: .*singular"):
        L.tensorinv(torch.zeros(2, 2), 1)
    with pytest.raises(L.LinAlgError, match=r"^linalg.tensorsolve: .*singular"):
        L.tensorsolve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(NotImplementedError, match=r"^linalg.pinv: Low precision"):
        L.pinv(torch.ones(2, 2).half())


OF_ONE = [
    "inv",
    "inv_ex",
    "det",
    "slogdet",
    "cholesky",
    "cholesky_ex",
    "lu_factor",
    "lu_factor_ex",
    "lu",
    "ldl_factor",
    "ldl_factor_ex",
    "qr",
    "eigh",
    "eigvalsh",
    "eig",
    "eigvals",
    "svd",
    "svdvals",
    "pinv",
    "matrix_rank",
    "matrix_exp",
    "cond",
]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 2), (5, 5), (2, 3, 3), (3, 2), (2, 3), (0, 3, 3), (2, 0, 3)])
def test_no_value_hangs_or_crashes(value, shape):
    for a in (torch.full(shape, value), torch.full(shape, value, dtype=torch.complex128)):
        for name in OF_ONE:
            try:
                getattr(L, name)(a)
            except RuntimeError as error:
                assert isinstance(error, L.LinAlgError) or "square" in str(error), (name, error)  # noqa: PT017
        for order in ("fro", "nuc", 1, 2, INF):
            try:
                L.matrix_norm(a, order)
            except L.LinAlgError as error:
                assert "non-finite" in str(error)  # noqa: PT017


OUT = {
    "det": (L.det, True),
    "slogdet": (L.slogdet, True),
    "inv": (L.inv, True),
    "inverse": (torch.inverse, True),
    "solve": (lambda a, out: L.solve(a, a[:, :1], out=out), True),
    "eigvalsh": (L.eigvalsh, True),
    "svdvals": (L.svdvals, True),
    "lu": (L.lu, True),
    "eigh": (L.eigh, True),
    "matrix_power": (lambda a, out: L.matrix_power(a, 2, out=out), True),
    "multi_dot": (lambda a, out: L.multi_dot([a, a], out=out), True),
    "norm": (L.norm, True),
    "matrix_norm": (lambda a, out: L.matrix_norm(a, 1, out=out), True),
    "vector_norm": (lambda a, out: L.vector_norm(a, dim=0, out=out), True),
    "vecdot": (lambda a, out: L.vecdot(a, a, out=out), True),
    "cross": (lambda a, out: L.cross(a, a, out=out), True),
    "torch.svd": (torch.svd, True),
    "torch.qr": (torch.qr, True),
    "cond": (L.cond, False),
    "pinv": (L.pinv, False),
    "cholesky_inverse": (torch.cholesky_inverse, False),
    "cholesky_solve": (lambda a, out: torch.cholesky_solve(a, a, out=out), False),
    "householder_product": (lambda a, out: L.householder_product(a, a[0], out=out), False),
    "geqrf": (torch.geqrf, False),
}


@pytest.mark.parametrize("name", OUT)
def test_out(name):
    function, exact = OUT[name]
    a = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], dtype=torch.float64)
    several = isinstance(function(a, out=None), tuple)
    expected = [x.clone() for x in (function(a, out=None) if several else [function(a, out=None)])]

    def write(*out):
        result = function(a, out=tuple(out) if several else out[0])
        assert all(x is y for x, y in zip(result if several else (result,), out, strict=True))
        return [x.tolist() for x in out]

    values = [x.tolist() for x in expected]
    assert write(*(torch.empty(0, dtype=x.dtype) for x in expected)) == values
    assert write(*(torch.zeros(*x.shape, 2, dtype=x.dtype)[..., 0] for x in expected)) == values
    with pytest.warns(UserWarning, match="was resized"):
        assert write(*(torch.zeros(7, 2, dtype=x.dtype) for x in expected)) == values
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if expected[0].shape == a.shape:  # the input is written to when it has been read
            copy = a.clone()
            outs = (copy, *(torch.empty_like(x) for x in expected[1:]))
            a, read = copy, a
            assert write(*outs) == values
            a = read
    narrow = [torch.empty(x.shape, dtype=torch.float32) for x in expected]
    if exact:
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            write(*narrow)
    else:
        write(*narrow)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        write(*(torch.empty(x.shape, dtype=torch.int64) for x in expected))


def test_norms_of_empty_matrices():
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 3)):
        for order in ("fro", "nuc", 2):
            assert L.matrix_norm(torch.empty(shape), order).eq(0).all()
    assert L.matrix_norm(torch.empty(3, 0), 1).item() == 0
    assert L.matrix_norm(torch.empty(0, 3), INF, keepdim=True).tolist() == [[0]]
    with pytest.raises(IndexError, match="non-zero size"):
        L.matrix_norm(torch.empty(0, 3), -2)


def test_dimensions_that_do_not_fit():
    with pytest.raises(RuntimeError, match="length 1 or 2"):
        L.norm(torch.ones(2, 2, 2), dim=(0, 1, 2))
    with pytest.raises(RuntimeError, match="2-tuple"):
        torch.norm(torch.ones(2, 2, 2), "nuc")
    with pytest.raises(RuntimeError, match="2-tuple"):
        torch.norm(torch.ones(2, 2, 2), "fro", (0, 1, 2))
    with pytest.raises(RuntimeError, match="ind is at most"):
        L.tensorinv(torch.ones(1), 2)
    with pytest.raises(IndexError, match="out of range"):
        torch.tensordot(torch.ones(3), torch.ones(3), ([0], [1]))
