"""Malicious executables that would take long to load or print if the loader or printer were quadratic.

Each function returns a file of about `size` bytes with one kind of problem.  Builds do not produce most of these files.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence

import numpy as np

from relvm.bytecode.container import pack_sections
from relvm.bytecode.encode import CONSTANT_RECORD, FUNCTION_RECORD
from relvm.numpy_dtypes import dtype_number
from relvm.tables import KINDS, OPCODES, TAGS, numbers

_KINDS, _OPS, _TAGS = numbers(KINDS), {row.name: row.index for row in OPCODES}, numbers(TAGS)
_STR, _I64 = dtype_number(np.dtype(object)), dtype_number(np.dtype("i8"))
_NONE = 0xFFFFFFFF


def _r(index: int) -> int:
    return index << 3


def _c(index: int) -> int:
    return index << 3 | 2


def _words(rows: Sequence[int] | np.ndarray) -> bytes:
    return np.asarray(rows, np.int64).astype(np.uint32).tobytes()


def _strings(texts: Sequence[bytes]) -> bytes:
    ends = np.cumsum([len(text) + 1 for text in texts])
    starts = 4 + 8 * len(texts) + np.concatenate([[0], ends[:-1]])
    records = np.stack([starts, [len(text) for text in texts]], 1)
    return _words([len(texts)]) + _words(records) + b"".join(text + b"\0" for text in texts)


def _function(name: int, kind: str, parameters: int = -1, first: int = 0, registers: int = 0, code=(0, 0)) -> bytes:
    return FUNCTION_RECORD.pack(name, _KINDS[kind], 0, _NONE, parameters, first, registers, *code)


def _file(
    strings: bytes = _words([0]),
    functions: Sequence[bytes] = (),
    parameters: bytes = b"",
    constants: Sequence[bytes] = (),
    dims: bytes = b"",
    code: bytes = b"",
    data: bytes = b"",
    **texts: bytes,
) -> np.ndarray:
    return pack_sections(
        {
            "strings": [strings],
            "functions": [_words([len(functions), len(parameters) // 4]) + b"".join(functions) + parameters],
            "constants": [_words([len(constants), len(dims) // 8]) + b"".join(constants) + dims],
            "code": [code],
            "data": [data],
            **{name: [text] for name, text in texts.items()},
        }
    )


def _one_function(code: bytes, registers: int, parameters: int = 2, **more) -> np.ndarray:
    """Return a program that consists of two builtins (functions 0 and 1) and one bytecode function."""
    names = [b"vm.builtin.make_tuple", b"vm.builtin.check_prim_value_info", b"f", b"x"]
    functions = [
        _function(0, "packed"),
        _function(1, "packed"),
        _function(2, "bytecode", parameters, 0, registers, (0, len(code) // 4)),
    ]
    return _file(_strings(names), functions, _words([3] * parameters), code=code, **more)


def strings_inside_each_other(size: int) -> np.ndarray:
    count = size // 16
    records = np.tile([4 + 8 * count, size // 2], (count, 1))
    return _file(_words([count]) + _words(records) + b"a" * (size // 2) + b"\0")


def shared_parameters(size: int) -> np.ndarray:
    count = size // 64
    names = _strings([b"x%d" % index for index in range(count)])
    functions = [_function(index, "packed", size // 16, 0) for index in range(count)]
    return _file(names, functions, _words(np.zeros(size // 16)))


def shared_instructions(size: int) -> np.ndarray:
    count = size // 64
    names = _strings([b"x%d" % index for index in range(count)])
    code = _words([_OPS["ret"], 0] * (size // 16))
    return _file(names, [_function(index, "packed", code=(0, len(code) // 4)) for index in range(count)], code=code)


def functions_of_one_name(size: int) -> np.ndarray:
    names = _strings([b"a" * 900, b"a" * 900 + b"b"])
    return _file(names, [_function(index % 2, "packed") for index in range(size // 64)])


def names_that_begin_alike(size: int) -> np.ndarray:
    count = size // 1000
    names = _strings([b"a" * 950 + b"%d" % index for index in range(count)])
    return _file(names, [_function(index, "packed") for index in range(count)])


def constants_of_one_string(size: int) -> np.ndarray:
    constants = [CONSTANT_RECORD.pack(_TAGS["STRING"], 0, 0, 0, 0, 0)] * (size // 64)
    return _file(_strings([b"a" * (size // 2)]), constants=constants)


def shared_dimensions(size: int) -> np.ndarray:
    rank = size // 16
    constants = [CONSTANT_RECORD.pack(_TAGS["SHAPE"], 0, rank, 0, 0, 0)] * (size // 64)
    return _file(constants=constants, dims=b"\0" * 8 * rank)


def tensors_of_the_same_strings(size: int) -> np.ndarray:
    count = size // 24
    packed = np.arange(1, count + 1).tobytes() + b"a" * count
    constants = [CONSTANT_RECORD.pack(_TAGS["TENSOR"], _STR, 1, index, 0, len(packed)) for index in range(size // 100)]
    return _file(constants=constants, dims=np.full(len(constants), count).tobytes(), data=packed)


def entry_checks_and_tail_calls(size: int) -> np.ndarray:
    dtype, where = 0, 1
    check = [_OPS["call"], _NONE, 1, 3, _r(0), _c(dtype), _c(where)]
    tail_call = [_OPS["tail_call"], 2, 2, _r(0), _r(1)]
    code = check * (size // 56) + tail_call * (size // 40)
    constants = [
        CONSTANT_RECORD.pack(_TAGS["DTYPE"], 0, 0, 0, _I64, 0),
        CONSTANT_RECORD.pack(_TAGS["STRING"], 0, 0, 0, 3, 0),
    ]
    return _one_function(_words(code), 2, constants=constants)


def moves_in_the_worst_order(size: int) -> np.ndarray:
    tail_call = [_OPS["tail_call"], 2, 16, *map(_r, [0, *range(15)])]
    dtype, where = 0, 1
    checks = [[_OPS["call"], _NONE, 1, 3, _r(index), _c(dtype), _c(where)] for index in range(16)]
    constants = [
        CONSTANT_RECORD.pack(_TAGS["DTYPE"], 0, 0, 0, _I64, 0),
        CONSTANT_RECORD.pack(_TAGS["STRING"], 0, 0, 0, 3, 0),
    ]
    code = [*itertools.chain(*checks), *tail_call * (size // 76)]
    return _one_function(_words(code), 16, 16, constants=constants)


def _calls(count: int) -> list[int]:
    """Return the code of `count` calls, which write `count` different registers, beginning with register 2."""
    rows = np.tile([_OPS["call"], 0, 0, 0], (count, 1))
    rows[:, 1] = np.arange(2, count + 2)
    return rows.reshape(-1).tolist()


def jumps_to_one_place(size: int) -> np.ndarray:
    """Return code of which one half writes registers, and the other half jumps to the end."""
    written, jumps = size // 32, size // 24
    code = _calls(written)
    for index in range(jumps):
        code += [_OPS["if"], 0, 3 * (jumps - index)]
    return _one_function(_words([*code, _OPS["ret"], 0]), written + 2)


def jumps_to_themselves(size: int) -> np.ndarray:
    written, jumps = size // 32, size // 24
    code = [*_calls(written), *[_OPS["if"], 0, 0] * jumps, _OPS["ret"], 0]
    return _one_function(_words(code), written + 2)


def jumps_to_many_places(size: int) -> np.ndarray:
    """Return code with many pending jumps, for each of which the verifier needs a set of written registers."""
    jumps = size // 20
    code = []
    for index in range(jumps):
        code += [_OPS["if"], 0, 3 * (jumps - index) + 2 * index]
    return _one_function(_words([*code, *[_OPS["ret"], 0] * jumps]), 5 * jumps)


def entangled_loops(size: int) -> np.ndarray:
    """Return code of which the verifier needs many passes: each discovers for one loop that register 1 is not written.

    The loops precede a long sequence of other instructions.
    """
    code: list[int] = []
    for index in range(60):
        code += [_OPS["if"], 0, 5, _OPS["goto"], -8 if index else 0]
    code += [_OPS["reset"], 1, _OPS["if"], 0, -7]
    return _one_function(_words([*code, *_calls(size // 16), _OPS["ret"], 0]), 300 + size // 16)


def types_that_settle_late(size: int) -> np.ndarray:
    """Return a chain of functions, each of which returns the result of the next one."""
    count = size // 120
    names = _strings([b"f%d" % index for index in range(count)])
    code: list[int] = []
    for index in range(count):
        code += [_OPS["call"], 0, min(index + 1, count - 1), 0, _OPS["ret"], 0]
    functions = [_function(index, "bytecode", 0, 0, 1, (6 * index, 6)) for index in range(count)]
    return _file(names, functions, code=_words(code))


def many_registers(size: int) -> np.ndarray:
    count = size // 64
    names = _strings([b"f%d" % index for index in range(count)])
    functions = [_function(index, "bytecode", 0, 0, 258, (2 * index, 2)) for index in range(count)]
    return _file(names, functions, code=_words([_OPS["goto"], 0] * count))


def many_empty_strings(size: int) -> np.ndarray:
    return _file(_strings([b""] * (size // 9)))


def many_calls(size: int) -> np.ndarray:
    return _one_function(_words([*_calls(size // 16), _OPS["ret"], 0]), size // 16 + 2)


def calls_of_a_long_name(size: int, length: int = 0) -> np.ndarray:
    names = _strings([b"a" * (length or size // 2), b"f"])
    code = _words([_OPS["call"], _NONE, 0, 0] * (size // 32) + [_OPS["goto"], 0])
    functions = [_function(0, "packed"), _function(1, "bytecode", 0, 0, 1, (0, len(code) // 4))]
    return _file(names, functions, code=code)


def parameters_of_a_long_name(size: int, length: int = 0) -> np.ndarray:
    count = size // 8
    functions = [_function(0, "packed", count)]
    return _file(_strings([b"f", b"a" * (length or size // 2)]), functions, _words(np.ones(count)))


def calls_of_the_longest_name(size: int) -> np.ndarray:
    return calls_of_a_long_name(size, 1000)


def parameters_of_the_longest_name(size: int) -> np.ndarray:
    return parameters_of_a_long_name(size, 1000)


def a_signature_of_many_parts(size: int) -> np.ndarray:
    return _file(signature=json.dumps({"f": [[]] * (size // 4)}).encode(), debug=b"{}")


SLOW_FILES: list[Callable[[int], np.ndarray]] = [
    strings_inside_each_other,
    shared_parameters,
    shared_instructions,
    functions_of_one_name,
    names_that_begin_alike,
    constants_of_one_string,
    shared_dimensions,
    tensors_of_the_same_strings,
    entry_checks_and_tail_calls,
    moves_in_the_worst_order,
    jumps_to_one_place,
    jumps_to_themselves,
    jumps_to_many_places,
    entangled_loops,
    types_that_settle_late,
    many_registers,
    many_empty_strings,
    many_calls,
    calls_of_a_long_name,
    parameters_of_a_long_name,
    calls_of_the_longest_name,
    parameters_of_the_longest_name,
    a_signature_of_many_parts,
]
