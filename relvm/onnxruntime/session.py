"""InferenceSession: a session of ONNX Runtime's Python API that runs on relvm."""

from __future__ import annotations

import json
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from relvm.compiler.build_model import build_onnx
from relvm.data_classes import dataclass
from relvm.errors import RelvmError, RelvmInterrupted
from relvm.frontend.onnx_info import OnnxInfo, OnnxValue, onnx_info
from relvm.model import Model, Signature, type_fields
from relvm.onnxruntime.compiled_models import compiled_info, load_compiled
from relvm.onnxruntime.errors import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile, load_error, run_error
from relvm.onnxruntime.io_binding import IOBinding
from relvm.onnxruntime.model_options import apply_model_options
from relvm.onnxruntime.options import (
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    log_ignored,
    unsupported_function,
)
from relvm.onnxruntime.values import Converter, CValue, OrtValue, make_converter, unwrap
from relvm.quoting import terminal
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES, complete_file, read_buffer
from relvm.runtime.virtual_machine import VirtualMachine

PROVIDERS = ["CPUExecutionProvider"]
_NO_VERSION = 2**63 - 1  # what ONNX Runtime returns for a model without a version


REJECTED_METHODS = {
    "get_input_epdevices": "relvm runs on the CPU",
    "get_input_memory_infos": "relvm runs on the CPU",
    "get_output_memory_infos": "relvm runs on the CPU",
    "get_provider_graph_assignment_info": "relvm runs on the CPU",
    "release_captured_graph": "relvm captures no graphs",
    "run_with_ortvaluevector": "use run_with_ort_values",
}


class NodeArg:
    """An input or output of a session.

    Attributes
    ----------
    name
        The name.
    type
        The type, such as "tensor(float)".
    shape
        For each dimension its size, its symbolic name, or None.
    """

    __slots__ = ("name", "shape", "type")

    def __init__(self, name: str, type: str, shape: Sequence[int | str | None]) -> None:
        self.name = name
        self.type = type
        self.shape = list(shape)

    def __repr__(self) -> str:
        return f"NodeArg(name='{terminal(self.name)}', type='{terminal(self.type)}', shape={self.shape})"


@dataclass
class ModelMetadata:
    """The metadata of a model.

    Attributes
    ----------
    producer_name, graph_name, domain, description, graph_description
        The fields of these names in the model.  A missing field is "".
    version
        The version of the model, or the largest 64-bit integer if the model does not state it.
    custom_metadata_map
        The metadata_props of the model.
    """

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = _NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Variant:
    """The settings with which the model of a session is built.  Runs with different settings need different builds.

    outputs: the names of the outputs to compute, or None for all.
    overridden: the names of the initializers that become inputs.
    hints: the symbolic dimensions that can have different sizes in different inputs (`dims` of `from_onnx`).
    ranks: the names and the ranks of the inputs whose shape the model does not state.
    """

    outputs: tuple[str, ...] | None = None
    overridden: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    ranks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class _Plan:
    """A plan for runs with certain inputs and outputs.

    variant: the settings of the build.
    model: the model built with them.
    outputs: the names of the outputs to return.
    inputs: the name and the converter of each argument.
    shared: the symbolic dimensions that occur several times in the types of the arguments.  Each has its name and its
    occurrences, as pairs of an argument index and an axis.
    """

    variant: _Variant
    model: Model
    outputs: tuple[str, ...]
    inputs: tuple[tuple[str, Converter], ...]
    shared: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


# The names of the outputs, the names of the inputs, and the names and ranks of the inputs without a stated shape.
_PlanKey = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, int], ...]]


