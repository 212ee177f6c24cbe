"""Ahead of time: a module as C sources with static memory, which need no machine."""

from relvm.aot.config import AotConfig, Pool
from relvm.aot.project import AotProgram, build

__all__ = ["AotConfig", "AotProgram", "Pool", "build"]
