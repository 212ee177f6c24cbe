"""The readers of StableHLO programs: both forms of the text, and portable artifacts."""

from __future__ import annotations

import base64
import random
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend.stablehlo_artifact import artifact, signed, varint
from frontend.stablehlo_programs import CASES

from relvm import vm
from relvm.errors import RelvmAssertionError, RelvmError, RelvmFormatError, RelvmSyntaxError, RelvmUnsupportedError
from relvm.frontend.stablehlo import from_stablehlo
from relvm.frontend.stablehlo.bytecode_cursor import ByteCursor
from relvm.frontend.stablehlo.importer import import_program
from relvm.frontend.stablehlo.program import AnyType, Block, Elements, ElementType, Program, Symbol
from relvm.frontend.stablehlo.read_program import read_program
from relvm.frontend.stablehlo.text_reader import read_text
from relvm.frontend.stablehlo.vhlo import read_builtin_type
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.ir.printer import print_module

ADD = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  BODY\n}"


def read(body: str) -> Program:
    return read_text(ADD.replace("BODY", body), "x.mlir")


def described(program: Program) -> list[Any]:
    """Return a program as lists that can be compared, without names and places."""

    def block(each: Block, numbers: dict[Any, int]) -> list[Any]:
        for argument in each.arguments:
            numbers[argument] = len(numbers)
        lines: list[Any] = [[argument.type for argument in each.arguments]]
        for operation in each.operations:
            attributes = {
                key: value.array.tolist() if isinstance(value, Elements) else getattr(value, "name", value)
                for key, value in operation.attributes.items()
                if key not in ("compare_type", "precision_config") and value not in ((), "")
            }
            for result in operation.results:
                numbers[result] = len(numbers)
            name = "return" if operation.name.endswith(".return") else operation.name
            lines.append([name, [numbers[operand] for operand in operation.operands], attributes])
            lines += [block(inner, numbers) for region in operation.regions for inner in region.blocks]
        return lines

    return [(each.name, each.type, block(each.body, {})) for each in program.functions.values()]


def test_the_generic_form_is_the_same_program() -> None:
    pretty = read(
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
        "%1 = stablehlo.compare GT, %x, %0, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>\n"
        "%2 = stablehlo.select %1, %x, %0 : tensor<2xi1>, tensor<2xf32>\n"
        "%3 = stablehlo.pad %2, %c, low = [1], high = [0], interior = [2]\n"
        "  : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>\n"
        "%5 = stablehlo.slice %3 [1:5:3] : (tensor<5xf32>) -> tensor<2xf32>\nreturn %5 : tensor<2xf32>"
    )
    generic = read_text(
        """"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%arg: tensor<2xf32>):
    %a = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %b = "stablehlo.constant"() {value = dense<"0x0000803F00000040"> : tensor<2xf32>} : () -> tensor<2xf32>
    %1 = "stablehlo.compare"(%arg, %b) {comparison_direction = #stablehlo<comparison_direction GT>,
        compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %2 = "stablehlo.select"(%1, %arg, %b) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %3 = "stablehlo.pad"(%2, %a) {edge_padding_low = dense<1> : tensor<1xi64>, edge_padding_high = array<i64: 0>,
        interior_padding = dense<[2]> : tensor<1xi64>} : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
    %4 = "stablehlo.slice"(%3) <{start_indices = array<i64: 1>, limit_indices = array<i64: 5>,
        strides = array<i64: 3>}> : (tensor<5xf32>) -> tensor<2xf32>
    "func.return"(%4) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) {name.of = "anything"} : () -> ()""",
        "x.mlir",
    )
    assert described(pretty) == described(generic)


