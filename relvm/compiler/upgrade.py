"""Background compilation for exec_mode="auto".  The native code is also stored in the build cache."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from relvm.compiler import build_cache
from relvm.compiler.build_cache import CacheEntry
from relvm.compiler.find_compiler import expect_compiler
from relvm.errors import RelvmToolchainError, RelvmUnsupportedError
from relvm.runtime.background_compile import Publish, Upgrade
from relvm.runtime.executable import Executable


def compile_in_background(
    executable: Executable,
    compile: Callable[[Publish[Executable], bytes], Executable],
    entry: CacheEntry | None,
    writer: Thread | None = None,
) -> None:
    """Start the compilation of the native code of an executable in the background, if there is a C compiler.

    compile: a function that takes a callback and the digest of `executable`, and returns the executable with all its
    native code, which states the digest.  Whenever some of the kernels are compiled, `compile` calls the callback with
    an executable that contains these kernels.
    entry: the cache entry for the result, or None.
    writer: the thread that writes `executable` to `entry`.  The result is written after this thread has ended.
    """

    def build(publish: Publish[Executable]) -> Executable:
        from relvm.compiler.toolchain import in_background  # a start from the cache does not need it

        with in_background():
            compiled = compile(publish, executable.digest)
        if compiled.unsupported_reason:
            raise RelvmUnsupportedError(compiled.unsupported_reason)
        return compiled

    def run(publish: Publish[Executable]) -> Executable:
        if entry is None:
            return build(publish)
        if writer:
            writer.join()
        with build_cache.lock_entry(entry):
            cached = build_cache.cached_executable(entry)
            if cached and not build_cache.has_bytecode(cached) and cached.replaces == executable.digest:
                return cached  # another process, started at the same time, has compiled it
            compiled = build(publish)
            compiled.record_built()
            build_cache.write_executable(entry, compiled)
        return compiled

    try:
        expect_compiler()
        executable.upgrade = Upgrade(run)
    except RelvmToolchainError as error:
        executable.upgrade = Upgrade(error.with_traceback(None))  # the frames would keep the whole build in memory
