"""Time limits and Ctrl-C end a run soon, even during the most expensive calls of builtins and in long code.

The goal is 50 ms after the limit on an idle machine.  These tests allow one second, because the machine may be busy.
None of the runs would end by itself.  benchmarks/latency.py measures how soon other runs end.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.asm_printer import HEADLINE
from relvm.bytecode.program import Shape
from relvm.errors import RelvmMemoryError, RelvmShapeError, RelvmTimeoutError
from relvm.runtime.executable import Executable
from relvm.runtime.invoke import Invoker
from relvm.runtime.packed_func import register_func, unregister_func
from relvm.runtime.virtual_machine import VirtualMachine
from relvm.tables import BUILTINS, PATTERNS, TYPE_CODES, numbers

LIMIT, SOON = 0.1, 5.0
_TYPES, _PATTERNS = numbers(TYPE_CODES), numbers(PATTERNS)


def machine_of(*functions: str, constants: str = "", **options: float) -> VirtualMachine:
    """Return a machine with all builtins and the given functions, each in the text form of bytecode listings."""
    table = [f"packed vm.builtin.{row.name}" for row in BUILTINS]
    text = "\n".join(f"f{index} = {entry}" for index, entry in enumerate([*table, *functions]))
    executable = Executable.from_program(parse_text(f"{HEADLINE}\n{constants}\n{text}\n"))
    return VirtualMachine(executable, num_threads=1, **options)


def again_and_again(name: str, parameters: int, more: str = "", context: bool = False) -> str:
    """Return a function that calls a builtin in an infinite loop.

    The arguments of the call are the parameters of the function, followed by `more`.   name: the name of the builtin.
    parameters: the number of parameters.   context: whether the builtin has the machine's context as first argument.
    """
    names = [f"p{index}" for index in range(parameters)]
    arguments = ", ".join(["ctx"] * context + [f"r{index}" for index in range(parameters)] + [more] * bool(more))
    return (
        f"bytecode main({', '.join(names)}) registers {parameters + 1}\n"
        f"  0: call r{parameters} = vm.builtin.{name}({arguments})\n"
        f"  1: goto -> 0"
    )


def bound(count: int) -> str:
    """Return a function of `count` parameters, which returns a closure of main that captures these values."""
    names, values = (", ".join(f"{letter}{index}" for index in range(count)) for letter in "pr")
    return (
        f"bytecode bound({names}) registers {count + 1}\n"
        f"  0: call r{count} = vm.builtin.make_closure(f{len(BUILTINS)}, {values})\n"
        f"  1: ret r{count}"
    )


def strings(*texts: str) -> np.ndarray:
    return np.array(texts, object)


MANY = 1 << 21  # number of items or elements


@cache
def many_strings() -> np.ndarray:
    return np.full(MANY, "a", object)


@cache
def many_items() -> list:
    return [0] * MANY


def text(size: int) -> np.ndarray:
    return np.array("a" * size, object)


ONES = np.ones(1 << 22, np.uint8)
PIECES = np.ones((1 << 21, 1, 2), np.uint8)  # concatenation along axis 1 copies two bytes at a time
DEEP = (1,) * 62
# a*b, as rows of csrc/tables/regex_opcodes.def
AB = np.array(
    [
        [_PATTERNS["SPLIT"], 1, 4],
        [_PATTERNS["SET"], 1, 0],
        [_PATTERNS["RANGE"], ord("a"), ord("a")],
        [_PATTERNS["JUMP"], 0, 0],
        [_PATTERNS["SET"], 1, 0],
        [_PATTERNS["RANGE"], ord("b"), ord("b")],
        [_PATTERNS["MATCH"], 0, 0],
    ],
    np.int64,
)

# For each builtin, the text of its last arguments, and the values of its other arguments, without the context.
CASES: dict[str, Callable[[], tuple]] = {
    "alloc_storage": lambda: ("0, f32", Shape([1] * MANY)),
    "alloc_shape_heap": lambda: ("", 1 << 16),
    "check_elements": lambda: ("", np.zeros(1 << 22, bool), ONES, ONES, "checked"),
    "tensor_to_shape": lambda: ("", np.ones(MANY, np.int64)),
    "shape_to_tensor": lambda: ("", Shape([1] * MANY)),
    "list_append": lambda: ("1", many_items()),
    "list_insert": lambda: ("0, 1", many_items()),
    "list_erase": lambda: ("0", many_items()),
    "list_concat": lambda: ("1", [PIECES, PIECES]),
    "list_stack": lambda: ("-1", [ONES, ONES]),
    "list_split": lambda: ("1, 0", ONES),
    "list_unstack": lambda: ("0", ONES),
    "string_positions": lambda: ("", many_strings()),
    "string_take": lambda: ("", np.zeros(MANY, np.int64), many_strings()),
    "string_equal": lambda: ("", many_strings().reshape(*DEEP, -1), many_strings().reshape(*DEEP, -1)),
    "string_concat": lambda: ("", many_strings(), text(1000)),
    "string_lookup": lambda: ("", many_strings(), strings("b", "c" * 8), np.zeros(1, np.int64)),
    "string_case": lambda: ("1", text(1 << 24)),
    "string_split": lambda: ("-1", text(1 << 24), text(1 << 12)),
    "string_part_count": lambda: ("-1", text(1 << 24), np.array("a" * (1 << 20) + "b", object)),
    "string_match": lambda: ("", text(1 << 24), AB),
    "string_tokens": lambda: ("", text(1 << 20), AB),
    "string_of_number": lambda: ("", np.full(MANY, 1e-300)),
    "string_to_number": lambda: ("f64", np.full(MANY, "1e-300", object)),
    "expand": lambda: ("", np.ones((1 << 20, 1), np.uint8), Shape([1 << 20, 8])),
    "unshare_tensor": lambda: ("", np.ones(1 << 24, np.uint8)),
    "update_tensor": lambda: ("", np.ones(1 << 24, np.uint8), np.zeros(1 << 24, np.uint8)),
}
WITH_CONTEXT = {
    "alloc_storage",
    "alloc_shape_heap",
    "list_concat",
    "list_stack",
    "list_split",
    "list_unstack",
    "expand",
    "unshare_tensor",
    "update_tensor",
}


def worst_case(name: str) -> tuple[str, str, tuple]:
    """Return the constants, the function and the arguments of an infinite run that calls the builtin `name`."""
    more, *arguments = CASES[name]()
    constants = ""
    if "f32" in more or "f64" in more:
        constants, more = f"c0 = dtype {more[-3:]}", more[:-3] + "c0"
    return constants, again_and_again(name, len(arguments), more, name in WITH_CONTEXT), tuple(arguments)


def pushes() -> tuple[str, str, tuple]:
    """Append to a list in place."""
    function = "bytecode main(list) registers 1\n  0: call r0 = vm.builtin.list_push(r0, 1)\n  1: goto -> 0"
    return "", function, ([],)


def closures() -> tuple[str, str, tuple]:
    """Create a closure of the previous closure, and so on.  Each closure captures one more value than the previous."""
    function = (
        "bytecode main(x) registers 1\n"
        f"  0: call r0 = vm.builtin.make_closure(f{len(BUILTINS)}, 1)\n"
        "  1: call r0 = vm.builtin.make_closure(r0, 1)\n"
        "  2: goto -> 1"
    )
    return "", function, (1,)


def types() -> tuple[str, str, tuple]:
    """Check that a value is a list of lists.  The value contains half a million lists."""
    ints = ", ".join([str(_TYPES["LIST"])] * 2 + [str(_TYPES["ANY"])])
    function = again_and_again("match_type", 1, f"nil, c0, {ints}")
    return 'c0 = string "x"', function, ([[1] for _ in range(MANY // 4)],)


def long_code() -> tuple[str, str, tuple]:
    lines = [
        "bytecode main(x) registers 2",
        *(f"  {k}: prim r1 = add_i64(r0, 1)" for k in range(100_000)),
        "  100000: goto -> 0",
    ]
    return "", "\n".join(lines), (1,)


def long_calls() -> tuple[str, str, tuple]:
    """Call a builtin with 100,000 arguments."""
    arguments = ", ".join(["r0"] * 100_000)
    function = f"bytecode main(x) registers 2\n  0: call r1 = vm.builtin.make_list({arguments})\n  1: goto -> 0"
    return "", function, (1,)


def calls_by_name() -> tuple[str, str, tuple]:
    """Call a host function by its name with the builtin call_py_func."""
    function = again_and_again("call_py_func", 1, context=True).replace("(ctx, r0)", "(ctx, c0, r0)")
    return 'c0 = string "test.worst_cases.short"', function, (1,)


def slow_calls() -> tuple[str, str, tuple]:
    """Call host functions that take a long time each."""
    function = (
        "bytecode main(x) registers 2\n"
        "  0: call r1 = vm.builtin.call_py_func(ctx, c0, r0)\n"
        "  1: call r1 = vm.builtin.invoke_closure(ctx, r0)\n"
        "  2: goto -> 0"
    )
    return 'c0 = string "test.worst_cases.short"', function, (lambda: time.sleep(0.2),)


def captures() -> tuple[str, str, tuple]:
    """Call a closure of a builtin with 300,001 captured values, although the call itself has no arguments."""
    positions = [row.name for row in BUILTINS].index("string_positions")
    more = ", ".join(["r0"] * 100_000)
    function = "\n".join(
        [
            "bytecode main(x) registers 3",
            f"  0: call r1 = vm.builtin.make_closure(f{positions}, r0)",
            *(f"  {k}: call r1 = vm.builtin.make_closure(r1, {more})" for k in range(1, 4)),
            "  4: call r2 = vm.builtin.invoke_closure(ctx, r1)",
            "  5: goto -> 4",
        ]
    )
    return "", function, (np.zeros(0),)


OTHERS = {
    "call_py_func": calls_by_name,
    "slow calls": slow_calls,
    "captures": captures,
    "list_push": pushes,
    "make_closure": closures,
    "match_type": types,
    "long code": long_code,
    "long calls": long_calls,
}


@pytest.fixture(scope="module", autouse=True)
def functions_of_the_host() -> Iterator[None]:
    register_func("test.worst_cases.short", lambda x: time.sleep(0.001))
    yield
    unregister_func("test.worst_cases.short")


def control_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("way", ["max_seconds", "Ctrl-C"])
@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_it_ends_soon_after_the_limit(name: str, way: str) -> None:
    constants, function, arguments = OTHERS[name]() if name in OTHERS else worst_case(name)
    options = {"max_seconds": LIMIT} if way == "max_seconds" else {}
    machine = machine_of(function, bound(len(arguments)), constants=constants, **options)
    run = machine["bound"](*arguments)  # converts the arguments, so that the conversion does not count
    timer = threading.Timer(LIMIT, control_c) if way == "Ctrl-C" else None
    began = time.monotonic()
    if timer:
        timer.start()
    with pytest.raises(RelvmTimeoutError if way == "max_seconds" else KeyboardInterrupt):
        run()
    assert time.monotonic() - began < LIMIT + SOON


def test_printing_counts_as_a_call_of_the_host() -> None:
    """Each call of the hook takes a millisecond.

    If such a call counted as a single step, the time limit would be checked only after about a minute.
    """
    function = again_and_again("print", 1, context=True)
    machine = machine_of(function, max_seconds=LIMIT, print_hook=lambda x: time.sleep(0.001))
    began = time.monotonic()
    with pytest.raises(RelvmTimeoutError):
        machine["main"](1)
    assert time.monotonic() - began < LIMIT + SOON


LONG = 1 << 27  # size in bytes
LONG_COPIES: dict[str, tuple[str, Callable[[], tuple]]] = {
    "string_concat": ("string_concat(r0, r0)", lambda: (text(LONG // 2),)),
    "string_equal": ("string_equal(r0, r1)", lambda: (text(LONG), text(LONG))),
    "string_lookup": ("string_lookup(r0, r1, r2)", lambda: (text(LONG), strings("b"), np.full(1, -1))),
    "string_split": ("string_split(r0, r1, 0)", lambda: (text(LONG // 2), np.array("b", object))),
}


@pytest.mark.parametrize("name", LONG_COPIES)
def test_the_limits_are_looked_at_while_bytes_are_moved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single call of a builtin on a large string polls the host several times."""
    call, make = LONG_COPIES[name]
    arguments = make()
    names = ", ".join(f"p{index}" for index in range(len(arguments)))
    function = f"bytecode main({names}) registers 3\n  0: call r0 = vm.builtin.{call}\n  1: ret r0"
    machine = machine_of(function, bound(len(arguments)))
    run = machine["bound"](*arguments)
    polls: list[float] = []
    monkeypatch.setattr(Invoker, "poll", lambda self: polls.append(time.monotonic()))
    run()
    assert len(polls) > 1  # the builtin has polled at least once, because a short call does not poll


