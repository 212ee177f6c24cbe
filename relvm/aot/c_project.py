"""The C sources of a bare export."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from relvm.aot.c_constants import constants_bytes, print_constants, print_constants_type
from relvm.aot.c_functions import print_function, signature
from relvm.aot.c_kernels import plain_signature, print_plain_kernel
from relvm.aot.c_names import Names
from relvm.aot.c_text import CTYPES
from relvm.aot.config import AotConfig
from relvm.aot.lowered import LoweredModule, Port, ScalarVar
from relvm.aot.placement import FunctionPlacement
from relvm.codegen.c_kernel import is_exact
from relvm.errors import RelvmMemoryError
from relvm.ir.dims import DimVar, format_dim
from relvm.tables import STATUS, csrc_directory

# Which header has what kernels call, by the names.
_NARROW = r"(b?f16|f8e\w+|f6e\w+|f4e\w+|[iu][24])"
_HEADERS = {
    "attention.h": r"rvm_attention\(",
    "byte_tile.h": r"rvm_(tile|taps)_bytes\(|rvm_words_of_",
    "kernel_math.h": r"rvm_((exp|log|log1p|tanh|erf|sin|cos)_f32|bits_of_\w+|\w+_of_bits)\(",
    "kernel_numbers.h": r"rvm_([iu](8|16|32|64)_of_f(32|64)|saturate_\w+|power_\w+)\(",
    "narrow.h": rf"rvm_(\w+_of_{_NARROW}|{_NARROW}_of_\w+|odd_f32_of_f64)\(",
    "tile.h": r"rvm_(tile|taps|columns)_f32\(|rvm_copy_bytes\(|rvm_transposed_tile\(",
    "winograd.h": r"rvm_winograd_",
}
EXACT = "exact_"  # in the name of the file of kernels in which no product and sum may be rounded together
_INCLUDE = re.compile(r'^#include "([a-z_]+\.h)"$', re.MULTILINE)


@dataclass(frozen=True)
class Sources:
    """An export's files by their path, and the bytes that it needs of each pool and for constants."""

    files: dict[str, str]
    pool_bytes: tuple[int, ...]
    constants_bytes: int


def print_sources(module: LoweredModule, placements: Mapping[str, FunctionPlacement], config: AotConfig) -> Sources:
    """The header that callers include, the model, its kernels and its constants, and what of relvm they include."""
    names = Names(config.name)
    functions = [print_function(function, module, placements, names) for function in module.functions]
    kernels: dict[bool, list[str]] = {False: [], True: []}
    for name, kernel in module.kernels.items():
        kernels[is_exact(kernel)].append(print_plain_kernel(kernel, names.kernel(name)))
    entry = module.functions[-1]
    pool_bytes = placements[entry.name].size_bytes
    size = _expect_constants(names, config)
    header = _Header(module, config, pool_bytes, size)
    files = {
        f"include/{config.name}.h": header.text(),
        f"src/{config.name}_internal.h": _internal(module, names, config),
        f"src/{config.name}.c": _model(module, placements, names, config, functions),
    }
    for exact, texts in kernels.items():
        if texts:
            files[f"src/{config.name}_{EXACT if exact else ''}kernels.c"] = _kernels(texts, config)
    if names.constants:
        included = f'#include <math.h>\n\n#include "{config.name}_internal.h"\n\n'
        files[f"src/{config.name}_constants.c"] = included + print_constants(names.constants, config.name) + "\n"
    waiting = [name for text in files.values() for name in _INCLUDE.findall(text)]
    while waiting:
        name = waiting.pop()
        place = f"src/{name}"
        if place in files or f"include/{name}" in files:
            continue
        files[place] = _shared(name)
        waiting += _INCLUDE.findall(files[place])
    return Sources(dict(sorted(files.items())), pool_bytes, size)


def _expect_constants(names: Names, config: AotConfig) -> int:
    """The bytes of the constants.  Raises RelvmMemoryError: more than the limit."""
    size, limit = constants_bytes(names.constants, config.alignment), config.constants_limit_bytes
    if limit is not None and size > limit:
        largest = max(names.constants, key=lambda storage: storage.value.nbytes)
        dims = ", ".join(map(str, largest.shape))
        raise RelvmMemoryError(
            f"constants take {size} bytes, {size - limit} more than the limit of {limit}; the largest is "
            f"{largest.dtype}[{dims}], {largest.value.nbytes} bytes"
        )
    return size


