"""Printing of the public header of an export."""

from __future__ import annotations

from relvm.aot.c.mangling import Names
from relvm.aot.c.packed_kernels import extern_prototype
from relvm.aot.config import AotConfig
from relvm.aot.lower.ir import LoweredModule, Port, ScalarVar
from relvm.aot.metadata_model import Metadata, TensorInfo, dim_text, range_text, size_names
from relvm.codegen.c.scalars import CTYPES
from relvm.ir.symbolic import DimVar
from relvm.quoting import c_comment
from relvm.tables import STATUS


def print_header(module: LoweredModule, metadata: Metadata, config: AotConfig, constants_bytes: int) -> str:
    """Return the text of an export's public header, which declares the entry point.

    For a packed entry point, a comment describes the arguments.  Otherwise, structs declare the inputs and outputs.
    """
    name = config.name
    is_packed = config.interface == "packed"
    parts = [
        f"/* {name}.h: the interface of a model.  Outputs, and inputs that are updated, must not overlap any other\n"
        "   input or output. */",
        *_guard(name),
    ]
    has_externs = bool(module.externs) and config.runtime == "bare"
    parts.append('#include "relvm_views.h"' if is_packed or has_externs else "#include <stdint.h>")
    parts += (
        ['/* An allocator for workspaces.  Its use is optional. */\n#include "relvm_stack.h"']
        if config.caller_provides_pools
        else []
    )
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif')
    parts.append(_sizes(metadata, constants_bytes))
    if is_packed:
        parts += [_arguments(metadata, config), f"{packed_signature(config)};", _packed_descriptor(name)]
    else:
        parts += [*([] if has_externs else [_status_codes()]), _struct("inputs", module.inputs, module, config)]
        parts += [_struct("outputs", module.outputs, module, config)]
        parts += [_workspaces(config)] if config.caller_provides_pools else []
        what = "/* Runs the model.  Returns RVM_OK, or the status of the error that ended the run. */"
        parts += [f"{what}\n{run_signature(config)};", _descriptor(name)]
    if has_externs:
        parts.append(_externs(module, Names(name)))
    parts += ["#ifdef __cplusplus\n}\n#endif", f"#endif /* {name.upper()}_H */"]
    return "\n\n".join(parts) + "\n"


def print_metadata_header(name: str) -> str:
    """Return the text of the header that declares the metadata."""
    guard = f"{name}_metadata"
    declaration = f"extern const rvm_metadata {name}_metadata;"
    end = f"#endif /* {guard.upper()}_H */"
    return "\n\n".join([*_guard(guard), '#include "relvm_metadata.h"', declaration, end]) + "\n"


def run_signature(config: AotConfig) -> str:
    """Return the declaration of an entry point with interface "c"."""
    name = config.name
    parts = [f"const struct {name}_inputs *inputs", f"const struct {name}_outputs *outputs"]
    if config.caller_provides_pools:
        parts.append(f"const struct {name}_workspaces *workspaces")
    return f"int32_t {name}_run({', '.join(parts)})"


def packed_signature(config: AotConfig) -> str:
    """Return the declaration of an entry point with interface "packed"."""
    return f"rvm_status {config.name}_run(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)"


def _guard(name: str) -> list[str]:
    return [f"#ifndef {name.upper()}_H\n#define {name.upper()}_H"]


def _sizes(metadata: Metadata, constants_bytes: int) -> str:
    upper = metadata.mod_name.upper()
    lines = ["/* Sizes in bytes: of each memory pool for intermediate tensors, and of all constants. */"]
    lines += [f"#define {upper}_{pool.name.upper()}_BYTES {pool.shape[0]}" for pool in metadata.pools]
    return "\n".join([*lines, f"#define {upper}_CONSTANTS_BYTES {constants_bytes}"])


