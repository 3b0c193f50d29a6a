"""Zip archives as PyTorch writes them: records that are stored, not compressed, each on a boundary of 64 bytes.

APPNOTE.TXT of PKWARE, version 6.3, is the format. Of `zipfile` this has the part that is needed, without the time that
it takes for a file of a thousand tensors.
"""

from __future__ import annotations

import os
import stat
from io import BufferedRandom, BufferedReader, BytesIO, FileIO
from struct import Struct, error as StructError
from typing import Any, NamedTuple

from . import _C

ALIGNMENT = 64
_BIG32, _BIG16 = 0xFFFFFFFF, 0xFFFF
_LOCAL = Struct("<4s5H3L2H")  # signature, version, flags, method, time, date, crc, sizes, lengths of name and extra
_CENTRAL = Struct("<4s6H3L5H2L")
_END = Struct("<4s4H2LH")
_END64 = Struct("<4sQ2H2L4Q")
_LOCATOR64 = Struct("<4sLQL")
_UTF8 = 0x800
_JANUARY_1980 = 0x21


class Record(NamedTuple):
    """A file of an archive: where its local header is, its size, and whether it is stored as it is."""

    header: int
    size: int
    plain: bool


class Source:
    """A file that is read at places: a real one by the system's calls, else the bytes in memory.

    Args:
        file: A binary file object. Of one that is neither a real file nor BytesIO everything from the current position
            is read.

    Attributes:
        size: Bytes in the file.
        start: The position that the file object had.
    """

    ALL_AT_ONCE = 1 << 22  # up to this size one call reads a file faster than one call per record

    def __init__(self, file: Any) -> None:
        self.fd: int | None = None
        if isinstance(file, BytesIO):
            self.data, self.start = file.getbuffer(), file.tell()
        elif _is_real(file):
            self.fd, self.start = file.fileno(), file.tell()
            self.size = os.fstat(self.fd).st_size
            if self.size > self.ALL_AT_ONCE:
                return
            self.data, self.fd = memoryview(os.pread(self.fd, self.size, 0)), None
        else:
            content = file.read()
            if isinstance(content, str):
                raise TypeError("load: the file must be opened in binary mode, got text. Open it with mode 'rb'.")
            self.data, self.start = memoryview(content), 0
        self.size = len(self.data)

    def close(self) -> None:
        """Gives the memory of a BytesIO free."""
        if self.fd is None:
            self.data.release()

    def read(self, at: int, n: int) -> bytes:
        """`n` bytes from a place; fewer at the end."""
        return bytes(self.data[at : at + n]) if self.fd is None else os.pread(self.fd, n, at)

    def read_into(self, storage: Any, at: int) -> None:
        """Fills a storage with the bytes from a place.

        Raises:
            RuntimeError: The file ends before.
        """
        memory, done = memoryview(storage), 0
        if self.fd is None:
            part = self.data[at : at + len(memory)]
            done = len(part)
            memory[:done] = part
        else:
            while done < len(memory) and (count := os.preadv(self.fd, [memory[done:]], at + done)):
                done += count
        if done < len(memory):
            raise RuntimeError(f"load: the file ends early, {len(memory) - done} bytes of a tensor are missing.")


def _is_real(file: Any) -> bool:
    raw = file.raw if isinstance(file, BufferedReader | BufferedRandom) else file
    return isinstance(raw, FileIO) and hasattr(os, "preadv") and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)