def test_every_builtin_that_counts_its_work_has_a_case() -> None:
    assert CASES.keys() | {"list_push", "make_closure", "match_type"} == {
        row.name for row in BUILTINS if row.cost == "WORK"
    }


def test_a_list_in_many_places_is_matched_and_converted_once() -> None:
    """If each reference to the list were processed separately, there would be 2^60 lists."""
    ints = ", ".join([str(_TYPES["LIST"])] * 61 + [str(_TYPES["ANY"])])
    doubles = (
        "bytecode main(n, list) registers 4\n"
        "  0: prim r2 = gt_i64(r0, 0)\n"
        "  1: if r2 -> 5\n"
        "  2: prim r0 = sub_i64(r0, 1)\n"
        "  3: call r1 = vm.builtin.make_list(r1, r1)\n"
        "  4: goto -> 0\n"
        f"  5: call vm.builtin.match_type(r1, nil, c0, {ints})\n"
        "  6: ret r1"
    )
    machine = machine_of(doubles, constants='c0 = string "x"', max_steps=1_000_000)
    made = machine["main"](60, [1])
    for _ in range(60):
        assert isinstance(made, list) and len(made) == 2 and made[0] is made[1]
        made = made[0]
    assert made == [1]


COUNTING = (
    "bytecode main(n) registers 3\n"
    "  0: call r1 = vm.builtin.make_list()\n"
    "  1: call r1 = vm.builtin.list_push(r1, 7)\n"
    "  2: prim r0 = sub_i64(r0, 1)\n"
    "  3: prim r2 = le_i64(r0, 0)\n"
    "  4: if r2 -> 1\n"
    "  5: ret r1"
)


