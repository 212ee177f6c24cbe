"""Operator calls with strings that type rules reject."""

from __future__ import annotations

from ops.mistake import F32, Mistake, tensor

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.types import ListType


def string_mistakes() -> list[Mistake]:
    text, numbers, one = tensor("str", "3"), tensor("i64", "3"), tensor("str")
    refused = "is str[3]; strings are not supported"
    rows = [Mistake(op, (text, text), refused) for op in ("add", "less", "maximum", "bitwise_and")]
    rows += [Mistake(op, (text,), refused) for op in ("exp", "negative", "lexsort_rows")]
    return [
        *rows,
        Mistake("gather", (text, text), "dtype str"),
        Mistake("where", (text, text, text), "cond has dtype str, expected bool"),
        Mistake("equal", (text, numbers), "x has dtype str and y has i64"),
        Mistake("cast", (text,), "use string_to_number to convert strings to numbers", attributes={"to": "i64"}),
        Mistake("cast", (numbers,), "cannot cast to str; use string_of_number", attributes={"to": "str"}),
        Mistake(
            "pad", (text,), "value is 1, which str cannot represent", RelvmArgumentError, {"pads": (1, 1), "value": 1}
        ),
        Mistake(
            "scatter_elements",
            (text, numbers, text),
            "x has dtype str, expected an integer or float dtype",
            attributes={"axis": 0, "reduction": "add"},
        ),
        Mistake("string_positions", (ListType(F32),), "x is list[f32[3, 4]], expected a tensor"),
        Mistake("string_take", (text, text), "positions has dtype str, expected i64"),
        Mistake("string_take", (numbers, numbers), "x 0 has dtype i64, expected str"),
        Mistake("string_equal", (text, numbers), "y has dtype i64, expected str"),
        Mistake("string_equal", (text, tensor("str", "2")), "3 and 2", RelvmShapeError),
        Mistake("string_concat", (numbers, text), "x has dtype i64, expected str"),
        Mistake("string_lookup", (text, one, numbers), "expected str[k] and i64[n]"),
        Mistake("string_lookup", (text, text, text), "expected str[k] and i64[n]"),
        Mistake("string_case", (numbers,), "x has dtype i64, expected str", attributes={"upper": 1}),
        Mistake("string_split", (text, text), "delimiter is str[3], expected str[]", RelvmShapeError),
        Mistake("string_part_count", (text, numbers), "delimiter has dtype i64, expected str"),
        Mistake("string_match", (text, numbers), "program is i64[3], expected i64[n, 3]"),
        Mistake("string_tokens", (text, numbers), "program is i64[3], expected i64[n, 3]"),
        Mistake("string_of_number", (text,), "x has dtype str, expected bool, an integer dtype, f16"),
        Mistake("string_of_number", (tensor("bf16", "3"),), "x has dtype bf16"),
        Mistake("string_to_number", (numbers,), "x has dtype i64, expected str", attributes={"to": "i64"}),
        Mistake("string_to_number", (text,), "to is bool, expected an integer dtype", attributes={"to": "bool"}),
    ]
