"""Files: what `save` writes, what `load` reads, and what it refuses."""

import collections
import contextlib
import copy
import importlib
import io
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest

import rushlight as torch

DATA = pathlib.Path(__file__).parent / "data" / "files"
DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
]  # fmt: skip

with contextlib.suppress(ImportError):
    importlib.import_module("rushlight.autograd")
AUTOGRAD = "rushlight.autograd" in sys.modules
needs_autograd = pytest.mark.skipif(not AUTOGRAD, reason="needs rushlight-autograd")


def saved(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


def pickled(obj):
    return pickle.loads(pickle.dumps(obj))


def trusted(obj):
    return torch.load(saved(obj), weights_only=False)


def round_trips():
    yield "zip", lambda obj: torch.load(saved(obj))
    yield "trusted", lambda obj: torch.load(saved(obj), weights_only=False)
    for protocol in (3, 4, 5):
        yield f"protocol {protocol}", lambda obj, protocol=protocol: torch.load(saved(obj, pickle_protocol=protocol))
    yield "legacy", lambda obj: torch.load(saved(obj, _use_new_zipfile_serialization=False))
    for protocol in range(6):
        yield f"pickle {protocol}", lambda obj, protocol=protocol: pickle.loads(pickle.dumps(obj, protocol))
    yield "deepcopy", copy.deepcopy


ROUND_TRIPS = [pytest.param(function, id=name) for name, function in round_trips()]


@pytest.mark.parametrize("trip", ROUND_TRIPS)
def test_everything_comes_back(trip):
    base = torch.arange(12.0).reshape(3, 4)
    obj = {
        "tensors": {dtype: torch.tensor([[0, 1], [1, 0]]).to(dtype) for dtype in DTYPES},
        "base": base,
        "part": base[1:, ::2],
        "turned": base.t(),
        "expanded": torch.ones(1).expand(3),
        "empty": torch.empty(0, 3),
        "number": torch.tensor(2.5),
        "leaf": torch.ones(2, requires_grad=AUTOGRAD),
        "plain": [1, (2.5, None), {"k": {True, False}}, 2**70, "ü", b"\0\xff", bytearray(b"x"), 1 + 2j],
        "ordered": collections.OrderedDict(a=1, b=2),
        "counter": collections.Counter("aab"),
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "meta": torch.empty(2, 3, device="meta"),
    }
    got = trip(obj)
    assert list(got) == list(obj)
    for dtype, tensor in got["tensors"].items():
        assert tensor.dtype is dtype
        assert torch.equal(tensor, obj["tensors"][dtype])
    for name in ("base", "part", "turned", "expanded", "empty", "number", "leaf"):
        assert torch.equal(got[name], obj[name])
        assert got[name].stride() == obj[name].stride()
        assert got[name].requires_grad == obj[name].requires_grad
    for name in ("plain", "ordered", "counter", "size", "device"):
        assert got[name] == obj[name]
        assert type(got[name]) is type(obj[name])
    assert (got["meta"].is_meta, got["meta"].shape) == (True, (2, 3))
    assert got["base"].data_ptr() != base.data_ptr()
    got["part"][0, 0] = 99  # memory that was shared still is
    assert got["base"][1, 0] == got["turned"][0, 1] == 99
    assert base[1, 0] == 4


def test_a_name_of_the_module_leaves_python_out():
    out = pickle.loads(pickle.dumps(torch.max(torch.tensor([[1.0, 3.0], [4.0, 2.0]]), 1)))
    assert type(out) is torch.return_types.max
    assert out.indices.tolist() == [1, 0]


class Named(torch.Tensor):
    """A subclass with attributes."""


@pytest.mark.parametrize(
    "trip", [pickled, copy.deepcopy, copy.copy, lambda obj: torch.load(saved(obj), weights_only=False)]
)
def test_operators_are_what_they_were(trip):
    operators = [torch.add, torch.Tensor.add_, torch.absolute, torch.Tensor.resize_]
    assert all(got is operator for got, operator in zip(trip(operators), operators, strict=True))


@pytest.mark.parametrize("trip", [pickled, copy.deepcopy, copy.copy, trusted])
def test_subclasses_keep_type_and_attributes(trip):
    a = torch.arange(3.0).as_subclass(Named)
    a.label = {"a": 1}
    got = trip(a)
    assert type(got) is Named
    assert got.label == {"a": 1}
    assert got.tolist() == [0, 1, 2]
    assert [type(row) for row in a] == [Named] * 3
    plain = torch.ones(1)
    plain.label = 3
    assert trip(plain).label == 3
    with torch.serialization.safe_globals([Named]):
        assert torch.load(saved(a)).label == {"a": 1}


@pytest.mark.parametrize(
    "trip", [pickled, trusted, lambda obj: torch.load(saved(obj))], ids=["pickle", "trusted", "safe"]
)
def test_sparse_tensors(trip):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    got = trip({"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "layout": torch.sparse_coo})
    assert (got["coo"].layout, got["csr"].layout) == (torch.sparse_coo, torch.sparse_csr)
    assert torch.equal(got["coo"].to_dense(), dense)
    assert torch.equal(got["csr"].to_dense(), dense)
    assert got["coo"].is_coalesced()
    assert got["layout"] is torch.sparse_coo


@needs_autograd
def test_history_is_not_saved():
    a = torch.ones(2, requires_grad=True)
    b = a * 2
    got = torch.load(saved(b))
    assert (got.requires_grad, got.is_leaf, got.tolist()) == (True, True, [2, 2])
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(b)
    a.grad = torch.full((2,), 3.0)
    assert copy.deepcopy(a).grad.tolist() == [3, 3]


def test_out_of_band_pickles_share_memory():
    a = torch.arange(4.0)
    buffers = []
    data = pickle.dumps([a, a[1:]], protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    whole, part = pickle.loads(data, buffers=buffers)
    part[0] = 7
    assert a.tolist() == whole.tolist() == [0, 7, 2, 3]
    frozen, _ = pickle.loads(data, buffers=[bytes(buffer) for buffer in buffers])
    assert frozen.add_(1).tolist() == [1, 8, 3, 4]


# -- the format


def test_the_archive_is_one_that_pytorch_writes(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.arange(3), "b": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[0] == "model/data.pkl"
        assert {"model/byteorder", "model/version", "model/data/0", "model/data/1"} <= set(names)
        assert archive.read("model/version") == b"3\n"
        assert archive.read("model/data/0") == np.arange(3).tobytes()
        code = archive.read("model/data.pkl")
        for entry in archive.infolist():
            header = path.read_bytes()[entry.header_offset :][:30]
            start = entry.header_offset + 30 + sum(struct.unpack("<2H", header[26:]))
            assert start % 64 == 0
            assert entry.compress_type == zipfile.ZIP_STORED
    assert b"ctorch._utils\n_rebuild_tensor_v2\n" in code
    assert b"ctorch\nFloatStorage\n" in code
    assert b"rushlight" not in code


def test_a_big_archive(monkeypatch):
    """Sizes and places beyond 32 bits, with the boundary moved to where a test can go."""
    from rushlight import _archive

    monkeypatch.setattr(_archive, "_BIG32", 1000)
    obj = {str(i): torch.full((200,), float(i)) for i in range(20)}
    file = io.BytesIO()
    writer = _archive.Writer(file, "archive")
    for i in range(20):
        writer.add(f"data/{i}", bytes([i]) * (100 * i))
    writer.close()
    reader = _archive.Reader(_archive.Source(io.BytesIO(file.getvalue())))
    assert [reader.read(f"data/{i}") for i in range(20)] == [bytes([i]) * (100 * i) for i in range(20)]
    assert torch.equal(torch.load(saved(obj))["7"], obj["7"])


@pytest.mark.parametrize("count", [0, 1, 70_000])
def test_many_records(count):
    obj = [torch.full((1,), float(i)) for i in range(count)]
    got = torch.load(saved(obj))
    assert len(got) == count
    assert all(float(tensor) == i for i, tensor in enumerate(got))


@pytest.mark.parametrize("n", [0, 1, 7, 15, 16, 63, 64, 65, 1000, 4096 + 5])
def test_checksum(n):
    import zlib

    from rushlight import _C

    data = random.Random(n).randbytes(n)
    assert _C.crc32(data) == zlib.crc32(data)


def test_files_and_file_objects(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.arange(3), str(path))
    with open(path, "rb") as file:
        assert torch.load(file).tolist() == [0, 1, 2]

    class Reading:
        def __init__(self, data):
            self.read = io.BytesIO(data).read

    assert torch.load(Reading(path.read_bytes())).tolist() == [0, 1, 2]
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "absent.pt")
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, tmp_path / "absent" / "a.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        torch.load(3)
    with pytest.raises(TypeError, match="binary mode"):
        torch.load(io.StringIO("text"))
    before = path.read_bytes()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save({"a": torch.ones(1), "f": lambda: 0}, path)
    assert path.read_bytes() == before


def test_legacy_files_follow_one_another():
    file = io.BytesIO()
    for i in range(3):
        torch.save(torch.tensor([i]), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [torch.load(file).item() for _ in range(3)] == [0, 1, 2]


def tar_file():
    """A file as PyTorch wrote them before 0.1.10, whose layout is that of its `legacy_load`."""
    entry = lambda kind, *fields: (
        b"\x80\x02("
        + b"".join(b"I%d\n" % f if isinstance(f, int) else b"U\x03cpu" for f in fields)
        + b"ctorch\n%b\nt." % kind
    )
    storages = b"".join(
        [
            pickle.dumps(2, 2),
            entry(b"FloatStorage", 1001, "cpu") + struct.pack("<q6f", 6, *range(6)),
            entry(b"LongStorage", 94234234234, "cpu") + struct.pack("<q3q", 3, 7, 8, 9),
            pickle.dumps([(1003, 1001, 2, 3)], 2),
        ]
    )
    tensors = b"".join(
        [
            pickle.dumps(3, 2),
            entry(b"FloatTensor", 2001, 1001) + struct.pack("<i4x2q2qq", 2, 2, 3, 3, 1, 0),
            entry(b"FloatTensor", 2002, 1001) + struct.pack("<i4xqqq", 1, 2, 3, 1),
            entry(b"LongTensor", 2003, 94234234234) + struct.pack("<i4xqqq", 1, 3, 1, 0),
        ]
    )
    numbers = b"".join(
        b"X%b%b%bQs" % (struct.pack("<L", 1), name, number)
        for name, number in [(b"a", b"U\x042001"), (b"b", b"U\x042002"), (b"c", b"U\x042003"), (b"s", b"U\x041003")]
    )
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:") as archive:
        for name, content in [("pickle", b"\x80\x02}" + numbers + b"."), ("storages", storages), ("tensors", tensors)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("weights_only", [True, False])
def test_tar_files(weights_only):
    got = torch.load(io.BytesIO(tar_file()), weights_only=weights_only)
    assert got["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert got["b"].tolist() == [1, 4]
    assert got["c"].tolist() == [7, 8, 9]
    assert list(got["s"]) == [2, 3, 4]
    got["a"][0, 1] = 10
    assert got["b"][0] == 10  # one memory, as in the program that saved it


def test_damaged_tar_files():
    good = tar_file()
    for cut in range(0, len(good.rstrip(b"\0")), 97):
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
            torch.load(io.BytesIO(good[:cut]))
    for old, new in [(b"I2001\nI1001", b"I2001\nI1009"), (struct.pack("<q", 6), struct.pack("<q", -6))]:
        with pytest.raises(RuntimeError, match="the tar archive does not hold what it says"):
            torch.load(io.BytesIO(good.replace(old, new)))


def test_one_memory_has_one_dtype():
    a = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([a, a.view(torch.int32)], io.BytesIO())


def test_map_location():
    file = saved({"a": torch.ones(2), "b": torch.zeros(1)})

    def load(place):
        file.seek(0)
        return torch.load(file, map_location=place)["a"]

    for place in (None, "cpu", b"cpu", torch.device("cpu"), {"cpu": "cpu"}, {}, lambda storage, location: None):
        assert load(place).tolist() == [1, 1]
    for place in ("meta", torch.device("meta"), {"cpu": "meta"}):
        assert load(place).is_meta
    seen = []
    assert load(lambda storage, location: seen.append((type(storage), location)) or storage).tolist() == [1, 1]
    assert seen == [(torch.UntypedStorage, "cpu")] * 2
    with pytest.raises(RuntimeError, match="tagged with nowhere"):
        load("nowhere")
    with pytest.raises(TypeError, match="map_location must be"):
        load(3)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            load("cuda:0")


def test_mmap(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.arange(1000.0), "e": torch.empty(0)}, path)
    before = path.read_bytes()
    got = torch.load(path, mmap=True)
    got["a"].add_(1)
    assert got["a"][0] == 1
    assert path.read_bytes() == before
    import mmap

    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["a"].add_(1)
    assert torch.load(path)["a"][0] == 1
    with pytest.raises(ValueError, match="f must be a file path"):
        torch.load(io.BytesIO(before), mmap=True)
    torch.save(1, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(path, mmap=True)


def test_options():
    file = saved(torch.ones(2))
    try:
        torch.serialization.set_crc32_options(False)
        assert not torch.serialization.get_crc32_options()
        assert torch.load(saved(torch.ones(2))).tolist() == [1, 1]
    finally:
        torch.serialization.set_crc32_options(True)
    with torch.serialization.skip_data():
        assert torch.load(file).shape == (2,)
        assert len(saved(torch.ones(2)).getvalue()) == len(file.getvalue())


def test_big_endian_files():
    good = saved({"a": torch.tensor([1.5, -2.0]), "c": torch.tensor([1 + 2j])})
    kinds = {"archive/data/0": "f4", "archive/data/1": "f4"}  # complex numbers are two floats

    def with_order(order):
        file = io.BytesIO()
        with zipfile.ZipFile(good) as old, zipfile.ZipFile(file, "w") as new:
            for name in old.namelist():
                data = old.read(name)
                if name in kinds:
                    data = np.frombuffer(data, kinds[name]).byteswap().tobytes()
                new.writestr(name, order if name.endswith("byteorder") else data)
        file.seek(0)
        return file

    got = torch.load(with_order(b"big"))
    assert got["a"].tolist() == [1.5, -2]
    assert got["c"].tolist() == [1 + 2j]
    with pytest.raises(ValueError, match="Unknown endianness"):
        torch.load(with_order(b"middle"))


# -- formats of others


def test_safetensors_by_numpy(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    state = {str(dtype): torch.tensor([0, 1]).to(dtype) for dtype in DTYPES if dtype is not torch.complex128}
    path = tmp_path / "a.safetensors"
    numpy_files.save_file({name: tensor.numpy(force=True) for name, tensor in state.items()}, path)
    got = {name: torch.from_numpy(array) for name, array in numpy_files.load_file(path).items()}
    assert got.keys() == state.keys()
    assert all(torch.equal(got[name], state[name]) for name in state)


def test_safetensors_of_a_pytorch_program(tmp_path):
    pytest.importorskip("safetensors")
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)  # the library's module detaches tensors
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, safetensors.torch as files\n"
        "state = {'a': torch.arange(6.0).reshape(2, 3), 'b': torch.ones(2, dtype=torch.bfloat16)}\n"
        "files.save_file(state, 'a.safetensors')\n"
        "got = files.load_file('a.safetensors')\n"
        "assert all(torch.equal(got[name], state[name]) for name in state)\n"
    )
    subprocess.run([sys.executable, "-m", "rushlight", "run", str(script)], check=True, cwd=tmp_path)


class TextFormat:
    """A format of a plugin: the text of a list of numbers."""

    @staticmethod
    def save(obj, file):
        file.write(b"#numbers " + " ".join(map(str, obj.tolist())).encode())

    @staticmethod
    def load(file, map_location):
        return torch.tensor([float(word) for word in file.read().split()[1:]])


def test_formats_of_plugins(tmp_path, monkeypatch):
    from rushlight import _registry
    from rushlight.plugin import Format

    numbers = Format("numbers", b"#numbers", TextFormat.load, TextFormat.save, (".num",))
    monkeypatch.setitem(_registry.formats, "numbers", _registry.Entry(numbers, "a test"))
    torch.save(torch.tensor([1.0, 2.5]), tmp_path / "a.num")
    assert (tmp_path / "a.num").read_bytes() == b"#numbers 1.0 2.5"
    assert torch.load(tmp_path / "a.num").tolist() == [1, 2.5]


# -- what PyTorch wrote (data/files/README.md)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pt")), ids=lambda path: path.stem)
@pytest.mark.parametrize("weights_only", [True, False])
@needs_autograd
def test_files_of_pytorch(path, weights_only):
    got = torch.load(path, weights_only=weights_only)
    for dtype in DTYPES:
        tensor = got["dtypes"][str(dtype)]
        assert tensor.dtype is dtype
        assert torch.equal(tensor, torch.arange(6).reshape(2, 3).to(dtype))
    base = np.arange(12.0).reshape(3, 4)
    assert got["base"].tolist() == base.tolist()
    assert got["part"].tolist() == base[1:, ::2].tolist()
    assert got["turned"].tolist() == base.T.tolist()
    assert got["part"].untyped_storage() is got["base"].untyped_storage() is got["turned"].untyped_storage()
    assert got["leaf"].requires_grad
    assert list(got["state"]) == ["0.weight", "0.bias"]
    assert got["number"].item() == 3.5
    assert got["empty"].shape == (0, 3)
    assert got["plain"] == [1, (2, 3), {"k": None}, 2**80, 1.5, "ü"]
    assert got["size"] == torch.Size([2])
    assert got["dtype"] is torch.bfloat16
    if "conj" in got:
        assert got["conj"].tolist() == [1 - 2j]


# -- what must not be executed


class Bomb:
    """Executes when a careless reader unpickles it."""

    exploded = False

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def _explode(*arguments):
    Bomb.exploded = True


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((_explode, ()), f"{__name__}._explode"),
        ((exec, ("raise SystemExit",)), "exec"),
        ((getattr, (torch.Tensor, "__new__")), "getattr"),
        ((__import__("os").system, ("true",)), "system"),
        ((__import__("operator").attrgetter, ("__class__",)), "operator.attrgetter"),
        ((__import__("functools").partial, (_explode,)), "functools.partial"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("new", [True, False])
def test_a_hostile_pickle_is_named_and_not_executed(call, name, protocol, new):
    file = saved([torch.ones(1), Bomb(*call)], pickle_protocol=protocol, _use_new_zipfile_serialization=new)
    with pytest.raises(pickle.UnpicklingError, match=rf"Unsupported global: GLOBAL [\w.]*{name}"):
        torch.load(file)
    assert not Bomb.exploded


def test_what_is_not_here_is_named():
    for name in (b"torch.nn.absent\nLayer", b"torch\nabsent", b"rushlight\nabsent"):
        with pytest.raises(pickle.UnpicklingError, match=name.split(b"\n")[1].decode() + ", which is not here"):
            torch.load(archive_of(b"\x80\2c" + name + b"\n."), weights_only=False)


class Allowed:
    """A class that users allow."""

    def __init__(self, value):
        self.value = value


def test_safe_globals():
    file = saved(Allowed(torch.ones(2)))
    with pytest.raises(pickle.UnpicklingError, match="Allowed was not an allowed global"):
        torch.load(file)
    before = torch.serialization.get_safe_globals()
    with torch.serialization.safe_globals([Allowed]):
        file.seek(0)
        assert torch.load(file).value.tolist() == [1, 1]
        assert Allowed in torch.serialization.get_safe_globals()
    assert torch.serialization.get_safe_globals() == before
    torch.serialization.add_safe_globals([(Allowed, f"{__name__}.Allowed")])
    file.seek(0)
    assert torch.load(file).value.tolist() == [1, 1]
    torch.serialization.clear_safe_globals()
    file.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == [f"{__name__}.Allowed"]
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file)


def archive_of(code, **records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", code)
        for name, data in records.items():
            archive.writestr(f"archive/data/{name}", data)
        archive.writestr("archive/version", "3\n")
    file.seek(0)
    return file


def tensor_code(offset=0, size=(2,), stride=(1,), count=2, key="0"):
    class Persistent(pickle.Pickler):
        def persistent_id(self, obj):
            return obj.value if isinstance(obj, Allowed) else None

    from rushlight import _rebuild

    stream = io.BytesIO()
    pid = Allowed(("storage", torch.FloatStorage, key, "cpu", count))
    Persistent(stream, 2).dump(Bomb(_rebuild.rebuild_tensor_v2, (pid, offset, size, stride, False, {})))
    code = stream.getvalue().replace(b"crushlight._rebuild\nrebuild_tensor_v2", b"ctorch._utils\n_rebuild_tensor_v2")
    return code.replace(b"crushlight\nFloatStorage", b"ctorch\nFloatStorage")


def test_the_hand_made_tensor_is_right():
    assert torch.load(archive_of(tensor_code(), **{"0": b"\0\0\x80?" * 2})).tolist() == [1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": 1},
        {"offset": -1},
        {"offset": 2**62},
        {"size": (3,)},
        {"size": (-1,)},
        {"size": (2**40, 2**40), "stride": (2**40, 1)},
        {"stride": (-1,)},
        {"stride": (2**62,)},
        {"stride": (1, 1)},
        {"size": 3},
        {"size": ("a",)},
        {"count": 3},
        {"count": -1},
        {"count": 2**61},
        {"count": "2"},
        {"key": "1"},
        {"key": "../../etc/passwd"},
        {"key": 7},
        {"size": (1,) * 100, "stride": (1,) * 100},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_that_do_not_fit(wrong, weights_only):
    with pytest.raises((RuntimeError, pickle.UnpicklingError, TypeError)):
        torch.load(archive_of(tensor_code(**wrong), **{"0": bytes(8)}), weights_only=weights_only)


GLOBAL_BYTEARRAY = b"c__builtin__\nbytearray\n"


@pytest.mark.parametrize(
    "code",
    [
        GLOBAL_BYTEARRAY + b"J\0\0\0\x7f\x85R.",  # memory that is not in the file
        b"}" + b"0" * 5 + b".",
        b"j\xff\xff\xff\x7f.",  # memo that is not there
        b"Nr\xff\xff\xff\xff0.",  # a far place of the memo
        b"B\xff\xff\xff\xff.",
        b"X\xff\xff\xff\x7fabc.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"}N" + b"\x85" * 2000 + b"Ns.",  # a key that is deep
        b"}N" + b"q\0h\0\x86" * 60 + b"Ns.",  # a key whose hash takes 2**60 steps
        b"c__builtin__\nset\n]N" + b"q\0h\0\x86" * 60 + b"a\x85R.",
        b"ccollections\nOrderedDict\n]N" + b"q\0h\0\x86" * 60 + b"N\x86a\x85R.",
        b"c_codecs\nencode\nX\1\0\0\0aX\4\0\0\0zlib\x86R.",
        b"ctorch\nTensor\n(K\1t\x81.",
        b"ctorch\nTensor\nJ\0\0\0\x7f\x85R.",
        b"ctorch\nFloatStorage\nJ\0\0\0\x7f\x85R.",
        b"ctorch\nTensor\n}X\4\0\0\0evilNsb.",  # attributes of a class
        b"ctorch._utils\n_rebuild_tensor_v2\n}X\10\0\0\0__code__Nsb.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch.storage\nUntypedStorage\nctorch\nTensor\nJ\0\0\0\x7f\x85}tR.",
        b"ctorch\nTensor.__new__\n.",
        b"ctorch\n__builtins__\n.",
        b"crushlight\nload\n.",
        b"(i__main__\nBomb\n.",
        b"\x80\x09N.",
        b"",
        b"N",
    ],
)
def test_pickles_that_are_wrong(code):
    file = archive_of(b"\x80\2" + code)
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        torch.load(file)
    assert not hasattr(torch.Tensor, "evil")


def test_archives_that_are_wrong(tmp_path):
    good = saved({"a": torch.arange(100), "b": torch.ones(3)}).getvalue()
    for end in (0, 3, 4, 30, 100, len(good) // 2, len(good) - 30, len(good) - 1):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(good[:end]))
    for text in (b"hello world", b"PK\3\4", b"PK\5\6" + bytes(18), b"\x80\2.", b"\x89PNG\r\n"):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(text))

    def rebuilt(compression=zipfile.ZIP_STORED, **other):
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(file, "w", compression) as new:
            for name in old.namelist():
                new.writestr(other.get(name, name), old.read(name))
        file.seek(0)
        return file

    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(rebuilt(zipfile.ZIP_DEFLATED))
    with pytest.raises(RuntimeError, match="file not found: 'data/0'"):
        torch.load(rebuilt(**{"archive/data/0": "archive/data/zero"}))
    with pytest.raises(RuntimeError, match="distinct files in one folder"):
        torch.load(rebuilt(**{"archive/data/0": "../../evil"}))
    with (
        pytest.raises(RuntimeError, match="distinct files in one folder"),
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        torch.load(rebuilt(**{"archive/data/0": "archive/data/1"}))
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.load(rebuilt(**{"archive/data/0": "archive/constants.pkl"}))


def test_records_must_not_overlap():
    big = bytes(100_000)
    code = b"\x80\2N."
    file = archive_of(code, **{"0": big})
    data = bytearray(file.getvalue())
    start = data.rfind(b"PK\5\6")
    (directory_at,) = struct.unpack_from("<L", data, start + 16)
    directory = bytes(data[directory_at:start])
    entry_at = directory.index(b"archive/data/0") - 46
    entry = directory[entry_at : entry_at + 60]
    entries = b"".join(entry.replace(b"data/0", b"data/%c" % (65 + i)) for i in range(20))
    end = bytearray(data[start:])
    struct.pack_into("<2H2L", end, 8, 23, 23, len(directory + entries), directory_at)
    with pytest.raises(RuntimeError, match="overlap"):
        torch.load(io.BytesIO(bytes(data[:directory_at]) + directory + entries + bytes(end)))


@pytest.mark.parametrize("format", ["zip", "legacy", "tar"])
@pytest.mark.parametrize("seed", range(10))
def test_files_with_flipped_bits(format, seed):
    """A damaged file loads, or raises one of the named errors; it never crashes, hangs or takes memory."""
    obj = {
        "a": torch.arange(4),
        "b": torch.ones(2, 2).t(),
        "c": collections.OrderedDict(x=torch.ones(2, requires_grad=AUTOGRAD)),
        "d": [1, (2, "e"), {b"f"}],
    }
    good = tar_file() if format == "tar" else saved(obj, _use_new_zipfile_serialization=format == "zip").getvalue()
    source = random.Random(seed)
    for _ in range(50):
        bad = bytearray(good)
        for _ in range(source.choice([1, 1, 2, 8])):
            kind, at = source.randrange(4), source.randrange(len(bad))
            if kind == 0:
                bad[at] ^= 1 << source.randrange(8)
            elif kind == 1:
                bad[at] = source.randrange(256)
            elif kind == 2:
                del bad[at : at + source.randrange(1, 9)]
            else:
                bad[at:at] = source.randbytes(source.randrange(1, 9))
        with contextlib.suppress(RuntimeError, pickle.UnpicklingError, EOFError, ValueError):
            torch.load(io.BytesIO(bytes(bad)))
