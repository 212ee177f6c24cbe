"""The files of csrc: the C sources, and the tables that both the C runtime and Python use."""

from __future__ import annotations

import functools
import os
import re
from collections import namedtuple
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from relvm.data_classes import value_record

if TYPE_CHECKING:
    from pathlib import Path


# The folders of csrc with the sources of the runtime.
_RUNTIME = ("system", "core", "threads", "kernels", "loader", "builtins", "vm")
_INCLUDED = ("include", "tables", "codegen", *_RUNTIME)


def csrc_directory() -> Path:
    """Return the folder of the C sources: in the installed package, or next to the package in a source checkout."""
    from pathlib import Path  # imported here to save memory in deployed programs

    return Path(_csrc())


def _csrc() -> str:
    package = os.path.dirname(os.path.realpath(__file__))
    installed = os.path.join(package, "csrc")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), "csrc")


def runtime_sources() -> list[Path]:
    """Return the C files of the runtime, in a fixed order."""
    return [path for folder in _RUNTIME for path in sorted((csrc_directory() / folder).glob("*.c"))]


def header_files() -> list[Path]:
    """Return the headers and tables that C code includes, in a fixed order.  Their names are unique."""
    folders = [csrc_directory() / folder for folder in _INCLUDED]
    return [path for folder in folders for path in sorted([*folder.glob("*.h"), *folder.glob("*.def")])]


def find_header(name: str) -> Path | None:
    """Return the path of the header or table `name`, or None if there is none."""
    return next((path for path in header_files() if path.name == name), None)


def include_flags() -> list[str]:
    """Return the compiler options to compile generated C and the runtime."""
    return [f"-I{csrc_directory() / folder}" for folder in _INCLUDED]


def _read(folder: str, file: str) -> str:
    with open(os.path.join(_csrc(), folder, file), encoding="utf-8") as opened:
        return opened.read()


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ADJACENT_STRINGS = re.compile(r'"\s+"')  # adjacent string literals are concatenated, as in C
_ROW = re.compile(r'^(\w+)\(((?:"[^"]*"|\([^()]*\)|[^"()])*)\)', re.MULTILINE)
_FIELD = re.compile(r'"([^"]*)"|((?:\w+\([^()]*\)\s*)+)|\(([^()]*)\)|(\w+)')
_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_NAME = re.compile(r"\w+")


def read_table(file: str, macro: str, fields: str) -> tuple[Any, ...]:
    """Return the rows `macro(field, ...)` of a table, in order, as named tuples.

    Each row also has the field `index`, which is its row number.

    file: the name of the table file.
    fields: the names of the fields, separated by spaces.
    """
    named: Any = namedtuple  # type checkers accept constant names only
    row_type = named(macro.title().replace("_", "") + "Row", f"index {fields}")
    text = _COMMENT.sub("", _read("tables", file))
    text = _ADJACENT_STRINGS.sub("", text)
    rows = [fields for name, fields in _ROW.findall(text) if name == macro]
    return tuple(
        row_type(index, *(_field_value(field) for field in _FIELD.finditer(row))) for index, row in enumerate(rows)
    )


def _field_value(field: re.Match[str]) -> Any:
    """Return the value of a field: a string, a number or a word.

    The value of words in parentheses is the tuple of the words; that of `KIND(a, b) KIND(c)` is a tuple of tuples, each
    with the kind and the words in its parentheses.
    """
    string, calls, names, word = field.groups()
    if calls is not None:
        return tuple((kind, *_NAME.findall(words)) for kind, words in _CALL.findall(calls))
    if names is not None:
        return tuple(_NAME.findall(names))
    if word is not None:
        return int(word) if word.isdigit() else word
    return string


# The name of a builtin as a packed function is this prefix and the name of its row.  No other function has such a name.
BUILTIN_PREFIX = "vm.builtin."
# The prefix of the NumPy implementations of operators, which kernels of target "numpy" call as packed functions.
REFERENCE_PREFIX = "reference."

STATUS = read_table("status.def", "STATUS", "name python_class meaning")
TAGS = read_table("tags.def", "TAG", "name meaning")
DTYPES = read_table("dtypes.def", "DTYPE", "name code bits ctype numpy")
OPCODES = read_table("opcodes.def", "OP", "name operands names flow meaning")
ARGUMENTS = read_table("arguments.def", "ARGUMENT", "name letter meaning")
KINDS = read_table("kinds.def", "KIND", "name meaning")
SECTIONS = read_table("sections.def", "SECTION", "name id meaning")

# The tables that only a build needs: the name in this module -> the arguments of `read_table`.
_BUILD_TABLES = {
    "BUILTINS": ("builtins.def", "BUILTIN", "name signature effect cost decoded meaning"),
    "SHAPE_CODES": ("shape_codes.def", "SHAPE_CODE", "name number meaning"),
    "TYPE_CODES": ("type_codes.def", "TYPE_CODE", "name number operands meaning"),
    "DIM_OPERATORS": ("dim_operators.def", "DIM_OPERATOR", "name number form"),
    "CPU_FEATURES": ("cpu_features.def", "FEATURE", "name option macro level word bit state"),
    "LETTERS": ("unicode_case.def", "LETTERS", "case first last step mapped"),
    "PATTERNS": ("regex_opcodes.def", "PATTERN", "name number operands meaning"),
    "PRIM_OPERATORS": (
        "scalar_operators.def",
        "SCALAR_OPERATOR",
        "name function operands result form fails meaning",
    ),
    "KERNEL_OPCODES": ("kernel_opcodes.def", "KERNEL_OP", "name operands names meaning"),
    "MICRO_KERNELS": ("micro_kernels.def", "MICRO_KERNEL", "name header arguments"),
    "KERNEL_CONSTANTS": ("kernel_constants.def", "KERNEL_CONSTANT", "name value meaning"),
}


