"""A main.c that runs an export on given inputs, and compares what it gives with given outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.aot.c_constants import array_lines
from relvm.aot.c_text import CTYPES
from relvm.aot.config import AotConfig
from relvm.aot.lowered import LoweredModule, Port, ScalarVar
from relvm.aot.trial import Trial
from relvm.codegen.c_kernel import literal
from relvm.codegen.c_operands import float_text
from relvm.ir.dtypes import dtype_of

_HEAD = """\
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
"""

_COMPARE = """\
/* An output passes whose values differ from those wanted by no more than this times the largest magnitude among them,
   and times 1 at least. */
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
    """The C text: its main gives the number of outputs that do not pass, or 100 where the run fails."""
    name = config.name
    data = [_data(f"input_{port.name}", trial.inputs[port.name]) for port in module.inputs if _is_array(port)]
    for port in module.outputs:
        value = trial.outputs[port.name]
        array = np.atleast_1d(value) if isinstance(value, np.ndarray) else _scalar_array(port.value, value)
        data.append(_data(f"want_{port.name}", array))
        data.append(f"static {_ctype(port, array)} got_{port.name}[{max(1, array.size)}];")
    body = [f"  struct {name}_inputs inputs;", f"  struct {name}_outputs outputs;"]
    run = f"{name}_run(&inputs, &outputs)"
    if config.workspace == "caller":
        upper = name.upper()
        for pool in config.pools:
            size = f"{upper}_{pool.name.upper()}_BYTES"
            data.append(f"static RVM_ALIGNED({config.alignment}) char pool_{pool.name}[{size} + 1];")
        body.append(f"  struct {name}_workspaces workspaces;")
        run = f"{name}_run(&inputs, &outputs, &workspaces)"
    body += ["  int32_t status;", "  int failures = 0;"]
    for port in module.inputs:
        value = f"input_{port.name}" if _is_array(port) else _number(trial.inputs[port.name])
        body.append(f"  inputs.{port.name} = {value};")
    body += [f"  outputs.{port.name} = got_{port.name};" for port in module.outputs]
    if config.workspace == "caller":
        body += [f"  workspaces.{pool.name} = pool_{pool.name};" for pool in config.pools]
    body += [f"  status = {run};", "  if (status != RVM_OK) {"]
    body += ['    printf("status %ld\\n", (long)status);', "    return 100;", "  }"]
    for port in module.outputs:
        body += [f"  {line}" for line in _comparison(port.name, np.size(trial.outputs[port.name]))]
    includes = f'{_HEAD}\n#include "{name}.h"\n#include "relvm_bare.h"'
    if not module.inputs:
        body.insert(2, "  inputs.none = 0;")
    main = "\n".join(["int main(void) {", *body, "  return failures;", "}"])
    return "\n\n".join([includes, *data, _COMPARE, main]) + "\n"


def _comparison(name: str, count: int) -> list[str]:
    is_same = f"memcmp(got_{name}, want_{name}, {count} * sizeof got_{name}[0]) == 0"
    return [
        "{",
        "  double largest = 1.0, worst = 0.0;",
        "  long i;",
        f"  for (i = 0; i < {count}; i++)",
        f"    compare((double)got_{name}[i], (double)want_{name}[i], &largest, &worst);",
        f'  failures += report("{name}", {count}, {is_same}, largest, worst);',
        "}",
    ]


def _is_array(port: Port) -> bool:
    return isinstance(port.value, int)


def _scalar_array(var: ScalarVar, value: Any) -> np.ndarray:
    return np.array([value], np.float64 if var.letter == "f" else np.int64)


def _ctype(port: Port, array: np.ndarray) -> str:
    return CTYPES[port.value.letter] if isinstance(port.value, ScalarVar) else dtype_of(array.dtype).ctype


def _data(name: str, array: np.ndarray) -> str:
    ctype = dtype_of(array.dtype).ctype
    return "\n".join([f"static const {ctype} {name}[] = {{", *array_lines(array, "  "), "};"])


def _number(value: float) -> str:
    if isinstance(value, float):
        return float_text(value)
    return literal(int(value), dtype_of("i64"))
