"""Reader of the text form of MLIR programs: StableHLO's own syntax, and MLIR's generic form."""

from __future__ import annotations

import re
from typing import Any

from relvm.errors import RelvmSyntaxError, counted
from relvm.frontend.stablehlo.limits import MAX_OPERATIONS, MAX_VALUES
from relvm.frontend.stablehlo.operations import FORMATS, flattened
from relvm.frontend.stablehlo.program import (
    AnyType,
    Attributes,
    Block,
    FunctionOf,
    Opaque,
    Operation,
    Program,
    Region,
    Symbol,
    Tensor,
    TupleOf,
    Value,
    program_of,
)
from relvm.frontend.stablehlo.text_attributes import AttributeReader
from relvm.frontend.stablehlo.text_cursor import Cursor

_FLOAT_FORMAT = re.compile(r"e(\d{1,4})m(\d{1,4})")
# Operations that are printed without their dialect inside a function.
_WITHOUT_DIALECT = {"call": "func.call", "return": "func.return", "module": "builtin.module"}


def read_text(text: str, place: str) -> Program:
    """Return the program in the text form of MLIR.

    Parameters
    ----------
    text
        The text: StableHLO's own syntax, or MLIR's generic form.
    place
        The name of the file, for messages.

    Raises
    ------
    RelvmSyntaxError
        The text is malformed, or exceeds a limit (relvm/frontend/stablehlo/limits.py).
    RelvmUnsupportedError
        The text contains a type or an attribute that is not supported.
    """
    return _TextReader(text, place).program()


