"""Exceptions with the same names and messages as in onnxruntime.capi.onnxruntime_pybind11_state.

relvm raises them in the same cases as ONNX Runtime.  If an error of relvm caused such an exception, the exception has
the error as its `__cause__`.
"""

from __future__ import annotations

import re

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    message_with_notes,
)
from relvm.quoting import terminal

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


def unsupported_error(name: str, instead: str) -> Exception:
    """Return the exception for the use of `name`, a name of onnxruntime that relvm does not support.

    instead: what to do instead, for the message.
    """
    return NotImplemented.of(f"{terminal(name)} is not supported by relvm; {instead}")


def load_error(error: RelvmError) -> Status:
    """Return the exception of ONNX Runtime that corresponds to `error`, an error in loading a model."""
    message = str(error)
    kind = next((kind for pattern, kind in _LOAD_PATTERNS if re.search(pattern, message)), None)
    if unknown := re.search(r"operator (\S+) is not supported", message):
        kind = _class_of_unknown_operator(unknown[1].rstrip(";"))
    if kind is None:
        match error:
            case RelvmShapeError():
                kind = Fail
            case RelvmFormatError() | RelvmNameError() | RelvmTypeError():
                kind = InvalidGraph
            case RelvmUnsupportedError():
                kind = NotImplemented
            case RelvmArgumentError():
                kind = InvalidArgument
            case _:
                kind = Fail
    return kind.of(f"Load model failed:{message}")


# The exceptions of ONNX Runtime for messages of relvm whose class does not determine them.
_LOAD_PATTERNS: tuple[tuple[str, type[Status]], ...] = (
    ("is not an ONNX model: it has no graph", InvalidArgument),
    ("is not an ONNX model", InvalidProtobuf),
    (": output '[^']*': value .* is used, but neither an input nor an earlier node defines it", Fail),
    ("is used, but neither an input nor an earlier node defines it", InvalidArgument),
    (" redefines .*, which .* already defines", Fail),
    ("nodes must be topologically sorted", Fail),
    ("cannot read the elements from", Fail),
    (r"(?:opset|ir_version) .* is not supported: relvm supports", Fail),
)


def _class_of_unknown_operator(name: str) -> type[Status]:
    """Return the exception for an operator that relvm does not have.   name: the operator, with its domain."""
    from relvm.frontend.onnx.node_schemas import is_operator  # importing the model has imported it

    domain, _, operator = name.rpartition(".")
    if domain in ("", "ai.onnx", "ai.onnx.ml"):
        is_onnx = is_operator("" if domain == "ai.onnx" else domain, operator)
        return NotImplemented if is_onnx else InvalidGraph
    return NotImplemented if domain.startswith("com.microsoft") else Fail  # other domains are unknown to both


def run_error(error: RelvmError) -> Status:
    """Return the exception of ONNX Runtime that corresponds to `error`, an error in a run."""
    match error:
        case RelvmShapeError():
            kind: type[Status] = Fail
        case RelvmIndexError() | RelvmTypeError() | RelvmArgumentError():
            kind = InvalidArgument
        case MemoryError():
            kind = RuntimeException
        case _:
            kind = Fail
    return kind.of(f"Non-zero status code returned while running the model: {message_with_notes(error)}")
