"""Storage placement: assigns offsets in pools with the allocator of relvm/passes/memory/arena_allocator.py.

The points of a function are its statements in printed order.  A storage is alive from the first statement that uses it
to the last.  The memory of a called function is a block in the memory of its caller, alive during the call.  The pools
of the entry therefore contain all memory of a run, and their sizes are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relvm.aot.c.kernels import scratch_bytes
from relvm.aot.config import AotConfig, CallKind, Pool
from relvm.aot.lower.assign_storage import MemoryKind
from relvm.aot.lower.ir import (
    Branch,
    CallFunction,
    Continue,
    Copy,
    LoweredFunction,
    LoweredModule,
    ReadItem,
    RunKernel,
    Statement,
    WriteItem,
)
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

    first, last: the indices of the first and the last statement at which the block is alive.
    """

    name: str
    slot: BlockAddress
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class FunctionPlacement:
    """The addresses of the blocks of a function.

    Attributes
    ----------
    slots
        The address of each block.  ("storage", index) is a storage.  ("scratch", point) is the scratch memory of the
        kernel that statement `point` runs.  ("frame P", point) is the memory, in pool P, of the function that statement
        `point` calls.
    size_bytes, lower_bound_bytes
        For each pool, the size that the function needs, and the maximum number of bytes that are alive at once.
    placed
        All blocks, in order of first use.
    """

    slots: dict[Block, BlockAddress]
    size_bytes: tuple[int, ...]
    lower_bound_bytes: tuple[int, ...]
    placed: tuple[BlockPlacement, ...]