def _struct(what: str, ports: tuple[Port, ...], module: LoweredModule, config: AotConfig) -> str:
    entry = module.functions[-1]
    lines, names = [f"struct {config.name}_{what} {{"], size_names(module)
    for port in ports:
        match port.value:
            case int() as number:
                storage = entry.storages[number]
                type_ = f"{storage.dtype}[{', '.join(dim_text(dim, names) for dim in storage.shape)}]"
                const = "const " if what == "inputs" and number not in entry.updated_inputs else ""
                lines.append(f"  {const}{storage.dtype.ctype} *{port.name}; /* {c_comment(type_)} */")
            case ScalarVar(dtype=dtype):
                star = "" if what == "inputs" else "*"
                lines.append(f"  {CTYPES[dtype]} {star}{port.name};")
            case DimVar() as var:
                low, high = next((low, high) for known, low, high in entry.sizes if known is var)
                lines.append(f"  int64_t {port.name}; /* {range_text(low, high)} */")
    if not ports:
        lines.append("  char none; /* C has no empty struct */")
    return "\n".join([*lines, "};"])


def _workspaces(config: AotConfig) -> str:
    lines = [f"/* The memory pools of a run, aligned to {config.base_alignment} bytes. */"]
    lines.append(f"struct {config.name}_workspaces {{")
    lines += [f"  void *{pool.name};" for pool in config.pools]
    return "\n".join([*lines, "};"])


def _descriptor(name: str) -> str:
    return (
        "#ifndef RELVM_AOT_MODEL\n#define RELVM_AOT_MODEL\n"
        "/* A model for callers that do not know its structs.  The arguments of `run` point to these structs.\n"
        "   `inputs` and `outputs` are the numbers of their members. */\n"
        "struct relvm_aot_model {\n"
        "  const char *name;\n"
        "  int32_t (*run)(const void *inputs, const void *outputs, const void *workspaces);\n"
        "  int32_t inputs;\n  int32_t outputs;\n};\n#endif\n"
        f"extern const struct relvm_aot_model {name}_model;"
    )


def _externs(module: LoweredModule, names: Names) -> str:
    """Return the declarations of the C functions that the user provides."""
    lines = [
        "/* Functions that the user of the export defines.  `self` is NULL.  The arguments are valid during the call.",
        "   On success, a function stores a value in *result, or leaves it NIL.  The function keeps the ownership of a",
        "   tensor in *result, whose elements the export copies directly after the call.  On failure, the function",
        "   returns another status than RVM_OK. */",
    ]
    for extern in module.externs:
        lines.append(f"{extern_prototype(names.extern(extern))} /* {c_comment(extern)} */")
    return "\n".join(lines)


def _status_codes() -> str:
    rows = ",\n".join(f"  RVM_{row.name} = {row.index}" for row in STATUS)
    return f"#ifndef RELVM_STATUS\n#define RELVM_STATUS\nenum relvm_status {{\n{rows}\n}};\n#endif"


def _arguments(metadata: Metadata, config: AotConfig) -> str:
    """Return the C comment that lists the arguments of a packed entry point."""
    lines = [
        "/* Runs the model.  Returns RVM_OK, or the status of the error that ended the run.  The arguments are",
        "   compact, row-major tensors:",
    ]
    listed: list[tuple[str, TensorInfo]] = [
        ("input that is updated" if info.is_updated else "input", info) for info in metadata.inputs
    ]
    listed += [("output", info) for info in metadata.outputs]
    if config.caller_provides_pools:
        listed += [(f"memory pool (aligned to {metadata.alignment} bytes)", info) for info in metadata.pools]
    for number, (what, info) in enumerate(listed):
        shape = ", ".join(map(str, info.shape))
        lines.append(f"     {number}: {what} {c_comment(f'{info.name}, {info.dtype}[{shape}]')}")
    lines += [f"   {c_comment(size.name)} is {range_text(size.least, size.most)}." for size in metadata.sizes]
    lines.append("   On success, *result is NIL.  `self` is ignored. */")
    return "\n".join(lines)


def _packed_descriptor(name: str) -> str:
    return (
        "#ifndef RELVM_AOT_PACKED_MODEL\n#define RELVM_AOT_PACKED_MODEL\n"
        "/* A model for callers that do not know its arguments. */\n"
        "struct relvm_aot_packed_model {\n"
        "  const char *name;\n"
        "  rvm_packed_function run;\n"
        "  int32_t inputs;\n  int32_t outputs;\n"
        "  int32_t pools; /* memory pools that the caller provides */\n};\n#endif\n"
        f"extern const struct relvm_aot_packed_model {name}_model;"
    )
