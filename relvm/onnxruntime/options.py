"""Options of sessions and runs, and the enumerations that they use."""

from __future__ import annotations

import enum
import logging
import operator
import threading
import time
from collections.abc import Callable
from typing import Any, SupportsIndex

from relvm.errors import expect_type
from relvm.onnxruntime.errors import unsupported_error
from relvm.onnxruntime.values import OrtValue
from relvm.quoting import terminal
from relvm.runtime.virtual_machine import VirtualMachine

_LOGGER = logging.getLogger("relvm").getChild("onnxruntime")
_INTERRUPT_SECONDS = 0.01
_logged: set[str] = set()


def log_ignored(what: str) -> None:
    """Log that the option or call `what` has no effect in relvm: once per process, at level INFO."""
    if what not in _logged:
        _logged.add(what)
        _LOGGER.info("%s has no effect in relvm", what)


def unsupported_function(name: str, instead: str) -> Callable[..., Any]:
    """Return a substitute for the function `name`, which relvm lacks.

    A call of the substitute raises `unsupported_error(name, instead)`.
    """

    def reject(*arguments: Any, **named: Any) -> Any:
        raise unsupported_error(name, instead)

    return reject


class OrtEnum(enum.IntEnum):
    """Base class of enumerations, whose members are written with the name of the class, as in ONNX Runtime."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class ExecutionMode(OrtEnum):
    """Whether nodes run at the same time.  relvm runs them one after another, each on several threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(OrtEnum):
    """The order in which the nodes of a graph run.  relvm ignores it."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class GraphOptimizationLevel(OrtEnum):
    """The optimization level of a session.  With ORT_DISABLE_ALL, relvm does not fuse operators into kernels."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class _Option:
    """A descriptor for an option: an attribute with a default value.  A new value must have the type of the default.

    has_effect: whether the option has an effect in relvm.  If not, setting it to another value than the default is
    logged.
    """

    def __init__(self, default: Any, has_effect: bool = False) -> None:
        self.default = default
        self.has_effect = has_effect

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.owner = owner.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance._values.get(self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        expected = type(self.default)
        if expected is int and hasattr(value, "__index__"):
            value = operator.index(value)
        if not isinstance(value, expected) and not (expected is bool and value in (0, 1)):
            raise TypeError(
                f"{self.owner}.{self.name}: expected {expected.__name__}, got {type(value).__name__} {value!r}"
            )
        if not self.has_effect and value != self.default:
            log_ignored(f"{self.owner}.{self.name}")
        instance._values[self.name] = value


class _Entries(dict[str, str]):
    """The configuration entries of a SessionOptions or RunOptions object, as strings by name.

    owner: the name of the class of the object, for messages.
    """

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner

    def add(self, name: str, value: str) -> None:
        expect_type(f"{self.owner}: the name of an entry", name, str, "a string")
        expect_type(f"{self.owner}: {name}", value, str, "a string")
        self[name] = value
        log_ignored(f"{self.owner}: the entry {name!r}")

    def get_known(self, name: str) -> str:
        if name not in self:
            raise RuntimeError(f"{self.owner} does not have configuration with key: {terminal(name)}")
        return self[name]


class SessionOptions:
    """The options of a session.

    intra_op_num_threads: the number of threads of a kernel, where 0 means all processors.
    enable_profiling: whether to record a profile of all runs, which the session's `end_profiling` writes to a file.
    profile_file_prefix: the beginning of the name of this file.
    graph_optimization_level: a GraphOptimizationLevel.
    optimized_model_filepath: the path of a file to which the session writes its model, or "".

    The other attributes are accepted and have no effect.
    """

    __slots__ = ("_denoted_sizes", "_entries", "_initializers", "_sizes", "_values")

    enable_cpu_mem_arena = _Option(True)
    enable_mem_pattern = _Option(True)
    enable_mem_reuse = _Option(True)
    enable_profiling = _Option(False, has_effect=True)
    execution_mode = _Option(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = _Option(ExecutionOrder.DEFAULT)
    graph_optimization_level = _Option(GraphOptimizationLevel.ORT_ENABLE_ALL, has_effect=True)
    inter_op_num_threads = _Option(0)
    intra_op_num_threads = _Option(0, has_effect=True)
    log_severity_level = _Option(-1)
    log_verbosity_level = _Option(0)
    logid = _Option("")
    optimized_model_filepath = _Option("", has_effect=True)
    profile_file_prefix = _Option("onnxruntime_profile_", has_effect=True)
    use_deterministic_compute = _Option(False, has_effect=True)  # always the case in relvm
    use_per_session_threads = _Option(True)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries = _Entries("SessionOptions")
        self._sizes: dict[str, int] = {}
        self._denoted_sizes: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}

    def add_session_config_entry(self, name: str, value: str) -> None:
        """Set the entry `name` to the string `value`.  The entry can be read again, but has no effect."""
        self._entries.add(name, value)

    def get_session_config_entry(self, name: str) -> str:
        """Return the entry `name`.  Raise RuntimeError if there is none."""
        return self._entries.get_known(name)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the size of the symbolic dimension `name`.

        size: the number of elements along it.
        """
        expect_type("add_free_dimension_override_by_name: name", name, str, "a string")
        expect_type("add_free_dimension_override_by_name: size", size, SupportsIndex, "an integer")
        self._sizes[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the size of the input dimensions that have a denotation, such as "DATA_BATCH".

        denotation: the field `denotation` of the dimensions.
        size: the number of elements along them.
        """
        expect_type("add_free_dimension_override_by_denotation: denotation", denotation, str, "a string")
        expect_type("add_free_dimension_override_by_denotation: size", size, SupportsIndex, "an integer")
        self._denoted_sizes[denotation] = operator.index(size)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Replace the value of an initializer.

        name: the initializer.  If the model has no initializer of this name, the value is not used.
        ort_value: a tensor.
        """
        expect_type("add_initializer: name", name, str, "a string")
        expect_type("add_initializer: ort_value", ort_value, OrtValue, "an OrtValue")
        self._initializers[name] = ort_value

    def has_providers(self) -> bool:
        """Return False: providers are passed to InferenceSession, not to its options."""
        return False

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Have no effect.

        value: ignored.
        """
        log_ignored("SessionOptions.set_load_cancellation_flag")

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Have no effect, because relvm runs on the CPU only.

        name, options: ignored.
        """
        log_ignored(f"SessionOptions.add_provider({name!r}, ...)")

    def clear_ep_context_data_read_func(self) -> None:
        """Have no effect, because there is no such function."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in REJECTED_OPTIONS:
            raise AttributeError(f"SessionOptions has no attribute {name!r}")
        return unsupported_function(f"SessionOptions.{name}", REJECTED_OPTIONS[name])


REJECTED_OPTIONS = {
    "add_external_initializers": "pass the path of the model, with its files of external data beside it",
    "add_external_initializers_from_files_in_memory": "pass the path of the model, with its files beside it",
    "add_provider_for_devices": "relvm runs on the CPU",
    "register_custom_ops_library": "write the operator as an ONNX function of the model",
    "set_ep_context_data_read_func": "pass the original model",
    "set_provider_selection_policy": "relvm runs on the CPU",
    "set_provider_selection_policy_delegate": "relvm runs on the CPU",
}


class RunOptions:
    """The options of a run.

    Setting `terminate` from another thread ends the runs that use these options.  The other attributes are accepted
    and have no effect.
    """

    __slots__ = ("_entries", "_running", "_terminate", "_values")

    log_severity_level = _Option(-1)
    log_verbosity_level = _Option(0)
    logid = _Option("")
    only_execute_path_to_fetches = _Option(False, has_effect=True)  # always the case in relvm

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._entries = _Entries("RunOptions")
        self._terminate = False
        self._running: list[VirtualMachine] = []

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end as soon as possible, with the error Fail."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if value and self._running:
            threading.Thread(target=self._interrupt, name="relvm terminate", daemon=True).start()

    def _interrupt(self) -> None:
        """Interrupt the running machines repeatedly until their runs end.

        One interrupt is not enough, because a machine ignores it if its run has not begun yet.
        """
        while self._terminate and self._running:
            for machine in tuple(self._running):
                machine.interrupt()
            time.sleep(_INTERRUPT_SECONDS)

    def add_run_config_entry(self, name: str, value: str) -> None:
        """Set the entry `name` to the string `value`.  The entry can be read again, but has no effect."""
        self._entries.add(name, value)

    def get_run_config_entry(self, name: str) -> str:
        """Return the entry `name`.  Raise RuntimeError if there is none."""
        return self._entries.get_known(name)

    def add_active_adapter(self, adapter: Any) -> None:
        """Raise relvm.onnxruntime.errors.NotImplemented.

        adapter: a LoraAdapter.
        """
        raise unsupported_error("RunOptions.add_active_adapter", "merge the adapter into the model")

    def begin(self, machine: VirtualMachine) -> bool:
        """Record that `machine` begins a run.  Return False if `terminate` is set, so that the run must not begin."""
        self._running.append(machine)
        return not self._terminate

    def end(self, machine: VirtualMachine) -> None:
        """Record that the run of `machine` has ended."""
        self._running.remove(machine)
