"""onnxruntime's Python API on relvm.

`from relvm import onnxruntime as ort` replaces `import onnxruntime as ort`.  For packages that import onnxruntime
themselves, call `relvm.onnxruntime.install()` first, or run the program with `relvm run-python --as-onnxruntime`.
docs/onnxruntime.md lists each name of the API: supported, ignored or rejected.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from relvm.errors import RelvmBusyError
from relvm.onnxruntime import errors
from relvm.onnxruntime.errors import unsupported_error
from relvm.onnxruntime.io_binding import IOBinding, SessionIOBinding
from relvm.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtEnum,
    RunOptions,
    SessionOptions,
    log_ignored,
)
from relvm.onnxruntime.session import PROVIDERS, InferenceSession, ModelMetadata, NodeArg
from relvm.onnxruntime.submodules import add_finder, remove_finder
from relvm.onnxruntime.values import CDevice, CValue, OrtDevice, OrtValue
from relvm.quoting import terminal

__version__ = "1.32.0"  # version of the supported API
package_name, version = "onnxruntime", __version__
cuda_version = ""

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtMemType",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "install",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "uninstall",
]


class OrtAllocatorType(OrtEnum):
    """A kind of allocator, which relvm ignores."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(OrtEnum):
    """A kind of memory, which relvm ignores."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(OrtEnum):
    """A kind of memory, which relvm ignores."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


def get_available_providers() -> list[str]:
    """Return ["CPUExecutionProvider"]."""
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    """Return ["CPUExecutionProvider"]."""
    return list(PROVIDERS)


def get_device() -> str:
    """Return "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """Return the version of onnxruntime whose API this module has."""
    return __version__


def get_build_info() -> str:
    """Return a text with the versions of relvm and of the onnxruntime API that it implements."""
    import relvm

    return f"relvm {relvm.__version__}, with the API of onnxruntime {__version__}"


def has_collective_ops() -> bool:
    """Return False: there are no operators that use several devices."""
    return False


def set_seed(seed: int) -> None:
    """Have no effect: each session draws its own random numbers.

    seed: ignored.
    """
    log_ignored("set_seed")


def set_default_logger_severity(severity: int) -> None:
    """Have no effect: relvm uses the logger "relvm" of the module logging.

    severity: ignored.
    """
    log_ignored("set_default_logger_severity")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Have no effect.

    verbosity: ignored.
    """
    log_ignored("set_default_logger_verbosity")


def set_default_logger_callback(callback: Any, *arguments: Any) -> None:
    """Have no effect: relvm uses the logger "relvm" of the module logging.

    callback, arguments: ignored.
    """
    log_ignored("set_default_logger_callback")


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Have no effect: each session has its own threads.

    intra_op_num_threads, inter_op_num_threads: ignored.
    """
    log_ignored("set_global_thread_pool_sizes")


def enable_telemetry_events() -> None:
    """Have no effect: relvm sends nothing."""


def disable_telemetry_events() -> None:
    """Have no effect: relvm sends nothing."""


def preload_dlls(**options: Any) -> None:
    """Have no effect: there are no libraries to load.

    options: ignored.
    """


def print_debug_info() -> None:
    """Print the versions of relvm and of the onnxruntime API that it implements."""
    print(get_build_info())


# ---- unsupported names ----

# Names by the advice in the error message.
_REJECTED = {
    "relvm plans memory itself; leave it out": (
        *("OrtArenaCfg", "OrtMemoryInfo", "create_and_register_allocator", "create_and_register_allocator_v2"),
    ),
    "merge the adapter into the model": ("AdapterFormat", "LoraAdapter"),
    "open the .onnx file in the package": (
        *("ModelPackage", "ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions"),
    ),
    "use relvm.vm.build and Executable.save": (
        *("ModelCompiler", "ModelPackageWriteMode", "OrtCompileApiFlags", "OrtEpContextData"),
        *("OrtEpContextDataBuffer", "OrtExternalInitializerInfo"),
    ),
    "pass dense arrays": ("OrtSparseFormat", "SparseTensor"),
    "relvm runs on the CPU; leave it out": (
        *("OrtDeviceVendorId", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice"),
        *("OrtExecutionProviderDevicePolicy", "OrtHardwareDevice", "OrtHardwareDeviceType"),
        *("OrtMemoryInfoDeviceType", "OrtSyncStream", "copy_tensors", "get_ep_devices"),
        *("register_execution_provider_library", "unregister_execution_provider_library"),
    ),
}
REJECTED = {name: instead for instead, names in _REJECTED.items() for name in names}

# Further names of onnxruntime.capi.onnxruntime_pybind11_state.
_REJECTED_STATE = {
    "relvm plans memory itself; leave it out": ("ArenaExtendStrategy", "kNextPowerOfTwo", "kSameAsRequested"),
    "pass a list of values": ("OrtValueVector",),
    "pass dense arrays": ("SparseBlockSparseView", "SparseCooView", "SparseCsrView"),
    "use InferenceSession": ("SessionObjectInitializer", "get_default_session_options", "get_session_initializer"),
    "relvm runs on the CPU; leave it out": (
        *("DeviceReset", "OrtCompiledModelCompatibility", "OrtDeviceEpIncompatibilityReason"),
        *("get_compatibility_info_from_model", "get_compatibility_info_from_model_bytes"),
        *("get_hardware_device_ep_incompatibility_details", "get_hardware_devices"),
        *("get_model_compatibility_for_ep_devices", "get_registered_ep_kernel_defs"),
    ),
    "relvm.frontend.onnx.supported_operators lists the operators of relvm": (
        *("get_all_operator_schema", "get_all_opkernel_def", "opkernel", "schemadef"),
    ),
    "quantize the model with onnxruntime itself, in another process": (
        *("pack_fp4_weights_for_cuda_moe_gemm", "quantize_matmul_2bits", "quantize_matmul_4bits"),
        *("quantize_matmul_8bits", "quantize_matmul_bnb4", "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits"),
    ),
}
REJECTED_STATE = REJECTED | {name: instead for instead, names in _REJECTED_STATE.items() for name in names}


class _UnsupportedName:
    """A placeholder for a name of onnxruntime that relvm does not support.

    Calling the placeholder, or accessing an attribute of it, raises relvm.onnxruntime.errors.NotImplemented.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, /, *arguments: Any, **named: Any) -> NoReturn:
        raise unsupported_error(self._name, REJECTED_STATE[self._name])

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unsupported_error(f"{self._name}.{terminal(name)}", REJECTED_STATE[self._name])

    def __repr__(self) -> str:
        return f"<{self._name}, which relvm does not support>"


