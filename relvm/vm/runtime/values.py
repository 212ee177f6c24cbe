"""Python values to and from the machine's.

A row of machine values is an `int64_t *` here, as rvm_value lies in memory: value k has its tag in word 2k and its
payload (an integer, the bits of a double, an address) in word 2k + 1.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relvm.errors import RelvmError, RelvmTypeError, RelvmUnsupportedError
from relvm.tables import TAGS, numbers
from relvm.vm.runtime._native import ffi, lib
from relvm.vm.runtime.dtypes import NUMPY_DTYPES, dtype_number, plain_array
from relvm.vm.runtime.failure import failure
from relvm.vm.runtime.lifetime import Objects, Reference
from relvm.vm.runtime.program import Shape
from relvm.vm.runtime.tensor import Tensor

_TAGS = numbers(TAGS)
NIL, INT, FLOAT, BOOL, DTYPE = (_TAGS[name] for name in ("NIL", "INT", "FLOAT", "BOOL", "DTYPE"))
FUNCTION, CLOSURE = _TAGS["FUNCTION"], _TAGS["CLOSURE"]
TENSOR, SHAPE, TUPLE, STRING = (_TAGS[name] for name in ("TENSOR", "SHAPE", "TUPLE", "STRING"))

MOST_NESTED = 100_000  # tuples inside tuples; a list that contains itself is found by it
_DOUBLE, _WORD = struct.Struct("<d"), struct.Struct("<q")

# The handles of arrays that tensors of a machine are views of, from rvm_tensor_wrap until the tensor goes.
_wrapped: set[Any] = set()


class Closure(Reference):
    """A function or closure of a machine: a callable, and a value to be given back to that machine."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        """Call it.  Raises what the machine raises; see VirtualMachine."""
        return self.objects.invoke(self, arguments)

    def __repr__(self) -> str:
        return f"<{TAGS[self.tag].name.lower()} of a machine>"


def new_words(count: int) -> Any:
    """Room for `count` values, all NIL."""
    return ffi.new("int64_t[]", 2 * count)


def value_at(words: Any, k: int) -> Any:
    """The place of value k as an `rvm_value *`."""
    return ffi.cast("rvm_value *", words + 2 * k)


def _set(words: Any, k: int, tag: int, payload: int) -> bool:
    words[2 * k] = tag
    words[2 * k + 1] = payload
    return False


# ---- from Python ----


def store(objects: Objects, value: Any, words: Any, k: int) -> bool:
    """Put `value` in place k.

    Returns
    -------
    bool
        Whether the place now owns a reference, which the caller has to release.

    Raises
    ------
    RelvmTypeError
        A value that has no counterpart in a machine, or a function of another machine.
    """
    return (_STORES.get(type(value)) or _store_of(value))(objects, value, words, k)


def store_owned(objects: Objects, value: Any, words: Any, where: Callable[[int], str]) -> None:
    """Put `value` in place 0, which then owns a reference whatever the value is."""
    if not store_all(objects, (value,), words, 0, where):
        lib.rvm_value_retain(value_at(words, 0)[0])


def store_all(
    objects: Objects, values: Sequence[Any], words: Any, first: int, where: Callable[[int], str]
) -> list[int]:
    """Put `values` in the places from `first` on.

    Parameters
    ----------
    where
        k -> what messages call values[k].

    Returns
    -------
    list of int
        The places that now own a reference, which the caller has to release.
    """
    owned: list[int] = []
    place = first
    try:
        for value in values:
            if (_STORES.get(type(value)) or _store_of(value))(objects, value, words, place):
                owned.append(place)
            place += 1
    except BaseException as error:
        for k in owned:
            release(words, k)
        if isinstance(error, RelvmError):
            raise type(error)(f"{where(place - first)}: {error}") from None
        raise
    return owned


def release(words: Any, k: int) -> None:
    """Release what place k owns."""
    lib.rvm_value_release(value_at(words, k))


def _store_nil(objects: Objects, value: None, words: Any, k: int) -> bool:
    return _set(words, k, NIL, 0)


def _store_bool(objects: Objects, value: bool, words: Any, k: int) -> bool:
    return _set(words, k, BOOL, value)


def _store_int(objects: Objects, value: int, words: Any, k: int) -> bool:
    try:
        return _set(words, k, INT, value)
    except OverflowError:
        raise RelvmTypeError(f"expected an integer of 64 bits, got {value}") from None


def _store_float(objects: Objects, value: float, words: Any, k: int) -> bool:
    return _set(words, k, FLOAT, _WORD.unpack(_DOUBLE.pack(value))[0])


def _store_dtype(objects: Objects, value: np.dtype, words: Any, k: int) -> bool:
    return _set(words, k, DTYPE, dtype_number(value))


def _store_string(objects: Objects, value: str, words: Any, k: int) -> bool:
    encoded = value.encode()
    return _made(lib.rvm_string_new(encoded, len(encoded), value_at(words, k)), words, k)


def _store_shape(objects: Objects, value: Shape, words: Any, k: int) -> bool:
    try:
        dims = ffi.new("int64_t[]", [operator.index(dim) for dim in value])
    except (TypeError, OverflowError):
        raise RelvmTypeError(f"expected a shape of integers of 64 bits, got {value}") from None
    return _made(lib.rvm_shape_new(len(value), dims, value_at(words, k)), words, k)


def _store_array(objects: Objects, value: np.ndarray, words: Any, k: int) -> bool:
    """A tensor over the array's own bytes, which it keeps alive; of a copy where they are not plain."""
    array = plain_array(value)
    handle = ffi.new_handle(array)
    _wrapped.add(handle)
    dtype, data, release = dtype_number(array.dtype), ffi.from_buffer(array), lib.relvm_py_release
    status = lib.rvm_tensor_wrap(dtype, array.ndim, array.shape, data, release, handle, value_at(words, k))
    if status:
        _wrapped.discard(handle)
    return _made(status, words, k)


