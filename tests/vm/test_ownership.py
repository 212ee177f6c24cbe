"""Ownership: a value that is not used afterwards is updated in place, by whatever route it has come.

Each test passes a value through a route, such as a call, a closure or a loop in a loop, and updates it on the way.  The
caller donates the value, so that no update must copy it.  A copied tensor has another address.  A copied list costs
steps.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.modes import MODES, machines

from relvm import vm
from relvm.errors import RelvmTimeoutError
from relvm.frontend.text import parse_module

_KERNELS = """
kernel set_row(x: f32[8, 16], row: f32[1, 16], at: i64) -> (out: f32[8, 16]) {
  for i, j in grid(8, 16) { out[i, j] = x[i, j] }
  for j in range(16) { out[at, j] = row[0, j] }
}

kernel add_row(inout x: f32[8, 16], at: i64) { for j in range(16) { x[at, j] += 1.0 } }
"""
# The statements that compute `y` from `x` by an update.
_UPDATES = {
    "scatter": f"y = scatter_nd(x, const(i64[1, 1], [[3]]), const(f32[1, 16], [[{', '.join(['1.0'] * 16)}]]), depth=1)",
    "slice": f"y = kernel set_row(x, const(f32[1, 16], [[{', '.join(['1.0'] * 16)}]]), 3)",
    "inout": "y = x; _ = kernel add_row(y, 3)",
    "list": "y = list_append(x, n)",
}
# The functions of each route.  T is the type of the value, and UPDATE updates x to y.  A function that calls itself is
# not inlined.  The function `route` gets the value and a number, 3, and returns the updated value.
_HELPERS = """
private def once(n: i64, x: T) -> T { return if n < -5 then @once(n + 1, x) else { UPDATE; return y } }

private def loop(n: i64, x: T) -> T { return if n < 1 then x else { UPDATE; return @loop(n - 1, y) } }

private def pair(p: (T, i64)) -> (T, i64) {
  n = p.1
  return if n < -5 then @pair((p.0, n + 1)) else { x = p.0; UPDATE; return (y, n - 1) }
}

private def apply(n: i64, f: (T) -> T, x: T) -> T {
  return if n < 1 then x else { y = f(x); return @apply(n - 1, f, y) }
}

