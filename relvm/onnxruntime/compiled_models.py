"""Sessions of models that relvm has compiled (.rvm)."""

from __future__ import annotations

from pathlib import Path

from relvm.errors import RelvmError
from relvm.frontend.onnx_element_types import ELEMENT_TYPES
from relvm.frontend.onnx_info import OnnxInfo, OnnxValue
from relvm.model import Model, load_model
from relvm.numpy_dtypes import tensor_dtype_row
from relvm.onnxruntime.errors import InvalidArgument, NoSuchFile, NotImplemented, load_error
from relvm.onnxruntime.options import SessionOptions
from relvm.quoting import terminal
from relvm.tables import DTYPES

_ELEMENTS = {each.numpy: each.text for each in ELEMENT_TYPES}


def load_compiled(path: Path, options: SessionOptions) -> Model:
    """Load an executable.

    Raises
    ------
    NoSuchFile
        The file does not exist.
    InvalidArgument
        An option changes the model, which is already compiled.
    InvalidGraph, NotImplemented, Fail
        The file is damaged, or this machine cannot run it.
    """
    if options.optimized_model_filepath or options._initializers or options._denoted_sizes or options._sizes:
        raise InvalidArgument.of(
            f"{terminal(str(path))} is already compiled: no session option can change its sizes or initializers;"
            " compile the .onnx file again"
        )
    try:
        return load_model(path, threads=options.intra_op_num_threads or None)
    except FileNotFoundError:
        shown = terminal(str(path))
        raise NoSuchFile.of(f"Load model from {shown} failed:Load model {shown} failed. File doesn't exist") from None
    except RelvmError as error:
        raise load_error(error) from error


def compiled_info(model: Model) -> OnnxInfo:
    """Return the inputs and outputs of a compiled model.

    Raises
    ------
    NotImplemented
        An input or output is not a tensor.
    """
    inputs = tuple(_value(*each) for each in model.inputs.items())
    return OnnxInfo(inputs, tuple(_value(*each) for each in model.outputs.items()))


def _value(name: str, text: str) -> OnnxValue:
    row = tensor_dtype_row(text)
    if row is None or not text.endswith("]"):
        raise NotImplemented.of(
            f"{terminal(name)} has the type {terminal(text)}: sessions of compiled models support tensors only;"
            " use relvm.load_model"
        )
    sizes = [size.strip() for size in text[text.index("[") + 1 : -1].split(",")]
    shape = tuple(int(size) if size.isdigit() else size if size.isidentifier() else None for size in sizes if size)
    return OnnxValue(name, f"tensor({_ELEMENTS[DTYPES[row].numpy]})", shape)
