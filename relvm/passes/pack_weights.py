"""Packing of constant weights into the layout that kernels read, at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import Block, Constant, Expr, Module, OpCall, constant
from relvm.ir.loop_ir import Literal, Scalar, as_scalar
from relvm.ir.symbolic import AnyDim
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.conv.plan import is_direct_faster_than_windows, is_window_product_faster
from relvm.kernels.conv.sliding_window import Window, window_of
from relvm.kernels.conv.window_product import can_multiply_windows
from relvm.kernels.gemm.packing import pack_columns
from relvm.ops import (
    conv,
    conv_by_size,
    conv_integer,
    conv_integer_packed,
    conv_packed,
    conv_winograd,
    matmul,
    matmul_integer,
    matmul_integer_packed,
    matmul_packed,
    tree_ensemble,
)
from relvm.ops.conv_int8_packed import pack_windows
from relvm.ops.conv_packed import pack_filters
from relvm.ops.conv_winograd import MAX_CHANNELS, is_winograd_faster, transform_windows
from relvm.ops.matmul_int8 import pack_bytes
from relvm.passes.compact_trees import compact_trees
from relvm.passes.pass_manager import Pass

_LARGE = 1 << 12  # a size of a spatial axis at which the cost of padding tiles does not matter


def pack_weights(*, favour: str = "speed") -> Pass:
    """Return the pass that packs constant weights.

    favour: the goal of the kernels (relvm.kernels.kernel_builder.FAVOURS).  With "memory", f32 filters of convolutions
    stay as they are, because the kernels for packed filters need larger buffers.  With "size", only transposed matrices
    are stored in another order, because plain loops read weights as they are.
    """

    def run(module: Module) -> Module:
        """Pack the constant right operands of matrix products, and the constant filters of convolutions:

        y = matmul(x, const(f32[768, 64], ...))   ->   y = matmul_packed(x, const(f32[49152], ...), columns=64)
        y = conv(x, const(f32[64, 32, 3, 3], ...), pads=(1, 1, 1, 1))   ->
        y = conv_winograd(x, const(f32[16, 64, 32], ...), pads=(1, 1, 1, 1))

        3 x 3 filters of convolutions with stride 1 are transformed for Winograd convolution, if it is the fastest
        algorithm.  If this depends on sizes that are known only at run time, the result is conv_by_size, which chooses
        the algorithm.  Other filters are packed for a product without an im2col matrix (conv_packed), if it is faster
        than one with an im2col matrix.  8-bit matrices are stored as panels of words, together with the sums of their
        columns (matmul_integer_packed).  8-bit filters are stored with channels last, padded to whole words, together
        with the sums of the filters (conv_integer_packed).

        A constant left operand that is transposed is stored by rows instead, as the kernels read it.
        """
        packed: dict[tuple, tuple[Constant, ...]] = {}

        def of_block(block: Block) -> Block:
            return with_bindings(block, [with_value(binding, of_value(binding.value)) for binding in block.bindings])

        def of_value(value: Expr) -> Expr:
            if not isinstance(value, OpCall):
                return map_blocks(of_block, value)
            if favour == "size":
                return compact_trees(value) if value.op is tree_ensemble else _transpose_right(value, packed)
            if _is_packable_matmul(value):
                return _pack_matmul(value, packed)
            if _is_left_transposed(value):
                return _transpose_left(value, packed)
            if _has_constant_filters(value) and favour == "speed":
                return _pack_conv(value, packed)
            return _pack_int8_conv(value, packed) if _is_packable_int8_conv(value) else value

        return module.with_functions(tuple(map_blocks(of_block, function) for function in module.functions))

    return Pass("pack_weights", run, Stage.ANF, Stage.ANF, optional=True)


def _constant_value(call: OpCall, index: int) -> np.ndarray:
    """Return the value of the argument at `index`, which must be a constant."""
    arg = call.args[index]
    assert isinstance(arg, Constant)
    return arg.value


def _is_packable_matmul(call: OpCall) -> bool:
    if call.op not in (matmul, matmul_integer) or not isinstance(call.args[1], Constant):
        return False
    a, b = call.args[0].tensor_type, call.args[1].value
    if b.ndim != 2 or b.size == 0 or a.shape is None:
        return False
    if call.op is matmul_integer:
        a_zero, b_zero = call.args[2:]
        return a_zero.tensor_type.rank == 0 and isinstance(b_zero, Constant) and b_zero.value.ndim in (0, 2)
    return not dict(call.attributes)["transpose_a"]


def _pack_matmul(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    if call.op is matmul_integer:
        return _pack_int8_matmul(call, packed)
    weights, transposed = _constant_value(call, 1), dict(call.attributes)["transpose_b"]
    matrix = weights.T if transposed else weights
    key = (id(weights), transposed)
    if key not in packed:
        packed[key] = (constant(pack_columns(matrix), is_new=True),)
    return replace(matmul_packed(call.args[0], *packed[key], columns=matrix.shape[1]), type=call.type)


def _transpose_right(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    """Return a matrix product with a constant right operand that is not transposed, or another call unchanged."""
    if call.op is not matmul or not _is_packable_matmul(call) or not dict(call.attributes)["transpose_b"]:
        return call
    weights = _constant_value(call, 1)
    key = (id(weights), "right")
    if key not in packed:
        packed[key] = (constant(np.ascontiguousarray(weights.T), is_new=True),)
    attributes = dict(call.attributes) | {"transpose_b": False}
    return replace(matmul(call.args[0], *packed[key], **attributes), type=call.type)


def _is_left_transposed(call: OpCall) -> bool:
    return call.op is matmul and isinstance(call.args[0], Constant) and dict(call.attributes)["transpose_a"]


def _transpose_left(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    weights = _constant_value(call, 0)
    key = (id(weights), "left")
    if key not in packed:
        packed[key] = (constant(np.ascontiguousarray(np.swapaxes(weights, -1, -2)), is_new=True),)
    attributes = dict(call.attributes) | {"transpose_a": False}
    return replace(matmul(*packed[key], call.args[1], **attributes), type=call.type)


def _pack_int8_matmul(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    a, _, a_zero, _ = call.args
    weights, b_zero = _constant_value(call, 1), _constant_value(call, 3)
    key = (id(weights), id(b_zero))
    if key not in packed:
        packed[key] = tuple(constant(array, is_new=True) for array in pack_bytes(weights, b_zero))
    panels, sums, zeros = packed[key]
    return replace(matmul_integer_packed(a, panels, sums, a_zero, zeros, columns=weights.shape[1]), type=call.type)


def _has_constant_filters(call: OpCall) -> bool:
    """Return whether a call is a convolution with one group of constant f32 filters."""
    if call.op is not conv or not isinstance(call.args[1], Constant) or call.tensor_type.shape is None:
        return False
    return call.args[1].value.dtype == np.float32 and dict(call.attributes)["groups"] == 1


def _window(call: OpCall) -> Window:
    """Return the window of a convolution with constant filters."""
    attributes = dict(call.attributes)
    sizes = _constant_value(call, 1).shape[2:]
    return window_of("conv", sizes, *(attributes[name] for name in ("strides", "pads", "dilations")))


def _pack_conv(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    """Choose the algorithm of a convolution with constant filters, and pack the filters for it.

    If the choice depends on symbolic sizes, the kernel chooses at run time.
    """
    weights, window, (x, _) = _constant_value(call, 1), _window(call), call.args
    in_tiles = _is_winograd_faster(call, weights, window)

    def pack(name: str, packing: Callable[[np.ndarray], np.ndarray]) -> Constant:
        key = (id(weights), name)
        if key not in packed:
            packed[key] = (constant(packing(weights), is_new=True),)
        return packed[key][0]

    new = call
    shapes = x.tensor_type.known_shape, weights.shape, call.tensor_type.known_shape, window
    is_direct = not isinstance(in_tiles, Literal) and is_direct_faster_than_windows(*shapes[1:])
    if isinstance(in_tiles, Literal) and in_tiles.value:
        new = conv_winograd(x, pack("tiles", transform_windows), pads=window.pads, spread=window.dilations[0])
    elif not isinstance(in_tiles, Literal) and (is_direct or can_multiply_windows(window)):
        w = call.args[1] if is_direct else pack("rows", pack_filters)
        new = conv_by_size(x, w, pack("tiles", transform_windows), pads=window.pads, spread=window.dilations[0])
    elif is_window_product_faster(*shapes):
        sizes = {"filters": len(weights), "window": weights.shape[2:]}
        options = {"strides": window.strides, "pads": window.pads, "dilations": window.dilations}
        new = conv_packed(x, pack("rows", pack_filters), **sizes, **options)
    return replace(new, type=call.type)


def _is_winograd_faster(call: OpCall, weights: np.ndarray, window: Window) -> Scalar:
    """Return whether the Winograd algorithm is the fastest, as a literal if this does not depend on symbolic sizes."""
    if weights.shape[2:] != (3, 3) or {*window.strides, window.dilations[1]} != {1}:
        return Literal(False, BOOL)
    if weights.shape[1] > MAX_CHANNELS or not np.abs(weights).max(initial=0) < 1e30:
        return Literal(False, BOOL)

    def is_faster(dims: Sequence[AnyDim]) -> Scalar:
        high, wide = (as_scalar(dim, I64) for dim in dims)
        return is_winograd_faster(weights.shape[1], weights.shape[0], high, wide, window.dilations[0])

    dims = call.tensor_type.known_shape[2:]
    largest = is_faster([dim if isinstance(dim, int) else _LARGE for dim in dims])
    return largest if isinstance(largest, Literal) and not largest.value else is_faster(dims)


def _is_packable_int8_conv(call: OpCall) -> bool:
    """Return whether a call is an 8-bit convolution with constant filters and several input channels per group.

    The channels of such filters can be packed in words.
    """
    if call.op is not conv_integer or not isinstance(call.args[1], Constant) or call.args[0].tensor_type.shape is None:
        return False
    w = call.args[1].value
    return w.size > 0 and w.shape[1] > 1


def _pack_int8_conv(call: OpCall, packed: dict[tuple, tuple[Constant, ...]]) -> Expr:
    x, _, zero = call.args
    weights = _constant_value(call, 1)
    key = (id(weights), "words")
    if key not in packed:
        packed[key] = tuple(constant(array, is_new=True) for array in pack_windows(weights))
    return replace(conv_integer_packed(x, *packed[key], zero, **dict(call.attributes)), type=call.type)
