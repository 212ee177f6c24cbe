"""Local functions that use, check and bind sizes: random programs have the results of the reference interpreter."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.modes import assert_same_bits, machines, plain

from relvm.errors import RelvmError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

BLOCKS, PROGRAMS, MAX_DEPTH = 4, 30, 3
SIZES = [(3, 2), (2, 2), (1, 4)]  # of the arguments x: f32[n] and y: f32[m]


@dataclass
class Scope:
    """The names that a statement can use.

    dims: dimension variables.   tensors: the names of 1-D tensors, and their sizes if these are known.
    functions: the names of local functions, and the size of their second parameter.   numbers: the names of scalars.
    depth: the number of enclosing functions.
    """

    dims: list[str]
    tensors: list[tuple[str, str]]
    functions: list[tuple[str, str]] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    depth: int = 1

    def inner(self, own: list[tuple[str, str]]) -> Scope:
        dims = [*self.dims, *(size for _, size in own if size.isalpha() and size not in self.dims)]
        return Scope(dims, [*self.tensors, *own], list(self.functions), list(self.numbers), self.depth + 1)


class Writer:
    """Writer of a random program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def new(self, start: str) -> str:
        self.count += 1
        return f"{start}{self.count}"

    def new_dim(self) -> str:
        self.count += 1
        return "k" + "".join(chr(ord("a") + int(digit)) for digit in str(self.count))

    def program(self) -> str:
        scope = Scope(["n", "m"], [("x", "n"), ("y", "m")])
        return "def main(x: f32[n], y: f32[m]) => (f32[_], i64) {\n" + self.body(scope, "  ") + "}\n"

    def body(self, scope: Scope, indent: str, last: str = "") -> str:
        lines = [self.statement(scope, indent) for _ in range(self.random.randint(3, 7))]
        first, *others = {name: None for name, _ in self.random.choices(scope.tensors, k=2) + scope.tensors[-2:]}
        tensor = first
        for other in others:  # all results are used, because unused values are not computed
            tensor, left = self.new("t"), tensor
            lines.append(f"{indent}{tensor} = concat({left}, {other}, axis=0)\n")
        numbers = [*(f"dim({dim})" for dim in scope.dims), *scope.numbers]
        result = f"({tensor}, {' + 3 * ('.join(numbers)}{')' * (len(numbers) - 1)})"
        return "".join(lines) + (last.replace("RESULT", result) or f"{indent}return {result}\n")

    def size(self, scope: Scope) -> str:
        dim = self.random.choice(scope.dims)
        return self.random.choice([dim, dim, dim, f"2 * {dim}", f"{dim} + 1"])

    def statement(self, scope: Scope, indent: str) -> str:
        kinds = [self.cast, self.cast, self.filled, self.sum, self.joined, self.escaped]
        kinds += [self.call] * 3 + [self.function] * (3 if scope.depth < MAX_DEPTH else 0)
        text = self.random.choice(kinds)(scope, indent)
        return text or self.filled(scope, indent)

    def cast(self, scope: Scope, indent: str) -> str:
        """A match_cast: to a size in scope, which is checked, or to a new dimension variable, which is bound."""
        tensor, size = self.random.choice(scope.tensors)
        other = self.random.choice([*scope.dims, size, self.new_dim()])
        name = self.new("t")
        if other.isalpha() and other not in scope.dims:
            scope.dims.append(other)
        scope.tensors.append((name, other))
        return f"{indent}{name} = match_cast({tensor}, f32[{other}])\n"

    def filled(self, scope: Scope, indent: str) -> str:
        size, name = self.size(scope), self.new("t")
        scope.tensors.append((name, size))
        return f"{indent}{name} = broadcast_to(const(f32[], {self.count}), shape({size}))\n"

    def sum(self, scope: Scope, indent: str) -> str:
        tensor, size = self.random.choice(scope.tensors)
        name = self.new("t")
        scope.tensors.append((name, size))
        return f"{indent}{name} = add({tensor}, {tensor})\n"

    def joined(self, scope: Scope, indent: str) -> str:
        (left, size), (right, other) = self.random.choices(scope.tensors, k=2)
        name = self.new("t")
        scope.tensors.append((name, f"{size} + {other}"))
        return f"{indent}{name} = concat({left}, {right}, axis=0)\n"

    def function(self, scope: Scope, indent: str) -> str:
        """A recursive local function, whose parameter has a size in scope or a new one."""
        name = self.new("f")
        size = self.random.choice([*scope.dims, *scope.dims, self.new_dim()])
        own, counter = self.new("p"), self.new("i")
        inner = scope.inner([(own, size)])
        last = (
            f"{indent}  return if {counter} >= 2 then RESULT else {name}({counter} + 1, "
            f"{self.random.choice(inner.tensors)[0]})\n"
        )
        text = self.body(inner, indent + "  ", last)
        scope.functions.append((name, size))
        return f"{indent}{name} = fn {name}({counter}: i64, {own}: f32[{size}]) => (f32[_], i64) {{\n{text}{indent}}}\n"

    def argument(self, scope: Scope, size: str) -> str:
        fitting = [tensor for tensor, its in scope.tensors if its == size]
        return self.random.choice(fitting or [tensor for tensor, _ in scope.tensors])

    def call(self, scope: Scope, indent: str) -> str:
        if not scope.functions:
            return ""
        function, size = self.random.choice(scope.functions)
        return self.used(scope, indent, f"{function}({self.random.randint(0, 2)}, {self.argument(scope, size)})")

    def escaped(self, scope: Scope, indent: str) -> str:
        """A call of a local function that is used as a value."""
        if not scope.functions:
            return ""
        function, size = self.random.choice(scope.functions)
        pair = self.new("pair")
        call = f"{pair}.0({self.random.randint(0, 2)}, {self.argument(scope, size)})"
        return f"{indent}{pair} = ({function}, 1)\n" + self.used(scope, indent, call)

    def used(self, scope: Scope, indent: str, call: str) -> str:
        """A call of a local function.  The tensor in its result gets a size in scope, or a new one."""
        result, number, name = self.new("r"), self.new("s"), self.new("t")
        size = self.random.choice([*scope.dims, self.new_dim(), self.new_dim()])
        if size not in scope.dims:
            scope.dims.append(size)
        scope.tensors.append((name, size))
        scope.numbers.append(number)
        return (
            f"{indent}{result} = {call}\n"
            f"{indent}{number} = {result}.1\n"
            f"{indent}{name} = match_cast({result}.0, f32[{size}])\n"
        )


@pytest.mark.parametrize("block", range(BLOCKS))
def test_sizes_in_local_functions_are_those_of_the_reference(block: int) -> None:
    outcomes = {"value": 0, "error": 0}
    for number in range(PROGRAMS):
        text = Writer(PROGRAMS * block + number).program()
        module = parse_module(text)
        try:
            typed = infer_types(module)
        except RelvmError:
            continue  # a size that cannot be equal to the one that is required
        target = "c" if number % 8 == 0 else "bytecode"
        built = machines(
            module, [("bytecode", target), ("compiled", target)] if number % 4 == 0 else [("bytecode", target)]
        )
        for n, m in SIZES:
            args = np.arange(n, dtype=np.float32), np.arange(m, dtype=np.float32) + 10
            try:
                expected = plain(evaluate(typed, "main", *args))
                outcomes["value"] += 1
            except RelvmError as error:
                for machine in built.values():
                    with pytest.raises(type(error)):
                        machine["main"](*args)
                outcomes["error"] += 1
                continue
            for machine in built.values():
                assert_same_bits(plain(machine["main"](*args)), expected, text)
    assert min(outcomes.values()) >= PROGRAMS // 4, outcomes
