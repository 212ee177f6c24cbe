"""C code of a lowered module: its kernels, and in compiled mode its routines.

Kernels and routines need different compiler flags (relvm/compiler/toolchain.py), so they are separate translation
units.  Many kernels are split into several units, which are compiled in parallel.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relvm.codegen.c.function import print_apply, print_apply_prototype, print_checks, print_prototype, print_routine
from relvm.codegen.c.kernel import is_exact, kernel_prototype, print_kernel
from relvm.codegen.c.mangling import kernel_symbol
from relvm.codegen.c.scalar_function import print_declarations, print_scalar_routine
from relvm.errors import RelvmUnsupportedError
from relvm.kernels.loop_ir import Kernel
from relvm.lir.passes.scalar_functions import scalar_functions
from relvm.lir.routine import LirModule, used_functions
from relvm.tables import header_files

_OPEN = """const rvm_native_api *rvm_api;

rvm_status relvm_native_open(const rvm_native_api *api);
rvm_status relvm_native_open(const rvm_native_api *api) {
  if (api->abi_version != RVM_ABI_VERSION) return RVM_UNSUPPORTED;
  rvm_api = api;
  return RVM_OK;
}"""


_FOR_HEADERS = "/* headers of relvm: "
# First lines of units.
_KERNELS, _EXACT, _ROUTINES = "/* unit: kernels */", "/* unit: exact kernels */", "/* unit: routines */"
_UNIT_KERNELS = 10
# Headers that are slow to compile or rarely needed, with the functions that require them.
_HEADERS = {"gemm_int8.h": ("rvm_tile_bytes", "rvm_taps_bytes"), "peak_flops.h": ("rvm_multiply_adds",)}


@dataclass(frozen=True)
class CSource:
    """The C source of a module.  kernels: the texts of translation units, of which the first opens the library.
    routines: the text of one unit, empty if all functions are bytecode.  exact: units of kernels in which products
    and sums must be rounded separately."""

    kernels: tuple[str, ...]
    routines: str
    exact: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(filter(None, (*self.kernels, *self.exact, self.routines)))


@functools.cache
def headers_digest() -> str:
    """Return the SHA-256, in hexadecimal, of the headers and tables of relvm that the C code includes."""
    digest = hashlib.sha256()
    for header in header_files():
        digest.update(header.read_bytes())
    return digest.hexdigest()


def source_text(source: CSource) -> str:
    """Return the units as one text, which names its headers and can be parsed by `parse_source`."""
    return f"{_FOR_HEADERS}{headers_digest()} */\n{source}"


def parse_source(text: str) -> CSource:
    """Return the units of a text from `source_text`.

    Raises
    ------
    RelvmUnsupportedError
        The text has another form, or is for other headers.
    """
    first, _, rest = text.partition("\n")
    if not first.startswith(_FOR_HEADERS):
        raise RelvmUnsupportedError("its C source does not say which headers of relvm it is for")
    if first != f"{_FOR_HEADERS}{headers_digest()} */":
        raise RelvmUnsupportedError("its C source is for the headers of another version of relvm")
    units: dict[str, list[str]] = {_KERNELS: [], _EXACT: [], _ROUTINES: []}
    for unit in re.split(r"\n^(?=/\* unit: [a-z ]+ \*/$)", rest, flags=re.MULTILINE):  # not a value named "unit"
        units.setdefault(unit.partition("\n")[0], []).append(unit)
    source = CSource(tuple(units[_KERNELS]), "".join(units[_ROUTINES]), tuple(units[_EXACT]))
    if str(source) != rest:
        raise RelvmUnsupportedError("its C source is not divided into units as this version of relvm divides it")
    return source


def _kernel_units(head: str, kernels: list[Kernel], *, opens: bool) -> Iterator[str]:
    """Yield the texts of units.  head: their first line.  opens: whether the first one opens the library."""
    for first in range(0, max(opens, len(kernels)), _UNIT_KERNELS):
        unit = kernels[first : first + _UNIT_KERNELS]
        body = "\n\n".join(print_kernel(kernel, kernel_symbol(kernel.name)) for kernel in unit)
        needed = (header for header, names in _HEADERS.items() if any(f" {name}(" in body for name in names))
        headers = ["kernel.h", *needed]
        includes = "\n".join(f'#include "{header}"' for header in headers)
        yield "\n\n".join((head, includes, *((_OPEN,) if opens and not first else ()), body)) + "\n"


def print_c(
    module: LirModule, *, routines: Container[str], places: Mapping[str, Sequence[int]] | None = None
) -> CSource:
    """Return the C code of the kernels of a module, and of the routines of these names.

    places: for debugging: the instructions that each routine would have (Bytecode.places).  All values are then kept in
    registers, and all calls go through the virtual machine.
    """
    divided: dict[bool, list[Kernel]] = {False: [], True: []}
    for kernel in module.kernels:
        divided[is_exact(kernel)].append(kernel)
    kernels = tuple(_kernel_units(_KERNELS, divided[False], opens=True))
    exact = tuple(_kernel_units(_EXACT, divided[True], opens=False))
    printed = [routine for routine in module.routines if routine.name in routines]
    if not printed:
        return CSource(kernels, "", exact)
    functions = {name: i for i, name in enumerate(module.functions)}
    named = {} if places else {routine.name: routine for routine in printed}
    scalars = {} if places else scalar_functions(replace(module, routines=tuple(printed)))
    symbols = [kernel_symbol(kernel.name) for kernel in module.kernels]
    parts = [_ROUTINES, '#include <math.h>\n\n#include "native_function.h"']
    parts.append("\n".join([*map(kernel_prototype, symbols), *map(print_prototype, printed)]))
    parts.append("\n".join(map(print_declarations, scalars.values())))
    called = {name for r in named.values() if r.name not in scalars for name in used_functions(r, module.functions)}
    parts.append("\n".join(print_apply_prototype(routine) for routine in printed if routine.name in called))
    for routine in printed:
        scalar = scalars.get(routine.name)
        if scalar:
            checks = print_checks(routine.body[: scalar.checks], functions)
            parts.append(print_scalar_routine(scalar, functions, checks))
        else:
            parts.append(print_routine(routine, functions, named, places[routine.name] if places else None))
    parts += [print_apply(r, functions, is_scalar=r.name in scalars) for r in printed if r.name in called]
    return CSource(kernels, "\n\n".join(part for part in parts if part) + "\n", exact)
