"""Which tensors of a block share memory.

The rule: never more memory at once than with a storage for each tensor, however the program goes.  What a call, an `if`
or the host needs is not known here, and neither is the size of a symbolic tensor.  So

- tensors share an arena only inside a run: bindings that call nothing, during which the same tensors of unknown size
  are alive.  An arena is taken only where at every point of the run no more is held than was at the run's worst point
  before; where it would be, the tensors are divided and each part is tried again;
- any other tensor may take over the storage of one of equal size that is dead, as long as nothing was allocated and
  nothing called in between;
- what leaves the block, in its result or through a call, has a storage of its own.

Sizes count with a storage's own overhead.  A tensor written over a kernel's argument (in place) needs no memory at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from relvm.ir.expr import Binding, Block, BuiltinCall, Call, If, KernelCall, MatchCast, PackedCall, Var
from relvm.ir.symbolic import AnyDim, DimVar, known_size, product
from relvm.ir.types import VOID, PrimType, ShapeType, TensorType, TupleType
from relvm.ir.value_ranges import Range, range_of
from relvm.kernels.loop_ir import Kernel
from relvm.passes.memory.arena_allocator import Request, align, lower_bound, plan_arena
from relvm.passes.memory.liveness import CALLS_OUT, Escape, Fields, Liveness, Value, lifetimes
from relvm.tables import BUILTINS

_VIEWS = frozenset(row.name for row in BUILTINS if row.signature == "tensor shape -> tensor")
_HEAD_BYTES = 96  # of a storage besides its bytes: its head, room to align them, malloc's own; see rvm_storage_new
_DIVISIONS = 24  # how often the tensors of a run are divided before they get storages of their own


@dataclass(eq=False)
class BufferSlot:
    """One tensor, or several that follow each other in place, each written over the one before.

    size_bytes: as a dimension; an int where it is known, or bounded.
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
    """What is allocated at once, and the slots in it, in order of first use, with their offsets in bytes.

    size_bytes, and lower_bound, the most bytes in use at one point: of an arena with each slot's bytes rounded up to
    the alignment.
    """

    slots: list[BufferSlot]
    offsets: list[int]
    size_bytes: AnyDim
    lower_bound: AnyDim

    @property
    def is_arena(self) -> bool:
        """Whether slots of several sizes, or at several offsets, may be in it."""
        return len(self.slots) > 1 and any(s.size_bytes != self.size_bytes for s in self.slots)


@dataclass
class BlockPlan:
    """Where each tensor that a block's kernels make is.

    Attributes
    ----------
    storages
        In the order in which they are allocated.
    place
        Tensor -> its storage and the offset in it.
    over
        Tensor -> the variable that it is written over, for those in place.
    """

    storages: list[ArenaStorage] = field(default_factory=list)
    place: dict[Value, tuple[ArenaStorage, int]] = field(default_factory=dict)
    over: dict[Value, Var] = field(default_factory=dict)


def plan_block(
    block: Block, fields: Fields, kernels: Mapping[str, object], ranges: Mapping[DimVar, Range]
) -> BlockPlan:
    """The plan for the tensors of one block, those of blocks inside it left out.

    Parameters
    ----------
    block
        At stage LOWERED.
    fields
        `fields_in` of the block.
    kernels
        The module's kernels by name: they say what may be written in place.
    ranges
        What is known of dimension variables.
    """
    found = lifetimes(block, fields)
    plan = BlockPlan()
    slots, before = _slots(block, found, kernels, ranges, plan)
    timeline = _Timeline(block, found, slots, before)
    arenas, rest = timeline.arenas(slots)
    plan.storages = sorted(arenas + _handed_on(rest, arenas, timeline), key=lambda storage: storage.slots[0].first)
    for storage in plan.storages:
        for slot, offset in zip(storage.slots, storage.offsets, strict=True):
            plan.place |= dict.fromkeys(slot.values, (storage, offset))
    return plan


