"""Copies of the part of some channels that a block of output positions reads, with zeros for the padding."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, constant_value, maximum, minimum
from relvm.kernels.conv.sliding_window import valid_range
from relvm.kernels.kernel_builder import KernelBuilder

_ZERO = Literal(0, I64)


@value_record
class PaddedCopy:
    """A copy of lines of some channels of an image.

    copy: the array for the lines.  The lines of a channel follow each other.
    channel_stride: the distance between adjacent channels in `copy`, in elements.
    lines, columns: the size of a channel in `copy`.
    x: the input.
    dims: the numbers of lines and columns of a channel of x.
    has_zero_lines: whether lines of the copy can be outside of x.
    steps: the distance, in x, between adjacent lines and between adjacent columns of the copy.
    joins_lines: whether the lines of the copy are contiguous in x, too, and have no padding on their sides.
    """

    copy: Buffer
    channel_stride: Scalar
    lines: Scalar
    columns: Scalar
    x: Buffer
    dims: Sequence[Scalar]
    has_zero_lines: bool
    steps: tuple[int, int] = (1, 1)
    joins_lines: bool = False

    def write(self, k: KernelBuilder, to: Scalar, plane: Scalar, channels: Scalar, origin: Sequence[Scalar]) -> None:
        """Generate the code of the copy.

        to: the position of the first channel in `copy`.
        plane: the position of the first channel in x.
        channels: the number of channels to copy.
        origin: the line and the column of x that correspond to the first element of a channel.  They may be negative.
        """
        (top, left), (high, wide) = origin, self.dims
        before, behind = valid_range(wide, self.columns, self.steps[1], left)
        before = k.let("before", minimum(before, self.columns))
        behind = k.let("behind", maximum(behind, before))
        if not self.has_zero_lines:
            self._write_lines(k, to, plane, channels, origin, (_ZERO, self.lines), (before, behind))
            return
        above, below = valid_range(high, self.lines, self.steps[0], top)
        above = k.let("above", minimum(above, self.lines))
        below = k.let("below", maximum(below, above))
        self._write_lines(k, to, plane, channels, origin, (_ZERO, above), (_ZERO, _ZERO))
        self._write_lines(k, to, plane, channels, origin, (above, below), (before, behind))
        self._write_lines(k, to, plane, channels, origin, (below, self.lines), (_ZERO, _ZERO))

    def _write_lines(
        self,
        k: KernelBuilder,
        to: Scalar,
        plane: Scalar,
        channels: Scalar,
        origin: Sequence[Scalar],
        lines: tuple[Scalar, Scalar],
        columns: tuple[Scalar, Scalar],
    ) -> None:
        """Generate the code that copies some lines of each channel.

        lines: the range [begin, end) of these lines, as indices in the copy of a channel.
        columns: the range [begin, end) of their columns that are elements of x.  The other columns become 0.
        """
        (top, left), (high, wide) = origin, self.dims
        target = to + lines[0] * self.columns
        source = plane + (top + lines[0] * self.steps[0]) * wide + left + columns[0] * self.steps[1]

        def copy(target: Scalar, target_stride: Scalar, source: Scalar, source_stride: Scalar, rows, edges, size):
            k.invoke(
                "rvm_window_rows_f32",
                dst=Address(self.copy, target),
                dst_stride=target_stride,
                x=Address(self.x, source),
                x_stride=source_stride,
                step=self.steps[1],
                rows=rows,
                begin=0,
                data_begin=edges[0],
                data_end=edges[1],
                end=size,
            )

        if self.joins_lines:
            size = k.let("size", (lines[1] - lines[0]) * self.columns)
            is_zero = constant_value(columns[1]) == 0
            edges = (_ZERO, _ZERO if is_zero else size)
            copy(target, self.channel_stride, source, high * wide, channels, edges, size)
        elif constant_value(self.lines) == 1:
            copy(target, self.channel_stride, source, high * wide, channels, columns, self.columns)
        else:
            with k.loop(channels, name="c") as c:
                at = k.let("to", target + c * self.channel_stride), k.let("channel", source + c * (high * wide))
                rows = lines[1] - lines[0]
                copy(at[0], self.columns, at[1], wide * self.steps[0], rows, columns, self.columns)
