"""Executables: verified programs in binary form, in memory or mapped from a file, that machines can run."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from relvm._native import ffi, lib
from relvm.bytecode.container import aligned_buffer, unpack_sections
from relvm.bytecode.decode import decode, decode_constants, decode_signature
from relvm.bytecode.encode import encode
from relvm.bytecode.program import FunctionEntry, Program, callees
from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.errors import RelvmTypeError, RelvmUnsupportedError, counted, expect_type
from relvm.numpy_dtypes import DTYPE_NAMES, dtype_number, plain_bytes
from relvm.quoting import terminal
from relvm.runtime import binding
from relvm.runtime.background_compile import Upgrade
from relvm.runtime.file_io import complete_file, map_executable
from relvm.runtime.native_parts import native_parts
from relvm.runtime.signature import Signatures, signature_table
from relvm.runtime.status import failure
from relvm.runtime.trust import is_built_here, record_built
from relvm.tables import KINDS, REFERENCE_PREFIX

# Names of registered functions that an untrusted program is allowed to call by default.
KERNEL_LIBRARY = (f"{REFERENCE_PREFIX}*",)


@dataclass(frozen=True, repr=False)
class Stats(Displayed):
    """Statistics of the contents of an executable.  `str(stats)` is a readable table.

    Attributes
    ----------
    size_bytes
        The size of the whole executable.
    constants
        The constants as text: "f32[2, 3], 24 bytes", "Shape(2, 3)"...
    tensor_bytes
        The size of all tensors.
    functions
        For each kind of function, the names of the functions of that kind.
    calls
        For each function, the number of call instructions that refer to it.  The key is the name of the function.  For
        a packed function that has the name of a function that the program defines, it is "packed " and the name.
    instructions
        For each bytecode function, the number of its instructions.
    native_bytes
        The size of the library in the native section.
    portable_bytes
        The size of the portable program, without the tensors that it shares with the executable.
    """

    size_bytes: int
    constants: tuple[str, ...]
    tensor_bytes: int
    functions: dict[str, tuple[str, ...]]
    calls: dict[str, int]
    instructions: dict[str, int]
    native_bytes: int
    portable_bytes: int = 0

    def __str__(self) -> str:
        lines = [f"{self.size_bytes} bytes, of which native code {self.native_bytes}, tensors {self.tensor_bytes}"]
        if self.portable_bytes:
            lines[0] += f", the portable program {self.portable_bytes}"
        lines.append(counted(len(self.constants), "constant"))
        lines += [f"  c{index}: {text}" for index, text in enumerate(self.constants)]
        for kind, names in self.functions.items():
            lines.append(counted(len(names), f"{kind} function"))
            for name in names:
                size = f", {counted(self.instructions[name], 'instruction')}" if name in self.instructions else ""
                count = self.calls.get(_call_key(kind, name, self.functions))
                calls = f", called at {counted(count, 'place')}" if count else ""
                lines.append(f"  {terminal(name)}{size}{calls}")
        lines.append(counted(sum(self.instructions.values()), "instruction"))
        return "\n".join(lines)


def _call_key(kind: str, name: str, functions: Mapping[str, Collection[str]]) -> str:
    """Return the key of a function in `Stats.calls`.

    functions: the names of the functions of each kind.
    """
    is_shared = kind == "packed" and any(name in names for other, names in functions.items() if other != "packed")
    return f"packed {name}" if is_shared else name


@dataclass(frozen=True)
class LoadPolicy:
    """The policy of loading an executable: the content to accept, and the extent of the checks.

    check_only: whether to load the executable only for checking.  It cannot run, and its native code is not loaded.
    The other fields are the parameters of `Executable.open`.
    """

    trust_native: bool = False
    elsewhere: bool = False
    check_data: bool = False
    check_only: bool = False
    functions: Iterable[str] | None = None
    max_bytes: int = 0

    def __post_init__(self) -> None:
        expect_type("max_bytes", self.max_bytes, Integral, "an integer")
        names = _function_names(KERNEL_LIBRARY if self.functions is None else self.functions)
        object.__setattr__(self, "functions", names)

    def of_portable(self) -> LoadPolicy:
        """Return the policy for the portable program of the executable, which contains no native code."""
        functions = ("*",) if self.trust_native else self.functions
        return LoadPolicy(check_data=self.check_data, check_only=self.check_only, functions=functions)


class Executable(Displayed):
    """A verified program.

    An executable is immutable, so copying it returns the same object.  Any number of machines can run it at the same
    time.

    An executable is pickled as its bytes.  Executables with native code can be unpickled only on the machine where they
    were built, as with loading a file.  On other machines, unpickling raises RelvmUnsupportedError.  To send such an
    executable to another machine, use `to_bytes` here, and `from_bytes` with trust_native=True there.

    Use `Executable.from_program`, `from_bytes` or `open` to create one.

    Attributes
    ----------
    pointer
        The C object.  Machines keep it alive.
    upgrade
        The background compilation of the native code if the executable was built with exec_mode="auto", otherwise None.
    is_trusted
        Whether the executable was built in this process or loaded with trust_native=True.  If so, its C source is
        allowed to be compiled and run.
    is_only_checked
        Whether the executable was returned by `check`.  Machines cannot run it.
    """

    def __init__(
        self,
        buffer: Any,
        policy: LoadPolicy,
        *,
        program: Program | None = None,
        where: str = "",
        portable: bool = False,
    ) -> None:
        # buffer: must be 64-byte aligned and must not change, because the tensors in it are not copied.
        # portable: whether to load the portable program that the buffer contains, instead of the executable itself.
        if not (isinstance(buffer, np.ndarray) and buffer.dtype == np.uint8):
            expect_type("buffer", buffer, (bytes, bytearray, memoryview), "the bytes of an executable")
        parts = () if policy.trust_native or policy.check_only or portable else native_parts(buffer, where)
        is_built_by_user = bool(parts) and is_built_here(*parts)
        is_untrusted = bool(parts) and not is_built_by_user
        if is_untrusted and not policy.elsewhere:
            message = "it contains native code that was not built on this machine; pass trust_native=True to run it"
            raise RelvmUnsupportedError(f"{where or 'the executable'}: {message}")
        names = [ffi.new("char[]", name.encode()) for name in policy.functions or ()]
        callable_names = ffi.new("const char *[]", names)
        pointer = ffi.new("rvm_executable **")
        error = ffi.new("rvm_value *")
        view = ffi.from_buffer(buffer)
        held = ffi.cast("void *", binding.hold(view))
        release_object = ffi.cast("void(*)(void *)", binding.RELEASE_OBJECT)
        options = ffi.new(
            "rvm_load_options *",
            {
                "trust_native": bool(policy.trust_native or is_built_by_user),
                "check_only": bool(policy.check_only or is_untrusted),
                "check_data": bool(policy.check_data),
                "elsewhere": bool(policy.elsewhere),
                "portable": portable,
                "functions": callable_names,
                "function_count": len(names),
                "max_bytes": int(policy.max_bytes),
                "release": release_object,
                "release_argument": held,
            },
        )
        status = lib.rvm_executable_load(view, len(view), options, pointer, error)
        if status:
            release_object(held)
            raise failure(status, error, where)
        self.pointer = pointer[0]
        self.is_trusted = policy.trust_native
        self.is_only_checked = policy.check_only
        self._policy = policy
        self._buffer = buffer
        self._is_portable = portable
        self._where = where
        self._cannot_run_reason = ""
        if is_untrusted:
            self._cannot_run_reason = "it contains native code that was not built on this machine and is not trusted"
        elif policy.check_only:
            self._cannot_run_reason = "the executable was loaded for checking only and cannot run"
        self.upgrade: Upgrade[Executable] | None = None
        if program:
            self.program = program
        weakref.finalize(self, lib.rvm_executable_release, self.pointer).atexit = False

    @classmethod
    def from_program(cls, program: Program, *, elsewhere: bool = False) -> Executable:
        """Return the executable of a program that was created in this process.  Its native code is trusted.

        Parameters
        ----------
        program
            A program from code generation, ExecBuilder or a listing.
        elsewhere
            Whether to accept native code for another processor.  Such an executable can be saved, but this machine
            cannot run it.

        Raises
        ------
        RelvmTypeError
            `program` is not a Program.
        RelvmFormatError
            The program violates a rule of the format, for example, a register is read before it is written, or two
            functions have the same name.
        RelvmUnsupportedError
            The native code is for another processor.
        """
        expect_type("from_program", program, Program, "a Program")
        buffer = encode(program)
        held = replace(program, constants=decode_constants(buffer))  # use the tensors in the buffer, not a second copy
        if held.portable:
            held = replace(held, portable=replace(held.portable, constants=decode_constants(buffer, portable=True)))
        return cls(buffer, LoadPolicy(trust_native=True, elsewhere=elsewhere, functions=("*",)), program=held)

    def record_built(self) -> None:
        """Record that this user built the executable on this machine.

        Its native code is then trusted when the executable is loaded again.

        Nothing is recorded if the executable has no native code, or if the cache directory is not writable.
        """
        with contextlib.suppress(OSError):
            if not self._is_portable and (parts := native_parts(self._buffer, self._where)):
                record_built(*parts)

    @classmethod
    def from_bytes(
        cls,
        content: bytes | bytearray | memoryview,
        *,
        trust_native: bool = False,
        elsewhere: bool = False,
        functions: Iterable[str] | None = None,
    ) -> Executable:
        """Return the executable with the bytes `content`, which are copied.

        Parameters
        ----------
        content
            The bytes of an executable, as `to_bytes` returns them.
        trust_native
            Whether to run native code that this user did not build on this machine.
        elsewhere
            Whether to accept native code that cannot run here, because it is untrusted or for another machine.
        functions
            The names of the registered functions that a program without native code is allowed to call (see `open`).

        Raises
        ------
        RelvmTypeError
            `content` is not bytes.
        RelvmFormatError, RelvmUnsupportedError
            `content` is damaged, its native code is untrusted or for another machine, or a call is not allowed.
        """
        try:
            view = memoryview(content).cast("B")
        except TypeError:
            raise RelvmTypeError(f"from_bytes: expected bytes, got {type(content).__name__}") from None
        buffer = aligned_buffer(len(view))
        memoryview(buffer.data)[:] = view
        return cls(buffer, LoadPolicy(trust_native=trust_native, elsewhere=elsewhere, functions=functions))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike,
        *,
        trust_native: bool = False,
        elsewhere: bool = False,
        check_data: bool = False,
        functions: Iterable[str] | None = None,
        max_bytes: int = 0,
    ) -> Executable:
        """Map the executable in a file, or in an exported library, into memory.

        Its tensors are read from the file when they are used.

        `open` checks the whole executable, except for the checksums of large sections.  A checksum covers all bytes of
        a section, so its verification reads all of them.  If the section of tensor elements or of the portable program
        is larger than 1 MB, `open` verifies its checksum only if `check_data` is set.

        Do not write to the file while the executable is in use.  Replace the file instead, as `save` does.

        Parameters
        ----------
        path
            The path of the file.
        trust_native
            Whether to run native code that this user did not build on this machine (relvm/runtime/trust.py).  Native
            code can do everything that the calling process can.  If this user built a file, it remains trusted when
            only the elements of its tensors change.
        elsewhere
            Whether to accept native code that is untrusted, or for another processor, architecture, version or system.
            Such an executable cannot run, but it can be saved, and `vm.adapt` converts it to an executable that runs
            here.
        check_data
            Whether to verify all checksums, also if the section of tensor elements or of the portable program is larger
            than 1 MB.
        functions
            The names of the registered functions that a program without native code is allowed to call.  A name that
            ends with * stands for all names with that prefix.  The default, None, allows the kernels of target "numpy".
            Builtins are always allowed.  A program with trusted native code is allowed to call any function.
        max_bytes
            The maximum size of the file in bytes, or 0 for no limit.

        Raises
        ------
        OSError
            The file cannot be read.
        RelvmFormatError
            The file is damaged, truncated, or not an executable.
        RelvmUnsupportedError
            The native code is not trusted, or is for another processor or version; the program calls a function that is
            not allowed; or the file is too large.
        """
        policy = LoadPolicy(trust_native, elsewhere, check_data, functions=functions, max_bytes=max_bytes)
        return cls(map_executable(path), policy, where=str(path))

    @classmethod
    def check(cls, path: str | os.PathLike, *, check_data: bool = True) -> Executable:
        """Check an executable file without running any of its code.

        Native code in the file is not loaded.  Machines cannot run the returned executable.

        Parameters
        ----------
        path
            The path of the file.
        check_data
            Whether to also check the portable program, and to verify the checksums of the elements of tensors even if
            the elements take more than 1 MB.

        Raises
        ------
        OSError, RelvmFormatError, RelvmUnsupportedError
            The file cannot be read, is damaged or not an executable, or has an unsupported version.
        """
        policy = LoadPolicy(check_data=check_data, check_only=True, functions=("*",))
        executable = cls(map_executable(path), policy, where=str(path))
        if check_data:
            executable._open_portable()
        return executable

    def save(self, path: str | os.PathLike) -> None:
        """Write the executable to the file `path`.  The file is created or replaced atomically.

        Raises
        ------
        OSError
            The file cannot be written; an existing file is unchanged.
        """
        with complete_file(path) as partial:
            partial.write_bytes(self.to_buffer())

    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes."""
        return bytes(self.to_buffer())

    def to_buffer(self) -> memoryview:
        """Return a read-only view of the bytes that `save` writes.  Unlike `to_bytes`, this normally copies nothing.

        An executable returned by `portable` is encoded anew, because its buffer is that of the whole executable.
        """
        buffer: Any = encode(self.program) if self._is_portable else self._buffer
        return memoryview(buffer).toreadonly()

    @cached_property
    def program(self) -> Program:
        """The program as Python objects.  Its tensors are read-only views of the executable.

        Raises RelvmFormatError or RelvmUnsupportedError if the executable contains an invalid portable program.
        """
        _ = self.portable  # verifies the portable program before it is decoded
        return decode(self._buffer, portable=self._is_portable)

    @cached_property
    def functions(self) -> dict[str, FunctionEntry]:
        """The entries of the function table, by name, in the order of the table.

        A packed function is left out if the program defines a function of the same name.
        """
        table = self.program.functions
        defined = {entry.name for entry in table if entry.kind != "packed"}
        return {entry.name: entry for entry in table if entry.kind != "packed" or entry.name not in defined}

    @property
    def function_count(self) -> int:
        """The length of the function table."""
        return lib.rvm_executable_function_count(self.pointer)

    def function_name(self, index: int) -> str:
        """Return the name of the function at `index` of the function table."""
        return ffi.string(lib.rvm_executable_function_name(self.pointer, index)).decode()

    def function_kind(self, index: int) -> str:
        """Return the kind of the function at `index`: a row name of csrc/tables/kinds.def."""
        return KINDS[lib.rvm_executable_function_kind(self.pointer, index)].name

    @cached_property
    def signature(self) -> Signatures:
        """The parameter and result types of each function that is not private, by function name."""
        return Signatures(decode_signature(self._buffer, portable=self._is_portable))

    @property
    def source(self) -> str:
        """The C source of the native code, or an empty string if the executable does not contain the source."""
        return self.program.source

    @property
    def unsupported_reason(self) -> str:
        """The reason why this host cannot run the executable, such as a missing processor feature, or "" if it can."""
        error = ffi.new("rvm_value *")
        if not self.is_only_checked and (status := lib.rvm_executable_check_native(self.pointer, error)):
            return str(failure(status, error, self._where))
        return f"{self._where or 'the executable'}: {self._cannot_run_reason}" if self._cannot_run_reason else ""

    @property
    def digest(self) -> bytes:
        """The SHA-256 digest of the bytecode, kernels and constants.

        Native code that was compiled from this executable contains the digest (see `replaces`).  Of the elements of
        tensors, the digest includes only the size and the checksum.
        """
        digest = ffi.new("unsigned char[32]")
        error = ffi.new("rvm_value *")
        if status := lib.rvm_executable_digest(self.pointer, digest, error):
            raise failure(status, error, self._where)
        return bytes(digest)

    @property
    def replaces(self) -> bytes:
        """The digest of the executable whose bytecode the native code can replace in a machine, or zeros."""
        native = self.program.native
        return native.replaces if native else bytes(32)

    @cached_property
    def portable(self) -> Executable | None:
        """The portable program that the executable contains (`vm.build(portable=True)`), or None.

        The portable program is for machines that cannot run the native code.  It is checked like a file that is opened
        with `open`, and is allowed to call the same functions as the executable.

        Raises
        ------
        RelvmFormatError
            The portable program is damaged, or itself contains native code or a portable program.
        RelvmUnsupportedError
            The portable program has another major version, or calls a function that is not allowed.
        """
        return self._open_portable()

    def _open_portable(self) -> Executable | None:
        if self._is_portable or "portable" not in unpack_sections(self._buffer):
            return None
        where = f"{self._where or 'the executable'}: its portable program"
        return Executable(self._buffer, self._policy.of_portable(), portable=True, where=where)

    def as_text(self) -> str:
        """Return the program as a text listing.  relvm.bytecode.asm_parser.parse_text parses such a listing."""
        from relvm.bytecode.asm_printer import as_text  # imported here, because few programs need it

        return as_text(self.program)

    def as_python(self) -> str:
        """Return a Python program that builds the same executable with ExecBuilder, as the variable `executable`.

        The Python program contains native code and kernels in base64.

        Raises
        ------
        RelvmUnsupportedError
            The executable contains a packed function with a symbol or registers, which `vm.build` does not create.
        """
        from relvm.bytecode.python_printer import as_python

        return as_python(self.program)

    def stats(self) -> Stats:
        """Return the statistics of the executable."""
        program = self.program
        kinds: dict[str, list[str]] = {}
        for entry in program.functions:
            kinds.setdefault(entry.kind, []).append(entry.name)
        names = [_call_key(entry.kind, entry.name, kinds) for entry in program.functions]
        calls: Counter[str] = Counter()
        for entry in program.functions:
            calls.update(names[callee] for each in entry.code for callee in callees(each))
        return Stats(
            size_bytes=len(self.to_buffer()),
            constants=tuple(map(_describe, program.constants)),
            tensor_bytes=sum(plain_bytes(value).size for value in program.constants if isinstance(value, np.ndarray)),
            functions={kind: tuple(names) for kind, names in kinds.items()},
            calls=dict(calls),
            instructions={entry.name: len(entry.code) for entry in program.functions if entry.code},
            native_bytes=len(program.native.library) if program.native else 0,
            portable_bytes=0 if self._is_portable else len(unpack_sections(self._buffer).get("portable", b"")),
        )

    def __copy__(self) -> Executable:
        return self

    def __deepcopy__(self, memo: Any) -> Executable:
        return self

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _unpickled, (self.to_bytes(),)

    def __str__(self) -> str:
        return f"<Executable of {counted(self.function_count, 'function')}>"

    def _repr_html_(self) -> str:
        kinds = Counter(map(self.function_kind, range(self.function_count)))
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        title = f"Executable: {counted(self.function_count, 'function')} ({counts}), {len(self.to_buffer()):,} bytes"
        return signature_table(self.signature, title)


