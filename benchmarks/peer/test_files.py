"""Files both ways between rushlight and PyTorch. Collected only where PyTorch is installed, as in `nox -s peer`."""

import collections
import io
import warnings

import pytest

import rushlight

torch = pytest.importorskip("torch")


def content(library):
    base = library.arange(12.0).reshape(3, 4)
    marked = library.ones(2)
    marked.label = 3
    integers = (library.uint8, library.int8, library.int16, library.int32, library.int64, library.bool)
    floats = (library.float16, library.bfloat16, library.float32, library.float64)
    dtypes = (*integers, *floats, library.complex64, library.complex128)
    return {
        "dtypes": {str(dtype): library.arange(6).reshape(2, 3).to(dtype) for dtype in dtypes},
        "base": base,
        "part": base[1:, ::2],
        "turned": base.t(),
        "expanded": library.ones(1).expand(3),
        "empty": library.empty(0, 3),
        "leaf": library.ones(2, requires_grad=True),
        "parameter": library.nn.Parameter(library.ones(2)),
        "state": library.nn.Linear(2, 3).state_dict(),
        "coo": library.eye(2).to_sparse(),
        "csr": library.eye(2).to_sparse_csr(),
        "meta": library.empty(2, device="meta"),
        "marked": marked,
        "storage": library.ones(3).storage(),
        "plain": [1, (2.5, None), {"k": {True}}, 2**70, "ü", b"\0\xff", bytearray(b"x"), 1 + 2j],
        "ordered": collections.OrderedDict(a=1),
        "counter": collections.Counter("aab"),
        "size": library.Size([1, 2]),
        "dtype": library.float16,
        "device": library.device("cpu"),
        "layout": library.sparse_coo,
    }


def plain(value):
    """The object with tensors as lists, so that both libraries' compare."""
    if isinstance(value, (rushlight.Tensor, torch.Tensor)):
        dense = None if value.is_meta else (value if "strided" in str(value.layout) else value.to_dense()).tolist()
        return [
            type(value).__name__,
            str(value.dtype),
            str(value.layout),
            tuple(value.shape),
            value.requires_grad,
            dense,
        ]
    if isinstance(value, dict):
        return type(value)({key: plain(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else str(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("weights_only", [True, False], ids=["safe", "trusted"])
@pytest.mark.parametrize(("writer", "reader"), [(rushlight, torch), (torch, rushlight)], ids=["to torch", "from torch"])
def test_files(writer, reader, weights_only, new):
    obj = content(writer)
    file = io.BytesIO()
    writer.save(obj, file, _use_new_zipfile_serialization=new)
    file.seek(0)
    got = reader.load(file, weights_only=weights_only)
    assert plain(got) == plain(obj)
    assert got["part"].stride() == (4, 2)
    assert got["marked"].label == 3
    assert got["part"].untyped_storage().data_ptr() == got["base"].untyped_storage().data_ptr()


@pytest.mark.filterwarnings("ignore")
def test_modules_of_pytorch():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    ours = rushlight.load(file, weights_only=False)
    assert isinstance(ours, rushlight.nn.Sequential)
    want = net(torch.ones(2, 3)).detach().numpy()
    assert ours(rushlight.ones(2, 3)).detach().numpy() == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("library", [rushlight, torch], ids=["rushlight", "torch"])
def test_optimizers(library):
    other = torch if library is rushlight else rushlight
    net = library.nn.Linear(2, 1)
    optimizer = library.optim.Adam(net.parameters(), lr=0.1)
    net(library.ones(4, 2)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    library.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = other.load(file)
    twin = other.nn.Linear(2, 1)
    twin.load_state_dict(state["net"])
    steps = other.optim.Adam(twin.parameters(), lr=0.1)
    steps.load_state_dict(state["optimizer"])
    for net_, optimizer_, lib in ((net, optimizer, library), (twin, steps, other)):
        optimizer_.zero_grad()
        net_(lib.ones(4, 2)).sum().backward()
        optimizer_.step()
    assert twin.weight.tolist()[0] == pytest.approx(net.weight.tolist()[0])


def test_errors_are_of_the_same_type():
    good = io.BytesIO()
    torch.save({"a": torch.ones(3)}, good)
    for data in (good.getvalue()[:-10], b"PK\3\4" + bytes(100), b""):
        with warnings.catch_warnings(), pytest.raises(Exception) as theirs:
            torch.load(io.BytesIO(data))
        with pytest.raises(type(theirs.value)):
            rushlight.load(io.BytesIO(data))
