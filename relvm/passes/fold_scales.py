"""Folding of constant factors and constant terms into constant weights and biases."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from relvm import ops
from relvm.ir.expr import Binding, Block, Constant, Expr, Function, MatchCast, Module, OpCall, Var
from relvm.ir.node import Node, walk
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_atoms_and_blocks, map_blocks, use_counts, with_bindings, with_value
from relvm.kernels.lowering_rules import DataMovement, Pointwise, Reinterpret
from relvm.passes.pass_manager import module_pass
from relvm.passes.source_locations import add_origins
from relvm.passes.util.scale_factors import (
    combine,
    exact_reciprocal,
    factor_before_transpose,
    factor_before_view,
    match_factor,
    match_shift,
    multiply_weights,
    varies_only_along,
)

_DEEPEST = 8  # maximum number of operators between a factor and the weights into which it is folded
_SHARED_BYTES = 4096  # a larger constant that several operators use is not copied
_SMALL_FACTOR = 2.0**6  # a larger or smaller factor is not moved through a product or past a term
_LARGE_FACTOR = 2.0**64  # a larger or smaller factor could make the weights or the results overflow or underflow
_LARGE_TERM = 2.0**20  # adding a term of this size or more can round away digits of the other term
# Operators that can turn a small difference in their argument into a large one.  So does a cast to integers.
_STEPS = (ops.round, ops.floor, ops.ceil, ops.saturating_cast)

Changes = dict[Var, OpCall]  # variable -> the call that computes it after the change


@module_pass("fold_scales", at=Stage.ANF, optional=True)
def fold_scales(module):
    """Fold constant factors into constant weights, so that they need not be multiplied at run time:

    y = conv(x, w); z = multiply(y, s); t = add(z, b)   ->   y = conv(x, w * s); t = add(y, b)

    The pass folds a factor before or after a convolution or a matrix product with constant weights.  The factor must be
    the same for all results of a filter or column.  Between the product and the factor, constant terms can be added.
    They are multiplied by a factor after the product, and divided by a factor before it.  Transpositions and views are
    also allowed after the product.  A factor that is a single number is also moved through products of two computed
    matrices, and out of an elementwise product before a convolution or a matrix product.  Only values that are used
    once are changed.

    Two consecutive constant terms are added, unless one of them is so large that it would round away digits of the
    other.  A division by powers of two becomes a multiplication.

    A folded factor changes rounding: the products of weights and the factor are rounded when the module is built,
    whereas before, each result was rounded again after its multiplication by the factor.  A factor is not folded if it
    would make a weight infinite, if it is so large or small that it could change which numbers overflow or underflow,
    or if the result is later rounded to whole numbers, as in quantization or the computation of coordinates.  Such a
    rounding is found only if nothing but elementwise operators and data movement lies between the result and the
    rounding.  A factor from 1/64 to 64 that is moved through a product or past a term changes which numbers overflow or
    underflow if they are within this factor of the limits.

    The source locations (origins) of the factor or term are added to those of the changed values.
    """
    folder = _Folder(module)
    return module.with_functions(tuple(map(folder.function, module.functions)))


class _Folder:
    """Folds constant factors and terms in the blocks of a module.

    uses: the number of uses of each variable in the module.
    rounded_later: the values that are later rounded to whole numbers.
    shared: the ids of the arrays of constants that occur several times.
    values: a variable of the current block -> the operator call that now computes it.
    renamed: a removed variable -> its replacement.
    added_origins: a changed variable -> the source locations (origins) to add to it.
    """

    def __init__(self, module: Module) -> None:
        items = [item for function in module.functions for item in walk(function.body)]
        self.uses = Counter[Var]()
        for function in module.functions:
            self.uses.update(use_counts(function.body))
        self.rounded_later = _find_rounded_later(items)
        arrays = Counter(id(item.value) for item in items if isinstance(item, Constant))
        self.shared = {array for array, count in arrays.items() if count > 1}
        self.values: Changes = {}
        self.renamed: dict[Var, Expr] = {}
        self.added_origins: dict[Var, dict[str, None]] = {}

    def function(self, function: Function) -> Function:
        return add_origins(map_blocks(self.block, function), self.added_origins)

    def block(self, block: Block) -> Block:
        outer, self.values = self.values, {}
        others: dict[Var, Binding | MatchCast] = {}
        for binding in block.bindings:
            if changed := self.binding(binding):
                others[binding.var] = changed
        bindings = []
        for binding in block.bindings:
            if binding.var in self.values:
                value = self.values[binding.var]
                bindings.append(with_value(binding, value))
            elif binding.var in others:
                bindings.append(others[binding.var])
        self.values = outer
        return with_bindings(block, bindings, self.atom(block.result))

    def binding(self, binding: Binding | MatchCast) -> Binding | MatchCast | None:
        """Rewrite `binding`.  If its value is an operator call, store the rewritten call in `values` and return None.

        Otherwise return the rewritten binding.  A call whose variable becomes redundant by folding is not stored.
        """
        value = map_atoms_and_blocks(self.atom, self.block, binding.value)
        if not (isinstance(value, OpCall) and isinstance(binding, Binding) and value.type == binding.var.type):
            return with_value(binding, value)
        self.values[binding.var] = value
        if binding.var not in self.rounded_later:
            self.values[binding.var] = self.fold_input_factor(value)
            self.fold(binding.var)
        return None

    def atom(self, expr: Expr) -> Expr:
        return self.renamed.get(expr, expr) if isinstance(expr, Var) else expr

    def fold(self, var: Var) -> None:
        """Fold the constant factor or term in the call that computes `var` into the other operand of the call, if
        possible.

        For example, the factor s in multiply(conv(x, w), s) is multiplied into w.  If folding is not possible, replace
        a division by constant powers of two by a multiplication.
        """
        call = self.values[var]
        if found := match_factor(call):
            changes = self.multiply(*found, _DEEPEST)
        elif found := match_shift(call):
            changes = self.add_shift(*found)
        else:
            return
        x, _ = found
        if changes is not None and isinstance(x, Var):
            del self.values[var]
            self.values.update(changes)
            for changed in changes:
                self.added_origins.setdefault(changed, {}).update(dict.fromkeys(var.origins))
            self.renamed[var] = x
            self.uses[x] += self.uses[var] - 1
        elif call.op is ops.divide and call.tensor_type.rank and isinstance(divisor := call.args[1], Constant):
            inverse = exact_reciprocal(divisor)
            self.values[var] = ops.multiply(call.args[0], inverse) if inverse else call

    def single_use_call(self, expr: Expr) -> OpCall | None:
        """Return the operator call that computes `expr`, if it is in the current block and `expr` is used exactly once.

        Otherwise return None.
        """
        return self.values.get(expr) if isinstance(expr, Var) and self.uses[expr] == 1 else None

    def add_shift(self, expr: Expr, shift: np.ndarray) -> Changes | None:
        """Add the constant `shift` to the variable `expr`.  Return a dict from `expr` to the call that now computes it.

        `expr` must be a matrix product or convolution plus a constant bias, to which `shift` is added.  Return None if
        `expr` is anything else, or if the bias or `shift` is so large that it would round away digits of the other.
        """
        call = self.single_use_call(expr)
        if call is None or not isinstance(expr, Var):
            return None
        if (found := match_shift(call)) is None or not self.is_product(found[0]):
            return None
        x, first = found
        total = combine(np.add, first, shift, call.known_element_type)
        small = all(np.abs(term).max(initial=0) < _LARGE_TERM for term in (first, shift))
        return {expr: ops.add(x, total)} if small and total else None

    def is_product(self, expr: Expr) -> bool:
        """Return whether `expr` is a convolution or matrix product, possibly followed by transpositions, views and
        col2im."""
        call = self.single_use_call(expr)
        while call is not None and call.op in (ops.transpose, ops.reshape, ops.expand_dims, ops.squeeze, ops.col2im):
            call = self.single_use_call(call.args[0])
        return call is not None and call.op in (ops.conv, ops.matmul)

    def multiply(self, expr: Expr, factor: np.ndarray, depth: int) -> Changes | None:
        """Multiply `expr` by `factor`, by multiplying constant weights in the calls that compute it.

        Return a dict from variables to the calls that now compute them, or None if the factor cannot be folded into
        weights.

        depth: the maximum number of operators through which the factor is moved.
        """
        call = self.single_use_call(expr)
        if call is None or not isinstance(expr, Var) or depth == 0 or call.tensor_type.shape is None:
            return None
        if found := match_shift(call):
            x, shift = found
            total = combine(np.multiply, shift, factor, call.known_element_type)
            if total is None or (changes := self.multiply(x, factor, depth - 1)) is None:
                return None
            return {**changes, expr: ops.add(x, total)}
        match call.op:
            case ops.transpose:
                return self.multiply(call.args[0], factor_before_transpose(factor, call), depth - 1)
            case ops.reshape | ops.expand_dims | ops.squeeze:
                x = call.args[0]
                inner = (
                    None
                    if x.tensor_type.shape is None
                    else factor_before_view(factor, call.tensor_type.shape, x.tensor_type.shape)
                )
                return None if inner is None else self.multiply(x, inner, depth - 1)
            case ops.col2im if varies_only_along(factor, 1):
                x = call.args[0]
                return self.multiply(x, factor.reshape(1, -1, *(1,) * (x.tensor_type.known_rank - 2)), depth - 1)
            case ops.conv if varies_only_along(factor, 1):
                weights = self.multiply_weights(call, 1, factor.reshape(-1, *(1,) * (call.tensor_type.known_rank - 1)))
                return {expr: replace(call, args=(call.args[0], weights))} if weights else None
            case ops.matmul:
                return self.multiply_product(expr, call, factor, depth)
        return None

    def multiply_product(self, expr: Var, call: OpCall, factor: np.ndarray, depth: int) -> Changes | None:
        """Multiply the matrix product `expr` by `factor`, by multiplying constant weights.

        The factor is a single number, or one number for each column or row.  Return a dict from variables to the calls
        that now compute them, or None if the factor cannot be folded.

        call: the call that computes `expr`.
        depth: the maximum number of operators through which the factor is moved.
        """
        a, b = call.args
        attributes, vector = dict(call.attributes), factor.reshape(-1)
        if a.tensor_type.known_rank < 2 or b.tensor_type.known_rank < 2:
            return None
        if varies_only_along(factor, -1):
            columns = vector[:, None] if attributes["transpose_b"] else vector
            if weights := self.multiply_weights(call, 1, columns):
                return {expr: replace(call, args=(a, weights))}
        if varies_only_along(factor, -2):
            rows = vector if attributes["transpose_a"] else vector[:, None]
            if weights := self.multiply_weights(call, 0, rows):
                return {expr: replace(call, args=(weights, b))}
        for side in (a, b) if factor.size == 1 else ():
            if changes := self.multiply(side, factor.reshape((1,) * side.tensor_type.known_rank), depth - 1):
                return changes
        return None

    def multiply_weights(self, call: OpCall, index: int, factor: np.ndarray) -> Constant | None:
        """Return the argument of `call` at `index`, multiplied by `factor`, as a new constant.

        Return None if this is not possible: if the argument is not constant, if it is large and used elsewhere, if an
        element overflows, or if the factor is so large or small that it could change which numbers overflow or
        underflow.
        """
        arg = call.args[index]
        if not _is_within(_LARGE_FACTOR, factor[factor != 0]) or not isinstance(arg, Constant):
            return None
        if arg.value.nbytes > _SHARED_BYTES and id(arg.value) in self.shared:
            return None
        return multiply_weights(arg, factor)

    def fold_input_factor(self, call: OpCall) -> OpCall:
        """Fold the constant factors of the first argument of a convolution or matmul into its weights.  Return the new
        call.

        Return any other call unchanged.
        """
        while call.op in (ops.conv, ops.matmul) and isinstance(scaled := call.args[0], Var):
            if (found := self.factor_of_input(scaled)) is None:
                return call
            redundant, x, factor, changes = found
            of_weights = _weight_factor(call, factor)
            weights = None if of_weights is None else self.multiply_weights(call, 1, of_weights)
            if weights is None:
                return call
            del self.values[redundant]
            self.values.update(changes)
            call = replace(call, args=(x, weights))
        return call

    def factor_of_input(self, expr: Var) -> tuple[Var, Expr, np.ndarray, Changes] | None:
        """Find a constant factor of `expr`.

        `expr` must be computed by a call of one of three forms, where c is the constant factor:

        - c * x
        - c * x + a constant term
        - (c * x) * y, if c is a single number

        Return four items, or None if no factor is found:

        - the variable of the multiplication by the factor, which becomes redundant if the factor is folded
        - the expression that replaces `expr` if the factor is folded
        - the factor
        - the calls that change if the factor is folded, by variable
        """
        call = self.single_use_call(expr)
        if call is None:
            return None
        if found := match_factor(call):
            return expr, *found, {}
        if shifted := match_shift(call):
            x, shift = shifted
            inner = self.single_use_call(x)
            if not isinstance(x, Var) or inner is None or (found := match_factor(inner)) is None:
                return None
            scaled, factor = found
            if not _is_within(_SMALL_FACTOR, factor):
                return None
            term = combine(np.divide, shift, factor, call.known_element_type)
            return None if term is None else (x, expr, factor, {expr: ops.add(scaled, term)})
        if call.op is not ops.multiply or not call.known_element_type.is_float:
            return None
        for index, side in enumerate(call.args):
            inner = self.single_use_call(side)
            found = match_factor(inner) if inner is not None else None
            if found is None or not isinstance(side, Var):
                continue
            x, factor = found
            if factor.size == 1 and _is_within(_SMALL_FACTOR, factor):
                args = (*call.args[:index], x, *call.args[index + 1 :])
                factor = factor.reshape((1,) * call.tensor_type.known_rank)
                return side, expr, factor, {expr: replace(call, args=args)}
        return None


def _is_within(limit: float, factor: np.ndarray) -> bool:
    """Return whether the absolute value of each element of the factor is from 1 / limit to limit."""
    size = np.abs(factor)
    return bool(((size <= limit) & (size >= 1 / limit)).all())


def _weight_factor(call: OpCall, factor: np.ndarray) -> np.ndarray | None:
    """Convert `factor`, a factor of the first argument of `call`, to a factor of the weights.

    The factor of the weights has the same effect.  Return None if there is no such factor.
    """
    attributes, weights, vector = dict(call.attributes), call.args[1], factor.reshape(-1)
    if call.op is ops.matmul:
        if (weights.tensor_type.rank or 0) < 2 or attributes["transpose_a"] or not varies_only_along(factor, -1):
            return None
        return vector if attributes["transpose_b"] else vector[:, None]
    if not varies_only_along(factor, 1):
        return None
    groups, units = attributes["groups"], (1,) * (call.tensor_type.known_rank - 2)
    if factor.size == 1 or not isinstance(weights, Constant):
        return factor.reshape(1, 1, *units)
    of_groups = vector.reshape(groups, -1)
    return np.repeat(of_groups, weights.value.shape[0] // groups, axis=0).reshape(weights.value.shape[0], -1, *units)


def _find_rounded_later(items: list[Node]) -> set[Expr]:
    """Return the values that are later rounded to whole numbers.

    A value is returned only if nothing but elementwise operators and data movement lies between it and the rounding.

    items: the nodes of the module, in program order.
    """
    found: set[Expr] = set()
    for item in reversed(items):
        if not isinstance(item, Binding) or not isinstance(item.value, OpCall):
            continue
        call = item.value
        is_step = call.op in _STEPS or (call.op is ops.cast and not call.known_element_type.is_float)
        if is_step or (item.var in found and isinstance(call.op.lower, Pointwise | DataMovement | Reinterpret)):
            found.update(call.args)
    return found
