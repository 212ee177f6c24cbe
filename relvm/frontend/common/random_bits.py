"""Random bits of counter-based generators: Threefry and Philox.

A generator is a function of a key and a counter.  It maps each value of the counter to independent random words.
"""

from __future__ import annotations

from collections.abc import Callable

import relvm.ops as ops
from relvm.ir.expr import Expr

Emit = Callable[[Expr], Expr]
Pair = tuple[Expr, Expr]
Quad = tuple[Expr, Expr, Expr, Expr]

_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_PHILOX_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_PHILOX_ROUNDS = 10


def threefry_2x32(emit: Emit, key: Pair, counter: Pair) -> Pair:
    """Return two random words for each counter, by Threefry-2x32 with 20 rounds.

    emit: binds an expression to a variable.
    key, counter: tensors of u32.

    Notes
    -----
    Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011.
    """
    first, second = key
    keys = [first, second, emit(ops.bitwise_xor(ops.bitwise_xor(first, second), _THREEFRY_PARITY))]
    x, y = (emit(ops.add(word, k)) for word, k in zip(counter, key, strict=True))
    for number in range(5):
        for rotation in _THREEFRY_ROTATIONS[number % 2]:
            x = emit(ops.add(x, y))
            rotated = ops.bitwise_or(ops.shift_left(y, rotation), ops.shift_right_logical(y, 32 - rotation))
            y = emit(ops.bitwise_xor(x, rotated))
        x = emit(ops.add(x, keys[(number + 1) % 3]))
        y = emit(ops.add(y, emit(ops.add(keys[(number + 2) % 3], number + 1))))
    return x, y


def philox_4x32(emit: Emit, key: Pair, counter: Quad) -> Quad:
    """Return four random words for each counter, by Philox-4x32 with 10 rounds.

    The arguments and the source are those of `threefry_2x32`.
    """
    for number in range(_PHILOX_ROUNDS):
        if number:
            first, second = (emit(ops.add(k, step)) for k, step in zip(key, _PHILOX_KEY_STEPS, strict=True))
            key = first, second
        (high0, low0), (high1, low1) = (
            words_of(emit, emit(ops.multiply(ops.cast(word, to="u64"), factor)))[::-1]
            for word, factor in zip((counter[0], counter[2]), _PHILOX_MULTIPLIERS, strict=True)
        )
        counter = (
            emit(ops.bitwise_xor(ops.bitwise_xor(high1, counter[1]), key[0])),
            low1,
            emit(ops.bitwise_xor(ops.bitwise_xor(high0, counter[3]), key[1])),
            low0,
        )
    return counter


def words_of(emit: Emit, x: Expr) -> Pair:
    """Return the low and the high word of each element of a tensor of u64, as tensors of u32."""
    low = emit(ops.cast(ops.bitwise_and(x, 0xFFFFFFFF), to="u32"))
    return low, emit(ops.cast(ops.shift_right_logical(x, 32), to="u32"))


def from_words(emit: Emit, low: Expr, high: Expr) -> Expr:
    """Return a tensor of u64 from the low and the high words of its elements."""
    wide = ops.shift_left(ops.cast(high, to="u64"), 32)
    return emit(ops.bitwise_or(ops.cast(low, to="u64"), wide))
