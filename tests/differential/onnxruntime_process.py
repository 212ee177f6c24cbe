"""ONNX Runtime in a separate process, because some of the random models crash it."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from frontend.onnx_models import onnx

SECONDS = 20  # time limit of a run


class OnnxRuntimeRefusal(Exception):
    """ONNX Runtime raised an error, crashed or did not answer."""


def _serve(connection: Connection) -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    while True:
        model, arrays = connection.recv()
        answer: tuple[Any, str]
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            names = [item.name for item in session.get_inputs()]
            answer = session.run(None, dict(zip(names, arrays, strict=True))), ""
        except Exception as error:
            answer = None, f"{type(error).__name__}: {error}"
        connection.send(answer)


class OnnxRuntimeProcess:
    """Runs models without optimizations.  Starts a new process after a crash."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> OnnxRuntimeProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def run(self, model: onnx.ModelProto, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Run a model and return its outputs.

        Raises
        ------
        OnnxRuntimeRefusal
            ONNX Runtime raised an error, crashed or did not answer.
        """
        if self._process is None:
            self._start()
        try:
            self._connection.send((model.SerializeToString(), arrays))
            if not self._connection.poll(SECONDS):
                raise EOFError
            results, error = self._connection.recv()
        except (EOFError, OSError):
            self._stop()
            raise OnnxRuntimeRefusal("ONNX Runtime crashed or hung") from None
        if results is None:
            raise OnnxRuntimeRefusal(error)
        return results
