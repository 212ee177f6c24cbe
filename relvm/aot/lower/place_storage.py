"""Storage placement: assigns offsets in pools with the allocator of relvm/passes/memory/arena_allocator.py.

The points of a function are its statements in printed order.  A storage is alive from the first statement that uses it
to the last.  The memory of a called function is a block in the memory of its caller, alive during the call.  The pools
of the entry therefore contain all memory of a run, and their sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from relvm.aot.config import AotConfig, CallKind, Pool
from relvm.aot.lower.ir import (
    Branch,
    CallExtern,
    CallFunction,
    Continue,
    Copy,
    LoweredFunction,
    LoweredModule,
    MemoryKind,
    ReadItem,
    RunKernel,
    Statement,
    TensorArgument,
    WriteItem,
)
from relvm.aot.lower.kernel_scratch import KernelScratch
from relvm.data_classes import dataclass
from relvm.errors import RelvmMemoryError
from relvm.passes.memory.arena_allocator import Arena, Request, align, plan_arena
from relvm.quoting import terminal

# A block of memory: ("storage", number), ("scratch", point) for a kernel, or ("frame", point, pool) for a call.
Block = tuple[str, int] | tuple[str, int, int]


@dataclass(frozen=True)
class BlockAddress:
    """The address of a block of memory: the index of its pool, and an offset in bytes."""

    pool: int
    offset: int


@dataclass(frozen=True)
class FunctionPlacement:
    """The addresses of the blocks of memory that a function uses.

    Attributes
    ----------
    slots
        The address of each block.  There are three kinds of blocks.  ("storage", index) is the storage with this index.
        ("scratch", point) is the scratch memory of the kernel that statement number `point` runs.  ("frame", point,
        pool) is the memory in a pool that is used by the function that statement number `point` calls.
    size_bytes
        For each pool, the number of bytes that the function needs.
    arenas
        For each pool, the blocks in it with their lifetimes and offsets.
    """

    slots: dict[Block, BlockAddress]
    size_bytes: tuple[int, ...]
    arenas: tuple[Arena, ...]


def place_storages(module: LoweredModule, config: AotConfig) -> dict[str, FunctionPlacement]:
    """Assign an address in a memory pool to each storage of every function.  Return the placements by function name.

    If a function calls other functions, its placement includes memory for the called functions.

    Raises
    ------
    RelvmMemoryError
        A block of memory does not fit into any pool.  The message contains the name of the block and the number of
        missing bytes.
    """
    done: dict[str, FunctionPlacement] = {}
    for function in module.functions:
        done[function.name] = _Planner(function, module, config, done).placement()
    return done


def format_placement(placements: Mapping[str, FunctionPlacement], pools: tuple[Pool, ...]) -> str:
    """Return a text that lists, for each function, its pools and the blocks in each pool."""
    lines = []
    for name, found in placements.items():
        lines.append(f"{terminal(name)}:")
        for number, pool in enumerate(pools):
            arena = found.arenas[number]
            lines.append(f"  {pool.name}: {found.size_bytes[number]} bytes, {arena.lower_bound_bytes} alive at once")
            for offset, item in arena.blocks():
                end = offset + item.size_bytes
                lines.append(f"    [{offset}, {end}) at {item.first} to {item.last}: {terminal(item.name)}")
    return "\n".join(lines) + "\n"


class _Planner:
    def __init__(
        self,
        function: LoweredFunction,
        module: LoweredModule,
        config: AotConfig,
        done: Mapping[str, FunctionPlacement],
    ) -> None:
        self.function = function
        self.module = module
        self.config = config
        self.done = done
        self.requests: dict[Block, Request] = {}
        self.overwritten: dict[int, int] = {}  # a storage written in place -> the storage that it overwrites

    def placement(self) -> FunctionPlacement:
        statements = list(self.function.statements())
        self.collect_requests(statements)
        self.overwrite_inputs(statements)
        slots: dict[Block, BlockAddress] = {}
        arenas: list[Arena] = []
        waiting = list(self.requests)
        for number, pool in enumerate(self.config.pools):
            chosen, arena, waiting = self.place_in_pool(number, pool, waiting)
            arenas.append(arena)
            slots |= {block: BlockAddress(number, offset) for block, offset in zip(chosen, arena.offsets, strict=True)}
        for number in self.overwritten:
            slots["storage", number] = slots["storage", self.placed_storage(number)]
        return FunctionPlacement(slots, tuple(map(self.pool_size, arenas)), tuple(arenas))

    # ---- lifetimes ----

    def collect_requests(self, statements: list[Statement]) -> None:
        for point, statement in enumerate(statements):
            for number in _storages(statement):
                self.use_storage(number, point)
            match statement:
                case RunKernel(kernel) if self.module.calls is CallKind.UNPACKED:
                    if size := KernelScratch(self.module.kernels[kernel]).size_bytes:
                        self.use(("scratch", point), f"scratch of {kernel}", size, point)
                case CallFunction(function):
                    for pool, size in enumerate(self.done[function].size_bytes):
                        if size:
                            self.use(("frame", point, pool), f"memory of {function}", size, point)
                case Continue(_, moves):
                    for move in moves:
                        if move.copy_to is not None:
                            self.use_storage(move.copy_to, 0)
                            self.use_storage(move.copy_to, len(statements))

    def use(self, block: Block, name: str, size_bytes: int, point: int, alignment: int = 0) -> None:
        """Extend the lifetime of a block to statement `point`.   alignment: in bytes, or 0 for that of the pool."""
        known = self.requests.get(block)
        first, last = (min(known.first, point), max(known.last, point)) if known else (point, point)
        self.requests[block] = Request(name, size_bytes, first, last, alignment or self.config.base_alignment)

    def use_storage(self, number: int, point: int) -> None:
        storage = self.function.storages[number]
        if storage.kind is MemoryKind.WORKSPACE:
            alignment = max(self.config.alignment, storage.dtype.size_bytes)
            self.use(("storage", number), storage.name, self.function.size_bytes[number], point, alignment)

    def overwrite_inputs(self, statements: list[Statement]) -> None:
        """Let each kernel write its result in place of an input that is not used afterwards, if the kernel supports it.

        This saves the memory for the result.
        """
        for point, statement in enumerate(statements):
            if not isinstance(statement, RunKernel):
                continue
            kernel = self.module.kernels[statement.kernel]
            for position in kernel.overwritable:
                source, result = statement.storages[position], statement.storages[-1]
                if position == kernel.updated and self.is_elsewhere(source, statement.storages, position):
                    continue
                if self.can_overwrite(source, result, point):
                    self.overwritten[result] = self.placed_storage(source)
                    block = "storage", self.placed_storage(source)
                    last = self.requests.pop(("storage", result)).last
                    self.requests[block] = replace(self.requests[block], last=last)
                    break

    def is_elsewhere(self, source: int, storages: Sequence[int], position: int) -> bool:
        """Return whether another argument than the one at `position` is in the memory of storage `source`."""
        others = (storage for i, storage in enumerate(storages[:-1]) if i != position)
        return any(self.placed_storage(storage) == self.placed_storage(source) for storage in others)

    def can_overwrite(self, source: int, result: int, point: int) -> bool:
        """Return whether the kernel that statement `point` runs can write storage `result` in place of `source`.

        This requires that `result` is first written and `source` last read at `point`, and that they have equal sizes.
        """
        before = self.requests.get(("storage", self.placed_storage(source)))
        after = self.requests.get(("storage", result))
        if before is None or after is None or before is after:
            return False
        return before.last == after.first == point and before.size_bytes == after.size_bytes

    def placed_storage(self, number: int) -> int:
        return self.overwritten.get(number, number)

    # ---- pools ----

    def pool_size(self, arena: Arena) -> int:
        """Return the size in bytes of the pool for `arena`: the size of the arena, rounded up to the alignment.

        A pool that contains only empty tensors has bytes, too, because tensors need an address.
        """
        return align(max(arena.size_bytes, 1) if arena.requests else 0, self.config.base_alignment)

    def place_in_pool(self, number: int, pool: Pool, waiting: list[Block]) -> tuple[list[Block], Arena, list[Block]]:
        """Place as many of the blocks `waiting` as possible in pool `number`.

        Return the placed blocks, their arena, and the remaining blocks.  If the blocks do not fit, the largest ones are
        left for later pools, one by one, until the others fit.
        """
        remaining = [block for block in waiting if block[0] == "frame" and block[-1] != number]
        chosen = [block for block in waiting if block[0] != "frame" or block[-1] == number]
        limit = pool.limit_bytes
        last = number + 1 == len(self.config.pools)
        while True:
            arena = plan_arena([self.requests[block] for block in chosen])
            if limit is None or self.pool_size(arena) <= limit:
                return chosen, arena, remaining
            movable = [block for block in chosen if block[0] != "frame"]
            if last or not movable:
                self.fail(pool, limit, arena)
            largest = max(movable, key=lambda block: self.requests[block].size_bytes)
            chosen.remove(largest)
            remaining.append(largest)

    def fail(self, pool: Pool, limit: int, arena: Arena) -> NoReturn:
        need, minimum = self.pool_size(arena), arena.lower_bound_bytes
        largest = max(arena.requests, key=lambda request: request.size_bytes)
        raise RelvmMemoryError(
            f"{self.function.name}: pool {pool.name} is too small for {largest.name} ({largest.size_bytes} bytes): "
            f"{need} bytes are needed, {need - limit} more than the limit of {limit}; "
            f"{minimum} bytes are alive at the same time"
        )


def _storages(statement: Statement) -> Iterator[int]:
    match statement:
        case RunKernel(_, storages) | CallFunction(_, storages):
            yield from storages
        case Copy(source, target):
            yield from (source, target)
        case CallExtern(_, args, result):
            yield from (each.storage for each in (*args, result) if isinstance(each, TensorArgument))
        case ReadItem(_, storage) | WriteItem(storage):
            yield storage
        case Continue(_, moves):
            yield from (move.source for move in moves)
        case Branch():
            pass
