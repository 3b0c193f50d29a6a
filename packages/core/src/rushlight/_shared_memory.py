"""Memory of files, and memory that processes share: what storages of mapped memory are over."""

from __future__ import annotations

import mmap
import os
from typing import Any


class MappedFile(mmap.mmap):
    """A file, mapped so that writing to the memory writes to the file.

    Attributes:
        filename: Path of the file, None where it has none.
        fd: The descriptor of the file, by which other processes map it too.
    """

    filename: str | None
    fd: int

    @classmethod
    def open(cls, filename: str, shared: bool, nbytes: int) -> mmap.mmap:
        """The first `nbytes` of a file. Not shared, changes stay in memory, and the result is a plain map.

        Raises:
            RuntimeError: The file cannot be opened, or is too short and not shared.
        """
        mode = "read-write" if shared else "read-only"
        try:
            fd = os.open(
                filename, (os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY) | getattr(os, "O_BINARY", 0), 0o666
            )
        except OSError as error:
            raise RuntimeError(
                f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
            ) from error
        try:
            have = os.fstat(fd).st_size
            if have < nbytes:
                if not shared:
                    raise RuntimeError(
                        f"file <{filename}> size <{have}> is smaller than the required mapping size <{nbytes}>"
                    )
                _reserve(fd, nbytes)
            if shared:
                return cls._map(os.dup(fd), nbytes, os.fspath(filename))
            return mmap.mmap(fd, nbytes, access=mmap.ACCESS_COPY)
        finally:
            os.close(fd)

    @classmethod
    def anonymous(cls, nbytes: int) -> MappedFile:
        """New shared memory: a file without a name, so that it is gone when the last process that uses it ends.

        Raises:
            RuntimeError: There is not enough of it.
        """
        from tempfile import TemporaryFile

        with TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None, prefix="rushlight_") as file:
            _reserve(file.fileno(), max(nbytes, 1))
            return cls._map(os.dup(file.fileno()), nbytes, None)

    @classmethod
    def attach(cls, fd: int, nbytes: int) -> MappedFile:
        """The shared memory of another process, by a descriptor that becomes this object's own."""
        return cls._map(fd, nbytes, None)

    @classmethod
    def _map(cls, fd: int, nbytes: int, filename: str | None) -> MappedFile:
        try:
            self = cls(fd, max(nbytes, 1), access=mmap.ACCESS_WRITE)
        except BaseException:
            os.close(fd)
            raise
        self.fd, self.filename = fd, filename
        return self

    def __del__(self) -> None:
        os.close(self.fd)


def _reserve(fd: int, nbytes: int) -> None:
    # Room is taken at once: a file with holes would end the process where the disk is full on a later write.
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, nbytes)
        else:
            os.truncate(fd, nbytes)
    except OSError as error:
        raise RuntimeError(
            f"share_memory_: no room for {nbytes} bytes of shared memory: {error.strerror}. "
            "Give /dev/shm more room or share less."
        ) from error


# -- pickling between processes


def _rebuild_shared(handle: Any, nbytes: int) -> Any:
    from .storage import UntypedStorage

    return UntypedStorage._from_buffer(memoryview(MappedFile.attach(handle.detach(), nbytes))[:nbytes])


def _reduce_storage(storage: Any) -> tuple[Any, ...]:
    """What `multiprocessing` sends of a storage: the descriptor of its memory, which both processes then share."""
    from multiprocessing.reduction import DupFd

    if storage.device.type != "cpu":
        return storage.__reduce_ex__(2)
    storage.share_memory_()
    return _rebuild_shared, (DupFd(storage._mapped().fd), storage.nbytes())


def register() -> None:
    """Teaches `multiprocessing` to send storages, and so tensors, without a copy."""
    from multiprocessing.reduction import ForkingPickler

    from .storage import UntypedStorage

    ForkingPickler.register(UntypedStorage, _reduce_storage)
