"""Libraries around NumPy take tensors for arrays: each call gives what it gives for an array of the same elements."""

import os

import numpy as np
import pytest

import rushlight as torch

X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
MATRIX = np.array([[3.0, 1.0], [2.0, 5.0], [4.0, 0.0], [1.0, 1.0], [0.0, 2.0], [2.5, 3.0]])
LABELS = np.array([0, 1, 0, 1, 1, 0])


def tensors(*arrays):
    return [torch.from_numpy(array.copy()) for array in arrays]


def test_pandas():
    pandas = pytest.importorskip("pandas")
    (x,) = tensors(X)
    series = pandas.Series(X)
    assert pandas.Series(x).tolist() == X.tolist()
    assert pandas.DataFrame({"x": x}).x.tolist() == pandas.DataFrame(torch.stack([x, x], 1))[0].tolist() == X.tolist()
    assert pandas.DataFrame({"y": X}).assign(x=x).x.tolist() == X.tolist()
    assert torch.tensor(series).tolist() == torch.as_tensor(pandas.DataFrame({"x": X}))[:, 0].tolist() == X.tolist()
    assert x[pandas.Series([0, 2])].tolist() == [3, 2]


def test_scipy():
    stats = pytest.importorskip("scipy.stats")
    from scipy import fft, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special

    x, matrix = tensors(X, MATRIX)
    for function in (
        lambda a, b: stats.norm.pdf(a),
        lambda a, b: stats.pearsonr(a, a * a).statistic,
        lambda a, b: signal.convolve(a, a),
        lambda a, b: signal.find_peaks(a)[0],
        lambda a, b: interpolate.interp1d(a, a * 2)(2.5),
        lambda a, b: linalg.svd(b)[1],
        lambda a, b: ndimage.gaussian_filter(b, 1),
        lambda a, b: spatial.distance.cdist(b, b),
        lambda a, b: spatial.KDTree(b).query(b)[1],
        lambda a, b: special.softmax(a),
        lambda a, b: fft.fft(a),
        lambda a, b: optimize.linear_sum_assignment(b)[1],
        lambda a, b: sparse.csr_array(b).toarray(),
        lambda a, b: sparse.eye_array(6, format="csr") @ b,
    ):
        np.testing.assert_allclose(np.asarray(function(x, matrix)), function(X, MATRIX), rtol=1e-12)
    found = optimize.minimize(
        lambda v: ((torch.from_numpy(v) - 1) ** 2).sum().item(), torch.zeros(2, dtype=torch.float64)
    )
    np.testing.assert_allclose(found.x, 1, atol=1e-4)


def test_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x, matrix = tensors(X, MATRIX)
    figure, axes = pyplot.subplots()
    assert axes.plot(x, x)[0].get_ydata().tolist() == X.tolist()
    assert axes.hist(x, bins=torch.linspace(0, 6, 4))[0].tolist() == np.histogram(X, np.linspace(0, 6, 4))[0].tolist()
    assert axes.scatter(x, x, c=x).get_offsets().tolist() == np.stack([X, X], 1).tolist()
    assert axes.imshow(matrix).get_array().tolist() == MATRIX.tolist()
    assert axes.bar(x, x)[0].get_height() == X[0]
    axes.contourf(*torch.meshgrid(x.sort().values, x.sort().values, indexing="xy"), torch.outer(x, x))
    axes.boxplot(matrix)
    axes.set_xlim(x.min(), x.max())
    figure.canvas.draw()
    pyplot.close(figure)


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn import cluster, decomposition, linear_model, metrics, model_selection, preprocessing, svm

    matrix, labels = tensors(MATRIX, LABELS)
    for model in (linear_model.LogisticRegression(), svm.SVC()):
        expected = model.fit(MATRIX, LABELS).predict(MATRIX).tolist()
        assert model.fit(matrix, labels).predict(matrix).tolist() == expected
    assert cluster.KMeans(2, n_init=1, random_state=0).fit(matrix).inertia_ > 0
    for transform in (decomposition.PCA(1), preprocessing.StandardScaler()):
        np.testing.assert_allclose(transform.fit_transform(matrix), transform.fit_transform(MATRIX), rtol=1e-12)
    left, right = model_selection.train_test_split(matrix, random_state=0)
    assert len(left) + len(right) == len(MATRIX)
    assert metrics.accuracy_score(labels, labels) == 1
    assert metrics.confusion_matrix(labels, 1 - labels).tolist() == [[0, 3], [3, 0]]


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    x = torch.from_numpy(X.copy())
    xp = compat.array_namespace(x)
    assert xp is torch.array_api is compat.array_namespace(x, 1.0, None, api_version="2024.12")
    assert compat.is_array_api_obj(x)
    assert compat.is_writeable_array(x)
    assert not compat.is_lazy_array(x)
    assert not compat.is_numpy_array(x)
    assert compat.device(x) == torch.device("cpu")
    assert compat.to_device(x, "meta").is_meta
    assert compat.size(x) == 5
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(x, X)