def _shared(name: str) -> str:
    """A header of csrc."""
    directory = csrc_directory()
    bare = directory / "bare" / name
    return (bare if bare.exists() else directory / name).read_text()


class _Header:
    """The header that callers include."""

    def __init__(
        self, module: LoweredModule, config: AotConfig, pool_bytes: tuple[int, ...], constants_bytes: int
    ) -> None:
        self.module = module
        self.config = config
        self.entry = module.functions[-1]
        self.pool_bytes = pool_bytes
        self.constants_bytes = constants_bytes

    def text(self) -> str:
        name = self.config.name
        guard = f"{name.upper()}_H"
        parts = [
            f"/* {name}.h: a model, made by relvm.  Inputs and outputs must not overlap. */",
            f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            _status_codes(),
            self.sizes(),
            self.struct("inputs", self.module.inputs, "const "),
            self.struct("outputs", self.module.outputs, ""),
        ]
        if self.config.workspace == "caller":
            parts.append(self.workspaces())
        parts += [self.run(), self.descriptor(), "#ifdef __cplusplus\n}\n#endif", f"#endif /* {guard} */"]
        return "\n\n".join(parts) + "\n"

    def sizes(self) -> str:
        upper = self.config.name.upper()
        lines = ["/* Bytes that a run needs besides inputs and outputs, and the constants. */"]
        for pool, size in zip(self.config.pools, self.pool_bytes, strict=True):
            lines.append(f"#define {upper}_{pool.name.upper()}_BYTES {size}")
        return "\n".join([*lines, f"#define {upper}_CONSTANTS_BYTES {self.constants_bytes}"])

    def struct(self, what: str, ports: tuple[Port, ...], const: str) -> str:
        lines = [f"struct {self.config.name}_{what} {{"]
        for port in ports:
            match port.value:
                case int() as number:
                    storage = self.entry.storages[number]
                    shape = ", ".join(map(format_dim, storage.shape))
                    lines.append(f"  {const}{storage.dtype.ctype} *{port.name}; /* {storage.dtype}[{shape}] */")
                case ScalarVar(letter=letter):
                    star = "" if what == "inputs" else "*"
                    lines.append(f"  {CTYPES[letter]} {star}{port.name};")
                case DimVar() as var:
                    low, high = next((low, high) for known, low, high in self.entry.sizes if known is var)
                    lines.append(f"  int64_t {port.name}; /* {low} to {'any' if high is None else high} */")
        if not ports:
            lines.append("  char none; /* C has no empty struct */")
        return "\n".join([*lines, "};"])

    def workspaces(self) -> str:
        lines = [f"/* Memory of {self.config.alignment} bytes alignment that nothing else uses during a run. */"]
        lines.append(f"struct {self.config.name}_workspaces {{")
        lines += [f"  void *{pool.name};" for pool in self.config.pools]
        return "\n".join([*lines, "};"])

    def run(self) -> str:
        return f"/* RVM_OK, or why the run ended. */\n{run_signature(self.config)};"

    def descriptor(self) -> str:
        return (
            "#ifndef RELVM_AOT_MODEL\n#define RELVM_AOT_MODEL\n"
            "/* A model for callers who do not know its types: run takes its structs. */\n"
            "struct relvm_aot_model {\n"
            "  const char *name;\n"
            "  int32_t (*run)(const void *inputs, const void *outputs, const void *workspaces);\n"
            "  int32_t inputs;\n  int32_t outputs;\n};\n#endif\n"
            f"extern const struct relvm_aot_model {self.config.name}_model;"
        )


def run_signature(config: AotConfig) -> str:
    """The declaration of the entry."""
    name = config.name
    parts = [f"const struct {name}_inputs *inputs", f"const struct {name}_outputs *outputs"]
    if config.workspace == "caller":
        parts.append(f"const struct {name}_workspaces *workspaces")
    return f"int32_t {name}_run({', '.join(parts)})"


def _status_codes() -> str:
    rows = ",\n".join(f"  RVM_{row.name} = {row.index}" for row in STATUS)
    return f"#ifndef RELVM_STATUS\n#define RELVM_STATUS\nenum relvm_status {{\n{rows}\n}};\n#endif"


