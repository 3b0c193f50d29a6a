"""Interpolation, grids, folds, shuffles and pooling by regions against NumPy and mathematics."""

import itertools

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck

HALVES = (torch.float16, torch.bfloat16)


def random(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def tensor(values, **options):
    return torch.tensor(values, **options)


# -- interpolation


@pytest.mark.parametrize("n", [1, 2, 3])
def test_nearest_takes_the_element_below(n):
    image = random(2, 3, *(5, 4, 6)[:n])
    sizes = (7, 3, 12)[:n]
    places = [np.arange(out) * size // out for out, size in zip(sizes, image.shape[2:], strict=True)]
    expected = image[(slice(None), slice(None), *np.ix_(*places))]
    assert np.array_equal(F.interpolate(tensor(image), sizes).numpy(), expected)


@pytest.mark.parametrize(("n", "mode"), [(1, "linear"), (2, "bilinear"), (3, "trilinear")])
@pytest.mark.parametrize("align_corners", [True, False])
def test_linear_is_the_interpolation_of_numpy_along_each_dimension(n, mode, align_corners):
    image = random(2, 3, *(5, 4, 6)[:n])
    sizes = (8, 3, 11)[:n]
    expected = image
    for dim, out in enumerate(sizes, 2):
        size = image.shape[dim]
        at = np.linspace(0, size - 1, out) if align_corners else (np.arange(out) + 0.5) * size / out - 0.5
        expected = np.apply_along_axis(
            lambda line, at=at, size=size: np.interp(at, np.arange(size), line), dim, expected
        )
    np.testing.assert_allclose(F.interpolate(tensor(image), sizes, mode=mode, align_corners=align_corners), expected)


@pytest.mark.parametrize("mode", ["bicubic", "lanczos"])
def test_smooth_filters_keep_constants(mode):
    constant = torch.full((1, 2, 6, 7), 3.0, dtype=torch.float64)
    assert torch.allclose(F.interpolate(constant, (3, 4), mode=mode, antialias=True), constant[..., :3, :4])


def test_cubic_is_the_kernel_of_keys():
    line = random(1, 1, 1, 9)
    expected = np.zeros(18)
    for j in range(18):
        at = (j + 0.5) / 2 - 0.5
        for k in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
            d, a = abs(at - k), -0.75
            near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
            expected[j] += (near if d <= 1 else far) * line[0, 0, 0, min(max(k, 0), 8)]
    np.testing.assert_allclose(F.interpolate(tensor(line), (1, 18), mode="bicubic").flatten(), expected)


def test_antialiased_halving_is_a_triangle_filter():
    image = random(1, 1, 8, 8)
    padded = np.pad(image[0, 0], ((0, 0), (1, 1)))
    weight = np.array([1, 3, 3, 1]) / 8
    inside = np.pad(np.ones(8), 1)
    rows = [padded[:, j : j + 4] @ weight / (inside[j : j + 4] @ weight) for j in range(0, 8, 2)]
    found = F.interpolate(tensor(image), (8, 4), mode="bilinear", antialias=True)
    np.testing.assert_allclose(found[0, 0], np.stack(rows, 1))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_halves_are_interpolated_in_float(dtype, mode):
    image = tensor(random(1, 2, 5, 5), dtype=torch.float32).to(dtype)
    assert torch.equal(F.interpolate(image, 9, mode=mode), F.interpolate(image.float(), 9, mode=mode).to(dtype))


def test_bytes_are_rounded():
    image = torch.tensor([[[[0, 255], [10, 20]]]], dtype=torch.uint8)
    found = F.interpolate(image, (2, 3), mode="bilinear", align_corners=True)
    assert found.dtype == torch.uint8
    assert found.tolist() == [[[[0, 128, 255], [10, 15, 20]]]]


def test_channels_last_stays():
    image = tensor(random(2, 3, 4, 5)).to(memory_format=torch.channels_last)
    found = F.interpolate(image, 8, mode="bilinear")
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(found, F.interpolate(image.contiguous(), 8, mode="bilinear"))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_batches_may_be_empty(mode):
    assert F.interpolate(torch.ones(0, 3, 4, 4), 8, mode=mode).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("options", [{"mode": "bilinear"}, {"mode": "bicubic", "antialias": True}, {}], ids=str)
def test_gradients_of_interpolation(options):
    image = tensor(random(1, 2, 4, 5), requires_grad=True)
    for size in ((3, 7), (8, 2)):
        assert gradcheck(lambda x, size=size: F.interpolate(x, size, **options), (image,), check_forward_ad=True)
        assert gradgradcheck(lambda x, size=size: F.interpolate(x, size, **options), (image,))


def test_a_large_channels_last_image_and_one_row():
    row = random(1, 1, 1, 1000)
    np.testing.assert_allclose(
        F.interpolate(tensor(row), (1, 1999), mode="bilinear", align_corners=True)[..., ::2], row
    )


# -- grids


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_the_grid_of_the_identity_gives_the_image(n, mode):
    image = tensor(random(2, 3, *(4, 5, 6)[:n]))
    theta = torch.eye(n, n + 1, dtype=torch.float64).expand(2, -1, -1)
    for align_corners in (True, False):
        grid = F.affine_grid(theta, image.shape, align_corners)
        assert torch.allclose(F.grid_sample(image, grid, mode, align_corners=align_corners), image)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_padding_of_grids(padding):
    image = torch.tensor([[[[1.0, 2.0, 4.0]]]])
    at = torch.tensor([-1.0, -3.0, -5.0, 3.0, 5.0])  # elements 0, -2, -4, 4 and 6 with the corners aligned
    grid = torch.stack([at, torch.zeros(5)], -1).reshape(1, 1, 5, 2)
    expected = {"zeros": [1, 0, 0, 0, 0], "border": [1, 1, 1, 4, 4], "reflection": [1, 4, 1, 1, 4]}
    assert F.grid_sample(image, grid, "bilinear", padding, True).flatten().tolist() == expected[padding]


def test_what_is_outside_does_not_touch_the_image():
    image = torch.full((1, 1, 2, 2), float("nan"))
    grid = torch.tensor([[[[5.0, 5.0], [float("inf"), 0.0], [float("nan"), 0.0]]]])
    assert F.grid_sample(image, grid, align_corners=False).flatten()[:2].tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_grids(mode, padding):
    image = tensor(random(1, 2, 4, 5), requires_grad=True)
    grid = tensor(np.random.default_rng(1).uniform(-1.4, 1.4, (1, 3, 2, 2)), requires_grad=True)

    def sample(image, grid):
        return F.grid_sample(image, grid, mode, padding, align_corners=False)

    assert gradcheck(sample, (image, grid), check_forward_ad=True)
    assert gradgradcheck(sample, (image, grid))


@pytest.mark.parametrize("channels", [1, 3, 8, 17])
def test_grids_of_any_size(channels):
    image, grid = random(2, channels, 6, 7), np.random.default_rng(1).uniform(-1, 1, (2, 9, 15, 2))
    found = F.grid_sample(tensor(image), tensor(grid), align_corners=True).numpy()
    x, y = (grid[..., 0] + 1) * 3, (grid[..., 1] + 1) * 2.5
    left, top = np.minimum(x.astype(int), 5), np.minimum(y.astype(int), 4)
    expected = np.zeros_like(found)
    for down, right in itertools.product((0, 1), (0, 1)):
        weight = (1 - abs(y - top - down)) * (1 - abs(x - left - right))
        for i in range(2):
            expected[i] += image[i][:, (top + down)[i], (left + right)[i]] * weight[i]
    np.testing.assert_allclose(found, expected)
    single = F.grid_sample(tensor(image).float(), tensor(grid).float(), align_corners=True)
    np.testing.assert_allclose(single, expected, atol=1e-5)


# -- windows as columns, channels as pixels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64])
def test_unfold_and_fold(dtype):
    image = tensor(random(2, 3, 7, 6) * 5).to(dtype)
    columns = F.unfold(image, (3, 2), (2, 1), (1, 0), (2, 1))
    padded = np.pad(image.numpy(), ((0, 0), (0, 0), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 2), (2, 3))[:, :, ::2, :, ::2]
    expected = windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, -1)
    assert np.array_equal(columns.numpy(), expected)
    # How often an element is in a window is the fold of ones.
    times = F.fold(
        F.unfold(torch.ones_like(image), (3, 2), (2, 1), (1, 0), (2, 1)), (7, 6), (3, 2), (2, 1), (1, 0), (2, 1)
    )
    folded = F.fold(columns, (7, 6), (3, 2), (2, 1), (1, 0), (2, 1))
    tolerance = 1e-2 if dtype == torch.float16 else 1e-6
    np.testing.assert_allclose(folded.numpy(), (image * times).numpy(), rtol=tolerance, atol=tolerance)


def test_gradients_of_folds():
    image = tensor(random(1, 2, 4, 5), requires_grad=True)
    assert gradgradcheck(lambda x: F.unfold(x, 2, padding=1) ** 2, (image,))
    assert gradgradcheck(lambda x: F.fold(F.unfold(x, 2), (4, 5), 2) ** 2, (image,))


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128]
)
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pixel_shuffle(dtype, factor):
    image = torch.arange(2 * 2 * factor**2 * 3 * 4).reshape(2, 2 * factor**2, 3, 4).to(dtype)
    blocks = image.numpy().reshape(2, 2, factor, factor, 3, 4)
    expected = blocks.transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 3 * factor, 4 * factor)
    shuffled = F.pixel_shuffle(image, factor)
    assert np.array_equal(shuffled.numpy(), expected)
    assert torch.equal(F.pixel_unshuffle(shuffled, factor), image)
    turned = image.transpose(2, 3)
    assert torch.equal(F.pixel_shuffle(turned, factor), F.pixel_shuffle(turned.contiguous(), factor))