class InferenceSession:
    """A model that is ready to run.

    If the model does not state the shape of an input, the first run gives its rank, and compiles the model.  A run with
    another rank compiles it again.

    Any number of threads may run a session at once.  If there is a C compiler, native code is compiled in the
    background when the session has run for some time.  Until it is ready, kernel bytecode runs, with the same results.

    Parameters
    ----------
    path_or_bytes
        The path of an .onnx file, or its bytes.  It can also be the path of a compiled model (.rvm).
    sess_options
        The options.
    providers, provider_options
        Ignored, except that a warning names a provider that relvm does not have.
    **kwargs
        Ignored.

    Raises
    ------
    NoSuchFile
        The file does not exist.
    InvalidProtobuf, InvalidGraph, NotImplemented, InvalidArgument, Fail
        The file is not an ONNX model, or the model is inconsistent or uses a feature that relvm does not support.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | os.PathLike | bytes):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if not isinstance(sess_options, SessionOptions | None):
            raise TypeError(f"sess_options: expected a SessionOptions, got {type(sess_options).__name__}")
        self._model = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(path_or_bytes)
        self._sess_options = options = SessionOptions() if sess_options is None else sess_options
        self._threads = options.intra_op_num_threads or None
        self._fused = options.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
        self._sizes = dict(options._sizes)  # fixed sizes of symbolic dimensions
        for name in kwargs:
            log_ignored(f"InferenceSession({name}=...)")
        self.set_providers(providers, provider_options)
        self._compiled: Model | None = None
        if isinstance(self._model, Path) and self._model.suffix in EXECUTABLE_SUFFIXES:
            self._compiled = load_compiled(self._model, options)
            self._info = compiled_info(self._compiled)
        else:
            self._model = apply_model_options(self._model, options)
            self._info = self._read()
        self._values = {value.name: value for value in (*self._info.inputs, *self._info.overridable)}
        self._needed = frozenset(v.name for v in self._info.inputs if not v.type.startswith("optional"))
        self._unranked = tuple(
            name for name, value in self._values.items() if value.shape is None and value.type.startswith("tensor(")
        )
        self._plans: dict[_PlanKey, _Plan] = {}
        self._models: dict[_Variant, Model] = {}
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._profile = _ChromeTrace() if self._sess_options.enable_profiling else None
        if self._unranked and not self._needed.isdisjoint(self._unranked):
            self._output_names = tuple(value.name for value in self._info.outputs)
            self._outputs = list(self._info.outputs)
        else:
            model = self._variant_model(_Variant())
            self._output_names = model.output_names
            self._outputs = _outputs_with_inferred_sizes(self._info, model.signature)
        # Private attributes of ONNX Runtime's class, which some packages read or even set.
        self._model_path = None if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, bytes) else None
        self._inputs_meta, self._outputs_meta = self.get_inputs(), self.get_outputs()
        self._overridable_initializers = self.get_overridable_initializers()
        self._model_meta = self.get_modelmeta()
        self._sess_options_initial = sess_options
        self._providers, self._provider_options = self.get_providers(), self.get_provider_options()
        self._fallback_providers, self._enable_fallback = list(PROVIDERS), True
        self._profiling_start_time_ns = self.get_profiling_start_time_ns()

    def _read(self) -> OnnxInfo:
        if isinstance(self._model, bytes):
            if not self._model:
                raise InvalidArgument.of("No graph was found in the protobuf.")
            content, where = memoryview(self._model), "model"
        else:
            where, shown = str(self._model), terminal(str(self._model))
            try:
                self._stamp = _file_stamp(self._model)
                content = read_buffer(self._model)
            except FileNotFoundError:
                reason = f"Load model {shown} failed. File doesn't exist"
                raise NoSuchFile.of(f"Load model from {shown} failed:{reason}") from None
            except (OSError, RelvmError) as error:
                raise InvalidProtobuf.of(f"Load model from {shown} failed:{error}") from error
        try:
            info = onnx_info(content, where)
        except RelvmError as error:
            raise load_error(error) from error
        names = {size for value in info.inputs for size in value.shape or ()}
        self._sizes = {name: size for name, size in self._sizes.items() if name in names}
        return replace(
            info,
            inputs=_replace_sizes(info.inputs, self._sizes),
            outputs=_replace_sizes(info.outputs, self._sizes),
            overridable=_replace_sizes(info.overridable, self._sizes),
        )

    def __getstate__(self) -> NoReturn:  # subclasses may override this, and add __setstate__
        raise TypeError("cannot pickle an InferenceSession; create one from the model in each process")

    def __copy__(self) -> Self:
        """Return another session that shares the model and its machines."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    @property
    def _sess(self) -> CSession:
        return CSession(self)

    # ---- inputs, outputs and metadata ----

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that a run needs."""
        return self._arguments(self._info.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return self._arguments(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have an initializer, which a run may override."""
        return self._arguments(self._info.overridable)

    def _arguments(self, values: Sequence[OnnxValue]) -> list[NodeArg]:
        return [NodeArg(value.name, value.type, value.shape or ()) for value in values]

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model."""
        info = self._info
        version = _NO_VERSION if info.version is None else info.version
        texts = info.producer_name, info.graph_name, info.domain, info.description, info.graph_description
        return ModelMetadata(*texts, version, dict(info.metadata))

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._sess_options

    # ---- providers ----

    def get_providers(self) -> list[str]:
        """Return ["CPUExecutionProvider"]."""
        return list(PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return {"CPUExecutionProvider": {}}: the provider has no options."""
        return {name: {} for name in PROVIDERS}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Warn of providers that relvm does not have.

        providers: names, or pairs of a name and options.
        provider_options: ignored.
        """
        for each in () if providers is None else providers:
            name = each[0] if isinstance(each, tuple | list) and len(each) == 2 else each
            if not isinstance(name, str):
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
            if name not in (*PROVIDERS, "AzureExecutionProvider"):
                warnings.warn(
                    f"Specified provider '{terminal(name)}' is not in available provider names."
                    f"Available providers: '{', '.join(PROVIDERS)}'",
                    stacklevel=3,
                )

    def disable_fallback(self) -> None:
        """Have no effect: relvm has no other provider to fall back to."""

    def enable_fallback(self) -> None:
        """Have no effect: relvm has no other provider to fall back to."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Have no effect, because relvm runs on the CPU only.  options: ignored."""
        log_ignored("InferenceSession.set_ep_dynamic_options")

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Return an empty list: relvm does not tune."""
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Have no effect: relvm does not tune.  results, error_on_invalid: ignored."""
        log_ignored("InferenceSession.set_tuning_results")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in REJECTED_METHODS:
            raise AttributeError(f"InferenceSession has no attribute {name!r}")
        return unsupported_function(f"InferenceSession.{name}", REJECTED_METHODS[name])

    # ---- running ----

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model.

        Parameters
        ----------
        output_names
            The outputs to compute, in any order.  None and an empty list stand for all outputs.
        input_feed
            A value for each input: an array, a list, an OrtValue, or a dict for a map.
        run_options
            The options of the run.

        Returns
        -------
        list
            An array for a tensor, a list for a sequence, a dict for a map, and None for an absent value.  The values
            own their memory.

        Raises
        ------
        TypeError
            `output_names` is a string.
        ValueError
            An input is missing.
        InvalidArgument
            A name, an element type or a shape does not fit the model.
        Fail
            The run failed, or `run_options.terminate` ended it.
        """
        if isinstance(output_names, str):
            raise TypeError(f"run(): expected a list of output names, got the string {output_names!r}")
        ranks = tuple((name, np.ndim(unwrap(input_feed[name]))) for name in self._unranked if name in input_feed)
        key = tuple(output_names or ()), tuple(input_feed.keys()), ranks
        plan = self._plans.get(key) or self._make_plan(*key)
        arguments = [convert(input_feed.get(name)) for name, convert in plan.inputs]
        model = plan.model
        for _, places in plan.shared:
            if len({arguments[k].shape[axis] for k, axis in places}) > 1:
                model = self._choose_model(plan, arguments)
                break
        return model.plain(plan.outputs, self._result(model, arguments, run_options))

    def _make_plan(
        self, outputs: tuple[str, ...], inputs: tuple[str, ...], ranks: tuple[tuple[str, int], ...]
    ) -> _Plan:
        """Check the names of outputs and inputs.  Return the plan of runs with these, and store it for later runs.

        ranks: the names and the ranks of the inputs whose shape the model does not state.
        """
        key = outputs, inputs, ranks
        if not all(isinstance(name, str) for name in outputs):
            raise TypeError(f"run(): expected a list of output names, got {outputs!r}")
        missing = [value.name for value in self._info.inputs if value.name in self._needed.difference(inputs)]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(inputs)}).")
        for name in inputs:
            self.expect_input(name)
        for name in outputs:
            self.expect_output(name)
        overridden = tuple(sorted(set(inputs) - {value.name for value in self._info.inputs}))
        model = self._variant_model(_Variant(overridden=overridden, ranks=ranks))
        selected = None if not outputs or model.computes_only(outputs) else tuple(sorted(set(outputs)))
        variant = _Variant(selected, overridden, ranks=ranks)
        model = self._variant_model(variant)
        values = [self._values[name] for name in model.input_names]
        places: dict[str, list[tuple[int, int]]] = {}
        for k, value in enumerate(values):
            for axis, size in enumerate(value.shape or ()):
                if isinstance(size, str):
                    places.setdefault(size, []).append((k, axis))
        shared = tuple((name, tuple(each)) for name, each in places.items() if len(each) > 1)
        converters = tuple((value.name, make_converter(value)) for value in values)
        plan = self._plans[key] = _Plan(variant, model, outputs or self._output_names, converters, shared)
        return plan

    def _result(self, model: Model, arguments: list[Any], options: RunOptions | None) -> Any:
        try:
            if options is None and self._profile is None:
                return model(*arguments)
            with model.borrowed_machine() as machine:
                return self._run_observed(machine, arguments, options or RunOptions())
        except RelvmInterrupted as error:
            raise _terminated() from error
        except RelvmError as error:
            raise run_error(error) from error

    def _run_observed(self, machine: VirtualMachine, arguments: list[Any], options: RunOptions) -> Any:
        """Run `machine` on the arguments, so that `options` can interrupt it.  Add the run to the profile, if any."""
        if self._profile:
            machine.set_instrument(self._profile.instrument)
        try:
            if options.begin(machine):
                return machine["main"](*arguments)
        finally:
            options.end(machine)
            machine.set_instrument(None)
        raise _terminated()

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run the model on another thread.  `input_feed` maps the names of inputs to their values.

        output_names: the outputs to compute, or None for all.
        run_options: the options of the run.
        callback: a function that is called on that thread with the results, `user_data` and an error message, which is
        empty if the run succeeded.
        """

        def work() -> None:
            try:
                results, message = self.run(output_names, input_feed, run_options), ""
            except Exception as error:  # passed to the callback, because nothing waits for this thread
                results, message = [], str(error)
            callback(results, user_data, message)

        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(thread_name_prefix="relvm run_async")
        self._pool.submit(work)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model, and return OrtValues.  `input_dict_ort_values` maps the names of inputs to OrtValues.

        output_names: the outputs to compute, or None for all.
        run_options: the options of the run.
        """
        return list(map(OrtValue, self.run(output_names, input_dict_ort_values, run_options)))

    def io_binding(self) -> IOBinding:
        """Return an IOBinding of the session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run the model on `iobinding`, the bound inputs and outputs.  run_options: the options of the run."""
        iobinding.run(run_options)

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, *device: Any) -> OrtValue:
        """Return a new tensor (OrtValue.ortvalue_from_shape_and_type).

        shape: the sizes.
        element_type: a NumPy type, or a number of onnx.TensorProto.DataType.
        device: "cpu".
        """
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, *device)

    def expect_input(self, name: str) -> None:
        """Raise InvalidArgument if there is no input `name`."""
        if name not in self._values:
            raise InvalidArgument.of(f"Invalid input name: {terminal(name)}")

    def expect_output(self, name: str) -> None:
        """Raise InvalidArgument if there is no output `name`."""
        if name not in self._output_names:
            raise InvalidArgument.of(f"Invalid output name:{terminal(name)}")

    # ---- profiles ----

    def end_profiling(self) -> str:
        """Write the profile of all runs, and return the name of the file, or "" if profiling is not enabled."""
        if self._profile is None:
            return ""
        name = self._profile.write(self._sess_options.profile_file_prefix)
        self._profile = None
        return name

    def get_profiling_start_time_ns(self) -> int:
        """Return the time at which profiling began, in nanoseconds, or 0 if profiling is not enabled."""
        return self._profile.started if self._profile else 0

    # ---- building ----

    def _choose_model(self, plan: _Plan, arguments: list[Any]) -> Model:
        """Return the model with which to run a plan on its arguments.

        If the arguments have different sizes in dimensions of the same name, choose a variant of the model that allows
        this, as ONNX Runtime does.
        """
        sizes = {name: {arguments[k].shape[axis] for k, axis in places} for name, places in plan.shared}
        hints = tuple(sorted(name for name, found in sizes.items() if len(found) > 1))
        return self._variant_model(replace(plan.variant, hints=hints))

    def _variant_model(self, variant: _Variant) -> Model:
        """Return the model that is built with the settings `variant`.  The first call for these settings builds it."""
        model = self._models.get(variant)
        if model is None:
            with self._lock:
                model = self._models.get(variant)
                if model is None:
                    model = self._models[variant] = self._build(variant)
        return model

    def _build(self, variant: _Variant) -> Model:
        if self._compiled is not None:
            return self._compiled
        dims = {**self._sizes, **dict.fromkeys(variant.hints)}
        try:
            if isinstance(self._model, Path) and _file_stamp(self._model) != self._stamp:
                raise Fail.of(
                    f"{terminal(str(self._model))} has changed since the session was created, and is read again for"
                    " new outputs, initializers or sizes: keep the file, or create the session from its bytes"
                )
            executable = build_onnx(
                self._model,
                dims,
                "auto",
                "c",
                inputs=variant.overridden,
                outputs=variant.outputs,
                ranks=dict(variant.ranks),
                fused=self._fused,
            )
            return Model(executable, num_threads=self._threads)
        except RelvmError as error:
            raise load_error(error) from error
        except OSError as error:
            raise Fail.of(f"Load model failed:{error}; keep the file, or create the session from its bytes") from error


class CSession:
    """The session of onnxruntime.capi.onnxruntime_pybind11_state, to which the attribute `_sess` refers.

    Attributes
    ----------
    owner
        The InferenceSession.
    """

    def __init__(self, owner: InferenceSession) -> None:
        self.owner = owner

    # ONNX Runtime's names of what the InferenceSession returns.
    inputs_meta = property(lambda self: self.owner.get_inputs())
    outputs_meta = property(lambda self: self.owner.get_outputs())
    overridable_initializers = property(lambda self: self.owner.get_overridable_initializers())
    model_meta = property(lambda self: self.owner.get_modelmeta())
    session_options = property(lambda self: self.owner.get_session_options())

    def run(
        self, output_names: Sequence[str], input_feed: Mapping[str, Any], run_options: RunOptions | None
    ) -> list[Any]:
        """Run the model (InferenceSession.run)."""
        if output_names is None:
            raise TypeError("run(): expected a list of output names, got None")
        return self.owner.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None
    ) -> list[CValue]:
        """Run the model (InferenceSession.run_with_ort_values)."""
        return [value._get_c_value() for value in self.owner.run_with_ort_values(output_names, input_feed, run_options)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "owner":
            raise AttributeError(name)
        return getattr(self.owner, name)  # methods that have the same parameters in both classes


def _file_stamp(path: Path) -> tuple[int, int, int]:
    """Return the modification time, size and inode of a file, to detect later whether it was written or replaced."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino


