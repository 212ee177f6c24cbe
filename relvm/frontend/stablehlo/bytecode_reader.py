"""Reader of portable artifacts: StableHLO programs in MLIR bytecode, in the versioned dialect (VHLO).

The file consists of sections.  The types and attributes are decoded when they are first used.

Source: the MLIR bytecode format, versions 0 to 6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted, shortened
from relvm.frontend.stablehlo.bytecode_cursor import ByteCursor
from relvm.frontend.stablehlo.limits import MAX_DEPTH, MAX_OPERATIONS, MAX_STRING, MAX_VALUES
from relvm.frontend.stablehlo.operations import flattened, properties_of
from relvm.frontend.stablehlo.program import (
    AnyType,
    Attributes,
    Block,
    Opaque,
    Operation,
    Program,
    Region,
    Value,
    program_of,
)
from relvm.frontend.stablehlo.vhlo import (
    read_builtin_attribute,
    read_builtin_type,
    read_vhlo_attribute,
    read_vhlo_type,
)

NEWEST_VERSION = (1, 20)  # the newest version of StableHLO that the reader knows
_NEWEST_ENCODING = 6
_DIALECT_VERSIONS, _LAZY_REGIONS, _USE_LISTS, _OPTIONAL_LOCATIONS, _PROPERTIES = 1, 2, 3, 4, 5  # encoding versions
_PRODUCER = re.compile(r"StableHLO_v(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS, _OPERATIONS = range(5)  # numbers of sections
_PROPERTY_SECTION = 8
_LAST_SECTION = 8
_HAS_ATTRIBUTES, _HAS_RESULTS, _HAS_OPERANDS, _HAS_SUCCESSORS, _HAS_REGIONS, _HAS_USE_LISTS, _HAS_PROPERTIES = (
    1 << bit for bit in range(7)
)
_VERSIONED = re.compile(r"vhlo\.(.+)_v([0-9]+)")
_FUNCTIONS = {"func": "func.func", "call": "func.call", "return": "func.return"}


def read_bytecode(data: bytes, place: str) -> Program:
    """Return the program in a portable artifact.

    Parameters
    ----------
    data
        The bytes of the file.
    place
        The name of the file, for messages.

    Raises
    ------
    RelvmFormatError
        The file is damaged, of a newer version of StableHLO, or exceeds a limit (relvm/frontend/stablehlo/limits.py).
    RelvmUnsupportedError
        The file contains a type or an attribute that is not supported.
    """
    return BytecodeReader(data, place).program()


class BytecodeReader:
    """The reader of one file.

    version: the version of the encoding.
    producer: the name of the program that wrote the file.
    """

    def __init__(self, data: bytes, place: str) -> None:
        self.place = place
        c = ByteCursor(data, 0, len(data), place)
        if c.bytes(min(4, len(data))) != b"ML\xefR":
            c.fail("expected MLIR bytecode, which begins with ML\\xefR", 0)
        self.version = c.varint()
        if self.version > _NEWEST_ENCODING:
            c.fail(f"version {self.version} of MLIR bytecode is not supported; expected at most {_NEWEST_ENCODING}")
        self.producer = c.text()
        self._check_producer()
        self.sections = self._sections(c)
        self.strings: list[bytes] = []
        self.dialects: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, bool, ByteCursor]] = []
        self.types: list[tuple[str, bool, ByteCursor]] = []
        self.properties: list[ByteCursor] = []
        self._known_attributes: dict[int, Any] = {}
        self._known_types: dict[int, AnyType] = {}
        self._depth = 0
        self._operation_count = 0
        self._values: list[list[Value | None]] = []
        self._next_value: list[list[int]] = []

    def _check_producer(self) -> None:
        found = _PRODUCER.fullmatch(self.producer)
        if found is None:
            raise RelvmFormatError(
                f"{self.place}: expected a portable artifact of StableHLO, got MLIR bytecode of"
                f" {shortened(self.producer)!r}; write it with serialize_portable_artifact"
            )
        version = tuple(map(int, found.groups()))
        if version[:2] > NEWEST_VERSION:
            newest = ".".join(map(str, NEWEST_VERSION))
            raise RelvmFormatError(
                f"{self.place}: the artifact has version {found[1]}.{found[2]}.{found[3]} of StableHLO, but relvm reads"
                f" versions up to {newest}; write it for an older target version"
            )

    def _sections(self, c: ByteCursor) -> dict[int, ByteCursor]:
        """Return the sections of the file by their numbers."""
        found: dict[int, ByteCursor] = {}
        while c.left:
            number, part = self._section(c)
            if number > _LAST_SECTION or number in found:
                c.fail(f"section {number} is unknown or occurs twice")
            found[number] = part
        for number in (_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS, _OPERATIONS):
            if number not in found:
                c.fail(f"section {number} is missing")
        return found

    def _section(self, c: ByteCursor) -> tuple[int, ByteCursor]:
        number = c.byte()
        length = c.varint()
        if number & 0x80:  # the section is aligned
            alignment = c.varint()
            if not 0 < alignment <= 1 << 16 or alignment & (alignment - 1):
                c.fail(f"a section has the alignment {alignment}")
            c.bytes(-c.at % alignment)
        return number & 0x7F, c.part(length)

    def program(self) -> Program:
        self._read_strings(self.sections[_STRINGS])
        self._read_dialects(self.sections[_DIALECTS])
        self._read_offsets(self.sections[_OFFSETS], self.sections[_ATTRIBUTES])
        if _PROPERTY_SECTION in self.sections:
            self._read_properties(self.sections[_PROPERTY_SECTION])
        c = self.sections[_OPERATIONS]
        self._values.append([])
        self._next_value.append([0])
        block = self._block(c, is_top=True)
        if len(block.operations) != 1 or block.operations[0].name != "builtin.module":
            c.fail("expected one builtin.module at the top")
        return program_of(block.operations[0], self.place)

    # ---- strings, dialects, types and attributes ----

    def _read_strings(self, c: ByteCursor) -> None:
        """Read the strings.  The sizes come first, in reverse order."""
        sizes = c.items("strings", c.varint)
        if sum(sizes) != c.left:
            c.fail(f"the strings have {sum(sizes)} bytes, but {c.left} are left")
        for size in reversed(sizes):
            text = c.bytes(size)
            if not size or text[-1] != 0:
                c.fail("a string does not end with a zero byte")
            self.strings.append(text[:-1])

    def string_of(self, c: ByteCursor) -> str:
        """Read the index of a string, and return the string."""
        at, number = c.at, c.varint()
        if number >= len(self.strings):
            c.fail(f"string {number} does not exist", at)
        if len(self.strings[number]) > MAX_STRING:
            c.fail(f"a string is longer than {MAX_STRING} bytes", at)
        return self.strings[number].decode("utf-8", "replace")

    def _string(self, c: ByteCursor, number: int) -> str:
        if number >= len(self.strings):
            c.fail(f"string {number} does not exist")
        return self.strings[number].decode("utf-8", "replace")

    def _read_dialects(self, c: ByteCursor) -> None:
        for _ in range(c.count("dialects")):
            if self.version < _DIALECT_VERSIONS:
                self.dialects.append(self.string_of(c))
                continue
            number, is_versioned = c.flagged()
            self.dialects.append(self._string(c, number))
            if is_versioned:
                self._section(c)
        if self.version >= _OPTIONAL_LOCATIONS:
            c.varint()  # the number of names of operations
        while c.left:
            dialect = self._dialect(c)
            for _ in range(c.count("names of operations")):
                number = c.flagged()[0] if self.version >= _PROPERTIES else c.varint()
                self.names.append(f"{dialect}.{self._string(c, number)}")

    def _dialect(self, c: ByteCursor) -> str:
        at, number = c.at, c.varint()
        if number >= len(self.dialects):
            c.fail(f"dialect {number} does not exist", at)
        return self.dialects[number]

    def _read_offsets(self, c: ByteCursor, contents: ByteCursor) -> None:
        """Read the positions of the attributes and types.   contents: the section that contains them."""
        counts = c.varint(), c.varint()
        for found, count in zip((self.attributes, self.types), counts, strict=True):
            while len(found) < count:
                dialect = self._dialect(c)
                for _ in range(c.count("attributes or types")):
                    size, is_custom = c.flagged()
                    found.append((dialect, is_custom, contents.part(size)))
            if len(found) != count:
                c.fail(f"expected {count} attributes or types, got {len(found)}")

    def _read_properties(self, c: ByteCursor) -> None:
        """Read the positions of the properties of operations."""
        self.properties = c.items("properties", lambda: c.part(c.varint()))

    def attribute_of(self, c: ByteCursor) -> Any:
        """Read the index of an attribute, and return the attribute."""
        return self._decoded(c, "attribute", self.attributes, self._known_attributes, self._attribute)

    def type_of(self, c: ByteCursor) -> AnyType:
        """Read the index of a type, and return the type."""
        return self._decoded(c, "type", self.types, self._known_types, self._type)

    def _decoded(
        self,
        c: ByteCursor,
        what: str,
        entries: list[tuple[str, bool, ByteCursor]],
        known: dict[int, Any],
        decode: Callable[[str, bool, ByteCursor], Any],
    ) -> Any:
        at, number = c.at, c.varint()
        if number >= len(entries):
            c.fail(f"{what} {number} does not exist", at)
        if number not in known:
            dialect, is_custom, part = entries[number]
            self._depth += 1
            if self._depth > MAX_DEPTH:
                c.fail(f"{what}s are nested deeper than {MAX_DEPTH} levels, or contain themselves", at)
            known[number] = decode(dialect, is_custom, ByteCursor(part.data, part.at, part.end, part.place))
            self._depth -= 1
        return known[number]

    def _attribute(self, dialect: str, is_custom: bool, c: ByteCursor) -> Any:
        if is_custom and dialect == "vhlo":
            return read_vhlo_attribute(self, c)
        if is_custom and dialect == "builtin":
            return read_builtin_attribute(self, c)
        return self._from_text(c, lambda reader: reader.attribute_or_location(), dialect, is_custom)

    def _type(self, dialect: str, is_custom: bool, c: ByteCursor) -> AnyType:
        if is_custom and dialect == "vhlo":
            return read_vhlo_type(self, c)
        if is_custom and dialect == "builtin":
            return read_builtin_type(self, c)
        found = self._from_text(c, lambda reader: reader.type(), dialect, is_custom)
        return found if isinstance(found, AnyType) else Opaque(str(found))

    def _from_text(self, c: ByteCursor, read: Callable[[Any], Any], dialect: str, is_custom: bool) -> Any:
        """Read an attribute or a type that is stored as text."""
        from relvm.frontend.stablehlo.text_attributes import AttributeReader
        from relvm.frontend.stablehlo.text_cursor import Cursor

        if is_custom:
            return Opaque(f"an attribute or type of the dialect {dialect}")
        text = c.text()
        try:
            return read(AttributeReader(Cursor(text, f"{self.place}: offset {c.at}")))
        except RelvmUnsupportedError:
            return Opaque(shortened(text))

    # ---- operations ----

    def _block(self, c: ByteCursor, *, is_top: bool = False) -> Block:
        count, has_arguments = c.flagged()
        arguments: tuple[Value, ...] = ()
        if has_arguments:
            arguments = tuple(c.items("arguments", lambda: self._argument(c)))
            self._define(c, arguments)
            if self.version >= _USE_LISTS and c.byte():
                self._skip_use_lists(c, len(arguments))
        if count > c.left:
            c.fail(f"expected {count} operations, but only {c.left} bytes are left")
        return Block(arguments, [self._operation(c) for _ in range(count)])

    def _argument(self, c: ByteCursor) -> Value:
        if self.version < _OPTIONAL_LOCATIONS:
            type_ = self.type_of(c)
            self.attribute_of(c)
            return Value(type_)
        at = c.at
        number, has_location = c.flagged()
        if number >= len(self.types):
            c.fail(f"type {number} does not exist", at)
        type_ = self._type_number(number, at, c)
        if has_location:
            self.attribute_of(c)
        return Value(type_)

    def _type_number(self, number: int, at: int, c: ByteCursor) -> AnyType:
        """Return the type at index `number`.   at: the position of the index in the file, for messages."""
        if number not in self._known_types:
            dialect, is_custom, part = self.types[number]
            self._depth += 1
            if self._depth > MAX_DEPTH:
                c.fail(f"types are nested deeper than {MAX_DEPTH} levels", at)
            self._known_types[number] = self._type(
                dialect, is_custom, ByteCursor(part.data, part.at, part.end, part.place)
            )
            self._depth -= 1
        return self._known_types[number]

    def _skip_use_lists(self, c: ByteCursor, values: int) -> None:
        """Skip the use-list orders of results or arguments, which MLIR stores optionally.

        values: the number of these results or arguments.
        """
        for _ in range(c.count("use lists") if values > 1 else 1):
            if values > 1:
                c.varint()
            count, _ = c.flagged()
            if count > c.left:
                c.fail(f"expected {count} uses, but only {c.left} bytes are left")
            for _ in range(count):
                c.varint()

    def _define(self, c: ByteCursor, values: tuple[Value, ...]) -> None:
        scope, counters = self._values[-1], self._next_value[-1]
        if counters[-1] + len(values) > len(scope):
            if len(self._next_value) > 1 or len(counters) > 1:
                c.fail("a region defines more values than it states")
            scope += [None] * (counters[-1] + len(values) - len(scope))
        for value in values:
            scope[counters[-1]] = value
            counters[-1] += 1

    def _operand(self, c: ByteCursor) -> Value:
        at, number = c.at, c.varint()
        scope = self._values[-1]
        value = scope[number] if number < len(scope) else None
        if value is None:
            c.fail(f"value {number} is used, but not defined before", at)
        return value

    def _operation(self, c: ByteCursor) -> Operation:
        self._operation_count += 1
        if self._operation_count > MAX_OPERATIONS:
            c.fail(f"the program has more than {MAX_OPERATIONS} operations")
        at, number = c.at, c.varint()
        if number >= len(self.names):
            c.fail(f"operation {number} does not exist", at)
        name, place = self.names[number], f"{self.place}: offset {at}"
        mask = c.byte()
        location = self.attribute_of(c)
        attributes: Attributes = {}
        if mask & _HAS_ATTRIBUTES:
            found = self.attribute_of(c)
            if not isinstance(found, dict):
                c.fail(f"the attributes of {name} are not a dictionary", at)
            attributes = found
        if mask & _HAS_PROPERTIES:
            attributes = {**attributes, **self._properties(c, name, at)}
        types = c.items("results", lambda: self.type_of(c)) if mask & _HAS_RESULTS else []
        operands = c.items("operands", lambda: self._operand(c)) if mask & _HAS_OPERANDS else []
        if mask & _HAS_SUCCESSORS:
            raise RelvmUnsupportedError(f"{place}: {name}: successors of blocks are not supported")
        if mask & _HAS_USE_LISTS:
            self._skip_use_lists(c, len(types))
        results = tuple(map(Value, types))
        self._define(c, results)
        regions: list[Region] = []
        if mask & _HAS_REGIONS:
            count, is_isolated = c.flagged()
            if count > c.left:
                c.fail(f"expected {count} regions, but only {c.left} bytes are left")
            inner = self._region_section(c) if is_isolated and self.version >= _LAZY_REGIONS else c
            regions = [self._region(inner, is_isolated) for _ in range(count)]
        plain = _plain_name(name, place)
        return Operation(
            plain,
            place,
            tuple(operands),
            results,
            flattened(attributes),
            tuple(regions),
            location if isinstance(location, str) else "",
        )

    def _properties(self, c: ByteCursor, name: str, at: int) -> Attributes:
        """Read a reference to the properties of an operation, and return the properties as attributes by name.

        name: the operation.   at: the position of the reference in the file, for messages.
        """
        number = c.varint()
        if number >= len(self.properties):
            c.fail(f"properties {number} do not exist", at)
        part = self.properties[number]
        inside = ByteCursor(part.data, part.at, part.end, part.place)
        names = properties_of(name.removeprefix("vhlo."))
        if names is None:  # an operation without attributes that a converter needs
            return {}
        found = {each: self.attribute_of(inside) for each in names}
        if inside.left:
            inside.fail(f"{name} has more than {len(names)} properties")
        return found

    def _region_section(self, c: ByteCursor) -> ByteCursor:
        """Return the section that contains the regions of an operation that uses no values from outside."""
        number, part = self._section(c)
        if number != _OPERATIONS:
            c.fail(f"expected the regions of an operation, got section {number}")
        return part

    def _region(self, c: ByteCursor, is_isolated: bool) -> Region:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            c.fail(f"regions are nested deeper than {MAX_DEPTH} levels")
        if is_isolated:
            self._values.append([])
            self._next_value.append([])
        blocks = c.count("blocks")
        region = Region([])
        if blocks:
            count = c.varint()
            if count > MAX_VALUES:
                c.fail(f"a region has {counted(count, 'value')}, expected at most {MAX_VALUES}")
            scope, counters = self._values[-1], self._next_value[-1]
            first = len(scope)
            if count > c.left:
                c.fail(f"a region has {counted(count, 'value')}, but only {c.left} bytes are left")
            scope += [None] * count
            counters.append(first)
            region.blocks = [self._block(c) for _ in range(blocks)]
            counters.pop()
            del scope[first:]
        if is_isolated:
            self._values.pop()
            self._next_value.pop()
        self._depth -= 1
        return region


def _plain_name(name: str, place: str) -> str:
    """Return the name of an operation in StableHLO: `stablehlo.add` for `vhlo.add_v1`."""
    if name in ("builtin.module", "vhlo.module"):
        return "builtin.module"
    found = _VERSIONED.fullmatch(name)
    if found is None:
        return name
    if int(found[2]) > _NEWEST_OPERATION:
        raise RelvmFormatError(f"{place}: the operation {name} is unknown; the artifact is of a newer version")
    return _FUNCTIONS.get(found[1], f"stablehlo.{found[1]}")


_NEWEST_OPERATION = 3  # the highest version of an operation
