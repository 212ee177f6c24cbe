"""Bundles: a compiled model as a Python package, which requires relvm-runtime only."""

from __future__ import annotations

import io
import keyword
import os
import re
import sys
import textwrap
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import relvm
from relvm.compiler.adapt import adapt
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmArgumentError,
    RelvmUnsupportedError,
    expect_path,
    expect_type,
)
from relvm.installation import record_file
from relvm.model import Model
from relvm.numpy_dtypes import tensor_dtype_row
from relvm.quoting import terminal
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import DTYPES

_WHEEL_NAME = re.compile(r"([A-Za-z0-9]+([._][A-Za-z0-9]+)*)-([0-9A-Za-z.+!]+)-py3-none-any\.whl")
_LOCAL = r"(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
_VERSION = re.compile(rf"([0-9]+!)?[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?{_LOCAL}")
_DATE = (1980, 1, 1, 0, 0, 0)  # the date of all files in a wheel: the earliest one that zip can represent
_MODEL = "model.rvm"
_TAKEN = ("relvm", "load", "run", "cache", "model", "outputs", "tuple")  # names that the package's module uses
_RESERVED = {*sys.stdlib_module_names, "cffi", "ml_dtypes", "numpy", "pip", "relvm", "relvm_runtime"}  # other packages
_COLUMNS = 100


@dataclass(frozen=True)
class _Value:
    """An input or output of the model.

    name: its name in the model.   parameter: the name as a Python name.   type: its type, such as "f32[n, 3]".
    """

    name: str
    parameter: str
    type: str


def bundle(
    executable: Executable, path: str | os.PathLike, *, source: str | os.PathLike = "model", function: str = "main"
) -> Path:
    """Write a Python package that contains an executable, as a wheel or in a folder.

    The package requires relvm-runtime only.  Its functions `run` and `load` have docstrings that list the inputs and
    outputs:

    - `run(x, ...)` runs the model on arrays, and returns the output as an array, or several as a tuple.
    - `load(**options)` returns a new `relvm.model.Model`.  The options are those of `relvm.model.load_model`.

    The output is deterministic: the same executable gives the same bytes, with the same version of relvm.  Native code
    in the executable runs without `trust_native=True`, because whoever installs a package trusts its code.

    Parameters
    ----------
    executable
        An executable.  If it contains native code, build it with `portable=True`, so that the package runs on every
        processor.
    path
        A file `NAME-VERSION-py3-none-any.whl` for a wheel.  NAME and VERSION become the name and the version of the
        distribution, and the name of the package to import is NAME with underscores.  Any other path is a folder, in
        which the package is written, with a name that is derived from `source`.  The folder is created if it does not
        exist.  The package of a model in the folder is replaced, but no other folder or link.
    source
        The name of the model, for the description, and in a folder also for the package: "resnet-18.onnx" becomes
        `resnet_18`.
    function
        The function of the executable that `run` calls.

    Returns
    -------
    Path
        The wheel, or the package in the folder.

    Raises
    ------
    RelvmTypeError
        An argument has the wrong type.
    RelvmArgumentError
        The name of the wheel is not valid, no package name can be derived from `source`, the name is that of a package
        of Python or relvm, or the folder contains something else of this name.
    RelvmNameError
        The executable has no such function, or Python cannot call it.
    RelvmUnsupportedError
        The executable contains native code that is not trusted, or that this processor cannot run.
    OSError
        A file cannot be written.
    """
    expect_type("bundle", executable, Executable, "an Executable")
    expect_path("bundle", path)
    path, title = Path(path), Path(source).name
    if path.suffix != ".whl":
        package = _package_name(Path(source).stem)
        folder, written = path / package, _package_files(executable, title, function)
        if folder.is_symlink() or (folder.exists() and not (folder / _MODEL).is_file()):
            raise RelvmArgumentError(f"bundle: {terminal(str(folder))} exists, and is not the package of a model")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in written.items():
            with complete_file(folder / name) as partial:
                partial.write_bytes(content)
        return folder
    named = _WHEEL_NAME.fullmatch(path.name)
    if named is None or not _VERSION.fullmatch(named[3]):
        example = f"{_package_name(Path(source).stem)}-1.0-py3-none-any.whl"
        raise RelvmArgumentError(f"{path.name}: expected NAME-VERSION-py3-none-any.whl, such as {example}")
    package = _package_name(named[1])
    files = {f"{package}/{name}": content for name, content in _package_files(executable, title, function).items()}
    information = f"{named[1].replace('.', '_')}-{named[3]}.dist-info"
    files[f"{information}/METADATA"] = _metadata(executable, named[1], named[3], title, package)
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: relvm {relvm.__version__}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ).encode()
    files[f"{information}/RECORD"] = record_file(files, f"{information}/RECORD")
    with complete_file(path.absolute()) as partial:
        partial.write_bytes(_zip(files))
    return path


def _package_files(executable: Executable, title: str, function: str) -> dict[str, bytes]:
    """Return the files of the package by name."""
    if executable.unsupported_reason and not executable.is_trusted:
        raise RelvmUnsupportedError(
            "bundle: the executable contains native code from another machine or user, which the package would run;"
            " load it with trust_native=True if you trust it"
        )
    model = Model(adapt(executable), function=function)
    inputs, outputs = _values(model.inputs.items()), _values(model.outputs.items())
    return {
        "__init__.py": _module(title, function, inputs, outputs).encode(),
        _MODEL: executable.to_bytes(),
        "py.typed": b"",
    }


