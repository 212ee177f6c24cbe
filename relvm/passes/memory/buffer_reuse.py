"""Buffer reuse: decides which tensors of a block share memory.

Sharing must never increase the peak memory of any execution, compared with a separate storage for each tensor.  The
planner does not know the memory that a call, an `if` or the host needs, nor the size of a symbolic tensor.  Therefore:

- Tensors share an arena only inside a run.  A run is a sequence of bindings without calls, during which the set of live
  tensors of unknown size does not change.  An arena is used only if it does not increase the peak memory of the run.
  Otherwise the tensors are divided into groups, and an arena is tried for each group.
- Any other tensor can reuse the storage of a dead tensor of equal size, if nothing was allocated or called since that
  tensor died.
- A tensor that escapes from the block, in its result or through a call, has its own storage.

Sizes include the overhead of a storage.  A tensor that a kernel writes over its argument (in place) needs no memory.

A kernel that updates an argument (Kernel.updated) can also update a tensor that does not belong to this block, such as
a value that a loop carries, if nothing else refers to its memory.  This is known only at run time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from itertools import accumulate
from math import prod

from relvm.data_classes import dataclass
from relvm.ir.expr import Binding, Block, BuiltinCall, Call, If, KernelCall, MatchCast, PackedCall, Var
from relvm.ir.symbolic import AnyDim, DimVar, known_size, product
from relvm.ir.types import VOID, PrimType, ShapeType, TensorType, TupleType
from relvm.ir.value_ranges import Range, range_of
from relvm.kernels.kernel import Kernel
from relvm.passes.memory.arena_allocator import Request, align, lower_bound, plan_arena
from relvm.passes.memory.liveness import CALLS_OUT, Escape, Liveness, Scope, Value, lifetimes
from relvm.tables import BUILTINS

_VIEWS = frozenset(row.name for row in BUILTINS if row.signature == "tensor shape -> tensor")
_HEAD_BYTES = 96  # overhead of a storage: its header, padding, and the overhead of malloc; see rvm_storage_new
_MOST_RESERVED_BYTES = 1 << 26  # largest storage whose size is that of the largest possible shape
_DIVISIONS = 24  # maximum number of times that the tensors of a run are divided into groups


@dataclass(eq=False)
class BufferSlot:
    """The memory of one tensor, or of several tensors each of which overwrites the previous one in place.

    values: the tensors, in order.
    size_bytes: the size, an int if it is known or bounded, otherwise symbolic.
    first, last: the first and the last point at which the memory is in use.
    escape: how the last tensor escapes.
    """

    values: list[Value]
    size_bytes: AnyDim
    first: int
    last: int
    escape: Escape

    @property
    def is_fixed(self) -> bool:
        return isinstance(self.size_bytes, int)


@dataclass(eq=False)
class ArenaStorage:
    """An allocation for one slot, or for several slots that share it.  A slot is the memory of one tensor, or of
    several tensors each of which overwrites the previous one.

    slots: the slots, in order of first use.
    offsets: their offsets in bytes.
    size_bytes: the size of the allocation.
    lower_bound: the largest number of bytes in use at one point.  In an arena, sizes of slots are rounded up to the
    alignment.
    """

    slots: list[BufferSlot]
    offsets: list[int]
    size_bytes: AnyDim
    lower_bound: AnyDim

    @property
    def is_arena(self) -> bool:
        """Whether the storage is an arena: whether several slots share it, and at least one of them has another size
        than the storage."""
        return len(self.slots) > 1 and any(s.size_bytes != self.size_bytes for s in self.slots)


@dataclass
class BlockPlan:
    """The memory plan of a block: where in memory to store each tensor that the block's kernels compute.

    Attributes
    ----------
    storages
        The storages (memory areas that several tensors can share), in the order in which they are allocated.
    placement
        A mapping from each tensor to a pair: the storage that contains the tensor, and the offset in bytes of the
        tensor in this storage.
    overwritten
        A mapping whose keys are the tensors that are computed in place.  The value for a tensor is the variable of the
        argument that the tensor overwrites.
    unshared
        A mapping whose keys are the tensors that a kernel computes by updating an argument.  The value for a tensor is
        the variable of the argument.  At run time, the kernel updates the argument itself if nothing else refers to its
        memory, otherwise a copy.
    """

    storages: list[ArenaStorage] = field(default_factory=list)
    placement: dict[Value, tuple[ArenaStorage, int]] = field(default_factory=dict)
    overwritten: dict[Value, Var] = field(default_factory=dict)
    unshared: dict[Value, Var] = field(default_factory=dict)


def plan_block(block: Block, scope: Scope, kernels: Mapping[str, object], ranges: Mapping[DimVar, Range]) -> BlockPlan:
    """Return the memory plan of one block, without its inner blocks.

    Parameters
    ----------
    block
        A block of a module at stage LOWERED.
    scope
        The scope of the block.
    kernels
        The module's kernels by name, which state the arguments that they may overwrite.
    ranges
        The known bounds of dimension variables.
    """
    found = lifetimes(block, scope.fields)
    plan = BlockPlan()
    slots, before = _make_slots(block, found, kernels, ranges, scope, plan)
    timeline = _Timeline(block, found, slots, before, plan.unshared.keys())
    arenas, rest = timeline.plan_arenas(slots)
    plan.storages = sorted(
        arenas + _reuse_dead_storages(rest, arenas, timeline), key=lambda storage: storage.slots[0].first
    )
    for storage in plan.storages:
        for slot, offset in zip(storage.slots, storage.offsets, strict=True):
            plan.placement |= dict.fromkeys(slot.values, (storage, offset))
    return plan


def name_of(value: Value) -> str:
    """Return the name of the tensor `value`: the name of its variable, followed by its index if the variable is a
    tuple."""
    return value.name if isinstance(value, Var) else f"{value[0].name}_{value[1]}"


def result_tensors(var: Var, call: KernelCall) -> list[tuple[Value, TensorType]]:
    """Return the tensors that a kernel call computes, with their types.

    var: the variable to which the call is bound.  If the call returns a tuple, the tensors are the fields of `var`.
    Otherwise the only tensor is `var` itself.
    """
    match call.type:
        case TensorType() as type_:
            return [(var, type_)]
        case TupleType(fields):
            return [((var, i), type_) for i, type_ in enumerate(fields) if isinstance(type_, TensorType)]
    return []


def size_of(type_: TensorType, ranges: Mapping[DimVar, Range]) -> AnyDim:
    """Return the size of a tensor in bytes, as an int if all its dimensions are bounded, otherwise as a symbolic size.

    For bounded dimensions, this is the largest possible size.  If that is more than 64 MiB, the size is symbolic too,
    because an actual tensor can be much smaller.

    ranges: the known bounds of dimension variables.
    """
    item_bytes = type_.known_dtype.size_bytes
    highest = [range_of(dim, ranges).high for dim in type_.known_shape]
    bounded = tuple(max(0, high) for high in highest if isinstance(high, int))
    if len(bounded) == len(highest):
        most = prod((*bounded, item_bytes))
        if most <= _MOST_RESERVED_BYTES or bounded == type_.known_shape:
            return most
    return product((*type_.known_shape, item_bytes))


def _make_slots(
    block: Block,
    liveness: Liveness,
    kernels: Mapping[str, object],
    ranges: Mapping[DimVar, Range],
    scope: Scope,
    plan: BlockPlan,
) -> tuple[list[BufferSlot], list[BufferSlot]]:
    """Return the slots of a block, and the slots that the block would have without in-place computation.

    A slot is the memory of one tensor, or of several tensors each of which overwrites the previous one in place.  Both
    lists are in order of first use.  The second list has one slot for each tensor, and serves only for comparison.
    Tensors that are computed in place are recorded in `plan.overwritten` or `plan.unshared`.  Those in `plan.unshared`
    have no slot.

    liveness: the lifetimes of the values.
    kernels: the module's kernels by name, which state the arguments that they may overwrite.
    ranges: the known bounds of dimension variables.
    scope: the scope of the block.
    """
    own = {binding.var for binding in block.bindings}
    slots: list[BufferSlot] = []
    single: list[BufferSlot] = []
    slot_of: dict[Var, BufferSlot] = {}  # a variable that is a tensor in a slot of this block -> the slot
    for point, binding in enumerate(block.bindings):
        match binding.value:
            case Var() as same if same in slot_of:
                slot_of[binding.var] = slot_of[same]
            case BuiltinCall(name=name, args=(Var() as viewed, *_)) if name in _VIEWS and viewed in slot_of:
                slot_of[binding.var] = slot_of[viewed]
            case KernelCall() as call:
                kernel = kernels.get(call.kernel)
                for value, type_ in result_tensors(binding.var, call):
                    last, escape = liveness.last_use(value, point)
                    over = _find_overwritten_argument(call, kernel, slot_of, own, point)
                    given = None if over else _find_updated_argument(call, kernel, liveness, scope, point)
                    if given is not None:
                        plan.unshared[value] = given
                        continue
                    slot = BufferSlot([value], size_of(type_, ranges), point, last, escape)
                    if over is None:
                        slots.append(slot)
                    else:
                        plan.overwritten[value] = over
                        slot = slot_of[over]
                        slot.values.append(value)
                        slot.last, slot.escape = last, escape
                    # A tensor that overwrites another one has its size, even if that is symbolic here and known there.
                    single.append(BufferSlot([value], slot.size_bytes, point, last, escape))
                    if value is binding.var:
                        slot_of[binding.var] = slot
    return slots, single


def _find_overwritten_argument(
    call: KernelCall, kernel: object, slot_of: Mapping[Var, BufferSlot], own: Collection[Var], point: int
) -> Var | None:
    """Return the argument that a kernel call overwrites with its result, or None if there is no such argument.

    The kernel must allow this for the argument (Kernel.in_place, Kernel.updated).  The memory of the argument must
    belong to this block, must not escape, and must not be used after this call.

    slot_of: a tensor -> the slot that describes its memory.
    own: the variables that the block binds.
    point: the point of the call.
    """
    if not isinstance(kernel, Kernel):
        return None
    slots = [slot_of.get(arg) if isinstance(arg, Var) else None for arg in call.args]
    for position in kernel.overwritable:
        arg, slot = call.args[position], slots[position]
        if not isinstance(arg, Var) or slot is None or slot.last != point or slot.escape is not Escape.NONE:
            continue
        if position in kernel.in_place:
            return arg
        # Another argument that the block computes without a slot, such as an item of a list, can be the same tensor.
        others = [(other, slots[i]) for i, other in enumerate(call.args) if i != position]
        if all(other not in own if of is None else of is not slot for other, of in others):
            return arg
    return None


def _find_updated_argument(
    call: KernelCall, kernel: object, liveness: Liveness, scope: Scope, point: int
) -> Var | None:
    """Return the argument that a kernel call updates, if it is a variable whose value is not used afterwards, under any
    name.

    scope: the scope of the block.
    point: the point of the call.
    """
    if not isinstance(kernel, Kernel) or kernel.updated is None:
        return None
    arg = call.args[kernel.updated]
    if not isinstance(arg, Var) or arg.type != call.type:
        return None
    root = scope.root(arg)
    is_passed_twice = sum(isinstance(other, Var) and scope.root(other) is root for other in call.args) > 1
    if is_passed_twice or root in scope.needed:
        return None
    last, escape = liveness.last_use(root, point)
    return arg if last == point and escape is not Escape.RESULT else None


class _Timeline:
    """The points of a block, divided into runs, and the allocated bytes at each point.

    A run is a sequence of bindings without calls, during which the set of live tensors of unknown size does not change.

    slots: the slots of the block.  A slot is the memory of one or more tensors (see BufferSlot).
    separate_slots: the slots that the block would have without in-place computation.  They determine the peak memory
    without sharing.
    unshared: the tensors of BlockPlan.unshared, whose computation can allocate memory outside of the plan.
    """

    def __init__(
        self,
        block: Block,
        liveness: Liveness,
        slots: list[BufferSlot],
        separate_slots: list[BufferSlot],
        unshared: Collection[Value],
    ) -> None:
        self.end = len(block.bindings)
        self.calls = [
            point
            for point, binding in enumerate(block.bindings)
            if _may_allocate(binding.value) or binding.var in unshared
        ]
        unknown = [(s.first, s.last) for s in slots if not s.is_fixed or s.escape is Escape.KEPT]
        for point, binding in enumerate(block.bindings):
            if _has_unknown_size(binding) or binding.var in unshared:
                unknown.append((point, liveness.last_use(binding.var, point)[0]))
        self.unknown_made = {first for first, _ in unknown}
        starts = {p for first, last in unknown for p in (first, last + 1)}
        starts |= {p for call in self.calls for p in (call, call + 1)}
        self.run_starts = sorted(starts)
        counted = [slot for slot in slots if slot.is_fixed and slot.escape is not Escape.KEPT]
        values = {value for slot in counted for value in slot.values}
        self.allocated_bytes = _sum_separate_storages(counted, 0, self.end + 1)
        self.worst: dict[int, int] = {}  # a run -> its peak memory without sharing
        separate_slots = [slot for slot in separate_slots if slot.values[0] in values]
        for point, size in enumerate(_sum_separate_storages(separate_slots, 0, self.end + 1)):
            run = self.run_at(point)
            self.worst[run] = max(self.worst.get(run, 0), size)

    def run_at(self, point: int) -> int:
        """Return the index of the run that contains `point`.  A run is a sequence of bindings without calls."""
        return bisect_right(self.run_starts, point)

    def plan_arenas(self, slots: list[BufferSlot]) -> tuple[list[ArenaStorage], list[BufferSlot]]:
        """Plan the arenas of the block.  Return the arenas, and the slots that are not in an arena.

        An arena is a memory area that several slots share.  A slot is the memory of one or more tensors.
        """
        by_run: dict[int, list[BufferSlot]] = {}
        for slot in slots:
            if slot.is_fixed and slot.escape is Escape.NONE and self.run_at(slot.first) == self.run_at(slot.last):
                by_run.setdefault(self.run_at(slot.first), []).append(slot)
        arenas: list[ArenaStorage] = []
        for run, group in by_run.items():
            self.add_arenas(group, self.worst[run], _DIVISIONS, arenas)
        placed = {slot for storage in arenas for slot in storage.slots}
        return arenas, [slot for slot in slots if slot not in placed]

    def add_arenas(self, group: list[BufferSlot], limit: int, divisions: int, arenas: list[ArenaStorage]) -> None:
        """Append to `arenas` an arena for the slots in `group`, if there are several.

        If more than `limit` bytes would then be allocated at some point, divide the group, and retry with each part.

        divisions: how many more times the group can be divided.
        """
        if len(group) < 2 or divisions == 0:
            return
        start, stop = group[0].first, max(slot.last for slot in group) + 1
        others = [
            held - own
            for held, own in zip(
                self.allocated_bytes[start:stop], _sum_separate_storages(group, start, stop), strict=True
            )
        ]
        requests = [Request("", align(known_size(slot.size_bytes)), slot.first, slot.last) for slot in group]
        over = _points_over_limit(others, lower_bound(requests), limit)  # a quick check before the arena is planned
        if not over:
            arena = plan_arena(requests)
            over = _points_over_limit(others, arena.size_bytes, limit)
            if not over:
                self.allocated_bytes[start:stop] = [size + _with_header(arena.size_bytes) for size in others]
                arenas.append(ArenaStorage(group, list(arena.offsets), arena.size_bytes, arena.lower_bound_bytes))
                return
        low, high = start + over[0], start + over[-1]
        parts = [
            [slot for slot in group if slot.last < low],
            [slot for slot in group if slot.last >= low and slot.first <= high],
            [slot for slot in group if slot.first > high],
        ]
        if len(parts[1]) == len(group):
            middle = len(group) // 2
            parts = [group[:middle], group[middle:]]
        for part in parts:
            self.add_arenas(part, limit, divisions - 1, arenas)


def _sum_separate_storages(slots: Iterable[BufferSlot], start: int, stop: int) -> list[int]:
    """Return the allocated bytes at each of the points start..stop-1, if each slot (the memory of a tensor) has its own
    storage."""
    changes = [0] * (stop - start + 1)
    for slot in slots:
        cost = _with_header(known_size(slot.size_bytes))
        changes[slot.first - start] += cost
        changes[slot.last + 1 - start] -= cost
    return list(accumulate(changes[:-1]))


def _points_over_limit(other_bytes: list[int], arena_bytes: int, limit: int) -> list[int]:
    """Return the indices of the points at which more than `limit` bytes would be allocated.

    other_bytes: the bytes that are allocated at each point, without the arena.
    arena_bytes: the size of the arena.
    """
    return [i for i, size in enumerate(other_bytes) if size + _with_header(arena_bytes) > limit]


def _reuse_dead_storages(
    slots: list[BufferSlot], arenas: list[ArenaStorage], timeline: _Timeline
) -> list[ArenaStorage]:
    """Return storages for `slots`, which are the slots that are not in an arena.

    A slot, which is the memory of one or more tensors, reuses the storage of a dead slot of equal size.  This requires
    that nothing was allocated or called since that slot died.
    """
    allocated = {storage.slots[0].first for storage in arenas} | timeline.unknown_made | set(timeline.calls)
    starting: dict[int, list[BufferSlot]] = {}
    for slot in slots:
        starting.setdefault(slot.first, []).append(slot)
    ending: dict[int, list[ArenaStorage]] = {}
    idle: dict[AnyDim, list[ArenaStorage]] = {}
    storages: list[ArenaStorage] = []
    for point in range(timeline.end + 1):
        fresh = point in allocated
        for slot in starting.get(point, ()):
            same_size = idle.get(slot.size_bytes) if slot.escape is Escape.NONE else None
            if same_size:
                storage = same_size.pop()
                storage.slots.append(slot)
                storage.offsets.append(0)
            else:
                storage = ArenaStorage([slot], [0], slot.size_bytes, slot.size_bytes)
                storages.append(storage)
                fresh = True
            if slot.escape is Escape.NONE:
                ending.setdefault(slot.last, []).append(storage)
        if fresh:
            idle.clear()
        for storage in ending.get(point, ()):
            idle.setdefault(storage.size_bytes, []).append(storage)
    return storages


def _with_header(size_bytes: int) -> int:
    """Return the number of bytes that the machine allocates for a storage of `size_bytes`, including its header."""
    return size_bytes + _HEAD_BYTES


def _may_allocate(value: object) -> bool:
    """Return whether `value` is a call or an `if`, which can allocate memory outside the plan of this block."""
    match value:
        case Call() | PackedCall() | If():
            return True
        case BuiltinCall(name=name):
            return name in CALLS_OUT
    return False


def _has_unknown_size(binding: Binding | MatchCast) -> bool:
    """Return whether the value of a binding is an object of unknown size: the result of a call, an `if` or a
    builtin."""
    if isinstance(binding, MatchCast) or binding.var.type == VOID or isinstance(binding.var.type, PrimType | ShapeType):
        return False
    match binding.value:
        case BuiltinCall(name=name):
            return name not in _VIEWS
        case Call() | PackedCall() | If():
            return True
    return False
