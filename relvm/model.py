"""`relvm.load_model`: load a model that can be called like a function, from any thread."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from relvm.bytecode.program import input_names, signature_entry
from relvm.compiler.build_model import Dims, build_model, build_program, expect_to_build
from relvm.compiler.upgrade import compile_in_background
from relvm.data_classes import dataclass
from relvm.display import MAX_COLUMNS, Displayed, html_table, short_text
from relvm.errors import (
    RelvmArgumentError,
    RelvmNameError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_path,
    expect_type,
    known_names,
    near_matches,
)
from relvm.quoting import terminal
from relvm.runtime.donated import Donated
from relvm.runtime.executable import Executable, load
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.runtime.function import Function
from relvm.runtime.named_outputs import outputs_class
from relvm.runtime.plain_values import plain_outputs
from relvm.runtime.python_arguments import as_tensor
from relvm.runtime.signature import instance_property, python_signature
from relvm.runtime.tensor import Tensor
from relvm.runtime.virtual_machine import VirtualMachine

if TYPE_CHECKING:
    from relvm.explore import Exploration
    from relvm.limited_build import BuildLimits
    from relvm.runtime.profiler import Profile

__all__ = ["Model", "Signature", "load_model"]

# Replacements for attributes of models in other libraries.
_OTHER_NAMES = {
    "compiled_model": "model(x)",
    "cpu": "model(x); it runs on the processor",
    "create_infer_request": "model(x)",
    "cuda": "model(x); it runs on the processor",
    "eval": "model(x); a model is always in inference mode",
    "forward": "model(x)",
    "get_inputs": "model.inputs, a dict of types by name",
    "get_modelmeta": "model.signature",
    "get_outputs": "model.outputs, a dict of types by name",
    "get_providers": "relvm.onnxruntime.InferenceSession(path) for the interface of onnxruntime",
    "graph": "model.explore(), which shows every compilation stage",
    "infer": "model(x)",
    "input_shape": "model.inputs, a dict of types by name",
    "input_shapes": "model.inputs, a dict of types by name",
    "invoke": "model(x)",
    "output_shape": "model.outputs, a dict of types by name",
    "output_shapes": "model.outputs, a dict of types by name",
    "predict": "model(x)",
    "run_with_iobinding": "model(x)",
    "summary": "model.signature, or model.profile(x)",
    "to": "model(x); it runs on the processor",
}
_ARRAYS = (np.ndarray, Tensor, Donated)  # which are passed as they are


@dataclass(frozen=True, repr=False)
class Signature(Displayed):
    """The inputs and outputs of a model.

    Attributes
    ----------
    inputs, outputs
        The type of each input and output by its name, as in the text form: "f32[batch, 3, 224, 224]".  Outputs without
        a name are called output_0, output_1, ...
    """

    inputs: dict[str, str]
    outputs: dict[str, str]

    def __str__(self) -> str:
        sides = (", ".join(f"{name}: {text}" for name, text in side.items()) for side in (self.inputs, self.outputs))
        return terminal(" -> ".join(f"({side})" for side in sides))

    def __repr__(self) -> str:
        whole = str(self)
        if len(whole) <= MAX_COLUMNS:
            return whole
        sides = (",".join(f"\n  {name}: {text}" for name, text in side.items()) for side in (self.inputs, self.outputs))
        return short_text(" -> ".join(f"({side}\n)" for side in sides))

    def _repr_html_(self) -> str:
        return html_table([("", "name", "type"), *self._rows()], left=(0, 1, 2))

    def _rows(self) -> list[tuple[str, str, str]]:
        sides = (("input", self.inputs), ("output", self.outputs))
        return [(side, terminal(name), terminal(kind)) for side, types in sides for name, kind in types.items()]


class Model(Displayed):
    """A model that is ready to run.  `load_model` returns it.

    Call the model with its inputs, in order or by name: `model(x, mask=m)`.  The call returns the output as a Tensor.
    If there are several outputs, it returns a tuple, whose items can also be found by name: `model(x)["scores"]`.

    Any number of threads can call a model at the same time, because simultaneous calls use different virtual machines.
    The model keeps its virtual machines for later calls.

    Parameters
    ----------
    executable
        The executable.
    function
        The name of the function that runs when the model is called.
    source
        The model from which the executable was built: the path of a file, an ONNX model, or a module.  The method
        `explore` compiles it again.  It is None if the model is not known.
    dims, weights
        The arguments `dims` and `weights` with which `source` was loaded: the sizes of symbolic dimensions, and the
        weights.
    **options
        The options of `relvm.vm.VirtualMachine`.

    Attributes
    ----------
    executable
        The executable, for `relvm.vm.VirtualMachine`.
    input_names, output_names
        The names of the inputs and outputs, in order.
    inputs, outputs
        The type of each input and output by its name, as in `signature`.

    Raises
    ------
    RelvmNameError
        The executable has no such function.
    RelvmError
        The errors of VirtualMachine.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        function: str = "main",
        source: Any = None,
        dims: Dims | None = None,
        weights: Any = None,
        **options: Any,
    ) -> None:
        expect_type("Model", executable, Executable, "an Executable")
        _expect_options(options)
        self.executable = executable
        self._function = function
        self._source = source
        self._dims = dims
        self._weights = weights
        self._options = options
        self._is_closed = False
        self._free = [self._new_machine()]
        stated = signature_entry(executable.signature, function)
        parameters = self._free[0][1].parameters
        attributes = stated["attributes"] if stated else {}
        self.input_names = tuple(input_names(stated) if stated else parameters)
        self._types = [each["type"] for each in stated["params"]] if stated else [""] * len(parameters)
        self._types_by_name = dict(zip(self.input_names, self._types, strict=True))
        self._results = type_fields(stated["result"]) if stated else [""]
        names = attributes.get("output_names", ())
        if len(names) == 1:
            self._results = [stated["result"]] if stated else [""]
        elif len(names) != len(self._results):
            names = [f"output_{number}" for number in range(len(self._results))]
        self.output_names = tuple(names)
        self._named = outputs_class(names) if len(self.output_names) > 1 else None
        self._maps = frozenset(attributes.get("map_outputs", ()))
        self._groups = tuple(map(frozenset, attributes.get("output_groups", ())))
        self._parameters = dict(zip(self.input_names, parameters, strict=True))  # differ in files of earlier builds

    # ---- running ----

    def __call__(self, /, *arguments: Any, **inputs: Any) -> Any:
        """Run the model.

        Parameters
        ----------
        *arguments, **inputs
            The inputs, in order or by name.  Numbers and lists are converted to tensors of the dtype of the input.  A
            dict as the only argument contains the inputs by name, such as `{"input.1": x}`.

        Returns
        -------
        Tensor or Outputs
            The output, or a tuple of the outputs, which also finds an output by its name.  The returned tensors own
            their memory.

        Raises
        ------
        RelvmArgumentError
            An input is missing, unknown or given twice.
        RelvmError
            The error of the run, such as RelvmShapeError.
        """
        arguments, inputs = self._converted(arguments, inputs)
        free = self._take_machine()
        try:
            result = free[1](*arguments, **inputs)
            return result if self._named is None else self._named(result)
        finally:
            if not self._is_closed:
                self._free.append(free)

    def run(self, outputs: Iterable[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Run the model on named inputs, and return some or all of the outputs.

        Parameters
        ----------
        outputs
            The names of the outputs to return, or None for all.
        inputs
            A value for each input, by name.

        Returns
        -------
        list
            A value for each output: an array for a tensor, a list for a sequence or a tuple, a dict for a map, and None
            for an absent value.

        Raises
        ------
        RelvmNameError
            There is no such output.
        RelvmArgumentError
            An input is missing or unknown.
        RelvmError
            The run failed.  For example, RelvmShapeError is raised if an array does not have the required shape.
        """
        expect_type("run: inputs", inputs, Mapping, "a mapping from names to values")
        if isinstance(outputs, str):
            raise RelvmArgumentError(f"run: outputs: expected a list of names, got {outputs!r}; write [{outputs!r}]")
        names = self.output_names if outputs is None else tuple(outputs)
        for name in names:
            if name not in self.output_names:
                raise RelvmNameError(f"run: no output {name}{known_names(str(name), self.output_names)}")
        return self.plain(names, self(**inputs))

    def plain(self, names: Iterable[str], result: Any) -> list[Any]:
        """Return the outputs `names` as arrays, lists, dicts and None, as `run` does.

        result: the result of the model's function.
        """
        values = (result,) if len(self.output_names) == 1 else result
        found = dict(zip(self.output_names, values, strict=True))
        plain = plain_outputs({name: found[name] for name in names}, self._maps)
        return [plain[name] for name in names]

    def computes_only(self, names: Iterable[str]) -> bool:
        """Return whether every computation of the model contributes to one of the outputs `names`.

        If not, a model built for only these outputs can be faster.
        """
        indices = {self.output_names.index(name) for name in names}
        return all(not group.isdisjoint(indices) for group in self._groups)

    @contextmanager
    def borrowed_machine(self) -> Iterator[VirtualMachine]:
        """A context manager that yields a machine for exclusive use.

        Afterwards, the model reuses the machine for later calls.
        """
        free = self._take_machine()
        try:
            yield free[0]
        finally:
            if not self._is_closed:
                self._free.append(free)

    def machine(self) -> VirtualMachine:
        """Return a new virtual machine for the executable of the model, for example to profile or debug a run.

        Raises
        ------
        RelvmArgumentError
            The model is closed.
        """
        if self._is_closed:
            raise RelvmArgumentError("the model is closed; load it again")
        return VirtualMachine(self.executable, **self._options)

    def wait_compiled(self, timeout: float | None = None) -> bool:
        """Start the compilation of native code, if it has not started yet, and wait until it is ready.

        Parameters
        ----------
        timeout
            The maximum time to wait, in seconds, or None for no limit.

        Returns
        -------
        bool
            True if new runs use native code, False after a timeout.

        Raises
        ------
        RelvmError
            The errors of VirtualMachine.wait_compiled.  For example, RelvmToolchainError is raised if compilation
            failed.
        """
        return self.machine().wait_compiled(timeout)

    # ---- looking ----

    @instance_property
    def __signature__(self) -> inspect.Signature:
        """The inputs with their types, for `inspect.signature` and completion."""
        result = self._results[0] if len(self._results) == 1 else f"({', '.join(self._results)})"
        return python_signature(self.input_names, self._types, result)

    @property
    def signature(self) -> Signature:
        """The names and types of the inputs and outputs."""
        return Signature(dict(self._types_by_name), dict(zip(self.output_names, self._results, strict=True)))

    @property
    def inputs(self) -> dict[str, str]:
        """The type of each input by its name, as in `signature`."""
        return self.signature.inputs

    @property
    def outputs(self) -> dict[str, str]:
        """The type of each output by its name, as in `signature`."""
        return self.signature.outputs

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError.  For a name of another library, the message says what to write instead."""
            advice = _OTHER_NAMES.get(name)
            similar = "" if name.startswith("_") else near_matches(name, dir(self))
            reason = f"; write {advice}" if advice else similar
            raise AttributeError(f"'Model' object has no attribute {name!r}{reason}", name=name, obj=self)

    def profile(self, /, *arguments: Any, **inputs: Any) -> Profile:
        """Run the model once, and return a profile with the time of each kernel.  See VirtualMachine.profile.

        Parameters
        ----------
        *arguments, **inputs
            The inputs, as for a call.
        """
        machine, function = self._new_machine()
        return machine.profile(self._function, *function.order_arguments(*self._converted(arguments, inputs)))

    def explore(self, **options: Any) -> Exploration:
        """Return the result of every compilation stage.  See relvm.explore.explore.

        Parameters
        ----------
        **options
            The options of `relvm.explore.explore` except `dims`: exec_mode, target, fused, without, title.

        Raises
        ------
        RelvmUnsupportedError
            The model was loaded from an executable, which does not contain its source.
        """
        from relvm.explore import explore

        if self._source is None:
            raise RelvmUnsupportedError(
                "explore: an executable does not contain its source program; load the file of the model instead"
            )
        from relvm.frontend.read_model import read_model
        from relvm.ir.expr import Module

        if isinstance(self._source, Module):
            return explore(self._source, **options)
        if isinstance(self._source, Path):
            options = {"title": self._source.name, **options}
        return explore(read_model(self._source, self._dims, self._weights, self._function), **options)

    # ---- files, copies, the end ----

    def save(self, path: str | os.PathLike) -> None:
        """Write the model to a file as an executable, which `load_model` and `relvm run` can read.

        While native code is still being compiled in the background, the file is written without native code.  To
        include native code, call `wait_compiled` before `save`.

        Parameters
        ----------
        path
            The file, normally with the suffix .rvm.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        upgrade = self.executable.upgrade
        compiled = upgrade.executable if upgrade else None
        (compiled or self.executable).save(path)

    def close(self) -> None:
        """Free the machines.  Later calls raise RelvmArgumentError."""
        self._is_closed = True
        self._free.clear()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _restored, (self.executable, self._function, self._source, self._dims, self._weights, self._options)

    def __str__(self) -> str:
        return f"<Model {self.signature!r}>"

    def _repr_html_(self) -> str:
        return self.signature._repr_html_()

    def _converted(self, arguments: tuple, inputs: Mapping[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Return the arguments by position, and those by parameter name, with numbers and lists as tensors."""
        if len(arguments) == 1 and not inputs and isinstance(arguments[0], dict):
            inputs, arguments = arguments[0], ()
        for each in arguments:
            if not isinstance(each, _ARRAYS):
                arguments = (*map(as_tensor, arguments, self._types), *arguments[len(self._types) :])
                break
        if not inputs:
            return arguments, {}
        types, parameters = self._types_by_name, self._parameters
        return arguments, {
            parameters.get(name, name): as_tensor(value, types.get(name, "")) for name, value in inputs.items()
        }

    def _take_machine(self) -> tuple[VirtualMachine, Function]:
        """Return a machine that no other call uses at present, and its function."""
        try:
            return self._free.pop()
        except IndexError:
            return self._new_machine()

    def _new_machine(self) -> tuple[VirtualMachine, Function]:
        machine = self.machine()
        function = machine[self._function]
        assert isinstance(function, Function), "a new machine has no saved functions"
        return machine, function


def load_model(
    model: Any,
    *,
    dims: Dims | None = None,
    weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    exec_mode: str | None = None,
    target: str | None = None,
    threads: int | None = None,
    function: str | None = None,
    trust_native: bool = False,
    limits: BuildLimits | None = None,
    **options: Any,
) -> Model:
    """Load a model.

    Parameters
    ----------
    model
        The path of an .onnx, .relvm, .mlir or .pt2 file, or of an executable (.rvm, .so); the bytes of an .onnx file,
        of a portable artifact of StableHLO or of a .pt2 file, or an onnx.ModelProto; or a function that is decorated by
        `script`, or a module.
    dims
        The sizes of symbolic dimensions of an ONNX model, by name: an integer, a pair (minimum, maximum), or None (see
        `from_onnx`).  For a .pt2 file, integers by the names of symbols (see `from_pt2`).
    weights
        Arrays by name, or the path of a .safetensors file.  In an ONNX model, each array replaces the initializer or
        the input of the same name.  In a .pt2 file, it replaces the parameter, buffer or constant of the same name.  In
        a .relvm file, each array replaces the parameter of the same name by a constant
        (`relvm.frontend.weights.bind_weights`).
    exec_mode
        How functions run: "bytecode", "compiled" (native code) or "auto", as for `relvm.vm.build`.  With the default,
        "auto", the model starts immediately as bytecode, without a compiler.  If there is a C compiler, native code is
        compiled in the background when the model has run for some time, and cached for the next start.
    target
        How kernels are built: "c", the default, "bytecode" or "numpy".  See `relvm.vm.build` for other values.
    threads
        The maximum number of threads that work on a kernel at once.  See `num_threads` of VirtualMachine.
    function
        The name of the function to call.  With None, it is the function that is given as `model`, or else "main".
    trust_native
        Whether native code in the executable may run even if this user did not build it on this machine.
    limits
        Limits on the time and memory for reading, importing and compiling the model, which is then built in a process
        of its own.  Use them for models that you do not trust, together with the limits of a run (`max_seconds`,
        `max_bytes`).  `weights` must then be a path.
    **options
        Other options of `relvm.vm.VirtualMachine`, such as max_seconds.

    Returns
    -------
    Model
        The model.  Call it with its inputs.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The file has another suffix, or is damaged.
    RelvmTypeError
        `model` is neither a path, nor bytes, nor an onnx.ModelProto, nor a program.
    RelvmArgumentError
        `dims`, `weights`, `exec_mode` or `target` is invalid, or is given for an executable, which is already
        compiled.
    RelvmTimeoutError, RelvmMemoryError
        The build exceeds a limit of `limits`.
    RelvmError
        The errors of `from_onnx`, `relvm.vm.build`, `relvm.vm.load` and `VirtualMachine`.

    Examples
    --------
    >>> import numpy as np
    >>> import relvm
    >>> model = relvm.load_model("examples/c/model.relvm")
    >>> model
    <Model (x: f32[n, 4]) -> (output_0: f32[n, 2])>
    >>> model(np.ones((1, 4), np.float32))
    Tensor([[0.125, 2.75 ]], shape=(1, 2), dtype=float32)
    """
    _expect_options(options)
    if function is None:
        function = "main" if isinstance(model, str | os.PathLike) else getattr(model, "entry", "main")
    options = {"num_threads": threads, "function": function, **options}
    build = "auto" if exec_mode is None else exec_mode, "c" if target is None else target

    sizes: Dims = {} if dims is None else dims
    if limits is not None and not _is_executable(model):
        executable = _build_limited(model, limits, sizes, weights, function, *build)
        return Model(executable, source=model, dims=dims, weights=weights, **options)
    if isinstance(model, str | os.PathLike):
        expect_path("model", model)
        model = Path(model)
        if _is_executable(model):
            given = {"dims": dims, "weights": weights, "exec_mode": exec_mode, "target": target, "limits": limits}
            expect_to_build(model, given)
            from relvm.compiler.adapt import adapt  # a model from the cache needs no adaptation

            return Model(adapt(load(model, trust_native=trust_native, elsewhere=True)), **options)
    elif isinstance(model, bytearray | memoryview):
        model = bytes(model)
    elif not (isinstance(model, bytes) or hasattr(model, "SerializeToString")):
        executable, module = build_program(model, sizes, *build, weights=weights, function=function)
        return Model(executable, source=module, **options)
    executable = build_model(model, sizes, *build, weights=weights, function=function)
    return Model(executable, source=model, dims=dims, weights=weights, **options)


def _is_executable(model: Any) -> bool:
    return isinstance(model, str | os.PathLike) and Path(model).suffix in EXECUTABLE_SUFFIXES


def _build_limited(
    model: Any, limits: BuildLimits, dims: Dims, weights: Any, function: str, exec_mode: str, target: str
) -> Executable:
    """Build a model in a process with limits.  With exec_mode "auto", another process compiles native code later."""
    from relvm.limited_build import build_limited

    source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    source = bytes(source) if isinstance(source, bytearray | memoryview) else source
    if not isinstance(source, bytes):
        expect_path("model", source)
    options = {"dims": dims, "weights": weights, "function": function, "exec_mode": exec_mode, "target": target}
    executable = build_limited(source, limits, **options)
    if exec_mode == "auto":
        compile_in_background(
            executable, lambda publish, digest: build_limited(source, limits, **options, replaces=digest), None
        )
    return executable


def _expect_options(options: Mapping[str, Any]) -> None:
    """Raise RelvmTypeError if a key of `options` is not the name of an option of VirtualMachine."""
    known = VirtualMachine.__init__.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            similar = known_names(name, [*(load_model.__kwdefaults__ or ()), *known])
            raise RelvmTypeError(f"unknown option {name}{similar}")


def _restored(
    executable: Executable, function: str, source: Any, dims: Dims | None, weights: Any, options: dict
) -> Model:
    return Model(executable, function=function, source=source, dims=dims, weights=weights, **options)


def type_fields(text: str) -> list[str]:
    """Return the fields of a tuple type in text form: "(f32[n], i64)" becomes ["f32[n]", "i64"].

    For any other type, return a list with the text itself.  The parser of the text form is not used, because a model
    that is loaded from the cache should not import it.
    """
    if not (text.startswith("(") and text.endswith(")")):
        return [text]
    fields, depth, start = [], 0, 1
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if (depth == 1 and letter == ",") or depth == 0:
            if field := text[start:at].strip():
                fields.append(field)
            start = at + 1
    return fields
