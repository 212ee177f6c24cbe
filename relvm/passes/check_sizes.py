"""Insertion of run-time checks for relations between sizes that kernels rely on and types do not prove."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace

from relvm.errors import RelvmError, RelvmShapeError, located
from relvm.ir.expr import Binding, Block, Expr, Function, MatchCast, OpCall, Shape, Var
from relvm.ir.node import Node, children
from relvm.ir.operator import SizeClaim, shape_claims
from relvm.ir.relate_sizes import (
    checked_claim,
    find_replacement,
    has_dims,
    infer_with_replacements,
    make_claim_check,
    with_dims,
)
from relvm.ir.symbolic import AnyDim, DimVar, dim_op
from relvm.ir.types import ShapeType, TensorType, Type, type_vars
from relvm.ir.value_ranges import Range, declared_ranges, range_of
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_atoms_and_blocks, map_blocks, with_bindings, with_value
from relvm.kernels.lowering_rules import Builtin
from relvm.passes.pass_manager import function_pass
from relvm.passes.util.match_casts import sort_match_casts


@function_pass("check_sizes", at=Stage.ANF)
def check_sizes(function: Function) -> Function:
    """Give each unnamed dimension a variable, and check at run time the relations of sizes that operators require:

    def f(x: f32[_], y: f32[_])   ->   x_1 = match_cast(x, f32[d0], "f: add: argument x")
      z = add(x, y)                    y_1 = match_cast(y, f32[d0], "f: add: argument y")
                                       z = add(x_1, y_1)
    z = reshape(x, shape(m, 2))   ->   _ = builtin.check_equal(dim(n), dim(m * 2), "f: reshape: ...")
                                       z = reshape(x, shape(m, 2))
    s = shape(n - 2)              ->   _ = builtin.check_at_most(dim(0), dim(n - 2), "f: dimension 0 of a shape ...")
                                       s = shape(n - 2)

    Later passes may rely on the types of operator arguments and results.  Dimensions with equal expressions have equal
    sizes, the size claims of operators (SizeClaim) hold, and no dimension of a shape is negative.  Dead code
    elimination keeps the checks, because they have effects.

    A call with an argument of unknown rank or dtype is unchanged.  A call with unnamed dimensions is also unchanged if
    the operator is lowered to a builtin, because the builtin checks the sizes itself.

    Messages begin with the names of the function and the operator.  In a function that was imported from an ONNX model,
    they begin with the node instead.
    """
    is_imported = "input_names" in dict(function.attributes)
    return map_blocks(_Checker(function.name, is_imported, declared_ranges(function)).block, function)


class _Checker:
    """Adds the checks to the blocks of one function.

    name: the name of the function.
    is_imported: whether the function was imported from an ONNX model, so that origins are nodes.
    ranges: the bounds that the function declares for its dimension variables.
    new_dims: the variables created for unnamed dimensions.
    renamed: a variable -> a variable with the same value and a more precise type.
    checked: the keys of the size claims that were checked before the current point of the program.
    added: the keys of `renamed` and `checked`, in the order in which they were added.  At the end of a block, the
    entries that the block added are removed.
    """

    def __init__(self, name: str, is_imported: bool, ranges: Mapping[DimVar, Range]) -> None:
        self.name = name
        self.is_imported = is_imported
        self.ranges = ranges
        self.new_dims: set[DimVar] = set()
        self.renamed: dict[Expr, Expr] = {}
        self.checked: set[tuple] = set()
        self.added: list[Expr | tuple] = []

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        before = len(self.added)
        for binding in block.bindings:
            value = self.value(binding.value)
            if (claim := checked_claim(value)) and not self.record_check(claim):
                continue
            if isinstance(value, OpCall) and isinstance(binding, Binding):
                try:
                    binding = self.call(binding, value, bindings)
                except RelvmError as error:
                    raise located(type(error)(f"{self.name}: {error}"), binding.var.origin) from error
            else:
                binding = with_value(binding, value)
            self.check_shapes(value, binding.var.origins, bindings)
            bindings.append(binding)
        result = self.atom(block.result)
        self.check_shapes(result, (), bindings)
        for key in self.added[before:]:
            if isinstance(key, tuple):
                self.checked.discard(key)
            else:
                del self.renamed[key]
        del self.added[before:]
        return with_bindings(block, bindings, result)

    def value(self, value: Expr) -> Expr:
        outer = self.checked
        if isinstance(value, Function):  # a local function can be called where these checks have not run
            self.checked = set()
        value = map_atoms_and_blocks(self.atom, self.block, value)
        self.checked = outer
        return value

    def atom(self, expr: Expr) -> Expr:
        while expr in self.renamed:  # one iteration for each more precise type, at most one for each dimension
            expr = self.renamed[expr]
        return expr

    def call(self, binding: Binding, call: OpCall, bindings: list[Binding | MatchCast]) -> Binding:
        """Append to `bindings` the run-time checks that the operator call `call` needs.  Return the new form of
        `binding`.

        binding: the binding of the call.
        """
        types = tuple(with_dims(arg.type) for arg in call.args)
        if not all(map(has_dims, types)):
            return with_value(binding, call)
        is_unnamed = any(type_ is not arg.type for type_, arg in zip(types, call.args, strict=True))
        if isinstance(call.op.lower, Builtin):
            if is_unnamed:
                return with_value(binding, call)
        elif is_unnamed or call is not binding.value:
            call = self.name_dims(call, bindings)
            binding = self.with_inferred_type(binding, call)
        types = tuple(arg.type for arg in call.args)
        for claim in call.op.claims(types, call.attributes):
            if self.is_imported and binding.var.origins:
                claim = replace(claim, message=claim.message.removeprefix(f"{call.op}: "))
            self.check_claim(claim, binding.var.origins, bindings)
        return with_value(binding, call)

    def check_shapes(self, value: Expr, origins: tuple[str, ...], bindings: list[Binding | MatchCast]) -> None:
        """Append to `bindings` run-time checks that no shape in `value`, the value of a binding, has a negative
        dimension.

        origins: the source locations of the checks.
        """
        for shape in _shapes(value):
            for claim in shape_claims(shape.dims):
                self.check_claim(claim, origins, bindings)

    def with_inferred_type(self, binding: Binding, call: OpCall) -> Binding:
        if call.type == binding.var.type:
            return binding
        var = replace(binding.var, type=call.type)
        self.rename(binding.var, var)
        return replace(binding, var=var)

    def rename(self, old: Expr, new: Expr) -> None:
        self.renamed[old] = new
        self.added.append(old)

    def name_dims(self, call: OpCall, bindings: list[Binding | MatchCast]) -> OpCall:
        """Give each unnamed dimension of the arguments of `call` a variable.  Return the call with the new arguments.

        The match_casts that bind the variables are appended to `bindings`.  Their results are the new arguments.
        """
        args = tuple(dict.fromkeys(call.args))
        types = {arg: with_dims(arg.type) for arg in args}
        new = {var for arg, type_ in types.items() if type_ is not arg.type for var in type_vars(type_)}
        self.new_dims |= new
        related, result = infer_with_replacements(
            call.op, [types[arg] for arg in call.args], call.attributes, self.choose_replacement
        )
        types = dict(zip(call.args, related, strict=True))
        casts: dict[Expr, MatchCast] = {}
        for i, arg in enumerate(call.args):
            if types[arg] != arg.type and arg not in casts:
                where = f"{self.name}: {call.op}: argument {_parameter_name(call, i)}"
                var = replace(arg, type=types[arg]) if isinstance(arg, Var) else Var("value", type=types[arg])
                casts[arg] = MatchCast(var, arg, where)
        ordered = sort_match_casts(casts.values(), new)
        if ordered is None:
            raise RelvmShapeError(
                f"{call.op}: the sizes of the arguments depend on each other; use match_cast on one of them"
            )
        bindings += ordered
        for arg, cast in casts.items():
            if isinstance(arg, Var):
                self.rename(arg, cast.var)
        args = tuple(casts[arg].var if arg in casts else arg for arg in call.args)
        return replace(call, args=args, type=result)

    def choose_replacement(self, first: AnyDim, second: AnyDim) -> tuple[DimVar, AnyDim] | None:
        """Choose a dimension variable, and its replacement, so that the dimensions `first` and `second` become equal.

        Variables that this pass created are preferred to variables of the program.  Return None if replacing a single
        variable is not enough.
        """
        return find_replacement(self.new_dims, first, second) or find_replacement(None, first, second)

    def check_claim(self, claim: SizeClaim, origins: tuple[str, ...], bindings: list[Binding | MatchCast]) -> None:
        """Append to `bindings` the run-time check of a claim (a relation between two sizes), if the claim must be
        checked.

        origins: the source locations of the check.
        """
        if self.record_check(claim):
            place = origins[0] if self.is_imported and origins else self.name
            bindings.append(make_claim_check(claim, f"{place}: {claim.message}", origins))

    def record_check(self, claim: SizeClaim) -> bool:
        """Return whether `claim` needs a run-time check.  If so, record the claim as checked.

        A claim needs no check if it was checked before, or follows from the bounds that the function declares.
        """
        key = (claim.relation, claim.left, claim.right)
        slack = range_of(dim_op("sub", claim.right, claim.left), self.ranges)
        if key in self.checked or (claim.relation == "at_most" and slack.low >= 0):
            return False
        self.checked.add(key)
        self.added.append(key)
        return True


def find_unknown_argument(call: OpCall) -> Type | None:
    """Find the first argument that is not a tensor or shape with known dimensions.  Return its type, or None if there
    is none."""
    return next(
        (a.type for a in call.args if not (isinstance(a.type, TensorType | ShapeType) and has_dims(a.type))), None
    )


def _shapes(value: Node) -> Iterator[Shape]:
    """Yield the shape values in `value`, the value of a binding, except those in blocks."""
    if isinstance(value, Shape):
        yield value
    elif not isinstance(value, Block):
        for part in children(value):
            yield from _shapes(part)


def _parameter_name(call: OpCall, index: int) -> str:
    """Return the name of the operator's parameter for the argument at `index`, for messages."""
    parameters = call.op.parameters
    last = parameters[-1]
    if last.kind is inspect.Parameter.VAR_POSITIONAL and index >= len(parameters) - 1:
        return f"{last.name}[{index - len(parameters) + 1}]"
    return parameters[index].name
