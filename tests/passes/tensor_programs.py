"""Random modules of functions on tensors, for tests of rewriting passes.  Each test defines how to draw an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from relvm.errors import RelvmError
from relvm.ir.builder import Builder
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr, Module, OpCall, Var
from relvm.ir.interpreter import evaluate
from relvm.ir.node import walk
from relvm.ir.operator import Operator
from relvm.ir.symbolic import AnyDim, dim_var, evaluate_with
from relvm.ir.types import TensorType

Random = np.random.Generator
Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class Programs:
    """A generator of random modules.

    functions: the number of functions.  shapes: draws the shapes of a function's parameters.  step: draws an operator
    call on some of the values computed so far.  If it raises an error, or the rank of the result is not in `ranks`, it
    is called again.  steps: the range of the number of calls in a function.  first: an operator that is applied to each
    parameter, or None.
    """

    functions: int
    dtype: DType
    shapes: Callable[[Random], list[tuple[AnyDim, ...]]]
    step: Callable[[list[Var], Random], Expr]
    steps: range
    ranks: range
    first: Operator | None = None

    def module(self, seed: int) -> tuple[Module, list[Shapes]]:
        """Return a module, and the shapes of the arguments of each function."""
        random, builder = np.random.default_rng(seed), Builder()
        sizes = [self._function(builder, f"f{number}", random) for number in range(self.functions)]
        return builder.module(), sizes

    def _function(self, builder: Builder, name: str, random: Random) -> Shapes:
        shapes = self.shapes(random)
        params = [(f"x{i}", TensorType(self.dtype, shape)) for i, shape in enumerate(shapes)]
        with builder.function(name, params) as args:
            made = [builder.emit(self.first(arg)) for arg in args] if self.first else list(args)
            for _ in range(int(random.integers(self.steps.start, self.steps.stop))):
                made.append(builder.emit(self._operator(made, random)))
            builder.ret(made[-1])
        return [tuple(evaluate_with(dim, lambda var: int(var.name[1:])) for dim in shape) for shape in shapes]

    def _operator(self, made: list[Var], random: Random) -> Expr:
        while True:
            try:
                value = self.step(made, random)
            except (RelvmError, ValueError, IndexError, TypeError):
                continue
            if value.type.rank in self.ranks:
                return value


def symbolic(size: int) -> AnyDim:
    """Return a dimension variable that has the value `size` in all runs."""
    return dim_var(f"n{size}")


def operators(module: Module) -> int:
    return sum(isinstance(item, OpCall) for item in walk(module))


def results(
    before: Module, after: Module, shapes: list[Shapes], values: Callable[[tuple[int, ...]], np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the result of each function in `after` and in `before`, for arguments made by `values`."""
    for function, sizes in zip(before.functions, shapes, strict=True):
        args = [values(shape) for shape in sizes]
        got, wanted = (np.asarray(evaluate(module, function.name, *args)) for module in (after, before))
        yield got, wanted
