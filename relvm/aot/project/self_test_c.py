"""Printing of a test program in C that runs an export on given inputs and compares its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.aot.c.constants import array_lines
from relvm.aot.config import AotConfig, Pool
from relvm.aot.lower.ir import LoweredModule, Port, ScalarVar
from relvm.aot.metadata_model import packed_inputs, port_dtype
from relvm.aot.project.self_test import Trial
from relvm.codegen.c.expression import integer, literal
from relvm.ir.dtypes import F64, dtype_of
from relvm.quoting import c_string

_HEAD = """\
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
"""

_COMPARE = """\
/* An output passes if no value differs from the expected value by more than RELVM_TOLERANCE times the largest finite
   magnitude of the expected values.  Magnitudes less than 1 count as 1. */
#ifndef RELVM_TOLERANCE
#define RELVM_TOLERANCE 0.0
#endif

static void compare(double got, double want, double *largest, double *worst) {
  const double difference = fabs(got - want);
  if (fabs(want) > *largest && fabs(want) <= DBL_MAX) *largest = fabs(want);
  if (got == want || (got != got && want != want)) return;
  if (!(difference <= *worst)) *worst = difference <= DBL_MAX ? difference : DBL_MAX;
}

static int report(const char *name, long count, int is_same, double largest, double worst) {
  printf("%s: %ld values, %s", name, count, is_same ? "the same\\n" : "");
  if (!is_same) printf("largest difference %g of %g\\n", worst, largest);
  return !is_same && !(worst <= RELVM_TOLERANCE * largest);
}"""


def print_trial(module: LoweredModule, trial: Trial, config: AotConfig) -> str:
    """Return the C text of a program that runs an export on the inputs of `trial` and compares the outputs.

    The exit code of the program is the number of outputs that differ, 100 if the run fails, or 101 if there is not
    enough memory for the pools.
    """
    is_packed = config.interface == "packed"
    data, call = (_packed_call if is_packed else struct_call)(module, trial, config)
    body = [*call, "  if (status != RVM_OK) {", '    printf("status %ld\\n", (long)status);', "    return 100;", "  }"]
    for port in module.outputs:
        body += [f"  {line}" for line in comparison(port.name, trial.outputs[port.name])]
    main = "\n".join(["int main(void) {", "  int failures = 0;", *body, "  return failures;", "}"])
    includes = "\n".join([_HEAD, f'#include "{config.name}.h"', '#include "compiler.h"'])
    return "\n\n".join([includes, *data, _COMPARE, main]) + "\n"


def struct_call(module: LoweredModule, trial: Trial, config: AotConfig) -> tuple[list[str], list[str]]:
    """Return the C lines that define the data of `trial`, and those that call an entry point that takes structs."""
    name = config.name
    data = [
        _array_definition(f"input_{port.name}", trial.inputs[port.name]) for port in module.inputs if _is_array(port)
    ]
    for port in module.outputs:
        data += _output_definitions(port, trial.outputs[port.name], bool_type=np.int64)
    body = [f"  struct {name}_inputs inputs;", f"  struct {name}_outputs outputs;"]
    arguments = "&inputs, &outputs"
    if config.caller_provides_pools:
        data.append(_pool_memory(config))
        body.append(f"  struct {name}_workspaces workspaces;")
        arguments += ", &workspaces"
    body.append("  int32_t status;")
    body += _allocate_pools(config) if config.caller_provides_pools else []
    if not module.inputs:
        body.append("  inputs.none = 0;")
    for port in module.inputs:
        value = f"input_{port.name}" if _is_array(port) else _number(trial.inputs[port.name])
        body.append(f"  inputs.{port.name} = {value};")
    body += [f"  outputs.{port.name} = got_{port.name};" for port in module.outputs]
    if config.caller_provides_pools:
        body += [f"  workspaces.{pool.name} = pool_{pool.name};" for pool in config.pools]
    body.append(f"  status = {name}_run({arguments});")
    return data, [*body, *(_free_pools(config) if config.caller_provides_pools else [])]


def _packed_call(module: LoweredModule, trial: Trial, config: AotConfig) -> tuple[list[str], list[str]]:
    """Return the C lines that define the data of `trial`, and those that call an entry point that takes tensors."""
    entry = module.functions[-1]
    data: list[str] = []
    views: list[str] = []

    def view(dtype: str, shape: tuple[Any, ...], memory: str) -> None:
        number = len(views)
        if shape:
            data.append(f"static int64_t shape{number}[] = {{{', '.join(map(str, shape))}}};")
        sizes = f"shape{number}" if shape else "0"
        views.append(
            f"  arguments[{number}] = rvm_view(&tensors[{number}], RVM_DTYPE_{dtype}, {len(shape)}, {sizes}, {memory});"
        )

    for port in packed_inputs(module):
        dtype = port_dtype(port, entry)
        array = np.asarray(trial.inputs[port.name], dtype_of(dtype).numpy)
        data.append(_array_definition(f"input_{port.name}", np.atleast_1d(array)))
        view(dtype, array.shape, f"input_{port.name}")
    for port in module.outputs:
        value = trial.outputs[port.name]
        data += _output_definitions(port, value, bool_type=np.bool_)
        view(port_dtype(port, entry), np.shape(value), f"got_{port.name}")
    if config.caller_provides_pools:
        data.append(_pool_memory(config))
        for pool in config.pools:
            view("u8", (_pool_size_macro(config, pool),), f"pool_{pool.name}")
    count = len(views)
    body = [f"  rvm_tensor tensors[{max(1, count)}];", f"  rvm_value arguments[{max(1, count)}], result;"]
    body += ["  rvm_status status;", *(_allocate_pools(config) if config.caller_provides_pools else []), *views]
    body.append(f"  status = {config.name}_run(0, arguments, {count}, &result);")
    return data, [*body, *(_free_pools(config) if config.caller_provides_pools else [])]


def _output_definitions(port: Port, value: Any, *, bool_type: type) -> list[str]:
    """Return two C definitions for an output: the array of its expected elements, and the array for its actual
    elements.

    port: the output.
    value: the expected value of the output.
    bool_type: the NumPy type of a scalar output of dtype bool.
    """
    array = np.asarray(value)
    if isinstance(port.value, ScalarVar):
        array = array.astype(bool_type if port.value.dtype.is_bool else port.value.dtype.numpy)
    array = np.atleast_1d(array)
    memory = f"static {dtype_of(array.dtype).ctype} got_{port.name}[{max(1, array.size)}];"
    return [_array_definition(f"want_{port.name}", array), memory]


def _pool_memory(config: AotConfig) -> str:
    """Return the C definition of an array that is large enough for a stack allocator to place all pools in it."""
    sizes = " + ".join(_pool_size_macro(config, pool) for pool in config.pools)
    count = len(config.pools)
    return f"static uint8_t memory[{sizes} + {count} * ({config.base_alignment} + sizeof(rvm_stack_tag))];"


def _allocate_pools(config: AotConfig) -> list[str]:
    """Return the lines of C that declare the pools and allocate them from the stack allocator."""
    lines = ["  rvm_stack stack;", *(f"  void *pool_{pool.name};" for pool in config.pools)]
    lines.append("  rvm_stack_init(&stack, memory, sizeof memory);")
    for pool in config.pools:
        call = (
            f"rvm_stack_allocate(&stack, {_pool_size_macro(config, pool)}, {config.base_alignment}, &pool_{pool.name})"
        )
        lines.append(f"  if ({call} != RVM_STACK_OK) return 101;")
    return lines


def _free_pools(config: AotConfig) -> list[str]:
    return [
        f"  if (rvm_stack_free(&stack, pool_{pool.name}) != RVM_STACK_OK) return 101;"
        for pool in reversed(config.pools)
    ]


def _pool_size_macro(config: AotConfig, pool: Pool) -> str:
    return f"{config.name.upper()}_{pool.name.upper()}_BYTES"


def comparison(name: str, expected: Any) -> list[str]:
    """Return the C lines that compare an output with its expected value, and count it in `failures` if it is wrong.

    name: the name of the output in C.
    """
    count = np.size(expected)
    is_same = f"memcmp(got_{name}, want_{name}, {count} * sizeof got_{name}[0]) == 0"
    return [
        "{",
        "  double largest = 1.0, worst = 0.0;",
        "  long i;",
        f"  for (i = 0; i < {count}; i++)",
        f"    compare((double)got_{name}[i], (double)want_{name}[i], &largest, &worst);",
        f"  failures += report({c_string(name)}, {count}, {is_same}, largest, worst);",
        "}",
    ]


def _is_array(port: Port) -> bool:
    return isinstance(port.value, int)


def _array_definition(name: str, array: np.ndarray) -> str:
    ctype = dtype_of(array.dtype).ctype
    return "\n".join([f"static const {ctype} {name}[] = {{", *array_lines(array, "  "), "};"])


def _number(value: float) -> str:
    return literal(value, F64).text if isinstance(value, float) else integer(int(value)).text
