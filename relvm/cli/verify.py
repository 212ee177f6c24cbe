"""`relvm verify`: check an executable."""

from __future__ import annotations

import argparse

from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import add_json
from relvm.cli.output import put, put_json
from relvm.cli.progress import Progress
from relvm.quoting import terminal
from relvm.tables import BUILTIN_PREFIX
from relvm.vm import Executable


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm verify model.rvm"
    parser.add_argument("model", type=file_name, metavar="EXECUTABLE", help=".rvm, or a .so that relvm compile made")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check an executable as the loader does, including the elements of its tensors.

    Print what the executable contains, and which functions of the host it calls.
    """
    with Progress("verifying", options.model):
        executable = Executable.check(options.model)
    stats, native = executable.stats(), executable.program.native
    called = [name for name in stats.functions.get("packed", ()) if not name.startswith(BUILTIN_PREFIX)]
    where = f"{native.triple} {native.cpu}".rstrip() if native else "none"
    if options.json:
        put_json(
            {
                "file": options.model,
                "size_bytes": stats.size_bytes,
                "functions": {kind: len(names) for kind, names in stats.functions.items()},
                "instructions": sum(stats.instructions.values()),
                "constants": len(stats.constants),
                "tensor_bytes": stats.tensor_bytes,
                "host_functions": called,
                "native_code": where,
                "native_bytes": stats.native_bytes,
                "portable_bytes": stats.portable_bytes,
            }
        )
        return 0
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in stats.functions.items())
    put(f"{options.model}: {stats.size_bytes:,} bytes, as the format has it", styles={0: "good"})
    put(f"  functions: {counts or 'none'}; {sum(stats.instructions.values()):,} instructions")
    put(f"  constants: {len(stats.constants):,}, with {stats.tensor_bytes:,} bytes of tensors")
    put(f"  calls functions of the host: {terminal(', '.join(called)) or 'none'}")
    if native:
        put(f"  native code: {stats.native_bytes:,} bytes for {terminal(where)}, which nothing can verify")
    else:
        put("  native code: none")
    if stats.portable_bytes:
        put(f"  portable program: {stats.portable_bytes:,} bytes, as the format has it")
    return 0
