"""Conversion between Python values and machine values, for types that csrc/python/binding.c does not convert itself.

In this module, an array of machine values (`words`) is an `int64_t *` with the memory layout of rvm_value.  The tag of
value k is in word 2k.  Its payload (an integer, the bits of a double, or an address) is in word 2k + 1.  A reference
that is borrowed must not be released.  Only the current thread of a machine may access the values of the machine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relvm._native import ffi, lib
from relvm.bytecode.program import Shape
from relvm.errors import RelvmError, RelvmShapeError, RelvmTypeError, RelvmUnsupportedError
from relvm.numpy_dtypes import STRINGS, dtype_number, numpy_dtype, pack_strings, plain_array
from relvm.runtime import binding
from relvm.runtime.binding import ITEM_BYTES, OBJECT_BYTES, SEQUENCE_BYTES, Objects, Reference
from relvm.runtime.dlpack import array_of_dlpack
from relvm.runtime.status import failure
from relvm.runtime.tensor import Tensor
from relvm.tables import TAGS, numbers

_TAGS = numbers(TAGS)
NIL, DTYPE, FUNCTION = (_TAGS[name] for name in ("NIL", "DTYPE", "FUNCTION"))
SHAPE, TUPLE, LIST, STRING = (_TAGS[name] for name in ("SHAPE", "TUPLE", "LIST", "STRING"))
_FIRST_OBJECT = _TAGS["TENSOR"]  # objects have this tag or a larger one

MAX_NESTED = 100_000  # limit on the nesting of tuples and lists, which also detects a list that contains itself


def new_words(count: int) -> Any:
    """Allocate an array of `count` machine values, all NIL."""
    return ffi.new("int64_t[]", 2 * count)


def value_at(words: Any, k: int) -> Any:
    """Return value k of `words`, an array of machine values, as an `rvm_value *`."""
    return ffi.cast("rvm_value *", words + 2 * k)


def release(words: Any, k: int) -> None:
    """Release the reference that is owned by value k of `words`, an array of machine values."""
    lib.rvm_value_release(value_at(words, k))


# ---- from Python ----


def store(objects: Objects, value: Any, words: Any, k: int) -> bool:
    """Store `value` as value k of the array `words`.

    Returns
    -------
    bool
        Whether value k of the array now owns a reference, which the caller must release.  If not, value k is valid as
        long as the Python object `value` exists.

    Raises
    ------
    RelvmTypeError
        The value cannot be converted to a machine value, or is a function of another machine.
    """
    return binding.store(objects, value, int(ffi.cast("uintptr_t", words + 2 * k)))


def store_all(objects: Objects, values: Sequence[Any], words: Any, where: Callable[[int], str]) -> list[int]:
    """Convert each values[k] to a machine value, and store it as value k of the array `words`.

    Parameters
    ----------
    objects
        The Python side of the machine.
    where
        A function that takes an index k, and returns the name of values[k] for error messages.

    Returns
    -------
    list of int
        Each index k for which value k of `words` now owns a reference.  The caller must release these references.
    """
    owned: list[int] = []
    for k, value in enumerate(values):
        try:
            if store(objects, value, words, k):
                owned.append(k)
        except BaseException as error:
            for each in owned:
                release(words, each)
            raise located(error, where(k)) from None
    return owned


def located(error: BaseException, where: str) -> BaseException:
    """Return a copy of a RelvmError with `where` in front of the message.  Return any other exception unchanged."""
    return type(error)(f"{where}: {error}") if isinstance(error, RelvmError) else error


def store_other(objects: Objects, value: Any, address: int) -> bool:
    """Convert `value` to a machine value, and store the machine value at `address`.

    binding.c calls this function for a value whose type it does not handle itself.  Return whether the stored value
    owns a reference, which the caller must release.

    objects: the Python side of the machine.
    """
    words = ffi.cast("int64_t *", address)
    match value:
        case Shape():
            return _store_shape(value, words)
        case tuple() | list():
            return _store_sequence(objects, value, words)
        case str():
            encoded = _encode(value)
            return _check_created(lib.rvm_string_new(encoded, len(encoded), value_at(words, 0)), words)
        case np.dtype():
            words[0], words[1] = DTYPE, dtype_number(value)
            return False
        case np.generic():  # a 0-d tensor; before float, of which np.float64 is a subclass
            return _store_array(objects, np.asarray(value), words)
        case np.ndarray():
            return _store_array(objects, value, words)
        case Tensor():  # an object belongs to one machine; another machine gets a view of its bytes
            return _store_array(objects, value.numpy(), words)
        case Reference():
            raise RelvmTypeError("expected a function of this machine, got a function of another machine")
        case float():
            return store(objects, float(value), words, 0)
        case int():
            if not -(1 << 63) <= value < 1 << 63:
                raise RelvmTypeError(f"expected an integer that fits in 64 bits, got {value}")
            return store(objects, int(value), words, 0)
    if hasattr(value, "__dlpack__"):
        return _store_array(objects, array_of_dlpack(value), words)
    if hasattr(value, "__array_interface__") and not isinstance(value, type):
        return _store_array(objects, np.asarray(value), words)
    if callable(value) and not isinstance(value, type):
        return _store_function(objects, value, words)
    expected = "an array, number, string, None, tuple, list, Shape, np.dtype, a function or closure of this machine"
    expected += ", or a Python function"
    raise RelvmTypeError(f"expected {expected}, got {type(value).__name__}")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RelvmTypeError(
            f"expected a string that UTF-8 can encode, got {text!r}, which has an unpaired surrogate"
        ) from None


def _store_shape(value: Shape, words: Any) -> bool:
    try:
        sizes = [operator.index(dim) for dim in value]
        dims = ffi.new("int64_t[]", sizes)
    except (TypeError, OverflowError):
        raise RelvmTypeError(f"expected a shape of integers that fit in 64 bits, got {value}") from None
    if any(size < 0 for size in sizes):
        raise RelvmShapeError(f"expected a shape without negative sizes, got {value}")
    return _check_created(lib.rvm_shape_new(len(value), dims, value_at(words, 0)), words)


def _store_array(objects: Objects, value: np.ndarray, words: Any) -> bool:
    """Store a tensor as value 0 of `words`, an array of machine values.

    The tensor shares the memory of `value` and keeps the array alive.  Arrays that are not contiguous, and arrays of
    strings, are copied, and a program cannot update the copy.  Return whether the stored value owns a reference.

    objects: the Python side of the machine.
    """
    array = np.asarray(plain_array(value))
    if not np.may_share_memory(array, value):  # a program that updated the copy would not change `value`
        array.flags.writeable = False
    if array.dtype == STRINGS:
        packed, dims = pack_strings(array), ffi.new("int64_t[]", list(array.shape))
        result = lib.rvm_tensor_of_strings(array.ndim, dims, ffi.from_buffer(packed), packed.size, value_at(words, 0))
        return _check_created(result, words)
    if array.dtype.isbuiltin == 1:
        return store(objects, array, words, 0)
    owned = store(objects, array.view(f"u{array.itemsize}"), words, 0)  # NumPy's buffers do not support ml_dtypes
    status = lib.rvm_tensor_relabel(value_at(words, 0), dtype_number(array.dtype), ffi.NULL)
    assert status == 0, "a tensor of one reference and of the same element size"
    return owned


class HostFunction:
    """A Python function with its name.  The C function `call_packed` of the binding calls the Python function."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any] | None) -> None:
        self.name = name
        self.function = function