def test_aliases_and_locations() -> None:
    text = """
#loc1 = loc("model.py":3:7)
!vector = tensor<2xf32>
module @m {
  func.func public @main(%x: !vector loc("x")) -> (!vector {jax.result_info = "[0]"}) {
    %0 = stablehlo.add %x, %x : !vector loc(#loc2)
    return %0 : !vector loc(#loc1)
  } loc(unknown)
} loc(#loc1)
#loc2 = loc("jit(f)/add"(#loc1))
"""
    (add, _) = read_text(text, "x.mlir").functions["main"].body.operations
    assert add.location == "jit(f)/add (model.py:3:7)" and add.place == "x.mlir:6:10"
    (binding,) = import_program(read_text(text, "x.mlir")).functions[0].block.bindings
    assert binding.var.origins == ("model.py:3:7",)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return %y : tensor<2xf32>", "x.mlir:2:10: %y is not defined"),
        ("%0 = stablehlo.add %x, %x : tensor<2xf32", "x.mlir:3:1: expected '>'"),
        ("%0 = stablehlo.add %x %x : tensor<2xf32>", "x.mlir:2:25: expected"),
        ("%0:2 = stablehlo.add %x, %x : tensor<2xf32>", "stablehlo.add has 1 result, but 2 names"),
        ("%x = stablehlo.add %x, %x : tensor<2xf32>", "%x is defined twice"),
        ("%0 = stablehlo.exponential %x : (tensor<3xf32>) -> tensor<2xf32>", "the stated types are (tensor<3xf32>)"),
        ("%0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>", "has 3 elements, expected 2"),
        ("%0 = stablehlo.constant dense<[1.0, 2.0> : tensor<2xf32>", "the lists of elements are malformed"),
        ('%0 = stablehlo.constant dense<"0x00"> : tensor<2xf32>', "has 1 byte"),
        ("%0 = stablehlo.constant dense<300> : tensor<2xi8>", "out of the range of int8"),
        ("%0 = stablehlo.constant dense<1> : tensor<9999999x9999999x9999999xi8>", "more than 1099511627776 elements"),
        ("%0 = stablehlo.iota dim = x : tensor<2xf32>", "x.mlir:2:29: expected an integer, got 'x'"),
        ("%0 = frobnicate %x", "x.mlir:2:8: expected an operation such as stablehlo.add, got 'frobnicate'"),
        ("%0 = stablehlo.add %x, %x : !alias", "the alias !alias is not defined"),
        ("{" * 5, "expected an operation"),
        ("%0 = stablehlo.constant " + "[" * 500, "nested deeper than 64 levels"),
    ],
)
def test_errors_tell_the_line_and_the_column(body: str, message: str) -> None:
    with pytest.raises((RelvmSyntaxError, RelvmFormatError)) as raised:
        read(body)
    assert message in str(raised.value)


def test_what_is_not_supported_is_told_at_once() -> None:
    text = ADD.replace(
        "BODY",
        "%0 = stablehlo.custom_call @cuda_kernel(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "%1 = stablehlo.add %0, %0 : tensor<2xf32>\n"
        '%2 = "stablehlo.all_reduce"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
        "%3 = stablehlo.complex %x, %x : tensor<2xcomplex<f32>>\n"
        "%4 = stablehlo.clamp %3, %3, %3 : tensor<2xcomplex<f32>>\nreturn %1 : tensor<2xf32>",
    )
    with pytest.raises(RelvmUnsupportedError) as raised:
        from_stablehlo(text.encode())
    message = str(raised.value)
    assert message.startswith("model: 3 operations cannot be imported:")
    assert "2:8: stablehlo.custom_call: custom calls of cuda_kernel are not supported" in message
    assert "communication between processes is not supported" in message
    assert "complex numbers are not supported by this operation" in message


