"""The checks of StableHLO programs: operations of the dialect check, and custom calls with the same names."""

from __future__ import annotations

from pathlib import Path

import pytest

from relvm import vm
from relvm.cli import main
from relvm.errors import RelvmAssertionError, RelvmFormatError, RelvmSyntaxError
from relvm.frontend.stablehlo import from_stablehlo
from relvm.frontend.stablehlo.registry import supported_operations

_PROGRAM = """func.func @main() {
  %a = stablehlo.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<[1.0, 4.00002]> : tensor<2xf32>
  %n = stablehlo.constant dense<[0x7FC00000, 0.0]> : tensor<2xf32>
  %m = stablehlo.constant dense<[0x7FC00000, -0.0]> : tensor<2xf32>
  %z = stablehlo.constant dense<[(1.0, 4.0), (2.0, 3.0)]> : tensor<2xcomplex<f32>>
  CHECK
  return
}
"""
_T = "tensor<2xf32>"

# Checks that pass.
PASSES = (
    f"check.expect_eq %a, %a : {_T}",
    f"check.expect_eq %n, %m : {_T}",
    "check.expect_eq %z, %z : tensor<2xcomplex<f32>>",
    f"check.expect_eq_const %a, dense<[1.0, 4.0]> : {_T}",
    f"check.expect_almost_eq %a, %b : {_T}",
    f"check.expect_almost_eq_const %a, dense<[1.0, 4.5]> : {_T} {{tolerance = 0.6 : f64}}",
    f"check.expect_close %a, %b, max_ulp_difference = 42 : {_T}, {_T}",
    f"check.expect_close %a, %a : {_T}, {_T}",
    f"check.eq %a, dense<[1.0, 4.0]> : {_T}",
    f"check.almost_eq %a, dense<[1.0, 4.00001]> : {_T}",
    f'"check.expect_close"(%a, %b) <{{max_ulp_difference = 42 : ui64}}> : ({_T}, {_T}) -> ()',
    f"stablehlo.custom_call @check.expect_eq(%a, %a) {{has_side_effect = true}} : ({_T}, {_T}) -> ()",
)
# Checks that fail, and parts of the messages.
FAILS = {
    f"check.expect_eq %a, %b : {_T}": r"element \[1\] is 4.0, expected 4.00002 \(1 of 2 elements differ\)",
    f"check.expect_eq %n, %a : {_T}": r"element \[0\] is nan, expected 1.0 \(2 of 2 elements differ\)",
    f"check.expect_eq_const %a, dense<4.0> : {_T}": r"element \[0\] is 1.0, expected 4.0",
    f"check.expect_almost_eq %a, %b, tolerance = 1.000000e-05 : {_T}": r"element \[1\] is 4.0, expected 4.00002",
    f"check.expect_almost_eq_const %a, dense<[1.5, 4.0]> : {_T}": r"element \[0\] is 1.0, expected 1.5",
    f"check.expect_close %a, %b, max_ulp_difference = 41 : {_T}, {_T}": r"element \[1\] is 4.0",
    f"check.expect_close %a, %b, max_ulp_difference = 99, min_ulp_difference = 43 : {_T}, {_T}": r"element \[1\]",
    f"check.eq %a, dense<[1.0, 5.0]> : {_T}": r"element \[1\] is 4.0, expected 5.0",
    f"check.almost_eq %a, dense<[1.0, 5.0]> : {_T}": r"element \[1\] is 4.0, expected 5.0",
    f"stablehlo.custom_call @check.expect_close(%a, %b) : ({_T}, {_T}) -> ()": r"element \[1\]",
}
# Checks that are malformed, the errors, and parts of their messages.
MALFORMED = {
    "check.expect_eq %a, %b : tensor<3xf32>": (RelvmSyntaxError, r"7:28: .*the stated types are \(tensor<3xf32>, tens"),
    "check.expect_eq %a, %b": (RelvmSyntaxError, "expected ':'"),
    "%r = check.expect_eq %a, %b : tensor<2xf32>": (RelvmSyntaxError, "check.expect_eq has 0 results, but 1 name"),
    "check.expect_eq_const %a": (RelvmSyntaxError, "expected ','"),
    "check.expect_eq_const %a, dense<1> : tensor<2xi32>": (RelvmFormatError, r"types f32\[2\] and i32\[2\]"),
}


def run(check: str) -> None:
    module = from_stablehlo(_PROGRAM.replace("CHECK", check).encode())
    vm.VirtualMachine(vm.build(module, target="bytecode"))["main"]()


@pytest.mark.parametrize("check", PASSES)
def test_checks_that_pass(check: str) -> None:
    run(check)


@pytest.mark.parametrize("check", FAILS)
def test_checks_that_fail_name_the_first_element(check: str) -> None:
    with pytest.raises(RelvmAssertionError, match=rf"model:7:3: check\.\w+: {FAILS[check]}"):
        run(check)


@pytest.mark.parametrize("check", MALFORMED)
def test_malformed_checks(check: str) -> None:
    error, message = MALFORMED[check]
    with pytest.raises(error, match=message):
        run(check)


def test_every_check_passes_and_fails() -> None:
    names = {name for name in supported_operations() if name.startswith("check.")}
    assert names == {check.split()[0] for check in PASSES if check.startswith("check.")}
    assert names == {check.split()[0] for check in FAILS if check.startswith("check.")}


def test_relvm_run_ends_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "test.mlir"
    program.write_text(_PROGRAM.replace("CHECK", next(iter(FAILS))))
    assert main(["run", str(program)]) == 1
    assert "test.mlir:7:3: check.expect_eq: element [1] is 4.0" in capsys.readouterr().err
    program.write_text(_PROGRAM.replace("CHECK", PASSES[0]))
    assert main(["run", str(program)]) == 0
