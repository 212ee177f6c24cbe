"""Values of machines as JSON, for runs of the same program in WebAssembly and in Python.

A value is an object with one entry: {"nil": true}, {"int": "7"}, {"float": the bytes of the double in hexadecimal},
{"bool": true}, {"string": text}, {"shape": [2, 3]}, {"tuple": [...]}, {"list": [...]} or {"tensor": {"dtype", "shape",
"data"}} with the bytes in base64.  Tensors of strings have "strings" instead of "data".

As a program, this file runs a manifest with the runtime of Python, like run_values.mjs:
`python json_values.py MANIFEST RESULTS`.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from typing import Any

import numpy as np

from relvm import vm
from relvm.errors import RelvmError
from relvm.numpy_dtypes import dtype_number, numpy_dtype
from relvm.tables import DTYPES

_NUMBERS = {row.name: row.index for row in DTYPES}


def encode(value: Any) -> dict[str, Any]:
    """Return a value as an object for JSON."""
    if isinstance(value, vm.Tensor):
        value = value.numpy()
    match value:
        case None:
            return {"nil": True}
        case bool():
            return {"bool": value}
        case int():
            return {"int": str(value)}
        case float():
            return {"float": struct.pack("<d", value).hex()}
        case str():
            return {"string": value}
        case vm.Shape():
            return {"shape": list(value)}
        case tuple():
            return {"tuple": [encode(item) for item in value]}
        case list():
            return {"list": [encode(item) for item in value]}
        case np.ndarray() | np.generic():
            array = np.asarray(value)
            if array.dtype.kind in "OUST":
                strings = [str(item) for item in array.ravel().tolist()]
                return {"tensor": {"dtype": "str", "shape": list(array.shape), "strings": strings}}
            data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
            return {
                "tensor": {"dtype": DTYPES[dtype_number(array.dtype)].name, "shape": list(array.shape), "data": data}
            }
    return {"string": "function"}


def decode(value: dict[str, Any]) -> Any:
    """Return the value of an object from JSON."""
    ((kind, content),) = value.items()
    match kind:
        case "nil":
            return None
        case "int":
            return int(content)
        case "float":
            return struct.unpack("<d", bytes.fromhex(content))[0]
        case "bool" | "string":
            return content
        case "shape":
            return vm.Shape(content)
        case "tuple":
            return tuple(map(decode, content))
        case "list":
            return list(map(decode, content))
    if "strings" in content:
        return np.array(content["strings"], object).reshape(content["shape"])
    elements = np.frombuffer(base64.b64decode(content["data"]), numpy_dtype(_NUMBERS[content["dtype"]]))
    return elements.reshape(content["shape"])


def run_manifest(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run the cases of a manifest in this process, and return the results or errors."""
    answers: list[dict[str, Any]] = []
    machines: dict[str, vm.VirtualMachine] = {}
    for case in cases:
        try:
            if case["model"] not in machines:
                machines.clear()
                machines[case["model"]] = vm.VirtualMachine(vm.load(case["model"]))
            result = machines[case["model"]][case["function"]](*map(decode, case["inputs"]))
            answers.append({"result": encode(result)})
        except RelvmError as error:
            answers.append({"error": type(error).__name__, "message": str(error)})
    return answers


if __name__ == "__main__":
    with open(sys.argv[1]) as manifest:
        found = run_manifest(json.load(manifest))
    with open(sys.argv[2], "w") as results:
        json.dump(found, results)
