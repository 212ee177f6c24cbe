"""Types and attributes of the versioned dialect (VHLO) in MLIR bytecode, and those of the builtin dialect.

Source: MLIR's bytecode format; the dialect interfaces of StableHLO and MLIR.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

from relvm.frontend.stablehlo.bytecode_cursor import ByteCursor
from relvm.frontend.stablehlo.element_types import elements_of_bytes
from relvm.frontend.stablehlo.limits import MAX_RANK
from relvm.frontend.stablehlo.program import (
    AnyType,
    Elements,
    ElementType,
    FunctionOf,
    Opaque,
    QuantizedType,
    Symbol,
    Tensor,
    Token,
    TupleOf,
)


class Reader(Protocol):
    """The part of the reader that reads an index from a cursor, and returns the type, attribute or string with it."""

    def type_of(self, c: ByteCursor) -> AnyType: ...

    def attribute_of(self, c: ByteCursor) -> Any: ...

    def string_of(self, c: ByteCursor) -> str: ...


# Codes of types without parameters.
ELEMENT_TYPES = {
    0: "i1",
    2: "bf16",
    3: "f16",
    4: "f32",
    5: "f64",
    6: "f8E4M3FN",
    7: "f8E5M2",
    9: "index",
    10: "i4",
    11: "i8",
    12: "i16",
    13: "i32",
    14: "i64",
    15: "ui4",
    16: "ui8",
    17: "ui16",
    18: "ui32",
    19: "ui64",
    27: "f8E4M3FNUZ",
    28: "f8E5M2FNUZ",
    29: "f8E4M3B11FNUZ",
    31: "i2",
    32: "ui2",
    34: "tf32",
    35: "f8E4M3",
    36: "f8E3M4",
    37: "f4E2M1FN",
    38: "f6E2M3FN",
    39: "f6E3M2FN",
    40: "f8E8M0FNU",
}

# Codes of enumerations: their names, and the words by their numbers.
ENUMERATIONS = {
    3: ("EQ", "NE", "GE", "GT", "LE", "LT"),
    4: ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    7: ("FFT", "IFFT", "RFFT", "IRFFT"),
    11: ("DEFAULT", "HIGH", "HIGHEST"),
    12: ("DEFAULT", "THREE_FRY", "PHILOX"),
    13: ("", "UNIFORM", "NORMAL"),
    16: ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
}
_FLOAT_BITS = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}
_DYNAMIC = -(1 << 63)  # the number that stands for an unknown dimension


def read_vhlo_type(reader: Reader, c: ByteCursor) -> AnyType:
    """Read a type of the versioned dialect."""
    code = c.varint()
    if code in ELEMENT_TYPES:
        return ElementType(ELEMENT_TYPES[code])
    match code:
        case 1:
            return ElementType(f"complex<{reader.type_of(c)}>")
        case 8:
            inputs = c.items("types", lambda: reader.type_of(c))
            return FunctionOf(tuple(inputs), tuple(c.items("types", lambda: reader.type_of(c))))
        case 20 | 21:
            if code == 21:
                reader.attribute_of(c)
            return _ranked_tensor(reader, c)
        case 22:
            return Token()
        case 23:
            return TupleOf(tuple(c.items("types", lambda: reader.type_of(c))))
        case 24 | 30:
            return _quantized(reader, c, is_per_axis=code == 30)
        case 25:
            return Tensor(_element(reader, c), None)
    return Opaque(f"type {code} of the versioned dialect")


def _ranked_tensor(reader: Reader, c: ByteCursor) -> Tensor:
    shape = c.items("dimensions", c.signed)
    if len(shape) > MAX_RANK:
        c.fail(f"a tensor has rank {len(shape)}, expected at most {MAX_RANK}")
    if any(dim < 0 and dim != _DYNAMIC for dim in shape):
        c.fail(f"a tensor has the dimensions {shape}")
    element = _element(reader, c)
    return Tensor(element, tuple(None if dim == _DYNAMIC else dim for dim in shape))


def _element(reader: Reader, c: ByteCursor) -> ElementType | QuantizedType:
    element = reader.type_of(c)
    if not isinstance(element, ElementType | QuantizedType):
        c.fail(f"a tensor has elements of the type {element}")
    return element


def _quantized(reader: Reader, c: ByteCursor, *, is_per_axis: bool) -> QuantizedType:
    c.varint()  # flags: whether the storage type is signed
    storage, expressed = reader.type_of(c), reader.type_of(c)
    if not isinstance(storage, ElementType) or not isinstance(expressed, ElementType):
        c.fail("a quantized type has no storage type or no expressed type")
    if is_per_axis:
        axis = c.varint()
        low, high = c.signed(), c.signed()
        scales = c.items("scales", lambda: _float(c, "f64"))
        zero_points = c.items("zero points", c.signed)
        return QuantizedType(storage, expressed, tuple(scales), tuple(zero_points), axis, low, high)
    scale = _float(c, "f64")
    zero_point, low, high = c.signed(), c.signed(), c.signed()
    return QuantizedType(storage, expressed, (scale,), (zero_point,), None, low, high)


def _float(c: ByteCursor, name: str) -> float:
    """Read a float of a known type."""
    integer, real = _FLOAT_BITS[name]
    bits = c.integer_of(8 * struct.calcsize(integer))
    return struct.unpack(real, struct.pack(integer, bits))[0]


def _number(reader: Reader, c: ByteCursor) -> Any:
    """Read an integer or a float of a stated type."""
    type_ = reader.type_of(c)
    name = type_.name if isinstance(type_, ElementType) else ""
    if name in _FLOAT_BITS:
        return _float(c, name)
    if name == "bf16":
        return struct.unpack("<f", struct.pack("<I", c.integer_of(16) << 16))[0]
    digits = name.lstrip("u").removeprefix("i")
    if name == "index":
        digits = "64"
    if not digits.isdigit() or not 1 <= int(digits) <= 64:
        return Opaque(f"a number of the type {type_}")
    bits = int(digits)
    value = c.integer_of(bits)
    return value - (1 << bits) if not name.startswith("u") and value >> (bits - 1) and bits > 1 else value


def read_vhlo_attribute(reader: Reader, c: ByteCursor) -> Any:
    """Read an attribute of the versioned dialect."""
    code = c.varint()
    if code in ENUMERATIONS:
        number = c.varint()
        words = ENUMERATIONS[code]
        return words[number] if number < len(words) else Opaque(f"value {number} of the enumeration {code}")
    match code:
        case 1:
            return tuple(c.items("attributes", lambda: reader.attribute_of(c)))
        case 2:
            return bool(c.varint())
        case 5:
            return c.varint()
        case 6:
            return dict(c.items("entries", lambda: (_key(reader, c), reader.attribute_of(c))))
        case 8 | 9:
            return _number(reader, c)
        case 14:
            return reader.string_of(c)
        case 15:
            return _elements(reader, c)
        case 17:
            return reader.type_of(c)
    return Opaque(f"attribute {code} of the versioned dialect")


def _key(reader: Reader, c: ByteCursor) -> str:
    key = reader.attribute_of(c)
    return key if isinstance(key, str) else str(key)


def _elements(reader: Reader, c: ByteCursor) -> Elements:
    type_ = reader.type_of(c)
    if not isinstance(type_, Tensor):
        c.fail(f"a constant has the type {type_}, expected a tensor")
    at = c.at
    return elements_of_bytes(type_, c.bytes(c.varint()), f"{c.place}: offset {at}")


# ---- the builtin dialect ----

_BUILTIN_FLOATS = {3: "bf16", 4: "f16", 5: "f32", 6: "f64"}


def read_builtin_type(reader: Reader, c: ByteCursor) -> AnyType:
    """Read a type of the builtin dialect, which operations of other dialects than VHLO have, such as shardings."""
    code = c.varint()
    match code:
        case 0:
            width, signedness = divmod(c.varint(), 4)
            return ElementType(f"{'ui' if signedness == 2 else 'i'}{width}")
        case 1:
            return ElementType("index")
        case 3 | 4 | 5 | 6:
            return ElementType(_BUILTIN_FLOATS[code])
        case 9:
            return ElementType(f"complex<{reader.type_of(c)}>")
        case 13:
            return _ranked_tensor(reader, c)
    return Opaque(f"type {code} of the builtin dialect")


def read_builtin_attribute(reader: Reader, c: ByteCursor) -> Any:
    """Read an attribute of the builtin dialect.  A location becomes a text, which is "" if it is unknown."""
    code = c.varint()
    rule = _BUILTIN.get(code)
    return Opaque(f"attribute {code} of the builtin dialect") if rule is None else rule(reader, c)


def _dictionary(reader: Reader, c: ByteCursor) -> dict[str, Any]:
    return dict(c.items("entries", lambda: (_key(reader, c), reader.attribute_of(c))))


def _string(reader: Reader, c: ByteCursor) -> str:
    return reader.string_of(c)


def _location_of(reader: Reader, c: ByteCursor) -> str:
    found = reader.attribute_of(c)
    return found if isinstance(found, str) else ""


def _call_site(reader: Reader, c: ByteCursor) -> str:
    callee = _location_of(reader, c)
    _location_of(reader, c)
    return callee


def _file_location(reader: Reader, c: ByteCursor) -> str:
    name = _key(reader, c)
    return f"{name}:{c.varint()}:{c.varint()}"


def _fused(reader: Reader, c: ByteCursor) -> str:
    return next(filter(None, c.items("locations", lambda: _location_of(reader, c))), "")


def _named(reader: Reader, c: ByteCursor) -> str:
    name = _key(reader, c)
    child = _location_of(reader, c)
    return f"{name} ({child})" if child else name


def _file_range(reader: Reader, c: ByteCursor) -> str:
    name = _key(reader, c)
    numbers = c.items("numbers", c.varint)
    return ":".join([name, *map(str, numbers[:2])])


_BUILTIN: dict[int, Callable[[Reader, ByteCursor], Any]] = {
    0: lambda reader, c: tuple(c.items("attributes", lambda: reader.attribute_of(c))),
    1: _dictionary,
    2: _string,
    3: _string,
    4: lambda reader, c: Symbol(_key(reader, c)),
    6: lambda reader, c: reader.type_of(c),
    7: lambda reader, c: True,
    10: _call_site,
    11: _file_location,
    12: _fused,
    13: _fused,
    14: _named,
    15: lambda reader, c: "",
    22: _file_range,
}