def __getattr__(name: str) -> Any:
    if name in REJECTED:
        return _UnsupportedName(name)
    if not name.startswith("_") and sys.modules.get("onnxruntime") is sys.modules[__name__]:
        try:
            return import_module(f"onnxruntime.{name}")  # `from onnxruntime import quantization`
        except ModuleNotFoundError as error:
            if error.name != f"onnxruntime.{name}":  # a module that the submodule imports
                raise
    raise AttributeError(f"module {__name__} has no attribute {name!r}; docs/onnxruntime.md lists what it has")


def __dir__() -> list[str]:
    special = [name for name in globals() if name.startswith("__")]
    return sorted({*special, *__all__, *REJECTED, "capi", "cuda_version", "package_name", "version"})


# ---- under the name onnxruntime ----


def _state_name(name: str) -> Any:
    """Return the placeholder for a name of the module onnxruntime_pybind11_state that relvm does not support."""
    if name in REJECTED_STATE:
        return _UnsupportedName(name)
    raise AttributeError(f"module onnxruntime.capi.onnxruntime_pybind11_state of relvm has no attribute {name!r}")


def _replaced_modules() -> dict[str, ModuleType]:
    """Return a dict from the name of each replaced module of onnxruntime to the module that programs import instead."""
    here = sys.modules[__name__]
    state = ModuleType("onnxruntime.capi.onnxruntime_pybind11_state", "The exceptions and types of onnxruntime.")
    state.__dict__.update({name: getattr(errors, name) for name in errors.__all__})
    state.__dict__.update({name: getattr(here, name) for name in __all__ if name not in ("install", "uninstall")})
    state.__dict__.update(OrtDevice=CDevice, OrtValue=CValue, __getattr__=_state_name)
    collection = ModuleType("onnxruntime.capi.onnxruntime_inference_collection", "The classes of onnxruntime.")
    classes = InferenceSession, IOBinding, OrtDevice, OrtValue
    collection.__dict__.update({each.__name__: each for each in classes}, Session=InferenceSession)
    parts = {
        "_pybind_state": state,
        "onnxruntime_pybind11_state": state,
        "onnxruntime_inference_collection": collection,
    }
    capi = ModuleType("onnxruntime.capi", "The parts of onnxruntime.")
    capi.__path__ = []
    capi.__dict__.update(parts)
    for module in (capi, state, collection):  # importlib.util.find_spec needs a spec
        module.__spec__ = ModuleSpec(module.__name__, None, is_package=module is capi)
    return {"onnxruntime": here, "onnxruntime.capi": capi} | {f"onnxruntime.capi.{name}": parts[name] for name in parts}


_MODULES = _replaced_modules()
capi = _MODULES["onnxruntime.capi"]


def install() -> None:
    """Make `import onnxruntime` import this module, until `uninstall` is called.

    Call `install` before any other package imports onnxruntime.  If onnxruntime is not installed,
    `importlib.metadata.version("onnxruntime")` then returns `__version__`.

    Raises
    ------
    RelvmBusyError
        onnxruntime itself is imported already.
    """
    found = sys.modules.get("onnxruntime")
    if found is sys.modules[__name__]:
        return
    if found is not None:
        raise RelvmBusyError(
            "install: onnxruntime is already imported, and other packages may have copied its functions; call"
            " relvm.onnxruntime.install() before the first import of onnxruntime"
        )
    sys.modules.update(_MODULES)
    add_finder()
    from relvm.onnxruntime.distribution import add_metadata  # imported here, because few programs need it

    add_metadata(__version__)


def uninstall() -> None:
    """Undo `install`.  Later imports of onnxruntime find the real package, if it is installed."""
    if sys.modules.get("onnxruntime") is not sys.modules[__name__]:
        return
    remove_finder(_MODULES)
    from relvm.onnxruntime.distribution import remove_metadata

    remove_metadata()
