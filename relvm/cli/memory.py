"""`relvm show --memory`."""

from __future__ import annotations

from relvm.ir.dims import AnyDim
from relvm.ir.expr import Module
from relvm.transform.plan_memory import memory_plans
from relvm.transform.sharing import BlockPlan, Slot, Storage, name_of
from relvm.transform.storage import Request, lower_bound


def print_plans(module: Module) -> None:
    """Prints the memory plan of every block that makes tensors: what it holds, then each storage and what is in it.

    Lifetimes are points of the block: its bindings as `--stage legal` shows them, from 0, and its end.
    """
    for place, plan in memory_plans(module):
        if plan.storages:
            print(f"{place}: {_summary(plan)}")
            for storage in plan.storages:
                _print_storage(storage)


def _summary(plan: BlockPlan) -> str:
    slots = [slot for storage in plan.storages for slot in storage.slots]
    tensors = sum(len(slot.values) for slot in slots)
    counted = f"{tensors} tensors in {len(plan.storages)} storages, {len(plan.over)} of them in place"
    if not all(slot.is_fixed for slot in slots):
        return counted
    held = [Request("", s.size_bytes, s.slots[0].first, max(slot.last for slot in s.slots)) for s in plan.storages]
    alive = [Request("", slot.size_bytes, slot.first, slot.last) for slot in slots]
    return f"{counted}; {_sizes(lower_bound(held), lower_bound(alive))} at once"


def _print_storage(storage: Storage) -> None:
    if storage.is_arena:
        print(f"  arena of {_sizes(storage.size_bytes, storage.lower_bound)}")
    else:
        print(f"  storage of {_number(storage.size_bytes)} bytes")
    print(f"    {'offset':>12} {'bytes':>12} {'from':>6} {'to':>6}  tensors")
    for slot, offset in zip(storage.slots, storage.offsets, strict=True):
        print(f"    {offset:>12,} {_number(slot.size_bytes):>12} {slot.first:>6} {slot.last:>6}  {_names(slot)}")


def _sizes(size_bytes: int, bound: int) -> str:
    ratio = f"{size_bytes / bound:.3f}" if bound else "1.000"
    return f"{size_bytes:,} bytes, lower bound {bound:,}, ratio {ratio}"


def _number(size: AnyDim) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def _names(slot: Slot) -> str:
    return " > ".join(map(name_of, slot.values))
