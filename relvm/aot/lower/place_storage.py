"""Storage placement: assigns offsets in pools with the allocator of relvm/passes/memory/arena_allocator.py.

The points of a function are its statements in printed order.  A storage is alive from the first statement that uses it
to the last.  The memory of a called function is a block in the memory of its caller, alive during the call.  The pools
of the entry therefore contain all memory of a run, and their sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
from relvm.errors import RelvmMemoryError
from relvm.passes.memory.arena_allocator import Arena, Request, align, plan_arena
from relvm.quoting import terminal

# A block of memory: ("storage", number), ("scratch", point) for a kernel, or ("frame P", point) for a call in pool P.
Block = tuple[str, int]


@dataclass(frozen=True)
class BlockAddress:
    """The address of a block of memory: the index of its pool, and an offset in bytes."""

    pool: int
    offset: int


@dataclass(frozen=True)
class BlockPlacement:
    """A block of memory with its address (`slot`) and lifetime, for reports.

    first, last: the indices of the first and the last statement that uses the block.
    """

    name: str
    slot: BlockAddress
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class FunctionPlacement:
    """The addresses of the blocks of memory that a function uses.

    Attributes
    ----------
    slots
        The address of each block.  There are three kinds of blocks.  ("storage", index) is the storage with this index.
        ("scratch", point) is the scratch memory of the kernel that statement number `point` runs.  ("frame P", point)
        is the memory in pool P that is used by the function that statement number `point` calls.
    size_bytes
        For each pool, the number of bytes that the function needs.
    lower_bound_bytes
        For each pool, a lower bound of `size_bytes`: the largest total size of the blocks that are in use at one
        statement.
    placed
        All blocks, in order of first use.
    """

    slots: dict[Block, BlockAddress]
    size_bytes: tuple[int, ...]
    lower_bound_bytes: tuple[int, ...]
    placed: tuple[BlockPlacement, ...]


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
            size, bound = found.size_bytes[number], found.lower_bound_bytes[number]
            lines.append(f"  {pool.name}: {size} bytes, {bound} alive at once")
            for item in found.placed:
                if item.slot.pool == number:
                    end = item.slot.offset + item.size_bytes
                    lines.append(
                        f"    [{item.slot.offset}, {end}) at {item.first} to {item.last}: {terminal(item.name)}"
                    )
    return "\n".join(lines) + "\n"


@dataclass
class _LiveBlock:
    """The size and the lifetime of a block of memory that is to be placed.

    first, last: the indices of the first and the last statement that uses the block.
    pool: the pool in which the block must be placed, or None for any pool.
    """

    block: Block
    name: str
    size_bytes: int
    first: int
    last: int
    pool: int | None = None


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
        self.live_blocks: dict[Block, _LiveBlock] = {}
        self.overwritten: dict[int, int] = {}  # a storage written in place -> the storage that it overwrites

    def placement(self) -> FunctionPlacement:
        statements = list(self.function.statements())
        self.collect_lifetimes(statements)
        self.overwrite_inputs(statements)
        slots: dict[Block, BlockAddress] = {}
        placed: list[BlockPlacement] = []
        sizes, bounds = [], []
        waiting = list(self.live_blocks.values())
        for number, pool in enumerate(self.config.pools):
            chosen, arena, waiting = self.place_in_pool(number, pool, waiting)
            sizes.append(self.pool_size(arena))
            bounds.append(arena.lower_bound_bytes)
            for live, offset in zip(chosen, arena.offsets, strict=True):
                slot = slots[live.block] = BlockAddress(number, offset)
                placed.append(BlockPlacement(live.name, slot, live.size_bytes, live.first, live.last))
        for number in self.overwritten:
            slots["storage", number] = slots["storage", self.placed_storage(number)]
        placed.sort(key=lambda item: (item.first, item.last, item.slot.offset))
        return FunctionPlacement(slots, tuple(sizes), tuple(bounds), tuple(placed))

    # ---- lifetimes ----

    def collect_lifetimes(self, statements: list[Statement]) -> None:
        for point, statement in enumerate(statements):
            for number in _storages(statement):
                self.extend_lifetime(number, point)
            match statement:
                case RunKernel(kernel) if self.module.calls is CallKind.UNPACKED:
                    size = KernelScratch(self.module.kernels[kernel]).size_bytes
                    if size:
                        self.live_blocks["scratch", point] = _LiveBlock(
                            ("scratch", point), f"scratch of {kernel}", size, point, point
                        )
                case CallFunction(function):
                    for pool, size in enumerate(self.done[function].size_bytes):
                        if size:
                            block = (f"frame {pool}", point)
                            self.live_blocks[block] = _LiveBlock(
                                block, f"memory of {function}", size, point, point, pool
                            )
                case Continue(_, moves):
                    for move in moves:
                        if move.copy_to is not None:
                            self.extend_lifetime(move.copy_to, 0)
                            self.extend_lifetime(move.copy_to, len(statements))

    def extend_lifetime(self, number: int, point: int) -> None:
        storage = self.function.storages[number]
        if storage.kind is not MemoryKind.WORKSPACE:
            return
        live = self.live_blocks.get(("storage", number))
        if live is None:
            size = self.function.size_bytes[number]
            self.live_blocks["storage", number] = _LiveBlock(("storage", number), storage.name, size, point, point)
        else:
            live.first, live.last = min(live.first, point), max(live.last, point)

    def overwrite_inputs(self, statements: list[Statement]) -> None:
        """Let each kernel write its result in place of an input that is not used afterwards, if the kernel supports it.

        This saves the memory for the result.
        """
        for point, statement in enumerate(statements):
            if not isinstance(statement, RunKernel):
                continue
            kernel = self.module.kernels[statement.kernel]
            for position in kernel.in_place:
                source, result = statement.storages[position], statement.storages[-1]
                if self.can_overwrite(source, result, point):
                    self.overwritten[result] = self.placed_storage(source)
                    live = self.live_blocks.pop(("storage", result))
                    self.live_blocks["storage", self.placed_storage(source)].last = live.last
                    break

    def can_overwrite(self, source: int, result: int, point: int) -> bool:
        """Return whether the kernel that statement `point` runs can write storage `result` in place of `source`.

        This requires that `result` is first written and `source` last read at `point`, and that they have equal sizes.
        """
        before = self.live_blocks.get(("storage", self.placed_storage(source)))
        after = self.live_blocks.get(("storage", result))
        if before is None or after is None or before is after:
            return False
        return before.last == after.first == point and before.size_bytes == after.size_bytes

    def placed_storage(self, number: int) -> int:
        return self.overwritten.get(number, number)

    # ---- pools ----

    def request(self, live: _LiveBlock) -> Request:
        kind, number = live.block
        alignment = self.config.base_alignment
        if kind == "storage":
            alignment = max(self.config.alignment, self.function.storages[number].dtype.size_bytes)
        return Request(live.name, live.size_bytes, live.first, live.last, alignment)

    def pool_size(self, arena: Arena) -> int:
        """Return the size in bytes of the pool for `arena`: the size of the arena, rounded up to the alignment."""
        return align(arena.size_bytes, self.config.base_alignment)

    def place_in_pool(
        self, number: int, pool: Pool, waiting: list[_LiveBlock]
    ) -> tuple[list[_LiveBlock], Arena, list[_LiveBlock]]:
        """Place as many of the blocks `waiting` as possible in pool `number`.

        Return the placed blocks, their arena, and the remaining blocks.  If the blocks do not fit, the largest ones are
        left for later pools, one by one, until the others fit.
        """
        chosen = [live for live in waiting if live.pool in (None, number)]
        remaining = [live for live in waiting if live.pool not in (None, number)]
        limit = pool.limit_bytes
        last = number + 1 == len(self.config.pools)
        while True:
            arena = plan_arena([self.request(live) for live in chosen])
            if limit is None or self.pool_size(arena) <= limit:
                return chosen, arena, remaining
            movable = [live for live in chosen if live.pool is None]
            if last or not movable:
                self.fail(pool, limit, chosen, arena)
            largest = max(movable, key=lambda live: live.size_bytes)
            chosen.remove(largest)
            remaining.append(largest)

    def fail(self, pool: Pool, limit: int, chosen: list[_LiveBlock], arena: Arena) -> None:
        need, minimum = self.pool_size(arena), arena.lower_bound_bytes
        largest = max(chosen, key=lambda live: live.size_bytes)
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
