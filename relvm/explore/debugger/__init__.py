"""The step debugger."""

from relvm.explore.debugger.debugger import Debugger

__all__ = ["Debugger"]
