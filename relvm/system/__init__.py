"""The interface to the operating system: files, folders, processes and signals.

Each system has a module with the same names: posix.py for Linux and macOS, and windows.py.  No other module of the
package depends on the system.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from relvm.system.windows import *  # noqa: F403
else:
    from relvm.system.posix import *  # noqa: F403
