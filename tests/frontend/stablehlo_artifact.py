"""Writer of portable artifacts for tests: MLIR bytecode of the versioned dialect, from a program in memory.

It writes the operations that the tests use.  Version 6 of the encoding stores attributes as properties, as artifacts
do since StableHLO 0.15.  Version 1 stores them as a dictionary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.frontend.stablehlo.element_types import numpy_of_element
from relvm.frontend.stablehlo.operations import properties_of
from relvm.frontend.stablehlo.program import (
    Block,
    Elements,
    ElementType,
    Function,
    FunctionOf,
    Operation,
    Program,
    Symbol,
    Tensor,
    Value,
)
from relvm.frontend.stablehlo.vhlo import ELEMENT_TYPES, ENUMERATIONS

_ENUMERATION_OF = {
    "comparison_direction": 3,
    "compare_type": 4,
    "fft_type": 7,
    "rng_algorithm": 12,
    "rng_distribution": 13,
    "transpose_a": 16,
}
_DEFAULTS: dict[str, Any] = {"compare_type": "NOTYPE", "precision_config": ()}


def varint(value: int) -> bytes:
    """Return an unsigned integer in the variable-length encoding."""
    size = max(1, -(-value.bit_length() // 7))
    if size > 8:
        return b"\0" + value.to_bytes(8, "little")
    return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")


def signed(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def section(number: int, data: bytes) -> bytes:
    return bytes((number,)) + varint(len(data)) + data


class _Table:
    """Items by number, in order of their first use."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def number(self, item: Any) -> int:
        if item not in self.items:
            self.items.append(item)
        return self.items.index(item)


