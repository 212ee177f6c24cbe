"""The script frontend: Python functions as programs, by the decorator `script`."""

from relvm.frontend.script.decorator import Script, module_of, script

__all__ = ["Script", "module_of", "script"]