def test_channel_shuffle():
    image = torch.arange(6).reshape(1, 6, 1)
    assert F.channel_shuffle(image, 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]


# -- pooling by regions


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("out", [1, 3, 8])
def test_adaptive_maxima(n, out):
    image = random(2, 3, *(7, 6, 5)[:n])
    values, index = getattr(F, f"adaptive_max_pool{n}d")(tensor(image), out, return_indices=True)
    for place in itertools.product(range(out), repeat=n):
        region = tuple(
            slice(i * size // out, -(-(i + 1) * size // out)) for i, size in zip(place, image.shape[2:], strict=True)
        )
        expected = image[(slice(None), slice(None), *region)].max(tuple(range(2, n + 2)))
        assert np.array_equal(values.numpy()[(slice(None), slice(None), *place)], expected)
    taken = np.take_along_axis(image.reshape(2, 3, -1), index.numpy().reshape(2, 3, -1), 2)
    assert np.array_equal(taken, values.numpy().reshape(2, 3, -1))


def test_nan_is_a_maximum():
    image = torch.tensor([[[1.0, float("nan"), 3.0, 2.0]]])
    assert np.isnan(F.adaptive_max_pool1d(image, 1).item())
    assert F.adaptive_max_pool1d(image, 2, return_indices=True)[1].tolist() == [[[1, 2]]]


def test_fractional_regions_have_the_kernel_size_and_cover_the_image():
    torch.manual_seed(0)
    image = torch.arange(100.0).reshape(1, 1, 10, 10)
    values = F.fractional_max_pool2d(image, 3, 4, _random_samples=torch.tensor([[[0.1, 0.1]]]))
    assert values[0, 0, -1, -1] == 99  # the last region ends where the image does
    assert values[0, 0, 0, 0] == 22  # the first one begins where it begins
    assert not torch.equal(values, F.fractional_max_pool2d(image, 3, 4, _random_samples=torch.tensor([[[0.4, 0.4]]])))


def test_unpooling_undoes_pooling_of_one_maximum():
    image = torch.zeros(1, 1, 4, 4)
    image[0, 0, 1, 2] = 5.0
    values, index = F.max_pool2d(image, 2, return_indices=True)
    assert torch.equal(F.max_unpool2d(values, index, 2), image)


def test_p_norms_of_windows():
    line = np.abs(random(2, 3, 9))
    expected = (line.reshape(2, 3, 3, 3) ** 3).sum(3) ** (1 / 3)
    np.testing.assert_allclose(F.lp_pool1d(tensor(line), 3.0, 3), expected)
    cube = tensor(np.abs(random(1, 2, 4, 4, 4)))
    np.testing.assert_allclose(
        F.lp_pool3d(cube, 2.0, 2)[0, 0, 0, 0, 0].item(), np.sqrt((cube.numpy()[0, 0, :2, :2, :2] ** 2).sum())
    )
