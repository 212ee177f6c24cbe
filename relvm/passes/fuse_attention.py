"""Fusion of attention into one operator."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from relvm import ops
from relvm.data_classes import value_record
from relvm.ir.dtypes import F32
from relvm.ir.expr import Binding, Block, Constant, Expr, Function, MatchCast, OpCall, Var, constant
from relvm.ir.types import TensorType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, use_counts, with_bindings, with_value
from relvm.ops.attention import MOST
from relvm.passes.pass_manager import function_pass
from relvm.passes.util.scale_factors import match_factor


@function_pass("fuse_attention", at=Stage.ANF, optional=True)
def fuse_attention(function: Function) -> Function:
    """Replace attention by one operator, which does not store the matrix of scores:

    s = matmul(q, k, transpose_b=true); p = softmax(s); y = matmul(p, v)   ->   y = attention(q, k, v, ...)

    Between the first product and the softmax, the program can multiply the scores by a number, add a bias, and mask
    scores with a `where`.  Between the softmax and the second product, a `where` can replace NaN by 0, or can
    replace rows whose scores are all -inf by 0.

    The pass applies if the dtype is f32, the intermediate values have no other users, and each query and value vector
    has at most 256 elements (relvm.ops.attention.MOST).
    """
    uses = use_counts(function.body)
    return map_blocks(lambda block: _block(block, uses), function)


def _block(block: Block, uses: Counter[Var]) -> Block:
    calls = {b.var: b.value for b in block.bindings if isinstance(b, Binding) and isinstance(b.value, OpCall)}
    bindings: list[Binding | MatchCast] = []
    fused_vars: set[Expr] = set()
    for binding in block.bindings:
        match = _Match(calls, uses)
        found = match.match_attention(calls[binding.var]) if binding.var in calls else None
        if found is None:
            value = map_blocks(lambda inner: _block(inner, uses), binding.value)
            bindings.append(with_value(binding, value))
            continue
        fused_vars |= match.matched
        del calls[binding.var]  # it is no longer a matrix product, which could be the scores of another attention
        args = []
        for arg in found.args:
            if isinstance(arg, OpCall):
                bindings.append(Binding(binding.var.intermediate(arg.op.name, arg.type), arg))
                arg = bindings[-1].var
            args.append(arg)
        origins = tuple(origin for var in match.matched if isinstance(var, Var) for origin in var.origins)
        bindings.append(replace(binding, value=replace(found, args=tuple(args), origins=origins)))
    return with_bindings(block, [binding for binding in bindings if binding.var not in fused_vars])


@value_record
class _Scores:
    """The computation of attention scores: the product of q and k, times `scale`, plus `bias` if there is one.

    transposed: whether k is stored with its last two axes swapped, so that the scores are matmul(q, k).
    """

    q: Expr
    k: Expr
    transposed: bool
    scale: float = 1.0
    bias: Expr | None = None


class _Match:
    """An attempt to match the attention pattern, starting at one call of a block.

    calls: a variable of the block -> the call that computes it.
    uses: the number of uses of each variable.
    matched: the intermediate variables of the pattern that are matched so far.
    """

    def __init__(self, calls: dict[Var, OpCall], uses: Counter[Var]) -> None:
        self.calls = calls
        self.uses = uses
        self.matched: set[Expr] = set()

    def take_call(self, expr: Expr, uses: int = 1) -> OpCall | None:
        """Return the call that computes `expr`, and add `expr` to `matched`.

        Return None if no call of the block computes `expr`, or if it is not used exactly `uses` times.
        """
        call = self.calls.get(expr) if isinstance(expr, Var) and self.uses[expr] == uses else None
        if call is not None:
            self.matched.add(expr)
        return call

    def match_attention(self, call: OpCall) -> OpCall | None:
        """Match `call` as the product of the softmax and v.  Return the attention operator that replaces it, or None.

        The arguments of the attention operator are calls, variables or constants.
        """
        if call.op is not ops.matmul or any(dict(call.attributes).values()) or not _is_matrix(call.args[0]):
            return None
        shares, v = call.args
        absent, softmax, uses = self.match_weights(shares)
        if softmax is None or softmax.op is not ops.softmax:
            return None
        if dict(softmax.attributes)["axis"] not in (-1, softmax.tensor_type.known_rank - 1):
            return None
        scores, allowed, hidden = self.match_masked_scores(softmax.args[0], uses)
        if (
            scores is None
            or not _is_supported(scores.q, scores.k, v)
            or call.tensor_type.known_shape[:-2] != softmax.tensor_type.known_shape[:-2]
        ):
            return None  # several v share these scores, which are computed only once
        bias = constant(0.0, F32) if scores.bias is None else scores.bias
        attributes = {"scale": scores.scale, "hidden": hidden, "absent": absent, "transposed": scores.transposed}
        return replace(ops.attention(scores.q, scores.k, v, allowed, bias, **attributes), type=call.type)

    def match_weights(self, expr: Expr) -> tuple[str, OpCall | None, int]:
        """Match `expr` as p, where(p != p, 0, p) or where(max(s) == -inf, 0, p), with p = softmax(s).

        Return three items:

        - the attribute `absent` of the attention operator, which states how to treat rows whose scores are all -inf
        - the call that computes p, or None if there is no match.  The caller checks that this call is a softmax.
        - the number of times that the pattern uses s
        """
        call = self.calls.get(expr) if isinstance(expr, Var) else None
        guard = self.take_call(call.args[0]) if call is not None and call.op is ops.where else None
        if call is None or guard is None or self.take_call(expr) is None or not _is_number(call.args[1], 0.0):
            return "nan", self.take_call(expr), 1
        p = call.args[2]
        if p.type != call.type:
            return "nan", None, 0
        if guard.op is ops.not_equal and guard.args == (p, p):
            return "no_nan", self.take_call(p, 3), 1
        softmax, largest = self.take_call(p), self.take_call(guard.args[0])
        if softmax is None or largest is None or guard.op is not ops.equal or not _is_number(guard.args[1], -math.inf):
            return "nan", None, 0
        of_rows = {"axes": (-1,), "keepdims": True}
        same = largest.op is ops.max and largest.args == softmax.args and dict(largest.attributes) == of_rows
        return "zero", softmax if same else None, 2

    def match_masked_scores(self, expr: Expr, uses: int) -> tuple[_Scores | None, Expr, float]:
        """Match `expr` as attention scores, optionally masked by a `where`.

        Return three items: the scores, or None if there is no match; the mask; and the number that replaces each score
        for which the mask is false.

        uses: the number of times that `expr` must be used.
        """
        call = self.take_call(expr, uses)
        if call is not None and call.op is ops.where:
            cond, x, other = call.args
            if isinstance(other, Constant) and other.value.size == 1 and x.type == expr.type:
                return self.match_scores(self.take_call(x)), cond, other.value.item()
            if isinstance(x, Constant) and x.value.size == 1 and other.type == expr.type:
                return self.match_scores(self.take_call(other)), ops.logical_not(cond), x.value.item()
        return self.match_scores(call), constant(True), -math.inf

    def match_scores(self, call: OpCall | None) -> _Scores | None:
        if call is None:
            return None
        if call.op is ops.matmul:
            attributes = dict(call.attributes)
            q, k = call.args
            matrices = _is_matrix(q) and _is_matrix(k) and not attributes["transpose_a"]
            return _Scores(q, k, transposed=not attributes["transpose_b"]) if matrices else None
        if found := match_factor(call):
            x, factor = found
            inner = self.match_scores(self.take_call(x)) if factor.size == 1 and x.type == call.type else None
            if inner is None or inner.bias is not None:
                return None
            scale = inner.scale * factor.item()
            return replace(inner, scale=scale) if _is_normal_f32(scale) else None
        if call.op is not ops.add:
            return None
        for x, term in (call.args, call.args[::-1]):
            matched_before = set(self.matched)
            if x.type == call.type and (inner := self.match_scores(self.take_call(x))) is not None:
                bias = term if inner.bias is None else ops.add(inner.bias, term)
                return None if isinstance(inner.bias, OpCall) else replace(inner, bias=bias)
            self.matched = matched_before
        return None


def _is_matrix(expr: Expr) -> bool:
    return isinstance(expr.type, TensorType) and expr.type.shape is not None and len(expr.type.shape) >= 2


def _is_number(expr: Expr, number: float) -> bool:
    return isinstance(expr, Constant) and expr.value.size == 1 and expr.value.item() == number


def _is_normal_f32(scale: float) -> bool:
    """Return whether `scale`, a product of factors, is a normal f32 number.

    If it is, multiplication by `scale` results in the same zeros and infinities as multiplication by each factor in
    turn.
    """
    range_ = np.finfo(np.float32)
    return float(range_.tiny) <= abs(scale) <= float(range_.max)


def _is_supported(q: Expr, k: Expr, v: Expr) -> bool:
    if not all(map(_is_matrix, (q, k, v))) or any(x.element_type != F32 for x in (q, k, v)):
        return False
    return all(
        isinstance(x.tensor_type.known_shape[-1], int) and 1 <= x.tensor_type.known_shape[-1] <= MOST for x in (q, v)
    )
