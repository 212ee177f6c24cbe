"""Instrumentation of a module for a comparison: add a function that returns all values that another function
computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relvm.data_classes import dataclass
from relvm.errors import counted
from relvm.ir.expr import Binding, Block, Constant, Expr, Function, Module, Tuple, TupleItem, Var
from relvm.ir.types import PrimType, TensorType, TupleType, Type
from relvm.ir.unique_names import unique_name
from relvm.ir.visitor import fresh_copy
from relvm.passes.util.used_names import used_names


@dataclass(frozen=True, eq=False)
class Watched:
    """A value that a comparison computes in each execution mode.

    Attributes
    ----------
    name
        The name in the report of the comparison.
    expr
        The value: a variable of the function's top block, or a constant.
    source_name
        The name in the ONNX model, or empty if it has none.
    """

    name: str
    expr: Expr
    source_name: str = ""


def is_comparable(type_: Type | None) -> bool:
    """Return whether a comparison supports values of the type: tensors, scalars, and nonempty tuples of these."""
    match type_:
        case TensorType() | PrimType():
            return True
        case TupleType(fields):
            return bool(fields) and all(map(is_comparable, fields))
    return False


def watched_values(function: Function) -> tuple[Watched, ...]:
    """Return the values of a function that are compared: those that its top block computes, in order.

    A tuple is omitted if its items are compared anyway, because the block extracts them or constructs the tuple.

    function: a function at stage ANF.
    """
    return tuple(_watched_in_order(function, {}))


def watched_outputs(function: Function, order: Sequence[str]) -> tuple[Watched, ...]:
    """Return the values of an imported ONNX model that are compared, with their names in the model.

    The model must come from `with_all_outputs`, which makes the result of every node an output.

    Parameters
    ----------
    function
        The imported function, at stage ANF.
    order
        Names of the model's values in the order of its nodes, which is the order of the result.  A value without a name
        in the model is placed directly before the next value that has one.
    """
    names: dict[Expr, list[str]] = {}
    for name, output in outputs_of(function).items():
        names.setdefault(output, []).append(name)
    positions = {name: position for position, name in enumerate(order)}
    values = _watched_in_order(function, names)
    position, keys = len(positions), []
    for value in reversed(values):
        position = positions.get(value.source_name, position)
        keys.append(position)
    paired = zip(reversed(keys), values, strict=True)
    return tuple(value for _, value in sorted(paired, key=lambda pair: pair[0]))


def outputs_of(function: Function) -> dict[str, Expr]:
    """Return the outputs of an imported ONNX model by their names.  function: a function at stage ANF."""
    result = function.block.result
    names = dict(function.attributes)["output_names"]
    if len(names) == 1:
        return {names[0]: result}
    values = {binding.var: binding.value for binding in function.block.bindings}
    outputs = values[result] if isinstance(result, Var) else result
    assert isinstance(outputs, Tuple), f"{counted(len(names), 'output')} in a {type(outputs).__name__}"
    return dict(zip(names, outputs.fields, strict=True))


def returning_values(function: Function, exprs: Sequence[Expr]) -> Function:
    """Return a copy of a function whose result is the tuple of `exprs`.

    exprs: variables of the function's top block, and constants.
    """
    result = Var("values", type=TupleType(tuple(expr.type for expr in exprs)))
    bindings = (*function.block.bindings, Binding(result, Tuple(tuple(exprs), type=result.type)))
    return replace(function, body=Block(bindings, result, type=result.type), result_type=None, type=None)  # type: ignore[arg-type]  # inferred anew


def add_values_function(module: Module, function: str, values: Sequence[Watched]) -> tuple[Module, str]:
    """Add a copy of `function` that returns the tuple of `values`.  Return the module and the name of the copy."""
    name = unique_name("values", used_names(module))
    changed = returning_values(replace(module[function], name=name), [value.expr for value in values])
    return module.with_functions((*module.functions, fresh_copy(changed, {}, {}))), name


def _watched_in_order(function: Function, names: Mapping[Expr, Sequence[str]]) -> list[Watched]:
    bindings = function.block.bindings
    opened = {binding.value.tuple for binding in bindings if isinstance(binding.value, TupleItem)}
    taken = {name for given in names.values() for name in given}
    values = [Watched(n, expr, n) for expr, given in names.items() if isinstance(expr, Constant) for n in given]
    for binding in bindings:
        is_seen = binding.var in opened or isinstance(binding.value, Tuple)
        if is_seen or not is_comparable(binding.var.type):
            continue
        if binding.var in names:
            values += [Watched(name, binding.var, name) for name in names[binding.var]]
        else:
            values.append(Watched(unique_name(binding.var.name, taken), binding.var))
    return values