def _store_function(objects: Objects, value: Callable[..., Any], words: Any) -> bool:
    """Wrap the Python function `value` in a closure of the machine.

    Store the closure as value 0 of `words`, an array of machine values.  Return True, because the stored value owns a
    reference.

    objects: the Python side of the machine.
    """
    name = str(getattr(value, "__qualname__", type(value).__name__))
    named = ffi.cast("void *", binding.hold(HostFunction(name, value)))
    call, release_function = (
        ffi.cast("rvm_packed_function", binding.CALL_PACKED),
        ffi.cast("void (*)(void *)", binding.RELEASE_OBJECT),
    )
    encoded = name.encode(errors="replace").replace(b"\0", b"?")
    status = lib.rvm_machine_function_new(objects.machine, encoded, call, named, release_function, value_at(words, 0))
    if status:
        release_function(named)
    return _check_created(status, words)


def _store_sequence(objects: Objects, value: Sequence[Any], words: Any) -> bool:
    """Store a tuple or list as value 0 of `words`, an array of machine values, without recursion.

    Return True, because the stored value owns a reference.

    objects: the Python side of the machine.
    """
    open_sequences = [
        _OpenSequence(value)
    ]  # the nested tuples and lists that are not yet stored completely, outermost first
    try:
        while True:
            innermost = open_sequences[-1]
            if innermost.filled < len(innermost.items):
                item = innermost.items[innermost.filled]
                if isinstance(item, tuple | list) and not isinstance(item, Shape):
                    open_sequences.append(_OpenSequence(item))
                else:
                    innermost.add_value(store(objects, item, innermost.words, innermost.filled))
                if len(open_sequences) > MAX_NESTED:
                    raise RelvmTypeError(f"tuples and lists may be nested at most {MAX_NESTED} levels deep")
                continue
            outer = open_sequences[-2] if len(open_sequences) > 1 else None
            target = outer.words + 2 * outer.filled if outer else words
            make = lib.rvm_list_new if innermost.is_list else lib.rvm_tuple_new
            status = make(len(innermost.items), value_at(innermost.words, 0), value_at(target, 0))
            _check_created(status, target)
            open_sequences.pop().release()
            if not outer:
                return True
            outer.add_value(True)
    except BaseException:
        for each in open_sequences:
            each.release()
        raise


