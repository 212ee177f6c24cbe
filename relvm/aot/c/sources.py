"""Printing of the C sources of an export."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relvm.aot.c.constants import constants_bytes, print_constants, print_constants_type
from relvm.aot.c.description import print_description
from relvm.aot.c.entry_point import print_entry
from relvm.aot.c.functions import print_function, signature
from relvm.aot.c.header import print_header, print_metadata_header
from relvm.aot.c.kernels import plain_signature, print_plain_kernel, without_dead_assignments
from relvm.aot.c.mangling import Names
from relvm.aot.c.metadata import print_metadata
from relvm.aot.c.narrow_counters import narrow_counters
from relvm.aot.c.packed_kernels import print_extern_helpers, print_library, print_table
from relvm.aot.config import AotConfig, CallKind
from relvm.aot.lower.ir import LoweredModule, TensorStorage
from relvm.aot.lower.place_storage import FunctionPlacement
from relvm.aot.metadata_model import Metadata, metadata_of
from relvm.codegen.c.kernel import kernel_prototype, micro_kernel_headers, print_kernel
from relvm.data_classes import dataclass
from relvm.errors import RelvmMemoryError
from relvm.tables import csrc_directory, find_header

# A header of runtime functions that kernels call, besides micro-kernels -> a pattern for the names of its functions.
_NARROW = r"(b?f16|f8e\w+|f6e\w+|f4e\w+|[iu][24])"
_HEADERS = {
    "float_bits.h": r"rvm_(bits_of_\w+|\w+_of_bits)\(",
    "kernel_math.h": r"rvm_(exp|exp_ftz|log|log1p|tanh|erf|sin|cos)_f32\(",
    "portable_math.h": r"rvm_(a?(cos|sin|tan)h?|atan2|cbrt|erfc?|exp|exp_ftz|expm1|log|log1p|pow)_f(32|64)\(",
    "kernel_conversions.h": r"rvm_([iu](8|16|32|64)_of_f(32|64)|saturate_\w+|power_\w+)\(",
    "small_floats.h": rf"rvm_(\w+_of_{_NARROW}|{_NARROW}_of_\w+|odd_f32_of_f64)\(",
    "packed.h": r"rvm_kernel_check\(",
    "reproducible.h": r"RVM_FMA_F32\(",
}
# Disables warnings about constructs that are normal in generated C: a maximum of one number, an unused value, a
# division by 0 that is never executed.
_QUIET = "\n".join(
    [
        "#ifdef __GNUC__",
        *(
            f'#pragma GCC diagnostic ignored "-W{name}"'
            for name in (
                "div-by-zero",
                "parentheses",
                "tautological-compare",
                "type-limits",
                "unused-but-set-variable",
                "unused-variable",
            )
        ),
        # GCC does not see that a tile is not read before it is written.  Clang has no such warning.
        "#ifndef __clang__",
        '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"',
        "#endif",
        "#endif",
    ]
)
# A processor such as an AVR would compile the code, but compute other results.
_PROCESSOR = """\
#include <float.h>
#include <limits.h>
#include <stdint.h>

#if INT_MAX < 0x7fffffff || SIZE_MAX < 0xffffffff || DBL_MANT_DIG != 53
#error "this code requires int and pointers of at least 32 bits, and double of 64 bits"
#endif"""
# The options of the Makefile that results depend on.  Build systems of boards use options of their own.
_SEMANTICS = """\
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("wrapv", "fp-contract=off")
#endif"""
_INCLUDE = re.compile(r'^#include "([a-z_0-9]+\.(?:h|def))"$', re.MULTILINE)


@dataclass(frozen=True)
class Sources:
    """The C sources of an export.

    Attributes
    ----------
    files
        The text of each file, by path.
    pool_bytes, constants_bytes
        The size of each pool, and the size of all constants.
    constants
        The constants, in the order of the members of the C struct of constants.
    metadata
        The metadata of the export.
    """

    files: dict[str, str]
    pool_bytes: tuple[int, ...]
    constants_bytes: int
    constants: tuple[TensorStorage, ...]
    metadata: Metadata


def print_sources(
    module: LoweredModule, placements: Mapping[str, FunctionPlacement], config: AotConfig, source: str
) -> Sources:
    """Return the sources of an export: the public header, the model, kernels, constants and metadata.

    The result also contains the headers of relvm that these files include.   source: the program in the text form.
    """
    name, names = config.name, Names(config.name)
    functions = [print_function(function, module, placements, names) for function in module.functions]
    pool_bytes = placements[module.functions[-1].name].size_bytes
    size = _expect_constants(names, config)
    metadata = metadata_of(module, config, pool_bytes)
    files = {
        f"include/{name}.h": print_header(module, metadata, config, size),
        f"include/{name}_metadata.h": print_metadata_header(name),
        f"src/{name}_internal.h": _internal(module, names, config),
        f"src/{name}_metadata.c": f'#include "{name}_metadata.h"\n\n{print_metadata(metadata)}\n',
        f"src/{name}.c": _model(module, placements, names, config, functions, source),
        **_kernels(module, names, config),
    }
    if names.constants:
        included = f'#include <math.h>\n\n#include "{name}_internal.h"\n\n'
        section = config.known_board.constants_section if config.known_board else ""
        files[f"src/{name}_constants.c"] = included + print_constants(names.constants, name, section) + "\n"
    _add_headers(files, is_bare=config.runtime == "bare")
    return Sources(dict(sorted(files.items())), pool_bytes, size, tuple(names.constants), metadata)


