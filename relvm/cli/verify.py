"""`relvm verify`."""

from __future__ import annotations

import argparse

from relvm.vm.runtime import Executable


def verify_file(options: argparse.Namespace) -> int:
    """Checks an executable as loading it does, its tensors' elements too, and says what it would run and call."""
    executable = Executable.check(options.model)
    stats, native = executable.stats(), executable.program.native
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in stats.functions.items())
    print(f"{options.model}: {stats.size_bytes:,} bytes, as the format has it")
    print(f"  functions: {counts or 'none'}; {sum(stats.instructions.values()):,} instructions")
    print(f"  constants: {len(stats.constants):,}, with {stats.tensor_bytes:,} bytes of tensors")
    called = [name for name in stats.functions.get("packed", ()) if not name.startswith("vm.builtin.")]
    print(f"  calls functions of the host: {', '.join(called) or 'none'}")
    if native:
        where = f"{native.triple} {native.cpu}".rstrip()
        print(f"  native code: {stats.native_bytes:,} bytes for {where}, which nothing can verify")
    else:
        print("  native code: none")
    if stats.portable_bytes:
        print(f"  portable program: {stats.portable_bytes:,} bytes, as the format has it")
    return 0