def _terminated() -> Exception:
    return Fail.of("Exiting due to terminate flag being set to true.")


class _ChromeTrace:
    """A profile of runs in Chrome's trace format, which ONNX Runtime also writes."""

    def __init__(self) -> None:
        self.started = time.monotonic_ns()
        self._events: list[dict[str, Any]] = []
        self._local = threading.local()

    def instrument(self, name: str, before: bool, result: Any, *arguments: Any) -> None:
        open_calls = self._local.__dict__.setdefault("open_calls", [])
        now = time.monotonic_ns()
        if before:
            open_calls.append(now)
            return
        begun = open_calls.pop()
        kind = "Session" if name == "main" else "Node"
        self._events.append(
            {
                "cat": kind,
                "name": "model_run" if kind == "Session" else f"{name}_kernel_time",
                "ph": "X",
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "ts": (begun - self.started) // 1000,
                "dur": (now - begun) // 1000,
                "args": {} if kind == "Session" else {"op_name": name, "provider": PROVIDERS[0]},
            }
        )

    def write(self, prefix: str) -> str:
        """Write the events to a file, and return its name: `prefix`, followed by the time."""
        name = f"{prefix}_{datetime.now().strftime('%Y-%m-%d_%H-%M-%S_%f')[:-3]}.json"
        with complete_file(name) as partial:
            partial.write_text(json.dumps(sorted(self._events, key=lambda event: event["ts"])), encoding="utf-8")
        return name


