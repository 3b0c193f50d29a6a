"""`save` and `load`: PyTorch's file formats, both ways.

A file of the current format is a zip archive: `data.pkl` is a pickle in which a storage is named by a number, and
`data/<number>` holds the bytes of each. The pickle's globals have PyTorch's names, so that either library reads what
the other wrote without being installed beside it.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from io import BytesIO
from typing import Any

from . import _C, _rebuild
from ._archive import Reader, Source, Writer
from ._shared_memory import MappedFile
from ._unpickler import is_allowed, unpickle, user_globals
from .storage import LEGACY, TypedStorage, UntypedStorage, typed

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_MAGIC_BYTES = MAGIC_NUMBER.to_bytes(10, "little")
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257


class LoadEndianness(Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


# -- options


class _Options:
    crc32 = True
    endianness: LoadEndianness | None = None
    shared_mmap = False
    skip_data: bool | None = None
    safe: dict[Any, None] = {}  # in order


def get_crc32_options() -> bool:
    """Whether `save` writes the checksums of records."""
    return _Options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether `save` writes the checksums of records. Without them `load` works, but unzipping may complain."""
    _Options.crc32 = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not say theirs; None stands for little endian."""
    return _Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Options.endianness = endianness


def get_default_mmap_options() -> int:
    """MAP_PRIVATE or MAP_SHARED of the module `mmap`: what `load(mmap=True)` maps with."""
    import mmap

    return mmap.MAP_SHARED if _Options.shared_mmap else mmap.MAP_PRIVATE


class set_default_mmap_options:
    """Sets what `load(mmap=True)` maps with; as a context manager, until its end.

    Args:
        flags: MAP_PRIVATE (changes stay in memory) or MAP_SHARED (they are written to the file) of the module `mmap`.
    """

    def __init__(self, flags: int) -> None:
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before, _Options.shared_mmap = _Options.shared_mmap, flags == mmap.MAP_SHARED

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _Options.shared_mmap = self.before


@contextmanager
def skip_data(materialize_fake_tensors: bool = False) -> Iterator[None]:
    """Within it `save` leaves the bytes of storages out, as zeros, and `load` leaves new memory as it is."""
    before, _Options.skip_data = _Options.skip_data, True
    try:
        yield
    finally:
        _Options.skip_data = before


# -- what weights_only allows


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Allows classes and functions in files that `load` reads with `weights_only=True`.

    Args:
        safe_globals: Classes and functions, or pairs of one and the path by which files name it. Loading calls them
            with arguments from the file, so allow only what does no harm with any.
    """
    _Options.safe.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` was given."""
    return list(_Options.safe)


def clear_safe_globals() -> None:
    """Forgets what `add_safe_globals` was given."""
    _Options.safe.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """`add_safe_globals` until the end of a block."""
    before = dict(_Options.safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _Options.safe = before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The globals of a file that `load` would refuse with `weights_only=True`, as paths. Nothing of it is executed.

    Args:
        f: A path or file object of the zip format.
    """
    from pickletools import genops

    with _opened(f, "rb") as file:
        source = Source(file)
        data = Reader(source).read("data.pkl")
        source.close()
    found: dict[str, None] = {}  # in order
    strings: list[str] = []
    for opcode, argument, _ in genops(data):
        if "UNICODE" in opcode.name:
            strings.append(str(argument))
        elif opcode.name == "GLOBAL":
            found[str(argument).replace(" ", ".", 1)] = None
        elif opcode.name == "STACK_GLOBAL":
            found[".".join(strings[-2:])] = None
    known = user_globals(_Options.safe)
    return [path for path in found if not is_allowed(path, known)]


# -- where storages are

_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Adds a way to name and restore where storages are, as for a device of one's own.

    Args:
        priority: Lower ones are asked first.
        tagger: Gives the tag of a storage, or None.
        deserializer: Gives the storage, moved to where a tag says, or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The name of the place where a storage is, as "cpu" or "cuda:0"."""
    for _, tagger, _ in _packages:
        if location := tagger(storage):
            return location
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, moved to the place that a tag names.

    Raises:
        RuntimeError: There is no such place here.
    """
    for _, _, deserializer in _packages:
        if (result := deserializer(storage, location)) is not None:
            return result
    if location == "cpu":
        return storage
    if location.startswith("cuda"):
        from . import cuda

        if not cuda.is_available():
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
                "your storages to the CPU."
            )
    try:
        device = _C.device(location)
    except RuntimeError as error:
        raise RuntimeError(
            f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location}). "
            "Install the backend of that device, or pass map_location='cpu'."
        ) from error
    return storage.to(device=device)


def _restorer(map_location: Any) -> Callable[[Any, str], Any]:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, str | bytes):
        place = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, place)
    if isinstance(map_location, _C.device):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            f"load: map_location must be a str, device, dict or callable, got {type(map_location).__name__}."
        )

    def restore(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore


@contextmanager
def _opened(f: Any, mode: str) -> Iterator[Any]:
    if isinstance(f, str | os.PathLike):
        with open(f, mode) as file:
            yield file
    else:
        wanted = "write" if "w" in mode else "read"
        if not hasattr(f, wanted):
            raise AttributeError(
                f"expected 'f' to be string, path, or a file-like object with a '{wanted}' attribute, "
                f"got {type(f).__name__}."
            )
        yield f


# -- saving


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file that PyTorch reads too.

    Tensors that share memory still do after loading, and the whole storage of a view is written: `clone()` a small view
    of a big tensor first.

    Args:
        obj: What to save: a tensor, a state dict, any object that pickle can.
        f: A path, or a file object with `write`.
        pickle_module: Module whose Pickler is used.
        pickle_protocol: Version of the pickle format. PyTorch reads only 2 safely.
        _use_new_zipfile_serialization: False writes the format that PyTorch had before version 1.6.
        _disable_byteorder_record: Leaves out the record of the byte order, which PyTorch before 2.1 did not know.

    Raises:
        RuntimeError: The path is in no folder, or tensors see the same memory as different dtypes.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> rushlight.save({"weight": rushlight.ones(2)}, file)
        >>> rushlight.load(io.BytesIO(file.getvalue()))
        {'weight': tensor([1., 1.])}
    """
    if isinstance(f, str | os.PathLike):
        f = os.fspath(f)
        folder = os.path.dirname(f)
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        if custom := _format_of(f):
            with open(f, "wb") as file:
                return custom.save(obj, file)
    write = _save_zip if _use_new_zipfile_serialization else _save_legacy
    # The pickle first: what cannot be pickled leaves a file that is there already as it is.
    pickling = _Pickling(obj, pickle_module, pickle_protocol, legacy=not _use_new_zipfile_serialization)
    with _opened(f, "wb") as file:
        write(file, f, pickling, pickle_protocol, _disable_byteorder_record)


class _Pickling:
    """The pickle of an object, and the storages in it by key.

    PyTorch's names get into the stream by way of the memo: the Pickler is told that it has written the objects already,
    and the globals are put before what it writes.
    """

    def __init__(self, obj: Any, module: Any, protocol: int, legacy: bool) -> None:
        self.storages: dict[str, UntypedStorage] = {}
        self.keys: dict[int, tuple[str, Any]] = {}
        self.legacy = legacy
        names = {id(value): (*path.rpartition(".")[::2], value) for path, value in _rebuild.SAFE.items()}
        while True:
            stream, used = self._dump(obj, module, protocol, names)
            if used.keys() <= names.keys():
                break
            names |= used  # further objects of rushlight's own: again, now that they are known
        self.data = _with_globals(stream, protocol, names, used)

    def _dump(self, obj: Any, module: Any, protocol: int, names: dict[int, Any]) -> tuple[bytes, dict[int, Any]]:
        used: dict[int, Any] = {}
        plain, of_storage = _PLAIN, self._persistent_id

        class Pickler(module.Pickler):
            def persistent_id(self, value: Any) -> Any:
                kind = type(value)
                if kind in plain:
                    return None
                if kind is TypedStorage or kind is UntypedStorage:
                    return of_storage(value, used)
                if id(value) in names:
                    used[id(value)] = names[id(value)]
                elif _is_own_global(value):
                    used[id(value)] = ("torch" + value.__module__[len("rushlight") :], value.__qualname__, value)
                return None

        stream = BytesIO()
        pickler = Pickler(stream, protocol)
        pickler.memo = {key: (index, value) for index, (key, (*_, value)) in enumerate(names.items())}
        pickler.dump(obj)
        return stream.getvalue(), used

    def _persistent_id(self, storage: Any, used: dict[int, Any]) -> tuple[Any, ...]:
        if type(storage) is TypedStorage:
            untyped, dtype, kind = storage._untyped_storage, storage.dtype, LEGACY[storage.pickle_storage_type()]
        else:
            untyped, dtype, kind = storage, _C.uint8, UntypedStorage
        key, known = self.keys.setdefault(untyped._cdata, (str(len(self.keys)), dtype))
        if known is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"got {known} and {dtype}. Save one of them and make the other by view(dtype)."
            )
        self.storages[key] = untyped
        # One string object, so that the pickle holds it once.
        location, count = sys.intern(location_tag(untyped)), untyped.nbytes() // dtype.itemsize
        return ("storage", kind, key, location, count, None) if self.legacy else ("storage", kind, key, location, count)


_PLAIN = frozenset(
    (str, int, tuple, list, dict, float, bool, type(None), bytes, set, complex, _C.Tensor, _rebuild.NoHooks)
)


def _is_own_global(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return (
        isinstance(module, str)
        and (module == "rushlight" or module.startswith("rushlight."))
        and (isinstance(value, type) or type(value) in _ROUTINES)
    )


_ROUTINES = frozenset((type(_is_own_global), type(len)))


def _with_globals(stream: bytes, protocol: int, names: dict[int, Any], used: dict[int, Any]) -> bytes:
    start = 2 if protocol >= 2 else 0  # after PROTO
    parts = [stream[:start]]
    for index, (key, (module, name, _)) in enumerate(names.items()):
        if key in used:
            parts.append(b"c%s\n%s\n" % (module.encode(), name.encode()))
        elif protocol >= 4:
            parts.append(b"N")  # MEMOIZE counts, so that every place must be taken
        else:
            continue
        # What stays below the result on the stack does no harm, and PyTorch does not know POP.
        parts.append(b"q%c" % index if index < 256 else b"r" + index.to_bytes(4, "little"))
    parts.append(stream[start:])
    return b"".join(parts)


def _save_zip(file: Any, f: Any, pickling: _Pickling, protocol: int, no_byteorder: bool) -> None:
    root = os.path.splitext(os.path.basename(f))[0] if isinstance(f, str) else "archive"
    archive = Writer(file, root or "archive", _Options.crc32)
    archive.add("data.pkl", pickling.data)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", b"64")
    if not no_byteorder:
        archive.add("byteorder", sys.byteorder.encode())
    for key, storage in pickling.storages.items():
        archive.add(f"data/{key}", bytes(len(storage)) if _Options.skip_data else storage.cpu())
    archive.add("version", b"3\n")
    archive.close()


def _save_legacy(file: Any, f: Any, pickling: _Pickling, protocol: int, no_byteorder: bool) -> None:
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        file.write(pickle.dumps(value, protocol))
    file.write(pickling.data)
    keys = sorted(pickling.storages)
    file.write(pickle.dumps(keys, protocol))
    dtypes = dict(pickling.keys.values())
    for key in keys:
        storage = pickling.storages[key].cpu()
        file.write((storage.nbytes() // dtypes[key].itemsize).to_bytes(8, "little"))
        file.write(storage)


# -- loading


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads an object from a file that `save` or PyTorch wrote.

    Args:
        f: A path, or a file object with `read`.
        map_location: Where storages go: a device or its name, a dict from places in the file to places here, or a
            callable of a storage (in host memory) and the name of its place, which returns a storage or None. By
            default they go where they were.
        pickle_module: Module whose Unpickler is used; with `weights_only=False` only.
        weights_only: True, the default, reads tensors, plain data and what `add_safe_globals` allows, and executes
            nothing else that a file asks for. False reads every pickle: **it executes what the file says**, so only for
            files that you trust.
        mmap: Maps the file into memory instead of reading it, so that only what is used is ever read. Needs a path.
        **pickle_load_args: Arguments of the Unpickler, as `encoding`; with `weights_only=False` only.

    Returns:
        The object.

    Raises:
        pickle.UnpicklingError: The pickle is broken, or asks for what is not allowed; the message names it.
        RuntimeError: The file is damaged, or a device of it is not here.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> rushlight.save(rushlight.arange(3), file)
        >>> rushlight.load(io.BytesIO(file.getvalue()))
        tensor([0, 1, 2])
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not isinstance(f, str | os.PathLike):
        raise ValueError("f must be a file path in order to use the mmap argument")
    restore = _restorer(map_location)
    with _opened(f, "rb") as file:
        source = Source(file)
        try:
            start = source.read(source.start, 4)
            if start == b"PK\3\4":
                mapped = _map(f, source.size) if mmap else None
                loader: _Loader = _ZipLoader(source, restore, mapped)
            elif mmap:
                raise RuntimeError(
                    "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`, "
                    "please torch.save your checkpoint with this option in order to use mmap."
                )
            elif custom := _format_with(source):
                return custom.load(file, map_location)
            elif source.read(source.start + _TAR_MAGIC_AT, len(_TAR_MAGIC)) == _TAR_MAGIC:
                loader = _TarLoader(source, restore)
            else:
                loader = _LegacyLoader(source, restore)
            result = loader.load(weights_only, pickle_module or pickle, pickle_load_args)
            if not isinstance(f, str | os.PathLike) and hasattr(file, "seek"):
                file.seek(loader.end)
            return result
        finally:
            source.close()


