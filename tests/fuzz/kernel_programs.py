"""Small programs in kernel bytecode, for operators that together call every micro-kernel."""

from __future__ import annotations

from harness import Call, Kernels
from ops.samples import SAMPLES
from test_operators import static_type, symbolic_types

from relvm.bytecode.kernel_program import KernelProgram
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.ir.operator import find_operator
from relvm.tables import KERNEL_OPCODES, MICRO_KERNELS

OPERATORS = (
    *(
        "argmax",
        "attention",
        "bit_cast",
        "cast",
        "conv",
        "conv_by_size",
        "conv_integer",
        "conv_packed",
        "conv_winograd",
        "cumsum",
        "dynamic_quantize",
    ),
    *("gather", "gather_elements", "interpolate", "matmul", "matmul_integer_packed", "matmul_packed", "max_pool"),
    *(
        "pad",
        "power",
        "remainder",
        "saturating_cast",
        "scatter_nd",
        "slice",
        "softmax",
        "sum",
        "transpose",
        "tree_ensemble",
        "where",
    ),
)
_INVOKE = [row.name for row in KERNEL_OPCODES].index("invoke")


def _invoked(program: KernelProgram) -> frozenset[str]:
    return frozenset(MICRO_KERNELS[step[1]].name for step in program.code if step[0] == _INVOKE)


def kernel_programs() -> dict[str, KernelProgram]:
    """Return, by name, the shortest program for each operator and each set of micro-kernels that it calls."""
    calls = []
    for sample in SAMPLES:
        if sample.op in OPERATORS:
            types = symbolic_types(sample)[0] if sample.keep is not None else tuple(map(static_type, sample.args))
            calls.append(Call(find_operator(sample.op), types, sample.attributes))
    shortest: dict[tuple[str, frozenset[str]], tuple[int, str, KernelProgram]] = {}
    for name, kernel in Kernels(calls).module.kernels:
        program = print_kernel_bytecode(kernel)
        operator = max((op for op in OPERATORS if name.startswith(op)), key=len, default=name)
        key, size = (operator, _invoked(program)), len(program.encode())
        if key not in shortest or size < shortest[key][0]:
            shortest[key] = size, name, program
    return {name: program for _, name, program in sorted(shortest.values(), key=lambda entry: entry[:2])}
