"""Programs that can be exported, each with arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm import vm


@dataclass(frozen=True)
class Program:
    """The text of a module, and the arguments of several calls of main."""

    name: str
    text: str
    calls: tuple[tuple[Any, ...], ...]


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


PROGRAMS = (
    Program("constant", "def main() -> (f32[2], i64) { return (const(f32[2], [1.5, -0.0]), 7) }", ((),)),
    Program("input_returned", "def main(x: f32[n, 3]) -> f32[n, 3] { return x }", ((numbers(2, 3),), (numbers(0, 3),))),
    Program("one_for_two", "def main(x: f32[4]) -> (f32[4], f32[4]) { y = relu(x)\n return (y, y) }", ((numbers(4),),)),
    Program(
        "nested_tuples",
        """def main(t: (f32[4], (f32[4], i64))) -> ((f32[4], i64), f32[4]) {
          inner = t.1
          return ((inner.0, inner.1 + 1), add(t.0, inner.0))
        }""",
        (((numbers(4), (numbers(4, seed=2), 5)),),),
    ),
    Program(
        "scalars",
        """def main(a: i64, b: i64, x: f64, c: bool) -> (i64, i64, f64, bool, f64) {
          return (a // b, a % b, x * 2.5, c & (a > b), if c then x else 0.5)
        }""",
        ((7, -2, 1.5, True), (-7, 2, -0.0, False), (7, 0, 1.0, True), (-(2**63), -1, 1e300, True)),
    ),
    Program(
        "branches",
        """def main(c: bool, d: i64[], x: f32[4], y: f32[4]) -> (f32[4], f32[4]) {
          z = if c then { return (x, softmax(y, axis=0)) } else { return (y, softmax(x, axis=0)) }
          w = if d then relu(z.0) else z.1
          return (w, z.1)
        }""",
        tuple((c, np.int64(d), numbers(4), numbers(4, seed=3)) for c in (True, False) for d in (0, 1)),
    ),
    Program(
        "converted_sizes",
        """def main(x: f32[n]) -> (f32[], f32[], i64) with (upper_bounds=(("n", 8),)) {
          return (
            builtin.scalar_to_tensor(dim(n * 16777217), dtype(f32)) : f32[],
            builtin.scalar_to_tensor(dim(n - 16777218), dtype(f32)) : f32[],
            dim((n - 7) * (2 - n)) - dim(n * -3)
          )
        }""",
        ((numbers(3),), (numbers(0),), (numbers(8),)),
    ),
    Program(
        "sizes",
        """def main(x: f32[n, m], y: f32[m]) -> (f32[n], i64[2], i64) with (upper_bounds=(("n", 8), ("m", 16))) {
          a = matmul(x, softmax(add(x, y), axis=1), transpose_b=true)
          return (sum(a, axes=(1,)), shape_to_tensor(shape_of(x)), dim(n * 3 + m // 2))
        }""",
        ((numbers(3, 5), numbers(5)), (numbers(8, 16), numbers(16)), (numbers(0, 4), numbers(4))),
    ),
    Program(
        "sizes_that_later_inputs_say",
        "def main(x: f32[n * 2 + m // 3], y: f32[n], z: f32[m]) -> i64[2] { return shape_to_tensor(shape(n, m)) }",
        ((numbers(5), numbers(2), numbers(4)),),
    ),
    Program(
        "inputs_that_are_sizes",
        """def main(n: i64(n), s: shape[n, m], t: (i64(k), f32[n])) -> (i64[3], f32[n], shape[n, m]) {
          return (shape_to_tensor(shape(n, m, k)), t.1, s)
        }""",
        ((3, vm.Shape((3, 5)), (7, numbers(3))),),
    ),
    Program(
        "inputs_whose_types_state_their_values",
        """def main(x: f32[n], t: (i64(n * 2 - 9), f64), k: i64(4)) -> (i64, f64, i64) { return (t.0, t.1, k) }""",
        ((numbers(3), (-3, 0.5), 4), (numbers(3), (-2, 0.5), 4), (numbers(3), (-3, 0.5), 5)),
    ),
    Program(
        "sizes_that_are_checked",
        """def main(x: f32[n], y: f32[m]) -> f32[n] with (upper_bounds=(("n", 8), ("m", 8))) {
          z = match_cast(y, f32[n])
          return add(x, z)
        }""",
        ((numbers(3), numbers(3, seed=2)), (numbers(3), numbers(4))),
    ),
    Program(
        "results_that_are_larger_than_stated",
        """def main(x: f32[n], y: f32[m]) -> (f32[n * 2], f32[2, n]) with (upper_bounds=(("n", 40), ("m", 40))) {
          z = concat(x, y, axis=0)
          return (add(z, z), reshape(negative(z), shape(2, n)))
        }""",
        ((numbers(3), numbers(3, seed=2)), (numbers(3), numbers(30))),
    ),
    Program(
        "a_reshape_of_more_than_there_is_room_for",
        """def main(x: f32[n], y: f32[m]) -> f32[2, n] with (upper_bounds=(("n", 40), ("m", 40))) {
          return reshape(negative(y), shape(2, n))
        }""",
        ((numbers(3), numbers(6)), (numbers(3), numbers(30))),
    ),
    Program(
        "divisors_that_may_be_0",
        """def main(x: f32[n], y: f32[m], c: bool) -> (i64, i64) {
          return if c then (dim(n // m), dim(n % m)) else (1, 2)
        }""",
        tuple((numbers(7), numbers(m), c) for m in (2, 0) for c in (True, False)),
    ),
    Program(
        "functions",
        """def main(x: f32[n, 4], y: f32[k, 4]) -> (f32[n, 4], f32[k, 4]) with (upper_bounds=(("n", 4), ("k", 6))) {
          return (@twice(x), @twice(@twice(y)))
        }
        private def twice(x: f32[n, 4]) -> f32[n, 4] with (inline=false) { return softmax(add(x, x), axis=1) }""",
        ((numbers(2, 4), numbers(6, 4)),),
    ),
    Program(
        "closures",
        """def main(x: f32[n], y: f32[n]) -> f32[n] with (upper_bounds=(("n", 4),)) {
          f = fn (a: f32[n]) -> f32[n] with (inline=false) { return add(a, y) }
          return f(f(x))
        }""",
        ((numbers(3), numbers(3, seed=2)),),
    ),
    Program(
        "closures_of_closures",
        """def main(x: f32[4], y: f32[4]) -> ((f32[4], i64), (f32[4], i64)) {
          f = builtin.make_closure(@minus, y, 7)
          g = builtin.make_closure(builtin.make_closure(@minus, 8), x)
          return (f(x), g(y))
        }
        private def minus(a: f32[4], b: f32[4], k: i64) -> (f32[4], i64) with (inline=false) = (subtract(a, b), k)""",
        ((numbers(4), numbers(4, seed=2)),),
    ),
    Program(
        "loop",
        """def main(x: f32[n], y: f32[n], i: i64) -> (f32[n], f32[n]) with (upper_bounds=(("n", 4),)) {
          return @loop(0, x, y, y, i)
        }
        private def loop(k: i64, a: f32[n], b: f32[n], y: f32[n], i: i64) -> (f32[n], f32[n]) with (inline=false) {
          return if k < i then { return @loop(k + 1, add(a, b), a, y, i) } else { return (add(a, y), b) }
        }""",
        tuple((numbers(3), numbers(3, seed=2), i) for i in (0, 1, 2, 7)),
    ),
    Program(
        "names_that_the_export_could_have_made",
        """def main(out_result: i64, next_k: i64) -> i64 { return @loop(out_result, next_k) }
        private def loop(i: i64, k: i64) -> i64 with (inline=false) {
          next_i = i - 1
          next_k = k + i
          return if i > 0 then { return @loop(next_i, next_k) } else { return k }
        }""",
        ((0, 3), (5, 0)),
    ),
    Program(
        "ways_that_all_go_on",
        """def main(i: i64, x: f32[4]) -> (i64, f32[4]) { return @loop(i, 0, x) }
        private def loop(i: i64, k: i64, x: f32[4]) -> (i64, f32[4]) with (inline=false) {
          return if i > 0 then {
            return if i % 2 == 0 then { return @loop(i // 2, k + 1, negative(x)) }
                   else { return @loop(i - 1, k + 10, x) }
          } else { return (k, x) }
        }""",
        tuple((i, numbers(4)) for i in (0, 1, 6, 7)),
    ),
    Program(
        "changing_places",
        """def main(x: f32[4], y: f32[4], i: i64) -> (f32[4], f32[4]) { return @loop(x, y, i) }
        private def loop(a: f32[4], b: f32[4], i: i64) -> (f32[4], f32[4]) with (inline=false) {
          return if i > 0 then { return @loop(b, a, i - 1) } else { return (a, b) }
        }""",
        tuple((numbers(4), numbers(4, seed=2), i) for i in (0, 1, 4)),
    ),
    Program(
        "functions_in_turn",
        """def main(i: i64, x: f32[4]) -> f32[4] { return @even(i, x, add(x, x)) }
        def even(i: i64, x: f32[4], y: f32[4]) -> f32[4] {
          return if i == 0 then { return x } else { return @odd(i - 1, y, add(x, x)) }
        }
        def odd(i: i64, x: f32[4], z: f32[4]) -> f32[4] {
          return if i == 0 then { return negative(x) } else { return @even(i - 1, z, x) }
        }""",
        tuple((i, numbers(4)) for i in (0, 1, 2, 3, 8, 9)),
    ),
    Program(
        "indices",
        "def main(x: f32[5], at: i64[3]) -> f32[3] { return gather(x, at, axis=0) }",
        ((numbers(5), np.int64([0, -1, 4])), (numbers(5), np.int64([0, 5, 1]))),
    ),
    Program(
        "assertion",
        """def main(i: i64, x: f32[4]) => f32[4] {
          _ = builtin.assert(i > 2, "i is small")
          return relu(x)
        }""",
        ((3, numbers(4)), (2, numbers(4))),
    ),
    Program(
        "dtypes",
        """def main(a: f16[4], b: u8[4], c: f64[4], d: bool[4]) -> (f16[4], i8[4], f64[4], bool[4]) {
          return (add(a, a), cast(subtract(b, b), to="i8"), exp(c), logical_not(d))
        }""",
        (
            (
                np.float16([1, -2, 65504, 0]),
                np.uint8([1, 2, 255, 0]),
                np.float64([0, 1, -1, 700]),
                np.array([True, False, True, True]),
            ),
        ),
    ),
    Program(
        "item",
        """def main(x: f32[], y: i64[]) -> (f64, i64, f32[], i8[]) {
          a = to_scalar(x)
          b = to_scalar(y)
          return (a * 2.0, b - 1, to_tensor(a / 3.0, dtype="f32"), to_tensor(b, dtype="i8"))
        }""",
        ((np.float32(1.25), np.int64(-100)), (np.float32(1.25), np.int64(300))),
    ),
    Program(
        "sizes_that_a_run_finds_out",
        """def main(size: i64[1], x: f32[1]) => f32[] {
          sizes: shape[k] = tensor_to_shape(size)
          _ = builtin.assert(dim(k) <= 16, "k is large")
          y = softmax(multiply(broadcast_to(x, sizes), broadcast_to(x, sizes)), axis=0)
          return sum(softmax(y, axis=0))
        }""",
        tuple((np.int64([k]), numbers(1)) for k in (0, 5, 16, 17, -1)),
    ),
    Program(
        "items_that_are_too_large",
        "def main(x: u64[]) -> i64 { return to_scalar(x) }",
        ((np.uint64(2**63 - 1),), (np.uint64(2**63),), (np.uint64(2**64 - 1),)),
    ),
    Program(
        "sizes_that_are_no_int64",
        """def main(n: i64(n), m: i64(m)) -> (i64, i64, i64) {
          return (dim(n * n), dim(n + m), dim(n * 4 - n * 4 + m // (n + 1)))
        }""",
        ((3, 5), (2**40, 1), (2**62, 2**62), (2**62 + 1, 7), (2**63 - 1, 0)),
    ),
    Program(
        "a_product_that_wraps_around",
        """def main(x: f32[4], i: i64[1], n: i64(n)) => f32[1, 4] {
          y = reshape(x, shape(n, 4))
          return gather(y, i, axis=0)
        }""",
        ((numbers(4), np.int64([0]), 1), (numbers(4), np.int64([1000]), 2**62 + 1)),
    ),
    Program(
        "sizes_at_the_ends_of_int64",
        """def main(k: i64(n), j: i64(m)) -> (i64, i64, i64, i64) {
          return (dim(n + m), dim(n * 2 - m), dim(n % (m * m + 1)), dim(n // m))
        }""",
        (
            (-3, 5),
            (2**63 - 1, -(2**63)),
            (-(2**62), -1),
            (-(2**62), -(2**63)),
            (2**62 - 1, -1),
            (2**62, 1),
            (7, 0),
            (-(2**31), 2**32),
        ),
    ),
    Program(
        "products_of_three_sizes",
        "def main(k: i64(n), j: i64(m), l: i64(p)) -> (i64, i64) { return (dim(n * m * p - 1), dim(5 - n * m)) }",
        (
            (-(2**31), 2**30, 2),
            (-(2**32), 2**30, 2),
            (-(2**32), 2**30, 4),
            (2**31, 2**31, 2),
            (2**31, 2**31, -2),
            (0, 2**63 - 1, 2**63 - 1),
        ),
    ),
    Program(
        "a_quotient_that_is_no_int64",
        "def main(k: i64(n), j: i64(m)) -> i64 { return dim(n // m) }",
        ((-(2**63), 1), (-(2**63), -1), (-(2**63) + 1, -1)),
    ),
    Program(
        "numbers_that_wrap_around",
        """def main(k: i64(n), x: f32[m]) -> (i64, i64, i64) {
          more = k + 1
          return (more, more * 3, dim(m) - k)
        }""",
        ((2**63 - 1, numbers(2)), (-(2**63), numbers(2)), (3, numbers(2))),
    ),
    Program(
        "negative_sizes_of_shapes",
        "def main(x: f32[4], k: i64(n), j: i64(m)) -> f32[] { return sum(reshape(x, shape(n, m))) }",
        ((numbers(4), 2, 2), (numbers(4), -2, -2), (numbers(4), -(2**62), -4), (numbers(4), 1, 3)),
    ),
    Program(
        "a_negative_number_becomes_a_size",
        """def main(i: i64, x: f32[2]) => (i64, f32[2]) {
          k: i64(m) = i
          _ = builtin.assert(dim(m) <= 4, "m is large")
          y = concat(x, broadcast_to(to_tensor(1.0, dtype="f32"), shape(m + 3)), axis=0)
          return (dim(m * 2), broadcast_to(max(y), shape(2)))
        }""",
        tuple((i, numbers(2)) for i in (-3, -4, -1, 4, 5)),
    ),
    Program(
        "an_input_that_is_named_like_a_size",
        """def main(n: f32[], n_size: i64, s: shape[n], t: shape[n_size]) -> (f32[n], i64, i64) {
          return (broadcast_to(n, shape(n)), n_size, dim(n_size))
        }""",
        ((np.float32(5), 7, vm.Shape((3,)), vm.Shape((4,))), (np.float32(5), -7, vm.Shape((0,)), vm.Shape((1,)))),
    ),
    Program(
        "a_number_that_is_named_like_a_size",
        "def main(n: i64, x: f32[n]) -> (f32[n], i64) { return (relu(x), n) }",
        ((2, numbers(3)), (-1, numbers(3))),
    ),
    Program(
        "what_people_would_not_write",
        """def main(x: i64[3], y: u32[3], i: i64, j: i64) -> (i64[], i64[3], u32[3], i64[3]) {
          unread = i // j
          return (max(x), subtract(max(x), x), relu(y), modulo(x, x))
        }""",
        ((np.int64([1, 5, 3]), np.uint32([1, 0, 7]), 4, 2),),
    ),
)
