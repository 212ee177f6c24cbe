"""Kernels that apply scalar code to many elements: reductions, windows and maps."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.errors import RelvmShapeError
from relvm.frontend.common.kernel_parts import buffer, buffers, is_inside, loops, quotient, remainder, size
from relvm.frontend.common.scalar_code import ScalarFunction
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Local, Operation, Scalar, select
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


def map_kernel(
    name: str, xs: Sequence[TensorType], results: Sequence[TensorType], function: ScalarFunction
) -> KernelDef:
    """Return the kernel that applies a function to the elements of tensors of equal shapes."""
    k = KernelBuilder()
    sources, outs = buffers("x", xs), buffers("out", results, is_output=True)
    with loops(k, outs[0].shape) as at:
        for out, value in zip(outs, function(k, *(source[at] for source in sources)), strict=True):
            k.store(out, at, value)
    return KernelDef(name, tuple(sources), tuple(outs), k.finish())


def reduce_kernel(
    name: str,
    xs: Sequence[TensorType],
    inits: Sequence[TensorType],
    results: Sequence[TensorType],
    axes: Sequence[int],
    combine: ScalarFunction,
) -> KernelDef:
    """Return the kernel that reduces tensors together along some axes, in row-major order.

    inits: the types of the initial values, tensors of rank 0.
    combine: computes the new totals.  Its arguments are the old totals, followed by the elements.
    """
    k = KernelBuilder()
    sources, starts, outs = buffers("x", xs), buffers("init", inits), buffers("out", results, is_output=True)
    shape = sources[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    with loops(k, outs[0].shape) as at:
        totals = [k.variable("total", start[()]) for start in starts]
        with loops(k, [shape[axis] for axis in sorted(axes)]) as inner:
            index = dict(zip(kept, at, strict=True)) | dict(zip(sorted(axes), inner, strict=True))
            place = tuple(index[axis] for axis in range(len(shape)))
            _assign(k, totals, combine(k, *totals, *(source[place] for source in sources)))
        for out, total in zip(outs, totals, strict=True):
            k.store(out, at, total)
    return KernelDef(name, (*sources, *starts), tuple(outs), k.finish())


def _assign(k: KernelBuilder, totals: Sequence[Local], values: Sequence[Scalar]) -> None:
    """Assign to several variables at once: no value reads a variable that is already assigned."""
    saved = [k.let("new", value) for value in values] if len(values) > 1 else values
    for total, value in zip(totals, saved, strict=True):
        k.assign(total, value)


@value_record
class Window:
    """The windows of an operator, one number or pair for each axis.

    Attributes
    ----------
    sizes, strides, dilations
        The number of elements of a window, the distance of neighboring windows, and the distance of neighboring
        elements of a window.
    base_dilations
        The distance of neighboring elements of the operand, after elements were inserted between them.
    padding
        The number of elements that are added before and after the operand.  They can be negative.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    base_dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    def shape(self, shape: Sequence[AnyDim]) -> tuple[AnyDim, ...]:
        """Return the number of windows along each axis.  Raise RelvmShapeError if a size, stride or dilation is below
        1.
        """
        for what, values in (("size", self.sizes), ("stride", self.strides), ("dilation", self.dilations)):
            if any(value < 1 for value in values):
                raise RelvmShapeError(f"a {what} of the window is below 1: {list(values)}")
        if any(value < 1 for value in self.base_dilations):
            raise RelvmShapeError(f"a base dilation is below 1: {list(self.base_dilations)}")
        found: list[AnyDim] = []
        for axis, extent in enumerate(shape):
            low, high = self.padding[axis]
            base = extent if self.base_dilations[axis] == 1 else (extent - 1) * self.base_dilations[axis] + 1
            if isinstance(extent, int) and extent == 0:
                base = 0
            padded = base + low + high
            window = (self.sizes[axis] - 1) * self.dilations[axis] + 1
            if isinstance(padded, int):
                found.append(0 if padded < window else (padded - window) // self.strides[axis] + 1)
            else:
                found.append((padded - window) // self.strides[axis] + 1)
        return tuple(found)

    def place(
        self, k: KernelBuilder, source: Buffer, window: Sequence[Scalar], element: Sequence[Scalar]
    ) -> tuple[tuple[Scalar, ...], Scalar]:
        """Return the position in the operand of an element of a window, and whether the operand has this element.

        If not, the element is padding.

        window: the position of the window.   element: the position of the element in the window.
        """
        inside: Scalar = Literal(True, BOOL)
        place: list[Scalar] = []
        for axis, extent in enumerate(source.shape):
            position = window[axis] * self.strides[axis] + element[axis] * self.dilations[axis] - self.padding[axis][0]
            base = self.base_dilations[axis]
            if base != 1:
                position = k.let("position", position)
                inside = inside.logical_and(remainder(position, base).eq(0))
                position = quotient(position, base)
            place.append(k.let("at", position))
            if not self._is_always_inside(axis):
                inside = inside.logical_and(is_inside(place[-1], extent))
        return tuple(place), inside

    def _is_always_inside(self, axis: int) -> bool:
        """Return whether an axis has no padding and no gaps of a base dilation, which windows could contain."""
        low, high = self.padding[axis]
        return low <= 0 and high <= 0 and self.base_dilations[axis] == 1


def reduce_window_kernel(
    name: str,
    xs: Sequence[TensorType],
    inits: Sequence[TensorType],
    results: Sequence[TensorType],
    window: Window,
    combine: ScalarFunction,
) -> KernelDef:
    """Return the kernel that reduces each window of several tensors together.  Padding has the initial values.

    combine: computes the new totals.  Its arguments are the old totals, followed by the elements.

    Notes
    -----
    Source: StableHLO reduce_window.
    """
    k = KernelBuilder()
    sources, starts, outs = buffers("x", xs), buffers("init", inits), buffers("out", results, is_output=True)
    with loops(k, outs[0].shape) as at:
        first = [k.let("initial", start[()]) for start in starts]
        totals = [k.variable("total", value) for value in first]
        with loops(k, window.sizes) as element:
            place, inside = window.place(k, sources[0], at, element)
            if isinstance(inside, Literal) and inside.value:
                values: list[Scalar] = [source[place] for source in sources]
            else:
                found = [k.variable("element", value) for value in first]
                with k.branch(inside):
                    for variable, source in zip(found, sources, strict=True):
                        k.assign(variable, source[place])
                values = list(found)
            _assign(k, totals, combine(k, *totals, *values))
        for out, total in zip(outs, totals, strict=True):
            k.store(out, at, total)
    return KernelDef(name, (*sources, *starts), tuple(outs), k.finish())


def select_and_scatter_kernel(
    name: str,
    x: TensorType,
    source: TensorType,
    init: TensorType,
    window: Window,
    select: ScalarFunction,
    combine: ScalarFunction,
) -> KernelDef:
    """Return the kernel that adds each element of `source` to the selected element of its window of x.

    The result has the type of x.  Each of its elements begins with the initial value.

    select: returns whether the element selected so far is kept, given that element and another one.
    combine: computes the new element of the result from its value and an element of `source`.

    Notes
    -----
    Source: StableHLO select_and_scatter.
    """
    k = KernelBuilder()
    (operand,), (updates,), (start,) = buffers("x", [x]), buffers("source", [source]), buffers("init", [init])
    (out,) = buffers("out", [x], is_output=True)
    with loops(k, out.shape) as at:
        k.store(out, at, start[()])
    zero = Literal(0, I64)
    with loops(k, updates.shape) as at:
        has_selected = k.variable("has_selected", Literal(False, BOOL))
        best = k.variable("best", start[()])
        chosen = [k.variable("chosen", zero) for _ in operand.shape]
        with loops(k, window.sizes) as element:
            place, inside = window.place(k, operand, at, element)
            for index, extent in zip(place, operand.shape, strict=True):
                inside = inside.logical_and(is_inside(index, extent))
            with k.branch(inside):
                value = k.let("value", operand[place])
                (keeps,) = select(k, best, value)
                with k.branch(has_selected.logical_and(keeps).logical_not()):
                    k.assign(best, value)
                    for variable, index in zip(chosen, place, strict=True):
                        k.assign(variable, index)
                k.assign(has_selected, Literal(True, BOOL))
        with k.branch(has_selected):
            (result,) = combine(k, out[tuple(chosen)], updates[at])
            k.store(out, tuple(chosen), result)
    return KernelDef(name, (operand, updates, start), (out,), k.finish())


def sort_kernel(name: str, xs: Sequence[TensorType], axis: int, comes_first: ScalarFunction) -> KernelDef:
    """Return the kernel that sorts tensors of equal shapes together along an axis, by a stable merge sort.

    The outputs are the positions along the axis that sort the tensors, and working memory.  Both have the shape of the
    tensors, except that the working memory has another axis of size 2 in front.

    comes_first: returns whether an element must come before another one, given the elements of each tensor in pairs.

    Notes
    -----
    Source: StableHLO sort.
    """
    k = KernelBuilder()
    sources = buffers("x", xs)
    shape = sources[0].shape
    (order,) = buffers("order", [TensorType(I64, shape)], is_output=True)
    (work,) = buffers("work", [TensorType(I64, (2, *shape))], is_output=True)
    order = Buffer("order", I64, shape, is_output=True)
    work = Buffer("work", I64, (2, *shape), is_output=True)
    count = size(shape[axis])
    others = [extent for other, extent in enumerate(shape) if other != axis]

    def placed(rest: Sequence[Scalar], position: Scalar) -> tuple[Scalar, ...]:
        place = list(rest)
        place.insert(axis, position)
        return tuple(place)

    with loops(k, others) as rest:
        with k.loop(count, name="n") as n:
            k.store(work, (0, *placed(rest, n)), n)
        source, target = k.variable("source", Literal(0, I64)), k.variable("target", Literal(1, I64))
        width = k.variable("width", Literal(1, I64))
        with k.loop(62, name="level"), k.branch(width < count):
            left, right = k.variable("left", Literal(0, I64)), k.variable("right", Literal(0, I64))
            middle, end = k.variable("middle", Literal(0, I64)), k.variable("end", Literal(0, I64))
            with k.loop(count, name="n") as n:
                with k.branch(n.eq(end)):  # the next two runs begin
                    k.assign(left, n)
                    k.assign(middle, _at_most(n + width, count))
                    k.assign(right, middle)
                    k.assign(end, _at_most(middle + width, count))
                takes_left = k.variable("takes_left", left < middle)
                with k.branch(takes_left.logical_and(right < end)):
                    first = k.let("first", work[(source, *placed(rest, left))])
                    second = k.let("second", work[(source, *placed(rest, right))])
                    pairs = [s[placed(rest, position)] for s in sources for position in (second, first)]
                    (is_right_first,) = comes_first(k, *pairs)
                    k.assign(takes_left, is_right_first.logical_not())
                with k.branch(takes_left):
                    k.store(work, (target, *placed(rest, n)), work[(source, *placed(rest, left))])
                    k.assign(left, left + 1)
                with k.branch(takes_left.logical_not()):
                    k.store(work, (target, *placed(rest, n)), work[(source, *placed(rest, right))])
                    k.assign(right, right + 1)
            k.assign(source, target)
            k.assign(target, Literal(1, I64) - target)
            k.assign(width, width * 2)
        with k.loop(count, name="n") as n:
            k.store(order, placed(rest, n), work[(source, *placed(rest, n))])
    return KernelDef(name, tuple(sources), (order, work), k.finish())


def _at_most(value: Scalar, limit: Scalar) -> Scalar:
    from relvm.frontend.common.kernel_parts import smaller

    return smaller(value, limit)


def _combined(k: KernelBuilder, function: str, x: Scalar, y: Scalar) -> Scalar:
    """Return the maximum or minimum of two numbers, or log(exp(x) + exp(y)).   function: see `cumulative_kernel`."""
    if function != "logaddexp":
        return Operation(function, (x, y), x.dtype)
    larger = k.let("larger", Operation("max", (x, y), x.dtype))
    distance = k.let("distance", larger - Operation("min", (x, y), x.dtype))  # NaN for two equal infinities
    rest = Operation("log1p", (Operation("exp", (-distance,), x.dtype),), x.dtype)
    return select(distance.ne(distance), x + y, larger + rest)


def cumulative_kernel(name: str, x: TensorType, axis: int, reverse: bool, function: str) -> KernelDef:
    """Return the kernel of a cumulative maximum, minimum or logarithm of sums of exponentials along an axis.

    reverse: whether to begin at the end of the axis.
    function: "max", "min" or "logaddexp".  After a NaN, all results are NaN.
    """
    k = KernelBuilder()
    source, out = buffer("x", x), buffer("out", x, is_output=True)
    count = size(out.shape[axis])
    outer = [extent for i, extent in enumerate(out.shape) if i != axis]
    with loops(k, outer) as place, k.loop(count, name="step") as step:
        row = k.let("row", count - 1 - step) if reverse else step
        at = (*place[:axis], row, *place[axis:])
        element = k.variable("element", source[at])
        with k.branch(step > 0):
            before = k.let("before", out[(*place[:axis], row + 1 if reverse else row - 1, *place[axis:])])
            chosen = _combined(k, function, element, before)
            if element.dtype.is_float:
                chosen = select(before.ne(before), before, select(element.ne(element), element, chosen))
            k.assign(element, chosen)
        k.store(out, at, element)
    return KernelDef(name, (source,), (out,), k.finish())