private def call(n: i64, f: (i64) -> T) -> T { return if n < -5 then @call(n + 1, f) else { y = f(n); return y } }
"""
_ROUTES = {
    "straight": "def route(n: i64, x: T) -> T { UPDATE; return y }",
    "a tuple": "def route(n: i64, x: T) -> T { t = (n, x); x = t.1; UPDATE; return y }",
    "a list": "def route(n: i64, x: T) -> T { t = make_list(x); x = list_item(t, 0); UPDATE; return y }",
    "a branch": "def route(n: i64, x: T) -> T { x = if n > 3 then x else { UPDATE; return y }; UPDATE; return y }",
    "a call": "def route(n: i64, x: T) -> T { x = @once(n, x); x = @once(n, x); UPDATE; return y }",
    "a call in a branch": """def route(n: i64, x: T) -> T {
      x = if n > 3 then x else { UPDATE; return @once(n, y) }
      x = if n > 2 then { x = @once(n, x); UPDATE; return y } else x
      return @once(n, x)
    }""",
    "nested calls": """
    private def outer(n: i64, x: T) -> T {
      return if n < -5 then @outer(n + 1, x) else { x = @once(n, x); UPDATE; return y }
    }
    def route(n: i64, x: T) -> T { x = @outer(n, x); return @outer(n, x) }""",
    "a call with tuples": "def route(n: i64, x: T) -> T { p = @pair((x, n)); q = @pair(p); return q.0 }",
    "a loop": "def route(n: i64, x: T) -> T { x = @loop(n, x); UPDATE; return @loop(n, y) }",
    "a loop of a tuple": """
    private def pairs(k: i64, p: (T, i64)) -> (T, i64) { return if k < 1 then p else {
      x = p.0; n = p.1; UPDATE
      return @pairs(k - 1, (y, n + 1))
    } }
    def route(n: i64, x: T) -> T { p = @pairs(n, (x, n)); q = @pairs(n, p); return q.0 }""",
    "a loop with a branch": """
    private def some(n: i64, x: T) -> T { return if n < 1 then x else {
      x = if n > 2 then x else { UPDATE; return y }
      return @some(n - 1, x)
    } }
    def route(n: i64, x: T) -> T { x = @some(n, x); return @some(n, x) }""",
    "a loop in a loop": """
    private def outer(k: i64, n: i64, x: T) -> T { return if k < 1 then x else {
      x = @loop(n, x); UPDATE
      return @outer(k - 1, n, y)
    } }
    def route(n: i64, x: T) -> T { x = @outer(2, n, x); return @outer(2, n, x) }""",
    "a local function": """def route(n: i64, x: T) -> T {
      g = fn g(n: i64, x: T) -> T { return if n < 1 then x else { UPDATE; return g(n - 1, y) } }
      x = g(n, x)
      return g(n, x)
    }""",
    "a function value": """def route(n: i64, x: T) -> T {
      g = fn (x: T) -> T { UPDATE; return y }
      x = @apply(n, g, x)
      return @apply(n, g, x)
    }""",
    "a captured value": """def route(n: i64, x: T) -> T {
      g = fn (n: i64) -> T { UPDATE; return y }
      return @call(n, g)
    }""",
    "recursion": """
    private def deep(n: i64, x: T) -> T {
      return if n < 1 then x else { UPDATE; x = @deep(n - 1, y); UPDATE; return y }
    }
    def route(n: i64, x: T) -> T { return @deep(n, x) }""",
    "many arguments": (
        f"private def many(n: i64, x: T, {', '.join(f'a{i}: i64' for i in range(40))}) -> T {{ return if n < -5 then\n"
        f"  @many(n + 1, x, {', '.join(f'a{i}' for i in range(40))}) else {{ UPDATE; return y }}\n"
        f"}}\ndef route(n: i64, x: T) -> T {{ x = @many(n, x{', n' * 40}); return @many(n, x{', n' * 40}) }}"
    ),
}


_TYPES = {name: "list[object]" if name == "list" else "f32[8, 16]" for name in _UPDATES}
_ITEMS = 20_000  # to copy a list takes as many steps


def _functions(operator: str, route: str) -> str:
    """Return the text of a route, whose functions have names of their own."""
    text = (_HELPERS + _ROUTES[route]).replace("UPDATE", _UPDATES[operator])
    suffix = f"_{operator}_{[*_ROUTES].index(route)}"
    text = re.sub(r"(@|def )(\w+)", rf"\1\2{suffix}", text)
    return re.sub(r"\bT\b", _TYPES[operator], text)


def _name(operator: str, route: str) -> str:
    return f"route_{operator}_{[*_ROUTES].index(route)}"


@pytest.fixture(scope="module", params=MODES)
def executable(request):
    """An executable with the functions of all routes, in one mode."""
    parts = [_functions(operator, route) for operator in _UPDATES for route in _ROUTES]
    module = parse_module(_KERNELS + "".join(parts))
    target = "c" if request.param == "compiled" else "bytecode"
    (machine,) = machines(module, [(request.param, target)]).values()
    return machine.executable


def _aligned_zeros() -> np.ndarray:
    """Return an array that a call can donate without a copy: its address is a multiple of 64."""
    raw = np.zeros(8 * 16 + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + 8 * 16].reshape(8, 16)


@pytest.mark.parametrize("route", _ROUTES)
@pytest.mark.parametrize("operator", [name for name in _UPDATES if name != "list"])
def test_a_donated_tensor_is_updated_without_a_copy(executable, operator, route):
    x = _aligned_zeros()
    machine = vm.VirtualMachine(executable)
    result = machine[_name(operator, route)](3, vm.Donated(x)).numpy()
    assert result.ctypes.data == x.ctypes.data
    assert (result[3] >= 1).all() and not np.delete(result, 3, axis=0).any()


@pytest.mark.parametrize("route", _ROUTES)
@pytest.mark.parametrize("operator", [name for name in _UPDATES if name != "list"])
def test_a_tensor_of_the_caller_does_not_change(executable, operator, route):
    x = _aligned_zeros()
    machine = vm.VirtualMachine(executable)
    first = machine[_name(operator, route)](3, x)
    before = first.numpy().copy()
    again = machine[_name(operator, route)](3, x)
    assert not x.any()
    np.testing.assert_array_equal(first.numpy(), before)
    np.testing.assert_array_equal(again.numpy(), before)


# The other routes check the type of the list in a call, which takes as many steps as a copy.
@pytest.mark.parametrize("route", [name for name in _ROUTES if name not in ("a function value", "a captured value")])
def test_a_list_is_copied_at_most_twice(executable, route):
    """The list is copied when it is the argument of the host, and may be copied once more when it grows."""
    machine = vm.VirtualMachine(executable, max_steps=3 * _ITEMS)
    result = machine[_name("list", route)](3, [0] * _ITEMS)
    assert len(result) > _ITEMS
    with pytest.raises(RelvmTimeoutError):  # the limit is not so high that the test could not fail
        vm.VirtualMachine(executable, max_steps=2 * _ITEMS)[_name("list", route)](3, [0] * _ITEMS)