def test_operations_whose_operands_cannot_be_imported_are_told_too() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @one(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = stablehlo.custom_call @two(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xf8E3M4>
      %c = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
      %d = stablehlo.reshape %c : (tensor<2xi1>) -> tensor<i1>
      %3 = "stablehlo.if"(%d) ({
        %4 = stablehlo.custom_call @three(%x) : (tensor<2xf32>) -> tensor<2xf32>
        stablehlo.return %4 : tensor<2xf32>
      }, {
        stablehlo.return %1 : tensor<2xf32>
      }) : (tensor<i1>) -> tensor<2xf32>
      %5 = call @inlined(%3) : (tensor<2xf32>) -> tensor<?xf32>
      %6 = call @kept(%3) : (tensor<2xf32>) -> tensor<2xf32>
      return %6 : tensor<2xf32>
    }
    func.func private @inlined(%x: tensor<2xf32>) -> tensor<?xf32> {
      %0 = stablehlo.custom_call @four(%x) : (tensor<2xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func private @kept(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @five(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.raises(RelvmUnsupportedError, match="6 operations cannot be imported") as raised:
        from_stablehlo(text.encode())
    for problem in ("calls of one", "calls of two", "f8E3M4", "calls of three", "calls of four", "calls of five"):
        assert str(raised.value).count(problem) == 1


@pytest.mark.parametrize("version", [1, 3, 4, 6])
@pytest.mark.parametrize(
    "name", ["compare", "pad", "while", "reduce two tensors", "dot_general in batches", "gather clamps", "if"]
)
def test_artifacts_are_the_same_programs(name: str, version: int) -> None:
    program = read_text(CASES[name].text, "x.mlir")
    data = artifact(program, version=version)
    assert described(read_program(data)) == described(program)
    found, expected = (print_module(import_program(each)) for each in (read_program(data), program))
    assert found.count("\n") == expected.count("\n")


def test_an_artifact_runs() -> None:
    case = CASES["while"]
    data = artifact(read_text(case.text, "x.mlir"))
    machine = vm.VirtualMachine(vm.build(from_stablehlo(data), target="bytecode"))
    for found, expected in zip(machine["main"](*case.args), case.results, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


class _Types:
    """The part of a reader that knows the types of an artifact, by their numbers."""

    def __init__(self, *types: AnyType) -> None:
        self.types = types

    def type_of(self, c: ByteCursor) -> AnyType:
        return self.types[c.varint()]

    def attribute_of(self, c: ByteCursor) -> Any:
        raise AssertionError

    def string_of(self, c: ByteCursor) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (varint(0) + varint(8 << 2), "i8"),
        (varint(0) + varint(32 << 2 | 2), "ui32"),
        (varint(1), "index"),
        (varint(3), "bf16"),
        (varint(6), "f64"),
        (varint(9) + varint(0), "complex<f32>"),
        (varint(13) + varint(2) + signed(-(1 << 63)) + signed(3) + varint(0), "tensor<?x3xf32>"),
        (varint(12), "type 12 of the builtin dialect"),
    ],
)
def test_types_of_the_builtin_dialect(data: bytes, expected: str) -> None:
    found = read_builtin_type(_Types(ElementType("f32")), ByteCursor(data, 0, len(data), "x"))
    assert str(found) == expected


def test_newer_artifacts_are_refused_by_version() -> None:
    program = read_text(CASES["compare"].text, "x.mlir")
    with pytest.raises(RelvmFormatError, match=r"has version 2\.0\.0 of StableHLO, but relvm reads versions up to"):
        read_program(artifact(program, producer="StableHLO_v2.0.0"))
    with pytest.raises(
        RelvmFormatError, match="expected a portable artifact of StableHLO, got MLIR bytecode of 'MLIR21'"
    ):
        read_program(artifact(program, producer="MLIR21"))


def test_every_prefix_of_an_artifact_is_refused() -> None:
    data = artifact(read_text(CASES["reduce two tensors"].text, "x.mlir"))
    for size in range(4, len(data)):
        with pytest.raises(RelvmFormatError):
            read_program(data[:size])


@pytest.mark.parametrize("seed", range(4))
def test_damaged_programs_raise_typed_errors(seed: int) -> None:
    """Mutated texts and artifacts are imported, or raise an error of relvm."""
    chance = random.Random(seed)
    names = sorted(CASES)
    for _ in range(60):
        text = CASES[chance.choice(names)].text
        if chance.random() < 0.5:
            characters = list(text)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(characters))
                characters[at : at + chance.randint(0, 3)] = chance.choice(
                    ["<", ">", "%a", "[", "0x", "-1", '"', "", "?"]
                )
            data = "".join(characters).encode()
        else:
            name = chance.choice(["compare", "pad", "while", "reduce two tensors", "gather clamps", "if"])
            damaged = bytearray(artifact(read_text(CASES[name].text, "x.mlir"), version=chance.choice([1, 6])))
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(5, len(damaged))] = chance.choice([0, 1, 3, 127, 255, chance.randrange(256)])
            data = bytes(damaged)
        try:
            from_stablehlo(data)
        except RelvmError as error:
            assert str(error)


def test_a_symbol_is_not_a_string() -> None:
    program = read("%0 = call @main(%x) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>")
    assert program.functions["main"].body.operations[0].attributes["callee"] == Symbol("main")


# jax.export.export(jax.jit(lambda x: x + 1))(x).serialize() with JAX 0.10.2, for x of shape "b, 3" and dtype float32.
EXPORT = zlib.decompress(
    base64.b85decode(
        "c-oCsZ*SW~7=NyptLM3qXN4+M!T73dYR#IYRhde+W~CeLHnwRSV*<2I#)&VDhyUTTyAH&}hu{TYf$zdc-~;fE*StXGIVW9P0b*zU"
        "{QSG;?>Uz(0Qd+37{D|55<Z8Aa1S+~z{jwK`VV0hR^S7;2yN8fhWFrIcn2=P9Grt1+5x^s1c)&rLS(0ai~L-X^PuSR><Q)&7ZEE6"
        "g0@wp&!+eZ@%yauqm``+^dA&X$u-1pe;ys7bYAf@hznD_vae6+;FSMs25|r0AD`797ycj;x9>gh4%WJBSGub}Tt?Uep$2W5jb_Vf"
        "FJ11fZ_r;}I;5|ereT_G!!!&9lv?<p&S)U$wTd;BgsV}#9mg>yi!j5atqoIaXr|U|H5#Ti^O`!g?O2pC+g@_*%R1FetHI_Ob1XvG"
        "B5Sitc8jnj=FTtbcKZ^$+|e|n-C-T1Cfi{>yGPiXy-wIVr5iE3VqYU{gA!+f)Cr~c?ahXTbf?{@(+7|2Yj)q>ws$D|YNt-0KDTe$"
        "yX|@VmSgA?$Kseez>nLGrmI2en#Sxq2D9(l8;la2%*?n9j;5<#cZuF|DbsbA)NSm6GK*>Wb}6bTv0P%4+WRw%Ji=16+FuxgJtS1C"
        "?Ng&gb)Yv0qnfqX(WpjAV{c8TEyn2l?&cK(12y+Z9S6hEl~CnrYPFJD4yzjr=u0g;q8mnon))n7mKb{&rpa_x-=p*Bs2L_2FkoG)"
        "85DWK2qg9U^wU|3xp+>C>x;JLm<`rs^-J!iWjW1`x#=|Ltp(Gt24xr(VFCx^D1|r;%1FR4O=RIG1%50rDwCn2xhTp!nQ(IKXF{>K"
        "ap)H!K`1eJmH2Tu^agqA2SZ;LUYK}67%Q6}1d8m7LTN-I!!+?^_}w&4ocZ~LEoG6$-q4StN}SRySp;En9bWi{-BJqaO=`%}=vAEN"
        "**KIj#MnYNDPs>~6=8u1<cTg9SrlST@FFa{5gaPIJaT(j7mQ$Q()snN7S5K4RfEX$H1}d5rH|4iyDz24RUYtO=6;rmz{C1HahRof"
        ";l)0VRn?0FD<d_FQ3?|tDqB_#u%v3sev}UU$U7c9{)n?YJixKSog^y@UgeWKNO_VLJoby>m=|NgPx>Do?~$1ph9hiM71rguhbR{!"
        ";0JzG3VyxM*Z3&S`I`>WkcaAa;7fz0E`K7!WWS0%N~0)!signQBCm2k-<MBUpLZ)W@AKus3SW1-{K25WRx$lQ^Pv}J#J%6I{=i3h"
        "8lMeX8P8UFCJ8cpxpH<_c$Ytngf9h`Lhx}>Wb$gS7o<bkRnrZ`K~E&T2<It_-sE_CCm&FET*Ohkk~?pXv{N0ptSZ3X1rG#v63H&W"
        "xhGB5BgUP(Hy=Nt`}7tIzp>J9WxwqA`*hd%!n?Wa(;*ew_V)J4-K{R3VOIX@y}pVU%`v}qivRWK?e6<*>Z9y)_+X8o!ED97jlars"
        "Zc@^W+P5;@tNz>Oz^J^=S5d2_LLjd!wMuvFOQw9SdM5Elh`#}4dy~E"
    )
)


def test_what_jax_exports_is_a_program(tmp_path: Path) -> None:
    path = tmp_path / "exported"
    path.write_bytes(EXPORT)
    for model in (EXPORT, path):
        assert is_stablehlo(model)
    main = vm.VirtualMachine(vm.build(from_stablehlo(path), target="bytecode"))["main"]
    np.testing.assert_array_equal(main(np.ones((2, 3), np.float32)).numpy(), np.full((2, 3), 2, np.float32))
    with pytest.raises(RelvmAssertionError, match="Expected value >= 1 for dimension variable 'b'"):
        main(np.ones((0, 3), np.float32))


def test_damaged_exports_of_jax_are_rejected() -> None:
    generator = random.Random(0)
    for _ in range(300):
        damaged = bytearray(EXPORT)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        data = bytes(damaged[: generator.choice((len(damaged), generator.randrange(len(damaged))))])
        with suppress(RelvmError):
            from_stablehlo(data)


def test_a_module_can_declare_devices() -> None:
    text = (
        'module {\n sdy.mesh @mesh = <["x"=2]> {a = 1 : i64}\n' + ADD.replace("BODY", "return %x : tensor<2xf32>") + "}"
    )
    assert list(read_text(text, "x.mlir").functions) == ["main"]
