"""The unpickler of files that are not trusted: it makes plain data and tensors, and calls what is allowed and no more.

A virtual machine of its own rather than a restricted `pickle.Unpickler`: that one sets attributes of, and calls methods
on, whatever a file puts on its stack. This one builds only types that it knows.
"""

from __future__ import annotations

from _codecs import encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from struct import Struct
from typing import Any

from . import _C
from ._rebuild import SAFE, rebuild_from_type, set_state
from .storage import LEGACY, UntypedStorage

MAX_KEY = 1000
"""Elements, over all levels, of a tuple that serves as a key: nested ones that share parts take for ever to hash."""


def _check_key(key: Any) -> None:
    left, room = [key], MAX_KEY
    while left:
        part = left.pop()
        if isinstance(part, tuple | frozenset):
            left.extend(part)
            room -= len(part)
            if room < 0:
                raise UnpicklingError(f"a key has more than {MAX_KEY} parts.")


def _fill(target: dict[Any, Any], items: Iterable[Any]) -> Any:
    for key, value in items:
        if type(key) is not str:
            _check_key(key)
        target[key] = value
    return target


def _ordered_dict(items: Iterable[Any] = ()) -> Any:
    return _fill(OrderedDict(), items)


def _counter(items: dict[Any, int]) -> Any:
    return _fill(Counter(), items.items())


def _set(items: Iterable[Any] = ()) -> set[Any]:
    items = list(items)
    for item in items:
        _check_key(item)
    return set(items)


def _bytes(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):  # which is how protocol 2 writes bytes
        raise UnpicklingError(f"_codecs.encode: only latin1 is allowed, got encoding={encoding!r}.")
    return encode(text, encoding)


def _bytearray(*args: Any) -> bytearray:
    if not all(isinstance(arg, bytes | str) for arg in args):  # bytearray(n) would be memory that is not in the file
        raise UnpicklingError(f"bytearray: only of bytes, got {', '.join(type(arg).__name__ for arg in args)}.")
    return bytearray(*args)


_PLAIN = {
    "collections.OrderedDict": _ordered_dict,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "builtins.complex": complex,
    "builtins.bytearray": _bytearray,
    "_codecs.encode": _bytes,
}
_ALLOWED = {
    **SAFE,
    **_PLAIN,
    **{f"__builtin__.{fn}": _PLAIN[f"builtins.{fn}"] for fn in ("set", "complex", "bytearray")},
}
_CALLABLE = {id(value) for value in _ALLOWED.values() if callable(value)} - {
    id(cls) for cls in (*LEGACY.values(), UntypedStorage, _C.Tensor)
}


_PARAMETER = "torch.nn.parameter.Parameter"  # of another wheel, imported when a file names it


def is_allowed(path: str, user: dict[str, Any]) -> bool:
    """Whether files that are not trusted may name a global."""
    return path in _ALLOWED or path in user or path == _PARAMETER


class _Inert:
    """Stands for every global and object of a pickle that is only looked through."""


def _allowed(module: str, name: str, user: dict[str, Any] | None) -> Any:
    path = f"{module}.{name}"
    if user is None:
        known = _ALLOWED.get(path)
        return known if hasattr(known, "dtype") or known is UntypedStorage else _Inert
    if path in _ALLOWED:
        return _ALLOWED[path]
    if path in user:
        return user[path]
    if path == _PARAMETER:
        from .nn.parameter import Parameter

        return Parameter
    path = path.removeprefix("builtins.").removeprefix("__builtin__.")
    raise UnpicklingError(
        f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
        "context manager to allowlist this global if you trust this class/function."
    )


_u16, _u32, _u64, _i32, _f64 = (Struct(code).unpack_from for code in ("<H", "<I", "<Q", "<i", ">d"))