@ffi.def_extern()
def relvm_py_release(handle: Any) -> None:
    _wrapped.discard(handle)


def _store_reference(objects: Objects, value: Reference, words: Any, k: int) -> bool:
    if value.objects is objects:
        return _set(words, k, value.tag, value.address)
    if isinstance(value, Tensor):  # an object belongs to one machine; another gets a view of its bytes
        return _store_array(objects, value.numpy(), words, k)
    raise RelvmTypeError("expected a function of this machine, got one of another machine")


def _store_sequence(objects: Objects, value: Sequence[Any], words: Any, k: int) -> bool:
    """A tuple, without recursion: `open_tuples` are those whose items are still being stored, outermost first."""
    open_tuples = [_OpenTuple(value)]
    try:
        while True:
            innermost = open_tuples[-1]
            if innermost.filled < len(innermost.items):
                item = innermost.items[innermost.filled]
                if isinstance(item, tuple | list) and not isinstance(item, Shape):
                    open_tuples.append(_OpenTuple(item))
                else:
                    innermost.took(store(objects, item, innermost.words, innermost.filled))
                if len(open_tuples) > MOST_NESTED:
                    raise RelvmTypeError(f"expected at most {MOST_NESTED} tuples inside each other, got more")
                continue
            outer = open_tuples[-2] if len(open_tuples) > 1 else None
            target, place = (outer.words, outer.filled) if outer else (words, k)
            status = lib.rvm_tuple_new(len(innermost.items), value_at(innermost.words, 0), value_at(target, place))
            _made(status, target, place)
            open_tuples.pop().release()
            if not outer:
                return True
            outer.took(True)
    except BaseException:
        for each in open_tuples:
            each.release()
        raise


class _OpenTuple:
    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items
        self.words = new_words(len(items))
        self.filled = 0
        self.owned: list[int] = []

    def took(self, owned: bool) -> None:
        if owned:
            self.owned.append(self.filled)
        self.filled += 1

    def release(self) -> None:
        for k in self.owned:
            release(self.words, k)


def _made(status: int, words: Any, k: int) -> bool:
    if status:
        raise failure(status, value_at(words, k))
    return True