def test_converting_a_result_counts_towards_max_bytes() -> None:
    """The list in the machine takes 16 bytes for each item.  The Python objects are allocated in addition."""
    machine = machine_of(COUNTING, max_bytes=1 << 22)
    assert machine["main"](10_000) == [7] * 10_000
    with pytest.raises(RelvmMemoryError, match="bytes of host objects"):
        machine["main"](90_000)
    assert machine["main"](10_000) == [7] * 10_000


def test_converting_a_result_counts_towards_max_seconds() -> None:
    machine = machine_of(COUNTING, max_seconds=LIMIT)
    with pytest.raises(RelvmTimeoutError):
        machine["main"](3_000_000)
    assert machine["main"](10_000) == [7] * 10_000


def test_copies_of_arguments_in_a_result_count_towards_max_bytes() -> None:
    """The result contains views of an argument, and each view is copied."""
    views = "\n".join(f"  {k}: call r{k + 2} = vm.builtin.reshape(r0, r1)" for k in range(100))
    items = ", ".join(f"r{k + 2}" for k in range(100))
    function = (
        f"bytecode main(x, shape) registers 102\n{views}\n"
        f"  100: call r101 = vm.builtin.make_list({items})\n"
        "  101: ret r101"
    )
    machine = machine_of(function, max_bytes=1 << 24)
    with pytest.raises(RelvmMemoryError, match="bytes of host objects"):
        machine["main"](np.zeros(1 << 20, np.uint8), Shape((1 << 20,)))