def _values(types: Iterable[tuple[str, str]]) -> list[_Value]:
    """Give each input or output a Python name of its own."""
    values: list[_Value] = []
    for name, kind in types:
        parameter = _python_name(name) or f"value_{len(values)}"
        while parameter in _TAKEN or any(parameter == value.parameter for value in values):
            parameter += "_"
        values.append(_Value(name, parameter, kind))
    return values


def _python_name(text: str) -> str:
    """Return a Python name that is similar to `text`, or "" if there is none."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if name[:1].isdigit():
        name = f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _package_name(text: str) -> str:
    name = _python_name(text)
    if not name or name in _RESERVED:
        raise RelvmArgumentError(
            f"bundle: {terminal(repr(text))} cannot be the name of a package; write the wheel as"
            " NAME-VERSION-py3-none-any.whl, or pass another source"
        )
    return name


def _module(title: str, function: str, inputs: list[_Value], outputs: list[_Value]) -> str:
    """Return the source of the package's module."""
    shown = _escaped(title)
    parameters = ", ".join(value.parameter for value in inputs)
    signature = f"{parameters}, /" if inputs else ""
    text = f'''\
"""The model {shown}, compiled by relvm {relvm.__version__}.

`run` runs the model.  `load` loads it for other uses, such as profiles and limits.
"""

from functools import cache
from pathlib import Path

import relvm

__all__ = ["load", "run"]


def load(**options):
    """Load the model {shown}.

    Parameters
    ----------
    **options
        The options of `relvm.load_model`, such as `threads` and `max_seconds`.

    Returns
    -------
    relvm.Model
        The model, which any number of threads can call.

    Notes
    -----
    Inputs:

{_listed(inputs)}

    Outputs:

{_listed(outputs)}
    """
    path = Path(__file__).with_name("{_MODEL}")
    return relvm.load_model(path, function={function!a}, trust_native=True, **options)


_loaded = cache(load)


def run({signature}):
    """Run the model {shown}.  The first call loads it.

    Parameters
    ----------
{_documented(inputs)}

    Returns
    -------
{_documented(outputs) if len(outputs) == 1 else _tuple(outputs)}

    Raises
    ------
    relvm.errors.RelvmError
        An input has another dtype or shape, or the run failed.
    """
    model = _loaded()
    outputs = model.plain(model.output_names, model({parameters}))
    return {"outputs[0]" if len(outputs) == 1 else "tuple(outputs)"}
'''
    return text.replace("    Parameters\n    ----------\n\n", "") if not inputs else text


def _escaped(text: str) -> str:
    """Return text that can stand in a docstring."""
    return terminal(text).replace("\\", "\\\\").replace('"', '\\"')


def _listed(values: list[_Value]) -> str:
    return "\n".join(f"    - ``{_escaped(value.name)}``: {_escaped(value.type) or 'any value'}" for value in values)


def _documented(values: list[_Value]) -> str:
    """Return numpydoc entries with the dtypes and shapes of values."""
    return "\n".join(f"    {value.parameter} : {_described(value.type)}\n{_about(value)}" for value in values)


def _tuple(values: list[_Value]) -> str:
    rows = "\n".join(f"        - {value.parameter}: {_described(value.type)}" for value in values)
    return f"    tuple\n        The outputs, in this order:\n\n{rows}"


def _about(value: _Value) -> str:
    text = f"The value {_escaped(value.name)} of the model, {_escaped(value.type) or 'of any type'}."
    return textwrap.indent("\n".join(textwrap.wrap(text, _COLUMNS - 8)), " " * 8)


def _described(kind: str) -> str:
    """Return a type in NumPy's notation: "f32[n, 3]" becomes "array of float32, shape (n, 3)"."""
    row = tensor_dtype_row(kind)
    if row is None or not kind.endswith("]"):
        return _escaped(kind) or "object"
    sizes = kind[kind.index("[") + 1 : -1]
    shape = f"({sizes},)" if sizes and "," not in sizes else f"({sizes})"
    return f"array of {DTYPES[row].numpy}, shape {_escaped(shape)}"


def _metadata(executable: Executable, name: str, version: str, title: str, package: str) -> bytes:
    extra = "[dtypes]" if _needs_ml_dtypes(executable) else ""
    lines = (
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: The model {terminal(title)}, compiled by relvm {relvm.__version__}",
        "Requires-Python: >=3.11",
        f"Requires-Dist: relvm-runtime{extra}>={relvm.__version__}",
        "Description-Content-Type: text/plain",
        "",
        f"import {package}; help({package}) describes the inputs and outputs.",
        "",
    )
    return "\n".join(lines).encode()


def _needs_ml_dtypes(executable: Executable) -> bool:
    """Return whether loading the executable needs a dtype of the package ml_dtypes."""
    program = executable.program
    kinds = [each.dtype for each in program.constants if isinstance(each, np.ndarray)]
    kinds += [each for each in program.constants if isinstance(each, np.dtype)]
    return any(kind.isbuiltin != 1 for kind in kinds)


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, _DATE)
            member.external_attr, member.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name])
    return buffer.getvalue()
