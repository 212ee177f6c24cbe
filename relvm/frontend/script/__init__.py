"""Functions written in Python: the decorator `script`."""

from relvm.frontend.script.decorator import Script, module_of, script

__all__ = ["Script", "module_of", "script"]
