"""The pass manager: runs a list of passes, measures their times, verifies their results and calls an observer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from relvm.data_classes import value_record
from relvm.errors import resources
from relvm.ir.expr import Function, Module
from relvm.ir.verifier import Stage, verify
from relvm.passes.source_locations import Provenance

# A function to call after each pass.  Arguments: the pass, the module before and after the pass, the time in seconds.
Observer = Callable[["Pass", Module, Module, float], None]


@value_record
class Pass:
    """A pass over a module.

    name: the name that `relvm show` prints and accepts.
    run: the function that transforms the module.
    at: the stage of its input.
    to: the stage of its result, which is equal to `at` for an optimization.
    optional: whether a build without the pass gives the same results.
    """

    name: str
    run: Callable[[Module], Module]
    at: Stage
    to: Stage
    optional: bool = False

    @property
    def doc(self) -> str:
        return self.run.__doc__ or ""

    def __call__(self, module: Module) -> Module:
        return self.run(module)


def module_pass(
    name: str, *, at: Stage, to: Stage | None = None, optional: bool = False
) -> Callable[[Callable[[Module], Module]], Pass]:
    """Return a decorator that turns a function on modules into a pass.

    name: the name of the pass.
    at: the stage of its input.
    to: the stage of its result, or None if it is equal to `at`.
    optional: whether a build without the pass gives the same results.
    """

    def declare(run: Callable[[Module], Module]) -> Pass:
        return Pass(name, run, at, at if to is None else to, optional)

    return declare


def function_pass(
    name: str, *, at: Stage, to: Stage | None = None, optional: bool = False
) -> Callable[[Callable[[Function], Function]], Pass]:
    """Return a decorator that turns a Python function on IR functions into a pass.

    The pass applies the Python function to each IR function of a module.

    name: the name of the pass.
    at: the stage of its input.
    to: the stage of its result, or None if it is equal to `at`.
    optional: whether a build without the pass gives the same results.
    """

    def declare(one: Callable[[Function], Function]) -> Pass:
        def run(module: Module) -> Module:
            return module.with_functions(tuple(map(one, module.functions)))

        run.__doc__ = one.__doc__
        return Pass(name, run, at, at if to is None else to, optional)

    return declare


def run_passes(
    module: Module, passes: Iterable[Pass], *, verified: bool = False, observer: Observer | None = None
) -> Module:
    """Run passes in order, and return the resulting module.

    If a pass replaces expressions without copying their source locations, this function restores the locations
    (relvm/passes/source_locations.py).

    Parameters
    ----------
    verified
        Whether to verify the result of each pass.
    observer
        A function to call after each pass.  Its arguments are the pass, the modules before and after the pass, and the
        time in seconds that the pass took.

    Raises
    ------
    RelvmVerifyError
        The result of a pass violates a rule of its stage.  This is a bug in relvm.
    RelvmMemoryError, RelvmRecursionError
        The module is too large, or nested too deeply.
    """
    provenance = Provenance(module)
    for step in passes:
        started = time.perf_counter()
        with resources(step.name):
            result = provenance.restore_origins(step(module))
        if observer:
            observer(step, module, result, time.perf_counter() - started)
        if verified:
            verify(result, step.to)
        module = result
    return module
