"""Adaptation of executables with native code that this machine cannot run.

The C source of the executable is compiled again, or the portable program in the executable is used.
"""

from __future__ import annotations

from dataclasses import replace

from relvm.bytecode.program import NativeCode
from relvm.compiler.find_compiler import expect_compiler
from relvm.errors import RelvmToolchainError, RelvmUnsupportedError, expect_type
from relvm.runtime.executable import Executable


def adapt(executable: Executable) -> Executable:
    """Return the executable in a form that this machine can run.

    If this machine can run `executable`, return `executable` itself.  Otherwise, return the first of the following two
    executables that can be made, and log a warning with the logger "relvm".  The warning says why this machine cannot
    run `executable`, and which of the two is returned:

    1. The executable with its C source compiled for this processor.  The constants, the bytecode and the function table
    are unchanged.  The results are bit for bit the same as those of a build on this machine.  Making this executable
    requires a C compiler, the same version of relvm's headers, and a trusted executable:
    `load(path, trust_native=True, elsewhere=True)`.
    2. The portable program in the executable, which is function bytecode and kernel bytecode.  It is slower, and
    requires no trust.  An executable contains a portable program if it was built with `portable=True`.

    Parameters
    ----------
    executable
        The result of `load(path, elsewhere=True)`, or of `build` for another processor.  The result of
        `Executable.check`, which no machine can run, cannot be adapted.

    Returns
    -------
    Executable
        An executable that this machine can run.

    Raises
    ------
    RelvmTypeError
        `executable` is not an Executable.
    RelvmUnsupportedError
        Neither of the two executables can be made, or `executable` is the result of `Executable.check`.  The message
        states the reasons.
    RelvmFormatError
        The portable program is damaged, or the compiled C source lacks a function.

    Examples
    --------
    >>> from relvm import vm
    >>> from relvm.frontend.text import parse_module
    >>> executable = vm.build(parse_module("def main(i: i64) -> i64 = i + 1"))
    >>> vm.adapt(executable) is executable
    True
    """
    expect_type("adapt", executable, Executable, "an Executable")
    unsupported_reason = executable.unsupported_reason
    if not unsupported_reason:
        return executable
    if executable.is_only_checked:
        raise RelvmUnsupportedError(unsupported_reason)
    try:
        adapted = Executable.from_program(replace(executable.program, native=_compile_source(executable)))
        adapted.record_built()
    except (RelvmToolchainError, RelvmUnsupportedError) as error:
        reason = str(error).partition("\n")[0]
    else:
        _warn(f"{unsupported_reason}; compiling the C source in the executable for this processor instead")
        return adapted
    portable = executable.portable
    if portable is None:
        raise RelvmUnsupportedError(
            f"{unsupported_reason}; {reason}; the executable contains no portable program; add one with"
            " vm.build(portable=True)"
        )
    if portable.unsupported_reason:
        raise RelvmUnsupportedError(f"{unsupported_reason}; {reason}; {portable.unsupported_reason}")
    _warn(f"{unsupported_reason}; {reason}; running the portable program in the executable instead")
    return portable


def _compile_source(executable: Executable) -> NativeCode:
    """Compile the C source of an executable for this machine.

    Raises
    ------
    RelvmUnsupportedError
        The executable is not trusted, contains no C source, or its C source was made for another version of the
        runtime's headers.
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    if not executable.is_trusted:
        raise RelvmUnsupportedError("compiling the C source in the executable requires trust_native=True")
    if not executable.source:
        raise RelvmUnsupportedError("the executable contains no C source")
    from relvm.codegen.c.module import parse_source  # imported here, because most executables need no adaptation
    from relvm.compiler.toolchain import compile_native

    source = parse_source(executable.source)
    expect_compiler()
    return compile_native(source)


def _warn(message: str) -> None:
    import logging  # imported here, because most executables need no adaptation

    logging.getLogger("relvm").warning("%s", message)
