# ruff: noqa: E731, F821, F823
"""Statements reached by several control flow paths have the same meaning as in Python, and are translated once."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
from support.modes import MODES, run_everywhere, run_script_everywhere

from relvm import script, vm
from relvm.errors import RelvmNameError, RelvmTypeError
from relvm.ir.node import walk
from relvm.ir.printer import print_module
from relvm.runtime.packed_func import register_func

_numbers = itertools.count()


def read(tmp_path, text: str):
    """Write `text` to a new Python file, import it, and return the script `f`."""
    name = f"ways_{next(_numbers)}"
    path = tmp_path / f"{name}.py"
    path.write_text(f"from __future__ import annotations\nfrom relvm import script\n\n@script\n{text}")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def ifs_in_a_loop(count: int) -> str:
    body = "".join(
        f"        if i % {k + 2} == 0:\n"
        f"            total += {k}\n"
        f"            if total > 90:\n"
        f"                break\n"
        f"        elif total % 7 == 3:\n"
        f"            if i == {k}:\n"
        f"                continue\n"
        f"            total += i\n"
        f"        else:\n"
        f"            total -= 1\n"
        for k in range(count)
    )
    return f"def f(n: i64) -> i64:\n    total = 0\n    for i in range(n):\n{body}        total += i\n    return total\n"


def ifs_that_return(count: int) -> str:
    body = "".join(
        f"    if n > {k}:\n"
        f"        if total > {k * 9}:\n"
        f"            return {k}\n"
        f"        n -= total\n"
        f"    else:\n"
        f"        total += n\n"
        for k in range(count)
    )
    return f"def f(n: i64) -> i64:\n    total = 1\n{body}    return n + total\n"


def loops_that_return(count: int) -> str:
    body = "".join(
        f"    for i in range({k + 2}):\n"
        f"        if total > i * 100:\n"
        f"            return {k}\n"
        f"        if n == i:\n"
        f"            break\n"
        f"        total += i\n"
        for k in range(count)
    )
    return f"def f(n: i64) -> i64:\n    total = 0\n{body}    return total\n"


@pytest.mark.parametrize("program", [ifs_in_a_loop, ifs_that_return, loops_that_return])
def test_the_size_of_the_ir_is_linear_in_that_of_the_script(program, tmp_path) -> None:
    nodes = {count: sum(1 for _ in walk(read(tmp_path, program(count)).module)) for count in (5, 10, 20)}
    assert nodes[20] - nodes[10] == 2 * (nodes[10] - nodes[5])
    assert nodes[20] < 5 * nodes[5]


@pytest.mark.parametrize("program", [ifs_in_a_loop, ifs_that_return, loops_that_return])
def test_many_ways_in_a_row_mean_what_python_means(program, tmp_path) -> None:
    function = read(tmp_path, program(12))
    for n in (-3, 0, 1, 5, 11, 40):
        run_script_everywhere(function, n)


def test_what_one_way_leads_to_is_no_function() -> None:
    @script
    def main(n: i64):
        if n > 3:
            return n
        n += 2
        if n < 0:
            n = -n
        else:
            return n * 2
        return n + 1

    run_script_everywhere(main, 5)
    run_script_everywhere(main, 1)
    run_script_everywhere(main, -9)
    assert "fn" not in print_module(main.module)


def test_the_rest_is_a_local_function_of_the_names_that_the_ways_set() -> None:
    @script
    def main(n: i64, m: i64):
        kept = n * m
        if n > 3:
            n = n * 2
            if n > m:
                return 0
        else:
            n = m
        return n + m + kept

    for n, m in [(1, 7), (4, 7), (4, 9)]:
        run_script_everywhere(main, n, m)
    assert print_module(main.module).count("rest: (i64) -> i64 = fn rest(") == 1


@script
def ways_out_of_loops(n: i64, wanted: i64) -> (i64, i64, i64):
    seen = 0
    where = -1
    for i in range(n):
        j = i
        while True:
            if j * j > wanted:
                found = j
                if i == 3:
                    where = i
                    break
                seen += found
            elif i + j == wanted:
                found = -j
                break
            else:
                if seen > 50:
                    return (i, j, seen)
                found = 0
            j += 1
            if j > 2 * n:
                break
        seen += found + j
        if where > 0:
            continue
        seen += 1
    return (seen, where, n)


@pytest.mark.parametrize("n", [0, 1, 4, 7])
@pytest.mark.parametrize("wanted", [0, 3, 5, 30])
def test_a_loop_inside_a_loop_with_many_ways_out(n, wanted) -> None:
    run_script_everywhere(ways_out_of_loops, n, wanted)


def test_a_loop_that_only_breaks_end_sets_names() -> None:
    @script
    def main(n: i64):
        i = 0
        while True:
            i += 1
            if i * i > n:
                last = i
                half = i / 2
                break
            if i == 5:
                last, half = -1, 0.5
                break
        return (last, half)

    for n in (0, 7, 24, 25, 1000):
        run_script_everywhere(main, n)


def test_a_loop_that_only_breaks_end_sets_names_for_what_returns() -> None:
    @script
    def main(n: i64) -> i64:
        i = 0
        while True:
            i += 1
            twice = 2 * i
            if twice == n:
                return -1
            if twice > n:
                break
        return twice * i

    for n in (-4, 0, 6, 7):
        run_script_everywhere(main, n)


def test_a_tensor_is_first_set_in_a_loop() -> None:
    @script
    def main(x: f32[n], k: i64):
        y = x
        while True:
            z = concat(y, x, axis=0)
            k -= 1
            if k <= 0:
                break
            y = z
        return z

    x = np.float32([1, 2])
    assert run_everywhere(main.module, x, 3, name="main").tolist() == [1, 2] * 4
    assert run_everywhere(main.module, x, 0, name="main").tolist() == [1, 2] * 2


def test_a_name_that_some_way_does_not_set_is_told() -> None:
    @script
    def by_break(n: i64):
        while True:
            n += 1
            if n % 7 == 0:
                last = n
                break
            if n % 5 == 0:
                break
        return last

    @script
    def by_no_round(n: i64):
        while n > 0:
            n -= 1
            last = n
        return last

    @script
    def by_if(n: i64):
        for i in range(n):
            if i > 3:
                if i > 5:
                    continue
                last = i
            elif i == 2:
                n += 1
            n += last
        return n

    @script
    def kinds(n: i64):
        for i in range(n):
            if i > 3:
                if i > 5:
                    continue
                last = i
            else:
                last = 0.5
            n += last
        return n

    for function, error, message in [
        (by_break, RelvmNameError, "last is assigned only on some paths out of the loop at line"),
        (by_no_round, RelvmNameError, "last is assigned only in the loop at line .*, which may run zero iterations"),
        (by_if, RelvmNameError, "last is assigned only on some paths of the if at line"),
        (kinds, RelvmTypeError, r"last is i64 on one path but f64 on another \(the if at line"),
    ]:
        with pytest.raises(error, match=message):
            function.module  # noqa: B018


kept = 5


def test_a_name_that_a_function_assigns_is_its_own_throughout() -> None:
    @script
    def by_return(n: i64):
        if n > 3:
            kept = n
            return kept
        return kept

    @script
    def by_order(n: i64):
        k = kept + n
        kept = 3  # noqa: F841
        return k

    @script
    def by_round(n: i64):
        for i in range(n):
            if i > 0:
                n += kept
            kept = i  # noqa: F841
        return n

    @script
    def by_closure(n: i64):
        k = n

        def g(a: i64) -> i64:
            k = k + a
            return k

        return g(n)

    @script
    def by_dimension(x: f32[n]):
        n = n + 1
        return n

    for function, name in [
        (by_return, "kept"),
        (by_order, "kept"),
        (by_round, "kept"),
        (by_closure, "k"),
        (by_dimension, "n"),
    ]:
        with pytest.raises(RelvmNameError, match=f"{name} has no value here; it is assigned later or on other"):
            function.module  # noqa: B018


def test_a_name_of_two_kinds_that_nothing_uses_is_no_error() -> None:
    @script
    def main(n: i64):
        if n > 3:
            x = 1
        else:
            x = 0.5
        x = n
        return x

    run_script_everywhere(main, 2)


def test_values_of_python_meet_where_they_agree() -> None:
    weights, others = np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32)

    @script
    def main(x: f32[2, 2], n: i64):
        if n > 3:
            step, name, w, pair = 2, "a", weights, (1, n)
            if n > 9:
                return (x, n)
        else:
            step, name, w, pair = 2, "a", others, (n, 1)
        total = 0
        for i in range(0, n, step):
            total += i
        return (x @ w, total + pair[1] if name == "a" else 0)

    x = np.float32([[1, 2], [3, 4]])
    for n, product, total in [(10, x, 10), (4, x, 6), (3, x @ others, 3)]:
        result = run_everywhere(main.module, x, n, name="main")
        np.testing.assert_array_equal(result[0], product)
        assert result[1] == total


def test_values_of_python_that_differ_are_told_where_they_are_used() -> None:
    @script
    def names(n: i64):
        if n > 3:
            name = "a"
        else:
            name = [1, 2]
        return (n, name)

    @script
    def lambdas(n: i64):
        if n > 3:
            f = lambda a: a + 1
        else:
            f = lambda a: a + 2
        return f(n)

    for function, message in [
        (names, "a Python list cannot be a value of the program"),
        (lambdas, "the parameter types of this lambda are unknown; define the function with def"),
    ]:
        with pytest.raises(RelvmTypeError, match=message):
            function.module  # noqa: B018


def test_tensors_of_different_sizes_meet() -> None:
    @script
    def main(x: f32[n, m], c: i64) -> f32[_, _]:
        y = x
        if c > 0:
            if c > 5:
                return x * 2
            y = concat(x, x, axis=0)
            k = m
        else:
            y = transpose(x, perm=(1, 0))
            k = n
        return y * k

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for c, expected in [(7, x * 2), (1, np.concatenate([x, x]) * 3), (0, x.T * 2)]:
        np.testing.assert_array_equal(run_everywhere(main.module, x, c, name="main"), expected)


def test_a_closure_and_a_lambda_pass_the_place_where_ways_meet() -> None:
    @script
    def main(n: i64, m: i64) -> i64:
        total = 0
        add = lambda a: a + m
        for i in range(n):

            def scaled(a: i64) -> i64:
                return a * i + m  # noqa: B023

            if i % 2 == 0:
                if i == m:
                    continue
                total = scaled(total)
            else:
                total += 1
            total = add(scaled(total)) % 1000
        return total

    for n, m in [(0, 1), (5, 2), (9, 4)]:
        run_script_everywhere(main, n, m)


@pytest.mark.parametrize("mode", MODES)
def test_effects_after_ways_that_meet_are_once_and_in_order(mode) -> None:
    log: list[int] = []
    register_func("test.ways.log", lambda i: log.append(i), override=True)

    @script
    def main(n: i64):
        for i in range(n):
            if i % 2 == 0:
                if i == 4:
                    continue
                packed("test.ways.log", i)
            else:
                if i == 7:
                    break
                packed("test.ways.log", -i)
            packed("test.ways.log", 100 + i)
        packed("test.ways.log", 1000)
        return n

    machine = vm.VirtualMachine(vm.build(main.module, mode, "numpy"))
    for n in (0, 3, 6, 20):
        log.clear()
        assert machine["main"](n) == n
        expected = []
        for i in range(n):
            if i == 4:
                continue
            if i == 7:
                break
            expected += [i if i % 2 == 0 else -i, 100 + i]
        assert log == [*expected, 1000]


@pytest.mark.parametrize("mode", MODES)
def test_rounds_with_many_ways_need_no_room(mode, tmp_path) -> None:
    text = """def f(n: i64) -> i64:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            if i % 5 == 0:
                continue
            total += 1
        elif total < 0:
            return -1
        else:
            total += 2
        total -= i % 2
    return total
