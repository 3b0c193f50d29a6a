"""Objects with tensors between two processes, over a socket.

A message is pickled with the elements of its tensors beside the pickle, as one block. Small blocks go through the
socket; of large ones only the descriptor of nameless shared memory does, so that nothing is left behind whoever dies.
"""

from __future__ import annotations

import io
import pickle
import selectors
import socket
import struct
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._shared_memory import MappedFile

_HEADER = struct.Struct("=QQ?")  # bytes of the block, bytes of the pickle at its end, whether it is in shared memory
_INLINE = 1 << 15  # bytes that are cheaper to send than to map
_ALIGNMENT = 64
_Selector: Any = getattr(selectors, "PollSelector", selectors.SelectSelector)  # no descriptor of its own


class _Pickler(pickle.Pickler):
    """Puts the elements of tensors into `parts`, and their place into the pickle."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.parts: list[tuple[int, Tensor]] = []
        self.size = 0

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not Tensor or value.layout is not rl.strided or value.device.type != "cpu":
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                "before serializing (e.g., putting it on the queue)."
            )
        start = self.size
        data = value.detach().contiguous()
        self.parts.append((start, data))
        self.size += -(-data.numel() * data.element_size() // _ALIGNMENT) * _ALIGNMENT
        return _tensor_at, (start, value.dtype, tuple(value.shape), value.requires_grad)


def _tensor_at(*args: Any) -> Tensor:
    """Stands in pickles for `_Unpickler.tensor_at`."""
    raise RuntimeError("the pickle of a channel can be read by a channel only")


class _Unpickler(pickle.Unpickler):
    def __init__(self, block: memoryview, start: int) -> None:
        super().__init__(io.BytesIO(block[start:]))
        self._block = block

    def find_class(self, module: str, name: str) -> Any:
        if name == "_tensor_at" and module == __name__:
            return self.tensor_at
        return super().find_class(module, name)

    def tensor_at(self, start: int, dtype: Any, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
        count = 1
        for size in shape:
            count *= size
        if count:
            tensor = rl.frombuffer(self._block, dtype=dtype, count=count, offset=start).reshape(shape)
        else:
            tensor = rl.empty(shape, dtype=dtype)
        return tensor.requires_grad_() if requires_grad else tensor


def _bytes_of(tensor: Tensor) -> memoryview:
    return memoryview(tensor.reshape(-1).view(rl.uint8).numpy())


class Channel:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def __reduce__(self) -> Any:
        return Channel, (self._socket,)

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Two ends that are connected."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def fileno(self) -> int:
        """The descriptor, by which the end is waited for."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes this end, which the other one notices."""
        self._socket.close()

    def has_message(self, timeout: float | None = 0) -> bool:
        """Whether something has arrived, or the other end was closed, within `timeout` seconds; None: waits."""
        return bool(self._wait(selectors.EVENT_READ, timeout))

    def may_send(self) -> bool:
        """Waits until there is room for a message, or one has arrived that must be received before."""
        return bool(self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE, None) & selectors.EVENT_WRITE)

    def _wait(self, events: int, timeout: float | None) -> int:
        with _Selector() as selector:
            selector.register(self._socket, events)
            ready = selector.select(timeout)
            return ready[0][1] if ready else 0

    def send(self, value: Any) -> None:
        """Sends an object.

        Raises:
            OSError: The other end is closed.
        """
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(value)
        pickled = file.getbuffer()
        size = pickler.size + len(pickled)
        if size <= _INLINE or not hasattr(socket, "send_fds"):
            block = bytearray(size)
            self._fill(memoryview(block), pickler, pickled)
            self._socket.sendall(_HEADER.pack(size, len(pickled), False) + block)
            return
        memory = MappedFile.anonymous(size)
        self._fill(memoryview(memory), pickler, pickled)
        socket.send_fds(self._socket, [_HEADER.pack(size, len(pickled), True)], [memory.fd])

    @staticmethod
    def _fill(block: memoryview, pickler: _Pickler, pickled: memoryview) -> None:
        for start, tensor in pickler.parts:
            if tensor.numel():
                data = _bytes_of(tensor)
                block[start : start + len(data)] = data
        block[pickler.size : pickler.size + len(pickled)] = pickled

    def receive(self) -> Any:
        """Waits for the next object.

        Raises:
            EOFError: The other end was closed.
        """
        header = bytearray()
        descriptors: list[int] = []
        while len(header) < _HEADER.size:
            if hasattr(socket, "recv_fds"):
                part, fds, _, _ = socket.recv_fds(self._socket, _HEADER.size - len(header), 1)
                descriptors += fds
            else:
                part = self._socket.recv(_HEADER.size - len(header))
            if not part:
                raise EOFError
            header += part
        size, pickled, is_shared = _HEADER.unpack(header)
        if is_shared:
            block = memoryview(MappedFile.attach(descriptors[0], size))[:size]
        else:
            block = memoryview(bytearray(size))
            self._read_into(block)
        return _Unpickler(block, size - pickled).load()

    def _read_into(self, block: memoryview) -> None:
        done = 0
        while done < len(block):
            n = self._socket.recv_into(block[done:])
            if n == 0:
                raise EOFError
            done += n
