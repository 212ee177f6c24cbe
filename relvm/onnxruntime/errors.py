"""Exceptions with the same names and messages as in onnxruntime.capi.onnxruntime_pybind11_state.

relvm raises them in the same cases as ONNX Runtime.  If an error of relvm caused such an exception, the exception has
the error as its `__cause__`.
"""

from __future__ import annotations

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "RuntimeException",
]


class Status(Exception):
    """Base class of the exceptions of ONNX Runtime, each of which stands for a status code."""

    number, name = 0, ""

    @classmethod
    def of(cls, message: str) -> Status:
        """Return an exception with the message `message`, preceded by the prefix that ONNX Runtime adds."""
        return cls(f"[ONNXRuntimeError] : {cls.number} : {cls.name} : {message}")


class Fail(Status):
    """Raised if a run fails, or if loading a model fails and no other exception applies."""

    number, name = 1, "FAIL"


class InvalidArgument(Status):
    """Raised if an argument, such as an input or the name of an output, does not fit the model."""

    number, name = 2, "INVALID_ARGUMENT"


class NoSuchFile(Status):
    """Raised if the model file does not exist."""

    number, name = 3, "NO_SUCHFILE"


class NoModel(Status):
    """The exception of ONNX Runtime for a session without a model.  relvm does not raise it."""

    number, name = 4, "NO_MODEL"


class EngineError(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 5, "ENGINE_ERROR"


class RuntimeException(Status):
    """Raised if there is not enough memory for a run."""

    number, name = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(Status):
    """Raised if the bytes are not an ONNX model."""

    number, name = 7, "INVALID_PROTOBUF"


class ModelLoaded(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 8, "MODEL_LOADED"


class NotImplemented(Status):
    """Raised if the model or the program uses something that relvm does not have."""

    number, name = 9, "NOT_IMPLEMENTED"


class InvalidGraph(Status):
    """Raised if the graph of the model is inconsistent."""

    number, name = 10, "INVALID_GRAPH"


class EPFail(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 11, "EP_FAIL"


class ModelLoadCanceled(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(Status):
    """An exception of ONNX Runtime that relvm does not raise."""

    number, name = 14, "NOT_FOUND"


def load_error(error: RelvmError) -> Status:
    """Return the exception of ONNX Runtime that corresponds to `error`, an error in loading a model."""
    kind: type[Status] = Fail
    match error:
        case RelvmFormatError() if "is not an ONNX model" in str(error):
            kind = InvalidProtobuf
        case RelvmFormatError() | RelvmNameError():
            kind = InvalidGraph
        case RelvmUnsupportedError():
            kind = NotImplemented
        case RelvmArgumentError():
            kind = InvalidArgument
    return kind.of(f"Load model failed:{error}")


def run_error(error: RelvmError) -> Status:
    """Return the exception of ONNX Runtime that corresponds to `error`, an error in a run."""
    match error:
        case RelvmIndexError() | RelvmShapeError() | RelvmTypeError() | RelvmArgumentError():
            kind: type[Status] = InvalidArgument
        case MemoryError():
            kind = RuntimeException
        case _:
            kind = Fail
    return kind.of(f"Non-zero status code returned while running the model: {error}")
