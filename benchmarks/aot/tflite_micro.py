"""The memory that TensorFlow Lite for Microcontrollers needs for chains of dense layers.

Its package contains neither sources nor a library for other processors.  It therefore runs on this machine, where a
pointer has 8 bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import flatbuffers
import numpy as np
from onnx import numpy_helper
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

from benchmarks.aot.models import Model

_LAST = {"Softmax": "SOFTMAX", "Sigmoid": "LOGISTIC"}
_RUN = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1])
interpreter.set_input(np.load(sys.argv[2]), 0)
interpreter.invoke()
np.save(sys.argv[3], interpreter.get_output(0))
interpreter.print_allocations()
"""


@dataclass(frozen=True)
class Ran:
    """The result of a run.

    file_bytes: the size of the model file.  arena_bytes: the memory of the interpreter, with input and output.
    """

    file_bytes: int
    arena_bytes: int
    output: np.ndarray


def run_tflite_micro(model: Model) -> Ran | None:
    """Run a model once.  Return None if it has other layers than dense ones."""
    if {node.op_type for node in model.proto.graph.node} - {"Flatten", "Gemm", "Relu", *_LAST}:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file, given, made = (Path(folder, name) for name in ("model.tflite", "input.npy", "output.npy"))
        file.write_bytes(_converted(model))
        np.save(given, model.input.reshape(1, -1))
        command = [sys.executable, "-c", _RUN, *map(str, (file, given, made))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        total = re.search(r"Arena allocation total (\d+) bytes", done.stdout + done.stderr)
        return Ran(file.stat().st_size, int(total[1]), np.load(made))


def _converted(model: Model) -> bytes:
    """Convert a model to a TensorFlow Lite file of FULLY_CONNECTED operators with fused RELU, and a last activation."""
    nodes = list(model.proto.graph.node)
    weights = {one.name: numpy_helper.to_array(one) for one in model.proto.graph.initializer}
    graph, buffers = schema.SubGraphT(), [schema.BufferT()]
    graph.tensors, graph.operators, graph.inputs = [], [], [0]

    def tensor(shape: tuple[int, ...], data: np.ndarray | None = None) -> int:
        made = schema.TensorT()
        made.shape, made.type, made.buffer = list(shape), schema.TensorType.FLOAT32, len(buffers)
        buffers.append(schema.BufferT())
        if data is not None:
            buffers[-1].data = np.frombuffer(np.ascontiguousarray(data, np.float32).tobytes(), np.uint8)
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def operator(code: int, inputs: list[int], shape: tuple[int, ...], kind: str, options: object) -> int:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = code, inputs, [tensor(shape)]
        made.builtinOptionsType, made.builtinOptions = getattr(schema.BuiltinOptions, kind), options
        graph.operators.append(made)
        return made.outputs[0]

    last = tensor((1, model.input.size))
    for node, following in zip(nodes, [*nodes[1:], None], strict=True):
        if node.op_type == "Gemm":
            matrix, bias = (weights[name] for name in node.input[1:])
            is_transposed = any(one.name == "transB" and one.i for one in node.attribute)
            matrix = matrix if is_transposed else matrix.T
            options = schema.FullyConnectedOptionsT()
            options.fusedActivationFunction = int(following is not None and following.op_type == "Relu")
            inputs = [last, tensor(matrix.shape, matrix), tensor(bias.shape, bias)]
            last = operator(0, inputs, (1, len(bias)), "FullyConnectedOptions", options)
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    is_softmax = nodes[-1].op_type == "Softmax"
    kind = "SoftmaxOptions" if is_softmax else "NONE"
    graph.outputs = [operator(1, [last], graph.tensors[last].shape, kind, options if is_softmax else None)]
    made = schema.ModelT()
    made.version, made.subgraphs, made.buffers = 3, [graph], buffers
    made.operatorCodes = [_operator_code(name) for name in ("FULLY_CONNECTED", _LAST[nodes[-1].op_type])]
    builder = flatbuffers.Builder(0)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _operator_code(name: str) -> schema.OperatorCodeT:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, name)
    code.version = 1
    return code