def _add_headers(files: dict[str, str], *, is_bare: bool) -> None:
    """Add headers of csrc to `files`: those that the files include, directly or through other headers.

    A header goes to the folder `include` if a public header includes it, otherwise to `src`.

    files: the text of each file, by path.
    is_bare: whether the export is for the bare runtime.
    """
    for folder in ("include", "src"):
        waiting = [name for path, text in files.items() if path.startswith(folder) for name in _INCLUDE.findall(text)]
        while waiting:
            name = waiting.pop()
            if f"src/{name}" in files or f"include/{name}" in files:
                continue
            text = files[f"{folder}/{name}"] = _header_text(name, is_bare=is_bare)
            waiting += _INCLUDE.findall(text)


def _header_text(name: str, *, is_bare: bool) -> str:
    """Return the text of the header `name` of csrc.

    is_bare: whether the export is for the bare runtime.  If so, some headers come from the folder codegen/bare.
    """
    bare = csrc_directory() / "codegen" / "bare" / name
    path = bare if is_bare and bare.exists() else find_header(name)
    assert path is not None, f"no header {name} in csrc"
    return path.read_text(encoding="utf-8").replace('#include "../tables/', '#include "')


def _expect_constants(names: Names, config: AotConfig) -> int:
    """Return the size of all constants in bytes.  Raise RelvmMemoryError if it exceeds the limit in `config`."""
    size, limit = constants_bytes(names.constants, config.alignment), config.constants_limit_bytes
    if limit is not None and size > limit:
        largest = max(names.constants, key=lambda storage: storage.array.nbytes)
        dims = ", ".join(map(str, largest.shape))
        raise RelvmMemoryError(
            f"the constants take {size} bytes, {size - limit} more than the limit of {limit}; the largest is "
            f"{largest.dtype}[{dims}], {largest.array.nbytes} bytes"
        )
    return size


def _internal(module: LoweredModule, names: Names, config: AotConfig) -> str:
    if module.calls is CallKind.UNPACKED:
        prototypes = [plain_signature(kernel, names.kernel(name)) + ";" for name, kernel in module.kernels.items()]
    else:
        prototypes = [kernel_prototype(names.kernel(name)) for name in module.kernels]
    guard = f"{config.name.upper()}_INTERNAL_H"
    parts = [
        f"#ifndef {guard}\n#define {guard}",
        _PROCESSOR,
        *([_SEMANTICS] if config.board is not None else []),
        f'#include "compiler.h"\n#include "{config.name}.h"',
        _QUIET,
        *([print_constants_type(names.constants, config.name, config.alignment)] if names.constants else []),
        "\n".join(prototypes),
        f"#endif /* {guard} */",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _kernels(module: LoweredModule, names: Names, config: AotConfig) -> dict[str, str]:
    """Return the C file with all kernels, as a dict from its path to its text.  If there are no kernels, return {}."""
    texts = []
    for name, kernel in module.kernels.items():
        symbol, kernel = names.kernel(name), without_dead_assignments(kernel)
        is_plain = module.calls is CallKind.UNPACKED
        if is_plain and config.kernel_favour == "size":
            kernel = narrow_counters(kernel)
        text = print_plain_kernel(kernel, symbol) if is_plain else print_kernel(kernel, symbol)
        texts.append(text)
    headers = micro_kernel_headers(module.kernels.values())
    return {f"src/{config.name}_kernels.c": _unit(texts, headers, config)} if texts else {}


def _unit(kernels: list[str], headers: list[str], config: AotConfig) -> str:
    body = "\n\n".join(kernels)
    headers = [*headers, *(header for header, used in _HEADERS.items() if re.search(used, body))]
    lines = [f'#include "{name}"' for name in sorted([f"{config.name}_internal.h", *headers])]
    return "\n\n".join(["#include <math.h>\n#include <string.h>", "\n".join(lines), body]) + "\n"


def _model(
    module: LoweredModule,
    placements: Mapping[str, FunctionPlacement],
    names: Names,
    config: AotConfig,
    functions: list[str],
    source: str,
) -> str:
    calls, pool_bytes = module.calls, placements[module.functions[-1].name].size_bytes
    headers = [f"{config.name}_internal.h", "scalar_ops_values.h"]
    headers += ["packed.h"] if config.interface == "packed" else []
    headers += ["relvm_views.h"] if module.externs else []
    is_hosted = config.runtime == "hosted"
    headers += [f"{config.name}_metadata.h"] if is_hosted else []
    parts = [
        "#include <math.h>\n#include <string.h>",
        "\n".join(f'#include "{header}"' for header in sorted(headers)),
        "#define RVM_TRY(call) \\\n  do { \\\n    const int32_t status_ = (call); \\\n"
        "    if (status_ != RVM_OK) return status_; \\\n  } while (0)",
        *([print_table(module.kernels, names, config)] if calls is CallKind.PACKED else []),
        *([print_extern_helpers(calls)] if module.externs else []),
        "\n".join(signature(f, placements[f.name], names, calls) + ";" for f in module.functions),
        *functions,
        print_entry(module, pool_bytes, names, config),
        *([print_library(config), print_description(module, names, config, source)] if is_hosted else []),
    ]
    return "\n\n".join(parts) + "\n"
