"""Detection of routines that compute with scalars only.

Compiled mode prints them as C functions that keep their values in C variables.
"""

from __future__ import annotations

from relvm.data_classes import value_record
from relvm.ir.dtypes import F64, DType
from relvm.ir.scalar_ops import DTYPE_OF_LETTER, scalar_dtype
from relvm.lir.routine import (
    COPY,
    CallStatement,
    ConstantItem,
    FunctionKey,
    IfStatement,
    Immediate,
    LirModule,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
    TailCallStatement,
    builtin,
    operands_of,
    statements_in,
)
from relvm.tables import PRIM_OPERATORS

_CHECK = builtin("check_prim_value_info")
_ROWS = {row.name: row for row in PRIM_OPERATORS}


@value_record
class ScalarRoutine:
    """A routine that computes with scalars only.

    types: the type of each register that is written: i64, f64 or bool.  The parameters come first.
    result: the type of the result.
    checks: the number of statements at the beginning that check parameters.
    """

    routine: Routine
    types: dict[int, DType]
    result: DType
    checks: int


def scalar_functions(module: LirModule) -> dict[FunctionKey, ScalarRoutine]:
    """Return the scalar routines of the module, by key.

    Their parameters, intermediate values and results are scalars of known types.  They call only scalar routines.
    """
    parameter_types = {routine.key: checked_types(routine, module) for routine in module.routines}
    routines = {r.key: r for r in module.routines if len(parameter_types[r.key]) == len(r.params)}
    while True:
        typed = _infer_types(routines, parameter_types)
        still_scalar = {key: routines[key] for key in typed}
        if len(still_scalar) == len(routines):
            return {
                key: ScalarRoutine(routine, typed[key], typed[key][len(routine.params)], len(routine.params))
                for key, routine in routines.items()
            }
        routines = still_scalar


def checked_types(routine: Routine, module: LirModule) -> dict[int, DType]:
    """Return the types that the checks at the beginning of a routine require of its parameters.

    The result maps the register of each checked parameter to its type.
    """
    found: dict[int, DType] = {}
    for statement in routine.body:
        match statement:
            case CallStatement(function=function, args=(Register(index), ConstantItem(dtype), _), destination=None) if (
                function == _CHECK and index < len(routine.params) and index not in found
            ):
                value = module.constants[dtype]
                if not isinstance(value, DType) or value not in DTYPE_OF_LETTER.values():
                    break
                found[index] = value
            case _:
                break
    return found


def _infer_types(
    routines: dict[FunctionKey, Routine], parameter_types: dict[FunctionKey, dict[int, DType]]
) -> dict[FunctionKey, dict[int, DType]]:
    """Infer the types of the registers of each routine.

    Return a dict from register to type for each routine, by the key of the routine.  A routine with a register
    of unknown type is omitted.

    parameter_types: the types of the parameters of each routine, as dicts of the same form.
    """
    types = {key: dict(parameter_types[key]) for key in routines}
    changed = True
    while changed:
        changed = False
        for key, routine in list(routines.items()):
            if key not in types:
                continue
            before = len(types[key])
            if not _infer_block(routine, routine.body[len(routine.params) :], routines, types):
                del types[key]
                changed = True
            else:
                changed |= len(types[key]) > before
    fully_typed = (key for key in types if _is_fully_typed(routines[key], types))
    return {key: types[key] for key in fully_typed}


def _infer_block(
    routine: Routine,
    body: tuple[Statement, ...],
    routines: dict[FunctionKey, Routine],
    types: dict[FunctionKey, dict[int, DType]],
) -> bool:
    """Record in `types[routine.key]` the types of the registers that the block `body` writes, as far as known.

    Return whether the block computes with scalars only, and each register has a single type.
    """
    known = types[routine.key]
    result = len(routine.params)

    def write(register: int, dtype: DType | None) -> bool:
        return dtype is None or known.setdefault(register, dtype) == dtype

    for statement in body:
        match statement:
            case PrimStatement(row, args, destination):
                operands = (_type(arg, known) for arg in args)
                expected = map(DTYPE_OF_LETTER.__getitem__, _ROWS[row].operands)
                if any(actual not in (None, dtype) for actual, dtype in zip(operands, expected, strict=True)):
                    return False
                if not write(destination, DTYPE_OF_LETTER[_ROWS[row].result]):
                    return False
            case CallStatement(function=function, args=(value,), destination=int(destination)) if function == COPY:
                if not _is_scalar(value) or not write(destination, _type(value, known)):
                    return False
            case CallStatement(function=function, args=args, destination=int(destination)) if function in types:
                if not all(map(_is_scalar, args)) or not write(
                    destination, types[function].get(len(routines[function].params))
                ):
                    return False
            case TailCallStatement(function=function, args=args) if function in types:
                if not all(map(_is_scalar, args)) or not write(
                    result, types[function].get(len(routines[function].params))
                ):
                    return False
            case IfStatement(cond, then, orelse):
                if not _is_scalar(cond) or _type(cond, known) == F64:
                    return False
                if not _infer_block(routine, then, routines, types) or not _infer_block(
                    routine, orelse, routines, types
                ):
                    return False
            case _:
                return False
    return True


def _is_scalar(operand: Operand) -> bool:
    return isinstance(operand, Register | Immediate)


def _type(operand: Operand, known: dict[int, DType]) -> DType | None:
    match operand:
        case Register(index):
            return known.get(index)
        case Immediate(value):
            return scalar_dtype(value)
    return None


def _is_fully_typed(routine: Routine, types: dict[FunctionKey, dict[int, DType]]) -> bool:
    """Return whether all types in a routine are known and consistent, so that C variables can replace its registers.

    Each register that it reads must have a type, and each call must pass the types that the callee expects.  The
    routine must write its result, and must not contain resets of registers.
    """
    known = types[routine.key]
    if len(routine.params) not in known:
        return False
    for statement in statements_in(routine.body[len(routine.params) :]):
        if isinstance(statement, ResetStatement):
            return False
        operands = operands_of(statement)
        if any(_type(operand, known) is None for operand in operands):
            return False
        callee = getattr(statement, "function", None)
        if callee in types and [_type(arg, known) for arg in operands] != [
            types[callee][i] for i in range(len(operands))
        ]:
            return False
    return True
