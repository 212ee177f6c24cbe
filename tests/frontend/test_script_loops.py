# ruff: noqa: F821, F722
"""Tests of loops and scalars in scripts: a function has the same results as a script and as Python."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import MODES, run_everywhere, run_script_everywhere

from relvm import script, vm
from relvm.errors import RelvmArithmeticError, RelvmNameError, RelvmSyntaxError, RelvmTypeError
from relvm.ir.printer import print_module
from relvm.runtime.packed_func import register_func


@script
def sum_to(n: i64) -> i64:
    total = 0
    i = 0
    while i < n:
        total += i
        i += 1
    return total


@script
def collatz(n: i64):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@script
def nested(n: i64):
    total = 0
    for i in range(n):
        for j in range(i, n, 2):
            if j == 5:
                continue
            if j > 7:
                break
            total += i * j
    return total


@script
def first_divisor(n: i64) -> i64:
    for d in range(2, n):
        if n % d == 0:
            return d
    return n


@script
def search(n: i64, wanted: i64) -> (i64, i64):
    count = 0
    for i in range(n):
        for j in range(n):
            count += 1
            if i * j == wanted:
                return (i, j)
            if i * j > wanted:
                break
        else_ = count
        count = else_ + 100
    return (count, -1)


@script
def backwards(n: i64):
    digits = 0
    for i in range(n, 0, -3):
        digits = digits * 10 + i % 10
    return digits


@script
def last_of_loop(n: i64):
    i = -1
    for i in range(n):  # noqa: B007
        pass
    return i


@script
def forever(n: i64):
    while True:
        n = n * 3 + 1
        if n > 1000:
            break
    return n


@script
def newton(x: f64):
    guess = x
    error = 1.0
    rounds = 0
    while error > 1e-12 and rounds < 50:
        following = (guess + x / guess) / 2
        error = max(following - guess, guess - following)
        guess = following
        rounds += 1
    return (guess, rounds)


@script
def logic(a: i64, b: f64, c: bool):
    inside = 0 < a < 10 <= b
    either = a > 5 or b > 5.0 or not c
    both = c and a != 0 and 10 // a > 2
    mixed = a + b * 2 - 1
    return (inside, either, both, mixed, ~a, -b, a & 3 | 4, a << 2 >> 1, a ^ 5, int(b), float(a), bool(a))


@script
def conditional_values(n: i64):
    evens = 0
    odds = 0
    for i in range(n):
        evens, odds = (evens + i, odds) if i % 2 == 0 else (evens, odds + i)
    return (evens, odds)


@script
def two_loops(n: i64):
    a = 0
    for i in range(n):
        a += i
    b = 1
    while b < a:
        b *= 2
    return (a, b)


@script
def mutual(n: i64):
    def even(k: i64) -> bool:
        if k == 0:
            return True
        return odd(k - 1)

    def odd(k: i64) -> bool:
        if k == 0:
            return False
        return even(k - 1)

    return (even(n), odd(n))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
@pytest.mark.parametrize(
    "function", [sum_to, nested, first_divisor, backwards, last_of_loop, conditional_values, two_loops, mutual, forever]
)
def test_a_loop_means_what_python_means(function, n) -> None:
    run_script_everywhere(function, n)


@pytest.mark.parametrize("n", [1, 6, 27])
def test_a_while_with_an_if(n) -> None:
    run_script_everywhere(collatz, n)


@pytest.mark.parametrize(("n", "wanted"), [(0, 3), (4, 6), (4, 7), (5, 0), (3, 100)])
def test_a_return_from_inside_two_loops(n, wanted) -> None:
    run_script_everywhere(search, n, wanted)


def test_floats_converge() -> None:
    run_script_everywhere(newton, 2.0)
    run_script_everywhere(newton, 1e6)


@pytest.mark.parametrize("a", [-7, 0, 3, 12])
@pytest.mark.parametrize("b", [-2.5, 0.0, 10.0, 11.5])
@pytest.mark.parametrize("c", [True, False])
def test_operators_mean_what_python_means(a, b, c) -> None:
    run_script_everywhere(logic, a, b, c)


def test_the_smallest_and_largest_of_many_scalars() -> None:
    @script
    def main(a: i64, b: i64, c: f64):
        return (min(a, b, 3), max(a, b, 7, a * b), max(a, c, b, 2.5), min(c, c, c + a))

    for a, b, c in [(1, 2, 3.0), (9, -4, -0.5), (5, 5, 5.0)]:
        run_script_everywhere(main, a, b, c)


def test_and_does_not_compute_what_it_does_not_need() -> None:
    @script
    def guarded(a: i64, b: i64):
        return b != 0 and a // b > 1

    @script
    def unguarded(a: i64, b: i64):
        return a // b > 1

    run_script_everywhere(guarded, 4, 0)
    run_script_everywhere(guarded, 4, 2)
    with pytest.raises(RelvmArithmeticError):
        vm.VirtualMachine(vm.build(unguarded.module, target="numpy"))["unguarded"](4, 0)


def test_a_comparison_in_a_chain_may_hold_another() -> None:
    @script
    def nested_chain(a: i64, b: i64, c: i64) -> bool:
        return a < b < (10 if a < c < 100 else 0)

    for operands in [(1, 5, 50), (1, 5, 500), (9, 5, 50), (1, 50, 50)]:
        run_script_everywhere(nested_chain, *operands)


@pytest.mark.parametrize("mode", MODES)
def test_the_operands_of_a_chain_are_computed_in_order(mode) -> None:
    log: list[int] = []
    register_func("test.loops.seen", lambda i: log.append(i) or i, override=True)

    @script
    def main(a: i64, b: i64, c: i64):
        return (
            packed("test.loops.seen", a, result="i64")
            < packed("test.loops.seen", b, result="i64")
            < packed("test.loops.seen", c, result="i64")
        )

    machine = vm.VirtualMachine(vm.build(main.module, mode, "numpy"))
    assert machine["main"](1, 2, 3) and log == [1, 2, 3]
    log.clear()
    assert not machine["main"](2, 1, 3) and log == [2, 1]


def test_and_and_or_of_python_values_give_the_one_that_decides() -> None:
    zero, name = 0, "x"

    @script
    def main(a: i64):
        rounds = zero or 3
        both = name and 5
        return (a + rounds + both, zero or a > 2, zero and a > 2)

    run_script_everywhere(main, 2)
    run_script_everywhere(main, 3)


def test_ranges_end_at_the_largest_integer() -> None:
    @script
    def count(start: i64, stop: i64):
        rounds = 0
        for _i in range(start, stop, 5):
            rounds += 1
        return rounds

    run_script_everywhere(count, 2**63 - 12, 2**63 - 1)
    run_script_everywhere(count, 3, -3)


def test_dimensions_are_scalars() -> None:
    @script
    def main(x: f32[n, m]):
        y = x
        for i in range(n):
            y = y + i
        scale = m * 2 + x.shape[0]
        return (y * scale, reshape(y, (n * m,)), scale, x.ndim)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y, flat, scale, rank = run_everywhere(main.module, x, name="main")
    assert (scale, rank) == (8, 2)
    np.testing.assert_array_equal(y, (x + 1) * 8)
    np.testing.assert_array_equal(flat, (x + 1).ravel())


def test_long_arithmetic_on_dimensions_is_that_of_scalars() -> None:
    rounds = list(range(30))

    @script
    def main(x: f32[n, m]):
        product = n + m
        for k in rounds:
            product = product * (n + k) % 1009
        power = (n + 3) * (m + 5) * (n + 7) * (m + 9) * (n + 11) * (m + 13) * (n + 15) * (m + 17) * (n + 19)
        halves = n
        for _k in rounds:
            halves = halves + halves // 2
        return (product, power, halves, n * (2**62) - n * (2**62 - 1))

    def expected(n: int, m: int):
        product, halves = n + m, n
        for k in range(30):
            product = product * (n + k) % 1009
            halves = halves + halves // 2
        power = (n + 3) * (m + 5) * (n + 7) * (m + 9) * (n + 11) * (m + 13) * (n + 15) * (m + 17) * (n + 19)
        return (product, power, halves, n)

    assert run_everywhere(main.module, np.zeros((2, 3), np.float32), name="main") == expected(2, 3)


def test_tensors_are_carried_and_grow() -> None:
    @script
    def main(x: f32[n], rounds: i64):
        y = x
        for _i in range(rounds):
            y = concat(y, x, axis=0)
        return y

    x = np.float32([1, 2])
    assert run_everywhere(main.module, x, 3, name="main").tolist() == [1, 2] * 4
    assert "y: f32[_]" in print_module(main.module)


def test_a_tensor_grows_around_a_loop_with_a_return() -> None:
    @script
    def main(x: f32[n], rounds: i64) -> f32[_]:
        y = x
        total = 0
        for i in range(rounds):
            for j in range(3):
                if i * j == 4:
                    return concat(y, y, axis=0)
                total += j
            y = concat(y, x * total, axis=0)
        return y

    x = np.float32([1, 2])
    assert run_everywhere(main.module, x, 2, name="main").tolist() == [1, 2, 3, 6, 6, 12]
    assert run_everywhere(main.module, x, 9, name="main").tolist() == [1, 2, 3, 6, 6, 12] * 2


def test_a_name_that_is_unset_before_an_if_may_be_set_after_it() -> None:
    @script
    def main(n: i64):
        for i in range(n):
            last = i
        if n > 3:
            last = 7
            n += last
        last = n + 1
        return last

    run_script_everywhere(main, 2)
    run_script_everywhere(main, 5)


def test_a_tensor_counts() -> None:
    @script
    def main(x: f32[n], times: "i64[]"):
        k = int(times)
        total = 0.0
        while k > 0:
            total += float(sum(x))
            k -= 1
        return (total, f32(total), x * k)

    x = np.float32([1, 2])
    total, as_tensor, zeros = run_everywhere(main.module, x, np.int64(3), name="main")
    assert total == 9.0 and as_tensor.dtype == np.float32 and float(as_tensor) == 9.0 and zeros.tolist() == [0, 0]


def test_a_loop_over_a_list_of_python_is_unrolled() -> None:
    weights = [np.eye(2, dtype=np.float32) * k for k in (2, 3)]

    @script
    def main(x: f32[n, 2]):
        for w in weights:
            x = relu(x @ w)
        for a, b in ((1, 2), (3, 4)):
            x = x + a * b
        return x

    x = np.float32([[1, -1]])
    assert run_everywhere(main.module, x, name="main").tolist() == [[20, 14]]


def test_effects_of_a_loop_are_in_order() -> None:
    log: list[int] = []
    register_func("test.loops.log", lambda i: log.append(i), override=True)

    @script
    def main(n: i64):
        for i in range(n):
            if i % 2 == 1:
                packed("test.loops.log", i)
            for j in range(i):
                packed("test.loops.log", 10 * i + j)
        return n

    for mode in MODES:
        log.clear()
        vm.VirtualMachine(vm.build(main.module, mode, "numpy"))["main"](4)
        assert log == [1, 10, 20, 21, 3, 30, 31, 32]


@pytest.mark.parametrize("mode", MODES)
def test_ten_million_rounds_need_no_room(mode) -> None:
    machine = vm.VirtualMachine(vm.build(sum_to.module, mode, "numpy"), stack_values=64, call_depth=4)
    assert machine["sum_to"](10_000_000) == 10_000_000 * 9_999_999 // 2


def test_what_a_loop_cannot_be_is_told() -> None:
    @script
    def changes(n: i64):
        x = n
        for i in range(n):
            x = i * 0.5
        return x

    @script
    def unset(n: i64):
        for i in range(n):
            last = i
        return last

    @script
    def dimension(x: f32[n]):
        while n > 0:
            n = n - 1  # noqa: F841
        return x

    @script
    def untyped(n: i64):
        for i in range(n):
            if i == 3:
                return i
        return n

    @script
    def sizes(x: f32[n], rounds: i64):
        y = x
        for _i in range(rounds):
            y = concat(y, x, axis=0)
        return y.shape[0]

    @script
    def ends(n: i64):
        while n > 0:
            n -= 1
        else:
            n = 7
        return n

    @script
    def step(n: i64):
        for _i in range(0, n, n):
            pass
        return n

    for function, error, message in [
        (changes, RelvmTypeError, "x is i64 before the loop but f64 after an iteration"),
        (unset, RelvmNameError, "last is assigned only in the loop at line"),
        (dimension, RelvmNameError, "n has no value here; it is assigned later or on other paths"),
        (untyped, RelvmTypeError, "a return inside a loop requires an annotated result type"),
        (sizes, RelvmTypeError, r"the shape of f32\[_\] is unknown"),
        (ends, RelvmSyntaxError, "the else clause of a loop"),
        (step, RelvmTypeError, "the step of a range must be a nonzero integer known at translation time"),
    ]:
        with pytest.raises(error, match=message):
            function.module  # noqa: B018


def test_a_loop_is_a_local_function_that_calls_itself() -> None:
    text = print_module(sum_to.module)
    assert "loop: (i64, i64) -> i64 = fn loop(total: i64, i: i64) -> i64 {" in text
    listing = vm.build(sum_to.module, target="numpy").as_text()
    assert "tail_call" in listing
