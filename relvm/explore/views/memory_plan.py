"""Memory plans that the pass plan_memory computes, as charts and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from relvm.errors import RelvmArgumentError, counted
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.memory_chart import Box, bytes_in_use, draw_boxes, draw_legend
from relvm.explore.selection import choose_function, run_to_stage
from relvm.ir.expr import Module
from relvm.ir.symbolic import AnyDim, dim_vars, evaluate_with, known_size
from relvm.ir.verifier import Stage
from relvm.passes.memory.arena_allocator import Request, lower_bound, plan_arena
from relvm.passes.memory.buffer_reuse import ArenaStorage, BlockPlan, BufferSlot, name_of
from relvm.passes.memory.plan_memory import memory_plans
from relvm.quoting import svg_text, terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle


def draw_memory(
    module: Module,
    function: str | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    target: str = "c",
    fused: bool = True,
) -> Figure:
    """Draw the memory plan of a function's tensors.

    Each block that computes tensors has its own chart.  A block is the body of the function or a branch of an `if`.
    Each tensor is a box, whose height is the size of the tensor in bytes.  The box extends from the binding that
    computes the tensor to the last binding that uses the tensor.  Tensors are placed in storages.  A storage is a piece
    of memory that is allocated and freed as a whole, and is drawn as a frame around the boxes of its tensors.  The
    addresses of storages are known only at run time, so the frames are drawn at arbitrary heights, without overlaps.

    The solid line is the total size of the live tensors, and the dotted line the total size of the allocated storages.
    The dashed line is the maximum of the solid line.  No memory plan can need fewer bytes.

    Parameters
    ----------
    module
        The module from a front end.
    function
        Name of the function, by default the first public one.
    dims
        Sizes of symbolic dimensions without bounds, by name.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        The target is unknown, or `dims` lacks the size of a dimension.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    built = run_to_stage(module, Stage.LOWERED, target, fused=fused)
    plans = list(_block_plans(built, choose_function(built, function)))
    shown = [(place, plan) for place, plan in plans if plan.storages] or plans[:1]
    figure = new_figure(10, 1 + 4 * len(shown))
    for axes, (place, plan) in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
        _draw_plan(axes, place, plan, dims or {})
    return figure


def format_memory(module: Module, function: str | None = None, *, target: str = "c", fused: bool = True) -> str:
    """Return the memory plans of all blocks that compute tensors, as text.

    For each block there is a summary, followed by each storage with its tensors.  The columns "from" and "to" are the
    first and the last point of a tensor's lifetime.  Point i is binding i of the block, counted from 0, in the output
    of `relvm show --stage lower_to_kernels`.  The point after the last binding is the end of the block.

    Parameters
    ----------
    module
        A module as a front end, such as `parse_module`, returns it.
    function
        Name of the function, by default all functions.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmNameError, RelvmArgumentError
        The function does not exist, or the target is unknown.
    """
    built = run_to_stage(module, Stage.LOWERED, target, fused=fused)
    wanted = None if function is None else choose_function(built, function)
    lines = []
    for place, plan in _block_plans(built, wanted):
        if plan.storages:
            lines.append(f"{terminal(place)}: {_summary(plan)}")
            for storage in plan.storages:
                lines += _storage_lines(storage)
    return "".join(f"{line}\n" for line in lines)


def _block_plans(module: Module, function: str | None) -> Iterator[tuple[str, BlockPlan]]:
    """Yield a description and the memory plan of each block of a function, or of all functions if `function` is None.

    module: a module at stage LOWERED.
    """
    functions = tuple(each for each in module.functions if function in (None, each.name))
    return memory_plans(module.with_functions(functions))


# ---- chart ----


