"""Random bits.  The results are those of XLA on CPUs, bit for bit."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.common.random_bits import Quad, from_words, philox_4x32, threefry_2x32, words_of
from relvm.frontend.stablehlo.registry import Node, converts, refuses
from relvm.ir.dtypes import U64
from relvm.ir.expr import Expr, Shape

refuses("its numbers depend on the implementation; use rng_bit_generator", "rng")


@converts("rng_bit_generator")
def _rng_bit_generator(node: Node) -> tuple[Expr, Expr]:
    """Supports THREE_FRY and PHILOX, with the results of XLA.  DEFAULT is PHILOX, as in XLA on CPUs."""
    node.expect_operands(1)
    algorithm = node.word("rng_algorithm", ("DEFAULT", "THREE_FRY", "PHILOX"))
    state, shape, dtype = node.operands[0], node.static_shape(1), node.result_dtype(1)
    words = node.shape()
    if node.dtype() != U64 or words not in ((2,), (3,)):
        raise RelvmUnsupportedError(f"a state of type {node.type()} is not supported; expected u64[2] or u64[3]")
    if not dtype.is_integer or dtype.bits < 8:
        raise RelvmUnsupportedError(f"random numbers of the type {dtype} are not supported; expected integers")
    if algorithm == "THREE_FRY" and words != (2,):
        raise RelvmFormatError(f"THREE_FRY has a state of 2 words, got {words[0]}")
    generate = _threefry if algorithm == "THREE_FRY" else _philox
    new_state, bits = generate(node, state, shape, dtype.bits == 64)
    unsigned = f"u{dtype.bits}"
    if dtype.bits < 32:
        bits = ops.cast(ops.bitwise_and(bits, (1 << dtype.bits) - 1), to=unsigned)
    return new_state, bits if dtype.name == unsigned else ops.bit_cast(node.emit(bits), to=dtype.name)


def _word(node: Node, state: Expr, index: int) -> Expr:
    """Return a word of the state, a tensor of rank 0."""
    return node.reshaped(node.emit(ops.slice(state, begin=(index,), end=(index + 1,))), ())


def _state(node: Node, *words: Expr) -> Expr:
    return node.emit(ops.concat(*(node.reshaped(word, (1,)) for word in words), axis=0))


def _numbers(node: Node, count: int) -> Expr:
    return node.emit(ops.cast(ops.iota(Shape((count,))), to="u64"))


def _threefry(node: Node, state: Expr, shape: tuple[int, ...], is_wide: bool) -> tuple[Expr, Expr]:
    """Return the new state, and bits in elements of u64 if `is_wide`, otherwise of u32."""
    key, counter = (_word(node, state, i) for i in (0, 1))
    axis, half = (0, (1,)) if not shape else _halves(shape)
    count = math.prod(shape if is_wide else half)
    counters = node.emit(ops.add(counter, _numbers(node, count)))
    low, high = threefry_2x32(node.emit, words_of(node.emit, key), words_of(node.emit, counters))
    new_state = _state(node, key, node.emit(ops.add(counter, count)))
    if is_wide:
        return new_state, node.reshaped(from_words(node.emit, low, high), shape)
    if not shape:
        return new_state, node.reshaped(low, ())
    whole = node.emit(ops.concat(*(node.reshaped(x, half) for x in (low, high)), axis=axis + 1))
    even = tuple(size + size % 2 if i == axis else size for i, size in enumerate(shape))
    whole = node.reshaped(whole, even)
    return new_state, whole if even == shape else ops.slice(whole, begin=(0,), end=(shape[axis],), axes=(axis,))


def _halves(shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Return the axis along which the two words of Threefry alternate, and the shape of either half.

    The axis is the first one of even size, or else the first one of the largest size.
    """
    axis = next((i for i, size in enumerate(shape) if size % 2 == 0), shape.index(max(shape)))
    return axis, (*shape[:axis], (shape[axis] + 1) // 2, 1, *shape[axis + 1 :])


def _philox(node: Node, state: Expr, shape: tuple[int, ...], is_wide: bool) -> tuple[Expr, Expr]:
    """Return the new state, and bits in elements of u64 if `is_wide`, otherwise of u32.

    The state consists of a key and a counter of 128 bits, low bits first.  If it has two words, the key is also the
    high word of the counter.
    """
    length = node.shape()[0]
    key, low = (_word(node, state, i) for i in (0, 1))
    high = _word(node, state, 2) if length == 3 else key
    count = math.prod(shape)
    lanes = 2 if is_wide else 4
    calls = -(-count // lanes)
    lows, highs = _sum(node, low, high, _numbers(node, calls))
    counter: Quad = (*words_of(node.emit, lows), *words_of(node.emit, highs))
    found = philox_4x32(node.emit, words_of(node.emit, key), counter)
    words = [from_words(node.emit, *found[:2]), from_words(node.emit, *found[2:])] if is_wide else list(found)
    whole = node.emit(ops.concat(*(node.reshaped(word, (calls, 1)) for word in words), axis=1))
    whole = node.reshaped(whole, (calls * lanes,))
    if calls * lanes != count:
        whole = node.emit(ops.slice(whole, begin=(0,), end=(count,)))
    next_low, next_high = _sum(node, low, high, node.number(calls, U64))
    new_state = _state(node, key, next_low, *([next_high] if length == 3 else []))
    return new_state, node.reshaped(whole, shape)


def _sum(node: Node, low: Expr, high: Expr, x: Expr) -> tuple[Expr, Expr]:
    """Add x to the number of 128 bits that consists of `low` and `high`.  Return both words of the sum."""
    total = node.emit(ops.add(low, x))
    carry = ops.cast(ops.less(total, low), to="u64")
    return total, node.emit(ops.add(high, carry))