def name_of(value: Value) -> str:
    """What a tensor is called: its variable's name, with its number where that holds several."""
    return value.name if isinstance(value, Var) else f"{value[0].name}_{value[1]}"


def tensors_made(var: Var, call: KernelCall) -> list[tuple[Value, TensorType]]:
    """What a kernel call makes: the variable itself, or its fields."""
    match call.type:
        case TensorType() as type_:
            return [(var, type_)]
        case TupleType(fields):
            return [((var, i), type_) for i, type_ in enumerate(fields) if isinstance(type_, TensorType)]
    return []


def size_of(type_: TensorType, ranges: Mapping[DimVar, Range]) -> AnyDim:
    """The bytes of a tensor: the most that it can have where its dimensions are bounded, else as they are."""
    highest = [range_of(dim, ranges).high for dim in type_.known_shape]
    bounded = tuple(max(0, high) for high in highest if isinstance(high, int))
    dims = bounded if len(bounded) == len(highest) else type_.known_shape
    return product((*dims, type_.known_dtype.size_bytes))


def _slots(
    block: Block, found: Liveness, kernels: Mapping[str, object], ranges: Mapping[DimVar, Range], plan: BlockPlan
) -> tuple[list[BufferSlot], list[BufferSlot]]:
    """The slots in order of first use; and the same with nothing in place, one for each tensor."""
    slots: list[BufferSlot] = []
    single: list[BufferSlot] = []
    slot_of: dict[Var, BufferSlot] = {}  # for variables whose memory is one slot of this block
    for point, binding in enumerate(block.bindings):
        match binding.value:
            case Var() as same if same in slot_of:
                slot_of[binding.var] = slot_of[same]
            case BuiltinCall(name=name, args=(Var() as viewed, *_)) if name in _VIEWS and viewed in slot_of:
                slot_of[binding.var] = slot_of[viewed]
            case KernelCall() as call:
                for value, type_ in tensors_made(binding.var, call):
                    last, escape = found.of(value, point)
                    slot = BufferSlot([value], size_of(type_, ranges), point, last, escape)
                    single.append(BufferSlot([value], slot.size_bytes, point, last, escape))
                    over = _overwritten(call, kernels.get(call.kernel), slot_of, point)
                    if over is None:
                        slots.append(slot)
                    else:
                        plan.over[value] = over
                        slot = slot_of[over]
                        slot.values.append(value)
                        slot.last, slot.escape = last, escape
                    if value is binding.var:
                        slot_of[binding.var] = slot
    return slots, single


def _overwritten(call: KernelCall, kernel: object, slot_of: Mapping[Var, BufferSlot], point: int) -> Var | None:
    """The argument that the kernel's result is written over: one that it may be (Kernel.in_place), whose memory is of
    this block, dies here, and does not leave."""
    for position in kernel.in_place if isinstance(kernel, Kernel) else ():
        arg = call.args[position]
        if not isinstance(arg, Var) or (slot := slot_of.get(arg)) is None:
            continue
        if slot.last == point and slot.escape is Escape.NONE:
            return arg
    return None