@pytest.mark.parametrize("make", [lambda: np.zeros(1 << 20, np.uint8), lambda: "a" * (1 << 20)])
def test_an_object_in_many_places_of_a_result_is_converted_once(make: Callable[[], object]) -> None:
    items = ", ".join(["r0"] * 100)
    machine = machine_of(
        f"bytecode main(x) registers 2\n  0: call r1 = vm.builtin.make_list({items})\n  1: ret r1", max_bytes=1 << 24
    )
    made = machine["main"](make())
    assert len(made) == 100 and all(each is made[0] for each in made)


def test_arguments_of_the_host_count_towards_max_bytes() -> None:
    """A list that is passed to a host function is converted to a Python list."""
    call = "  5: call r1 = vm.builtin.call_py_func(ctx, c0, r1)\n  6: ret r1"
    function = COUNTING.replace("  5: ret r1", call)
    machine = machine_of(function, constants='c0 = string "test.worst_cases.short"', max_bytes=1 << 22)
    machine["main"](10_000)
    with pytest.raises(RelvmMemoryError, match="bytes of host objects"):
        machine["main"](90_000)


def test_a_shape_is_converted_under_the_time_limit() -> None:
    function = "bytecode main(x) registers 2\n  0: call r1 = vm.builtin.tensor_to_shape(r0)\n  1: ret r1"
    machine = machine_of(function, max_seconds=LIMIT)
    assert machine["main"](np.arange(10_000)) == Shape(range(10_000))
    dims = np.full(1 << 24, 1000)
    began = time.monotonic()
    with pytest.raises(RelvmTimeoutError):
        machine["main"](dims)
    assert time.monotonic() - began < LIMIT + SOON


def test_a_tensor_has_at_most_64_axes() -> None:
    machine = machine_of("bytecode main(x, shape) registers 3\n  0: call r2 = vm.builtin.reshape(r0, r1)\n  1: ret r2")
    assert machine["main"](np.ones(1), Shape([1] * 64)).shape == (1,) * 64
    with pytest.raises(RelvmShapeError, match="rank 65 exceeds the maximum of 64"):
        machine["main"](np.ones(1), Shape([1] * 65))


def test_splitting_finds_what_python_finds() -> None:
    """Split strings of few different letters by delimiters of the same letters.

    Some strings are so long that a match lies at a position where the search polls the host.
    """
    split = "bytecode main(x, d) registers 3\n  0: call r2 = vm.builtin.string_split(r0, r1, -1)\n  1: ret r2"
    machine, draw = machine_of(split), np.random.default_rng(0)
    for before in (0, 0, 1 << 16):
        for _ in range(200):
            delimiter = "".join(draw.choice(["a", "b"], draw.integers(1, 6)))
            content = "c" * max(before - int(draw.integers(0, 8)), 0) + "".join(draw.choice(["a", "b"], 20))
            got = machine["main"](strings(content), np.array(delimiter, object)).numpy()
            assert got[0].tolist() == content.split(delimiter)