def _map(path: Any, size: int) -> Any:
    return memoryview(MappedFile.open(path, _Options.shared_mmap, size))


class _Loader:
    """What the formats share: the storages by key, and how pickles are read."""

    def __init__(self, source: Source, restore: Callable[[Any, str], Any]) -> None:
        self.source, self.restore = source, restore
        self.storages: dict[str, TypedStorage] = {}
        self.end = source.size
        self.swap = False

    def load(self, weights_only: bool, module: Any, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError

    def unpickle(
        self, data: bytes, at: int, weights_only: bool, module: Any, arguments: dict[str, Any]
    ) -> tuple[Any, int]:
        """The object of the pickle at a place, and where it ends."""
        if weights_only:
            try:
                return unpickle(data, at, self.persistent_load, user_globals(_Options.safe))
            except pickle.UnpicklingError as error:
                raise pickle.UnpicklingError(_UNSAFE.format(error)) from None

        persistent_load = self.persistent_load

        class Unpickler(module.Unpickler):
            def persistent_load(self, key: Any) -> Any:
                return persistent_load(key)

            def find_class(self, owner: str, name: str) -> Any:
                ours = owner.partition(".")[0] in ("torch", "rushlight")
                return _rebuild.find(owner, name) if ours else super().find_class(owner, name)

        stream = BytesIO(data)
        stream.seek(at)
        return Unpickler(stream, **arguments).load(), stream.tell()

    def persistent_load(self, key: Any) -> Any:
        """The storage of a persistent id."""
        raise NotImplementedError

    def add(self, key: str, untyped: UntypedStorage, dtype: Any, location: str) -> TypedStorage:
        """Remembers a storage that was read."""
        if self.swap:
            untyped.byteswap(dtype)
        storage = self.storages[key] = typed(self.restore(untyped, location), dtype)
        return storage


_UNSAFE = (
    "Weights only load failed. {} Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
    "it can result in arbitrary code execution. Do it only if you got the file from a trusted source."
)


def _fields(key: Any, count: int) -> tuple[Any, ...]:
    """Of the persistent id of a storage: its dtype, key, place, number of elements, and what a format has beside."""
    if not (isinstance(key, tuple) and len(key) == count and key[0] == "storage"):
        raise RuntimeError(f"load: expected the persistent id of a storage, got {key!r:.200}.")
    _, kind, name, location, size, *rest = key
    dtype = _C.uint8 if kind is UntypedStorage else getattr(kind, "dtype", None)
    if not (isinstance(dtype, _C.dtype) and isinstance(name, str) and isinstance(location, str) and type(size) is int):
        raise RuntimeError(f"load: the persistent id of a storage is broken, got {key!r:.200}.")
    return dtype, name, location, size, *rest


class _ZipLoader(_Loader):
    def __init__(self, source: Source, restore: Callable[[Any, str], Any], mapped: Any) -> None:
        super().__init__(source, restore)
        self.archive, self.mapped = Reader(source), mapped
        if "constants.pkl" in self.archive.records:
            raise RuntimeError("load: this is a TorchScript archive. Read it with torch.jit.load.")
        order: str = sys.byteorder
        if "byteorder" in self.archive.records:
            order = self.archive.read("byteorder").decode("ascii", "replace")
            if order not in ("little", "big"):
                raise ValueError("Unknown endianness type: " + order)
        elif _Options.endianness is not LoadEndianness.NATIVE:
            order = "big" if _Options.endianness is LoadEndianness.BIG else "little"
        self.swap = order != sys.byteorder and not _Options.skip_data

    def load(self, weights_only: bool, module: Any, arguments: dict[str, Any]) -> Any:
        return self.unpickle(self.archive.read("data.pkl"), 0, weights_only, module, arguments)[0]

    def persistent_load(self, key: Any) -> Any:
        dtype, name, location, size = _fields(key, 5)
        if name in self.storages:
            return self.storages[name]
        at = self.archive.find(f"data/{name}")
        nbytes = self.archive.records[f"data/{name}"].size
        if nbytes != size * dtype.itemsize:
            raise RuntimeError(
                f"load: storage {name} has the wrong size: {size} elements of {dtype} are not {nbytes} bytes. "
                "The file is corrupted."
            )
        if location == "meta" or _Options.skip_data:
            untyped = UntypedStorage(nbytes, device="meta" if location == "meta" else None)
        elif self.mapped is not None and at % dtype.itemsize == 0 and nbytes:
            untyped = UntypedStorage._from_buffer(self.mapped[at : at + nbytes])
        else:
            untyped = UntypedStorage(nbytes)
            self.source.read_into(untyped, at)
        return self.add(name, untyped, dtype, location)


class _LegacyLoader(_Loader):
    """The format before PyTorch 1.6: pickles one after the other, then the bytes of the storages."""

    def load(self, weights_only: bool, module: Any, arguments: dict[str, Any]) -> Any:
        start = self.source.start
        data = self.source.read(start, self.source.size - start)
        if not data:
            raise EOFError("Ran out of input: the file is empty.")
        if _MAGIC_BYTES not in data[:32]:
            raise RuntimeError("Invalid magic number; corrupt file? It is neither a zip archive nor a legacy file.")
        _, at = self.unpickle(data, 0, True, module, {})
        version, at = self.unpickle(data, at, True, module, {})
        info, at = self.unpickle(data, at, True, module, {})
        if version != PROTOCOL_VERSION:
            raise RuntimeError(f"Invalid protocol version: {version!r:.200}")
        self.swap = isinstance(info, dict) and info.get("little_endian", True) != (sys.byteorder == "little")
        # The bytes come after the object: look through its pickle for what they are.
        dtypes: dict[str, Any] = {}
        _, end = unpickle(data, at, lambda key: self._note(key, dtypes), None)
        keys, end = self.unpickle(data, end, True, module, {})
        if not isinstance(keys, list):
            raise RuntimeError("load: the list of storages is none. The file is corrupted.")
        self.parts: dict[str, memoryview] = {}
        for key in keys:
            if key not in dtypes:
                raise RuntimeError(f"load: nothing says what storage {key!r:.200} is. The file is corrupted.")
            nbytes = int.from_bytes(data[end : end + 8], "little") * dtypes[key].itemsize
            end += 8
            self.parts[key] = memoryview(data)[end : end + nbytes]
            end += nbytes
            if end > len(data):
                raise RuntimeError("load: the file ends early. It was not saved or transferred whole.")
        self.end = start + end
        return self.unpickle(data, at, weights_only, module, arguments)[0]

    def _note(self, key: Any, dtypes: dict[str, Any]) -> None:
        if not _is_module(key):
            dtype, name, *_ = _fields(key, 6)
            dtypes[name] = dtype

    def persistent_load(self, key: Any) -> Any:
        if _is_module(key):
            return key[1]
        dtype, name, location, size, view = _fields(key, 6)
        if name not in self.storages:
            content = self.parts.get(name)
            if content is None or len(content) != size * dtype.itemsize:
                raise RuntimeError(f"load: storage {name} has the wrong size, or no bytes. The file is corrupted.")
            self.add(name, UntypedStorage.from_buffer(content, dtype=_C.uint8), dtype, location)
        storage = self.storages[name]
        if view is None:
            return storage
        _, offset, count = view
        return _part(storage, offset, count)


def _part(storage: TypedStorage, offset: int, count: int) -> TypedStorage:
    """Elements of a storage as one of their own, in the same memory."""
    size = storage.dtype.itemsize
    return TypedStorage(
        wrap_storage=storage._untyped_storage[offset * size : (offset + count) * size], dtype=storage.dtype
    )


class _TarLoader(_Loader):
    """The format before PyTorch 0.1.10: a tar archive of storages, tensors on them, and the pickle that names both."""

    def load(self, weights_only: bool, module: Any, arguments: dict[str, Any]) -> Any:
        self.swap = sys.byteorder == "big"
        self.objects: dict[int, Any] = {}
        parts = self._parts()
        try:
            self._read_storages(parts["storages"])
            self._read_tensors(parts["tensors"])
        except (AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
            raise RuntimeError(f"load: the tar archive does not hold what it says, got {error!r:.200}.") from error
        return self.unpickle(parts["pickle"], 0, weights_only, module, arguments)[0]

    def persistent_load(self, key: Any) -> Any:
        if isinstance(key, tuple) and key:  # a container
            return key[0]
        if not isinstance(key, str) or not key.isdecimal() or int(key) not in self.objects:
            raise RuntimeError(f"load: expected the number of a tensor or storage, got {key!r:.200}.")
        return self.objects[int(key)]

    def _parts(self) -> dict[str, bytes]:
        import tarfile

        data = self.source.read(self.source.start, self.source.size - self.source.start)
        try:
            with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
                places = {m.name: (m.offset_data, m.offset_data + m.size) for m in archive if m.sparse is None}
        except tarfile.TarError as error:
            raise RuntimeError(f"load: the tar archive is damaged: {error}.") from error
        for name in ("storages", "tensors", "pickle"):
            if name not in places or places[name][1] > len(data):
                raise RuntimeError(f"load: the tar archive lacks {name!r}. It was not saved or transferred whole.")
        return {name: data[begin:end] for name, (begin, end) in places.items()}

    def _read_storages(self, data: bytes) -> None:
        count, at = _plain(data, 0)
        for _ in range(count):
            (key, location, kind), at = _plain(data, at)
            (size,) = struct.unpack_from("<q", data, at)
            end = at + 8 + size * kind.dtype.itemsize
            if size < 0 or end > len(data):
                raise ValueError(f"{size} elements")
            content = UntypedStorage.from_buffer(data[at + 8 : end], dtype=_C.uint8)
            self.objects[key] = self.add(str(key), content, kind.dtype, location)
            at = end
        for key, root, offset, size in _plain(data, at)[0]:
            self.objects[key] = _part(self.objects[root], offset, size)

    def _read_tensors(self, data: bytes) -> None:
        count, at = _plain(data, 0)
        for _ in range(count):
            (key, storage, _kind), at = _plain(data, at)
            (ndim,) = struct.unpack_from("<i4x", data, at)
            *shape, offset = struct.unpack_from(f"<{2 * ndim + 1}q", data, at + 8)
            at += 8 * (2 * ndim + 2)
            self.objects[key] = _rebuild.rebuild_tensor(self.objects[storage], offset, shape[:ndim], shape[ndim:])


def _plain(data: bytes, at: int) -> tuple[Any, int]:
    """The object of a pickle in which only storages' classes are more than names, and where it ends."""
    return unpickle(data, at, _no_persistent, None)


def _no_persistent(key: Any) -> Any:
    raise RuntimeError(f"load: expected no persistent id here, got {key!r:.200}.")


def _is_module(key: Any) -> bool:
    """Whether a persistent id is of a class: PyTorch kept the source of modules beside it."""
    return isinstance(key, tuple) and len(key) > 1 and key[0] == "module"


# -- formats of plugins


def _format_of(path: str) -> Any:
    from ._registry import formats

    for entry in formats.values():
        if entry.item.save and path.endswith(tuple(entry.item.suffixes)):
            return entry.item
    return None


def _format_with(source: Source) -> Any:
    from ._registry import formats, manager

    if _MAGIC_BYTES in source.read(source.start, 32):
        return None
    manager().load_all()
    for entry in formats.values():
        if entry.item.magic and source.read(source.start, len(entry.item.magic)) == entry.item.magic:
            return entry.item
    return None