class _Writer:
    def __init__(self, version: int) -> None:
        self.version = version
        self.strings = _Table()
        self.names = _Table()
        self.attributes = _Table()  # (dialect, bytes)
        self.types = _Table()
        self.properties: list[bytes] = []

    def string(self, text: str) -> bytes:
        return varint(self.strings.number(text.encode()))

    def type(self, type_: Any) -> int:
        match type_:
            case ElementType(name):
                code = next(code for code, known in ELEMENT_TYPES.items() if known == name)
                data = varint(code)
            case Tensor(element, shape):
                dims = [-(1 << 63) if dim is None else dim for dim in shape]
                data = varint(20) + varint(len(dims)) + b"".join(map(signed, dims)) + varint(self.type(element))
            case FunctionOf(inputs, results):
                parts = [
                    varint(len(part)) + b"".join(varint(self.type(each)) for each in part) for part in (inputs, results)
                ]
                data = varint(8) + b"".join(parts)
            case _:
                raise AssertionError(type_)
        return self.types.number(("vhlo", data))

    def attribute(self, name: str, value: Any) -> int:
        match value:
            case str() if name in _ENUMERATION_OF:
                code = _ENUMERATION_OF[name]
                data = varint(code) + varint(ENUMERATIONS[code].index(value))
            case bool():
                data = varint(2) + varint(value)
            case int():
                data = varint(9) + varint(self.type(ElementType("i64"))) + signed(value)
            case str() | Symbol():
                text = value.name if isinstance(value, Symbol) else value
                data = varint(14) + self.string(text)
            case Elements(type_, array):
                blob = np.ascontiguousarray(array).tobytes()
                data = varint(15) + varint(self.type(type_)) + varint(len(blob)) + blob
            case tuple() if value and all(isinstance(item, int) for item in value):
                return self.attribute(
                    name, Elements(Tensor(ElementType("i64"), (len(value),)), np.array(value, np.int64))
                )
            case tuple():
                data = varint(1) + varint(len(value)) + b"".join(varint(self.attribute("", item)) for item in value)
            case dict():
                data = varint(6) + varint(0)
            case FunctionOf():
                data = varint(17) + varint(self.type(value))
            case _:
                raise AssertionError((name, value))
        return self.attributes.number(("vhlo", data))

    def builtin(self, data: bytes) -> int:
        return self.attributes.number(("builtin", data))

    def location(self) -> bytes:
        return varint(self.builtin(varint(15)))

    def operation(self, operation: Operation, numbers: dict[Value, int], counter: list[int]) -> bytes:
        short = operation.name.partition(".")[2]
        full = "builtin.module" if operation.name == "builtin.module" else f"vhlo.{short}_v1"
        names = properties_of(f"{short}_v1") or ()
        given = {name: operation.attributes.get(name, _DEFAULTS.get(name, ())) for name in names}
        mask, rest = 0, b""
        if names and self.version >= 5:
            mask |= 64
            self.properties.append(b"".join(varint(self.attribute(name, given[name])) for name in names))
            rest += varint(len(self.properties) - 1)
        elif names:
            mask |= 1
            entries = b"".join(
                varint(self.builtin(varint(2) + self.string(name))) + varint(self.attribute(name, given[name]))
                for name in names
            )
            rest += varint(self.builtin(varint(1) + varint(len(names)) + entries))
        if operation.results:
            mask |= 2
            rest += varint(len(operation.results)) + b"".join(varint(self.type(v.type)) for v in operation.results)
        if operation.operands:
            mask |= 4
            rest += varint(len(operation.operands)) + b"".join(varint(numbers[v]) for v in operation.operands)
        for value in operation.results:
            numbers[value] = counter[0]
            counter[0] += 1
        if operation.regions:
            mask |= 16
            isolated = operation.name in ("builtin.module", "func.func")
            rest += varint(len(operation.regions) << 1 | isolated)
            inside = b"".join(self.region(region.blocks, numbers, counter, isolated) for region in operation.regions)
            rest += section(4, inside) if isolated and self.version >= 2 else inside
        name = varint(self.names.number(full))
        return name + bytes((mask,)) + self.location() + rest

    def region(self, blocks: list[Block], numbers: dict[Value, int], counter: list[int], isolated: bool) -> bytes:
        values = sum(len(block.arguments) + sum(len(each.results) for each in block.operations) for block in blocks)
        first = 0 if isolated else len(numbers)
        inner = {} if isolated else dict(numbers)
        # The numbers of a region that is not isolated follow all numbers of the region around it.
        start = [first if isolated else self.region_size]
        outer, self.region_size = getattr(self, "region_size", 0), start[0] + values
        data = varint(len(blocks)) + varint(values)
        data += b"".join(self.block(block, inner, start) for block in blocks)
        self.region_size = outer
        return data

    def block(self, block: Block, numbers: dict[Value, int], counter: list[int]) -> bytes:
        data = varint(len(block.operations) << 1 | bool(block.arguments))
        if block.arguments:
            data += varint(len(block.arguments))
            for value in block.arguments:
                type_ = self.type(value.type)
                data += varint(type_ << 1) if self.version >= 4 else varint(type_) + self.location()
                numbers[value] = counter[0]
                counter[0] += 1
            if self.version >= 3:
                data += b"\0"
        return data + b"".join(self.operation(each, numbers, counter) for each in block.operations)

    region_size = 0

    def file(self, module: Operation, producer: str) -> bytes:
        body = varint(1 << 1) + self.operation(module, {}, [0])
        dialects = ["builtin", "vhlo"]
        grouped = [[name for name in self.names.items if name.startswith(f"{dialect}.")] for dialect in dialects]
        order = [name for group in grouped for name in group]
        if order != self.names.items:  # the numbers of operations follow their dialects
            self.names.items[:] = order
            self.attributes.items.clear()
            self.types.items.clear()
            self.properties.clear()
            return self.file(module, producer)
        offsets, contents = varint(len(self.attributes.items)) + varint(len(self.types.items)), b""
        for items in (self.attributes.items, self.types.items):
            for dialect, data in items:
                offsets += varint(dialects.index(dialect)) + varint(1) + varint(len(data) << 1 | 1)
                contents += data
        names = varint(len(dialects))
        for dialect in dialects:
            number = self.strings.number(dialect.encode())
            names += varint(number << 1) if self.version >= 1 else varint(number)
        if self.version >= 4:
            names += varint(len(order))
        for number, group in enumerate(grouped):
            names += varint(number) + varint(len(group))
            for name in group:
                text = self.strings.number(name.partition(".")[2].encode())
                names += varint(text << 1 | 1) if self.version >= 5 else varint(text)
        texts = [text + b"\0" for text in self.strings.items]
        strings = varint(len(texts)) + b"".join(varint(len(text)) for text in reversed(texts)) + b"".join(texts)
        data = b"ML\xefR" + varint(self.version) + producer.encode() + b"\0"
        data += section(0, strings) + section(1, names) + section(2, contents) + section(3, offsets) + section(4, body)
        if self.version >= 5:
            data += section(8, varint(len(self.properties)) + b"".join(varint(len(p)) + p for p in self.properties))
        return data


def module_of(program: Program) -> Operation:
    """Return the operation of the module that contains the functions of a program."""
    return Operation("builtin.module", "", regions=(_region([_function(each) for each in program.functions.values()]),))


def _region(operations: list[Operation]) -> Any:
    from relvm.frontend.stablehlo.program import Region

    return Region([Block((), operations)])


def _function(function: Function) -> Operation:
    from relvm.frontend.stablehlo.program import Region

    attributes = {
        "sym_name": function.name,
        "function_type": function.type,
        "sym_visibility": "private" if function.is_private else "",
    }
    return Operation("func.func", "", attributes=attributes, regions=(Region([function.body]),))


def artifact(program: Program, *, version: int = 6, producer: str = "StableHLO_v1.16.0") -> bytes:
    """Return a program as a portable artifact.   version: the version of the encoding of MLIR bytecode."""
    assert numpy_of_element("f32") is not None
    return _Writer(version).file(module_of(program), producer)