def __getattr__(name: str) -> Any:
    """Read the table `name` when a module first imports it.  Only builds need such a table."""
    if name not in _BUILD_TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    rows = globals()[name] = _build_table(name)
    return rows


@functools.cache
def _build_table(name: str) -> tuple[Any, ...]:
    return read_table(*_BUILD_TABLES[name])


_FAMILIES = {
    "INTEGERS": ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    "FLOATS": ("f32", "f64"),
    "SINGLE": ("f32",),
}
_FAMILIES["NUMBERS"] = (*_FAMILIES["INTEGERS"], *_FAMILIES["FLOATS"])
_FAMILIES["ORDERED"] = ("bool", *_FAMILIES["NUMBERS"])


@value_record
class ElementFunction:
    """A function in csrc/tables/kernel_functions.def for one dtype.

    result: the dtype of the result.
    operand: the dtype of the operands.
    """

    name: str
    result: str
    operand: str


@functools.cache
def element_functions() -> tuple[ElementFunction, ...]:
    """Return the functions in kernel_functions.def, in the order of their numbers in C."""
    return tuple(_element_functions())


def _element_functions() -> Iterator[ElementFunction]:
    rows = r"^(BINARY|DIVISION|COMPARE|UNARY|CONVERT|MATH2?|MAP2?)\((\w+), (\w+)(?:, (\w+))?"
    for macro, name, family, operand in re.findall(rows, _read("tables", "kernel_functions.def"), re.MULTILINE):
        if macro in ("MAP", "MAP2"):
            yield ElementFunction(name, family, operand)
            continue
        start = f"to_{name}" if macro == "CONVERT" else name
        result = {"COMPARE": "bool", "CONVERT": name}.get(macro)
        for dtype in _FAMILIES["FLOATS"] if macro in ("MATH", "MATH2") else _FAMILIES[family]:
            yield ElementFunction(f"{start}_{dtype}", result or dtype, dtype)


ABI_VERSION = int(re.findall(r"#define RVM_ABI_VERSION (\d+)", _read("include", "relvm.h"))[0])


def kernel_constant(name: str) -> int:
    """Return the value of a row of kernel_constants.def."""
    return _kernel_constants()[name]


@functools.cache
def _kernel_constants() -> dict[str, int]:
    return {row.name: row.value for row in _build_table("KERNEL_CONSTANTS")}


@value_record
class MicroKernelArgument:
    """An argument of a micro-kernel in micro_kernels.def.

    kind: SIZE, NUMBER, FLOAT, READ or WRITE.
    name: its name.
    """

    kind: str
    name: str

    @property
    def is_address(self) -> bool:
        """Whether the argument is the address of an element of a buffer."""
        return self.kind in ("READ", "WRITE")


def micro_kernel_arguments(function: str) -> tuple[MicroKernelArgument, ...]:
    """Return the arguments of a micro-kernel, in order."""
    return _micro_kernel_arguments()[function]


@functools.cache
def _micro_kernel_arguments() -> dict[str, tuple[MicroKernelArgument, ...]]:
    rows = _build_table("MICRO_KERNELS")
    return {row.name: tuple(MicroKernelArgument(*argument[:2]) for argument in row.arguments) for row in rows}


def numbers(table: tuple[Any, ...]) -> dict[str, int]:
    """Return a dict from the name of each row of `table` to its row number.  C code uses the same numbers."""
    return {row.name: row.index for row in table}


@value_record
class BuiltinSignature:
    """The kinds of the arguments and the result of a builtin.

    The arguments are `before`, then `repeated` any number of times, then `after`.

    result: the kind of the result, or `nil` if there is none.
    """

    before: tuple[str, ...]
    repeated: tuple[str, ...]
    after: tuple[str, ...]
    result: str

    def accepts(self, count: int) -> bool:
        """Return whether the builtin accepts `count` arguments."""
        extra = count - len(self.before) - len(self.after)
        return extra >= 0 and extra % len(self.repeated) == 0 if self.repeated else extra == 0


def parse_signature(text: str) -> BuiltinSignature:
    """Parse a text in the signature column of builtins.def, such as `any heap rank code value ... where -> nil`."""
    arguments, result = (part.split() for part in text.split("->"))
    if "..." not in arguments:
        return BuiltinSignature(tuple(arguments), (), (), result[0])
    dots = arguments.index("...")
    width = 2 if arguments[max(dots - 2, 0) : dots] == ["code", "value"] else 1
    before, repeated, after = arguments[: dots - width], arguments[dots - width : dots], arguments[dots + 1 :]
    return BuiltinSignature(tuple(before), tuple(repeated), tuple(after), result[0])
