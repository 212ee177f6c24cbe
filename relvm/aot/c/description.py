"""Printing of the description of a hosted export: what the library was compiled from."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from relvm.aot.c.constants import array_lines
from relvm.aot.c.mangling import Names
from relvm.aot.c.metadata import dimension_arrays, tensor_info
from relvm.aot.config import AotConfig, Pool
from relvm.aot.lower.ir import LoweredModule
from relvm.aot.lower.printer import format_lowered
from relvm.aot.metadata_model import TensorInfo
from relvm.quoting import c_string


def print_description(module: LoweredModule, names: Names, config: AotConfig, source: str) -> str:
    """Return the C definition of `relvm_aot_description` (csrc/include/relvm.h).

    The text uses the macro RELVM_AOT_TARGET, a string with the target of the compilation.  If the macro is not defined,
    the text defines it as 0, which means unknown.

    module: the lowered module.
    names: the C names, with all constants of the module.
    source: the program in the text form.
    """
    infos = [
        TensorInfo(f"c{number}", storage.array.shape, storage.dtype.name)
        for number, storage in enumerate(names.constants)
    ]
    rows = [
        f"    {{{tensor_info(info, f'constant{number}')}, {names.prefix}_constants.{info.name}}},"
        for number, info in enumerate(infos)
    ]
    arrays = [dimension_arrays(info, f"constant{number}") for number, info in enumerate(infos)]
    if rows:
        arrays.append("\n".join(["static const rvm_aot_constant constants[] = {", *rows, "};"]))
    texts = {"config": format_config(config), "source": source, "lowered": format_lowered(module)}
    fields = [
        c_string(module.functions[-1].name),
        "config",
        "RELVM_AOT_TARGET",
        "source",
        "lowered",
        str(len(rows)),
        "constants" if rows else "0",
    ]
    return "\n\n".join(
        [
            "#ifndef RELVM_AOT_TARGET\n#define RELVM_AOT_TARGET 0\n#endif",
            *(_text(name, text) for name, text in texts.items()),
            *filter(None, arrays),
            "extern const rvm_aot_description relvm_aot_description;\n"
            f"const rvm_aot_description relvm_aot_description = {{{', '.join(fields)}}};",
        ]
    )


def format_config(config: AotConfig) -> str:
    """Return the options of an export as JSON.  `parse_config` is the inverse."""
    return json.dumps(asdict(config))


def parse_config(text: str) -> AotConfig:
    options = json.loads(text)
    return AotConfig(**{**options, "pools": tuple(Pool(**pool) for pool in options["pools"])})


def _text(name: str, text: str) -> str:
    """Return the C definition of an array with a text.  C99 compilers accept longer arrays than string literals.

    The characters of the text are printed as their UTF-8 codes.
    """
    codes = np.frombuffer(text.encode() + b"\0", np.int8)
    return "\n".join([f"static const char {name}[] = {{", *array_lines(codes, "    "), "};"])
