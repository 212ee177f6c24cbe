"""`relvm verify`: check an executable, or print digests of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import add_function, add_json, add_model_options, add_number, add_trust_native
from relvm.cli.inputs import chosen_inputs, signature_of
from relvm.cli.models import chosen_target, load_or_build
from relvm.cli.output import put, put_json
from relvm.cli.progress import Progress
from relvm.compiler.adapt import adapt
from relvm.compiler.target import EXACT_FMA
from relvm.ir.portable_random import PortableRandom
from relvm.quoting import terminal
from relvm.runtime.array_files import named_outputs
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.runtime.result_digest import result_digest
from relvm.tables import BUILTIN_PREFIX
from relvm.vm import Executable, VirtualMachine


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm verify model.rvm"
    parser.add_argument(
        "model",
        type=file_name,
        metavar="EXECUTABLE",
        help=".rvm, or a .so that relvm compile made; with --bits also a model",
    )
    parser.add_argument(
        "--bits",
        action="store_true",
        help="run a model on inputs that are the same everywhere, whose symbolic sizes --dim sets, and print digests "
        "of the outputs, to compare two computers",
    )
    add_json(parser)
    bits = parser.add_argument_group("options of --bits")
    add_model_options(bits)
    add_function(bits)
    bits.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="read an input from a file")
    add_number(bits, "--seed", "seed of the other inputs (default: 0)", least=0, default=0)
    bits.add_argument(
        "--exec-mode",
        choices=("bytecode", "compiled"),
        help="how functions run (default: bytecode)",
    )
    add_number(bits, "--threads", "number of threads of kernels", most=256)
    add_trust_native(bits)


def run(options: argparse.Namespace) -> int:
    """Check an executable as the loader does, including the elements of its tensors.

    Print what the executable contains, and which functions of the host it calls.  With --bits, run a model instead,
    and print digests of its outputs.
    """
    if options.bits:
        return _print_digests(options)
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


def _print_digests(options: argparse.Namespace) -> int:
    """Run a model on portable random inputs, and print digests of the inputs, the constants and the outputs."""
    options.random = True
    if options.target == "auto" and Path(options.model).suffix not in EXECUTABLE_SUFFIXES:
        options.target = f"{chosen_target(options)} {EXACT_FMA}"
    executable = adapt(load_or_build(options))
    machine = VirtualMachine(executable, num_threads=options.threads)
    machine.seed(options.seed)
    function = machine[options.function]
    signature = signature_of(executable, options.function)
    chosen = chosen_inputs(options, signature, lambda values: function(*values), PortableRandom)
    machine.seed(options.seed)  # the choice of sizes may have run the function
    outputs = named_outputs(function(*chosen.values), signature["attributes"].get("output_names"))
    constants = [value for value in executable.program.constants if isinstance(value, np.ndarray)]
    named = {name: result_digest(value) for name, value in outputs.items()}
    inputs, together = result_digest(tuple(map(_as_value, chosen.values))), result_digest(tuple(outputs.values()))
    if options.json:
        found = {"inputs": inputs, "constants": result_digest(tuple(constants)), "outputs": named, "all": together}
        put_json({"file": options.model, **found})
        return 0
    rows = [("inputs", inputs), ("constants", result_digest(tuple(constants)))]
    rows += [(f"output {terminal(name)}", digest) for name, digest in named.items()]
    rows.append(("all outputs", together))
    width = max(len(name) for name, _ in rows)
    put("\n".join(f"{name:{width}}  {_shown_digest(digest)}" for name, digest in rows))
    return 0


def _as_value(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic) else value


def _shown_digest(digest: str) -> str:
    """Return the first 24 digits of a digest in groups of four, which people can compare."""
    return " ".join(digest[k : k + 4] for k in range(0, 24, 4))
