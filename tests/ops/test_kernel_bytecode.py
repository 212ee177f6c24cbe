"""Tests of bytecode kernels: every sample has the same result as in NumPy, and damaged programs are safe."""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import cffi
import numpy as np
import pytest
from harness import Call, Kernels, _fill, function_of
from ops.samples import SAMPLES, Sample
from support.modes import plain
from test_operators import SAMPLED, assert_result, naming, numpy_result, static_type, symbolic_types

import relvm.errors
from relvm import vm
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.bytecode.kernel_program import decode_kernel
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.errors import RelvmFormatError
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
from relvm.ir.operator import find_operator
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.tables import KERNEL_OPCODES, STATUS, csrc_directory, include_flags, runtime_sources

_HOST = Path(__file__).with_name("kernel_host.c")
_GCC = shutil.which("gcc")
_DECLARATIONS = """
typedef struct { char bytes[256]; } program;
int rvm_kernel_program_read(const void *, int64_t, program *, rvm_value *);
int test_run(const program *, const rvm_value *, int32_t, rvm_value *);
"""
_ON_STRIPS = {"view", "view_written", "gather", "strided", "scatter", "store_strided", "choose", "move", "iota", "fill"}
needs_gcc = pytest.mark.skipif(_GCC is None, reason="no gcc")


@functools.cache
def runtime() -> tuple[cffi.FFI, Any]:
    """Compile the runtime with the interpreter of kernel bytecode to a shared library, and open it."""
    ffi = cffi.FFI()
    for name in ("relvm_values.h", "relvm_metadata.h", "relvm.h"):
        header = (csrc_directory() / "include" / name).read_text()
        ffi.cdef(header.partition("/* [begin cffi] */")[2].partition("/* [end cffi] */")[0])
    ffi.cdef(_DECLARATIONS)
    library = Path(mkdtemp()) / "kernels.so"
    command = [
        _GCC,
        "-std=gnu11",
        "-O1",
        "-fPIC",
        "-shared",
        "-fwrapv",
        "-w",
        "-DRVM_WITHOUT_EXACT_FMA",
        *include_flags(),
    ]
    subprocess.run([*command, *runtime_sources(), _HOST, "-o", library, "-lm", "-lpthread", "-ldl"], check=True)
    return ffi, ffi.dlopen(str(library))