def _draw_plan(axes: Axes, place: str, plan: BlockPlan, dims: Mapping[str, int]) -> None:
    storages = [_as_request(storage, place, dims) for storage in plan.storages]
    stacked = plan_arena(storages)
    boxes = []
    for storage, request, offset in zip(plan.storages, storages, stacked.offsets, strict=True):
        span = request.last + 1 - request.first
        axes.add_patch(_frame((request.first, offset), span, request.size_bytes))
        for slot, inside in zip(storage.slots, storage.offsets, strict=True):
            size = _evaluate_bytes(slot.size_bytes, place, dims)
            boxes.append(Box(_names(slot), offset + inside, size, slot.first, slot.last))
    alive = lower_bound([Request("", box.size_bytes, box.first, box.last) for box in boxes])
    draw_boxes(axes, boxes, stacked.size_bytes, alive)
    requests = [Box("", 0, request.size_bytes, request.first, request.last) for request in storages]
    points = range(max((box.last for box in boxes), default=0) + 1)
    axes.step(
        [*points, len(points)],
        [*bytes_in_use(requests, points), 0],
        where="post",
        color="red",
        ls="dotted",
        label="held",
    )
    draw_legend(axes)
    what = f"{_tensor_counts(plan)}; {stacked.lower_bound_bytes:,} bytes held at once"
    axes.set(title=svg_text(f"{place}: {what}"), xlabel="binding at stage LOWERED")


def _frame(corner: tuple[int, int], width: int, height: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, fill=False, edgecolor="black", linewidth=0.8, zorder=3)


def _as_request(storage: ArenaStorage, place: str, dims: Mapping[str, int]) -> Request:
    """Convert a storage to an allocation request, whose lifetime covers the uses of all tensors in the storage.

    place: the beginning of error messages.   dims: the sizes of dimensions, by name.
    """
    first, last = storage.slots[0].first, max(slot.last for slot in storage.slots)
    return Request("", _evaluate_bytes(storage.size_bytes, place, dims), first, last)


def _evaluate_bytes(size: AnyDim, place: str, dims: Mapping[str, int]) -> int:
    """Evaluate a number of bytes, which can be an expression of dimensions.

    Raise RelvmArgumentError if `dims` lacks one of the dimensions.

    dims: the sizes of dimensions, by name.   place: the beginning of the error message.
    """
    missing = sorted({var.name for var in dim_vars(size)} - dims.keys())
    if missing:
        example = ", ".join(f"{name!r}: 64" for name in missing)
        raise RelvmArgumentError(
            f"{place}: the number of bytes, {size}, depends on {', '.join(missing)}; pass sizes: dims={{{example}}}"
        )
    return max(0, known_size(evaluate_with(size, lambda var: dims[var.name])))


# ---- text ----


def _summary(plan: BlockPlan) -> str:
    slots = [slot for storage in plan.storages for slot in storage.slots]
    if not all(slot.is_fixed for slot in slots):
        return _tensor_counts(plan)
    requests = [_as_request(storage, "", {}) for storage in plan.storages]
    alive = [Request("", known_size(slot.size_bytes), slot.first, slot.last) for slot in slots]
    return f"{_tensor_counts(plan)}; {_sizes(lower_bound(requests), lower_bound(alive))} at once"


def _tensor_counts(plan: BlockPlan) -> str:
    tensors = sum(len(slot.values) for storage in plan.storages for slot in storage.slots)
    storages = counted(len(plan.storages), "storage")
    return f"{counted(tensors, 'tensor')} in {storages}, {len(plan.overwritten)} of them in place"


def _storage_lines(storage: ArenaStorage) -> Iterator[str]:
    if storage.is_arena:
        yield f"  arena of {_sizes(known_size(storage.size_bytes), known_size(storage.lower_bound))}"
    else:
        yield f"  storage of {_number(storage.size_bytes)} bytes"
    yield f"    {'offset':>12} {'bytes':>12} {'from':>6} {'to':>6}  tensors"
    for slot, offset in zip(storage.slots, storage.offsets, strict=True):
        yield f"    {offset:>12,} {_number(slot.size_bytes):>12} {slot.first:>6} {slot.last:>6}  {_names(slot)}"


def _sizes(size_bytes: int, bound: int) -> str:
    ratio = f"{size_bytes / bound:.3f}" if bound else "1.000"
    return f"{size_bytes:,} bytes, lower bound {bound:,}, ratio {ratio}"


def _number(size: AnyDim) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def _names(slot: BufferSlot) -> str:
    return terminal(" > ".join(map(name_of, slot.values)))