"""
    function = read(tmp_path, text)
    machine = vm.VirtualMachine(vm.build(function.module, mode, "numpy"), stack_values=64, call_depth=4)
    assert machine["f"](1_000_000) == function.python(1_000_000)


@pytest.mark.parametrize(("word", "value"), [("and", 401), ("or", 0)])
def test_a_long_chain_of_and_or_or(word, value, tmp_path) -> None:
    sign = "!=" if word == "and" else "=="
    tests = f" {word} ".join(f"n {sign} {k}" for k in range(400))
    function = read(tmp_path, f"def f(n: i64):\n    return {tests}\n")
    machine = vm.VirtualMachine(vm.build(function.module, "bytecode", "numpy"))
    for n in (-1, 0, 1, 199, 200, 398, 399, 400):
        assert machine["f"](n) is function.python(n)


def test_operands_of_a_long_chain_are_computed_in_order_and_only_as_needed() -> None:
    log: list[int] = []
    register_func("test.ways.seen", lambda i: log.append(i) or i, override=True)

    @script
    def main(n: i64):
        return (
            packed("test.ways.seen", n, result="i64") != 1
            and packed("test.ways.seen", n + 1, result="i64") != 3
            and packed("test.ways.seen", n + 2, result="i64") != 5
            and packed("test.ways.seen", n + 3, result="i64") != 7
            and packed("test.ways.seen", n + 4, result="i64") != 9
        )

    machine = vm.VirtualMachine(vm.build(main.module, "bytecode", "numpy"))
    for n in range(7):
        log.clear()
        assert machine["main"](n) is (not 1 <= n <= 5)
        assert log == list(range(n, 2 * n if 1 <= n <= 5 else n + 5))