def test_array_api_extra():
    extra = pytest.importorskip("array_api_extra")
    x, matrix = tensors(X, MATRIX)
    xp = torch.array_api
    for result, expected in (
        (extra.atleast_nd(x, ndim=2, xp=xp), X[None]),
        (extra.cov(matrix.T, xp=xp), np.cov(MATRIX.T)),
        (extra.kron(x, x, xp=xp), np.kron(X, X)),
        (extra.sinc(x, xp=xp), np.sinc(X)),
        (extra.pad(x, 1, xp=xp), np.pad(X, 1)),
        (extra.create_diagonal(x, xp=xp), np.diag(X)),
        (extra.at(x)[0].set(9.0, copy=True), np.append(9, X[1:])),
        (extra.apply_where(x > 2, x, lambda a: 2 * a, lambda a: -a, xp=xp), np.where(X > 2, 2 * X, -X)),
    ):
        assert isinstance(result, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-15)


follows_array_api = pytest.mark.skipif(
    not os.environ.get("SCIPY_ARRAY_API"), reason="SciPy reads SCIPY_ARRAY_API as it is imported"
)


@follows_array_api
def test_scipy_returns_tensors():
    stats = pytest.importorskip("scipy.stats")
    from scipy import cluster, fft, integrate, ndimage, signal, special

    x, matrix = tensors(X, MATRIX)
    for function in (
        lambda a, b: fft.fft(a),
        lambda a, b: fft.dct(a),
        lambda a, b: special.gammaln(a),
        lambda a, b: special.logsumexp(b, axis=0),
        lambda a, b: special.betainc(a, a, a / 10),
        lambda a, b: stats.skew(b),
        lambda a, b: stats.kurtosis(b),
        lambda a, b: stats.ttest_ind(a, a + 1).pvalue,
        lambda a, b: stats.pearsonr(a, a * a).statistic,
        lambda a, b: stats.zscore(b),
        lambda a, b: stats.entropy(a),
        lambda a, b: stats.rankdata(a),
        lambda a, b: stats.bartlett(a, 2 * a).pvalue,
        lambda a, b: signal.fftconvolve(a, a),
        lambda a, b: signal.detrend(a),
        lambda a, b: signal.hilbert(a),
        lambda a, b: ndimage.gaussian_filter(b, 1),
        lambda a, b: integrate.trapezoid(a),
        lambda a, b: integrate.cumulative_trapezoid(a),
        lambda a, b: cluster.vq.whiten(b),
    ):
        result, expected = function(x, matrix), function(X, MATRIX)
        assert isinstance(result, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), expected, 1e-12, 1e-12)


@follows_array_api
def test_scikit_learn_returns_tensors():
    sklearn = pytest.importorskip("sklearn")
    from sklearn import decomposition, linear_model, metrics, naive_bayes, pipeline, preprocessing

    matrix, labels = tensors(MATRIX, LABELS)
    with sklearn.config_context(array_api_dispatch=True):
        for model in (preprocessing.MinMaxScaler(), preprocessing.StandardScaler(), preprocessing.PolynomialFeatures()):
            result = model.fit_transform(matrix)
            assert isinstance(result, torch.Tensor)
            np.testing.assert_allclose(result.numpy(), type(model)().fit_transform(MATRIX), rtol=1e-12)
        ridge = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge(solver="svd"))
        result = ridge.fit(matrix, matrix[:, 0]).predict(matrix)
        assert isinstance(result, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), ridge.fit(MATRIX, MATRIX[:, 0]).predict(MATRIX), rtol=1e-9)
        reduced = decomposition.PCA(1, svd_solver="full").fit_transform(matrix)
        expected = decomposition.PCA(1, svd_solver="full").fit_transform(MATRIX)
        np.testing.assert_allclose(np.abs(reduced.numpy()), np.abs(expected), rtol=1e-9)
        for kernel in (
            metrics.pairwise.rbf_kernel,
            metrics.pairwise.cosine_similarity,
            metrics.pairwise.euclidean_distances,
        ):
            result = kernel(matrix)
            assert isinstance(result, torch.Tensor)
            np.testing.assert_allclose(result.numpy(), kernel(MATRIX), rtol=1e-9, atol=1e-7)
        assert naive_bayes.GaussianNB().fit(matrix, labels).predict(matrix).shape == (6,)
        assert metrics.mean_squared_error(matrix[:, 0], matrix[:, 1]) == pytest.approx(((MATRIX @ [1, -1]) ** 2).mean())
        assert metrics.accuracy_score(labels, 1 - labels) == 0
        assert metrics.f1_score(labels, labels) == 1


def test_python():
    x = torch.tensor([3, 1, 2])
    assert [int(each) for each in sorted(x)] == [1, 2, 3]
    assert [int(each) for each in reversed(x)] == [2, 1, 3]
    assert reversed(torch.tensor(1)) == 1
    assert (sum(x), max(x), min(x)) == (6, 3, 1)
    assert "abc"[x[1]] == "b"
    assert [*range(x[0])] == [0, 1, 2]
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{int(x[0]):03d}" == "003"
