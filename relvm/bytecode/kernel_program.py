"""Programs in kernel bytecode: Python objects, and their encoding as bytes that csrc/kernels/kernel_verify.c reads."""

from __future__ import annotations

import struct

import numpy as np

from relvm.data_classes import dataclass
from relvm.errors import RelvmFormatError

VERSION = 2
_HEADER = struct.Struct("<16I")
_OPERANDS = 7
_EXACT_FMA = 1  # a flag in the header


@dataclass(frozen=True)
class KernelProgram:
    """A kernel in kernel bytecode.

    Attributes
    ----------
    tensors
        The dtype, rank and dimensions of each tensor as integers, inputs first.  A dimension >= 0 is a known size.  A
        dimension -1 - k stands for size variable k, counted from 0, whose value is known only at run time.
    inputs, outputs, sizes
        How many input tensors, output tensors and size variables the kernel has.
    constants
        The constants, as 64 bits each.  They are the initial values of the scalar registers that follow the registers
        of the size variables.
    registers
        How many scalar registers, strip registers (several elements each) and view registers (references to several
        elements in a buffer) the kernel has.
    arrays
        The offset and the size, in bytes, of each array in the scratch memory.
    code
        The instructions.  Each is an opcode of csrc/tables/kernel_opcodes.def, followed by at most 7 operands.
    arguments
        The argument table: the operands of instructions that take any number of operands.
    messages
        The error messages of `fail` instructions.
    scratch_bytes
        The size of the scratch memory.
    exact_fma
        Whether fused multiply-adds round once on every processor, also on one that computes them in software.
    """

    tensors: tuple[int, ...]
    inputs: int
    outputs: int
    sizes: int
    constants: tuple[int, ...]
    registers: tuple[int, int, int]
    arrays: tuple[tuple[int, int], ...]
    code: tuple[tuple[int, ...], ...]
    arguments: tuple[int, ...]
    messages: tuple[str, ...]
    scratch_bytes: int
    exact_fma: bool = False

    def encode(self) -> bytes:
        """Return the program as bytes.  The number of bytes is a multiple of 8."""
        messages = b"".join(text.encode() + b"\0" for text in self.messages)
        tensors = self.inputs + self.outputs
        counts = [VERSION, len(self.tensors), self.inputs, tensors, self.sizes, len(self.constants), *self.registers]
        counts += [len(self.arrays), len(self.code), len(self.arguments), len(self.messages)]
        rows = [(*step, *[0] * (1 + _OPERANDS - len(step))) for step in self.code]
        parts = (
            _HEADER.pack(*counts, len(messages), self.scratch_bytes, _EXACT_FMA if self.exact_fma else 0),
            np.array(self.tensors, "<i8").tobytes(),
            np.array(self.constants, "<u8").tobytes(),
            np.array(self.arrays, "<u4").tobytes(),
            np.array(rows, "<u2").tobytes(),
            np.array(self.arguments, "<u2").tobytes(),
            messages,
        )
        return b"".join(part + bytes(-len(part) % 8) for part in parts)


def decode_kernel(content: bytes | memoryview) -> KernelProgram:
    """Decode the bytes of a kernel program, such as the result of `KernelProgram.encode`.

    Raises
    ------
    RelvmFormatError
        The bytes are not in this version of the format, or have the wrong length.  The same error is raised if the
        error messages of the kernel are not UTF-8, or if their number differs from the number in the header.
    """
    if len(content) < _HEADER.size or len(content) % 8 or _HEADER.unpack_from(content)[0] != VERSION:
        raise RelvmFormatError(
            f"a kernel program of {len(content)} bytes does not begin with a header of version {VERSION}"
        )
    _, words, inputs, tensors, sizes, constants, *rest, flags = _HEADER.unpack_from(content)
    scalars, strips, views, arrays, steps, arguments, count, message_bytes, scratch = rest
    offset = _HEADER.size
    if flags & ~_EXACT_FMA:
        raise RelvmFormatError(f"a kernel program has the unknown flags {flags:#x} in its header")

    def take(dtype: str, items: int) -> np.ndarray:
        nonlocal offset
        size = np.dtype(dtype).itemsize * items
        if size > max(0, len(content) - offset):
            raise RelvmFormatError(f"a kernel program of {len(content)} bytes is shorter than its header states")
        found = np.frombuffer(content, dtype, items, offset)
        offset += -(-size // 8) * 8
        return found

    program = KernelProgram(
        tensors=tuple(take("<i8", words).tolist()),
        inputs=inputs,
        outputs=tensors - inputs,
        sizes=sizes,
        constants=tuple(take("<u8", constants).tolist()),
        registers=(scalars, strips, views),
        arrays=tuple(map(tuple, take("<u4", 2 * arrays).reshape(-1, 2).tolist())),
        code=tuple(map(tuple, take("<u2", (1 + _OPERANDS) * steps).reshape(-1, 1 + _OPERANDS).tolist())),
        arguments=tuple(take("<u2", arguments).tolist()),
        messages=_messages(take("u1", message_bytes).tobytes(), count),
        scratch_bytes=scratch,
        exact_fma=flags == _EXACT_FMA,
    )
    if offset != len(content) or inputs > tensors:
        raise RelvmFormatError(
            f"a kernel program of {len(content)} bytes does not have the size that its header states"
        )
    return program


def _messages(content: bytes, count: int) -> tuple[str, ...]:
    *texts, rest = content.split(b"\0")
    try:
        messages = tuple(text.decode() for text in texts)
    except UnicodeDecodeError:
        raise RelvmFormatError("an error message stored in a kernel program is not UTF-8 text") from None
    if rest or len(messages) != count:
        raise RelvmFormatError(f"a kernel program has {len(messages)} messages, but its header states {count}")
    return messages
