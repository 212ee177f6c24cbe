"""What relvm needs of the operating system: files, folders, processes and signals.

Each system has a module with the same names: posix.py for Linux and macOS, and windows.py.  No other module of the
package depends on the system.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from relvm.system.windows import (
        Folder,
        block_interrupts,
        cache_root,
        can_limit_processes,
        end_after,
        end_processes,
        find_beneath,
        has_ended_late,
        is_own,
        library_suffix,
        load_library,
        lower_priority,
        map_copy_on_write,
        name_of_end,
        only_user_can_write,
        open_at_once,
        own_session,
        processor_count,
        processor_seconds,
        split_command,
        stored_bytes,
        try_lock,
        watch_forks,
    )
else:
    from relvm.system.posix import (
        Folder,
        block_interrupts,
        cache_root,
        can_limit_processes,
        end_after,
        end_processes,
        find_beneath,
        has_ended_late,
        is_own,
        library_suffix,
        load_library,
        lower_priority,
        map_copy_on_write,
        name_of_end,
        only_user_can_write,
        open_at_once,
        own_session,
        processor_count,
        processor_seconds,
        split_command,
        stored_bytes,
        try_lock,
        watch_forks,
    )

__all__ = [
    "Folder",
    "block_interrupts",
    "cache_root",
    "can_limit_processes",
    "end_after",
    "end_processes",
    "find_beneath",
    "has_ended_late",
    "is_own",
    "library_suffix",
    "load_library",
    "lower_priority",
    "map_copy_on_write",
    "name_of_end",
    "only_user_can_write",
    "open_at_once",
    "own_session",
    "processor_count",
    "processor_seconds",
    "split_command",
    "stored_bytes",
    "try_lock",
    "watch_forks",
]