class Program:
    """A program that the verifier has accepted, to run without a machine."""

    def __init__(self, content: bytes) -> None:
        ffi, library = runtime()
        self.content = ffi.new("uint64_t[]", -(-len(content) // 8))
        ffi.memmove(self.content, content, len(content))
        self.program, error = ffi.new("program *"), ffi.new("rvm_value *")
        if library.rvm_kernel_program_read(self.content, len(content), self.program, error):
            raise RelvmFormatError(ffi.string(getattr(error, "as").error.message).decode())

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        ffi, library = runtime()
        arrays = [*map(np.asarray, inputs), *outputs]
        arguments, result = ffi.new("rvm_value[]", max(1, len(arrays))), ffi.new("rvm_value *")
        alive = [_fill(ffi, arguments[i], array) for i, array in enumerate(arrays)]
        code = library.test_run(self.program, arguments, len(alive), result)
        if code:
            message = ffi.string(getattr(result, "as").error.message).decode()
            raise getattr(relvm.errors, STATUS[code].python_class)(message)


def calls_of(name: str, part: int) -> tuple[list[Call], list[Sample]]:
    """Return calls with samples of an operator, and the sample of each call.

    part: 0 for each sample once, with static and symbolic sizes in turn, or 1 for the sizes that part 0 omits.
    """
    calls, cases = [], []
    for number, sample in enumerate(sample for sample in SAMPLES if sample.op == name):
        variants = [tuple(map(static_type, sample.args))]
        if sample.keep is not None:
            variants.insert(number % 2, symbolic_types(sample)[0])
        for types in variants[:1] if part == 0 else variants[1:]:
            calls.append(Call(find_operator(name), types, sample.attributes))
            cases.append(sample)
    return calls, cases


def check_bytecode(name: str, part: int) -> None:
    calls, cases = calls_of(name, part)
    functions = tuple(function_of(f"case{number}", call) for number, call in enumerate(calls))
    machine = vm.VirtualMachine(vm.build(Module(functions), target="bytecode"))
    for number, sample in enumerate(cases):
        with naming(sample):
            args = [vm.Shape(arg) if isinstance(arg, tuple) else arg for arg in sample.args]
            if not sample.fails:
                assert_result(sample, plain(machine[f"case{number}"](*args)))
                continue
            with pytest.raises(sample.fails) as meant:
                numpy_result(sample)
            with pytest.raises(sample.fails) as raised:
                machine[f"case{number}"](*args)
            assert str(meant.value) in str(raised.value)


@pytest.mark.parametrize("name", SAMPLED)
def test_bytecode_gives_what_numpy_gives(name: str) -> None:
    check_bytecode(name, 0)


@pytest.mark.parametrize("name", sorted({sample.op for sample in SAMPLES if sample.keep is not None}))
def test_bytecode_of_other_sizes_gives_what_numpy_gives(name: str) -> None:
    check_bytecode(name, 1)


@needs_gcc
def test_multiply_add_of_scalars_and_strips() -> None:
    """Evaluate a chain of fused multiply-adds.  Some operands vary along the strip, and one result is used twice."""
    x, y, out = Buffer("x", F32, (600,)), Buffer("y", F32, (2,)), Buffer("out", F32, (600,))
    k = KernelBuilder()

    def fma(*args: Scalar) -> Scalar:
        return Operation("fma", args, F32)

    with k.loop(600, name="i", simd=True) as i:
        fixed = fma(y[0], y[1], Literal(5.0, F32))
        first = k.let("first", fma(x[i], y[0], x[i]))
        k.store(out, (i,), fma(y[0], y[1], fma(first, first, fma(x[i], fixed, fixed))) + first)
    program = Program(print_kernel_bytecode(Kernel("k", (x, y), (out,), tuple(k.blocks[0]), "")).encode())
    a, b, made = np.arange(600, dtype=np.float32) - 300, np.float32([3, -2]), np.zeros(600, np.float32)
    program.run([a, b], [made])
    fixed_, first_ = b[0] * b[1] + 5, a * b[0] + a
    np.testing.assert_array_equal(made, b[0] * b[1] + first_ * first_ + a * fixed_ + fixed_ + first_)


def test_programs_round_trip_and_have_a_listing() -> None:
    kernels = Kernels(calls_of("softmax", 0)[0])
    for name, kernel in kernels.module.kernels:
        content = print_kernel_bytecode(kernel).encode()
        assert decode_kernel(content).encode() == content
        assert kernel_listing(decode_kernel(content), name).startswith(f"kernel {name}\n  b0: input f")


@needs_gcc
def test_damaged_programs_fail_or_stay_inside_their_buffers() -> None:
    """Change random words of the code.  Programs that the verifier accepts must not write outside the output buffer."""
    calls, cases = calls_of("softmax", 0)
    kernels, sample = Kernels(calls), cases[0]
    program = print_kernel_bytecode(dict(kernels.module.kernels)[kernels.what_runs(0).kernel])
    x = np.ascontiguousarray(sample.args[0])
    content, code = program.encode(), np.array(program.code, object)
    start = len(content) - sum(-(-size // 8) * 8 for size in (2 * len(program.arguments),)) - 16 * len(code)
    rng, refused, ran = random.Random(5), 0, 0
    for _ in range(3000):
        damaged = bytearray(content)
        word = start + 2 * rng.randrange(8 * len(code))
        damaged[word : word + 2] = rng.choice((0, 1, 2, 3, 4, 8, 60000, rng.randrange(64))).to_bytes(2, "little")
        try:
            accepted = Program(bytes(damaged))
        except RelvmFormatError as error:
            assert str(error).startswith("kernel bytecode: ")
            refused += 1
            continue
        if not changes_strips_only(program.code, decode_kernel(bytes(damaged)).code):
            continue  # the program may run forever, and without a machine nothing would end it
        room = np.full(x.size + 128, 7, x.dtype)
        out = room[64 : 64 + x.size].reshape(x.shape)
        try:
            accepted.run([x], [out])
        except relvm.errors.RelvmError as error:
            assert "kernel" in str(error)
        ran += 1
        assert (room[:64] == 7).all() and (room[64 + x.size :] == 7).all()
    assert refused > 300 and ran > 100


def changes_strips_only(before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]]) -> bool:
    """Return whether no differing instruction writes a scalar, so that all loops are the same."""
    pairs = [((*old, *[0] * (8 - len(old))), new) for old, new in zip(before, after, strict=True)]
    changed = [row for old, new in pairs if old != new for row in (old, new)]
    return all(KERNEL_OPCODES[row[0]].name in _ON_STRIPS for row in changed)
