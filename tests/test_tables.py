"""The reader of csrc/tables/*.def."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from relvm import tables
from relvm.tables import (
    BUILTINS,
    DTYPES,
    STATUS,
    BuiltinSignature,
    csrc_directory,
    numbers,
    parse_signature,
    read_table,
)

TABLES = {
    "status.def": ("STATUS", tables.STATUS),
    "tags.def": ("TAG", tables.TAGS),
    "dtypes.def": ("DTYPE", tables.DTYPES),
    "opcodes.def": ("OP", tables.OPCODES),
    "arguments.def": ("ARGUMENT", tables.ARGUMENTS),
    "kinds.def": ("KIND", tables.KINDS),
    "sections.def": ("SECTION", tables.SECTIONS),
    "builtins.def": ("BUILTIN", tables.BUILTINS),
    "shape_codes.def": ("SHAPE_CODE", tables.SHAPE_CODES),
    "type_codes.def": ("TYPE_CODE", tables.TYPE_CODES),
    "dim_operators.def": ("DIM_OPERATOR", tables.DIM_OPERATORS),
    "cpu_features.def": ("FEATURE", tables.CPU_FEATURES),
    "regex_opcodes.def": ("PATTERN", tables.PATTERNS),
    "scalar_operators.def": ("SCALAR_OPERATOR", tables.PRIM_OPERATORS),
    "kernel_opcodes.def": ("KERNEL_OP", tables.KERNEL_OPCODES),
    "micro_kernels.def": ("MICRO_KERNEL", tables.MICRO_KERNELS),
    "kernel_constants.def": ("KERNEL_CONSTANT", tables.KERNEL_CONSTANTS),
}


@pytest.mark.parametrize("rows", [tables.OPCODES, tables.KERNEL_OPCODES], ids=["opcodes", "kernel_opcodes"])
def test_every_operand_has_a_name(rows: tuple[Any, ...]) -> None:
    for row in rows:
        named = len(row.operands) + row.operands.count("A")  # the count of an argument list is a word of its own
        assert len(set(row.names) - {"unused"}) == named


def test_every_table_is_read() -> None:
    assert {path.name for path in (csrc_directory() / "tables").glob("*.def")} == {
        *TABLES,
        "steps.def",  # C alone reads it
        "onnx_messages.def",  # Python reads it through C (relvm/frontend/onnx_messages.py)
        "unicode_case.def",
        "kernel_functions.def",
    }


# Numbers and names that Python states again, because reading them from a header would slow down each start: the module
# and its name, the C file, and a pattern for the C value.
SHARED = [
    ("relvm.bytecode.container", "ALIGNMENT", "core/base.h", r"#define RVM_ALIGNMENT (\d+)"),
    ("relvm.bytecode.encode", "ABSENT", "loader/executable.h", r"#define RVM_NO_STRING (\w+)u"),
    ("relvm.bytecode.encode", "PRIVATE", "loader/executable.h", r"RVM_PRIVATE = (\d+)"),
    ("relvm.bytecode.encode", "IMPURE", "loader/executable.h", r"RVM_IMPURE = (\d+)"),
    ("relvm.bytecode.kernel_program", "VERSION", "kernels/kernel_program.h", r"RVM_KERNEL_VERSION = (\d+)"),
    ("relvm.codegen.kernel_registers", "NO_REGISTER", "kernels/kernel_program.h", r"RVM_NO_REGISTER = (\w+)"),
    ("relvm.bytecode.kernel_printer", "_NO_REGISTER", "kernels/kernel_program.h", r"RVM_NO_REGISTER = (\w+)"),
    ("relvm.aot.metadata_model", "VERSION", "include/relvm_metadata.h", r"#define RVM_METADATA_VERSION (\d+)"),
    ("relvm.runtime.file_io", "LIBRARY_SECTION", "library/module.c", r"\.section (\.\w+),"),
    ("relvm.aot.hosted.library", "_SYMBOL", "include/relvm.h", r"\b(relvm_aot_library)\b"),
    ("relvm.aot.hosted.library", "_DESCRIPTION", "include/relvm.h", r"\b(relvm_aot_description)\b"),
]


@pytest.mark.parametrize(("module", "name", "file", "pattern"), SHARED, ids=[f"{row[0]}.{row[1]}" for row in SHARED])
def test_python_and_c_have_the_same_number(module: str, name: str, file: str, pattern: str) -> None:
    (found,) = set(re.findall(pattern, (csrc_directory() / file).read_text()))
    value = getattr(importlib.import_module(module), name)
    assert value == (found if isinstance(value, str) else int(found, 0))


def test_letters_have_the_case_that_unicode_gives_them() -> None:
    for case, function in (("lower", str.lower), ("upper", str.upper)):
        given = {
            point: row.mapped + point - row.first
            for row in tables.LETTERS
            if row.case == case
            for point in range(row.first, row.last + 1, row.step)
        }
        assert all(function(chr(point)) == chr(there) for point, there in given.items())
        for point in range(0x530):  # Latin, Greek, Cyrillic
            changed = function(chr(point))
            assert len(changed) > 1 or given.get(point, point) == ord(changed)


@pytest.mark.parametrize("file", TABLES)
def test_no_row_is_lost(file: str) -> None:
    macro, rows = TABLES[file]
    text = (csrc_directory() / "tables" / file).read_text()
    assert len(rows) == len(re.findall(rf"^{macro}\(", text, flags=re.MULTILINE))
    assert [row.index for row in rows] == list(range(len(rows)))
    assert len(numbers(rows)) == len(rows)


def test_fields_are_words_numbers_and_joined_strings(tmp_path, monkeypatch) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.def").write_text(
        '/* ROW(no, 1, "row") */\nROW(a, 12, "x, (y) "\n    "z")\nROW(b, c_t, "")\n'
    )
    monkeypatch.setattr(tables, "_csrc", lambda: str(tmp_path))
    first, second = read_table("t.def", "ROW", "name value text")
    assert (first.name, first.value, first.text) == ("a", 12, "x, (y) z")
    assert (second.name, second.value, second.text) == ("b", "c_t", "")


def test_a_row_with_too_few_fields_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.def").write_text("ROW(a)\n")
    monkeypatch.setattr(tables, "_csrc", lambda: str(tmp_path))
    with pytest.raises(TypeError):
        read_table("t.def", "ROW", "name value")


def test_rows_are_frozen() -> None:
    with pytest.raises(AttributeError):
        DTYPES[0].name = "other"


def test_the_numbers_are_those_of_c() -> None:
    assert numbers(STATUS)["OK"] == 0 and STATUS[0].python_class == ""
    assert [row.number for row in tables.SHAPE_CODES] == list(range(len(tables.SHAPE_CODES)))
    assert [row.number for row in tables.TYPE_CODES] == list(range(len(tables.TYPE_CODES)))
    assert [row.number for row in tables.DIM_OPERATORS] == list(range(len(tables.DIM_OPERATORS)))


@pytest.mark.parametrize(
    ("text", "signature", "counts"),
    [
        ("-> nil", BuiltinSignature((), (), (), "nil"), [0]),
        ("tuple int -> any", BuiltinSignature(("tuple", "int"), (), (), "any"), [2]),
        ("ctx function any ... -> any", BuiltinSignature(("ctx", "function"), ("any",), (), "any"), [2, 3, 4, 5]),
        (
            "any heap rank code value ... where -> nil",
            BuiltinSignature(("any", "heap", "rank"), ("code", "value"), ("where",), "nil"),
            [4],
        ),
    ],
)
def test_signatures(text: str, signature: BuiltinSignature, counts: list[int]) -> None:
    assert parse_signature(text) == signature
    step = len(signature.repeated)
    expected = {n for count in counts for n in ([count, count + step, count + 2 * step] if step else [count])}
    assert {n for n in range(max(expected) + 1) if signature.accepts(n)} == expected


def test_every_builtin_has_a_signature() -> None:
    for row in BUILTINS:
        assert parse_signature(row.signature).result
        assert row.effect in ("PURE", "ALLOC", "CHECK", "IMPURE")
        assert row.cost in ("CONSTANT", "WORK", "CALL")


def test_c_includes_and_objects_are_named_by_unique_names() -> None:
    for paths in (tables.header_files(), tables.runtime_sources()):
        assert paths and len({path.name for path in paths}) == len(paths)
