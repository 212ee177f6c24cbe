"""What relvm needs of the operating system: files, folders, processes and signals.

Each system has a module with the same names: posix.py for Linux and macOS, and windows.py.  No other module of the
package depends on the system.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from relvm.system.windows import (
        Folder as Folder,
    )
    from relvm.system.windows import (
        block_interrupts as block_interrupts,
    )
    from relvm.system.windows import (
        cache_root as cache_root,
    )
    from relvm.system.windows import (
        can_limit_processes as can_limit_processes,
    )
    from relvm.system.windows import (
        end_after as end_after,
    )
    from relvm.system.windows import (
        end_processes as end_processes,
    )
    from relvm.system.windows import (
        find_beneath as find_beneath,
    )
    from relvm.system.windows import (
        has_ended_late as has_ended_late,
    )
    from relvm.system.windows import (
        is_own as is_own,
    )
    from relvm.system.windows import (
        library_suffix as library_suffix,
    )
    from relvm.system.windows import (
        load_library as load_library,
    )
    from relvm.system.windows import (
        lower_priority as lower_priority,
    )
    from relvm.system.windows import (
        map_copy_on_write as map_copy_on_write,
    )
    from relvm.system.windows import (
        name_of_end as name_of_end,
    )
    from relvm.system.windows import (
        only_user_can_write as only_user_can_write,
    )
    from relvm.system.windows import (
        open_at_once as open_at_once,
    )
    from relvm.system.windows import (
        own_session as own_session,
    )
    from relvm.system.windows import (
        processor_count as processor_count,
    )
    from relvm.system.windows import (
        processor_seconds as processor_seconds,
    )
    from relvm.system.windows import (
        split_command as split_command,
    )
    from relvm.system.windows import (
        stored_bytes as stored_bytes,
    )
    from relvm.system.windows import (
        try_lock as try_lock,
    )
    from relvm.system.windows import (
        watch_forks as watch_forks,
    )
else:
    from relvm.system.posix import (
        Folder as Folder,
    )
    from relvm.system.posix import (
        block_interrupts as block_interrupts,
    )
    from relvm.system.posix import (
        cache_root as cache_root,
    )
    from relvm.system.posix import (
        can_limit_processes as can_limit_processes,
    )
    from relvm.system.posix import (
        end_after as end_after,
    )
    from relvm.system.posix import (
        end_processes as end_processes,
    )
    from relvm.system.posix import (
        find_beneath as find_beneath,
    )
    from relvm.system.posix import (
        has_ended_late as has_ended_late,
    )
    from relvm.system.posix import (
        is_own as is_own,
    )
    from relvm.system.posix import (
        library_suffix as library_suffix,
    )
    from relvm.system.posix import (
        load_library as load_library,
    )
    from relvm.system.posix import (
        lower_priority as lower_priority,
    )
    from relvm.system.posix import (
        map_copy_on_write as map_copy_on_write,
    )
    from relvm.system.posix import (
        name_of_end as name_of_end,
    )
    from relvm.system.posix import (
        only_user_can_write as only_user_can_write,
    )
    from relvm.system.posix import (
        open_at_once as open_at_once,
    )
    from relvm.system.posix import (
        own_session as own_session,
    )
    from relvm.system.posix import (
        processor_count as processor_count,
    )
    from relvm.system.posix import (
        processor_seconds as processor_seconds,
    )
    from relvm.system.posix import (
        split_command as split_command,
    )
    from relvm.system.posix import (
        stored_bytes as stored_bytes,
    )
    from relvm.system.posix import (
        try_lock as try_lock,
    )
    from relvm.system.posix import (
        watch_forks as watch_forks,
    )
