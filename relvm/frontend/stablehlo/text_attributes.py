"""Types and attributes in the text of an MLIR program."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from relvm.errors import RelvmSyntaxError
from relvm.frontend.stablehlo.element_types import (
    constant_dtype,
    element_of_bits,
    elements_of,
    elements_of_bytes,
    is_element_type,
)
from relvm.frontend.stablehlo.limits import MAX_RANK
from relvm.frontend.stablehlo.program import (
    AnyType,
    Attributes,
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
from relvm.frontend.stablehlo.text_cursor import Cursor

_LITERAL = re.compile(r"[^\"<>]*+")
_ELEMENT = re.compile(r"\s*+(?:(\[)|(\])|(,)|(\()|(\))|([^\s\[\](),]++))")
_HEXADECIMAL = re.compile(r"-?0x[0-9a-fA-F]{1,32}")
_ALIAS = re.compile(r"^([#!][A-Za-z_][\w$]*+)[ \t]*=[ \t]*", re.MULTILINE)
_STRUCTURES = ("conv", "dot", "gather", "scatter")  # attributes of StableHLO whose fields converters need


class AttributeReader:
    """Reader of types and attributes.

    cursor: the position in the text.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        # The aliases of attributes and types, which can be defined after their first use.
        self._aliases = {match[1]: match.end() for match in _ALIAS.finditer(cursor.source)}
        self._known: dict[str, Any] = {}

    def skip_alias(self) -> None:
        """Skip the definition of an alias: `#name = attribute`."""
        self.cursor.next()
        self.cursor.expect("=")
        self.cursor.accept("type")
        self.attribute_or_location()

    def _alias(self, name: str) -> Any:
        """Return the attribute or type that an alias stands for."""
        cursor = self.cursor
        if name not in self._known:
            offset = self._aliases.pop(name, None)
            if offset is None:
                raise RelvmSyntaxError(f"{cursor.here()}: the alias {name} is not defined, or is defined by itself")
            resume = cursor.start
            with cursor.nested():
                cursor.move_to(offset)
                self._known[name] = self.attribute_or_location()
            cursor.move_to(resume)
        return self._known[name]

    # ---- types ----

    def type(self) -> AnyType:
        """Read a type."""
        cursor = self.cursor
        with cursor.nested():
            if cursor.at("("):
                inputs = tuple(cursor.items("(", ")", self.type))
                cursor.expect("->")
                return FunctionOf(inputs, self.result_types())
            if cursor.kind == "bang":
                return self._dialect_type()
            start = cursor.start
            word = cursor.word("a type")
            if word == "tensor":
                return self._tensor()
            if word == "tuple":
                return TupleOf(tuple(cursor.items("<", ">", self.type)))
            if word == "complex":
                cursor.expect("<")
                element = self._element()
                cursor.expect(">")
                return ElementType(f"complex<{element}>")
            if word == "none":
                return Opaque("none")
            if is_element_type(word):
                return ElementType(word)
            if cursor.at("<"):
                return Opaque(word + cursor.balanced())
            cursor.move_to(start)
            cursor.expected("a type")

    def result_types(self) -> tuple[AnyType, ...]:
        """Read the type of a result, or the types of several in parentheses."""
        cursor = self.cursor
        return tuple(cursor.items("(", ")", self.type)) if cursor.at("(") else (self.type(),)

    def _dialect_type(self) -> AnyType:
        cursor = self.cursor
        start, name = cursor.start, cursor.next()
        if name in ("!stablehlo.token", "!mhlo.token", "!vhlo.token_v1"):
            return Token()
        if name in ("!quant.uniform", "!quant") and cursor.at("<"):
            return self._quantized()
        if "." not in name:
            found = self._alias(name)
            if not isinstance(found, AnyType):
                raise RelvmSyntaxError(f"{cursor.here(start)}: {name} is not a type")
            return found
        return Opaque(name + (cursor.balanced() if cursor.at("<") else ""))

    def _tensor(self) -> Tensor:
        cursor = self.cursor
        cursor.expect("<")
        shape: tuple[int | None, ...] | None
        if cursor.at("*"):
            cursor.move_to(cursor.source.index("*", cursor.start) + 1)
            if not cursor.text.startswith("x"):
                cursor.expected("'x'")
            cursor.move_to(cursor.start + 1)
            shape = None
        else:
            shape = cursor.dimensions()
            if len(shape) > MAX_RANK:
                raise RelvmSyntaxError(f"{cursor.here()}: a tensor has rank {len(shape)}, expected at most {MAX_RANK}")
        element = self._element()
        if cursor.accept(","):  # an encoding, such as bounds of dimensions or a layout
            self.attribute()
        cursor.expect(">")
        return Tensor(element, shape)

    def _element(self) -> ElementType | QuantizedType:
        start = self.cursor.start
        type_ = self.type()
        if isinstance(type_, ElementType | QuantizedType):
            return type_
        self.cursor.unsupported(f"elements of the type {type_} are not supported", start)

    def _quantized(self) -> QuantizedType:
        """Read `<storage<minimum:maximum>:expressed:axis, {scale:zero_point, ...}>`."""
        cursor = self.cursor
        cursor.expect("<")
        storage, bounds = self._storage(), None
        if cursor.accept("<"):
            low = cursor.integer()
            cursor.expect(":")
            bounds = low, cursor.integer()
            cursor.expect(">")
        cursor.expect(":")
        expressed, axis = self._storage(), None
        if cursor.accept(":"):
            axis = cursor.integer()
        cursor.expect(",")
        parameters = cursor.items("{", "}", self._scale) if cursor.at("{") else [self._scale()]
        cursor.expect(">")
        scales, zero_points = zip(*parameters, strict=True)
        bits = int(storage.name.lstrip("sui")) if storage.name.lstrip("sui").isdigit() else 0
        unsigned = storage.name.startswith("u")
        if bounds is None:
            bounds = (0, (1 << bits) - 1) if unsigned else (-(1 << bits) // 2, (1 << bits) // 2 - 1)
        return QuantizedType(storage, expressed, scales, zero_points, axis, *bounds)

    def _storage(self) -> ElementType:
        cursor = self.cursor
        start, word = cursor.start, cursor.word("a type of elements")
        if word.startswith("u") and is_element_type(f"ui{word[1:]}"):
            word = f"ui{word[1:]}"
        if not is_element_type(word):
            cursor.move_to(start)
            cursor.expected("a type of elements")
        return ElementType(word)

    def _scale(self) -> tuple[float, int]:
        scale = float(self.number())
        return scale, self.cursor.integer() if self.cursor.accept(":") else 0

    # ---- attributes ----

    def attribute_or_location(self) -> Any:
        return self.location() if self.cursor.at("loc") else self.attribute()

    def attribute(self) -> Any:
        """Read an attribute."""
        cursor = self.cursor
        with cursor.nested():
            match cursor.kind, cursor.text:
                case "string", _:
                    value = cursor.string()
                    if cursor.accept(":"):
                        self.type()
                    return value
                case "number", _:
                    number = self.number()
                    if cursor.accept(":"):
                        type_ = self.type()
                        if isinstance(type_, ElementType) and not isinstance(number, float):
                            return self._typed_number(number, type_)
                    return number
                case "symbol", _:
                    name = cursor.symbol()
                    while cursor.accept("::"):
                        name += f"::{cursor.symbol()}"
                    return Symbol(name)
                case "hash", name:
                    return self._hash(name)
                case _, "[":
                    return tuple(cursor.items("[", "]", self.attribute))
                case _, "{":
                    return self.dictionary()
                case "word", "dense":
                    return self._dense()
                case "word", "array":
                    return self._array()
                case "word", "true" | "false":
                    return cursor.next() == "true"
                case "word", "unit":
                    cursor.next()
                    return True
                case "word", "loc":
                    return self.location()
                case "word", "dense_resource" | "sparse" as word:
                    cursor.unsupported(f"{word}<...> elements are not supported")
                case "word", word if word.startswith(("affine_map", "affine_set", "strided", "distinct")):
                    cursor.next()
                    return Opaque(word + (cursor.balanced() if cursor.at("<", "[") else ""))
            return self.type()

    def number(self) -> int | float:
        """Read a number."""
        cursor = self.cursor
        text = cursor.text
        if cursor.kind == "word" and text in ("inf", "nan"):
            cursor.next()
            return float(text)
        if cursor.kind != "number" or len(text) > 100:
            cursor.expected("a number")
        if "x" in text or text.lstrip("-").isdigit():
            return cursor.integer()
        cursor.next()
        return float(text)

    def _typed_number(self, value: int, type_: ElementType) -> Any:
        if type_.name == "i1":
            return bool(value)
        if type_.name.startswith(("f", "bf")):
            dtype = constant_dtype(Tensor(type_, ()), self.cursor.here())
            return float(element_of_bits(dtype, value))
        return value

    def dictionary(self) -> Attributes:
        """Read `{name = attribute, ...}`.  An attribute without a value is a unit attribute."""
        return dict(self.cursor.items("{", "}", self._entry))

    def _entry(self) -> tuple[str, Any]:
        cursor = self.cursor
        name = cursor.string() if cursor.kind == "string" else cursor.word("the name of an attribute")
        return name, self.attribute() if cursor.accept("=") else True

    def _array(self) -> tuple[Any, ...]:
        """Read `array<i64: 1, 2>`."""
        cursor = self.cursor
        cursor.next()
        cursor.expect("<")
        self.type()
        if cursor.accept(">"):
            return ()
        cursor.expect(":")
        found = [self.attribute()]
        while cursor.accept(","):
            found.append(self.attribute())
        cursor.expect(">")
        return tuple(found)

    def _hash(self, name: str) -> Any:
        """Read an alias, or an attribute of a dialect."""
        cursor = self.cursor
        if "." not in name and not cursor.source.startswith("<", cursor.end):
            cursor.next()
            return self._alias(name)
        cursor.next()
        dialect, _, kind = name[1:].partition(".")
        if not cursor.at("<"):
            return Opaque(name)
        if dialect not in ("stablehlo", "chlo") or (kind and kind not in _STRUCTURES):
            return Opaque(name + cursor.balanced())
        if not kind:  # #stablehlo<precision DEFAULT>
            cursor.expect("<")
            kind = cursor.word("the name of an attribute")
            value = self._dialect_attribute(kind, name)
            cursor.expect(">")
            return value
        cursor.expect("<")
        if kind == "conv":
            structure = self.convolution()
            cursor.expect(">")
            return structure
        value = self._dialect_attribute(kind, name)
        cursor.expect(">")
        return value

    def _dialect_attribute(self, kind: str, name: str) -> Any:
        """Read the inside of an attribute of the dialect: a structure or an enumeration."""
        cursor = self.cursor
        if cursor.kind == "word" and cursor.source[cursor.end :].lstrip()[:1] != "=":
            return cursor.word()
        if cursor.at("<"):
            cursor.next()
            value = self._dialect_attribute(kind, name)
            cursor.expect(">")
            return value
        fields: Attributes = {}
        while not cursor.at(">"):
            key = cursor.word(f"a field of {name}")
            cursor.expect("=")
            fields[key] = self.attribute()
            if not cursor.accept(","):
                break
        return fields

    def convolution(self) -> Attributes:
        """Read the dimension numbers of a convolution: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        cursor = self.cursor
        found: Attributes = {}
        for prefix, letters in (
            ("input", {"b": "batch_dimension", "f": "feature_dimension"}),
            ("kernel", {"i": "input_feature_dimension", "o": "output_feature_dimension"}),
            ("output", {"b": "batch_dimension", "f": "feature_dimension"}),
        ):
            if prefix == "kernel":
                if not cursor.text.startswith("x"):
                    cursor.expected("'x'")
                cursor.move_to(cursor.start + 1)
            elif prefix == "output":
                cursor.expect("->")
            spatial: dict[int, int] = {}
            start = cursor.start
            for axis, item in enumerate(cursor.items("[", "]", self._dimension)):
                if item in letters:
                    found[f"{prefix}_{letters[item]}"] = axis
                elif isinstance(item, int):
                    spatial[item] = axis
            if sorted(spatial) != list(range(len(spatial))):
                raise RelvmSyntaxError(f"{cursor.here(start)}: the spatial dimensions are not numbered from 0")
            found[f"{prefix}_spatial_dimensions"] = tuple(spatial[i] for i in range(len(spatial)))
        return found

    def _dimension(self) -> int | str:
        cursor = self.cursor
        return cursor.integer() if cursor.kind == "number" else cursor.next()

    # ---- elements of constants ----

    def _dense(self) -> Elements | tuple[Any, ...]:
        """Read `dense<...> : type`."""
        cursor = self.cursor
        place, start = cursor.here(), cursor.start
        cursor.next()
        if not cursor.at("<"):
            cursor.expected("'<'")
        first = cursor.end
        if cursor.source.startswith('"', first):
            cursor.move_to(first)
            literal = cursor.take("string", "a string")[1:-1]
        else:
            match = _LITERAL.match(cursor.source, first)
            assert match is not None
            literal = match[0]
            cursor.move_to(match.end())
        cursor.expect(">")
        cursor.expect(":")
        type_ = self.type()
        if not isinstance(type_, Tensor):
            raise RelvmSyntaxError(f"{cursor.here(start)}: dense elements have the type {type_}, expected a tensor")
        if literal.startswith("0x") and cursor.source.startswith('"', first):
            try:
                data = bytes.fromhex(literal[2:])
            except ValueError:
                raise RelvmSyntaxError(f"{place}: the elements are not hexadecimal digits") from None
            return elements_of_bytes(type_, data, place)
        dtype = constant_dtype(type_, place)
        try:
            texts = _element_texts(literal)
            array = _parsed(texts, dtype)
        except (ValueError, OverflowError) as error:
            raise RelvmSyntaxError(f"{place}: dense<...>: {error}") from None
        return elements_of(type_, array, place)

    # ---- locations ----

    def location(self) -> str:
        """Read a location, `loc(...)`, and return it as text."""
        cursor = self.cursor
        cursor.expect("loc")
        cursor.expect("(")
        found = self._location()
        cursor.expect(")")
        return found

    def _location(self) -> str:
        cursor = self.cursor
        with cursor.nested():
            if cursor.kind == "string":
                text = cursor.string()
                if cursor.accept(":"):
                    line = cursor.integer()
                    cursor.expect(":")
                    text = f"{text}:{line}:{cursor.integer()}"
                    if cursor.accept("to"):
                        while cursor.accept(":") or cursor.kind == "number":
                            if cursor.kind == "number":
                                cursor.next()
                elif cursor.accept("("):
                    inner = self._location()
                    cursor.expect(")")
                    text = f"{text} ({inner})" if inner else text
                return text
            if cursor.kind == "hash":
                found = self._alias(cursor.next())
                return found if isinstance(found, str) else ""
            if cursor.accept("callsite"):
                cursor.expect("(")
                found = self._location()
                cursor.expect("at")
                self._location()
                cursor.expect(")")
                return found
            if cursor.accept("fused"):
                if cursor.at("<"):
                    cursor.balanced()
                parts = cursor.items("[", "]", self._location)
                return next(filter(None, parts), "")
            if cursor.accept("unknown"):
                return ""
            cursor.expected("a location")


def _element_texts(literal: str) -> list[str | tuple[str, str]]:
    """Return the elements in the text of nested lists.  A complex number is a pair.

    Raises
    ------
    ValueError
        The lists are malformed.
    """
    found: list[Any] = []
    depth, position, length = 0, 0, len(literal)
    pair: list[str] | None = None
    while position < length:
        match = _ELEMENT.match(literal, position)
        if match is None:
            break
        position = match.end()
        opening, closing, _, left, right, text = match.groups()
        if opening:
            depth += 1
        elif closing:
            depth -= 1
        elif left:
            pair = []
        elif right:
            if pair is None or len(pair) != 2:
                raise ValueError("a complex number has two parts")
            found.append((pair[0], pair[1]))
            pair = None
        elif text is not None:
            (found if pair is None else pair).append(text)
        if depth < 0:
            break
    if depth or literal[position:].strip() or pair is not None:
        raise ValueError("the lists of elements are malformed")
    return found


def _parsed(texts: list[str | tuple[str, str]], dtype: np.dtype) -> np.ndarray:
    """Return the elements of a constant from their texts, as a vector."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        pairs = [text if isinstance(text, tuple) else (text, "0.0") for text in texts]
        flat = _parsed([part for pair in pairs for part in pair], part)
        return flat.view(dtype)
    plain = [text for text in texts if isinstance(text, str)]
    if len(plain) != len(texts):
        raise ValueError("a complex number is not an element of this type")
    if dtype == np.bool_:
        values = {"true": True, "false": False, "1": True, "0": False, "-1": True}
        if unknown := next((text for text in plain if text not in values), None):
            raise ValueError(f"{unknown!r} is not true or false")
        return np.array([values[text] for text in plain], np.bool_)
    if dtype.kind in "iu" or dtype.name in ("int4", "uint4", "int2", "uint2"):
        numbers = [int(text, 0) if "x" in text else int(text) for text in plain]
        bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(dtype.name, 8 * dtype.itemsize)
        limit = 1 << bits
        if any(not -limit // 2 <= number < limit for number in numbers):
            raise ValueError(f"an element is out of the range of {dtype}")
        wrapped = np.array([number % limit for number in numbers], np.uint64)
        if dtype.kind in "iu":
            return wrapped.astype(f"u{dtype.itemsize}").view(dtype)
        return wrapped.astype(np.uint8).view(dtype)
    result = np.array([_float(text) for text in plain], np.float64)
    narrow = result.astype(dtype) if dtype.isbuiltin == 1 else result.astype(np.float32).astype(dtype)
    for at, text in enumerate(plain):
        if "x" in text:
            if _HEXADECIMAL.fullmatch(text) is None:
                raise ValueError(f"{text!r} is not a number")
            narrow[at] = element_of_bits(dtype, int(text, 16))
    return narrow


def _float(text: str) -> float:
    return 0.0 if "x" in text else float(text)