class _TextReader:
    """The reader of one text.

    scopes: the values that are visible, by name: a dict for each open region, and None where a function begins.
    """

    def __init__(self, text: str, place: str) -> None:
        self.place = place
        self.cursor = Cursor(text, place)
        self.attributes = AttributeReader(self.cursor)
        self.scopes: list[dict[str, Value] | None] = [None, {}]
        self.operation_count = self.value_count = 0

    def program(self) -> Program:
        """Read the whole text."""
        operations = self.operations("end")
        if len(operations) == 1 and operations[0].name == "builtin.module":
            return program_of(operations[0], self.place)
        region = Region([Block((), operations)])
        return program_of(Operation("builtin.module", self.cursor.here(0), regions=(region,)), self.place)

    def operations(self, end: str) -> list[Operation]:
        """Read operations up to the token `end`, or to a label of a block."""
        cursor = self.cursor
        found: list[Operation] = []
        while not (cursor.kind == "end" or cursor.at(end) or cursor.kind == "block"):
            if cursor.kind in ("hash", "bang") and "." not in cursor.text:
                self.attributes.skip_alias()
                continue
            if cursor.kind == "mark" and cursor.source.startswith("{-#", cursor.start):
                stop = cursor.source.find("#-}", cursor.start)
                cursor.move_to(len(cursor.source) if stop < 0 else stop + 3)
                continue
            found.append(self.operation())
        if end != "end" and cursor.kind == "end":
            cursor.expected(repr(end))
        return found

    # ---- operations ----

    def operation(self) -> Operation:
        """Read an operation with its results."""
        cursor = self.cursor
        self.operation_count += 1
        if self.operation_count > MAX_OPERATIONS:
            raise RelvmSyntaxError(f"{cursor.here()}: the program has more than {MAX_OPERATIONS} operations")
        names: list[tuple[str, int]] = []
        if cursor.kind == "value":
            names.append(self.result_name())
            while cursor.accept(","):
                names.append(self.result_name())
            cursor.expect("=")
        start, place = cursor.start, cursor.here()
        with cursor.nested():
            operation = self.generic(place) if cursor.kind == "string" else self.custom(place)
        if cursor.at("loc"):
            operation.location = self.attributes.location()
        count = sum(size for _, size in names)
        if names and count != len(operation.results):
            results = counted(len(operation.results), "result")
            raise RelvmSyntaxError(
                f"{cursor.here(start)}: {operation.name} has {results}, but {counted(count, 'name')}"
            )
        self.value_count += len(operation.results)
        if self.value_count > MAX_VALUES:
            raise RelvmSyntaxError(f"{cursor.here(start)}: the program has more than {MAX_VALUES} values")
        at = 0
        for name, size in names:
            for number in range(size):
                value = operation.results[at]
                value.name = name if size == 1 else f"{name}_{number}"
                self.define(f"{name}#{number}" if size > 1 else name, value, start)
                at += 1
            if size > 1:
                self.define(name, operation.results[at - size], start)
        return operation

    def result_name(self) -> tuple[str, int]:
        """Read the name of results, such as `%0:2`, and return it with their number."""
        cursor = self.cursor
        name = cursor.take("value", "the name of a value such as %0")[1:]
        if "#" in name:
            raise RelvmSyntaxError(f"{cursor.here()}: %{name} cannot be the name of a result")
        size = cursor.integer() if cursor.accept(":") else 1
        if not 0 <= size <= MAX_VALUES:
            raise RelvmSyntaxError(f"{cursor.here()}: %{name} stands for {counted(size, 'result')}")
        return name, size

    def define(self, name: str, value: Value, offset: int) -> None:
        scope = self.scopes[-1]
        assert scope is not None
        if name in scope:
            raise RelvmSyntaxError(f"{self.cursor.here(offset)}: %{name} is defined twice")
        scope[name] = value

    def operand(self) -> Value:
        """Read the name of a value, and return the value."""
        cursor = self.cursor
        if cursor.kind != "value":
            cursor.expected("the name of a value such as %0")
        name = cursor.text[1:]
        if name.endswith("#0"):
            name = name[:-2]
        for scope in reversed(self.scopes):
            if scope is None:
                break
            if name in scope:
                cursor.next()
                return scope[name]
        raise RelvmSyntaxError(f"{cursor.here()}: %{name} is not defined")

    def operand_list(self) -> list[Value]:
        """Read operands that are separated by commas, if the current token is one."""
        cursor = self.cursor
        found: list[Value] = []
        while cursor.kind == "value":
            found.append(self.operand())
            following = cursor.source[cursor.end :].lstrip()[:1] if cursor.at(",") else ""
            if following != "%":
                break
            cursor.next()
        return found

    def generic(self, place: str) -> Operation:
        """Read an operation in the generic form: `"name"(operands) <{attributes}> ({regions}) : type`."""
        cursor = self.cursor
        name = cursor.string()
        operands = cursor.items("(", ")", self.operand)
        if cursor.at("["):
            cursor.unsupported(f"{name}: successors of blocks are not supported")
        attributes: Attributes = {}
        if cursor.at("<"):
            cursor.next()
            attributes.update(self.attributes.dictionary())
            cursor.expect(">")
        regions: list[Region] = []
        if cursor.at("("):
            isolated = name in ("func.func", "builtin.module")
            regions = cursor.items("(", ")", lambda: self.region(is_isolated=isolated))
        if cursor.at("{"):
            attributes.update(self.attributes.dictionary())
        cursor.expect(":")
        start = cursor.start
        type_ = self.attributes.type()
        if not isinstance(type_, FunctionOf):
            raise RelvmSyntaxError(f"{cursor.here(start)}: expected the type of a function, got {type_}")
        self.check_types(name, operands, type_.inputs, start)
        return Operation(
            name, place, tuple(operands), tuple(map(Value, type_.results)), flattened(attributes), tuple(regions)
        )

    def check_types(self, name: str, operands: list[Value], types: tuple[AnyType, ...], offset: int) -> None:
        """Check that the stated types of the operands are those of the values."""
        found = tuple(operand.type for operand in operands)
        if found != types:
            raise RelvmSyntaxError(
                f"{self.cursor.here(offset)}: {name}: the operands have the types ({', '.join(map(str, found))}), but"
                f" the stated types are ({', '.join(map(str, types))})"
            )

    def region(self, *, is_isolated: bool = False, arguments: tuple[tuple[str, Value], ...] = ()) -> Region:
        """Read a region in braces.

        is_isolated: whether the region cannot use values of enclosing regions.
        arguments: the names and values of the arguments that are declared before the region.
        """
        cursor = self.cursor
        offset = cursor.start
        cursor.expect("{")
        depth = len(self.scopes)
        if is_isolated:
            self.scopes.append(None)
        self.scopes.append({})
        for name, value in arguments:
            self.define(name, value, offset)
        blocks: list[Block] = []
        with cursor.nested():
            if cursor.kind != "block" and not cursor.at("}"):
                blocks.append(Block(tuple(value for _, value in arguments), self.operations("}")))
            while cursor.kind == "block":
                cursor.next()
                named = cursor.items("(", ")", self.argument) if cursor.at("(") else []
                cursor.expect(":")
                for name, value, _ in named:
                    self.define(name, value, offset)
                blocks.append(Block(tuple(value for _, value, _ in named), self.operations("}")))
            if not blocks and arguments:
                blocks.append(Block(tuple(value for _, value in arguments), []))
        cursor.expect("}")
        del self.scopes[depth:]
        return Region(blocks)

    def argument(self) -> tuple[str, Value, Attributes]:
        """Read `%name: type {attributes}`."""
        cursor = self.cursor
        name = cursor.take("value", "an argument such as %arg0")[1:]
        cursor.expect(":")
        value = Value(self.attributes.type(), name)
        self.value_count += 1
        attributes = self.attributes.dictionary() if cursor.at("{") else {}
        if cursor.at("loc"):
            self.attributes.location()
        return name, value, attributes

    def custom(self, place: str) -> Operation:
        """Read an operation in its own syntax."""
        cursor = self.cursor
        name = cursor.word("an operation")
        name = _WITHOUT_DIALECT.get(name, name)
        match name:
            case "builtin.module":
                return self.module(place)
            case "func.func":
                return self.function(place)
            case "stablehlo.constant":
                return self.constant(name, place)
            case "stablehlo.while":
                return self.while_(name, place)
            case "stablehlo.reduce" if cursor.at("("):
                return self.reduce(name, place)
            case "sdy.mesh" | "sdy.sharding_constraint":
                return self.sharding(name, place)
        dialect, _, short = name.partition(".")
        if not short:
            cursor.move_to(cursor.start - len(name))
            raise RelvmSyntaxError(f"{place}: expected an operation such as stablehlo.add, got {name!r}")
        form = FORMATS.get(short, "operands") if dialect in ("stablehlo", "chlo", "func", "check") else "operands"
        operands, attributes = self.formatted(form)
        regions = cursor.items("(", ")", self.region) if cursor.at("(") else []
        attributes |= self.attribute_dictionary()
        compares_constant = dialect == "check" and "value" in attributes  # the value contains the only type
        results = () if compares_constant else self.types(name, operands)
        return Operation(
            name, place, tuple(operands), tuple(map(Value, results)), flattened(attributes), tuple(regions)
        )

    def sharding(self, name: str, place: str) -> Operation:
        """Read an operation of the dialect sdy, which JAX writes: a mesh of devices, or a sharding constraint.

        The operation is `sdy.mesh @mesh = <...>` or `sdy.sharding_constraint %x <...> : type`.
        """
        cursor = self.cursor
        operands = self.operand_list()
        if not operands:
            cursor.symbol()
            cursor.expect("=")
        cursor.balanced()
        attributes = self.attribute_dictionary()
        results = self.types(name, operands) if operands else ()
        return Operation(name, place, tuple(operands), tuple(map(Value, results)), attributes)

    def attribute_dictionary(self) -> Attributes:
        """Read `{...}`, `attributes {...}` or `<{...}>`, or nothing."""
        cursor = self.cursor
        found: Attributes = {}
        if cursor.at("<"):
            cursor.next()
            found |= self.attributes.dictionary()
            cursor.expect(">")
        if cursor.accept("attributes") or cursor.at("{"):
            found |= self.attributes.dictionary()
        return found

    def formatted(self, form: str) -> tuple[list[Value], Attributes]:
        """Read operands and attributes in the format `form` (operations.FORMATS)."""
        cursor = self.cursor
        operands: list[Value] = []
        attributes: Attributes = {}
        items = form.split()
        at = 0
        while at < len(items):
            item = items[at]
            at += 1
            if item == "operands":
                operands += self.operand_list()
            elif item == "{?":
                if not self.begins(items, at):
                    at = items.index("?}", at) + 1
            elif item == "?}":
                pass
            elif len(item) > 1 and ":" in item:
                name, _, kind = item.partition(":")
                attributes[name] = getattr(self, f"_attribute_{kind}")()
            else:
                cursor.expect(item)
        return operands, attributes

    def begins(self, items: list[str], at: int) -> bool:
        """Return whether the text continues with the items at positions `at` and `at + 1` of a format.

        If the second item is an attribute, only the first is compared.
        """
        cursor = self.cursor
        if not cursor.at(items[at]):
            return False
        following = items[at + 1]
        if ":" in following:
            return True
        return cursor.source[cursor.end :].lstrip().startswith(following)

    def types(self, name: str, operands: list[Value]) -> tuple[AnyType, ...]:
        """Read the types of an operation after its attributes, and return the types of its results.

        The types are written as a function type, such as `(T, T) -> T`, or as a list.  The last type of a list is that
        of the only result, except that a return and a check have no results, and an optimization_barrier has one for
        each type.  A check of operands of the same type states it once.
        """
        cursor = self.cursor
        if not cursor.accept(":"):
            return () if name.endswith(".return") and not operands else cursor.expected("':'")
        start = cursor.start
        if cursor.at("("):
            inputs = tuple(cursor.items("(", ")", self.attributes.type))
            cursor.expect("->")
            self.check_types(name, operands, inputs, start)
            return self.attributes.result_types()
        found = [self.attributes.type()]
        while cursor.accept(","):
            found.append(self.attributes.type())
        if cursor.accept("->"):
            return self.attributes.result_types()
        if name.endswith(".return"):
            self.check_types(name, operands, tuple(found), start)
            return ()
        if name.startswith("check."):
            self.check_types(name, operands, tuple(found * len(operands) if len(found) == 1 else found), start)
            return ()
        if name == "stablehlo.optimization_barrier":
            return tuple(found)
        if name == "stablehlo.tuple" and not isinstance(found[-1], TupleOf):
            cursor.expected("the type of a tuple")
        return (found[-1],)

    # ---- attributes of formats ----

    def _attribute_ints(self) -> tuple[int, ...]:
        return tuple(self.cursor.items("[", "]", self.cursor.integer))

    def _attribute_int(self) -> int:
        return self.cursor.integer()

    def _attribute_number(self) -> int | float:
        return self.attributes.number()

    def _attribute_word(self) -> str:
        return self.cursor.word()

    def _attribute_words(self) -> tuple[str, ...]:
        return tuple(self.cursor.items("[", "]", self.cursor.word))

    def _attribute_string(self) -> str:
        return self.cursor.string()

    def _attribute_attribute(self) -> Any:
        return self.attributes.attribute()

    def _attribute_structure(self) -> Any:
        return Opaque(self.cursor.balanced())

    def _attribute_symbol(self) -> Any:
        return Symbol(self.cursor.symbol())

    def _attribute_pair(self) -> Attributes:
        """Read `[0] x [1]`: dimensions of the left and of the right operand."""
        kind = "batching" if self.cursor.source[: self.cursor.start].rstrip(" =").endswith("batching_dims") else ""
        left = self._attribute_ints()
        self.cursor.expect("x")
        name = kind or "contracting"
        return {f"lhs_{name}_dimensions": left, f"rhs_{name}_dimensions": self._attribute_ints()}

    def _attribute_float_format(self) -> Attributes:
        """Read a float format such as `e5m10`."""
        match = _FLOAT_FORMAT.fullmatch(self.cursor.text)
        if match is None:
            self.cursor.expected("a float format such as e5m10")
        self.cursor.next()
        return {"exponent_bits": int(match[1]), "mantissa_bits": int(match[2])}

    def _attribute_ranges(self) -> Attributes:
        """Read the ranges of a slice: `[0:4, 1:9:2]`."""
        found = self.cursor.items("[", "]", self._range)
        starts, limits, strides = zip(*found, strict=True) if found else ((), (), ())
        return {"start_indices": starts, "limit_indices": limits, "strides": strides}

    def _range(self) -> tuple[int, int, int]:
        cursor = self.cursor
        start = cursor.integer()
        cursor.expect(":")
        limit = cursor.integer()
        return start, limit, cursor.integer() if cursor.accept(":") else 1

    def _attribute_convolution(self) -> Attributes:
        return self.attributes.convolution()

    def _attribute_window(self) -> Attributes:
        """Read the window of a convolution: `{stride = [1, 1], pad = [[0, 1], [0, 1]], ...}`."""
        names = {
            "stride": "window_strides",
            "pad": "padding",
            "lhs_dilate": "lhs_dilation",
            "rhs_dilate": "rhs_dilation",
            "reverse": "window_reversal",
        }
        found: Attributes = {}

        def entry() -> None:
            key = self.cursor.word("stride, pad, lhs_dilate, rhs_dilate or reverse")
            if key not in names:
                raise RelvmSyntaxError(f"{self.cursor.here()}: unknown property {key!r} of a window")
            self.cursor.expect("=")
            found[names[key]] = self.attributes.attribute()

        self.cursor.items("{", "}", entry)
        return found

    # ---- operations with regions ----

    def module(self, place: str) -> Operation:
        """Read `module @name attributes {...} {...}`."""
        cursor = self.cursor
        attributes: Attributes = {}
        if cursor.kind == "symbol":
            attributes["sym_name"] = cursor.symbol()
        if cursor.accept("attributes"):
            attributes |= self.attributes.dictionary()
        return Operation("builtin.module", place, attributes=attributes, regions=(self.region(is_isolated=True),))

    def function(self, place: str) -> Operation:
        """Read `func.func public @name(%arg0: type) -> type attributes {...} {...}`."""
        cursor = self.cursor
        attributes: Attributes = {}
        if cursor.at("public", "private", "nested"):
            attributes["sym_visibility"] = cursor.next()
        attributes["sym_name"] = cursor.symbol()
        arguments = cursor.items("(", ")", self.declared_argument)
        results: list[tuple[AnyType, Attributes]] = []
        if cursor.accept("->"):
            results = cursor.items("(", ")", self.result) if cursor.at("(") else [(self.attributes.type(), {})]
        attributes["function_type"] = FunctionOf(
            tuple(value.type for _, value, _ in arguments), tuple(type_ for type_, _ in results)
        )
        attributes["arg_attrs"] = tuple(each for *_, each in arguments)
        attributes["res_attrs"] = tuple(each for _, each in results)
        if cursor.accept("attributes"):
            attributes |= self.attributes.dictionary()
        regions: tuple[Region, ...] = ()
        if cursor.at("{"):
            named = tuple((name, value) for name, value, _ in arguments)
            region = self.region(is_isolated=True, arguments=named)
            regions = (region if region.blocks else Region([Block((), [])]),)
        return Operation("func.func", place, attributes=attributes, regions=regions)

    def declared_argument(self) -> tuple[str, Value, Attributes]:
        """Read an argument of a function, which has no name if the function is only declared."""
        if self.cursor.kind == "value":
            return self.argument()
        type_, attributes = self.result()
        return "", Value(type_), attributes

    def result(self) -> tuple[AnyType, Attributes]:
        type_ = self.attributes.type()
        return type_, self.attributes.dictionary() if self.cursor.at("{") else {}

    def constant(self, name: str, place: str) -> Operation:
        """Read `stablehlo.constant dense<...> : type`."""
        attributes = self.attribute_dictionary()
        if self.cursor.at("("):  # () {value = ...} : () -> type
            self.cursor.items("(", ")", self.operand)
            attributes |= self.attribute_dictionary()
        if "value" in attributes:
            results = self.types(name, [])
        else:
            value = attributes["value"] = self.attributes.attribute()
            results = (getattr(value, "type", None) or self.cursor.expected("dense elements"),)
        return Operation(name, place, results=tuple(map(Value, results)), attributes=attributes)

    def while_(self, name: str, place: str) -> Operation:
        """Read `stablehlo.while(%iterArg = %0, ...) : types attributes {...} cond {...} do {...}`."""
        cursor = self.cursor
        pairs = cursor.items("(", ")", self.initialized)
        types: list[AnyType] = []
        if cursor.accept(":"):
            types.append(self.attributes.type())
            while cursor.accept(","):
                types.append(self.attributes.type())
        operands = [operand for _, operand in pairs]
        self.check_types(name, operands, tuple(types), cursor.start)
        attributes = self.attribute_dictionary()
        regions = []
        for word in ("cond", "do"):
            cursor.expect(word)
            named = tuple((argument, Value(type_, argument)) for (argument, _), type_ in zip(pairs, types, strict=True))
            regions.append(self.region(arguments=named))
        return Operation(name, place, tuple(operands), tuple(map(Value, types)), attributes, tuple(regions))

    def initialized(self) -> tuple[str, Value]:
        """Read `%iterArg = %0`."""
        name = self.cursor.take("value", "a value such as %iterArg")[1:]
        self.cursor.expect("=")
        return name, self.operand()

    def reduce(self, name: str, place: str) -> Operation:
        """Read `stablehlo.reduce(%0 init: %1), ... across dimensions = [0] : types reducer(...) {...}`.

        The reducer can also be a single operation: `applies stablehlo.add across dimensions = [0] : types`.
        """
        cursor = self.cursor
        pairs = [self.reduced()]
        while cursor.accept(","):
            pairs.append(self.reduced())
        applied = cursor.word("an operation") if cursor.accept("applies") else ""
        cursor.expect("across")
        cursor.expect("dimensions")
        cursor.expect("=")
        attributes: Attributes = {"dimensions": self._attribute_ints()} | self.attribute_dictionary()
        operands = [each for each, _ in pairs] + [each for _, each in pairs]
        results = self.types(name, operands)
        elements = [
            Tensor(operand.type.element, ()) if isinstance(operand.type, Tensor) else operand.type
            for operand in operands[len(pairs) :]
        ]
        if applied:
            region = _single_operation_region(applied, elements[0], place)
        else:
            cursor.expect("reducer")
            names: list[list[tuple[str, Value]]] = []
            while cursor.at("("):
                names.append([(each, value) for each, value, _ in cursor.items("(", ")", self.argument)])
            if any(len(pair) != 2 for pair in names):
                raise RelvmSyntaxError(f"{place}: {name}: expected pairs of arguments of the reducer")
            ordered = tuple(pair[side] for side in (0, 1) for pair in names)
            region = self.region(arguments=ordered)
        return Operation(name, place, tuple(operands), tuple(map(Value, results)), attributes, (region,))

    def reduced(self) -> tuple[Value, Value]:
        """Read `(%0 init: %1)`."""
        cursor = self.cursor
        cursor.expect("(")
        operand = self.operand()
        cursor.expect("init")
        cursor.expect(":")
        init = self.operand()
        cursor.expect(")")
        return operand, init


def _single_operation_region(name: str, element: AnyType, place: str) -> Region:
    """Return a region of two arguments that applies the operation `name` to them."""
    left, right, result = Value(element), Value(element), Value(element)
    applied = Operation(name, place, (left, right), (result,))
    returned = Operation("stablehlo.return", place, (result,))
    return Region([Block((left, right), [applied, returned])])