_STORES: dict[type, Callable[[Objects, Any, Any, int], bool]] = {
    np.ndarray: _store_array,
    Tensor: _store_reference,
    Closure: _store_reference,
    int: _store_int,
    float: _store_float,
    bool: _store_bool,
    type(None): _store_nil,
    str: _store_string,
    Shape: _store_shape,
    tuple: _store_sequence,
    list: _store_sequence,
}


def _store_of(value: Any) -> Callable[[Objects, Any, Any, int], bool]:
    """How to store a value of a type that _STORES does not list itself."""
    if isinstance(value, np.dtype):
        return _store_dtype
    if isinstance(value, np.generic):  # a 0-d tensor; before float, of which np.float64 is a subclass
        return lambda objects, scalar, words, k: _store_array(objects, np.asarray(scalar), words, k)
    for base, how in _STORES.items():
        if isinstance(value, base):
            return how
    if hasattr(value, "__dlpack__"):
        return _store_dlpack
    expected = "an array, number, string, None, tuple, Shape, np.dtype, or a function or closure of this machine"
    raise RelvmTypeError(f"expected {expected}, got {type(value).__name__}")


def _store_dlpack(objects: Objects, value: Any, words: Any, k: int) -> bool:
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RelvmTypeError(f"{type(value).__name__} gives no array by DLPack: {error}") from None
    return _store_array(objects, array, words, k)


# ---- to Python ----


def take(objects: Objects, tag: int, payload: int) -> Any:
    """The Python value of a machine's; takes over its reference.  The caller holds the machine's lock.

    Raises
    ------
    RelvmUnsupportedError
        A value without a Python form: a storage, or the running machine.
    """
    if tag == TENSOR:
        return Tensor(objects, tag, payload)
    if tag == INT:
        return payload
    if tag == NIL:
        return None
    if tag == BOOL:
        return payload != 0
    if tag == FLOAT:
        return _DOUBLE.unpack(_WORD.pack(payload))[0]
    if tag == DTYPE:
        return NUMPY_DTYPES[payload]
    if tag in (FUNCTION, CLOSURE):
        return Closure(objects, tag, payload)
    words = ffi.new("int64_t[2]", (tag, payload))
    try:
        if tag == TUPLE:
            return _taken_tuple(objects, payload)
        if tag == SHAPE:
            shape = ffi.cast("rvm_shape *", payload)
            return Shape(ffi.unpack(shape.dims, shape.rank))
        if tag == STRING:
            string = ffi.cast("rvm_string *", payload)
            return ffi.buffer(string.bytes, string.length)[:].decode(errors="replace")
        raise RelvmUnsupportedError(f"a {TAGS[tag].name.lower()} has no Python form")
    finally:
        release(words, 0)


def take_all(objects: Objects, words: Any, count: int) -> list[Any]:
    """The Python values of `count` borrowed ones."""
    return [take_borrowed(objects, words, k) for k in range(count)]


def take_borrowed(objects: Objects, words: Any, k: int) -> Any:
    """The Python value of a machine's that stays where it is."""
    if words[2 * k] > DTYPE:
        lib.rvm_value_retain(value_at(words, k)[0])
    return take(objects, words[2 * k], words[2 * k + 1])


def _taken_tuple(objects: Objects, address: int) -> tuple:
    """The items of a borrowed tuple, without recursion: `open_tuples` are those being read, outermost first."""
    open_tuples: list[tuple[Any, int, list]] = [(*_items(address), [])]
    while True:
        words, size, items = open_tuples[-1]
        if len(items) == size:
            open_tuples.pop()
            if not open_tuples:
                return tuple(items)
            open_tuples[-1][2].append(tuple(items))
        elif words[2 * len(items)] == TUPLE:
            open_tuples.append((*_items(words[2 * len(items) + 1]), []))
        else:
            items.append(take_borrowed(objects, words, len(items)))


def _items(address: int) -> tuple[Any, int]:
    pointer = ffi.cast("rvm_tuple *", address)
    return ffi.cast("int64_t *", pointer.items), pointer.size
