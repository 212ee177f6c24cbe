"""Background compilation for exec_mode="auto".  The native code is also stored in the build cache."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from weakref import WeakValueDictionary

from relvm.compiler import build_cache
from relvm.compiler.build_cache import CacheEntry
from relvm.compiler.find_compiler import expect_compiler
from relvm.errors import RelvmNotInstalledError, RelvmToolchainError, RelvmUnsupportedError
from relvm.installation import expect_installed
from relvm.runtime import background_compile
from relvm.runtime.background_compile import Publish, Publisher, Upgrade
from relvm.runtime.cache_folder import cache_directory
from relvm.runtime.executable import Executable

# The compilations for cache entries, by cache directory, entry and digest of the bytecode.
_upgrades: WeakValueDictionary[tuple[str, CacheEntry, bytes], Upgrade[Executable]] = WeakValueDictionary()


def _cache_path() -> str:
    """Return the path of the cache folder, or "" if the user has none."""
    try:
        return str(cache_directory())
    except OSError:
        return ""


def compile_in_background(
    executable: Executable,
    compile: Callable[[Publish[Executable], bytes], Executable],
    entry: CacheEntry | None,
    writer: Thread | None = None,
) -> None:
    """Prepare the compilation of the native code of an executable in the background, if it has functions in bytecode.

    A build with exec_mode="auto" first writes an executable with bytecode to its cache entry, and later replaces it by
    an executable with native code.  The compilation, which needs a C compiler, begins when runs of the executable have
    taken long enough, or when a caller waits for the native code (relvm/runtime/background_compile.py).  Equal
    executables of one cache entry share one compilation.

    compile: a function that takes a callback and the digest of `executable`, and returns an executable with all the
    native code, in which the digest is recorded.  Whenever some of the kernels are compiled, `compile` calls the
    callback with an executable that contains these kernels.  The function must not refer to `executable`.
    entry: the cache entry for the result, or None.
    writer: the thread that writes `executable` to `entry`.  The result is written after this thread has ended.
    """
    if not _has_bytecode(executable):
        return
    digest = executable.digest

    def build(publish: Publish[Executable]) -> Executable:
        from relvm.compiler.toolchain import in_background  # a start from the cache does not need it

        with in_background():
            compiled = compile(publish, digest)
        if compiled.unsupported_reason:
            raise RelvmUnsupportedError(compiled.unsupported_reason)
        return compiled

    def run(publish: Publisher[Executable]) -> Executable:
        if entry is None:
            return build(publish)
        if writer:
            writer.join()
        with build_cache.lock_entry(entry, publish.expect_wanted):
            cached = build_cache.cached_executable(entry)
            if cached and not _has_bytecode(cached) and cached.replaces == digest:
                return cached  # another process, started at the same time, has compiled it
            publish.expect_wanted()
            compiled = build(publish)
            compiled.record_built()
            build_cache.write_executable(entry, compiled)
        return compiled

    key = entry and (_cache_path(), entry, digest)
    shared = _upgrades.get(key) if key else None
    if shared and shared.can_succeed:
        executable.upgrade = shared
        return
    try:
        expect_installed("the compiler of native code")
        expect_compiler()
        kinds = map(executable.function_kind, range(executable.function_count))
        compiled_count = sum(kind != "packed" for kind in kinds)
        executable.upgrade = Upgrade(run, compiled_count * background_compile.BUDGET_NANOSECONDS_PER_FUNCTION)
    except (RelvmNotInstalledError, RelvmToolchainError) as error:
        executable.upgrade = Upgrade(error.with_traceback(None))  # the frames would keep the whole build in memory
        return
    if key:
        _upgrades[key] = executable.upgrade


def _has_bytecode(executable: Executable) -> bool:
    return "bytecode" in map(executable.function_kind, range(executable.function_count))