class _OpenSequence:
    """A tuple or list whose items are being stored as machine values.

    words: the array of machine values for the items.
    filled: the number of items stored so far.
    owned: the indices of the machine values that own a reference.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.is_list = isinstance(items, list)
        self.items = tuple(items)  # a copy, because a subclass can change or report another length
        self.words = new_words(len(self.items))
        self.filled = 0
        self.owned: list[int] = []

    def add_value(self, owned: bool) -> None:
        if owned:
            self.owned.append(self.filled)
        self.filled += 1

    def release(self) -> None:
        for k in self.owned:
            release(self.words, k)


def _check_created(status: int, words: Any) -> bool:
    if status:
        raise failure(status, value_at(words, 0))
    return True


# ---- to Python ----


def to_python(objects: Objects, words: Any, k: int) -> Any:
    """Convert value k of `words`, an array of machine values, to a Python object.  The array keeps the value.

    objects: the Python side of the machine.

    Raises
    ------
    RelvmUnsupportedError
        The value is a storage or the running machine, which cannot be converted to a Python object.
    """
    return binding.take(objects, int(ffi.cast("uintptr_t", words + 2 * k)))


def all_to_python(objects: Objects, words: Any, count: int) -> list[Any]:
    """Convert the first `count` values of `words`, an array of machine values, to Python, as `to_python` does."""
    return [to_python(objects, words, k) for k in range(count)]


def other_to_python(objects: Objects, address: int) -> Any:
    """Convert the machine value at `address` to a Python object.  The machine value keeps its reference.

    binding.c calls this function for a machine value whose type it does not handle itself.

    objects: the Python side of the machine.
    """
    tag, payload = ffi.cast("int64_t *", address)[0:2]
    if tag == DTYPE:
        return numpy_dtype(payload)
    if tag in (TUPLE, LIST):
        return _convert_sequence(objects, tag, payload)
    if tag == SHAPE:
        return Shape(_convert_dims(objects, ffi.cast("rvm_shape *", payload)))
    if tag == STRING:
        string = ffi.cast("rvm_string *", payload)
        _count_memory(objects, string.length * 5)  # the bytes, and at most four bytes for each character
        return ffi.buffer(string.bytes, string.length)[:].decode(errors="replace")
    raise RelvmUnsupportedError(f"a value of kind {TAGS[tag].name.lower()} cannot be converted to Python")


_LOOK_INTERVAL = 4096  # number of items between two checks of the time limit


def _convert_dims(objects: Objects, shape: Any) -> list[int]:
    """Return the dimensions of `shape`, a shape object of the machine, as Python integers.

    A shape can have millions of dimensions.  They are therefore converted in chunks, and the machine's limits are
    checked before each chunk.
    """
    dims: list[int] = []
    while len(dims) < shape.rank:
        chunk = min(shape.rank - len(dims), _LOOK_INTERVAL)
        _count_memory(objects, chunk * ITEM_BYTES)
        dims += ffi.unpack(shape.dims + len(dims), chunk)
    return dims


def _count_memory(objects: Objects, size_bytes: int) -> None:
    """Count `size_bytes` of memory for Python objects that are created for values of the machine.

    Raise RelvmMemoryError or RelvmTimeoutError if the machine's limit of memory or time is exceeded.
    """
    if objects.converted_bytes < 0:
        return
    objects.converted_bytes += size_bytes
    error = ffi.new("rvm_value *")
    status = lib.rvm_machine_afford(objects.machine, objects.converted_bytes, error)
    if status:
        raise failure(status, error)


def _convert_sequence(objects: Objects, tag: int, address: int) -> tuple | list:
    """Convert the tuple or list at `address` to Python, without recursion.  values.c converts short flat tuples itself.

    A machine object that occurs several times becomes one shared Python object.  The memory of the result is therefore
    proportional to the memory of the machine value.

    objects: the Python side of the machine.
    tag: the tag of the machine value, TUPLE or LIST.
    """
    converted: dict[int, Any] = {}  # address of a machine object -> Python object

    def begin(address: int, tag: int) -> tuple[int, int, Any, int, list]:
        words, size = _items(tag, address)
        _count_memory(objects, SEQUENCE_BYTES + size * ITEM_BYTES)
        return address, tag, words, size, []

    open_sequences = [
        begin(address, tag)
    ]  # the nested tuples and lists that are not yet converted completely, outermost first
    while True:
        address, tag, words, size, items = open_sequences[-1]
        if len(items) % _LOOK_INTERVAL == _LOOK_INTERVAL - 1:
            _count_memory(objects, 0)
        if len(items) == size:
            open_sequences.pop()
            result = items if tag == LIST else tuple(items)
            converted[address] = result
            if not open_sequences:
                return result
            open_sequences[-1][4].append(result)
            continue
        inner, payload = words[2 * len(items)], words[2 * len(items) + 1]
        if inner < _FIRST_OBJECT:
            items.append(to_python(objects, words, len(items)))
        elif payload in converted:
            items.append(converted[payload])
        elif inner in (TUPLE, LIST):
            open_sequences.append(begin(payload, inner))
        else:
            _count_memory(objects, OBJECT_BYTES)
            items.append(to_python(objects, words, len(items)))
            converted[payload] = items[-1]


def _items(tag: int, address: int) -> tuple[Any, int]:
    pointer = ffi.cast("rvm_list *" if tag == LIST else "rvm_tuple *", address)
    return ffi.cast("int64_t *", pointer.items), pointer.size
