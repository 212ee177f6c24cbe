"""Parsing of tensor constants and attribute values in the text form."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from relvm.errors import RelvmSyntaxError, counted
from relvm.frontend.text.lexer import Token
from relvm.frontend.text.types import TypeReader
from relvm.ir.dtypes import ALL_DTYPES, DType
from relvm.ir.expr import Attributes, Constant
from relvm.ir.symbolic import known_sizes
from relvm.ir.types import TensorType
from relvm.numpy_dtypes import unpack_strings

_NAMED_VALUES = {"true": True, "false": False, "null": None, "inf": math.inf, "nan": math.nan}


class LiteralReader(TypeReader):
    def number(self) -> int | float:
        """Parse an integer or a float with an optional minus sign."""
        sign = self.token
        negative = self.accept("-")
        token = self.take()
        value: int | float
        match token.kind, token.text:
            case "int", text if len(text) < 32:
                value = int(text)
            case "int", _:
                raise self.error(RelvmSyntaxError, "the integer has too many digits", token)
            case ("float", text) | (_, ("inf" | "nan") as text):
                value = float(text)
            case _:
                raise self.error(RelvmSyntaxError, f"expected a number, got {token}", token if negative else sign)
        return -value if negative else value

    def attributes(self) -> Attributes:
        """Parse attributes in parentheses: `(name=value, ...)`.  Return them as (name, value) pairs."""
        self.expect("(")
        values: dict[str, Any] = {}
        self.comma_separated(")", lambda: self.attribute(values))
        return tuple(values.items())

    def attribute(self, values: dict[str, Any]) -> None:
        """Parse an attribute `name=value`, and add it to `values`."""
        token = self.token
        name = self.string() if token.kind == "string" else self.expect_kind("name", "the name of an attribute").text
        if name in values:
            raise self.error(RelvmSyntaxError, f"attribute {name} is given twice", token)
        self.expect("=")
        values[name] = self.literal()

    def literal(self) -> Any:
        """Parse an attribute value: a scalar, a string, a dtype, null, or a tuple of these."""
        token = self.token
        if token.kind == "string":
            return self.string()
        if self.at("(") or self.at("["):
            return self.literal_tuple()
        if token.text in _NAMED_VALUES:
            return _NAMED_VALUES[self.take().text]
        if token.text in ALL_DTYPES:
            return ALL_DTYPES[self.take().text]
        if token.kind in ("int", "float") or self.at("-"):
            return self.number()
        raise self.unexpected("a number, a string, a dtype, true, false, null or a tuple of these")

    def literal_tuple(self) -> Any:
        """Parse `(a, b)`, `(a,)`, `()` or `[a, b]` as a tuple, and `(a)` as `a`."""
        self.enter_level()
        brackets = self.take().text == "["
        parts, is_tuple = self.comma_separated("]" if brackets else ")", self.literal)
        self.depth -= 1
        return tuple(parts) if brackets or is_tuple else parts[0]

    def constant(self) -> Constant:
        """Parse a tensor constant after the keyword `const`: `(type, elements)`.

        The elements are nested lists, or a string with the base64 encoding of their little-endian bytes.
        """
        self.expect("(")
        start, type_ = self.token, self.type()
        shape = None
        if isinstance(type_, TensorType) and type_.dtype and type_.shape is not None:
            shape = known_sizes(type_.shape)
        if not isinstance(type_, TensorType) or shape is None:
            reason = f"expected a constant type with a dtype and a shape of integers, got {type_}"
            raise self.error(RelvmSyntaxError, reason, start)
        dtype = type_.known_dtype
        self.expect(",")
        if self.at("..."):
            reason = "the elements of this constant were omitted when it was printed"
            raise self.error(RelvmSyntaxError, reason, self.token)
        first = self.token
        if first.kind == "string" and (not dtype.is_string or shape):
            array = self.from_base64(first, type_, shape)
        else:
            elements: list[Any] = []
            self.elements(dtype, shape, elements)
            try:
                with np.errstate(over="ignore"):  # a number too large for a float becomes infinite
                    array = np.array(elements, dtype.numpy).reshape(shape)
            except OverflowError:
                raise self.error(RelvmSyntaxError, f"an element is out of the range of {dtype}", first) from None
        self.expect(")")
        array.flags.writeable = False
        return Constant(array)

    def from_base64(self, token: Token, type_: TensorType, shape: tuple[int, ...]) -> np.ndarray:
        try:
            data = base64.b64decode(self.string(), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(RelvmSyntaxError, f"invalid base64: {error}", token) from None
        if type_.known_dtype.is_string:
            try:
                return unpack_strings(data, shape)
            except ValueError as error:
                raise self.error(RelvmSyntaxError, f"cannot build {type_}: {error}", token) from None
        expected = type_.known_dtype.size_bytes * math.prod(shape)
        if len(data) != expected:
            raise self.error(RelvmSyntaxError, f"{type_}: expected {expected} bytes, got {len(data)}", token)
        stored = np.frombuffer(data, type_.known_dtype.numpy.newbyteorder("<"))
        return stored.astype(type_.known_dtype.numpy).reshape(shape)

    def elements(self, dtype: DType, shape: tuple[int, ...], out: list[Any]) -> None:
        """Parse a nested list of shape `shape` with elements of dtype `dtype`, and append the elements to `out`."""
        if not shape:
            out.append(self.element(dtype))
            return
        items = counted(shape[0], "item")
        start, count = self.expect("[", f"[ and a list of {items}"), 0
        while not self.at("]"):
            if count == shape[0]:
                raise self.error(RelvmSyntaxError, f"expected {items}, got more", self.token)
            self.elements(dtype, shape[1:], out)
            count += 1
            if not self.accept(","):
                break
        self.expect("]", ", or ]")
        if count != shape[0]:
            raise self.error(RelvmSyntaxError, f"expected {items}, got {count}", start)

    def element(self, dtype: DType) -> bool | int | float | str:
        token = self.token
        if dtype.is_string:
            return self.string()
        if dtype.is_bool:
            if token.text not in ("true", "false"):
                raise self.unexpected("true or false")
            return self.take().text == "true"
        value = self.number()
        if dtype.is_integer and not isinstance(value, int):
            raise self.error(RelvmSyntaxError, f"expected an integer element of {dtype}, got {value}", token)
        return value
