"""Ahead-of-time export.

It compiles a module to C sources with static memory and without a VM, or to a shared library that executors run.
"""

from relvm.aot.boards import BOARDS, Board
from relvm.aot.config import AotConfig, Pool
from relvm.aot.hosted.executor import AotExecutor
from relvm.aot.hosted.factory import ExecutorFactory, compile_library, load_module
from relvm.aot.metadata_model import Metadata, SizeInfo, TensorInfo
from relvm.aot.project.board_fit import BoardMemory
from relvm.aot.project.build import AotProgram, build

__all__ = [
    "BOARDS",
    "AotConfig",
    "AotExecutor",
    "AotProgram",
    "Board",
    "BoardMemory",
    "ExecutorFactory",
    "Metadata",
    "Pool",
    "SizeInfo",
    "TensorInfo",
    "build",
    "compile_library",
    "load_module",
]
