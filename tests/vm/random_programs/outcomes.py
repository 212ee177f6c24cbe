"""Outcomes of a run in the reference interpreter and in each mode and target, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.modes import assert_same_bits, machines, plain, stepped

from random_programs.host import HOST, PACKED, register
from random_programs.replay import Run, as_text, only
from random_programs.state import has_function
from relvm.errors import RelvmTypeError
from relvm.ir.expr import Module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types
from relvm.ir.types import FuncType, PrimType, TensorType, TupleType, Type

TOLERANCE = 1e-4  # for f32 numbers, which are in [-1, 1]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    value: the result, in which functions are replaced by the results of calling them.  error: the exception, or None.
    log: the entries that the host functions logged.
    """

    value: Any
    error: Exception | None
    log: tuple


def outcome(function: Callable, args: tuple, type_: Type) -> Outcome:
    HOST.reset()
    value, error = None, None
    try:
        value = _settled(function(*args), type_)
    except (ArithmeticError, TypeError, IndexError) as caught:
        error = caught
    return Outcome(value, error, tuple(HOST.log))


def reference_outcome(module: Module, run: Run) -> Outcome:
    def function(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return evaluate(module, run.name, *args, packed=PACKED)

    return outcome(function, tuple(map(_without_shapes, run.args)), module[run.name].result_type)


def _without_shapes(value: Any) -> Any:
    return tuple(map(_without_shapes, value)) if isinstance(value, tuple) else value


def _settled(value: Any, type_: Type) -> Any:
    """Return a value in the representation of the reference interpreter.

    A function in the value is called, and is replaced by the result of the call.
    """
    match type_:
        case TupleType(fields):
            return tuple(_settled(part, field) for part, field in zip(value, fields, strict=True))
        case FuncType(params, result):
            if any(map(has_function, params)):
                return "a function of functions"
            return _settled(value(*(_sample(param) for param in params)), result)
    return plain(value)


def _sample(type_: Type) -> Any:
    """Return an argument of type `type_` for a function that a run returned."""
    match type_:
        case PrimType(dtype):
            return {"bool": True, "i64": 2, "f64": 0.5}[dtype.name]
        case TensorType(dtype, shape):
            sizes = (2, 3)[: len(shape)]
            return np.arange(np.prod(sizes, dtype=np.int64)).reshape(sizes).astype(dtype.numpy)
    raise AssertionError(f"no sample of {type_}")


def check(module: Module, runs: Iterable[Run], ways: Iterable[tuple[str, str]]) -> list[Outcome]:
    """Execute all runs in several ways and in the reference interpreter, and compare the outcomes.

    Bytecode also runs in the debugger, step by step.  All ways with the same target must have identical values, errors
    and logs.  f32 tensors may differ from the reference by `TOLERANCE`.

    Parameters
    ----------
    ways
        Pairs of an execution mode and a target.

    Returns
    -------
    list[Outcome]
        The outcome of each run in the reference interpreter.

    Raises
    ------
    AssertionError
        Two outcomes differ.  A note on this or any other error contains the text with which `python -m random_programs`
        repeats the run.
    """
    register()
    module, runs = infer_types(module), list(runs)
    try:
        machine_of = machines(module, ways)
        for (mode, target), machine in list(machine_of.items()):
            if mode == "bytecode":
                machine_of["stepped", target] = stepped(machine.executable)
    except Exception as error:
        error.add_note(as_text(module, runs))
        raise
    expected = []
    for run in runs:
        try:
            expected.append(_check_run(module, run, machine_of))
        except Exception as error:
            error.add_note(as_text(only(module, run.name), [run]))
            raise
    return expected


def _check_run(module: Module, run: Run, machine_of: dict) -> Outcome:
    wanted = reference_outcome(module, run)
    firsts: dict[str, Outcome] = {}  # the first outcome for each target
    for (mode, target), machine in machine_of.items():
        got = outcome(machine[run.name], run.args, module[run.name].result_type)
        place = f"{run.name}, {mode}/{target}"
        _expect_agreement(place, got, wanted)
        _expect_same(place, got, firsts.setdefault(target, got))
    return wanted


def _expect_same(place: str, got: Outcome, other: Outcome) -> None:
    assert repr(got.error) == repr(other.error), f"{place}: {got.error!r} and {other.error!r}"
    assert_same_bits(got.value, other.value)
    assert_same_bits(got.log, other.log)


def _expect_agreement(place: str, got: Outcome, wanted: Outcome) -> None:
    """Assert that an outcome agrees with that of the reference interpreter."""
    assert type(got.error) is type(wanted.error), f"{place}: error {got.error!r}, expected {wanted.error!r}"
    if wanted.error is not None:
        assert _same_message(got.error, wanted.error), f"{place}: error {got.error!r}, expected {wanted.error!r}"
    _expect_close(f"{place}: log", got.log, wanted.log)
    _expect_close(f"{place}: value", got.value, wanted.value)


def _same_message(got: Exception, wanted: Exception) -> bool:
    """Return whether the message of a machine agrees with that of the reference interpreter.

    The message of a machine begins with the name of the function.  In type errors, the text after "expected" can
    differ.
    """
    if type(wanted) is RelvmTypeError:
        return str(wanted).partition(": expected")[0] in str(got)
    return str(got).endswith(str(wanted))


def _expect_close(place: str, got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(got, tuple) and len(got) == len(wanted), f"{place}: {got!r}, expected {wanted!r}"
        for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
            _expect_close(f"{place}.{i}", x, y)
    elif isinstance(wanted, np.ndarray | np.generic):
        assert isinstance(got, np.ndarray), f"{place}: {got!r}, expected {wanted!r}"
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), f"{place}: {got!r}, expected {wanted!r}"
        tolerance = TOLERANCE if wanted.dtype == np.float32 else 0
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance, err_msg=place)
    else:
        assert_same_bits(got, wanted, place)
