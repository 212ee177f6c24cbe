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
from harness import Call, Kernels, _fill
from ops.samples import SAMPLES, Sample
from test_operators import assert_gives_what_numpy_gives, numpy_result, static_result, static_type, symbolic_types

import relvm.errors
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.bytecode.kernel_program import decode_kernel
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.errors import RelvmFormatError
from relvm.ir.dtypes import F32
from relvm.ir.expr import KernelCall
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
from relvm.ir.operator import find_operator
from relvm.ir.types import TupleType
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
pytestmark = pytest.mark.skipif(_GCC is None, reason="no gcc")


@functools.cache
def runtime() -> tuple[cffi.FFI, Any]:
    """Compile the runtime with the interpreter of kernel bytecode to a shared library, and open it."""
    ffi = cffi.FFI()
    for name in ("relvm_values.h", "relvm_metadata.h", "relvm.h"):
        header = (csrc_directory() / "include" / name).read_text()
        ffi.cdef(header.partition("/* [begin cffi] */")[2].partition("/* [end cffi] */")[0])
    ffi.cdef(_DECLARATIONS)
    library = Path(mkdtemp()) / "kernels.so"
    command = [_GCC, "-std=gnu11", "-O1", "-fPIC", "-shared", "-fwrapv", "-w", *include_flags()]
    subprocess.run([*command, *runtime_sources(), _HOST, "-o", library, "-lm", "-lpthread", "-ldl"], check=True)
    return ffi, ffi.dlopen(str(library))


class Program:
    """A program that the verifier has accepted.  `run` works like Library.run in harness.py, but has no kernel name."""

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


class _Library:
    """A library of one kernel, in the form that assert_gives_what_numpy_gives expects."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, _: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        self.program.run(inputs, outputs)


def kernels_of(name: str) -> tuple[Kernels, list[tuple[Sample, bool]]]:
    """Return the kernels of all samples of an operator.

    Also return, for each kernel, its sample and whether its sizes are symbolic.
    """
    calls, cases = [], []
    for sample in SAMPLES:
        if sample.op != name:
            continue
        variants = {False: tuple(map(static_type, sample.args))}
        if sample.keep is not None:
            variants[True] = symbolic_types(sample)[0]
        for is_symbolic, types in variants.items():
            calls.append(Call(find_operator(name), types, sample.attributes))
            cases.append((sample, is_symbolic))
    return Kernels(calls), cases


@pytest.mark.parametrize("name", sorted({sample.op for sample in SAMPLES}))
def test_bytecode_gives_what_numpy_gives(name: str) -> None:
    kernels, cases = kernels_of(name)
    programs = {kernel: print_kernel_bytecode(value) for kernel, value in kernels.module.kernels}
    for number, (sample, is_symbolic) in enumerate(cases):
        runs = kernels.what_runs(number)
        if not isinstance(runs, KernelCall):
            continue
        program = Program(programs[runs.kernel].encode())
        values = symbolic_types(sample)[1] if is_symbolic else {}
        if sample.fails:
            expect_failure(sample, program)
        else:
            assert_gives_what_numpy_gives(sample, runs, _Library(program), values)


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


def expect_failure(sample: Sample, program: Program) -> None:
    with pytest.raises(sample.fails) as meant:
        numpy_result(sample)
    type_ = static_result(sample)
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    made = [np.zeros(field.shape, field.dtype.numpy) for field in fields]
    with pytest.raises(sample.fails) as raised:
        program.run([arg for arg in sample.args if isinstance(arg, np.ndarray)], made)
    assert str(raised.value) == str(meant.value)


def test_programs_round_trip_and_have_a_listing() -> None:
    kernels, _ = kernels_of("softmax")
    for name, kernel in kernels.module.kernels:
        content = print_kernel_bytecode(kernel).encode()
        assert decode_kernel(content).encode() == content
        assert kernel_listing(decode_kernel(content), name).startswith(f"kernel {name}\n  b0: input f")


def test_damaged_programs_fail_or_stay_inside_their_buffers() -> None:
    """Change random words of the code.  Programs that the verifier accepts must not write outside the output buffer."""
    kernels, cases = kernels_of("softmax")
    sample = cases[0][0]
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