def place_storages(module: LoweredModule, config: AotConfig) -> dict[str, FunctionPlacement]:
    """Place the storages of every function, and return the placements by function name.  The placement of the entry
    includes the memory of all functions.

    Raises
    ------
    RelvmMemoryError
        A block does not fit into any pool.  The message contains the name of the block and the missing bytes.
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
class _Life:
    """The size and the lifetime of a block of memory.

    first, last: the indices of the first and the last statement at which the block is alive.   pool: the pool in which
    the block must be placed, or None for any pool.
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
        self.lives: dict[Block, _Life] = {}
        self.same: dict[int, int] = {}  # a storage written in place -> the storage that it overwrites

    def placement(self) -> FunctionPlacement:
        statements = list(self.function.statements())
        self.lifetimes(statements)
        self.overwrite(statements)
        slots: dict[Block, BlockAddress] = {}
        placed: list[BlockPlacement] = []
        sizes, bounds = [], []
        waiting = list(self.lives.values())
        for number, pool in enumerate(self.config.pools):
            taken, arena, waiting = self.fill(number, pool, waiting)
            sizes.append(self.whole(arena))
            bounds.append(arena.lower_bound_bytes)
            for life, offset in zip(taken, arena.offsets, strict=True):
                slot = slots[life.block] = BlockAddress(number, offset)
                placed.append(BlockPlacement(life.name, slot, life.size_bytes, life.first, life.last))
        for number in self.same:
            slots["storage", number] = slots["storage", self.root(number)]
        placed.sort(key=lambda item: (item.first, item.last, item.slot.offset))
        return FunctionPlacement(slots, tuple(sizes), tuple(bounds), tuple(placed))

    # ---- lifetimes ----

    def lifetimes(self, statements: list[Statement]) -> None:
        for point, statement in enumerate(statements):
            for number in _storages(statement):
                self.use(number, point)
            match statement:
                case RunKernel(kernel) if self.module.calls is CallKind.UNPACKED:
                    size = scratch_bytes(self.module.kernels[kernel])
                    if size:
                        self.lives["scratch", point] = _Life(
                            ("scratch", point), f"scratch of {kernel}", size, point, point
                        )
                case CallFunction(function):
                    for pool, size in enumerate(self.done[function].size_bytes):
                        if size:
                            block = (f"frame {pool}", point)
                            self.lives[block] = _Life(block, f"memory of {function}", size, point, point, pool)
                case Continue(_, moves):
                    for move in moves:
                        if move.home is not None:
                            self.use(move.home, 0)
                            self.use(move.home, len(statements))

    def use(self, number: int, point: int) -> None:
        storage = self.function.storages[number]
        if storage.place is not MemoryKind.WORKSPACE:
            return
        life = self.lives.get(("storage", number))
        if life is None:
            size = self.function.size_bytes[number]
            self.lives["storage", number] = _Life(("storage", number), storage.name, size, point, point)
        else:
            life.first, life.last = min(life.first, point), max(life.last, point)

    def overwrite(self, statements: list[Statement]) -> None:
        """Let kernels overwrite an input with their result, if the kernel supports this and the input is not used
        afterwards."""
        for point, statement in enumerate(statements):
            if not isinstance(statement, RunKernel):
                continue
            kernel = self.module.kernels[statement.kernel]
            for position in kernel.in_place:
                source, result = statement.storages[position], statement.storages[-1]
                if self.may_follow(source, result, point):
                    self.same[result] = self.root(source)
                    life = self.lives.pop(("storage", result))
                    self.lives["storage", self.root(source)].last = life.last
                    break

    def may_follow(self, source: int, result: int, point: int) -> bool:
        """Return whether the kernel at `point` can write storage `result` in place of storage `source`.

        This requires that `result` is first written and `source` last read at `point`, and that they have equal sizes.
        """
        before = self.lives.get(("storage", self.root(source)))
        after = self.lives.get(("storage", result))
        if before is None or after is None or before is after:
            return False
        return before.last == after.first == point and before.size_bytes == after.size_bytes

    def root(self, number: int) -> int:
        return self.same.get(number, number)

    # ---- pools ----

    def request(self, life: _Life) -> Request:
        kind, number = life.block
        alignment = self.config.base_alignment
        if kind == "storage":
            alignment = max(self.config.alignment, self.function.storages[number].dtype.size_bytes)
        return Request(life.name, life.size_bytes, life.first, life.last, alignment)

    def whole(self, arena: Arena) -> int:
        """Return the size in bytes of the pool for `arena`: the size of the arena, rounded up to the alignment."""
        return align(arena.size_bytes, self.config.base_alignment)

    def fill(self, number: int, pool: Pool, waiting: list[_Life]) -> tuple[list[_Life], Arena, list[_Life]]:
        """Place the blocks `waiting` in pool `number`.  Return the placed blocks, their arena, and the blocks that are
        left.

        If the blocks do not fit, the largest ones are left for later pools, one by one, until the rest fits.
        """
        taken = [life for life in waiting if life.pool in (None, number)]
        left = [life for life in waiting if life.pool not in (None, number)]
        limit = pool.limit_bytes
        last = number + 1 == len(self.config.pools)
        while True:
            arena = plan_arena([self.request(life) for life in taken])
            if limit is None or self.whole(arena) <= limit:
                return taken, arena, left
            movable = [life for life in taken if life.pool is None]
            if last or not movable:
                self.fail(pool, limit, taken, arena)
            largest = max(movable, key=lambda life: life.size_bytes)
            taken.remove(largest)
            left.append(largest)

    def fail(self, pool: Pool, limit: int, taken: list[_Life], arena: Arena) -> None:
        need, least = self.whole(arena), arena.lower_bound_bytes
        largest = max(taken, key=lambda life: life.size_bytes)
        raise RelvmMemoryError(
            f"{self.function.name}: pool {pool.name} is too small for {largest.name} ({largest.size_bytes} bytes): "
            f"{need} bytes are needed, {need - limit} more than the limit of {limit}; "
            f"{least} are alive at once"
        )


def _storages(statement: Statement) -> Iterator[int]:
    match statement:
        case RunKernel(_, storages) | CallFunction(_, storages):
            yield from storages
        case Copy(source, target):
            yield from (source, target)
        case ReadItem(_, storage) | WriteItem(storage):
            yield storage
        case Continue(_, moves):
            yield from (move.source for move in moves)
        case Branch():
            pass