def _replace_sizes(values: Sequence[OnnxValue], sizes: Mapping[str, int]) -> tuple[OnnxValue, ...]:
    """Replace each symbolic dimension of `values` by its size, if `sizes` contains the name of the dimension."""

    def shape(value: OnnxValue) -> tuple[int | str | None, ...] | None:
        return value.shape and tuple(sizes.get(size, size) if isinstance(size, str) else size for size in value.shape)

    return tuple(replace(value, shape=shape(value)) for value in values)


def _outputs_with_inferred_sizes(info: OnnxInfo, signature: Signature) -> list[OnnxValue]:
    """Return the outputs of a model, with the sizes that the model does not state, or states wrongly.

    Exporters write wrong shapes, such as the shape () for a matrix, because ONNX Runtime ignores them.

    signature: the inferred types.
    """
    names: dict[str, str] = {}  # names of symbolic dimensions, by their identifiers in the signature
    for value in info.inputs:
        shape, inferred = value.shape or (), _dimensions(signature.inputs[value.name])
        names |= {each: size for each, size in zip(inferred, shape, strict=False) if isinstance(size, str)}
    outputs = []
    for value in info.outputs:
        inferred = _dimensions(signature.outputs[value.name])
        known = [int(each) if each.isdecimal() else names.get(each) for each in inferred]
        if value.type.startswith("tensor("):
            stated = value.shape
            if stated is None or len(stated) != len(known):
                stated = (None,) * len(known)
            value = replace(value, shape=tuple(map(_merge_sizes, stated, known)))
        outputs.append(value)
    return outputs


def _merge_sizes(stated: int | str | None, inferred: int | str | None) -> int | str | None:
    return inferred if stated is None or isinstance(inferred, int) else stated


def _dimensions(type_text: str) -> list[str]:
    """Return the dimensions of a type in text form, such as "f32[n, 384]"."""
    found = re.fullmatch(r"\w+\[(.*)\]", type_text)
    return type_fields(f"({found[1]})") if found else []
