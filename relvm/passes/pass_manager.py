"""The pass manager: runs a list of passes, times each, verifies its result and shows it to an observer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relvm.errors import resources
from relvm.ir.expr import Function, Module
from relvm.ir.verifier import Stage, verify
from relvm.passes.source_locations import Provenance

# Called after each pass with the pass, the module before and after it, and the seconds that it took.
Observer = Callable[["Pass", Module, Module, float], None]


@dataclass(frozen=True)
class Pass:
    """One pass over a module.

    name: as listed by `relvm show --html`.   at: the stage of its input.   to: the stage of its result, which is `at`
    for an optimization.
    """

    name: str
    run: Callable[[Module], Module]
    at: Stage
    to: Stage

    @property
    def doc(self) -> str:
        return self.run.__doc__ or ""

    def __call__(self, module: Module) -> Module:
        return self.run(module)


def module_pass(name: str, *, at: Stage, to: Stage | None = None) -> Callable[[Callable[[Module], Module]], Pass]:
    """Declare a pass over a whole module."""

    def declare(run: Callable[[Module], Module]) -> Pass:
        return Pass(name, run, at, at if to is None else to)

    return declare


def function_pass(name: str, *, at: Stage, to: Stage | None = None) -> Callable[[Callable[[Function], Function]], Pass]:
    """Declare a pass that processes each function of the module separately."""

    def declare(one: Callable[[Function], Function]) -> Pass:
        def run(module: Module) -> Module:
            return module.with_functions(tuple(map(one, module.functions)))

        run.__doc__ = one.__doc__
        return Pass(name, run, at, at if to is None else to)

    return declare


def run_passes(
    module: Module, passes: Iterable[Pass], *, verified: bool = False, observer: Observer | None = None
) -> Module:
    """Run the passes in order, and keep source locations (relvm/passes/source_locations.py).

    Parameters
    ----------
    verified
        Whether each result is verified for the stage of its pass.
    observer
        Called after each pass.

    Raises
    ------
    RelvmVerifyError
        A pass broke a rule of its stage.  This is a bug of relvm.
    RelvmMemoryError, RelvmRecursionError
        The module is too large, or nested too deeply.
    """
    provenance = Provenance(module)
    for step in passes:
        started = time.perf_counter()
        with resources(step.name):
            result = provenance.hand_on(step(module))
        if observer:
            observer(step, module, result, time.perf_counter() - started)
        if verified:
            verify(result, step.to)
        module = result
    return module