class _Timeline:
    """The points of a block: the runs that they fall into, and the bytes held at each."""

    def __init__(self, block: Block, found: Liveness, slots: list[BufferSlot], before: list[BufferSlot]) -> None:
        self.end = len(block.bindings)
        self.calls = [point for point, binding in enumerate(block.bindings) if _calls(binding.value)]
        unknown = [(s.first, s.last) for s in slots if not s.is_fixed or s.escape is Escape.KEPT]
        for point, binding in enumerate(block.bindings):
            if _makes_unknown(binding):
                unknown.append((point, found.of(binding.var, point)[0]))
        self.unknown_made = {first for first, _ in unknown}
        starts = {p for first, last in unknown for p in (first, last + 1)}
        starts |= {p for call in self.calls for p in (call, call + 1)}
        self.run_starts = sorted(starts)
        counted = [slot for slot in slots if slot.is_fixed and slot.escape is not Escape.KEPT]
        values = {value for slot in counted for value in slot.values}
        self.held = _held(counted, 0, self.end + 1)
        self.worst: dict[int, int] = {}  # run -> the most bytes held in it before anything is shared
        before = [slot for slot in before if slot.values[0] in values]
        for point, size in enumerate(_held(before, 0, self.end + 1)):
            run = self.run(point)
            self.worst[run] = max(self.worst.get(run, 0), size)

    def run(self, point: int) -> int:
        """The number of the run that a point is in."""
        return bisect_right(self.run_starts, point)

    def arenas(self, slots: list[BufferSlot]) -> tuple[list[ArenaStorage], list[BufferSlot]]:
        """The arenas, and the slots that are in none."""
        by_run: dict[int, list[BufferSlot]] = {}
        for slot in slots:
            if slot.is_fixed and slot.escape is Escape.NONE and self.run(slot.first) == self.run(slot.last):
                by_run.setdefault(self.run(slot.first), []).append(slot)
        arenas: list[ArenaStorage] = []
        for run, group in by_run.items():
            self.divide(group, self.worst[run], _DIVISIONS, arenas)
        placed = {slot for storage in arenas for slot in storage.slots}
        return arenas, [slot for slot in slots if slot not in placed]

    def divide(self, group: list[BufferSlot], limit: int, divisions: int, arenas: list[ArenaStorage]) -> None:
        """Puts the slots into one arena, or as few as keep what is held within the limit."""
        if len(group) < 2 or divisions == 0:
            return
        start, stop = group[0].first, max(slot.last for slot in group) + 1
        others = [held - own for held, own in zip(self.held[start:stop], _held(group, start, stop), strict=True)]
        requests = [Request("", align(known_size(slot.size_bytes)), slot.first, slot.last) for slot in group]
        over = _exceeding(others, lower_bound(requests), limit)  # quickly, before the arena is planned
        if not over:
            arena = plan_arena(requests)
            over = _exceeding(others, arena.size_bytes, limit)
            if not over:
                self.held[start:stop] = [size + _cost(arena.size_bytes) for size in others]
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
            self.divide(part, limit, divisions - 1, arenas)


def _held(slots: Iterable[BufferSlot], start: int, stop: int) -> list[int]:
    """The bytes held at the points from `start` to before `stop` while each slot has a storage of its own."""
    changes = [0] * (stop - start + 1)
    for slot in slots:
        cost = _cost(known_size(slot.size_bytes))
        changes[slot.first - start] += cost
        changes[slot.last + 1 - start] -= cost
    return list(accumulate(changes[:-1]))


def _exceeding(others: list[int], arena_bytes: int, limit: int) -> list[int]:
    """Where the bytes of others and those of an arena are together more than the limit."""
    return [i for i, size in enumerate(others) if size + _cost(arena_bytes) > limit]


def _handed_on(slots: list[BufferSlot], arenas: list[ArenaStorage], timeline: _Timeline) -> list[ArenaStorage]:
    """Storages for slots outside of arenas: each its own, or that of a dead one of equal size."""
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


def _cost(size_bytes: int) -> int:
    """What the machine asks for where a program asks for a storage."""
    return size_bytes + _HEAD_BYTES


def _calls(value: object) -> bool:
    """Whether memory that this block does not know of is in use while the value is computed."""
    match value:
        case Call() | PackedCall() | If():
            return True
        case BuiltinCall(name=name):
            return name in CALLS_OUT
    return False


def _makes_unknown(binding: Binding | MatchCast) -> bool:
    """Whether a binding makes memory that this block does not count: a call's or a builtin's result."""
    if isinstance(binding, MatchCast) or binding.var.type == VOID or isinstance(binding.var.type, PrimType | ShapeType):
        return False
    match binding.value:
        case BuiltinCall(name=name):
            return name not in _VIEWS
        case Call() | PackedCall() | If():
            return True
    return False
