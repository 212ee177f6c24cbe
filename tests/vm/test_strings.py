"""Tests of string tensors in every mode: moves, comparisons, constants, arguments and results."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.modes import C_WAYS, machines, plain, run_everywhere

from relvm import vm
from relvm.bytecode import asm_parser, decode, encode
from relvm.errors import RelvmArithmeticError, RelvmFormatError, RelvmIndexError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.visitor import structural_equal


def strings(*texts: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    made = np.empty(len(texts), object)
    made[:] = texts
    return made if shape is None else made.reshape(shape)


X = strings("a", "", "äö", "b\0c", "日本", "\udcff", shape=(2, 3))
Y = strings("a", "x", "äö", "", "日", "z", shape=(2, 3))

MOVES = """
def main(x: str[n, 3], y: str[n, 3], i: i64[2], rows: i64[1, 1], row: str[1, 3]) ->
    (str[2, 3], str[3, n], str[n, 1], str[n + 2, 3], str[n, 3], str[2, n, 3], str[n * 2 + 1, 3], str[n, 3],
     bool[n, 3], bool[n, 3], str[n, 3], str[1, 3], str[n, 3], str[n * 3]) {
  return (
    gather(x, i, axis=0),
    transpose(x, perm=(1, 0)),
    slice(x, begin=(1,), end=(2,), axes=(1,)),
    pad(x, pads=(1, 0, 1, 0)),
    where(equal(x, y), x, const(str[], "-")),
    broadcast_to(x, shape(2, n, 3)),
    concat(x, y, const(str[1, 3], [["1", "2", "3"]]), axis=0),
    transpose(gather(transpose(x, perm=(1, 0)), const(i64[3], [2, 1, 0]), axis=0), perm=(1, 0)),
    equal(x, y),
    not_equal(x, const(str[3], ["a", "", "äö"])),
    scatter_nd(x, rows, row, depth=1),
    gather_nd(x, rows, depth=1),
    reverse_sequence(x, const(i64[3], [1, 2, 2]), time_axis=0),
    reshape(x, shape(n * 3))
  )
}
"""


def test_operators_that_move_strings_in_every_mode() -> None:
    module = parse_module(MOVES)
    args = (X, Y, np.array([-1, 0]), np.array([[1]]), strings("p", "", "q", shape=(1, 3)))
    got = run_everywhere(module, *args)
    assert got[0].tolist() == [["b\0c", "日本", "\udcff"], ["a", "", "äö"]]
    assert got[3].tolist()[0] == ["", "", ""] and got[3].tolist()[1] == ["a", "", "äö"]
    assert got[4].tolist() == [["a", "-", "äö"], ["-", "-", "-"]]
    assert got[7].tolist() == X[:, ::-1].tolist()
    assert got[10].tolist() == [["a", "", "äö"], ["p", "", "q"]]


def test_strings_expand_to_known_sizes() -> None:
    module = parse_module("def main(x: str[2, 1]) -> str[3, 2, 2] { return expand(x, shape(3, 2, 2)) }")
    for machine in machines(module).values():
        assert plain(machine["main"](X[:, :1])).tolist() == [[["a", "a"], ["b\0c", "b\0c"]]] * 3


def test_rank_and_sizes_that_only_the_machine_knows() -> None:
    module = parse_module("""
    def main(x: str[_, _], i: i64[_]) -> (str[_, _], bool[_, _]) {
      y = transpose(gather(x, i, axis=1), perm=(1, 0))
      return (y, equal(y, const(str[], "a")))
    }
    """)
    got = run_everywhere(module, X, np.array([2, 0, 0]))
    assert got[0].tolist() == [["äö", "\udcff"], ["a", "b\0c"], ["a", "b\0c"]]


def test_lists_tuples_branches_and_loops_hold_strings() -> None:
    module = parse_module("""
    def main(xs: list[str[_]], x: str[n], b: bool) -> (str[_], list[str[1]], str[n], str[_, _]) {
      more = list_append(xs, x)
      chosen = if b then x else broadcast_to(const(str[], "no"), shape(n))
      return (list_concat(more, axis=0), list_split(x, 1, axis=0), chosen, list_stack(make_list(x, chosen), axis=0))
    }
    """)
    xs, x = [strings("a", ""), strings(), strings("b")], strings("ä", "\udcff")
    for chosen in (True, False):
        got = run_everywhere(module, xs, x, chosen)
        assert got[0].tolist() == ["a", "", "b", "ä", "\udcff"]
        assert got[2].tolist() == (x.tolist() if chosen else ["no", "no"])


def test_arrays_that_hold_strings_come_in() -> None:
    module = parse_module("def main(x: str[n]) -> str[n] = x")
    for machine in machines(module).values():
        for array in (np.array(["a", "bcd"]), strings("a", "bcd"), np.array(["a", "-", "bcd"])[::2]):
            got = machine["main"](array)
            assert got.numpy().tolist() == ["a", "bcd"] and got.numpy().dtype == got.dtype == np.dtype(object)
        if hasattr(np.dtypes, "StringDType"):
            assert machine["main"](np.array(["a", "bcd"], np.dtypes.StringDType())).numpy().tolist() == ["a", "bcd"]
        assert machine["main"](got).numpy().tolist() == ["a", "bcd"]
        with pytest.raises(RelvmTypeError, match="an array of dtype object must contain only strings, got int"):
            machine["main"](np.array(["a", 1], object))
        with pytest.raises(RelvmTypeError, match="dtype"):
            machine["main"](np.zeros(2))
        with pytest.raises(RelvmTypeError, match="rank"):
            machine["main"](X)


def test_a_tensor_of_strings_in_python() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module("def main(x: str[n]) -> str[n] = string_case(x, upper=1)")))
    got = machine["main"](strings("ä"))
    assert (got.item(), got.shape, len(got), np.asarray(got).tolist()) == ("Ä", (1,), 1, ["Ä"])
    assert repr(got) == "Tensor(['Ä'], shape=(1,), dtype=object)"
    with pytest.raises((BufferError, TypeError, RuntimeError)):
        np.from_dlpack(got)
    other = vm.VirtualMachine(vm.build(parse_module("def main(x: str[n]) -> str[n] = string_concat(x, x)")))
    assert other["main"](got).item() == "ÄÄ"


CONSTANTS = """def main() -> (str[], str[2, 2], str[0], str[40]) {
  return (const(str[], "a\\"b\\n"), const(str[2, 2], [["", "ä"], ["\\u0000", "\\udcff"]]), const(str[0], []), %s)
}
"""
MANY = strings(*(f"word {i}" for i in range(40)))


def constants_module():
    return parse_module(CONSTANTS % f"const(str[40], {json.dumps(MANY.tolist())})")


def test_constants_in_text_and_in_executables() -> None:
    module = infer_types(constants_module())
    again = parse_module(print_module(module))
    assert structural_equal(infer_types(again), module)
    wanted = ['a"b\n', [["", "ä"], ["\0", "\udcff"]], [], MANY.tolist()]
    assert [each.tolist() for each in run_everywhere(again)] == wanted
    executable = vm.build(module)
    encoded = encode.encode(asm_parser.parse_text(executable.as_text())).tobytes()
    assert encoded == encode.encode(executable.program).tobytes() == encode.encode(decode.decode(encoded)).tobytes()
    rebuilt: dict = {}
    exec(executable.as_python(), rebuilt)
    assert rebuilt["executable"].as_text() == executable.as_text()
    got = vm.VirtualMachine(rebuilt["executable"])["main"]()
    assert [plain(each).tolist() for each in got] == wanted


def test_constants_outlive_the_machine_that_gave_them() -> None:
    module = parse_module('def main(i: i64[2]) -> str[2] = gather(const(str[3], ["aa", "bb", "cc"]), i, axis=0)')
    for way in C_WAYS:
        got = machines(module, [way])[way]["main"](np.array([2, 0]))
        assert got.numpy().tolist() == ["cc", "aa"]


def test_damaged_constants_are_refused() -> None:
    good = bytearray(encode.encode(vm.build(constants_module()).program).tobytes())
    place = good.index(b"word 0word 1")
    for change in (-8, -16, -8 * 40):
        damaged = bytearray(good)
        damaged[place + change + 6] ^= 0x7F
        with pytest.raises(RelvmFormatError):
            decode.decode(bytes(damaged))


def test_failures_when_it_runs() -> None:
    module = parse_module("""
    def take(x: str[n], i: i64[k]) -> str[k] = gather(x, i, axis=0)
    def number(x: str[n]) -> i8[n] = string_to_number(x, to="i8")
    def match(x: str[n], y: str[m]) -> str[n] {
      z = match_cast(y, str[n])
      return z
    }
    """)
    for machine in machines(module).values():
        with pytest.raises(RelvmIndexError):
            machine["take"](strings("a"), np.array([1]))
        with pytest.raises(RelvmArithmeticError, match='"128", cannot be converted to i8'):
            machine["number"](strings("1", "128"))
        with pytest.raises(RelvmShapeError):
            machine["match"](strings("a"), strings("b", "c"))


def test_many_strings_through_a_loop() -> None:
    module = parse_module("""
    def main(x: str[3], i: i64) -> str[3] =
      if i == 0 then x else @main(gather(x, const(i64[3], [2, 0, 1]), axis=0), i - 1)
    """)
    for machine in machines(module, C_WAYS).values():
        assert machine["main"](strings("a", "b", "c"), 100_000).numpy().tolist() == ["c", "a", "b"]
