"""Golden tests of the two kernel printers: kernel_bytecode.cases and kernel_c.cases."""

from __future__ import annotations

from pathlib import Path

from support.golden_cases import Case, check_case, golden

from relvm.bytecode.kernel_printer import kernel_listing
from relvm.codegen.c.kernel import print_kernel
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.frontend.text import parse_module
from relvm.kernels.kernel import Kernel
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

HERE = Path(__file__).parent


def printed(kernel: Kernel, form: str) -> str:
    return kernel_listing(print_kernel_bytecode(kernel)) if form == "kernel_bytecode" else print_kernel(kernel, "k")


@golden(HERE / "kernel_bytecode.cases", HERE / "kernel_c.cases")
def test_golden_cases(case: Case, update: bool) -> None:
    module = run_passes(parse_module(case.source), build_pipeline("c"))
    check_case(case, "\n".join(printed(kernel, case.path.stem) for _, kernel in module.kernels), update)