def unpickle(
    data: bytes, at: int, persistent_load: Callable[[Any], Any], user: dict[str, Any] | None
) -> tuple[Any, int]:
    """The object of a pickle, and where the pickle ends.

    Args:
        data: Bytes that hold the pickle.
        at: Where it starts.
        persistent_load: Gives the object of a persistent id.
        user: What is allowed beside plain data and tensors, by path. None looks through any pickle for persistent ids
            and makes no objects.

    Raises:
        UnpicklingError: The pickle is broken, or asks for what is not allowed, which the message names.
        RuntimeError: A tensor does not fit its storage.
    """
    try:
        return _run(data, at, persistent_load, user)
    except (UnpicklingError, RuntimeError, MemoryError, ImportError):  # the last: of a wheel that is not installed
        raise
    except EOFError:
        raise UnpicklingError("pickle data was truncated") from None
    except Exception as error:
        raise UnpicklingError(f"the pickle is broken: {type(error).__name__}: {error}") from error


def _run(data: bytes, at: int, persistent_load: Callable[[Any], Any], user: dict[str, Any] | None) -> tuple[Any, int]:
    looking = user is None
    callables = _CALLABLE | {id(value) for value in (user or {}).values()}
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    push, pop = stack.append, stack.pop
    end = len(data)

    def take(n: int) -> bytes:
        nonlocal at
        at += n
        if at > end:
            raise EOFError
        return data[at - n : at]

    def since_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    while at < end:
        op = data[at]
        at += 1
        # By frequency in a file of many tensors.
        if op == 0x72:  # LONG_BINPUT
            memo[_u32(data, at)[0]] = stack[-1]
            at += 4
        elif op == 0x71:  # BINPUT
            memo[data[at]] = stack[-1]
            at += 1
        elif op == 0x68:  # BINGET
            push(memo[data[at]])
            at += 1
        elif op == 0x4B:  # BININT1
            push(data[at])
            at += 1
        elif op == 0x28:  # MARK
            marks.append(len(stack))
        elif op == 0x85:  # TUPLE1
            stack[-1] = (stack[-1],)
        elif op == 0x52:  # REDUCE
            args, fn = pop(), pop()
            if looking:
                push(_Inert())
                continue
            if id(fn) not in callables or (fn is rebuild_from_type and id(args[0]) not in callables):
                raise UnpicklingError(f"Trying to call reduce for unrecognized function {fn!r:.200}")
            push(fn(*args))
        elif op == 0x74:  # TUPLE
            push(tuple(since_mark()))
        elif op == 0x58:  # BINUNICODE
            n = _u32(data, at)[0]
            at += 4
            push(str(take(n), "utf-8", "surrogatepass"))
        elif op == 0x51:  # BINPERSID
            push(persistent_load(pop()))
        elif op == 0x89:  # NEWFALSE
            push(False)
        elif op == 0x29:  # EMPTY_TUPLE
            push(())
        elif op == 0x86:  # TUPLE2
            stack[-2:] = [(stack[-2], stack[-1])]
        elif op == 0x6A:  # LONG_BINGET
            push(memo[_u32(data, at)[0]])
            at += 4
        elif op == 0x4D:  # BININT2
            push(_u16(data, at)[0])
            at += 2
        elif op == 0x4A:  # BININT
            push(_i32(data, at)[0])
            at += 4
        elif op == 0x87:  # TUPLE3
            stack[-3:] = [(stack[-3], stack[-2], stack[-1])]
        elif op == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif op == 0x8C:  # SHORT_BINUNICODE
            n = data[at]
            at += 1
            push(str(take(n), "utf-8", "surrogatepass"))
        elif op == 0x75 or op == 0x73:  # SETITEMS, SETITEM
            items = since_mark() if op == 0x75 else [pop(-2), pop()]
            if not isinstance(stack[-1], dict):
                if looking:
                    continue
                raise UnpicklingError(f"items can only be set of a dict, got {type(stack[-1]).__name__}")
            _fill(stack[-1], zip(items[::2], items[1::2], strict=True))
        elif op == 0x65 or op == 0x61:  # APPENDS, APPEND
            items = since_mark() if op == 0x65 else [pop()]
            if not isinstance(stack[-1], list):
                if looking:
                    continue
                raise UnpicklingError(f"items can only be appended to a list, got {type(stack[-1]).__name__}")
            stack[-1].extend(items)
        elif op == 0x63:  # GLOBAL
            stop = data.index(b"\n", data.index(b"\n", at) + 1)
            module, name = str(data[at:stop], "utf-8").split("\n")
            at = stop + 1
            push(_allowed(module, name, user))
        elif op == 0x93:  # STACK_GLOBAL
            name, module = pop(), pop()
            if not (isinstance(name, str) and isinstance(module, str)):
                raise UnpicklingError("STACK_GLOBAL requires str")
            push(_allowed(module, name, user))
        elif op == 0x81 or op == 0x92:  # NEWOBJ, NEWOBJ_EX
            kwargs = pop() if op == 0x92 else {}
            args, cls = pop(), pop()
            if user is None:
                push(_Inert())
                continue
            if not (isinstance(cls, type) and any(cls is value for value in user.values())):
                raise UnpicklingError(f"Trying to make an object of a class that is not allowed: {cls!r:.200}")
            push(cls.__new__(cls, *args, **kwargs))
        elif op == 0x62:  # BUILD
            state = pop()
            if user is not None:
                _build(stack[-1], state, user)
        elif op == 0x7D:  # EMPTY_DICT
            push({})
        elif op == 0x5D:  # EMPTY_LIST
            push([])
        elif op == 0x8F:  # EMPTY_SET
            push(set())
        elif op == 0x90:  # ADDITEMS
            items = since_mark()
            if not isinstance(stack[-1], set):
                raise UnpicklingError(f"items can only be added to a set, got {type(stack[-1]).__name__}")
            stack[-1].update(_set(items))
        elif op == 0x4E:  # NONE
            push(None)
        elif op == 0x88:  # NEWTRUE
            push(True)
        elif op == 0x47:  # BINFLOAT
            push(_f64(data, at)[0])
            at += 8
        elif op == 0x8A:  # LONG1
            n = data[at]
            at += 1
            push(int.from_bytes(take(n), "little", signed=True))
        elif op == 0x8B:  # LONG4
            n = _u32(data, at)[0]
            at += 4
            push(int.from_bytes(take(n), "little", signed=True))
        elif op == 0x49:  # INT, which Python 2 writes where 4 bytes are too few
            stop = data.index(b"\n", at)
            push(int(data[at:stop]))
            at = stop + 1
        elif op == 0x43 or op == 0x55:  # SHORT_BINBYTES, SHORT_BINSTRING
            n = data[at]
            at += 1
            push(take(n) if op == 0x43 else str(take(n), "utf-8"))
        elif op == 0x42 or op == 0x54:  # BINBYTES, BINSTRING
            n = _u32(data, at)[0]
            at += 4
            push(take(n) if op == 0x42 else str(take(n), "utf-8"))
        elif op == 0x8D or op == 0x8E or op == 0x96:  # BINUNICODE8, BINBYTES8, BYTEARRAY8
            n = _u64(data, at)[0]
            at += 8
            content = take(n)
            push(
                str(content, "utf-8", "surrogatepass") if op == 0x8D else content if op == 0x8E else bytearray(content)
            )
        elif op == 0x80:  # PROTO
            if data[at] > 5:
                raise UnpicklingError(f"unsupported pickle protocol: {data[at]}")
            at += 1
        elif op == 0x95:  # FRAME
            at += 8
        elif op == 0x30:  # POP
            pop()
        elif op == 0x32:  # DUP
            push(stack[-1])
        elif op == 0x31:  # POP_MARK
            since_mark()
        elif op == 0x2E:  # STOP
            return pop(), at
        else:
            raise UnpicklingError(f"Unsupported operand {op}")
    raise EOFError


def _build(target: Any, state: Any, user: dict[str, Any]) -> None:
    cls = type(target)
    if cls is OrderedDict:
        if state:
            vars(target).update(state)
    elif cls is _C.Tensor or any(cls is value for value in user.values()):
        if hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            set_state(target, state)
    else:
        raise UnpicklingError(
            f"Can only build Tensor, Parameter, OrderedDict or types allowlisted, but got {cls!r:.200}"
        )


def user_globals(entries: Iterable[Any]) -> dict[str, Any]:
    """What `add_safe_globals` was given, by the paths that files use."""
    table = {}
    for entry in entries:
        value, path = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        table[path] = value
        for ours, theirs in (("rushlight.", "torch."), ("builtins.", "__builtin__.")):
            if path.startswith(ours):
                table[theirs + path[len(ours) :]] = value
    return table
