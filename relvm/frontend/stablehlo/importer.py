"""Import of a StableHLO program as a module.

A converter (relvm/frontend/stablehlo/ops/) turns each operation into operator calls.  A function of the program becomes
a function of the module.  A private function whose types have unknown dimensions is inlined where it is called, so that
its sizes are known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from relvm.errors import (
    RelvmError,
    RelvmFormatError,
    RelvmTypeError,
    RelvmUnsupportedError,
    counted,
    near_matches,
    resources,
    shortened,
)
from relvm.frontend.common.problems import expect_no_problems
from relvm.frontend.stablehlo.complex_numbers import complex_converter, has_complex_numbers, is_complex, real_type
from relvm.frontend.stablehlo.context import ImportContext
from relvm.frontend.stablehlo.element_types import dtype_of_element
from relvm.frontend.stablehlo.limits import MAX_OPERATIONS
from relvm.frontend.stablehlo.program import (
    AnyType,
    Block,
    Function,
    Operation,
    Program,
    Tensor,
    TupleOf,
    Value,
)
from relvm.frontend.stablehlo.quantization import convert_with_expressed_types, needs_expressed_types
from relvm.frontend.stablehlo.registry import (
    Converter,
    Node,
    converter_for,
    import_converters,
    reason_for_refusal,
    supported_operations,
)
from relvm.frontend.stablehlo.symbolic_values import is_small_integer
from relvm.ir.expr import Expr, Module, Tuple, constant
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType, TupleType, Type

import_converters()

_RETURNS = ("func.return", "stablehlo.return")
_MAX_INLINED = 32  # nested calls of functions that are inlined
_SOURCE_LINE = re.compile(r"[^():]*:\d+:\d+")
# Exceptions that a converter raises for a malformed operation.
_MALFORMED = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Unimported(Exception):
    """Raised when an operation has an operand that could not be imported."""


def from_stablehlo(model: str | os.PathLike[str] | bytes, *, name: str = "model") -> Module:
    """Import a StableHLO program.

    Parameters
    ----------
    model
        The path of a file, or its contents: MLIR text, or a portable artifact (MLIR bytecode of the versioned dialect).
    name
        The name of the program in messages, if `model` is not a path.

    Returns
    -------
    Module
        A module with the functions of the program.  `main` is public, and so is every function that the program does
        not declare private.  An unknown dimension of a parameter becomes a dimension variable.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmSyntaxError
        The text is malformed.  The message contains the line and the column.
    RelvmFormatError
        The artifact is damaged or of a newer version, or the program violates a rule of StableHLO.
    RelvmUnsupportedError
        relvm does not support some operations or types.  The message lists up to 100 of them.
    RelvmTypeError
        The types of an operation do not fit together.

    Notes
    -----
    Source: the StableHLO specification, version 1.
    """
    from relvm.frontend.stablehlo.read_program import read_program

    with resources("from_stablehlo"):
        return import_program(read_program(model, name))


def import_program(program: Program) -> Module:
    """Import a program that a reader has read.  The errors are those of `from_stablehlo`."""
    importer = Importer(program)
    return importer.module()


class Importer(ImportContext):
    """The import of one program.

    problems: the messages of operations that could not be imported, in order.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.problems: dict[str, None] = {}
        self._functions: dict[str, str] = {}  # a function of the program -> its name in the module
        self._operations = 0
        self._inlined: list[str] = []
        self._searched: set[str] = set()  # functions that `record_refusals` has searched

    def module(self) -> Module:
        """Return the module of the program."""
        program = self.program
        if not program.functions:
            raise RelvmFormatError(f"{program.place}: the program has no functions")
        public = [function for function in program.functions.values() if not function.is_private]
        if "main" in program.functions:
            public = [program.functions["main"], *(each for each in public if each.name != "main")]
        if not public:
            raise RelvmFormatError(f"{program.place}: the program has no public function")
        needed = reachable_functions(program, public)
        self.import_functions(needed, {function.name for function in public})
        expect_no_problems(program.place, self.problems, "operations")
        return self.builder.module()

    # ---- functions ----

    def import_functions(self, functions: list[Function], public: Collection[str]) -> None:
        """Import functions of the program, except private ones whose types have unknown dimensions.

        public: the names of the public functions.
        """
        for function in functions:
            self._functions[function.name] = self.unique_name(identifier(function.name, "function"))
        imported = [function for function in functions if function.name in public or _is_static(function)]
        for function in imported:
            self._declare(function)
        for function in imported:
            self._import_function(function, is_private=function.name not in public)

    def _declare(self, function: Function) -> None:
        if not _is_static(function):
            return
        try:
            params = self._params(function)
            result = _single([self.type_of(type_) for type_ in function.type.results])
        except RelvmUnsupportedError:
            return
        self.builder.declare(self._functions[function.name], params, result)

    def _params(self, function: Function) -> list[tuple[str, Type]]:
        params: list[tuple[str, Type]] = []
        names: set[str] = set()
        for number, argument in enumerate(function.body.arguments):
            if number == self._platform_argument(function):
                continue
            name = identifier(argument.name, f"arg{number}") if argument.name else f"arg{number}"
            name = name if name not in names else f"arg{number}_{len(names)}"
            names.add(name)
            params.append((name, self.type_of(argument.type, name)))
        return params

    def _platform_argument(self, function: Function) -> int | None:
        """Return the index of the parameter for the platform index, or None if the function has no such parameter."""
        if self.program.platform_index is None or function.name != "main":
            return None
        found = (attributes.get("jax.global_constant") for attributes in function.argument_attributes)
        return next((number for number, name in enumerate(found) if name == "_platform_index"), None)

    def _import_function(self, function: Function, *, is_private: bool) -> None:
        self.builder.place = function.place
        try:
            params = self._params(function)
        except RelvmUnsupportedError as error:
            self.problems[f"{function.place}: function {shortened(function.name)}: {error}"] = None
            return
        values: dict[Value, Expr] = {}
        imported = False
        try:
            with self.builder.function(self._functions[function.name], params, private=is_private) as variables:
                arguments = list(function.body.arguments)
                if (number := self._platform_argument(function)) is not None:
                    values[arguments.pop(number)] = constant(np.array(self.program.platform_index, np.int32))
                values.update(zip(arguments, variables, strict=True))
                results = self.import_block(function.body, values)
                self._expect_result_types(function, results)
                self.builder.ret(results[0] if len(results) == 1 else Tuple(tuple(results)))
                imported = True
        except Unimported:
            if imported:
                raise

    def _expect_result_types(self, function: Function, results: list[Expr]) -> None:
        declared = function.type.results
        if len(results) != len(declared):
            values = counted(len(results), "value")
            raise RelvmFormatError(
                f"{function.place}: function {function.name} returns {values}, expected {len(declared)}"
            )

    def call(self, name: str, args: list[Expr]) -> tuple[Expr, ...]:
        """Call a function of the program, and return its results.

        A function whose parameters have unknown dimensions is inlined.  So is a function that computes integers from
        sizes, so that the sizes that depend on them are expressions of these sizes.
        """
        function = self.program.functions.get(name)
        if function is None:
            raise RelvmFormatError(f"no function {shortened(name)}{near_matches(name, self.program.functions)}")
        if len(args) != len(function.body.arguments):
            raise RelvmFormatError(
                f"function {shortened(name)} takes {counted(len(function.body.arguments), 'argument')}, got {len(args)}"
            )
        computes_sizes = (
            all(map(is_small_integer, (*function.body.arguments, *_returned(function))))
            and any(map(self.symbolic.is_size, args))
            and function.name not in self._inlined
        )
        if self.inlines_all or computes_sizes or not _is_static(function):
            return self._inline(function, args)
        count = len(function.type.results)
        result = self.builder.call(self._functions[name], *args)
        if count == 1:
            return (result,)
        node = Node(self, self.operation or Operation("func.call", self.program.place), args, {})
        return node.items(result)

    def _inline(self, function: Function, args: list[Expr]) -> tuple[Expr, ...]:
        if function.name in self._inlined or len(self._inlined) >= _MAX_INLINED:
            raise RelvmUnsupportedError(
                f"function {shortened(function.name)} must be inlined, but calls itself or is nested deeper than"
                f" {_MAX_INLINED} calls"
            )
        self._inlined.append(function.name)
        try:
            return tuple(self.import_block(function.body, dict(zip(function.body.arguments, args, strict=True))))
        finally:
            self._inlined.pop()

    # ---- blocks and operations ----

    def import_block(self, block: Block, values: dict[Value, Expr]) -> list[Expr]:
        """Import the operations of a block, and return the values that it returns.

        values: the values that the block can use.  The results of its operations are added.
        """
        for operation in block.operations:
            if operation.name in _RETURNS:
                return [self.lookup(operand, values) for operand in operation.operands]
            self.import_operation(operation, values)
        return []

    def lookup(self, value: Value, values: Mapping[Value, Expr]) -> Expr:
        """Return the expression of a value."""
        if value not in values:
            raise Unimported
        return values[value]

    def import_operation(self, operation: Operation, values: dict[Value, Expr]) -> None:
        """Import an operation, and add its results to `values`.

        If the operation is not supported, record the problem.  If an operand could not be imported, record only the
        problems that do not depend on the operands.
        """
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            raise RelvmFormatError(f"{self.program.place}: more than {MAX_OPERATIONS} operations after inlining")
        here = self.description(operation)
        with self._at(operation):
            try:
                operands = [self.lookup(operand, values) for operand in operation.operands]
                self.symbolic.define(operation, values)
                results = self._convert(operation, operands, values)
                if len(results) != len(operation.results):
                    raise RelvmFormatError(f"expected {counted(len(results), 'result')}, got {len(operation.results)}")
                for declared, result in zip(operation.results, results, strict=True):
                    values[declared] = self._checked(declared.type, result)
                self.symbolic.follow(operation, values)
            except Unimported:
                self.record_refusals(operation)
            except RelvmUnsupportedError as error:
                self.problems[_with_place(str(error), here, self.program.place)] = None
            except RelvmError as error:
                if str(error).startswith(self.program.place):
                    raise
                raise type(error)(_with_place(str(error), here, self.program.place)) from error
            except _MALFORMED as error:
                raise RelvmFormatError(f"{here}: malformed: {type(error).__name__}: {error}") from error

    def record_refusals(self, operation: Operation) -> None:
        """Record which operations are not supported whatever their operands are: this one, and those that it runs.

        The functions that it calls are included if they are only imported where they are called.
        """
        waiting = [operation]
        while waiting:
            each = waiting.pop()
            try:
                self._converter(each)
            except RelvmUnsupportedError as error:
                self.problems[_with_place(str(error), self.description(each), self.program.place)] = None
            blocks = [block for region in each.regions for block in region.blocks]
            for name in _callees(each):
                function = self.program.functions.get(name)
                if function is not None and not _is_static(function) and name not in self._searched:
                    self._searched.add(name)
                    blocks.append(function.body)
            waiting += [inner for block in blocks for inner in block.operations if inner.name not in _RETURNS]

    def description(self, operation: Operation) -> str:
        """Return the place and the name of an operation, for messages."""
        here = f"{operation.place}: {operation.name}"
        return f"{here} ({shortened(operation.location)})" if operation.location else here

    def origin(self, operation: Operation) -> str:
        """Return the source location that is recorded for the expressions of an operation."""
        found = _SOURCE_LINE.search(operation.location)
        return found[0] if found else operation.place

    @contextmanager
    def _at(self, operation: Operation) -> Iterator[None]:
        """A context manager that makes `operation` the origin of the expressions that are emitted."""
        before = self.builder.place, self.operation
        self.builder.place = self.origin(operation)
        self.operation = operation
        try:
            yield
        finally:
            self.builder.place, self.operation = before

    def _convert(self, operation: Operation, operands: list[Expr], values: dict[Value, Expr]) -> tuple[Expr, ...]:
        convert = self._converter(operation)
        node = Node(self, operation, operands, values)
        if needs_expressed_types(operation):
            return convert_with_expressed_types(node, convert)
        results = convert(node)
        return results if isinstance(results, tuple) else (results,)

    def _converter(self, operation: Operation) -> Converter:
        """Return the converter of an operation.

        Raises
        ------
        RelvmUnsupportedError
            relvm does not support the operation, whatever its operands are.
        """
        convert = converter_for(operation.name)
        if has_complex_numbers(operation):
            convert = complex_converter(operation, convert)
        if convert is None:
            for value in (*operation.operands, *operation.results):
                self.type_of(value.type)
        reason = reason_for_refusal(operation)
        if convert is None or reason:
            known = near_matches(operation.name, supported_operations())
            raise RelvmUnsupportedError(reason or f"the operation is not supported{known}")
        for result in operation.results:
            _expect_element_type(real_type(result.type))
        return convert

    def _checked(self, declared: AnyType, value: Expr) -> Expr:
        """Return `value`, a result of an operation, after comparing its type with the declared type.

        A declared size that is not known for `value` is checked at run time.

        Raises
        ------
        RelvmTypeError
            The types contradict each other.
        """
        if is_complex(declared) and isinstance(value, Tuple):
            checked = tuple(self._checked(real_type(declared), part) for part in value.fields)
            return Tuple(checked, type=TupleType(tuple(part.type for part in checked)))
        if not isinstance(declared, Tensor) or not isinstance(value.type, TensorType):
            return value
        type_ = value.type
        dtype = dtype_of_element(declared.element)
        if type_.dtype != dtype:
            raise RelvmTypeError(f"the result is declared as {declared}, but has dtype {type_.dtype}")
        if declared.shape is None or type_.shape is None:
            return value
        if len(declared.shape) != len(type_.shape):
            raise RelvmTypeError(f"the result is declared as {declared}, but has type {type_}")
        shape: list[AnyDim] = []
        for expected, dim in zip(declared.shape, type_.shape, strict=True):
            if isinstance(dim, int) and expected not in (None, dim):
                raise RelvmTypeError(f"the result is declared as {declared}, but has type {type_}")
            shape.append(dim if expected is None else expected)
        return value if tuple(shape) == type_.shape else self.with_shape(value, shape)


