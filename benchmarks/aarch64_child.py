"""Print the instructions of a run of a model on AArch64, in QEMU with the plugin count_instructions.c.

The arguments are the engine ("relvm" or "onnxruntime"), the file of the model, the file with the inputs, which
numpy.savez wrote in the order of the parameters, and the file for the results.
"""

import ctypes
import sys
from functools import partial

import numpy as np

_COUNT = 5000  # the system call of the plugin
_WARM_UP_RUNS = 2

_c_library, _counted = ctypes.CDLL(None), ctypes.c_uint64()


def instructions() -> int:
    """Return the number of instructions of this process so far."""
    _c_library.syscall(_COUNT, ctypes.byref(_counted))
    return _counted.value


def main(engine: str, model: str, inputs: str, results: str) -> None:
    with np.load(inputs) as file:
        case = {name: file[name] for name in file.files}
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        run = partial(session.run, None, case)
    else:
        from relvm import vm

        function = vm.VirtualMachine(vm.load(model, trust_native=True), num_threads=1)["main"]
        run = partial(function, *case.values())
    for _ in range(_WARM_UP_RUNS):
        run()
    begin = instructions()
    overhead = instructions() - begin
    begin = instructions()
    outputs = run()
    count = instructions() - begin - overhead
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    np.savez(results, *[np.asarray(output) for output in outputs])
    print(count)


if __name__ == "__main__":
    main(*sys.argv[1:])