def load(
    path: str | os.PathLike,
    *,
    trust_native: bool = False,
    elsewhere: bool = False,
    check_data: bool = False,
    functions: Iterable[str] | None = None,
    max_bytes: int = 0,
) -> Executable:
    """Open the executable in a file, or in an exported library.  This function calls `Executable.open`.

    Parameters
    ----------
    path
        The path of the file.
    trust_native
        Whether to run native code that this user did not build on this machine.
    elsewhere
        Whether to accept native code that cannot run here, because it is untrusted or for another machine.
    check_data
        Whether to verify the checksums of large sections, too.
    functions
        The names of the registered functions that a program without native code is allowed to call.
    max_bytes
        The maximum size of the file in bytes, or 0 for no limit.

    Raises
    ------
    OSError, RelvmFormatError, RelvmUnsupportedError
        The file cannot be read, is damaged or not an executable, or requires something that is not allowed.
    """
    return Executable.open(
        path,
        trust_native=trust_native,
        elsewhere=elsewhere,
        check_data=check_data,
        functions=functions,
        max_bytes=max_bytes,
    )


def _unpickled(content: bytes) -> Executable:
    """Create an executable from a pickle.

    All registered functions are allowed, because a pickle can call any function anyway.  Native code that was compiled
    elsewhere is rejected.
    """
    return Executable.from_bytes(content, functions=("*",))


def _function_names(functions: Iterable[str]) -> list[str]:
    """Return `functions` as a list.  Raise RelvmTypeError if it is not an iterable of function names."""
    if isinstance(functions, str | bytes) or not isinstance(functions, Iterable):
        raise RelvmTypeError(f"functions: expected a list of names, got {functions!r}")
    names = list(functions)
    for name in names:
        if not isinstance(name, str) or "\0" in name or not name.isprintable():
            raise RelvmTypeError(f"functions: expected function names, got {name!r}")
    return names


def _describe(value: Any) -> str:
    match value:
        case np.ndarray():
            name, dims = DTYPE_NAMES[dtype_number(value.dtype)], ", ".join(map(str, value.shape))
            return f"{name}[{dims}], {plain_bytes(value).size} bytes"
        case np.dtype():
            return f"dtype {DTYPE_NAMES[dtype_number(value)]}"
        case str():
            return f"string of {len(value)} characters"
    return f"{value!r}"