def _with_place(message: str, here: str, place: str) -> str:
    return message if message.startswith(place) else f"{here}: {message}"


def _expect_element_type(type_: AnyType) -> None:
    """Raise RelvmUnsupportedError if relvm cannot represent the elements of a type."""
    if isinstance(type_, Tensor):
        dtype_of_element(type_.element)


def _single(types: list[Type]) -> Type:
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def _is_static(function: Function) -> bool:
    """Return whether the types of a function have no unknown dimensions."""
    types = (*function.type.inputs, *function.type.results)
    return all(_is_known(type_) for type_ in types)


def _returned(function: Function) -> tuple[Value, ...]:
    """Return the values that a function returns."""
    return next((each.operands for each in function.body.operations if each.name in _RETURNS), ())


def _is_known(type_: AnyType) -> bool:
    if isinstance(type_, TupleOf):
        return all(map(_is_known, type_.items))
    return not isinstance(type_, Tensor) or (type_.shape is not None and None not in type_.shape)


def reachable_functions(program: Program, public: list[Function]) -> list[Function]:
    """Return the functions that the public functions need, in the order of the program."""
    found = {function.name for function in public}
    waiting = list(public)
    while waiting:
        for name in _called(waiting.pop().body):
            if name not in found and name in program.functions:
                found.add(name)
                waiting.append(program.functions[name])
    first = [function.name for function in public]
    rest = [name for name in program.functions if name in found and name not in first]
    return [program.functions[name] for name in (*first, *rest)]


def _called(block: Block) -> Iterator[str]:
    """Yield the names of the functions that a block calls."""
    blocks = [block]
    while blocks:
        for operation in blocks.pop().operations:
            yield from _callees(operation)
            blocks += [inner for region in operation.regions for inner in region.blocks]


def _callees(operation: Operation) -> Iterator[str]:
    """Yield the names of the functions that an operation calls, without those that its regions call."""
    for key in ("callee", "decomposition"):
        name: Any = operation.attributes.get(key)
        name = getattr(name, "name", name)
        if isinstance(name, str):
            yield name


def identifier(name: str, default: str) -> str:
    """Return `name` as an identifier of at most 100 characters.

    Each character other than an ASCII letter, a digit or _ is replaced by _.  If `name` is empty, the result is
    `default`.  If `name` begins with a digit, `default` and _ are prepended.
    """
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not text or text[0].isdigit():
        text = f"{default}_{text}" if text else default
    return text[:100]