class Reader:
    """The records of an archive.

    Args:
        source: The file.

    Attributes:
        records: The records by name, without the folder that holds them all.

    Raises:
        RuntimeError: The file is no archive, or not one of stored records that lie beside one another.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.records: dict[str, Record] = {}
        try:
            self._read_directory()
        except (StructError, UnicodeDecodeError, OverflowError) as error:
            raise _broken("its directory is broken") from error
        if sum(record.size for record in self.records.values()) > source.size:
            raise _broken("its records overlap")

    def _read_directory(self) -> None:
        source = self.source
        tail_at = max(0, source.size - _END.size - _LOCATOR64.size - _END64.size - _BIG16)
        tail = source.read(tail_at, source.size - tail_at)
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) < at + _END.size:
            raise _broken("failed finding central directory")
        _, disk, _, _, count, size, start, _ = _END.unpack_from(tail, at)
        if _BIG16 in (count, disk) or _BIG32 in (size, start):
            signature, _, end64, _ = _LOCATOR64.unpack_from(tail, at - _LOCATOR64.size)
            fields = _END64.unpack(source.read(end64, _END64.size))
            if (signature, fields[0]) != (b"PK\6\7", b"PK\6\6"):
                raise _broken("failed finding central directory")
            *_, count, size, start = fields
        if start + size > source.size or count * _CENTRAL.size > size:
            raise _broken("its directory does not fit the file")
        directory = source.read(start, size)
        at, root = 0, None
        for _ in range(count):
            (signature, _, _, flags, method, _, _, _, packed, size, n_name, n_extra, n_comment, _, _, _, header) = (
                _CENTRAL.unpack_from(directory, at)
            )
            at += _CENTRAL.size
            path = str(directory[at : at + n_name], "utf-8")
            extra = directory[at + n_name : at + n_name + n_extra]
            at += n_name + n_extra + n_comment
            if signature != b"PK\1\2" or at > len(directory):
                raise _broken("its directory is broken")
            if _BIG32 in (size, packed, header):
                size, packed, header = _wide(extra, size, packed, header)
            if header + _LOCAL.size + n_name + packed > start:
                raise _broken(f"{path} does not fit the file")
            folder, _, name = path.partition("/")
            root = root or folder
            if folder != root or not name or name in self.records:
                raise _broken(f"{path} is not one of distinct files in one folder")
            self.records[name] = Record(header, packed, not method and not flags & 1 and packed == size)

    def find(self, name: str) -> int:
        """Where the bytes of a record start.

        Raises:
            RuntimeError: There is no such record, or it is broken.
        """
        record = self.records.get(name)
        if record is None:
            raise _broken(f"file not found: {name!r:.200}")
        if not record.plain:
            raise _broken(f"{name} is compressed or encrypted, repack it with stored records (zip -0)")
        header = self.source.read(record.header, _LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
            raise _broken(f"{name} has no header")
        start = record.header + _LOCAL.size + header[26] + (header[27] << 8) + header[28] + (header[29] << 8)
        if start + record.size > self.source.size:
            raise _broken(f"{name} does not fit the file")
        return start

    def read(self, name: str) -> bytes:
        """The bytes of a record."""
        return self.source.read(self.find(name), self.records[name].size)


def _wide(extra: bytes, *values: int) -> list[int]:
    """Replaces the values that are too big for 32 bits by those of the zip64 field, where they stand in order."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = extra[at] | extra[at + 1] << 8, extra[at + 2] | extra[at + 3] << 8
        field = extra[at + 4 : at + 4 + size]
        if tag == 1:
            numbers = iter([int.from_bytes(field[i : i + 8], "little") for i in range(0, len(field) - 7, 8)])
            return [next(numbers, value) if value == _BIG32 else value for value in values]
        at += 4 + size
    return list(values)


def _broken(what: str) -> RuntimeError:
    return RuntimeError(
        f"PytorchStreamReader failed reading zip archive: {what}. "
        "The file is corrupted, or was not saved or transferred whole. Save or copy it again."
    )


class Writer:
    """Writes an archive.

    Args:
        file: Where to write; only `write` is needed.
        root: Name of the folder that holds all records.
        checksums: Whether records get their CRC-32; without it other programs may call the archive damaged.
    """

    def __init__(self, file: Any, root: str, checksums: bool = True) -> None:
        self.write, self.root, self.checksums = file.write, root, checksums
        self.at = 0
        self.directory: list[bytes] = []

    def add(self, name: str, data: Any) -> None:
        """Appends a record."""
        path = f"{self.root}/{name}".encode()
        size = memoryview(data).nbytes
        crc = _C.crc32(data) if self.checksums else 0
        header, wide = self.at, b""
        if size >= _BIG32:
            wide = b"\1\0\x10\0" + size.to_bytes(8, "little") * 2
        data_at = header + _LOCAL.size + len(path) + len(wide) + 4
        padding = -data_at % ALIGNMENT
        extra = wide + b"FB" + padding.to_bytes(2, "little") + bytes(padding)
        short = min(size, _BIG32)
        common = (_UTF8, 0, 0, _JANUARY_1980, crc, short, short, len(path))
        self.write(_LOCAL.pack(b"PK\3\4", 45 if wide else 20, *common, len(extra)) + path + extra)
        self.write(data)
        self.at = data_at + padding + size

        if wide or header >= _BIG32:
            wide = wide[4:] + (header.to_bytes(8, "little") if header >= _BIG32 else b"")
            wide = b"\1\0" + len(wide).to_bytes(2, "little") + wide
        version = 45 if wide else 20
        self.directory.append(
            _CENTRAL.pack(b"PK\1\2", version, version, *common, len(wide), 0, 0, 0, 0, min(header, _BIG32))
            + path
            + wide
        )

    def close(self) -> None:
        """Writes the directory, without which there is no archive."""
        directory, count, start = b"".join(self.directory), len(self.directory), self.at
        self.write(directory)
        size = len(directory)
        if count >= _BIG16 or start + size >= _BIG32:
            self.write(_END64.pack(b"PK\6\6", _END64.size - 12, 45, 45, 0, 0, count, count, size, start))
            self.write(_LOCATOR64.pack(b"PK\6\7", 0, start + size, 1))
            count, size, start = min(count, _BIG16), min(size, _BIG32), min(start, _BIG32)
        self.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))