def _internal(module: LoweredModule, names: Names, config: AotConfig) -> str:
    prototypes = [plain_signature(kernel, names.kernel(name)) + ";" for name, kernel in module.kernels.items()]
    guard = f"{config.name.upper()}_INTERNAL_H"
    parts = [
        f"#ifndef {guard}\n#define {guard}",
        f'#include "{config.name}.h"\n#include "relvm_bare.h"',
        *([print_constants_type(names.constants, config.name, config.alignment)] if names.constants else []),
        "\n".join(prototypes),
        f"#endif /* {guard} */",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _kernels(kernels: list[str], config: AotConfig) -> str:
    body = "\n\n".join(kernels)
    headers = [header for header, used in _HEADERS.items() if re.search(used, body)]
    lines = [f'#include "{name}"' for name in sorted([f"{config.name}_internal.h", *headers])]
    return "\n\n".join(["#include <math.h>\n#include <string.h>", "\n".join(lines), body]) + "\n"


def _model(
    module: LoweredModule,
    placements: Mapping[str, FunctionPlacement],
    names: Names,
    config: AotConfig,
    functions: list[str],
) -> str:
    prototypes = [signature(f, placements[f.name], names) + ";" for f in module.functions]
    parts = [
        "#include <math.h>\n#include <string.h>",
        f'#include "{config.name}_internal.h"\n#include "prim_values.h"',
        "#define RVM_TRY(call) \\\n  do { \\\n    const int32_t status_ = (call); \\\n"
        "    if (status_ != RVM_OK) return status_; \\\n  } while (0)",
        "\n".join(prototypes),
        *functions,
        _entry(module, placements, names, config),
    ]
    return "\n\n".join(parts) + "\n"


def _entry(module: LoweredModule, placements: Mapping[str, FunctionPlacement], names: Names, config: AotConfig) -> str:
    entry, name = module.functions[-1], config.name
    pool_bytes = placements[entry.name].size_bytes
    lines, arguments = [], []
    for pool, size in zip(config.pools, pool_bytes, strict=True):
        if size and config.workspace == "static":
            lines.append(f"static RVM_ALIGNED({config.alignment}) uint8_t {name}_{pool.name}[{size}];")
            arguments.append(f"{name}_{pool.name}")
        elif size:
            arguments.append(f"workspaces->{pool.name}")
    body = ["  if (!inputs || !outputs) return RVM_ARGUMENT_ERROR;"]
    if config.workspace == "caller":
        wanted = " || ".join(["!workspaces", *(f"!{argument}" for argument in arguments)])
        body.append(f"  if ({wanted}) return RVM_ARGUMENT_ERROR;")
    inputs, outputs = _by_value(module.inputs), _by_value(module.outputs)
    fields = [f"inputs->{inputs[number]}" for number in entry.inputs]
    fields += [f"outputs->{outputs[number]}" for number in entry.outputs]
    results = [f"outputs->{outputs[var]}" for var in entry.results]
    if fields or results:
        body.append(f"  if ({' || '.join(f'!{field}' for field in (*fields, *results))}) return RVM_ARGUMENT_ERROR;")
    for var, low, high in entry.sizes:
        size = f"inputs->{inputs[var]}"
        above = "" if high is None else f" || {size} > {high}"
        body.append(f"  if ({size} < {low}{above}) return RVM_SHAPE_ERROR;")
        fields.append(size)
    fields += [f"inputs->{inputs[var]}" for var in entry.scalars] + results
    call = f"{names.function(entry.name)}({', '.join([*arguments, *fields])})"
    given = "workspaces" if config.workspace == "caller" else ""
    return "\n".join(
        [
            *lines,
            *([""] if lines else []),
            f"{run_signature(config)} {{",
            *body,
            f"  return {call};",
            "}",
            "",
            f"static int32_t {name}_run_any(const void *inputs, const void *outputs, const void *workspaces) {{",
            *([] if given else ["  (void)workspaces;"]),
            f"  return {name}_run(inputs, outputs{', ' + given if given else ''});",
            "}",
            "",
            f"const struct relvm_aot_model {name}_model = "
            f'{{"{name}", {name}_run_any, {len(module.inputs)}, {len(module.outputs)}}};',
        ]
    )


def _by_value(ports: tuple[Port, ...]) -> dict[object, str]:
    return {port.value: port.name for port in ports}
